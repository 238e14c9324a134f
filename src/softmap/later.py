"""Attributes that are large, and made when somebody asks for them."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, overload

__all__ = ["Later", "unmade"]

T = TypeVar("T")


class Later(Generic[T]):
    """An attribute that is given as it is, or as a function that makes it the first time."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, of: None, kind: type) -> Later[T]: ...

    @overload
    def __get__(self, of: object, kind: type) -> T: ...

    def __get__(self, of: object | None, kind: type) -> Any:
        if of is None:
            raise AttributeError(self._name)  # a dataclass sees a field without a default
        value = vars(of)[self._name]
        if callable(value):
            value = vars(of)[self._name] = value()
        return value

    def __set__(self, of: object, value: Any) -> None:
        vars(of)[self._name] = value


def unmade(of: object, name: str) -> Any:
    """What such an attribute was given: the function that makes it, unless it was made."""
    return vars(of)[name] if name in vars(of) else getattr(of, name)

"""What is made or imported late: attributes with large arrays, and displays."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

Kind = TypeVar("Kind", bound=type)


def display(name: str) -> Any:
    """Return a function or class of `softmap.views`, imported now: a run needs no display.

    >>> display("drawn.html_table")({"edges": "3"})[:11]
    '<table><tr>'
    """
    module, _, member = name.rpartition(".")
    return getattr(import_module(f"softmap.views.{module}"), member)


def later(*names: str) -> Callable[[Kind], Kind]:
    """Make attributes of a class lazy: if one is set to a function, the first access calls it.

    >>> @later("answer")
    ... class Question:
    ...     def __init__(self, answer):
    ...         self.answer = answer
    >>> Question(lambda: 6 * 7).answer, Question(42).answer
    (42, 42)
    """

    def decorated(kind: Kind) -> Kind:
        for name in names:
            setattr(kind, name, _Later(name))
        return kind

    return decorated


def unmade(of: object, name: str) -> Any:
    """Return the stored value of a lazy attribute: its function if it was not yet called."""
    return vars(of)[name] if name in vars(of) else getattr(of, name)


def made(of: object, *names: str) -> dict[str, Any]:
    """Return the attributes of an object, with the named lazy ones computed."""
    return vars(of) | {name: getattr(of, name) for name in names}


class _Later:
    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, of: object | None, kind: type) -> Any:
        if of is None:
            raise AttributeError(self._name)  # the class itself has no such attribute
        value = vars(of)[self._name]
        if callable(value):
            value = vars(of)[self._name] = value()
        return value

    def __set__(self, of: object, value: Any) -> None:
        vars(of)[self._name] = value

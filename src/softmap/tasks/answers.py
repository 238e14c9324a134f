"""The answers for many models, some of which are computed lazily."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

from softmap.run.result import Result

__all__ = ["Answer", "Answers"]

Answer = Result | Exception


class Answers(Sequence[Any]):
    """A result or an exception per model, in the order of the models.

    It behaves like a read-only list.
    """

    def __init__(self, count: int) -> None:
        self._known: list[Any] = [None] * count
        self._makers: dict[int, Callable[[], Answer]] = {}

    def later(self, k: int, maker: Callable[[], Answer]) -> None:
        """Set answer `k` to the return value of `maker`, called on first access."""
        self._makers[k] = maker

    def put(self, k: int, answer: Answer) -> None:
        """Set answer `k`."""
        self._known[k] = answer

    def missing(self) -> list[int]:
        """The indices of answers that are neither known nor lazily computed."""
        return [k for k, a in enumerate(self._known) if a is None and k not in self._makers]

    @property
    def pending(self) -> bool:
        """Whether any lazy answer is not computed yet."""
        return bool(self._makers)

    def first_error(self) -> Exception | None:
        """Return the first known answer that is an exception, or None."""
        return next((answer for answer in self._known if isinstance(answer, Exception)), None)

    def _at(self, k: int) -> Answer:
        maker = self._makers.pop(k, None)
        if maker is not None:
            self._known[k] = maker()
        answer: Answer = self._known[k]
        return answer

    def __len__(self) -> int:
        return len(self._known)

    @overload
    def __getitem__(self, k: int) -> Answer: ...

    @overload
    def __getitem__(self, k: slice) -> list[Answer]: ...

    def __getitem__(self, k: int | slice) -> Answer | list[Answer]:
        if isinstance(k, slice):
            return [self._at(one) for one in range(*k.indices(len(self)))]
        return self._at(range(len(self))[k])

    def __iter__(self) -> Iterator[Answer]:
        return (self._at(k) for k in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, list | Answers) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Answers({list(self)!r})"

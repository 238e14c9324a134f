"""Answers for many models, some of which are made when they are first looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

from softmap.solving.result import Result

__all__ = ["Answer", "Answers"]

Answer = Result | Exception


class Answers(Sequence[Any]):
    """A result or an exception per model, in the order of the models.

    Whatever a list of them can do that changes nothing can be done with this, too.
    """

    def __init__(self, count: int) -> None:
        self._known: list[Any] = [None] * count
        self._makers: dict[int, Callable[[], Answer]] = {}

    def later(self, k: int, maker: Callable[[], Answer]) -> None:
        """Answer `k` is what `maker` returns, when somebody asks for it."""
        self._makers[k] = maker

    def put(self, k: int, answer: Answer) -> None:
        """Answer `k`."""
        self._known[k] = answer

    def missing(self) -> list[int]:
        """Those that are neither known nor can be made."""
        return [k for k, a in enumerate(self._known) if a is None and k not in self._makers]

    @property
    def pending(self) -> bool:
        """Whether any answer is still to be made."""
        return bool(self._makers)

    def first_error(self) -> Exception | None:
        """The first of the known answers that is an exception."""
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

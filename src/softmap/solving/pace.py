"""How long the parts of a run take, so that a time limit is kept before it is overrun."""

from __future__ import annotations

import time
from collections.abc import Callable

from softmap.model import Model
from softmap.model.potentials import Potts, Projection, TruncatedLinear, TruncatedQuadratic

__all__ = ["Pace", "Timed", "width_of"]

# What is guessed to take how long, in evaluations of the bound, before it was done the first time
PASS, CHECK, LABELS, BRIEF, LEAST, END = 3.0, 12.0, 9.0, 8.0, 5.0, 2.0
WARM_UP = 0.02  # seconds that a first call may take whatever the model
SQUARE = 8.0  # pairs of labels per label of a message for which the guess of CHECK was made
CLOSING = 0.4  # of a time limit that a last check and the search for labels may take
SLACK = 0.05  # seconds by which a time limit may be overrun knowingly


class Timed:
    """A block that is timed: the seconds it took are known when it has ended."""

    def __init__(self, ended: Callable[[float], None]) -> None:
        self.seconds, self._ended = 0.0, ended

    def __enter__(self) -> Timed:
        self._began = time.perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.seconds = time.perf_counter() - self._began
        if kind is None:
            self._ended(self.seconds)


class Pace:
    """Seconds per repetition of each kind of work, from the last time it was done."""

    def __init__(self) -> None:
        self._each: dict[str, float] = {}

    def known(self, kind: str) -> bool:
        """Whether this kind of work was timed, or guessed, before."""
        return kind in self._each

    def timed(self, kind: str, count: int = 1) -> Timed:
        """Time a block that does `count` repetitions."""
        return Timed(lambda seconds: self.note(kind, seconds / count))

    def note(self, kind: str, seconds: float) -> None:
        """Remember how long something took that was done elsewhere."""
        self._each[kind] = seconds

    def begin(self, look: Callable[[], None], steps: float, width: float) -> None:
        """Guess what will take how long from one cheap look; `steps` make a pass.

        Of several guesses the least holds: machines stand still now and then, and never run ahead.
        """
        with self.timed("glance") as first:
            look()
        if first.seconds < WARM_UP:  # which may have been most of it
            with self.timed("glance"):
                look()
        guesses = {"step": PASS / max(steps, 1.0), "check": BRIEF + CHECK * width}
        guesses |= {"labels": LABELS, "brief": BRIEF, "least": LEAST, "end": END}
        for kind, factor in guesses.items():
            guess = factor * self._each["glance"]
            self._each[kind] = min(guess, self._each.get(kind, guess))

    def kind_of_check(self, left: float) -> str:
        """The most thorough check that fits: full, "brief" without a primal, or the "least"."""
        kinds = ("check", "brief") if self.known("least") or left > 0 else ()
        return next((kind for kind in kinds if self.in_time(left, kind, "end")), "least")

    def after(self, left: float, limit: float | None) -> tuple[str, ...]:
        """What is to follow the last step: a check, labels and the result.

        Where they would take much of the limit, the most thorough check that there is time for
        after one more step.
        """
        whole = "check", "labels", "end"
        if limit is not None and self.expected(*whole) <= CLOSING * limit:
            return whole
        return self.kind_of_check(left - self.expected("step")), "end"

    def in_time(self, left: float, *kinds: str) -> bool:
        """Whether one repetition of each kind fits into the seconds left."""
        return self.expected(*kinds) <= left + SLACK

    def expected(self, *kinds: str) -> float:
        """Seconds of one repetition of each kind; 0 for what is unknown."""
        return sum(self._each.get(kind, 0.0) for kind in kinds)

    def fitting(self, kind: str, seconds: float, *after: str) -> int:
        """Repetitions that fit into so many seconds and leave time for what comes after them."""
        each = self._each.get(kind, 0.0)
        return int(max(0.0, min((seconds - self.expected(*after)) / max(each, 1e-12), 1e15)))


def width_of(model: Model) -> float:
    """How much a check grows with the labels: without a formula it couples all pairs."""
    formula = Potts | Projection | TruncatedLinear | TruncatedQuadratic
    spans = [(a, b) for a, b, each in model.groups() if not isinstance(each, formula)]
    pairs = sum(int(model.edge_offset[b] - model.edge_offset[a]) for a, b in spans)
    return max(1.0, pairs / max(1, model.half_size) / SQUARE)

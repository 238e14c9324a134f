"""How long the parts of a run take, so that a time limit is kept before it is overrun."""

from __future__ import annotations

import time
from collections.abc import Callable

from softmap.model import Model
from softmap.model.potentials import Potts, Projection, TruncatedLinear, TruncatedQuadratic

__all__ = ["Pace", "Timed", "width_of"]

PASS = 2.0  # a pass is guessed to take so many evaluations of the bound, until the first was made
# What is guessed to take so many passes, before it was done the first time
CHECK, LABELS, BRIEF, END = 5.0, 6.0, 2.0, 0.7
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
        self._guessed: dict[str, float] = {}  # in steps
        self._unused = False  # no step was made since its time was guessed

    def known(self, kind: str) -> bool:
        """Whether this kind of work was timed, or guessed, before."""
        return kind in self._each

    def timed(self, kind: str, count: int = 1) -> Timed:
        """Time a block that does `count` repetitions."""
        return Timed(lambda seconds: self.note(kind, seconds / count))

    def note(self, kind: str, seconds: float) -> None:
        """Remember how long something took that was done elsewhere."""
        if kind == "step" and self._unused:  # memory is fetched when it is used the first time
            seconds, self._unused = min(seconds, self._each[kind]), False
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
        guess = PASS * self._each["glance"] / max(steps, 1.0)
        self._each["step"], self._unused = min(guess, self._each.get("step", guess)), True
        passes = {"check": BRIEF + CHECK * width, "brief": BRIEF, "labels": LABELS, "end": END}
        self._guessed = {kind: count * max(steps, 1.0) for kind, count in passes.items()}

    def kind_of_check(self, left: float) -> str:
        """The most thorough check that fits: full, or "brief" without a primal."""
        return "check" if self.in_time(left, "check", "end") else "brief"

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
        step = self._each.get("step", 0.0)
        return sum(self._each.get(kind, self._guessed.get(kind, 0.0) * step) for kind in kinds)

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

"""What a claim is, and when a method counts as faster."""

from __future__ import annotations

from dataclasses import dataclass, field

from softmap.experiments.curves import Curve

__all__ = ["AHEAD", "APPENDIX", "MAIN", "Claim", "Outcome", "Shares"]

MAIN = "section “Numerical Experiments”"
APPENDIX = "appendix “Numerical Experiments Details”"
LEVEL = 0.005  # log-competitive ratios within this of 0 are a draw
CONSISTENT = 0.95  # share of the points with a difference at which a faster method must be ahead
AHEAD = (
    f"mean log-competitive ratio above {LEVEL} at {CONSISTENT:.0%} of the points where it is not "
    f"within {LEVEL} of 0"
)


@dataclass(frozen=True)
class Outcome:
    """Whether a claim holds, and the numbers that decide it."""

    holds: bool
    numbers: str


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper in our words, where it stands, how it is decided, and the result.

    `outcomes` is keyed by "printed", "proved", or "standard" where no accelerated method is meant.
    """

    says: str
    where: str
    rule: str
    outcomes: dict[str, Outcome] = field(default_factory=dict)


@dataclass(frozen=True)
class Shares:
    """Parts of a run in which the accelerated variant is ahead, level and behind, on average."""

    ahead: float
    level: float
    behind: float

    @classmethod
    def of(cls, found: Curve) -> Shares:
        """Count the points of a mean log-competitive ratio."""
        ahead, behind = (float((s * found.mean > LEVEL).mean()) for s in (1, -1))
        return cls(ahead, 1.0 - ahead - behind, behind)

    @property
    def consistent(self) -> bool:
        """Ahead wherever there is a difference, and that not only for a moment."""
        return self.ahead >= max(CONSISTENT * (self.ahead + self.behind), 1.0 - CONSISTENT)

    def __str__(self) -> str:
        return f"ahead {self.ahead:.0%}, level {self.level:.0%}, behind {self.behind:.0%}"

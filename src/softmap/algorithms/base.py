"""What every algorithm offers: begin, go on in place, and propose what the judge should look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from softmap.model import Model

__all__ = ["Algorithm", "Floats", "Proposal", "State"]

Floats = NDArray[np.float64]


@dataclass
class State:
    """What an algorithm carries on: numpy arrays and plain numbers, so that it can be stored.

    Subclasses add their arrays as fields. `work` counts half-edge messages, `sweeps` passes over
    the whole graph (work divided by the number of half-edges for the randomised methods).
    """

    work: int = 0


@dataclass(frozen=True)
class Proposal:
    """What the judge looks at: λ (any λ gives a bound), η, and further vertex marginals to try."""

    lam: Floats
    eta: float
    nodes: tuple[Floats, ...] = ()


class Algorithm(Protocol):
    """One method, configured; the state is kept apart so that runs can be stored and resumed."""

    name: ClassVar[str]

    def init(self, model: Model, lam: Floats | None, seed: int) -> Any:
        """Begin at λ (0 if None) on a model without unsupported states (see `tighten`)."""

    def step(self, state: Any, count: int) -> None:
        """Go on by `count` updates (randomised methods) or passes (sweep methods), in place."""

    def propose(self, state: Any) -> Proposal:
        """Where it stands."""

"""What every algorithm offers: begin, go on in place, and propose what the judge should look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from softmap.model import Model

__all__ = ["Algorithm", "Floats", "Proposal", "State", "Verdict"]

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
    """What the judge looks at. Any λ gives a bound; the rest are suggestions it makes feasible.

    Attributes
    ----------
    lam
        λ to take the bound of.
    eta
        Inverse temperature of the marginals.
    coupling
        κ of the edge marginals `exp(-η (C_e + κ_i + κ_j))`; λ itself if None.
    nodes
        Node marginals to try, the current ones first; those of λ if empty.
    smoothed
        Value of the regularised dual, where the method knows it.
    """

    lam: Floats
    eta: float
    coupling: Floats | None = None
    nodes: tuple[Floats, ...] = ()
    smoothed: float | None = None


@dataclass(frozen=True)
class Verdict:
    """What the judge found at one proposal (not the best so far)."""

    bound: float
    primals: tuple[float, ...]
    edge_entropy: float
    slack: float


class Algorithm(Protocol):
    """One method, configured; the state is kept apart so that runs can be stored and resumed."""

    name: ClassVar[str]

    def init(self, model: Model, lam: Floats | None, seed: int) -> Any:
        """Begin at λ (0 if None) on a model without unsupported states (see `tighten`)."""

    def step(self, state: Any, count: int) -> None:
        """Go on by `count` updates (randomised methods) or passes (sweep methods), in place."""

    def propose(self, state: Any) -> Proposal:
        """Where it stands."""

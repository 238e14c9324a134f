"""What a run of transport returns, and how η rises during it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from softmap.arguments import count
from softmap.hints import missing

Floats = NDArray[np.float64]


class TransportStatus(Enum):
    """Why a run of transport ended; the value is the sentence that users see."""

    GAP = "the gap is reached"
    TIME_LIMIT = "the time limit was reached"
    CALLBACK = "on_snapshot asked to stop"
    PRECISION = "the last η was reached before the gap"
    STALLED = "passes have stalled before the gap was reached"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Ladder:
    """How η rises; decision 75 has the measurements.

    Attributes
    ----------
    first : float
        First η, times the largest range of the costs of an edge.
    factor : float
        Largest ratio of two successive η.
    loose : float
        A level ends when the misplaced mass of an edge, times the range of its costs, is below
        this number over η.
    passes : int
        Passes between two looks at the misplaced mass.
    most : int
        Passes after which a level is checked although more mass is misplaced. It then continues
        with twice as many passes, again and again as long as the misplaced mass falls.
    extended : int
        If so many extensions of a level have not halved the misplaced mass, no more are made.
    last : float
        Last η, times the largest range.
    """

    first: float = 50.0
    factor: float = 3.0
    loose: float = 2.0
    passes: int = 5
    most: int = 2000
    extended: int = 4
    last: float = 1e9


LADDER = Ladder()


@dataclass(frozen=True)
class Moment:
    """What is known after a level: a row of `Transport.trace`.

    Attributes
    ----------
    eta : float
        Inverse temperature of the level.
    passes : int
        Passes made so far.
    cost : float
        Smallest cost of a feasible plan so far.
    bound : float
        Largest lower bound so far.
    """

    eta: float
    passes: int
    cost: float
    bound: float


@dataclass(frozen=True, eq=False)
class Transport:
    """A feasible plan, its cost, and a certified lower bound on the cost of every plan.

    Attributes
    ----------
    cost : float
        Cost of the plan: Σ ⟨C_e, plan(e)⟩ and the node costs.
    bound : float
        Lower bound on the optimum of the linear program, rounding errors subtracted.
    marginals : list of float64 arrays
        Marginals of all nodes: the given ones, and those of the plan.
    potentials : list of float64 arrays
        Dual potentials of all nodes with a given marginal, zeros for free nodes. Up to a constant
        they are the gradient of the optimal cost by the marginal, with an error of the gap.
    tree : bool
        Whether the graph has no cycle. Only then is the optimum of the linear program that of
        transport between all marginals jointly; on a graph with cycles it is a lower bound of it.
    trace : list of Moment
        One row per check: one per level of η, or more if a level takes long.
    status : TransportStatus
        Why the run ended: `GAP` if the gap that was asked for is reached.
    """

    cost: float
    bound: float
    marginals: list[Floats] = field(repr=False)
    potentials: list[Floats] = field(repr=False)
    tree: bool
    trace: list[Moment] = field(repr=False)
    _plan: Callable[[int], Floats] = field(repr=False)
    status: TransportStatus = TransportStatus.GAP

    if not TYPE_CHECKING:  # type checkers know the attributes

        def __getattr__(self, name: str) -> object:
            plan = "plan(), the plan of an edge"
            instead = {"cost": "value primal_cost loss reg_ot_cost", plan: "matrix P coupling"}
            raise AttributeError(missing("'Transport' object", name, instead))

    @property
    def gap(self) -> float:
        """The certified gap `cost - bound`, at least 0."""
        return max(0.0, self.cost - self.bound)

    @property
    def relative_gap(self) -> float:
        """The gap over the absolute value of the bound; 0 if the gap is 0."""
        return self.gap / abs(self.bound) if self.gap and self.bound else math.inf * bool(self.gap)

    def plan(self, edge: int = 0) -> Floats:
        """Return the plan of an edge, with the marginals of its endpoints.

        It is the gradient of the optimal cost by the costs of the edge, with an error of the gap.

        Parameters
        ----------
        edge : int, default 0
            Its place in the list of edges.
        """
        return self._plan(count("edge", edge))

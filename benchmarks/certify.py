"""Certify what any method left: a bound, a primal value and an energy, with the clock stopped.

Bounds come from multipliers and hold for any; a primal point is repaired first, so that every gap
in a table means the same thing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.base import Answer
from softmap.errors import OptionError
from softmap.labels import best_labelling, decode, round_nodes
from softmap.model import Model
from softmap.relaxation import polytope
from softmap.relaxation.bounds import dual_bound
from softmap.relaxation.consistency import tighten
from softmap.relaxation.gaps import gap_unit, relative_gap

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Certified:
    """What an answer is worth; infinite where there is nothing to show."""

    bound: float
    primal: float
    energy: float

    @property
    def lp_gap(self) -> float:
        """Certified relative gap of the LP."""
        return self._relative(self.primal)

    @property
    def map_gap(self) -> float:
        """Certified relative gap of the labelling."""
        return self._relative(self.energy)

    def _relative(self, value: float) -> float:
        if not (math.isfinite(self.bound) and math.isfinite(value)):
            return math.inf
        return relative_gap(value - self.bound, gap_unit(self.bound))


def certify(model: Model, answer: Answer) -> Certified:
    """Certify an answer. A labelling is a point of the polytope too, and may be the better one."""
    tight = tighten(model)
    bound = -math.inf if answer.lam is None else dual_bound(tight, answer.lam)
    energy = labelling_energy(tight, answer)
    primal = min(energy, primal_value(tight, answer.nodes))
    return Certified(bound=bound, primal=primal, energy=energy)


def primal_value(model: Model, nodes: Floats | None) -> float:
    """Cost of the cheapest point of the local polytope with (nearly) these node marginals."""
    if nodes is None:
        return math.inf
    repaired = repair(model, nodes)
    try:
        return polytope.cost(model, repaired, polytope.transport(model, repaired))
    except OptionError:  # hard constraints leave no coupling of these marginals
        return math.inf


def repair(model: Model, nodes: Floats) -> Floats:
    """Non-negative, zero where forbidden, normalised, auxiliaries in line with their members."""
    clipped = np.where(np.isfinite(model.unary), np.maximum(nodes, 0.0), 0.0)
    starts, counts = model.network.node_offset[:-1], model.num_labels
    totals = np.add.reduceat(clipped, starts)
    bare = np.repeat(totals <= 0, counts)
    clipped[bare] = np.isfinite(model.unary[bare])
    totals = np.add.reduceat(clipped, starts)
    return polytope.lift(model.network, clipped / np.repeat(totals, counts))


def labelling_energy(model: Model, answer: Answer) -> float:
    """Energy of the best labelling the answer gives: its own, its rounding, its decoding."""
    candidates = [] if answer.labels is None else [answer.labels]
    if answer.nodes is not None:
        candidates.append(round_nodes(model, repair(model, answer.nodes)))
    if answer.lam is not None:
        candidates.append(decode(model, answer.lam))
    return best_labelling(model, candidates)[1] if candidates else math.inf

"""Absolute and relative gaps between an energy (or a primal cost) and a bound.

A relative gap is the gap divided by a unit, `max(min(|bound|, |bound - constant|), cost_step)`.
A large constant of the model hence hides no gap. The typical step of the costs (`cost_step`)
gives a model whose optimum is 0 a relative gap, too. The unit is proportional to the costs:
multiplying all costs by a positive number changes no relative gap.
"""

from __future__ import annotations

import math

import numpy as np

from softmap.model import Model
from softmap.model.potentials.base import Costs, least_steps

__all__ = [
    "Gaps", "cost_step", "cost_steps", "gap_unit", "model_unit", "relative_gap", "stated_primal",
]  # fmt: skip


class Gaps:
    """What an energy and a bound of a model say together."""

    model: Model
    energy: float
    bound: float

    @property
    def unit(self) -> float:
        """The unit of relative gaps, see `softmap.relaxation.gaps`."""
        return model_unit(self.model, self.bound)

    @property
    def gap(self) -> float:
        """The gap `energy - bound`, at least 0; 0 proves the labelling optimal."""
        return max(0.0, self.energy - self.bound)

    def relative_gap(self, gap: float) -> float:
        """Return `gap / unit`, see `softmap.relaxation.gaps`."""
        return relative_gap(gap, self.unit)


def relative_gap(gap: float, unit: float) -> float:
    """The gap in units; 0 if there is none, +inf if there is one and the unit is 0 or infinite."""
    if gap <= 0:
        return 0.0
    return gap / unit if 0 < unit < math.inf else math.inf


def stated_primal(cost: float, bound: float, energy: float) -> float:
    """Return the primal value to report: the cost of the best point, labellings included.

    A cost that rounding took below the proved bound is replaced by the bound, or by the energy of
    the labels if rounding took that below the bound, too.
    """
    return min(max(cost, bound), energy)


def gap_unit(bound: float, constant: float = 0.0, step: float = 0.0) -> float:
    """Return the unit of gaps to a bound, `max(min(|bound|, |bound - constant|), step)`."""
    return max(min(abs(bound), abs(bound - constant)), step)


def model_unit(model: Model, bound: float) -> float:
    """Return the unit of gaps to a bound of this model."""
    return gap_unit(bound, model.constant, cost_step(model))


def cost_step(model: Model) -> float:
    """Return a typical step of the costs, 0 if all tables are constant; computed once per model.

    It is the harmonic mean, over all tables with two distinct finite costs, of the difference
    between the two smallest. A few very large costs do not raise it.
    """
    cache = model.__dict__
    if "_cost_step" not in cache:
        cache["_cost_step"] = _harmonic_mean(cost_steps(model))
    step: float = cache["_cost_step"]
    return step


def cost_steps(model: Model) -> Costs:
    """The difference between the two lowest costs of every node, then of every edge."""
    found = [least_steps(model.unary, model.node_offset[:-1])]
    for first, last, potential in model.groups():
        if last > first:
            found.append(potential.steps(*model.end_labels(first, last)))
    return np.concatenate(found)


def _harmonic_mean(steps: Costs) -> float:
    steps = steps[(steps > 0) & np.isfinite(steps)]
    if not steps.size:
        return 0.0
    least = steps.min()
    return float(least * (steps.size / (least / steps).sum()))

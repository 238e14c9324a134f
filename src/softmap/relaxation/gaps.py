"""Gaps between what was found and what is proved: the one place that says what relative means.

The unit of a relative gap is the size of the bound, with or without the model's `constant`, the
smaller of the two: a large constant hides no gap. Where that is smaller than a typical step of the
costs (`cost_step`), the step is the unit: a model whose optimum is 0 has a relative gap, too. All
of these grow with the costs, so multiplying all costs by a positive number changes none.
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
        """The unit of relative gaps: see `softmap.relaxation.gaps`."""
        return model_unit(self.model, self.bound)

    @property
    def gap(self) -> float:
        """`energy - bound`, at least 0; 0 proves the labelling optimal."""
        return max(0.0, self.energy - self.bound)

    def relative_gap(self, gap: float) -> float:
        """`gap / unit`: see `softmap.relaxation.gaps`."""
        return relative_gap(gap, self.unit)


def relative_gap(gap: float, unit: float) -> float:
    """The gap in units; 0 if there is none, +inf if there is one and the unit is 0 or infinite."""
    if gap <= 0:
        return 0.0
    return gap / unit if 0 < unit < math.inf else math.inf


def stated_primal(cost: float, bound: float, energy: float) -> float:
    """The cost of the best point, labels included, as it is stated.

    Rounding may have led it below what is proved for all points; it is then that bound, or the
    energy of the labels, which may be rounded below the bound, too.
    """
    return min(max(cost, bound), energy)


def gap_unit(bound: float, constant: float = 0.0, step: float = 0.0) -> float:
    """The unit of gaps to a bound: `max(min(|bound|, |bound - constant|), step)`."""
    return max(min(abs(bound), abs(bound - constant)), step)


def model_unit(model: Model, bound: float) -> float:
    """The unit of gaps to a bound of this model."""
    return gap_unit(bound, model.constant, cost_step(model))


def cost_step(model: Model) -> float:
    """A typical step of the costs, 0 if they are all constant; found once per model.

    The harmonic mean, over all tables with two different finite costs, of the difference between
    the two lowest: a few very large costs do not raise it, and it grows with the costs.
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

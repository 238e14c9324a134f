"""Presolve: no states that hard constraints rule out, and costs near 1.

Costs are multiplied by a power of two, which rounds nothing, so that costs near either end of the
float range can be added, squared and held in single precision. A model whose costs are of ordinary
size is left as it is, without a copy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.errors import InfeasibleModel, ModelError
from softmap.model import Model, checked_model
from softmap.model.layout import layout
from softmap.model.structure import CostSizes

__all__ = ["Scaled", "arc_consistency", "largest_cost", "scaled", "tighten"]

SHOWN = 12  # variables that a message names


def arc_consistency(model: Model) -> NDArray[np.bool_]:
    """Which states survive arc consistency, as a mask over `model.unary`.

    A state is forbidden when its own cost is +inf, or when on some edge every state of the other
    end is forbidden or makes the pair cost +inf; repeated until nothing changes.

    Raises
    ------
    InfeasibleModel
        If a variable is left without states; `variable` names it.
    """
    allowed = np.isfinite(checked_model(model).unary)
    kept = np.logical_or.reduceat(allowed, model.node_offset[:-1])
    if not kept.all():
        raise _infeasible(model, int(np.argmin(kept)))
    if model.has_forbidden:
        empty = core.arc_consistency(layout(model), allowed)
        if empty >= 0:
            raise _infeasible(model, empty)
    return allowed


def tighten(model: Model) -> Model:
    """The model with +inf on every state arc consistency rules out; itself if nothing changes."""
    if not checked_model(model).has_forbidden:
        return model
    allowed = arc_consistency(model)
    if np.array_equal(allowed, np.isfinite(model.unary)):
        return model
    return model.replace(unary=np.where(allowed, model.unary, np.inf))


def _infeasible(model: Model, node: int) -> InfeasibleModel:
    members = _visible(model, node)
    if node < model.num_visible:
        what = f"variable {node}"
    else:
        shown = ", ".join(map(str, members[:SHOWN])) + (", …" if len(members) > SHOWN else "")
        what = f"the factor over variables [{shown}]"
    return InfeasibleModel(
        f"no labelling has finite cost: hard constraints leave {what} without a state; "
        "look at the +inf costs around it",
        members[0],
    )


def _visible(model: Model, node: int) -> list[int]:
    """The variables that users know which a node's state follows from."""
    aux, running, found = model.auxiliaries, model.running, set[int]()
    front, seen = [node], {node}
    while front:
        i = front.pop()
        if i < model.num_visible:
            found.add(i)
            continue
        joint = i >= model.num_variables
        k = i - (model.num_variables if joint else model.num_visible)
        member, start = (aux.member, aux.start) if joint else (running.member, running.start)
        new = set(member[start[k] : start[k + 1]].tolist()) - seen
        seen |= new
        front += new
    return sorted(found)


@dataclass(frozen=True)
class ScaleLimits:
    """Exponents of costs that are left as they are.

    Attributes
    ----------
    ordinary : int
        Costs between 2**-ordinary and 2**ordinary are taken as they are.
    largest : int
        Exponent that costs are scaled up to at most.
    """

    ordinary: int = 40
    largest: int = 600


SCALING = ScaleLimits()


@dataclass(frozen=True)
class Scaled:
    """A model times a power of two, without its constant.

    Attributes
    ----------
    model : Model
        Costs times `2**exponent`, no constant.
    exponent : int
    largest : int
        The largest size of a cost of `model` lies between `2**(largest - 1)` and `2**largest`.
    width, scale : float
        Sum of the ranges of all tables of `model`, and mean of those that are not 0.
    """

    model: Model
    exponent: int
    largest: int
    width: float
    scale: float


def scaled(model: Model) -> Scaled:
    """The model in units in which its costs are near 1; a scaled model comes back as it is."""
    sizes = model.cost_sizes
    if sizes.total > 0 and math.log2(sizes.total) + sizes.exponent > 1023:
        raise ModelError(
            f"{largest_cost(model)} is so large that sums of costs overflow; divide all costs by "
            "some number"
        )
    exponent = _exponent(sizes)
    largest = sizes.exponent + exponent
    width, scale = math.ldexp(sizes.width, largest), math.ldexp(sizes.scale, largest)
    return Scaled(_times(model, exponent), exponent, largest, width, scale)


def _times(model: Model, exponent: int) -> Model:
    if exponent == 0:
        return model if model.constant == 0 else model.replace(constant=0.0)
    half = exponent // 2  # the whole factor may be beyond the float range
    first, second = 2.0**half, 2.0 ** (exponent - half)
    potentials = [p.scaled(first).scaled(second) for p in model.potentials]
    return model.replace(unary=model.unary * first * second, potentials=potentials, constant=0.0)


def _exponent(sizes: CostSizes) -> int:
    """By which power of two to scale: costs of ordinary size by none."""
    if sizes.scale == 0:  # nothing to choose between: only the largest cost counts
        return 0 if abs(sizes.exponent) <= SCALING.ordinary else -sizes.exponent
    typical = int(np.frexp(sizes.scale)[1]) + sizes.exponent
    if abs(typical) <= SCALING.ordinary and sizes.exponent <= SCALING.largest:
        return 0
    return min(-typical, SCALING.largest - sizes.exponent)


def largest_cost(model: Model) -> str:
    """The table with the largest cost, in words."""
    low, high = model.extremes()
    size = np.maximum(np.abs(low), np.abs(high))
    at = int(np.argmax(size))
    where = f"variable {at}" if at < model.n else f"edge {at - model.n}"
    return f"a cost of {size[at]:.3g} ({where})"

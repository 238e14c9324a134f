"""Hard constraints: which states can still be part of a labelling of finite cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.errors import InfeasibleModel
from softmap.model import Model, checked_model
from softmap.model.layout import layout

__all__ = ["arc_consistency", "tighten"]


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
    if node < model.num_variables:
        what, variable = f"variable {node}", node
    else:
        aux = model.auxiliaries
        first = int(aux.start[node - model.num_variables])
        last = int(aux.start[node - model.num_variables + 1])
        members = aux.member[first:last].tolist()
        what, variable = f"the factor over variables {members}", members[0]
    return InfeasibleModel(
        f"no labelling has finite cost: hard constraints leave {what} without a state; "
        "look at the +inf costs around it",
        variable,
    )

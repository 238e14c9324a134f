"""Arc consistency: states that hard constraints exclude from every labelling of finite cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.errors import InfeasibleModel, listed
from softmap.model import Model, checked_model
from softmap.model.layout import layout


def arc_consistency(
    model: Model, threads: int = 1, deadline: core.Deadline | None = None
) -> NDArray[np.bool_]:
    """Which states survive arc consistency, as a mask over `model.unary`.

    A state is forbidden when its own cost is +inf, or when on some edge every state of the other
    end is forbidden or makes the pair cost +inf; repeated until nothing changes.

    Parameters
    ----------
    model : Model
    threads : int, default 1
        Number of threads for large models. The result does not depend on it.
    deadline : core.Deadline, optional
        When to stop. Some states may then be left that hard constraints exclude.

    Raises
    ------
    InfeasibleModel
        If a variable is left without states, or no labels that are left obey a factor over many
        variables; `variable` names one.
    """
    allowed = np.isfinite(checked_model(model).unary)
    kept = np.logical_or.reduceat(allowed, model.node_offset[:-1])
    if not kept.all():
        raise _infeasible(model, int(np.argmin(kept)))
    if model.has_forbidden:
        empty = core.arc_consistency(layout(model), allowed, threads, deadline)
        if empty >= 0:
            raise _infeasible(model, empty)
        require_possible(model, allowed)
    return allowed


def require_possible(model: Model, allowed: NDArray[np.bool_]) -> None:
    """Raise `InfeasibleModel` if no allowed states satisfy a factor over many variables.

    Matchings and counts find contradictions that arc consistency misses.
    """
    names = None if model.names is None else model.names.variables
    for factor in model.required:
        factor.require([allowed[model.node_slice(i)] for i in factor.variables], names)


def tighten(model: Model, threads: int = 1, deadline: core.Deadline | None = None) -> Model:
    """Return the model with +inf on every state that arc consistency removes.

    The model itself is returned if no state is removed.

    Parameters
    ----------
    model : Model
    threads : int, default 1
        Number of threads for large models. The result does not depend on it.
    deadline : core.Deadline, optional
        When to stop. Some states may then be left that hard constraints exclude.
    """
    if not checked_model(model).has_forbidden:
        return model
    allowed = arc_consistency(model, threads, deadline)
    if np.array_equal(allowed, np.isfinite(model.unary)):
        return model
    return model.replace(unary=np.where(allowed, model.unary, np.inf))


def _infeasible(model: Model, node: int) -> InfeasibleModel:
    members = visible_variables(model, node)
    called = members if model.names is None else [model.names.variables[i] for i in members]
    if node < model.num_visible:
        what = f"variable {called[0]}"
    else:
        what = f"the factor over variables [{listed(called)}]"
    return InfeasibleModel(
        f"no labelling has finite cost: hard constraints leave {what} without a state; "
        "look at the +inf costs around it",
        members[0],
    )


def visible_variables(model: Model, node: int) -> list[int]:
    """Return the variables of the user's model that determine a node's state."""
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

"""Arc consistency: states that hard constraints exclude from every labelling of finite cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.errors import InfeasibleModel, listed
from softmap.model import Model, Network, checked_network
from softmap.model.layout import layout


def arc_consistency(
    model: Model | Network, threads: int = 1, deadline: core.Deadline | None = None
) -> NDArray[np.bool_]:
    """Which states survive arc consistency, as a mask over `model.unary`.

    A state is forbidden when its own cost is +inf, or when on some edge every state of the other
    end is forbidden or makes the pair cost +inf; repeated until nothing changes.

    Parameters
    ----------
    model : Model or Network
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
    network = checked_network(model)
    allowed = np.isfinite(network.unary)
    kept = np.logical_or.reduceat(allowed, network.node_offset[:-1])
    if not kept.all():
        raise _infeasible(network, int(np.argmin(kept)))
    if network.has_forbidden:
        empty = core.arc_consistency(layout(network), allowed, threads, deadline)
        if empty >= 0:
            raise _infeasible(network, empty)
        require_possible(network, allowed)
    return allowed[: model.unary.size]


def require_possible(model: Network, allowed: NDArray[np.bool_]) -> None:
    """Raise `InfeasibleModel` if no allowed states satisfy a factor over many variables.

    Matchings and counts find contradictions that arc consistency misses.
    """
    names = None if model.names is None else model.names.variables
    for factor in model.required:
        factor.require([allowed[model.node_slice(i)] for i in factor.variables], names)


def tighten(
    model: Model | Network, threads: int = 1, deadline: core.Deadline | None = None
) -> Network:
    """Return the network of a model with +inf on every state that arc consistency removes.

    The network itself is returned if no state is removed.

    Parameters
    ----------
    model : Model or Network
    threads : int, default 1
        Number of threads for large models. The result does not depend on it.
    deadline : core.Deadline, optional
        When to stop. Some states may then be left that hard constraints exclude.
    """
    network = checked_network(model)
    if not network.has_forbidden:
        return network
    allowed = arc_consistency(network, threads, deadline)
    if np.array_equal(allowed, np.isfinite(network.unary)):
        return network
    return network.replace(unary=np.where(allowed, network.unary, np.inf))


def _infeasible(model: Network, node: int) -> InfeasibleModel:
    members = model.variables_of(node)
    called = members if model.names is None else [model.names.variables[i] for i in members]
    if members == [node]:
        what = f"variable {called[0]}"
    else:
        what = f"the factor over variables [{listed(called)}]"
    return InfeasibleModel(
        f"no labelling has finite cost: hard constraints leave {what} without a state; "
        "look at the +inf costs around it",
        members[0],
    )

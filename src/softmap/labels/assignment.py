"""Linear assignment: unary costs, and one `AllDifferent` over all variables.

scipy finds the labels. The prices of the labels, which prove them optimal, are computed here from
the labels, and become λ along the chains of the model: the bound is that of λ, and does not depend
on scipy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softmap.model import Model
from softmap.model.chains import Chain, chains
from softmap.model.many import AllDifferent, AtMostOne
from softmap.model.potentials.base import Costs, Ints

__all__ = ["label_prices", "solve_assignment"]

MOST_ENTRIES = 50_000_000  # largest number of costs of an assignment that is solved outright


def solve_assignment(model: Model, given: Model) -> tuple[Ints, Costs] | None:
    """Return optimal labels and λ that proves them, if the model is a linear assignment.

    Parameters
    ----------
    model : Model
        The model to solve.
    given : Model
        The model that it was made from, which knows the `AllDifferent`.

    Returns
    -------
    (int64 array, float64 array) or None
        Labels of all variables, and λ; None for any other model, or if no labels exist.
    """
    factor = _only_factor(model, given)
    if factor is None:
        return None
    scope = np.array(factor.variables)
    sizes = model.num_labels[scope]
    if len(scope) * int(sizes.max()) > MOST_ENTRIES:
        return None
    costs = np.full((len(scope), int(sizes.max())), np.inf)
    for row, i in zip(costs, scope.tolist(), strict=True):
        row[: model.num_labels[i]] = model.unary[model.node_slice(i)]
    from scipy.optimize import linear_sum_assignment  # imported late, as all of scipy

    try:
        _, label = linear_sum_assignment(costs)
    except ValueError:  # no labels differ from each other
        return None
    labels = np.zeros(model.num_visible, dtype=np.int64)
    labels[scope] = label
    return model.with_running(labels), _lam(model, factor, label_prices(costs, label))


def label_prices(costs: Costs, labels: NDArray[np.integer]) -> Costs:
    """Return prices `v ≤ 0` of the labels at which each variable has its cheapest label.

    Label x costs variable i `costs[i, x] - v[x]`, and a label that nobody has has price 0. The
    prices are shortest distances in the graph of possible exchanges, by Bellman and Ford.

    Parameters
    ----------
    costs : float64[n, labels]
        Costs of the labels; `+inf` is forbidden.
    labels : int[n]
        An optimal assignment.
    """
    own = costs[np.arange(len(labels)), labels]
    prices = np.zeros(costs.shape[1])
    for _ in range(len(labels) + 1):
        offered = (prices[labels] - own)[:, None] + costs
        lower = np.minimum(prices, offered.min(axis=0))
        if np.array_equal(lower, prices):
            break
        prices = lower
    return prices


def _only_factor(model: Model, given: Model) -> AllDifferent | None:
    """The `AllDifferent` of a model that has no other cost than those of its visible variables."""
    if len(given.required) != 1 or not isinstance(given.required[0], AllDifferent):
        return None
    factor, (first, last) = given.required[0], given.required_chains[0]
    whole = len(factor.variables) == model.num_visible
    if not whole or last - first != len(model.running) or not last - first:
        return None
    low, high = model.extremes()
    plain = not low[model.num_visible :].any() and not high[model.num_visible :].any()
    return factor if plain else None


def _lam(model: Model, factor: AllDifferent, prices: Costs) -> Costs:
    """Return λ that moves the price of each label from its variables to the end of its chain.

    Along a chain, the price is taken from the state "somebody has the label" at each step and
    given to the next one, so that only the last table keeps it.
    """
    lam = np.zeros(model.half_size)
    pairs = np.sort(model.edges.astype(np.int64), axis=1) @ np.array([model.n, 1])
    number = {key: e for e, key in enumerate(pairs.tolist())}

    def block(i: int, j: int) -> slice:
        """The part of λ at node i of the edge between i and j."""
        e = number[min(i, j) * model.n + max(i, j)]
        half = 2 * e + int(model.edges[e, 0] != i)
        return slice(int(model.half_offset[half]), int(model.half_offset[half + 1]))

    sizes = {v: int(model.num_labels[v]) for v in factor.variables}
    node, free = model.num_variables, model.num_visible
    for label in range(max(sizes.values())):
        own = [v for v in factor.variables if sizes[v] > label]
        if len(own) < 2:
            continue
        part = chains(AtMostOne(own, label), [sizes[v] for v in own], free)
        for scope, table in part.factors:
            gains = [
                _gain(part, member, d, label, last=k == len(scope) - 1) * prices[label]
                for k, (member, d) in enumerate(zip(scope, table.shape, strict=True))
            ]
            if len(scope) == 2:
                first, second = scope
                lam[block(first, second)] += gains[0]
                lam[block(second, first)] += gains[1] if second < part.free else -gains[1]
                continue
            for axis, (member, gain) in enumerate(zip(scope, gains, strict=True)):
                lam[block(member, node)] += gain
                shape = np.ones(table.ndim, dtype=int)
                shape[axis] = -1
                lam[block(node, member)] -= np.broadcast_to(
                    gain.reshape(shape), table.shape
                ).ravel()
            node += 1
        free += len(part.num_labels)
    return lam


def _gain(part: Chain, member: int, count: int, label: int, *, last: bool) -> Costs:
    """Which states of a member mean that it has the label: 1 there, -1 if the member passes it on.

    A member is a variable, or a chain variable: the class of a label, or the state of the chain,
    which its own table (in which it is last) hands to the next one.
    """
    out = np.zeros(count)
    own = member - part.free
    if own < 0:
        out[label] = 1.0
        return out
    scope, states = part.running[own]
    if len(scope) == 1:
        out[states[label]] = 1.0
    else:
        out[1] = -1.0 if last else 1.0
    return out

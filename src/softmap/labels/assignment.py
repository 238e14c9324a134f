"""Linear assignment: unary costs, and one `AllDifferent` over all variables.

The compiled loop finds labels and prices of labels. Any prices that are at most 0 prove a bound,
and they become λ along the chains of the model, which proves the same bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from softmap import core
from softmap.model import Network
from softmap.model.chains import SIZES, chains
from softmap.model.many import AllDifferent, AtMostOne
from softmap.model.potentials.base import Costs, Ints
from softmap.tuning import TUNING, Numbers

__all__ = ["Assignment", "AssignmentNumbers", "assign", "assignment_lam", "solve_assignment"]


@dataclass(frozen=True)
class AssignmentNumbers(Numbers):
    """Which assignment problems are solved outright."""

    entries: int = 50_000_000  # most costs of a problem; D31


@dataclass(frozen=True)
class Assignment:
    """Labels that differ from each other, and prices of labels that prove them.

    Attributes
    ----------
    labels : int64[n]
        Labels of smallest cost.
    prices : float64[d]
        Prices `v ≤ 0` of the labels; 0 for labels that no variable has.
    bound : float
        `Σ_i min_x (costs[i, x] - v[x]) + Σ_x v[x]`, rounded down: no labels cost less.
    """

    labels: Ints
    prices: Costs
    bound: float


def assign(
    costs: Costs,
    deadline: core.Deadline | None = None,
    numbers: AssignmentNumbers | None = None,
) -> Assignment | None:
    """Return the labels of smallest cost; None if there are none or the time is up.

    Parameters
    ----------
    costs : float64[n, d]
        Costs of the labels of each variable; `+inf` is forbidden.
    deadline : core.Deadline, optional
        When to stop.
    numbers : AssignmentNumbers, optional
        The numbers of the run.
    """
    if costs.size > (numbers or TUNING.of(AssignmentNumbers)).entries:
        return None
    labels, prices = np.empty(len(costs), dtype=np.int64), np.empty(costs.shape[1])
    if not core.linear_assignment(costs, labels, prices, deadline) or (labels < 0).any():
        return None
    least = np.nextafter((costs - prices).min(axis=1), -np.inf)
    bound = float(core.lower_sum(np.concatenate([least, prices])))
    return Assignment(labels, prices, bound)


def solve_assignment(
    model: Network,
    given: Network,
    deadline: core.Deadline | None = None,
    numbers: AssignmentNumbers | None = None,
) -> tuple[Ints, Costs] | None:
    """Return optimal labels and λ that proves them, if the model is a linear assignment.

    Parameters
    ----------
    model : Network
        The model to solve.
    given : Network
        The model that it was made from, which knows the `AllDifferent`.
    deadline : core.Deadline, optional
        When to stop.
    numbers : AssignmentNumbers, optional
        The numbers of the run.

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
    costs = np.full((len(scope), int(sizes.max())), np.inf)
    for row, i in zip(costs, scope.tolist(), strict=True):
        row[: model.num_labels[i]] = model.unary[model.node_slice(i)]
    found = assign(costs, deadline, numbers)
    if found is None:
        return None
    labels = np.zeros(len(scope), dtype=np.int64)
    labels[scope] = found.labels
    return model.lowered(labels), assignment_lam(model, factor, found.prices)


def _only_factor(model: Network, given: Network) -> AllDifferent | None:
    """The `AllDifferent` of a model that has no other cost than those of its visible variables."""
    if len(given.required) != 1 or not isinstance(given.required[0], AllDifferent):
        return None
    factor, (first, last) = given.required[0], given.required_chains[0]
    visible = len(model.visible_counts)
    whole = len(factor.variables) == visible
    if not whole or last - first != model.num_variables - visible or not last - first:
        return None
    sizes = model.num_labels[list(factor.variables)]
    if any(len(own) > 2 and _is_table(sizes[own]) for _, own in _labels_of_owners(sizes)):
        return None  # tables over the same variables are one table
    low, high = model.extremes()
    plain = not low[visible:].any() and not high[visible:].any()
    return factor if plain else None


def _is_table(sizes: Ints) -> bool:
    return math.prod(sizes.tolist()) <= SIZES.dense


def _labels_of_owners(sizes: Ints) -> list[tuple[Ints, Ints]]:
    """Labels, and the positions of the variables that have them; in the order of the labels."""
    ends = np.unique(sizes)
    starts = [0, *ends[:-1].tolist()]
    return [
        (np.arange(a, b), np.flatnonzero(sizes > a))
        for a, b in zip(starts, ends.tolist(), strict=True)
    ]


def assignment_lam(model: Network, factor: AllDifferent, prices: Costs) -> Costs:
    """Return λ that moves the price of each label from its variables to the end of its chain.

    Along a chain, the price is taken from the state "a variable has the label" at each step and
    given to the next one, so that only the last table keeps it.

    Parameters
    ----------
    model : Network
        The model, with chains of `factor` only.
    factor : AllDifferent
        The constraint.
    prices : float64[d]
        Prices of the labels.
    """
    lam = np.zeros(model.half_size)
    scope = np.array(factor.variables)
    sizes = model.num_labels[scope]
    halves = _Halves(model)
    free, node = len(model.visible_counts), model.num_variables
    for labels, own in _labels_of_owners(sizes):
        if len(own) < 2:
            continue
        # the chains of these labels differ in the numbers of their nodes only
        own_sizes = sizes[own].tolist()
        part = chains(AtMostOne(scope[own].tolist(), int(labels[0])), own_sizes, free)
        member, other, sign, stride = _steps(part.factors, free, node).T
        count, joint = len(part.num_labels), sum(len(s) > 2 for s, _ in part.factors)
        later = np.arange(len(labels))[:, None]
        state = np.where(member < free, labels[:, None], 1)
        member = member + later * np.where(member < free, 0, count)
        other = other + later * np.where(other < node, np.where(other < free, 0, count), joint)
        amount = sign * prices[labels][:, None]
        at_member, at_other = halves.between(member, other)
        lam[model.half_offset[at_member] + state] += amount
        shapes = np.stack([stride, model.num_labels[other[0]], model.num_labels[member[0]]])
        for step, size, d in np.unique(shapes[:, stride > 0], axis=1).T.tolist():
            same = np.flatnonzero((shapes.T == (step, size, d)).all(axis=1))
            has = np.arange(size) // step % d == state[:, same, None]
            begin = model.half_offset[at_other[:, same]]
            lam[begin[..., None] + np.arange(size)] -= has * amount[:, same, None]
        free, node = free + len(labels) * count, node + len(labels) * joint
    return lam


def _steps(factors: list[tuple[tuple[int, ...], Costs]], free: int, node: int) -> Ints:
    """Rows (member, other endpoint, sign, stride of the member in the other's states or 0).

    A table of three or more variables is node `node` and following. The sign is -1 at the table
    that defines a chain variable, which then passes the price on.
    """
    rows: list[tuple[int, int, int, int]] = []
    classes = {scope[-1] for scope, _ in factors if len(scope) == 2}
    for scope, table in factors:
        if len(scope) == 2:
            first, second = scope
            rows += [(first, second, 1, 0), (second, first, -1 if second >= free else 1, 0)]
            continue
        stride = table.size
        for k, (member, d) in enumerate(zip(scope, table.shape, strict=True)):
            stride //= d
            own = k == len(scope) - 1 and member >= free and member not in classes
            rows.append((member, node, -1 if own else 1, stride))
        node += 1
    return np.array(rows, dtype=np.int64)


class _Halves:
    """The half-edges between pairs of nodes.

    Parameters
    ----------
    model : Network
        The model.
    """

    def __init__(self, model: Network) -> None:
        self._n, self._first = model.n, model.edges[:, 0]
        keys = np.sort(model.edges.astype(np.int64), axis=1) @ np.array([model.n, 1])
        self._order = np.argsort(keys)
        self._keys = keys[self._order]

    def between(self, i: Ints, j: Ints) -> tuple[Ints, Ints]:
        """Return the half-edges at i and at j of the edges between i and j."""
        keys = np.minimum(i, j) * self._n + np.maximum(i, j)
        edge = self._order[np.searchsorted(self._keys, keys)]
        second = (self._first[edge] != i).astype(np.int64)
        return 2 * edge + second, 2 * edge + 1 - second

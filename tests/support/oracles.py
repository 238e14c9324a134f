"""Independent answers for small models: enumeration, tree dynamic programming, a plain dense LP.

Nothing here uses the modules under test beyond `Model`, its tables, and the states of an automaton.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from softmap.model import Model, checked_network, many
from softmap.relaxation.dual import edge_batches


def brute_force(model: Model) -> tuple[float, np.ndarray]:
    """The least energy over all labellings of the variables, and a labelling that has it."""
    ranges = [
        range(int(d))
        for d in checked_network(model).num_labels[: checked_network(model).num_variables]
    ]
    labellings = np.array(list(itertools.product(*ranges)))
    energies = energies_by_hand(model, checked_network(model).complete(labellings))
    best = int(np.argmin(energies))
    return float(energies[best]), labellings[best]


def energy_by_hand(model: Model, states: np.ndarray) -> float:
    """Sum of the entries of unary costs and tables at the states of all nodes."""
    return float(energies_by_hand(model, np.asarray(states)))


def energies_by_hand(model: Model, states: np.ndarray) -> np.ndarray:
    """The same for each row of states."""
    total = model.constant
    for i in range(checked_network(model).n):
        total = total + checked_network(model).unary_of(i)[states[..., i]]
    for e, (i, j) in enumerate(checked_network(model).edges.tolist()):
        total = total + checked_network(model).table(e)[states[..., i], states[..., j]]
    return np.asarray(total)


def tree_optimum(model: Model) -> float:
    """Least energy of a forest without parallel edges, leaves first."""
    costs = [checked_network(model).unary_of(i).copy() for i in range(model.n)]
    left = {e: tuple(int(v) for v in model.edges[e]) for e in range(model.m)}
    while left:
        degree = np.bincount(np.array(list(left.values())).ravel(), minlength=model.n)
        e, (i, j) = next((e, ends) for e, ends in left.items() if min(degree[list(ends)]) == 1)
        table = checked_network(model).table(e)
        if degree[j] == 1:
            costs[i] = costs[i] + (table + costs[j][None, :]).min(axis=1)
            costs[j] = np.zeros(1)
        else:
            costs[j] = costs[j] + (table + costs[i][:, None]).min(axis=0)
            costs[i] = np.zeros(1)
        del left[e]
    return float(model.constant + sum(c.min() for c in costs))


def dense_lp(model: Model) -> float:
    """The LP optimum over the local polytope by scipy, constraints written one by one."""
    nodes = int(checked_network(model).node_offset[-1])
    width = nodes + int(checked_network(model).edge_offset[-1])
    cost = np.concatenate(
        [checked_network(model).unary, *(t.ravel() for t in checked_network(model).tables())]
    )
    rows, rhs = [], []
    for i in range(checked_network(model).n):
        row = np.zeros(width)
        row[checked_network(model).node_slice(i)] = 1
        rows.append(row)
        rhs.append(1.0)
    for e, (i, j) in enumerate(checked_network(model).edges):
        d_i, d_j = (
            int(checked_network(model).num_labels[i]),
            int(checked_network(model).num_labels[j]),
        )
        place = (
            nodes
            + int(checked_network(model).edge_offset[e])
            + np.arange(d_i * d_j).reshape(d_i, d_j)
        )
        for x in range(d_i):
            rows.append(_marginal_row(width, place[x], checked_network(model).node_offset[i] + x))
            rhs.append(0.0)
        for y in range(d_j):
            rows.append(
                _marginal_row(width, place[:, y], checked_network(model).node_offset[j] + y)
            )
            rhs.append(0.0)
    upper = np.where(np.isfinite(cost), np.inf, 0.0)
    answer = linprog(
        np.where(np.isfinite(cost), cost, 0.0),
        A_eq=np.array(rows),
        b_eq=rhs,
        bounds=np.stack([np.zeros(width), upper], axis=1),
        method="highs",
    )
    if answer.status == 2:
        return np.inf
    assert answer.status == 0, answer.message
    return float(answer.fun + model.constant)


def _marginal_row(width: int, pairs: np.ndarray, state: int) -> np.ndarray:
    row = np.zeros(width)
    row[pairs] = 1
    row[state] -= 1
    return row


def naive_objective(model: Model, lam: np.ndarray, eta: float) -> float:
    """L(λ) from its definition, one logarithm of a sum at a time (moderate η only)."""
    total = 0.0
    unary = model.unary.copy()
    excluded = [np.isposinf(checked_network(model).unary_of(i)) for i in range(model.n)]
    for h, i in enumerate(model.edges.reshape(-1)):
        unary[checked_network(model).node_slice(i)] -= lam[checked_network(model).half_slice(h)]
    for i in range(model.n):
        total += np.log(np.exp(-eta * unary[checked_network(model).node_slice(i)]).sum()) / eta
    for e, (i, j) in enumerate(model.edges):
        ends = [lam[checked_network(model).half_slice(2 * e + side)] for side in (0, 1)]
        table = checked_network(model).table(e) + ends[0][:, None] + ends[1][None, :]
        table = np.where(excluded[i][:, None] | excluded[j][None, :], np.inf, table)
        total += np.log(np.exp(-eta * table).sum()) / eta
    return float(total - model.constant)


@dataclass(frozen=True)
class Violation:
    """The largest violation of each kind of constraint of the (slack) polytope."""

    normalisation: float
    marginalisation: float
    negativity: float
    forbidden: float

    @property
    def max(self) -> float:
        """The largest of all violations."""
        kinds = (self.normalisation, self.marginalisation, self.negativity, self.forbidden)
        return math.nan if any(map(math.isnan, kinds)) else max(kinds)


def violation(model, node_mu, edge_mu, nu=None) -> Violation:
    """Return the violations of L₂, or of the slack polytope L₂^ν (Definition "slack").

    The field `forbidden` is the largest mass on a forbidden state or pair.
    """
    nodes, pairs = np.asarray(node_mu, dtype=float), np.asarray(edge_mu, dtype=float)
    sums = np.add.reduceat(nodes, checked_network(model).node_offset[:-1])
    off = [float(np.abs(sums - 1).max()), 0.0]
    negative = [0.0, *(float(-part.min()) for part in (nodes, pairs) if part.size)]
    excluded = [float(np.abs(nodes[np.isposinf(checked_network(model).unary)]).max(initial=0.0))]
    for batch in edge_batches(checked_network(model)):
        mu = pairs[batch.entries]
        p, q = _targets(batch, nodes, nu)
        off[1] = np.fmax(off[1], np.abs(mu.sum(axis=2) - p).max())
        off[1] = np.fmax(off[1], np.abs(mu.sum(axis=1) - q).max())
        excluded.append(float(np.abs(mu[np.isposinf(batch.cost)]).max(initial=0.0)))
    if np.isnan(pairs).any():
        off[1] = math.nan
    return Violation(off[0], float(off[1]), max(negative), max(excluded))


def _targets(batch, nodes, nu):
    """μ_i + ν_{e,i} and μ_j + ν_{e,j} for the edges of a batch."""
    p, q = nodes[batch.row_states], nodes[batch.col_states]
    return (p, q) if nu is None else (p + nu[batch.rows], q + nu[batch.cols])


def dense(factor, sizes) -> np.ndarray:
    """The table of costs over all joint states of a factor over many variables."""
    known = dict(zip(factor.variables, sizes, strict=True))
    total = np.zeros(tuple(sizes))
    for automaton in factor.automata(sizes):
        shape = [1] * len(sizes)
        for v in automaton.variables:
            shape[factor.variables.index(v)] = known[v]
        total += many.joint(automaton).reshape(shape)
    return total

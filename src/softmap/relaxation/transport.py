"""Couplings of two distributions: of least cost, and near a given table.

All functions work on stacks: costs (k, d_i, d_j), marginals (k, d_i) and (k, d_j).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softmap import core


@dataclass(frozen=True)
class MassLimits:
    """Tolerances for masses (probabilities).

    Attributes
    ----------
    missing : float
        Largest mass that a coupling may lack: above rounding errors, below the guaranteed 1e-9.
    speck : float
        Largest mass on a forbidden state or pair that counts as a rounding error.
    loose : float
        Largest deviation of the sum of given marginals from 1.
    """

    missing: float = 1e-12
    speck: float = 1e-15
    loose: float = 1e-9


MASS = MassLimits()


Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def nearest_coupling(mu: Floats, p: Floats, q: Floats) -> Floats:
    """Return a coupling of `p` and `q` near `mu` by Algorithm 2 of Altschuler et al. (2017).

    Rows and columns are scaled down, then a rank-one table with the missing mass is added. The
    result lies within `2 ‖mu 1 - p‖₁ + 2 ‖muᵀ1 - q‖₁` of `mu`. Scale factors are at most one, and
    the rank-one table is divided by the larger of the two missing masses, so that tiny masses cause
    no large numbers.
    """
    rows = mu.sum(axis=2)
    plan = mu * _at_most_one(p, rows)[:, :, None]
    cols = plan.sum(axis=1)
    plan *= _at_most_one(q, cols)[:, None, :]
    row_rest = np.maximum(p - plan.sum(axis=2), 0.0)
    col_rest = np.maximum(q - plan.sum(axis=1), 0.0)
    missing = np.maximum(row_rest.sum(axis=1), col_rest.sum(axis=1))
    share = row_rest / np.where(missing > 0, missing, 1.0)[:, None]
    plan += share[:, :, None] * col_rest[:, None, :]
    return plan


def _at_most_one(target: Floats, have: Floats) -> Floats:
    return np.divide(target, have, out=np.ones_like(have), where=have > target)


def cheapest_coupling(cost: Floats, p: Floats, q: Floats) -> tuple[Floats, Floats]:
    """Return optimal transport plans; pairs of cost +inf are forbidden.

    Returns
    -------
    plan : float64[k, d_i, d_j]
        The plans.
    stranded : float64[k]
        Mass that no allowed pair can carry; if it exceeds `MASS.missing`, no coupling exists.
    """
    plan, stranded = np.zeros(cost.shape), np.zeros(len(cost))
    todo = np.ones(len(cost), dtype=bool)
    for applies, solve in ((_is_potts, _keep_the_diagonal), (_is_monge, _north_west)):
        chosen = np.flatnonzero(todo)
        chosen = chosen[applies(cost[chosen])]
        if chosen.size:
            plan[chosen] = solve(p[chosen], q[chosen])
            todo[chosen] = False
    chosen = np.flatnonzero(todo)
    chosen = chosen[_is_forced(cost[chosen])]
    if chosen.size:
        plan[chosen] = np.where(np.isfinite(cost[chosen]), p[chosen][:, :, None], 0.0)
        stranded[chosen] = np.abs(plan[chosen].sum(axis=1) - q[chosen]).sum(axis=1)
        todo[chosen] = False
    chosen = np.flatnonzero(todo)
    if chosen.size:
        plan[chosen], stranded[chosen] = _solve(cost[chosen], p[chosen], q[chosen])
    return plan, stranded


def _is_potts(cost: Floats) -> Bools:
    """Whether costs on the diagonal are equal, and costs off it are equal and not smaller."""
    count, d, d_j = cost.shape
    if d != d_j or d < 2:
        return np.zeros(count, dtype=bool)
    off = ~np.eye(d, dtype=bool)
    same, other = cost[:, 0, 0], cost[:, 0, 1]
    flat = (cost[:, ~off] == same[:, None]).all(axis=1) & (cost[:, off] == other[:, None]).all(
        axis=1
    )
    return np.asarray(flat & (same <= other) & np.isfinite(other))


def _keep_the_diagonal(p: Floats, q: Floats) -> Floats:
    """Optimal plan for Potts costs: min(p, q) stays on the diagonal.

    The remaining masses have disjoint supports, so that any coupling of them is optimal.
    """
    kept = np.minimum(p, q)
    p_rest, q_rest = p - kept, q - kept
    moved = np.maximum(p_rest.sum(axis=1), q_rest.sum(axis=1))
    share = p_rest / np.where(moved > 0, moved, 1.0)[:, None]
    plan = share[:, :, None] * q_rest[:, None, :]
    x = np.arange(p.shape[1])
    plan[:, x, x] += kept
    return plan


def _is_monge(cost: Floats) -> Bools:
    """C(x, y) + C(x+1, y+1) ≤ C(x, y+1) + C(x+1, y): linear, quadratic, submodular costs."""
    with np.errstate(invalid="ignore"):
        twist = cost[:, :-1, :-1] + cost[:, 1:, 1:] - cost[:, :-1, 1:] - cost[:, 1:, :-1]
    return np.asarray((twist <= 0).all(axis=(1, 2)) & np.isfinite(cost).all(axis=(1, 2)))


def _north_west(p: Floats, q: Floats) -> Floats:
    """The monotone coupling, optimal for Monge costs: overlaps of the two cumulative sums."""
    high_p, high_q = np.cumsum(p, axis=1), np.cumsum(q, axis=1)
    high_p[:, -1] = high_q[:, -1] = np.maximum(high_p[:, -1], high_q[:, -1])
    low_p = np.concatenate([np.zeros((len(p), 1)), high_p[:, :-1]], axis=1)
    low_q = np.concatenate([np.zeros((len(q), 1)), high_q[:, :-1]], axis=1)
    top = np.minimum(high_p[:, :, None], high_q[:, None, :])
    return np.maximum(top - np.maximum(low_p[:, :, None], low_q[:, None, :]), 0.0)


def _is_forced(cost: Floats) -> Bools:
    """Whether every row has exactly one allowed column, as in projections of auxiliary nodes."""
    return np.asarray((np.isfinite(cost).sum(axis=2) == 1).all(axis=1))


def _solve(cost: Floats, p: Floats, q: Floats) -> tuple[Floats, Floats]:
    plan, stranded = np.zeros(cost.shape), np.zeros(len(cost))
    core.transport_batch(
        np.ascontiguousarray(cost), np.ascontiguousarray(p), np.ascontiguousarray(q), plan, stranded
    )
    return plan, stranded

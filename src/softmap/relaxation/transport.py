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
    monge, forced = _is_monge(cost), _is_forced(cost)
    plan[monge] = _north_west(p[monge], q[monge])
    forced &= ~monge
    plan[forced] = np.where(np.isfinite(cost[forced]), p[forced][:, :, None], 0.0)
    stranded[forced] = np.abs(plan[forced].sum(axis=1) - q[forced]).sum(axis=1)
    rest = ~(monge | forced)
    plan[rest], stranded[rest] = _solve(cost[rest], p[rest], q[rest])
    return plan, stranded


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

"""Trials of transport, of sums over labellings, and of proof files of every family.

Each is a function of random numbers that says which promise was broken, as in kinds.py; None if
none was.
"""

from __future__ import annotations

import itertools
import math
import tempfile
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
from scipy.optimize import linprog

import softmap
from adversary import proof_families
from adversary.proofs import energies, random_model

__all__ = ["SUM_KINDS"]


def _transported(rng: np.random.Generator) -> str | None:
    """The bound is at most the optimum of the LP, and this at most the cost of the plan."""
    n, m = (int(k) for k in rng.integers(1, 7, 2))
    a, b = rng.dirichlet(np.full(n, 0.7)), rng.dirichlet(np.full(m, 0.7))
    if rng.random() < 0.3:
        a, b = np.full(n, 1.0 / n), np.full(m, 1.0 / m)
    costs = rng.normal(size=(n, m)) if rng.random() < 0.5 else rng.integers(0, 5, (n, m)) * 1.0
    costs = costs * 10.0 ** int(rng.integers(-6, 7)) + float(rng.choice([0.0, 0.0, 100.0]))
    rows = np.zeros((n + m, n * m))
    for i, j in itertools.product(range(n), range(m)):
        rows[i, i * m + j] = rows[n + j, i * m + j] = 1.0
    scale = float(np.abs(costs).max()) or 1.0  # the tolerances of the LP solver are absolute
    best = scale * float(linprog(costs.ravel() / scale, A_eq=rows, b_eq=np.append(a, b)).fun)
    gap = float(rng.choice([1e-1, 1e-3, 1e-6]))
    found = softmap.transport.sinkhorn(a, b, costs, gap=gap, time_limit=5.0)
    size = 1e-7 * scale
    if found.bound > best + size or found.cost < best - size:
        return f"bound {found.bound!r}, cost {found.cost!r}, optimum {best!r}"
    plan = np.asarray(found.plan())
    error = max(np.abs(plan.sum(axis=1) - a).max(), np.abs(plan.sum(axis=0) - b).max())
    if plan.min() < 0.0 or error > 1e-9:
        return f"a plan with other sums: {error!r}"
    if not math.isclose(float((plan * costs).sum()), found.cost, rel_tol=1e-9, abs_tol=size):
        return "the cost is not that of the plan"
    return None


def _summed(rng: np.random.Generator) -> str | None:
    """Bounds on log Z, and marginal MAP, against the sums over all labellings."""
    model = random_model(rng)
    costs = energies(model)
    eta = float(10.0 ** rng.uniform(-2, 1))
    limits = {"entries": int(rng.choice([1, 50, 1 << 20])), "table": int(rng.choice([4, 4096]))}
    try:
        low, high = softmap.log_partition_bounds(model, eta, rounds=5, **limits)
    except softmap.InfeasibleModel:
        return "a feasible model called infeasible" if costs else None
    if not costs:
        return None if low == -math.inf else "a sum over no labelling"
    true = _log_sum(list(costs.values()), eta)
    slack = 1e-9 * (1.0 + eta * max(abs(float(cost)) for cost in costs.values()))
    if low > true + slack or high < true - slack:
        return f"log Z is {true!r}, not within {low!r} and {high!r}"
    return _marginal_map(rng, model, costs)


def _log_sum(costs: list[Fraction], eta: float) -> float:
    """The logarithm of the sum of `exp(-η cost)`, up to rounding errors of η times a cost."""
    least = float(min(costs))
    rest = math.log(math.fsum(math.exp(-eta * (float(cost) - least)) for cost in costs))
    return rest - eta * least


def _marginal_map(
    rng: np.random.Generator, model: softmap.Model, costs: dict[tuple[int, ...], Fraction]
) -> str | None:
    n = model.network.num_visible
    hidden = sorted(rng.permutation(n)[: int(rng.integers(0, n))].tolist())
    kept = [i for i in range(n) if i not in hidden]
    found = softmap.marginal_map(
        model, sum_over=hidden, table=int(rng.choice([2, 16, 256])),
        entries=int(rng.choice([1, 100, 1 << 20])),
    )  # fmt: skip
    groups: dict[tuple[int, ...], list[Fraction]] = {}
    for labels, cost in costs.items():
        groups.setdefault(tuple(labels[i] for i in kept), []).append(cost)
    energy = {key: -_log_sum(group, 1.0) for key, group in groups.items()}
    least = min(energy.values())
    slack = 1e-9 * (1.0 + max(abs(float(cost)) for cost in costs.values()))
    if found.bound > least + slack:
        return f"marginal MAP: the bound {found.bound!r} is above {least!r}"
    if found.found:
        own = energy.get(tuple(found.labels.tolist()), math.inf)
        if found.energy < own - slack:
            return f"marginal MAP: the labels have {own!r}, not {found.energy!r}"
    return None


def _proof_files(rng: np.random.Generator) -> str | None:
    """A proof of any family, honest and altered."""
    seed = int(rng.integers(1 << 40))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", softmap.ProofWarning)
        _, _, problems = proof_families.trial(seed, Path(folder))
    return problems[0] if problems else None


SUM_KINDS: dict[str, Callable[[np.random.Generator], str | None]] = {
    "transport": _transported, "sums": _summed, "proof files": _proof_files,
}  # fmt: skip

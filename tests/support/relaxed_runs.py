"""Runs of the relaxation alone, and what every result promises."""

from __future__ import annotations

import numpy as np
import pytest

import softmap
from softmap import Status
from softmap.model import Model, checked_network
from softmap.relaxation import polytope
from softmap.relaxation.bounds import dual_bound
from support.methods import UPDATES
from support.oracles import violation

TINY = 1e-7
PROVED = (Status.GAP, Status.OPTIMAL)
NEVER = {"lp_gap": 0.0, "gap": 0.0}


def solve(model, **options):
    """The relaxation alone; what follows it has tests of its own."""
    return softmap.paper.solve(model, **{"goal": "lp"} | options)


def iterate(model, **options):
    return softmap.paper.snapshots(model, **{"goal": "lp"} | options)


def options_of(method: str, **more) -> dict:
    """What a method needs to be told; threads=1 for speed."""
    return {"method": method, "threads": 1, **({"eta": 30.0} if method in UPDATES else {}), **more}


def promised(result, model: Model, relaxed: float | None = None, best: float | None = None):
    """The table of promises; `relaxed` and `best` are the LP and the MAP optimum where known."""
    assert result.energy == model.energy(result.labels)
    assert result.bound == pytest.approx(
        dual_bound(checked_network(model), result.lam), rel=1e-12, abs=1e-12
    )
    assert result.gap == max(0.0, result.energy - result.bound)
    assert result.lp_gap == max(0.0, result.primal - result.bound)
    assert result.bound <= result.primal + TINY
    assert result.primal <= result.energy
    if relaxed is not None:
        assert result.bound <= relaxed + TINY
        assert relaxed <= result.primal + TINY
    if best is not None:
        assert best <= result.energy + TINY
    point = result.node_marginals, result.edge_marginals
    assert violation(model, *point).max <= 1e-9
    if np.isfinite(result.primal):
        assert polytope.cost(checked_network(model), *point) == pytest.approx(
            result.primal, rel=1e-9, abs=1e-9
        )
    columns = result.trace.columns()
    assert (np.diff(columns["bound"]) >= 0).all()
    for name in ("primal", "energy"):
        assert (columns[name][1:] <= columns[name][:-1]).all()
    for name in ("work", "sweeps", "seconds"):
        assert (np.diff(columns[name]) >= 0).all()
    last = result.trace[-1]
    assert (last.bound, last.primal, last.energy) == (result.bound, result.primal, result.energy)
    return result


def same_result(a, b):
    """Equal to the bit, but for the clock."""
    assert (a.bound, a.primal, a.energy, a.eta) == (b.bound, b.primal, b.energy, b.eta)
    assert (a.work, a.sweeps, a.status) == (b.work, b.sweeps, b.status)
    for name in ("labels", "lam", "messages", "node_marginals", "edge_marginals"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    left, right = a.trace.columns(), b.trace.columns()
    for name in left:
        if name != "seconds":
            np.testing.assert_array_equal(left[name], right[name])

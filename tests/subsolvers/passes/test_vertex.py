"""Small LPs that passes are slow on: they are handed to an exact solver."""

from __future__ import annotations

import numpy as np
import pytest

import softmap
from softmap import Status
from softmap.relaxation import polytope
from softmap.subsolvers.passes.pass_numbers import PassNumbers
from softmap.tuning import Tuning
from support.oracles import violation
from support.relaxed_runs import solve

SOON = Tuning(PassNumbers(vertex_after=20))


def test_a_small_lp_that_stays_open_is_solved_exactly():
    model = softmap.generators.erdos_renyi(60, 3, seed=2)
    result = solve(model, lp_gap=1e-9, gap=0.0, threads=1, tuning=SOON)
    assert result.status is Status.LP_GAP
    assert result.sweeps == 20
    assert result.bound == pytest.approx(softmap.lp.solve(model).value, rel=1e-8)
    edges = result.edge_marginals
    assert polytope.cost(model.network, result.node_marginals, edges) == pytest.approx(
        result.primal, rel=1e-12
    )
    assert violation(model, result.node_marginals, edges).max < 1e-9


def test_a_large_lp_is_not_handed_over():
    few = Tuning(PassNumbers(vertex_after=20, vertex_entries=100))
    model = softmap.generators.erdos_renyi(60, 3, seed=2)
    result = softmap.solve(
        model, lp_gap=1e-9, gap=0.0, threads=1, tuning=few, max_work=2 * model.m * 40
    )
    assert result.status is Status.WORK_LIMIT
    assert result.lp_gap > 1e-6


def test_hard_constraints_survive_the_hand_over():
    model = softmap.generators.ragged_constrained(40, seed=8)
    options = {"lp_gap": 1e-12, "gap": 0.0, "threads": 1, "max_work": 2 * model.m * 60}
    result = softmap.solve(model, goal="lp", tuning=SOON, **options)
    without = softmap.solve(model, goal="lp", **options)
    value = softmap.lp.solve(model).value
    assert value == pytest.approx(result.bound, rel=1e-9)  # passes alone are not there yet
    assert result.bound > without.bound
    assert result.bound <= value + 1e-6 * abs(value)
    assert result.primal >= value - 1e-6 * abs(value)


def test_a_run_resumed_across_the_hand_over_is_the_same(tmp_path):
    model = softmap.generators.erdos_renyi(60, 3, seed=2)
    straight = softmap.solve(model, lp_gap=1e-9, gap=0.0, threads=1, tuning=SOON)
    path = tmp_path / "run.ckpt"
    softmap.solve(
        model, lp_gap=1e-9, gap=0.0, threads=1, max_work=2 * model.m * 12, checkpoint=path,
        tuning=SOON,
    )  # fmt: skip
    whole = softmap.resume(path, model, lp_gap=1e-9, gap=0.0, tuning=SOON)
    assert (whole.bound, whole.primal) == (straight.bound, straight.primal)
    np.testing.assert_array_equal(whole.node_marginals, straight.node_marginals)

"""LPs on which passes are slow: they are solved by the interior-point method, once."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

import softmap
from softmap import Status, core
from softmap.relaxation import polytope
from softmap.subsolvers.passes import interior
from softmap.subsolvers.passes.pass_numbers import PassNumbers
from softmap.tuning import Tuning
from support.oracles import violation
from support.relaxed_runs import promised, solve

MODEL = softmap.generators.erdos_renyi(100, 3, seed=0)
NARROW = {"lp_gap": 2e-7, "gap": 0.0, "threads": 1}


TIED = softmap.Model(
    MODEL.unary.reshape(100, 3),
    None,
    [(MODEL.edges, *MODEL.potentials), ([(0, 1)], softmap.Projection([[1, 2, 0]], [3]))],
)


@pytest.fixture(scope="module")
def value():
    return softmap.lp.solve(MODEL).value


def test_it_closes_a_gap_in_fewer_passes(value):
    result = solve(MODEL, **NARROW)
    none = Tuning(PassNumbers(interior_entries=0, vertex_entries=0))
    without = solve(MODEL, **NARROW, tuning=none)
    assert promised(result, MODEL, value).status is Status.LP_GAP
    assert result.sweeps < 0.5 * without.sweeps
    assert result.bound == pytest.approx(value, rel=1e-6)
    assert result.primal == pytest.approx(value, rel=1e-6)
    nodes, edges = result.node_marginals, result.edge_marginals
    assert polytope.cost(MODEL.network, nodes, edges) == pytest.approx(result.primal, rel=1e-12)
    assert violation(MODEL, nodes, edges).max < 1e-9


def test_it_is_called_once_if_the_gap_stays_open():
    with (
        patch.object(interior, "ACCURATE", 0.0),
        patch.object(interior, "interior_point", wraps=interior.interior_point) as called,
    ):
        result = solve(MODEL, lp_gap=1e-15, gap=0.0, threads=1, max_work=2 * MODEL.m * 2_000)
    assert called.call_count == 1
    assert result.status is not Status.LP_GAP


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (softmap.generators.ragged_constrained(40, seed=8), {}),  # hard constraints
        (TIED, {}),  # a projection between variables is one, too
        (MODEL, {"lp_gap": 1e-9}),  # beyond its accuracy
        (MODEL, {"tuning": Tuning(PassNumbers(interior_entries=100, vertex_entries=100))}),
        (MODEL, {"method": "trws"}),
    ],
)
def test_it_leaves_other_runs_alone(model, options):
    with patch.object(core, "InteriorPoint") as called:
        solve(model, **NARROW | {"max_work": 2 * model.m * 3_000} | options)
    assert not called.called


def test_a_run_resumed_across_it_is_the_same(tmp_path):
    straight = solve(MODEL, **NARROW)
    path = tmp_path / "run.ckpt"
    solve(MODEL, **NARROW, max_work=2 * MODEL.m * 400, checkpoint=path)
    whole = softmap.resume(path, MODEL, lp_gap=2e-7, gap=0.0)
    assert (whole.bound, whole.primal) == (straight.bound, straight.primal)
    np.testing.assert_array_equal(whole.node_marginals, straight.node_marginals)


class Late:
    """The method, stopped after four steps."""

    def __init__(self, method):
        self.method, self.steps, self.work = method, 0, method.work
        self.lam, self.nodes = method.lam, method.nodes

    @property
    def gap(self):
        return self.method.gap

    def step(self, deadline):
        self.steps += 1
        if self.steps > 4:
            raise core.OutOfTime
        return self.method.step(deadline)


def test_a_deadline_in_the_middle_leaves_a_result(value):
    late = Late(interior.interior_point(MODEL.network))
    with patch.object(interior, "interior_point", return_value=late):
        result = solve(MODEL, **NARROW, max_work=2 * MODEL.m * 2_000)
    assert late.steps == 5
    assert promised(result, MODEL, value).status is Status.WORK_LIMIT

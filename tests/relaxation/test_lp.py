"""The LP through HiGHS against scipy's dense one, CVXPY, and its own dual."""

import numpy as np
import pytest
from hypothesis import given

import softmap
from softmap import lp
from softmap.errors import InfeasibleModel, OptionError
from softmap.relaxation import polytope
from softmap.relaxation.bounds import dual_bound
from softmap.relaxation.lp import program_of
from support.oracles import brute_force, dense_lp, tree_optimum, violation
from support.strategies import models


@given(models())
def test_value_marginals_and_multipliers(model):
    found = lp.solve(model)
    assert found.status == "Optimal"
    assert found.value == pytest.approx(dense_lp(model), abs=1e-7)
    assert violation(model, found.node_marginals, found.edge_marginals).max <= 1e-6
    cost = polytope.cost(model.network, found.node_marginals, found.edge_marginals)
    assert cost == pytest.approx(found.value, abs=1e-6)
    assert dual_bound(model.network, found.lam) == pytest.approx(found.value, abs=1e-6)
    assert found.value <= brute_force(model)[0] + 1e-7


@pytest.mark.parametrize("method", ["auto", "simplex", "ipm", "pdlp"])
def test_methods_agree(method):
    model = softmap.generators.erdos_renyi(12, seed=4)
    found = lp.solve(model, method, tolerance=1e-7 if method == "pdlp" else None)
    assert found.value == pytest.approx(dense_lp(model), abs=1e-4)
    assert found.seconds > 0
    assert found.setup_seconds > 0


@pytest.mark.parametrize("seed", range(3))
def test_against_cvxpy(seed):
    cvxpy = pytest.importorskip("cvxpy")
    model = softmap.generators.erdos_renyi(9, seed=seed)
    nodes = [cvxpy.Variable(int(d), nonneg=True) for d in model.num_labels]
    cost, rules = model.constant, [cvxpy.sum(mu) == 1 for mu in nodes]
    for i, mu in enumerate(nodes):
        cost = cost + model.network.unary_of(i) @ mu
    for e, (i, j) in enumerate(model.edges):
        table = model.network.table(e)
        pair = cvxpy.Variable(table.shape, nonneg=True)
        cost = cost + cvxpy.sum(cvxpy.multiply(table, pair))
        rules += [cvxpy.sum(pair, axis=1) == nodes[i], cvxpy.sum(pair, axis=0) == nodes[j]]
    problem = cvxpy.Problem(cvxpy.Minimize(cost), rules)
    problem.solve(solver=cvxpy.CLARABEL)
    assert lp.solve(model).value == pytest.approx(problem.value, abs=1e-6)


def test_only_allowed_pairs_get_columns():
    table = np.arange(24.0).reshape(2, 3, 4)
    model = softmap.Model.from_factors([2, 3, 4], [((0, 1, 2), table)])
    program = program_of(model.network)
    assert program.matrix.shape[1] == (2 + 3 + 4 + 24) + 3 * 24
    assert lp.solve(model).value == 0.0


def test_trees_are_integral():
    model = softmap.generators.random_tree(40, 3, seed=2)
    found = lp.solve(model, "simplex")
    assert found.value == pytest.approx(tree_optimum(model), abs=1e-7)


def test_no_edges_and_constant():
    model = softmap.Model([[2.0, 1.0]], np.zeros((0, 2), int), softmap.Potts([]), constant=5.0)
    assert lp.solve(model).value == 6.0


def test_a_time_limit_is_kept_and_reported():
    model = softmap.generators.random_grid(30, 30, 6, seed=0)
    found = lp.solve(model, "simplex", time_limit=1e-3)
    assert found.status == "Time limit reached"
    assert found.seconds < 5


def test_bad_options():
    model = softmap.generators.random_tree(3)
    with pytest.raises(OptionError, match="method must be one of auto, simplex"):
        lp.solve(model, "magic")
    with pytest.raises(OptionError, match=r"tolerance=.*: expected a positive number"):
        lp.solve(model, tolerance=-1.0)
    with pytest.raises(OptionError, match=r"time_limit=.*: expected a number that is not negative"):
        lp.solve(model, time_limit=-1.0)
    clash = softmap.Model([[0.0, np.inf], [np.inf, 0.0]], [[0, 1]], softmap.Potts([np.inf]))
    with pytest.raises(InfeasibleModel):
        lp.solve(clash)


@pytest.mark.parametrize("exponent", [-1000, -100, -40, 0, 60])
def test_the_value_does_not_depend_on_the_unit_of_costs(exponent):
    model = softmap.generators.erdos_renyi(8, 3, seed=4)
    usual = softmap.lp.solve(model)
    tables = softmap.Tables(
        np.ldexp(np.array([model.network.table(e) for e in range(model.m)]), exponent)
    )
    tiny = softmap.Model(np.ldexp(model.unary.reshape(8, 3), exponent), model.edges, tables)
    found = softmap.lp.solve(tiny)
    assert np.ldexp(found.value, -exponent) == pytest.approx(usual.value, rel=1e-9)
    bound = softmap.relaxation.bounds.dual_bound(tiny.network, found.lam)
    assert np.ldexp(bound, -exponent) == pytest.approx(usual.value, rel=1e-6)

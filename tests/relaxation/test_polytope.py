"""Membership, `Proj` with its two lemmas, exact transport, and the lift of auxiliary variables."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import softmap
from softmap import core, lp
from softmap.errors import OptionError
from softmap.relaxation import polytope
from softmap.relaxation.dual import SmoothedDual, half_states
from softmap.relaxation.polytope import integral, lift, proj, transport
from softmap.relaxation.transport import cheapest_coupling, nearest_coupling
from support.families import PAIRWISE
from support.oracles import violation
from support.strategies import etas, models, random_lam, seeds

finite = models(families=(*PAIRWISE, "mix"), hard=False)


def halves(model, nu):
    """‖ν_{e,i}‖₁ of each half-edge."""
    return np.add.reduceat(np.abs(nu), model.network.half_offset[:-1]) if len(nu) else np.zeros(0)


@given(finite, seeds, etas, st.sampled_from([1.0, 1e3, 1e6]))
def test_projection_is_feasible_and_near(model, seed, eta, scale):
    """Lemma "proj", at every η, whatever underflows."""
    dual = SmoothedDual(model, eta)
    lam = random_lam(model, seed, scale)
    nodes, pairs = dual.node_marginals(lam), dual.edge_marginals(lam)
    found = proj(model.network, nodes, pairs)
    assert violation(model, nodes, found).max <= 1e-12
    moved = np.abs(found - pairs).sum()
    assert moved <= 2 * halves(model, dual.slack(lam)).sum() + 1e-12


@given(finite, seeds, st.sampled_from([0.3, 1.0, 10.0, 1e4]))
def test_points_of_the_polytope_are_near_the_slack_polytope(model, seed, eta):
    """Lemma "proj-slack", with the point its proof constructs."""
    dual = SmoothedDual(model, eta)
    lam = random_lam(model, seed, 0.3)
    nu = dual.slack(lam)
    norms = halves(model, nu)
    delta, d = norms.max(initial=0.0), int(model.num_labels.max())
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, model.num_labels)
    nodes, pairs = integral(model.network, labels)
    if delta <= 1 / (2 * d):
        mix = np.repeat(np.minimum(1.0, model.num_labels * delta), model.num_labels)
        moved = (1 - mix) * nodes + mix / np.repeat(model.num_labels, model.num_labels)
    else:
        moved = dual.node_marginals(lam)
    found = proj(model.network, moved, pairs, nu)
    assert violation(model, moved, found, nu).max <= 1e-12
    distance = np.abs(moved - nodes).sum() + np.abs(found - pairs).sum()
    assert distance <= 16 * (model.m + model.n) * d * delta + 2 * norms.sum() + 1e-9


@given(models(), seeds, etas)
def test_marginals_lie_in_their_own_slack_polytope(model, seed, eta):
    dual = SmoothedDual(model, eta)
    lam = random_lam(model, seed)
    nodes, pairs = dual.node_marginals(lam), dual.edge_marginals(lam)
    assert violation(dual.model, nodes, pairs, dual.slack(lam)).max <= 1e-12
    gap = np.abs(dual.slack(lam)).max(initial=0.0)
    assert violation(dual.model, nodes, pairs).marginalisation == pytest.approx(gap, abs=1e-12)


@given(models(hard=True), seeds, etas)
def test_slack_polytopes_with_forbidden_pairs(model, seed, eta):
    """μ^λ shows that L₂^ν is not empty, so a point can be found from any starting table."""
    dual = SmoothedDual(model, eta)
    lam = random_lam(model, seed)
    nodes, nu = dual.node_marginals(lam), dual.slack(lam)
    scattered = np.random.default_rng(seed).random(int(model.network.edge_offset[-1]))
    for found in (proj(dual.model, nodes, scattered, nu), transport(dual.model, nodes, nu)):
        assert violation(dual.model, nodes, found, nu).max <= 1e-9


@given(finite, seeds, etas)
def test_transport_is_never_worse_than_projection(model, seed, eta):
    dual = SmoothedDual(model, eta)
    lam = random_lam(model, seed)
    nodes = dual.node_marginals(lam)
    near, best = (
        proj(model.network, nodes, dual.edge_marginals(lam)),
        transport(model.network, nodes),
    )
    assert violation(model, nodes, best).max <= 1e-12
    assert (
        polytope.cost(model.network, nodes, best)
        <= polytope.cost(model.network, nodes, near) + 1e-9
    )


@given(models(hard=True), seeds)
def test_lp_marginals_are_kept_and_spare_forbidden_pairs(model, seed):
    best = lp.solve(model, "simplex")
    sums = np.add.reduceat(np.maximum(best.node_marginals, 0), model.network.node_offset[:-1])
    nodes = lift(
        model.network,
        np.maximum(best.node_marginals, 0) / np.repeat(sums, model.network.num_labels),
    )
    pairs = transport(model.network, nodes)
    assert violation(model, nodes, pairs).max <= 1e-9
    assert polytope.cost(model.network, nodes, pairs) == pytest.approx(best.value, abs=1e-6)
    scattered = np.random.default_rng(seed).random(len(pairs))
    assert violation(model, nodes, proj(model.network, nodes, scattered)).max <= 1e-9


@given(models(), seeds)
def test_labellings_are_vertices(model, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, model.network.num_labels[: model.network.num_variables])
    nodes, pairs = integral(model.network, labels)
    energy = model.energy(labels)
    assert polytope.cost(model.network, nodes, pairs) == pytest.approx(energy)
    if np.isfinite(energy):
        assert violation(model, nodes, pairs).max == 0
        assert np.array_equal(lift(model.network, nodes), nodes)
    else:
        assert violation(model, nodes, pairs).forbidden == 1


@given(models(families=("factors",), hard=False), seeds, etas)
def test_lift_makes_auxiliary_variables_agree_with_their_members(model, seed, eta):
    lam = random_lam(model, seed)
    dual = SmoothedDual(model, eta)
    nodes = dual.node_marginals(lam)
    lifted = lift(model.network, nodes)
    visible = int(model.network.node_offset[model.network.num_variables])
    assert np.array_equal(lifted[:visible], nodes[:visible])
    pairs = proj(model.network, lifted, dual.edge_marginals(lam))
    assert violation(model, lifted, pairs).max <= 1e-11


@st.composite
def transports(draw):
    rows, cols = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(seeds))
    kind = draw(st.sampled_from(["free", "whole", "hard", "monge", "potts", "tiny"]))
    cost = rng.normal(size=(rows, cols))
    if kind == "whole":
        cost = np.round(cost)
    if kind == "hard":
        cost[rng.random((rows, cols)) < 0.3] = np.inf
    if kind == "monge":
        cost = draw(st.sampled_from([-1, 1])) * (np.arange(rows)[:, None] - np.arange(cols)) ** 2.0
    if kind == "potts":
        cost = np.where(np.eye(rows, cols, dtype=bool), 0.0, rng.normal())
    p, q = rng.dirichlet(np.full(rows, 0.5)), rng.dirichlet(np.full(cols, 0.5))
    if kind == "tiny":
        p, q = (w / w.sum() for w in (p**40 + 1e-300, q**40 + 1e-300))
    return cost, p, q


@given(transports())
def test_exact_transport_against_a_plain_lp(problem):
    cost, p, q = problem
    (plan,), (stranded,) = cheapest_coupling(cost[None], p[None], q[None])
    rows, cols = cost.shape
    sums = [np.kron(np.eye(rows), np.ones(cols)), np.kron(np.ones(rows), np.eye(cols))]
    allowed = np.isfinite(cost).ravel()
    answer = linprog(
        np.where(allowed, cost.ravel(), 0.0),
        A_eq=np.concatenate(sums),
        b_eq=np.concatenate([p, q]),
        bounds=[(0, None if a else 0) for a in allowed],
    )
    if answer.status == 2:
        assert stranded > 1e-12
        return
    assert stranded <= 1e-12
    assert (plan >= 0).all()
    assert np.abs(plan.sum(axis=1) - p).max() <= 1e-14
    assert np.abs(plan.sum(axis=0) - q).max() <= 1e-14
    assert not plan[np.isposinf(cost)].any()
    # HiGHS is exact to 1e-7 in the masses, we to 1e-15
    assert np.where(plan > 0, cost, 0.0).ravel() @ plan.ravel() <= answer.fun + 1e-6


@given(transports(), seeds)
def test_nearest_coupling_moves_no_more_than_twice_the_slack(problem, seed):
    _, p, q = problem
    rng = np.random.default_rng(seed)
    mu = rng.random((len(p), len(q))) ** 8
    mu /= mu.sum()
    (plan,) = nearest_coupling(mu[None], p[None], q[None])
    slack = np.abs(mu.sum(axis=1) - p).sum() + np.abs(mu.sum(axis=0) - q).sum()
    assert np.abs(plan.sum(axis=1) - p).max() <= 1e-15
    assert np.abs(plan.sum(axis=0) - q).max() <= 1e-15
    assert np.abs(plan - mu).sum() <= 2 * slack + 1e-14


def test_projection_avoids_a_forbidden_pair_that_the_correction_would_use():
    table = np.array([[0.0, 1.0], [np.inf, 0.0]])
    model = softmap.Model(np.zeros((2, 2)), [[0, 1]], [table])
    nodes = np.array([0.5, 0.5, 0.4, 0.6])
    pairs = np.array([0.1, 0.0, 0.0, 0.9])
    found = proj(model.network, nodes, pairs)
    assert np.allclose(found, [0.4, 0.1, 0.0, 0.5])


def test_projection_says_where_no_coupling_exists():
    table = np.array([[0.0, np.inf], [np.inf, 0.0]])
    model = softmap.Model(np.zeros((2, 2)), [[0, 1]], [table])
    nodes = np.array([0.5, 0.5, 0.4, 0.6])
    with pytest.raises(OptionError, match="edge 0: no coupling of the marginals of nodes 0 and 1"):
        proj(model.network, nodes, np.full(4, 0.25))
    with pytest.raises(OptionError, match="edge 0: no coupling"):
        transport(model.network, nodes)


def test_violations_are_told_apart():
    model = softmap.Model(np.zeros((2, 2)), [[0, 1]], softmap.Potts([np.inf]))
    nodes, pairs = np.array([0.5, 0.6, 0.5, 0.5]), np.array([0.7, 0.1, -0.2, 0.4])
    seen = violation(model, nodes, pairs)
    assert seen.normalisation == pytest.approx(0.1)
    assert seen.marginalisation == pytest.approx(0.4)
    assert seen.negativity == pytest.approx(0.2)
    assert seen.forbidden == pytest.approx(0.2)
    assert seen.max == pytest.approx(0.4)
    assert np.isnan(violation(model, nodes, pairs * np.nan).max)


def test_bad_marginals_are_refused():
    model = softmap.Model(np.zeros((2, 2)), [[0, 1]], softmap.Potts([1.0]))
    with pytest.raises(OptionError, match="node marginals must be a flat array of 4 numbers"):
        transport(model.network, np.ones(3))
    with pytest.raises(OptionError, match="edge marginals must be a flat array of 4"):
        proj(model.network, np.full(4, 0.5), np.ones(5))
    with pytest.raises(OptionError, match=r"edge 0: .*are not distributions"):
        proj(model.network, np.array([0.5, 0.6, 0.5, 0.5]), np.full(4, 0.25))
    with pytest.raises(OptionError, match="are not distributions"):
        proj(model.network, np.full(4, 0.5), np.full(4, 0.25), nu=np.array([0.9, -0.9, 0.0, 0.0]))


def test_half_states_point_at_the_nodes_labels():
    model = softmap.generators.ragged_constrained(8, seed=1)
    where = half_states(model.network)
    for h, i in enumerate(model.edges.reshape(-1)):
        block = model.network.node_slice(int(i))
        assert where[model.network.half_slice(h)].tolist() == list(range(block.start, block.stop))


@pytest.mark.parametrize("shape", [(2, 2), (2, 5), (3, 3), (4, 6)])
def test_exchanges_keep_the_marginals_and_lower_the_cost(shape):
    rng = np.random.default_rng(sum(shape))
    costs = rng.normal(size=(50, *shape))
    p, q = rng.dirichlet(np.ones(shape[0]), 50), rng.dirichlet(np.ones(shape[1]), 50)
    product = p[:, :, None] * q[:, None, :]
    plan = product.copy()
    core.exchange_batch(costs, plan)
    assert plan.min() >= 0.0
    np.testing.assert_allclose(plan.sum(axis=2), p, atol=1e-14)
    np.testing.assert_allclose(plan.sum(axis=1), q, atol=1e-14)
    assert ((plan * costs).sum(axis=(1, 2)) <= (product * costs).sum(axis=(1, 2)) + 1e-14).all()
    if shape == (2, 2):
        best, _ = cheapest_coupling(costs, p, q)
        np.testing.assert_allclose(plan, best, atol=1e-14)

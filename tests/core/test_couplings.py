"""Couplings are couplings, cost what is said, and are made like their plain numpy twin."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.optimize import linprog

import softmap
from softmap import core
from softmap.model.layout import layout
from softmap.relaxation.dual import reduced_unary
from softmap.relaxation.polytope import group_in_closed_form
from softmap.relaxation.transport import cheapest_coupling, nearest_coupling
from support.families import FAMILIES, PAIRWISE
from support.proof_models import Case, Sizes, case


def native(model):
    return layout(model.network)


def marginals(model, seed: int, sharp: bool = False) -> np.ndarray:
    """Random node marginals; no mass on forbidden labels, and on one in ten others."""
    rng = np.random.default_rng(seed)
    mass = rng.random(model.unary.size) ** (9 if sharp else 1) * (
        rng.random(model.unary.size) > 0.1
    )
    mass[np.isinf(model.unary)] = 0.0
    starts = model.network.node_offset[:-1]
    for i in np.flatnonzero(np.add.reduceat(mass, starts) == 0.0):
        mass[starts[i] + np.argmin(model.network.unary_of(i))] = 1.0
    return mass / np.repeat(np.add.reduceat(mass, starts), model.num_labels)


@cache
def examples(family: str, sizes: Sizes, most: int, sharp: bool) -> list[tuple[Case, np.ndarray]]:
    """Models with node marginals, of which every second may be sharp; made once for all η."""
    found = [case(seed, sizes, (family,), most=most) for seed in range(25)]
    return [
        (one, marginals(one.model, seed, sharp=sharp and seed % 2 == 0))
        for seed, one in enumerate(found)
    ]


class Answer:
    """What `couple` says of some edges."""

    def __init__(self, one: Case, nodes, eta, edges=None, threads=1):
        model = one.model
        chosen = np.arange(model.m) if edges is None else edges
        shapes = [tuple(model.num_labels[model.edges[e]]) for e in chosen]
        sizes = [r * c for r, c in shapes]
        flat = np.full(sum(sizes), np.nan)
        self.cost, self.entropy, self.slack = np.full((3, len(chosen)), np.nan)
        out = core.CouplingArrays(self.cost, self.entropy, self.slack, flat)
        core.couple(native(model), one.lam, eta, nodes, edges, out, threads)
        parts = np.split(flat, np.cumsum(sizes)[:-1])
        self.plans = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def ends(model, nodes, e):
    i, j = model.edges[e]
    return nodes[model.network.node_slice(i)], nodes[model.network.node_slice(j)]


def price(table, plan):
    return float((np.where(plan > 0, table, 0.0) * plan).sum())


def check_point(model, nodes, answer, edges=None):
    """Every plan of finite price couples its ends, avoids forbidden pairs and has that price."""
    finite, prices = np.flatnonzero(answer.cost != np.inf), []
    for k in finite:
        e = k if edges is None else edges[k]
        table, plan, (p, q) = model.network.table(e), answer.plans[k], ends(model, nodes, e)
        assert plan.min() >= 0.0
        assert np.abs(plan.sum(axis=1) - p).max() <= 3e-12
        assert np.abs(plan.sum(axis=0) - q).max() <= 3e-12
        assert not (plan[np.isinf(table)] > 0).any()
        prices.append(price(table, plan))
    want = np.array(prices)
    assert (np.abs(answer.cost[finite] - want) <= np.maximum(1e-13, 1e-12 * np.abs(want))).all()
    return len(finite)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("eta", [0.5, 30.0, 1e5, np.inf])
def test_what_is_priced_is_what_is_handed_out(family, hard, eta):
    finite = 0
    for one, nodes in examples(family, Sizes(hard=hard), 8, True):
        answer = Answer(one, nodes, eta)
        finite += check_point(one.model, nodes, answer)
        if not hard and family != "projection":
            assert np.isfinite(answer.cost).all()
    assert finite or family == "projection"


def soft_plan(one: Case, e: int, eta: float) -> np.ndarray | None:
    model, (i, j) = one.model, one.model.edges[e]
    row = one.lam[model.network.half_slice(2 * e)] + np.where(
        np.isinf(model.network.unary_of(i)), np.inf, 0.0
    )
    col = one.lam[model.network.half_slice(2 * e + 1)] + np.where(
        np.isinf(model.network.unary_of(j)), np.inf, 0.0
    )
    value = model.network.table(e) + row[:, None] + col
    if value.min() == np.inf:
        return None
    plan = np.exp(-eta * (value - value.min()))
    return plan / plan.sum()


@pytest.mark.parametrize("family", PAIRWISE)
@pytest.mark.parametrize("eta", [0.5, 10.0, 1e3])
def test_entropy_and_slack_are_those_of_the_soft_plan(family, eta):
    for one, nodes in examples(family, Sizes(hard=family != "tables"), 6, False):
        model, answer = one.model, Answer(one, nodes, eta)
        for e in range(model.m):
            p, q = ends(model, nodes, e)
            plan = soft_plan(one, e, eta)
            if plan is None:
                continue
            mass = plan[plan > 0]
            assert abs(answer.entropy[e] + (mass * np.log(mass)).sum()) <= 1e-9
            rows = plan.sum(axis=1)
            slack = np.abs(rows - p).sum()
            scale = np.divide(p, rows, out=np.ones_like(p), where=rows > p)
            slack += np.abs((plan * scale[:, None]).sum(axis=0) - q).sum()
            assert abs(answer.slack[e] - slack) <= 1e-9


@pytest.mark.parametrize("family", ["tables", "shared", "truncated-linear", "truncated-quadratic"])
@pytest.mark.parametrize("most", [5, 11, 70])
def test_large_tables_get_the_projection_as_it_is(family, most):
    compared = 0
    for seed in range(12):
        one = case(seed, Sizes(), (family,), most=most)
        model, nodes = one.model, marginals(one.model, seed)
        answer = Answer(one, nodes, 4.0)
        every = range(len(model.potentials))
        closed_form = np.concatenate([group_in_closed_form(model.network, g) for g in every])
        for e in range(model.m):
            p, q = ends(model, nodes, e)
            want = nearest_coupling(soft_plan(one, e, 4.0)[None], p[None], q[None])[0]
            if want.size > core.EXCHANGED and not closed_form[e]:
                np.testing.assert_allclose(answer.plans[e], want, rtol=1e-9, atol=1e-12)
                compared += 1
            else:
                assert answer.cost[e] <= price(model.network.table(e), want) + 1e-12
    assert compared or most == 5 or family == "truncated-linear"


def banded_case(family, cut) -> tuple[Case, np.ndarray]:
    """Edges of 23 labels, some of them forbidden, with messages of all sizes; node marginals."""
    rng = np.random.default_rng(3)
    d, edges = 23, np.stack([np.arange(12), np.arange(1, 13)], axis=1)
    unary = np.where(rng.random((13, d)) < 0.1, np.inf, 0.0)
    unary[:, 5] = 0.0
    model = softmap.Model(unary, edges, family(rng.uniform(0.0, 2.0, 12), cut))
    walk = rng.normal(size=(12, d)).cumsum(axis=1) * 10.0 ** rng.uniform(-2, 2, (12, 1))
    lam = np.stack([walk, -walk + rng.normal(size=(12, d))], axis=1).ravel()
    return Case(model, lam, []), marginals(model, 4, sharp=True)


@pytest.mark.parametrize("family", [softmap.TruncatedLinear, softmap.TruncatedQuadratic])
@pytest.mark.parametrize("eta", [0.3, 20.0, 2e3, 1e6])
@pytest.mark.parametrize("cut", [0.5, 1.0, 4.0, 6.5, 25.0, np.inf])
def test_wide_bands_are_right_whatever_the_messages_are(family, eta, cut):
    """Quadratic ones get the projection, linear ones the cheapest transport."""
    one, nodes = banded_case(family, cut)
    model, answer = one.model, Answer(one, nodes, eta)
    assert check_point(model, nodes, answer) == 12
    for e in range(12):
        p, q = ends(model, nodes, e)
        soft, table = soft_plan(one, e, eta), model.network.table(e)
        if family is softmap.TruncatedLinear:
            want = cheapest_coupling(table[None], p[None], q[None])[0][0]
        else:
            want = nearest_coupling(soft[None], p[None], q[None])[0]
            np.testing.assert_allclose(answer.plans[e], want, rtol=1e-6, atol=1e-9)
        assert answer.cost[e] == pytest.approx(price(table, want), rel=1e-7, abs=1e-9)
        assert answer.cost[e] >= price(table, answer.plans[e]) * (1 - 1e-15)
        mass = soft[soft > 0]
        assert answer.entropy[e] == pytest.approx(
            -(mass * np.log(mass)).sum(), abs=1e-12 * eta + 1e-7
        )


def cheapest(table, p, q):
    """Exact transport by linear programming; +inf if there is none."""
    rows, cols = table.shape
    sums = np.zeros((rows + cols, rows * cols))
    for x in range(rows):
        sums[x, x * cols : (x + 1) * cols] = 1.0
    for y in range(cols):
        sums[rows + y, y::cols] = 1.0
    bounds = [(0, 0 if c == np.inf else None) for c in table.ravel()]
    cost = np.where(np.isinf(table), 0.0, table).ravel()
    found = linprog(cost, A_eq=sums, b_eq=np.concatenate([p, q]), bounds=bounds, method="highs")
    return found.fun if found.status == 0 else np.inf


@pytest.mark.parametrize("family", PAIRWISE)
@pytest.mark.parametrize("hard", [False, True])
def test_at_no_temperature_transport_is_the_cheapest(family, hard):
    for seed in range(4):
        one = case(seed, Sizes(hard=hard), (family,), most=6)
        nodes = marginals(one.model, seed)
        answer = Answer(one, nodes, np.inf)
        soft = Answer(one, nodes, 20.0)
        for e in range(one.model.m):
            want = cheapest(one.model.network.table(e), *ends(one.model, nodes, e))
            assert answer.cost[e] == pytest.approx(want, abs=1e-7)
            assert soft.cost[e] >= answer.cost[e] - 1e-9
            assert (soft.cost[e] == np.inf) == (want == np.inf)


def test_potts_costs_total_variation():
    for seed in range(30):
        one = case(seed, Sizes(), ("potts",), most=6)
        model, nodes = one.model, marginals(one.model, seed)
        cost = np.empty(model.m)
        core.couple(native(model), one.lam, 3.0, nodes, None, core.CouplingArrays(cost))
        for e in range(model.m):
            p, q = ends(model, nodes, e)
            both = min(p.size, q.size)
            weight = model.network.table(e)[0, -1] if max(p.size, q.size) > 1 else 0.0
            if weight >= 0 and min(p.size, q.size) > 1:
                kept = np.minimum(p[:both], q[:both]).sum()
                assert cost[e] == pytest.approx(weight * (1 - kept), abs=1e-14)


def projected(maps, labels, p, q):
    model = softmap.Model([np.zeros(len(p)), np.zeros(len(q))], [(0, 1)] * len(maps),
                          softmap.Projection(maps, np.full(len(maps), labels)))  # fmt: skip
    nodes = np.concatenate([p, q])
    return Answer(Case(model, np.zeros(int(model.network.half_offset[-1])), []), nodes, 5.0)


def test_a_projection_between_variables_that_disagree_has_no_coupling():
    p, q = np.array([0.2, 0.3, 0.5]), np.array([0.5, 0.5])
    answer = projected([[0, 0, 1], [0, 1, 1], [0, 0, 1]], 2, p, q)
    np.testing.assert_array_equal(answer.cost, [0.0, np.inf, 0.0])
    np.testing.assert_array_equal(answer.plans[0], [[0.2, 0], [0.3, 0], [0, 0.5]])
    near = projected([[0, 0, 1]], 2, p, q + np.array([1e-14, -1e-14]))
    far = projected([[0, 0, 1]], 2, p, q + np.array([1e-10, -1e-10]))
    assert near.cost[0] == 0.0
    assert far.cost[0] == np.inf


def test_chosen_edges_are_coupled_like_all():
    for seed in range(20):
        one = case(seed, Sizes(hard=True), most=7)
        nodes = marginals(one.model, seed)
        every = Answer(one, nodes, 9.0)
        some = np.random.default_rng(seed).permutation(one.model.m)[: one.model.m // 2 + 1]
        chosen = Answer(one, nodes, 9.0, edges=some)
        np.testing.assert_allclose(chosen.cost, every.cost[some], rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(chosen.slack, every.slack[some], rtol=1e-9, atol=1e-10)
        check_point(one.model, nodes, chosen, some)


def test_threads_change_no_bit():
    rng = np.random.default_rng(0)
    n = 9_000
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    cut = rng.uniform(0, 4, n - 1)
    model = softmap.Model(
        rng.normal(size=(n, 3)), edges, softmap.TruncatedLinear(rng.normal(size=n - 1), cut)
    )
    lam = rng.normal(size=int(model.network.half_offset[-1]))
    nodes, held = marginals(model, 0), native(model)
    found = []
    for threads in (1, 2, 3):
        out = np.empty((3, model.m))
        core.couple(held, lam, 7.0, nodes, None, core.CouplingArrays(*out), threads)
        found.append(out)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("eta", [0.1, 3.0, 1e4])
def test_soft_nodes_are_the_softmax_of_the_reduced_costs(eta):
    for seed in range(40):
        one = case(seed, Sizes(hard=seed % 2 == 0), most=9)
        model = one.model
        if not np.isfinite(np.minimum.reduceat(model.unary, model.network.node_offset[:-1])).all():
            continue
        theta = reduced_unary(model.network, one.lam)
        nodes, (entropy, minima) = np.empty_like(theta), np.empty((2, model.n))
        core.soft_nodes(native(model), theta, eta, nodes, entropy, minima)
        for i in range(model.n):
            cost = theta[model.network.node_slice(i)]
            weights = np.exp(-eta * (cost - cost.min()))
            p = weights / weights.sum()
            np.testing.assert_allclose(nodes[model.network.node_slice(i)], p, rtol=1e-9, atol=1e-13)
            assert entropy[i] == pytest.approx(-(p[p > 0] * np.log(p[p > 0])).sum(), abs=1e-9)
            assert minima[i] == pytest.approx(cost.min() - np.log(weights.sum()) / eta, abs=1e-9)


@pytest.mark.parametrize(("rows", "cols"), [(2, 2), (3, 5), (6, 6), (1, 4), (9, 7)])
def test_exact_transport_agrees_with_linear_programming(rows, cols):
    rng = np.random.default_rng(rows * cols)
    cost = rng.normal(size=(12, rows, cols))
    cost[6:][rng.random((6, rows, cols)) < 0.4] = np.inf
    p, q = rng.dirichlet(np.ones(rows), 12), rng.dirichlet(np.ones(cols), 12)
    plan, stranded = np.empty_like(cost), np.empty(12)
    core.transport_batch(cost, p, q, plan, stranded)
    for k in range(12):
        want = cheapest(cost[k], p[k], q[k])
        assert (stranded[k] > core.FEASIBLE) == (want == np.inf)
        if want < np.inf:
            assert price(cost[k], plan[k]) == pytest.approx(want, abs=1e-9)


def test_exchanges_keep_sums_and_lower_costs():
    rng = np.random.default_rng(1)
    cost = rng.normal(size=(50, 4, 5))
    plan = rng.dirichlet(np.ones(20), 50).reshape(50, 4, 5)
    better = plan.copy()
    core.exchange_batch(cost, better)
    np.testing.assert_allclose(better.sum(axis=1), plan.sum(axis=1), atol=1e-15)
    np.testing.assert_allclose(better.sum(axis=2), plan.sum(axis=2), atol=1e-15)
    assert ((cost * better).sum(axis=(1, 2)) < (cost * plan).sum(axis=(1, 2))).all()
    assert better.min() >= -1e-16


def test_bad_arguments_are_refused():
    one = case(0, Sizes())
    nodes = marginals(one.model, 0)
    out = core.CouplingArrays(np.empty(1))
    with pytest.raises(ValueError, match="no edge 99"):
        core.couple(native(one.model), one.lam, 1.0, nodes, np.array([99]), out)
    with pytest.raises(ValueError, match="eta must be positive"):
        Answer(one, nodes, -1.0)

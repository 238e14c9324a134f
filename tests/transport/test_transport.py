"""`softmap.transport`: bounds and plans against HiGHS, passes against numpy, and gradients."""

import itertools
import pickle
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import coo_array

import softmap
from softmap import transport
from softmap.model.potentials.base import softmin
from softmap.transport import calls
from softmap.transport.problem import TransportProblem
from softmap.transport.results import LADDER, Ladder
from softmap.transport.run import TransportRun
from softmap.transport.sampling import SampledProblem
from support.deadlines import stopping


def optimum(marginals, edges, tables):
    """The optimum of the linear program, by HiGHS."""
    sizes = [m if np.ndim(m) == 0 else len(m) for m in marginals]
    node = np.concatenate([[0], np.cumsum(sizes)])
    edge = node[-1] + np.concatenate([[0], np.cumsum([t.size for t in tables])])
    parts, right = [], []

    def equation(terms, value):
        for index, factor in terms:
            places = np.atleast_1d(index)
            parts.append((np.full(places.size, len(right)), places, np.full(places.size, factor)))
        right.append(value)

    for e, (i, j) in enumerate(edges):
        places = edge[e] + np.arange(tables[e].size).reshape(tables[e].shape)
        for x in range(sizes[i]):
            equation([(places[x], 1.0), (node[i] + x, -1.0)], 0.0)
        for y in range(sizes[j]):
            equation([(places[:, y], 1.0), (node[j] + y, -1.0)], 0.0)
    for i, m in enumerate(marginals):
        if np.ndim(m):
            for x in range(sizes[i]):
                equation([(node[i] + x, 1.0)], m[x])
        else:
            equation([(np.arange(node[i], node[i + 1]), 1.0)], 1.0)
    costs = np.concatenate([np.zeros(node[-1]), *(t.ravel() for t in tables)])
    rows, places, factors = (np.concatenate(part) for part in zip(*parts, strict=True))
    matrix = coo_array((factors, (rows, places)), shape=(len(right), edge[-1]))
    return linprog(costs, A_eq=matrix, b_eq=right).fun


def problem(seed, cycle):
    """A random tree, or one with an edge more, with random tables and some given marginals."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    sizes = rng.integers(2, 6, n)
    edges = [[int(rng.integers(i)), i] for i in range(1, n)]
    if cycle and n > 2 and [0, n - 1] not in edges:
        edges.append([0, n - 1])
    tables = [rng.normal(size=(sizes[i], sizes[j])) for i, j in edges]
    masses = [rng.dirichlet(np.ones(d)) * (rng.random(d) < 0.8) for d in sizes]
    marginals = [
        m / m.sum() if m.sum() > 0 and rng.random() < 0.7 else int(d)
        for m, d in zip(masses, sizes, strict=True)
    ]
    return marginals, edges, tables


def assert_promises(found, edges, tables, best):
    assert found.bound <= best + 1e-9
    assert found.cost >= best - 1e-9
    cost = sum(float((found.plan(e) * tables[e]).sum()) for e in range(len(edges)))
    assert found.cost == pytest.approx(cost, abs=1e-9)
    for e, (i, j) in enumerate(edges):
        assert found.plan(e).min() >= 0
        np.testing.assert_allclose(found.plan(e).sum(axis=1), found.marginals[i], atol=1e-12)
        np.testing.assert_allclose(found.plan(e).sum(axis=0), found.marginals[j], atol=1e-12)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_the_optimum_of_highs_is_between_bound_and_cost(seed, cycle):
    marginals, edges, tables = problem(seed, cycle)
    found = transport.multimarginal(marginals, edges, tables, gap=1e-3)
    assert_promises(found, edges, tables, optimum(marginals, edges, tables))
    assert found.relative_gap <= 1e-3
    assert found.tree == (len(edges) < len(marginals))
    for m, p in zip(marginals, found.marginals, strict=True):
        np.testing.assert_allclose(p, m if np.ndim(m) else p, atol=1e-12)
        assert p.sum() == pytest.approx(1.0, abs=1e-12)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 60))
def test_a_run_that_is_stopped_keeps_its_promises(seed, looks):
    marginals, edges, tables = problem(seed, True)
    run = TransportRun(
        TransportProblem.of(marginals, edges, tables, None), LADDER, 1e-4, stopping(looks), None
    )
    run.start()
    run.climb()
    assert_promises(run.results()[0], edges, tables, optimum(marginals, edges, tables))


def test_a_run_that_ends_in_its_first_level_has_a_bound():
    rng = np.random.default_rng(0)
    a, b = rng.dirichlet(np.ones(100), size=2)
    limit = softmap.core.Deadline(1e6)
    limit.stop_after(300)
    endless = Ladder(loose=0.0)
    squares = softmap.TruncatedQuadratic(1.0, 1e9)
    run = TransportRun(TransportProblem.pairs([(a, b, squares)]), endless, 1e-4, limit)
    run.start()
    run.climb()
    found = run.results()[0]
    assert found.trace[0].passes < endless.most
    assert 0.5 * found.cost < found.bound <= found.cost


@pytest.mark.parametrize(("d", "eta"), [(5, 3.0), (70, 2.0), (70, 300.0)])
def test_a_pass_is_that_of_numpy(d, eta):
    """A star whose leaves have marginals and whose centre is free: 70 labels use supports."""
    rng = np.random.default_rng(d)
    masses = rng.dirichlet(np.ones(d), size=3)
    tables = rng.random((3, d, d))
    network = TransportProblem.of([*masses, d], [[k, 3] for k in range(3)], list(tables), None)
    compiled = network.compiled()
    into_leaf = np.zeros((3, d))
    for _ in range(3):
        into_centre = np.array(
            [
                softmin((-np.log(masses[k]) / eta - into_leaf[k])[None, :] + tables[k].T, eta)
                for k in range(3)
            ]
        )
        into_centre -= into_centre.min(axis=1, keepdims=True)
        share = into_centre.sum(axis=0) / 3
        into_leaf = np.array([softmin((share - into_centre[k]) + tables[k], eta) for k in range(3)])
        into_leaf -= into_leaf.min(axis=1, keepdims=True)
    done, loss = compiled.passes(3, eta, False, network.ranges)
    messages = np.empty(6 * d)
    compiled.messages(messages)
    assert done == 3
    assert loss >= 0
    close = 1e-9 if d < 64 else 1e-7 / eta  # dense factors are in single precision
    np.testing.assert_allclose(messages.reshape(3, 2, d)[:, 0], into_leaf, atol=close)
    np.testing.assert_allclose(messages.reshape(3, 2, d)[:, 1], into_centre, atol=close)
    lam, sides = np.empty(6 * d), np.empty(6 * d)
    assert compiled.multipliers(eta, lam)
    assert compiled.sides(eta, sides)
    shaped = lam.reshape(3, 2, d)
    minima = [(tables[k] + shaped[k, 0][:, None] + shaped[k, 1]).min() for k in range(3)]
    dual = sum(minima) - (masses * shaped[:, 0]).sum() + (-shaped[:, 1].sum(axis=0)).min()
    assert network.bound(lam) == pytest.approx(dual, abs=1e-9)
    assert network.bound(lam) <= dual + 1e-12
    np.testing.assert_allclose(sides.reshape(6, d).sum(axis=1), 1.0)


@pytest.mark.parametrize("eta", [0.1, 10.0, 900.0, 3e3, 1e6])
@pytest.mark.parametrize("shape", ["squares", "tables", "shared"])
def test_messages_of_few_labels_are_those_of_numpy_at_every_temperature(eta, shape):
    """Those of squares are products with factors until sums are too small for doubles."""
    rng, d = np.random.default_rng(4), 24
    masses = rng.dirichlet(np.full(d, 0.3), size=3)
    squares = softmap.TruncatedQuadratic(1.3 / d**2, d**2)
    tables = np.stack([squares.as_table(0, d, d)] * 3)
    costs = squares
    if shape == "tables":
        costs = tables = tables + 0.1 * rng.random((3, d, d))
    if shape == "shared":
        tables = np.stack([tables[0] + 0.1 * rng.random((d, d))] * 3)
        costs = tables[0]
    network = TransportProblem.of([*masses, d], [[k, 3] for k in range(3)], costs, None)
    into_leaf, into_centre = rng.random((2, 3, d))
    compiled = network.compiled()
    compiled.set_messages(np.stack([into_leaf, into_centre], axis=1).ravel())
    compiled.passes(1, eta, False, network.ranges)
    messages = np.empty(6 * d)
    compiled.messages(messages)
    own = -np.log(np.maximum(masses, 1e-300)) / eta - into_leaf
    into_centre = softmin(tables.transpose(0, 2, 1) + own[:, None, :], eta)
    into_centre -= into_centre.min(axis=1, keepdims=True)
    sent = into_centre.sum(axis=0) / 3 - into_centre
    into_leaf = softmin(tables + sent[:, None, :], eta)
    into_leaf -= into_leaf.min(axis=1, keepdims=True)
    found = messages.reshape(3, 2, d)
    # Factors of tables are in single precision while most pairs carry mass.
    close = 1e-12 + (1e-11 if shape == "squares" else 1e-6) / eta
    np.testing.assert_allclose(found[:, 1], into_centre, atol=close)
    np.testing.assert_allclose(found[:, 0], into_leaf, atol=close)


@pytest.mark.parametrize("d", [511, 515, 1030])
def test_the_bound_reads_many_labels_as_numpy_does(d):
    rng = np.random.default_rng(d)
    a, b, cost = np.full(3, 1 / 3), rng.dirichlet(np.ones(d)), rng.normal(size=(3, d))
    lam = rng.normal(size=3 + d)
    one, other = np.split(lam, [3])
    dual = (cost + one[:, None] + other).min() - a @ one - b @ other
    found = TransportProblem.pairs([(a, b, cost)]).bound(lam)
    assert dual - 1e-12 <= found <= dual + 1e-15 * d
    one[1] = -50.0  # the least entry is in the middle row
    least = int((cost[1] + other).argmin())
    dual = cost[1, least] + one[1] + other[least] - a @ one - b @ other
    assert TransportProblem.pairs([(a, b, cost)]).bound(lam) == pytest.approx(dual, abs=1e-11)


def hidden_line(d, seed):
    """Masses on a line and squared distances, labels shuffled; the optimum is the monotone plan."""
    rng = np.random.default_rng(seed)
    a, b = rng.dirichlet(np.ones(d)), rng.dirichlet(np.full(d, 0.5)) * (rng.random(d) < 0.9)
    b, x, y = b / b.sum(), np.sort(rng.random(d)), np.sort(rng.random(d))
    steps = np.sort(np.concatenate([[0.0], a.cumsum(), b.cumsum()]))
    middle, width = (steps[1:] + steps[:-1]) / 2, np.diff(steps)
    i, j = (np.minimum(np.searchsorted(m.cumsum(), middle), d - 1) for m in (a, b))
    best = float(width @ (x[i] - y[j]) ** 2)
    one, other = rng.permutation(d), rng.permutation(d)
    return a[one], b[other], (x[one][:, None] - y[other]) ** 2, best


@pytest.mark.parametrize("looks", [None, 40, 400])
def test_large_tables_start_from_some_of_their_labels(looks):
    a, b, cost, best = hidden_line(300, 5)
    whole = TransportProblem.pairs([(a, b, cost)])
    assert SampledProblem.worthwhile(whole)
    limit = softmap.core.Deadline() if looks is None else stopping(looks)
    run = TransportRun(whole, LADDER, 1e-3, limit)
    run.start()
    run.climb()
    assert_promises(run.results()[0], [[0, 1]], [cost], best)
    assert looks is not None or run.results()[0].relative_gap <= 1e-3


def test_a_shared_table_starts_from_other_labels_of_each_node():
    rng = np.random.default_rng(3)
    masses = list(rng.dirichlet(np.full(256, 0.1), size=4))
    x = np.linspace(0.0, 1.0, 256)
    cost, edges = (x[:, None] - x) ** 2, [(0, 1), (0, 2), (0, 3)]
    found = transport.multimarginal(masses, edges, [cost] * 3, gap=1e-2)
    alone = [transport.sinkhorn(masses[0], mass, cost, gap=1e-2) for mass in masses[1:]]
    assert found.bound <= sum(one.cost for one in alone)
    assert sum(one.bound for one in alone) <= found.cost
    assert found.cost - found.bound <= 0.011 * found.cost


def test_messages_of_some_labels_are_those_of_numpy():
    """A star with a free centre: labels are drawn by mass at the leaves, evenly at the centre."""
    rng, d, eta = np.random.default_rng(1), 256, 20.0
    masses, tables = rng.dirichlet(np.ones(d), size=2), rng.random((2, d, d))
    whole = TransportProblem.of([*masses, d], [[0, 2], [1, 2]], list(tables), None)
    sample = SampledProblem(whole)
    network = sample.problem.compiled()
    network.passes(3, eta, True, sample.problem.ranges)
    found = np.split(sample.messages(network, eta, softmap.core.Deadline()), 4)
    sent = np.empty(len(sample.problem.owner))
    network.messages(sent)
    small = sample.problem
    sizes = small.model.num_labels[small.model.edges].reshape(-1)
    into = np.split(sent, np.cumsum(sizes)[:-1])
    centre = (into[1] + into[3]) / 2
    places = np.arange(d // 4) * 4 + 2
    for k in (0, 1):
        labels = np.unique(
            np.searchsorted(masses[k].cumsum(), (np.arange(d // 4) + 0.5) / (d // 4))
        )
        leaf = -np.log(small.split(small.mass)[k]) / eta - into[2 * k]
        to_centre = softmin(tables[k][labels].T + leaf, eta)
        to_leaf = softmin(tables[k][:, places] + centre - into[2 * k + 1], eta)
        np.testing.assert_allclose(found[2 * k], to_leaf - to_leaf.min(), atol=1e-12)
        np.testing.assert_allclose(found[2 * k + 1], to_centre - to_centre.min(), atol=1e-12)
    assert sample.messages(network, eta, stopping(1)) is None


FAMILIES = {
    "Potts": softmap.Potts(0.7),
    "linear": softmap.TruncatedLinear(0.3, 99.0),
    "truncated": softmap.TruncatedLinear(0.3, 2.5),
    "quadratic": softmap.TruncatedQuadratic(0.2, 99.0),
    "truncated quadratic": softmap.TruncatedQuadratic(0.2, 5.0),
}


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_a_family_is_its_tables(family):
    rng = np.random.default_rng(3)
    masses = rng.dirichlet(np.full(6, 0.5), size=3)
    edges = [[0, 3], [1, 3], [2, 3]]
    table = family.as_table(0, 6, 6)
    best = optimum([*masses, 6], edges, [table] * 3)
    found = transport.multimarginal([*masses, 6], edges, family)
    assert_promises(found, edges, [table] * 3, best)
    assert found.relative_gap <= 1e-3
    dense = transport.multimarginal([*masses, None], edges, table)
    assert_promises(dense, edges, [table] * 3, best)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_truncated_squares_are_their_tables(seed):
    """Their plan takes O(d): masses that move to near labels, and all others, in order."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 16))
    family = softmap.TruncatedQuadratic(rng.uniform(0.1, 2.0), rng.uniform(0.5, d * d / 3))
    masses = rng.dirichlet(np.full(d, 0.5), size=3)
    edges, table = [[0, 3], [1, 3], [2, 3]], family.as_table(0, d, d)
    best = optimum([*masses, d], edges, [table] * 3)
    found = transport.multimarginal([*masses, d], edges, family)
    assert_promises(found, edges, [table] * 3, best)
    assert found.relative_gap <= 1e-3 or found.gap <= 1e-12


@pytest.mark.parametrize("cut", [1e9, 100.0**2])
def test_squares_of_many_labels_are_their_tables(cut):
    rng, d = np.random.default_rng(0), 128
    a, b = rng.dirichlet(np.ones(d)), rng.dirichlet(np.ones(d))
    a[20:], b[:10] = a[20:] * 0.1, b[:10] * 0.1  # masses move far
    a, b = a / a.sum(), b / b.sum()
    family = softmap.TruncatedQuadratic(1e-3, cut)
    table = family.as_table(0, d, d)
    found = transport.sinkhorn(a, b, family, gap=1e-4)
    assert_promises(found, [[0, 1]], [table], optimum([a, b], [[0, 1]], [table]))
    assert found.relative_gap <= 1e-4


def test_potentials_and_plans_are_gradients():
    rng = np.random.default_rng(0)
    a, b, cost = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4)), rng.random((4, 4))
    found = transport.sinkhorn(a, b, cost, gap=1e-6)
    move, bend = np.array([1e-3, -1e-3, 0.0, 0.0]), 1e-3 * rng.normal(size=(4, 4))
    base = optimum([a, b], [[0, 1]], [cost])
    by_mass = optimum([a + move, b], [[0, 1]], [cost]) - base
    by_cost = optimum([a, b], [[0, 1]], [cost + bend]) - base
    assert found.potentials[0] @ move == pytest.approx(by_mass, abs=1e-5)
    assert (found.plan() * bend).sum() == pytest.approx(by_cost, abs=1e-5)


@pytest.mark.parametrize("seed", [0, 1])
def test_free_nodes_between_large_tables_converge(seed):
    """At large η most labels of a free node have no mass, and few pairs serve both directions."""
    rng, leaves, d = np.random.default_rng(seed), 4, 64
    edges = [[0, 1], [1, 2], *([k % 3, 3 + k] for k in range(leaves))]
    spots = rng.random((3 + leaves, d, 2))
    tables = [((spots[i][:, None] - spots[j]) ** 2).sum(axis=-1) for i, j in edges]
    marginals = [d] * 3 + list(rng.dirichlet(np.ones(d), size=leaves))
    found = transport.multimarginal(marginals, edges, tables, gap=1e-3)
    assert found.cost - found.bound <= 1e-3 * found.bound
    assert found.trace[-1].passes < 4_000  # 19,000 to 22,000 by pairs that serve one direction


def test_node_costs_count():
    free = transport.multimarginal([3], np.zeros((0, 2)), [], unary=[[2.0, 1.0, 3.0]])
    assert free.cost == 1.0
    assert 1.0 - 1e-15 <= free.bound <= 1.0
    pair = transport.multimarginal(
        [[0.5, 0.5], 2], [[0, 1]], [np.zeros((2, 2))], unary=[[1.0, 3.0], [0.0, 5.0]], gap=1e-3
    )
    assert pair.bound <= 2.0 <= pair.cost + 1e-12
    assert pair.gap <= 1e-2


def test_a_batch_is_its_members():
    rng = np.random.default_rng(1)
    a, cost = rng.dirichlet(np.ones(5), size=3), rng.random((5, 5))
    together = transport.sinkhorn(a, a[0], cost)
    assert [r.cost for r in together] == [transport.sinkhorn(x, a[0], cost).cost for x in a]
    stacked = transport.sinkhorn(a[0], a[1], np.stack([cost, 2 * cost]))
    assert stacked[1].cost == pytest.approx(2 * stacked[0].cost)


HALF, EYE = [0.5, 0.5], np.eye(2)


@pytest.mark.parametrize(
    ("a", "b", "cost", "words"),
    [
        ([0.5, 0.4], [1.0, 0.0], EYE, "masses a have the sum 0.9"),
        ([1.0, 0.0], [0.5, 0.6], EYE, "masses b have the sum 1.1"),
        ([1.5, -0.5], [1.0, 0.0], EYE, "a has the mass -0.5 at 1"),
        ([HALF, [np.nan, 1.0]], HALF, EYE, r"a\[1\] has the mass nan at 0"),
        (1.0, [1.0], [[0.0]], "a must be one list"),
        ([], [], np.zeros((0, 0)), "a must be one list"),
        (HALF, HALF, [[0.0, np.inf], [1.0, 0.0]], "finite"),
        (HALF, HALF, [[0.0, np.nan], [1.0, 0.0]], "nan"),
        (HALF, HALF, [0.0, 1.0], "costs must be a table"),
        (HALF, HALF, np.zeros((2, 3)), "2 and 2 labels"),
        (np.full((2, 2), 0.5), np.full((3, 2), 0.5), EYE, "batch"),
        (np.full((3, 2), 0.5), HALF, softmap.Potts([1.0, 2.0]), "batch"),
    ],
)
def test_what_does_not_fit_is_rejected(a, b, cost, words):
    with pytest.raises(softmap.ModelError, match=words):
        transport.sinkhorn(a, b, cost)


@pytest.mark.parametrize(
    ("marginals", "edges", "costs", "unary", "words"),
    [
        (None, [[0, 1]], EYE, None, "marginals must be a list"),
        ([HALF, -1], [[0, 1]], EYE, None, r"marginals\[1\]=-1"),
        ([HALF, 2.5], [[0, 1]], EYE, None, r"marginals\[1\]=2.5"),
        ([HALF, "2"], [[0, 1]], EYE, None, r"marginals\[1\]='2'"),
        ([HALF, [0.5, 0.6]], [[0, 1]], EYE, None, r"masses marginals\[1\] have the sum 1.1"),
        ([HALF, HALF], [[0, 1.5]], EYE, None, "edges must be integers"),
        ([HALF, HALF], [0, 1], EYE, None, "two columns"),
        ([HALF, HALF], [[0, 2]], EYE, None, "variables are 0..1"),
        ([HALF, HALF], [[0, 1]], [EYE, EYE], None, "one for each of 1 edges"),
        ([HALF, HALF], [[0, 1]], EYE, [[0.0, 1.0]], "each of 2 nodes"),
        ([HALF, HALF], [[0, 1]], EYE, 3.0, "unary must be a list"),
        ([HALF, HALF], [[0, 1]], EYE, [None, [0.0, 1.0, 2.0]], "node 1 has 2 labels"),
        ([HALF, HALF], [[0, 1]], EYE, [None, [0.0, np.inf]], "finite"),
    ],
)
def test_a_graph_that_does_not_fit_is_rejected(marginals, edges, costs, unary, words):
    with pytest.raises((softmap.ModelError, softmap.OptionError), match=words):
        transport.multimarginal(marginals, edges, costs, unary=unary)


@pytest.mark.parametrize(
    "options", [{"threads": 0}, {"threads": 1.5}, {"gap": -1.0}, {"time_limit": np.nan}]
)
def test_options_are_checked(options):
    with pytest.raises(softmap.OptionError, match=next(iter(options))):
        transport.sinkhorn([HALF, HALF], HALF, EYE, **options)


def test_masses_in_single_precision_are_scaled_to_sum_one():
    rng, d = np.random.default_rng(0), 1000
    masses = (rng.random((2, d)) / d).astype(np.float32)
    masses /= masses.sum(axis=1, keepdims=True)
    assert abs(masses[0].astype(float).sum() - 1) > 1e-9  # as doubles they are rejected
    found = transport.sinkhorn(*masses, softmap.TruncatedLinear(1.0, d), gap=1e-2)
    wide = [m / m.sum() for m in masses.astype(float)]
    exact = float(np.abs(wide[0].cumsum() - wide[1].cumsum()).sum())
    assert found.bound <= exact <= found.cost * (1 + 1e-12)
    with pytest.raises(softmap.ModelError, match="sum"):
        transport.sinkhorn(masses[0].astype(float), masses[1], softmap.Potts(1.0))


def test_rows_of_numbers_are_one_table():
    rows = [[0.0, 3.0, 1.0], [1.0, 2.0, 2.0]]
    marginals, edges = [[0.5, 0.5], [0.1, 0.2, 0.7]], [[0, 1]]
    found = transport.multimarginal(marginals, edges, rows)
    assert found.cost == transport.multimarginal(marginals, edges, np.array(rows)).cost


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_weights_of_a_batch_belong_to_its_members(backend, monkeypatch):
    monkeypatch.setenv("SOFTMAP_CUDA", "host")
    weights = np.array([1.0, 5.0])
    found = transport.sinkhorn(HALF, [0.1, 0.9], softmap.Potts(weights), backend=backend)
    for one, weight in zip(found, weights, strict=True):
        assert one.bound <= 0.4 * weight <= one.cost + 1e-12
        assert one.relative_gap <= 1e-3


def test_an_exception_ends_all_members_of_a_batch(monkeypatch):
    """Ctrl-C, for example: without it a long member would end before the call does."""
    begun, ended = threading.Event(), []

    def member(part, gap, limit):
        if part.mass[2] == 1.0:
            begun.wait(60)
            raise KeyboardInterrupt
        begun.set()
        for _ in range(6_000):  # a minute, if nothing stops it
            if limit.passed:
                ended.append(part)
                break
            time.sleep(0.01)
        return [None]

    monkeypatch.setattr(calls, "_solve", member)
    with pytest.raises(KeyboardInterrupt):
        transport.sinkhorn(HALF, [[1.0, 0.0], HALF], EYE, threads=2)
    assert len(ended) == 1


def test_a_result_is_pickled_with_its_plans():
    found = transport.sinkhorn(HALF, [0.1, 0.9], EYE)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.plan(), found.plan())
    assert (again.cost, again.bound) == (found.cost, found.bound)


@pytest.mark.parametrize("edge", [1, -1, "0"])
def test_an_edge_that_is_not_there_has_no_plan(edge):
    with pytest.raises(softmap.OptionError, match="edge="):
        transport.sinkhorn(HALF, HALF, EYE).plan(edge)


def test_projections_are_refused():
    with pytest.raises(softmap.ModelError, match="finite costs"):
        transport.sinkhorn([0.5, 0.5], [0.2, 0.8], softmap.Projection([[0, 1]], [2]))


@pytest.mark.parametrize("tiny", [5e-324, 1e-310])
def test_the_least_masses_are_moved(tiny):
    found = transport.sinkhorn([1.0, tiny], [1.0], softmap.Potts([1.0]))
    assert found.plan().tolist() == [[1.0], [0.0]]


def test_a_moment_can_stop_the_run():
    rows = []
    found = transport.multimarginal(
        [[0.5, 0.5], [0.1, 0.9]],
        [[0, 1]],
        [np.array([[0.0, 1.0], [1.0, 0.3]])],
        gap=0.0,
        on_snapshot=lambda moment: rows.append(moment) or len(rows) < 3,
    )
    assert len(found.trace) == len(rows) == 3
    assert all(a.bound <= b.bound and a.cost >= b.cost for a, b in itertools.pairwise(rows))
    with pytest.raises(softmap.ModelError, match="number of labels"):
        transport.multimarginal([[0.5, 0.5], None], [[0, 1]], softmap.Potts(1.0))


GAPS = (1e-2, 1e-3, 1e-4)


def two_hills():
    """A barycentre of two distributions that overlap: messages converge slowly."""
    places = np.linspace(0.0, 1.0, 100)
    hills = [np.exp(-0.5 * ((places - centre) / 0.1) ** 2) for centre in (0.49, 0.51)]
    costs = (places[:, None] - places) ** 2
    return [*(hill / hill.sum() for hill in hills), 100], [[0, 2], [1, 2]], costs


def test_a_smaller_gap_is_reached_if_it_is_asked_for():
    ladder = transport.Ladder(most=100)  # less than the second hundred of passes needs
    reached = [transport.multimarginal(*two_hills(), gap=gap, ladder=ladder) for gap in GAPS]
    assert [one.relative_gap <= gap for one, gap in zip(reached, GAPS, strict=True)] == [True] * 3
    assert {one.status for one in reached} == {transport.TransportStatus.GAP}
    assert sorted(one.cost for one in reached)[::-1] == [one.cost for one in reached]


def test_a_gap_that_is_not_reached_is_said():
    ladder = transport.Ladder(most=20)
    with pytest.warns(softmap.ConvergenceWarning, match="stalled before the gap was reached"):
        found = transport.multimarginal(*two_hills(), gap=1e-4, ladder=ladder)
    assert found.status is transport.TransportStatus.STALLED
    assert found.bound <= found.cost
    limited = transport.multimarginal(*two_hills(), gap=1e-9, time_limit=0.02)
    assert limited.status is transport.TransportStatus.TIME_LIMIT
    stopped = transport.multimarginal(*two_hills(), gap=1e-9, on_snapshot=lambda moment: False)
    assert stopped.status is transport.TransportStatus.CALLBACK

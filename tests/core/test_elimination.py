"""Variable elimination in C++: orders, dynamic programming, m best, conditioning, sums."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softmap import core
from softmap.labels.exact import solve_exact
from softmap.relaxation.flat import FlatModel, elimination_order


def random_flat(seed, *, most=6, hard=True):
    """A model of up to `most` variables, with factors of two to four of them, some parallel."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, most + 1))
    sizes = rng.integers(1, 4, n)
    scopes = [
        rng.choice(n, int(rng.integers(2, min(n, 4) + 1)), replace=False)
        for _ in range(int(rng.integers(0, 9)) if n > 1 else 0)
    ]
    tables = [rng.normal(size=int(np.prod(sizes[s]))) * 10.0 ** rng.integers(-3, 4) for s in scopes]
    if hard:
        tables = [np.where(rng.random(len(t)) < 0.15, np.inf, t) for t in tables]
    return FlatModel(
        sizes.astype(np.int64),
        rng.normal(size=int(sizes.sum())),
        np.cumsum([0, *map(len, scopes)]).astype(np.int64),
        np.concatenate([np.zeros(0, int), *scopes]).astype(np.int64),
        np.concatenate([np.zeros(0), *tables]),
        float(rng.normal()),
    )


def terms(flat, x):
    """The costs of a labelling, one for each variable and factor."""
    offset = np.cumsum([0, *flat.num_labels])
    yield flat.constant
    yield from flat.unary[offset[:-1] + x]
    at = 0
    for a, b in itertools.pairwise(flat.scope_start.tolist()):
        scope = flat.scope[a:b]
        shape = flat.num_labels[scope]
        yield flat.tables[at + np.ravel_multi_index(x[scope], shape)]
        at += int(np.prod(shape))


def exact_energy(flat, x):
    costs = list(terms(flat, x))
    return math.inf if math.inf in costs else sum(map(Fraction, costs), Fraction(0))


def all_energies(flat):
    """Every labelling with its energy in exact arithmetic, best first."""
    every = [np.array(x) for x in itertools.product(*map(range, flat.num_labels.tolist()))]
    return sorted(((exact_energy(flat, x), x) for x in every), key=lambda pair: pair[0])


def arrays(flat):
    return flat.num_labels, flat.unary, flat.scope_start, flat.scope, flat.tables


seeds = st.integers(0, 10**6)


# --- orders --------------------------------------------------------------------------------------


def tables_of(flat, order):
    """The entries of all tables of an order, and of all results, in plain Python."""
    near = {v: set() for v in range(len(flat.num_labels))}
    for a, b in itertools.pairwise(flat.scope_start.tolist()):
        for u, v in itertools.permutations(flat.scope[a:b].tolist(), 2):
            near[u].add(v)
    entries = stored = 0
    for v in order:
        result = math.prod(int(flat.num_labels[u]) for u in near[v])
        entries, stored = entries + result * int(flat.num_labels[v]), stored + result
        around = near.pop(v)
        for u in around:
            near[u] = (near[u] | around) - {u, v}
    return entries, stored


@given(seeds)
def test_the_size_of_an_order_is_that_of_its_tables(seed):
    flat = random_flat(seed, most=9)
    found = elimination_order(flat, 1e12)
    assert sorted(found.variables) == list(range(len(flat.num_labels)))
    assert (found.entries, found.stored) == pytest.approx(tables_of(flat, found.variables.tolist()))
    assert not elimination_order(flat, found.entries * 0.9).found


def test_a_grid_is_eliminated_across_its_shorter_side():
    """The size of a 6 × 30 grid of two labels grows with its length, not with its area."""
    pairs = [(i, i + 1) for i in range(179) if i % 6 != 5] + [(i, i + 6) for i in range(174)]
    flat = FlatModel(
        np.full(180, 2), np.zeros(360), 2 * np.arange(len(pairs) + 1), np.array(pairs).ravel(),
        np.zeros(4 * len(pairs)), 0.0,
    )  # fmt: skip
    assert elimination_order(flat, 1e9).entries <= 180 * 2**7


def test_arguments_are_checked():
    two, none = np.array([2, 2]), np.zeros(0)
    with pytest.raises(ValueError, match="out of range"):
        core.elimination_order(two, np.array([0, 2]), np.array([0, 2]), 10.0)
    with pytest.raises(ValueError, match="must not exceed"):
        core.elimination_order(two, np.array([0, 3]), np.array([0, 1]), 10.0)
    with pytest.raises(ValueError, match="must not decrease"):
        core.elimination_order(two, np.array([0, 2, 1]), np.array([0, 1]), 10.0)
    model = two, np.zeros(4), np.array([0]), np.zeros(0, np.int64), none
    with pytest.raises(ValueError, match="every variable once"):
        core.LogSums(core.FlatModel(*model, 0.0), np.array([0, 0]), 1)
    with pytest.raises(ValueError, match="one cost per label"):
        core.FlatModel(two, np.zeros(3), *model[2:], 0.0)
    with pytest.raises(ValueError, match="all entries"):
        core.FlatModel(two, np.zeros(4), np.array([0, 2]), np.array([0, 1]), none, 0.0)


# --- dynamic programming --------------------------------------------------------------------------


def check(flat, found):
    best = all_energies(flat)[0][0]
    assert found.complete
    if best == math.inf:
        assert found.infeasible
        return
    assert found.lower_bound <= best
    assert exact_energy(flat, found.labels) - best <= 1e-9 * (1 + abs(best))
    assert best - Fraction(found.lower_bound) <= 1e-8 * (1 + abs(best))


@settings(max_examples=60)
@given(seeds)
def test_dynamic_programming_is_enumeration(seed):
    flat = random_flat(seed)
    found = solve_exact(flat, presolve=False, ascent=False, threads=2)
    check(flat, found)
    assert found.infeasible or found.counts["eliminated"] >= len(flat.num_labels)


def spin_graph(n, pairs, seed):
    rng = np.random.default_rng(seed)
    couplings = rng.normal(size=len(pairs))[:, None, None] * np.array([[1.0, -1.0], [-1.0, 1.0]])
    return FlatModel(
        np.full(n, 2), rng.normal(size=2 * n), 2 * np.arange(len(pairs) + 1),
        np.array(pairs).ravel(), couplings.ravel(), 0.0,
    )  # fmt: skip


# --- which method solves a component --------------------------------------------------------------


def test_small_tables_are_eliminated_at_once():
    effort = core.Effort()
    assert core.plan_component(1e3, effort.at_once - 1, effort, False) == ("eliminate", 0)
    assert core.plan_component(1e3, effort.at_once - 1, effort, True) == ("eliminate", 0)
    large = effort.at_once / effort.per_entry
    assert core.plan_component(2 * large, 1.9 * effort.at_once, effort, False)[0] == "eliminate"


def test_a_search_comes_before_large_tables():
    effort = core.Effort()
    method, work = core.plan_component(1e3, 1e7, effort, False)
    assert (method, work) == ("search first", int(effort.search_first * 1e7))
    assert core.plan_component(1e3, 1e9, effort, False)[1] == int(effort.longest_first)
    effort.search_first = 0.0
    assert core.plan_component(1e3, 1e9, effort, False) == ("eliminate", 0)


def test_without_an_order_there_is_only_search():
    effort = core.Effort()
    assert core.plan_component(10.0, math.inf, effort, False)[0] == "search"
    assert core.plan_component(10.0, 1e8, effort, True)[0] == "search"  # a first labelling


def test_a_search_that_elimination_replaces_proves_the_same():
    """`search_first` is the work until elimination; a proof of either is one."""
    flat = spin_graph(20, [(i, j) for i in range(20) for j in range(i)], 2)
    whole = solve_exact(flat, search_first=0.0)
    assert whole.counts["eliminated"] == 20
    first = solve_exact(flat, dp_limit=0.0)
    assert first.counts["eliminated"] == 0
    assert first.energy == whole.energy
    assert first.lower_bound == pytest.approx(whole.lower_bound, rel=1e-9)


# --- orders that cannot succeed -------------------------------------------------------------------


def clique(n, labels=2):
    pairs = [(i, j) for i in range(n) for j in range(i)]
    return np.full(n, labels), 2 * np.arange(len(pairs) + 1), np.array(pairs).ravel()


@pytest.mark.parametrize("n", [3, 12, 20])
def test_the_order_of_a_clique_is_found_up_to_its_table(n):
    """Every order of a clique has one table of all variables, and its limit is met exactly."""
    whole = sum(2.0**k for k in range(1, n + 1))
    assert core.elimination_order(*clique(n), whole)[0] == whole
    assert core.elimination_order(*clique(n), 2.0**n - 1)[0] == math.inf


@settings(max_examples=60)
@given(seeds)
def test_no_order_within_reach_is_given_up(seed):
    """Some order within the limit is found wherever the best of all permutations has one table
    less: the test by degree is a bound, and greedy orders of six variables are nearly the best."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    sizes = rng.integers(1, 5, n)
    pairs = [(i, j) for i in range(n) for j in range(i) if rng.random() < 0.6]
    start, scope = 2 * np.arange(len(pairs) + 1), np.array(pairs, dtype=np.int64).ravel()
    best = min(_entries(sizes, pairs, order) for order in itertools.permutations(range(n)))
    found = core.elimination_order(sizes, start, scope, 1e9)[0]
    assert found >= best * (1 - 1e-12)  # it adds up powers of rounded logarithms
    assert core.elimination_order(sizes, start, scope, found)[0] == found


def _entries(sizes, pairs, order):
    near = {i: set() for i in range(len(sizes))}
    for i, j in pairs:
        near[i].add(j)
        near[j].add(i)
    total = 0.0
    for v in order:
        others = near.pop(v)
        total += float(np.prod(sizes[[v, *others]]))
        for u in others:
            near[u] |= others
            near[u] -= {u, v}
    return total


def test_an_order_is_not_looked_for_after_the_deadline():
    grid = [(i, i + 1) for i in range(999) if i % 50 != 49] + [(i, i + 50) for i in range(950)]
    shape = np.full(1000, 2), 2 * np.arange(len(grid) + 1), np.array(grid).ravel()
    assert core.elimination_order(*shape, 1e30)[0] < math.inf
    assert core.elimination_order(*shape, 1e30, core.Deadline(0.0))[0] == math.inf


@pytest.mark.parametrize("limit", [1e9, 1000])
def test_without_time_the_bound_holds(limit):
    pairs = [(i, j) for i in range(20) for j in range(i)]
    flat = spin_graph(20, pairs, 5)
    best = solve_exact(flat)
    assert best.complete
    late = solve_exact(flat, dp_limit=limit, search_first=0.0, deadline=core.Deadline(1e-3))
    assert late.lower_bound <= best.energy


def test_threads_change_no_bit():
    pairs = [(i, j) for i in range(20) for j in range(i)]
    flat = spin_graph(20, pairs, 1)
    order = elimination_order(flat, 1e9).variables
    one, three = (
        core.best_labellings(flat.native, order, 5, math.inf, threads) for threads in (1, 3)
    )
    assert one == three
    sums = [core.LogSums(flat.native, order, threads) for threads in (1, 3)]
    assert all(s.up() and s.down() for s in sums)
    assert sums[0].log_sum == sums[1].log_sum
    for a, b in zip(*(s.marginals() for s in sums), strict=True):
        np.testing.assert_array_equal(a, b)


# --- the best labellings -------------------------------------------------------------------------


@settings(max_examples=60)
@given(seeds, st.integers(1, 12))
def test_the_best_labellings_are_those_of_enumeration(seed, m):
    flat = random_flat(seed, most=5)
    order = elimination_order(flat, 1e9).variables
    truth = [(e, x) for e, x in all_energies(flat) if e < math.inf]
    found = core.best_labellings(flat.native, order, m, math.inf, 1)
    assert found["complete"]
    assert len(found["labels"]) == min(m, len(truth))
    assert len({tuple(x) for x in found["labels"]}) == len(found["labels"])
    for labels, bound, (energy, _) in zip(found["labels"], found["bounds"], truth, strict=False):
        assert bound <= energy  # a lower bound on the energy of this rank, in exact arithmetic
        assert exact_energy(flat, np.array(labels)) - Fraction(bound) <= 2 * found["slack"] + 1e-9
    if len(truth) >= m:  # a finer unit, from the energy of the last labelling
        upper = float(truth[m - 1][0]) + 1e-6
        finer = core.best_labellings(flat.native, order, m, upper, 1)
        assert len(finer["labels"]) == m
        for bound, (energy, _) in zip(finer["bounds"], truth, strict=False):
            assert bound <= energy


# --- sums ----------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(seeds)
def test_sums_are_those_of_enumeration(seed):
    flat = random_flat(seed)
    logs = FlatModel(*arrays(flat)[:4], -np.where(flat.tables > 50, np.inf, flat.tables), 0.0)
    every = [np.array(x) for x in itertools.product(*map(range, logs.num_labels.tolist()))]
    values = np.array([sum(terms(logs, x)) for x in every])
    sums = core.LogSums(logs.native, elimination_order(logs, 1e9).variables, 1)
    while not sums.up(core.Deadline(0.0)):
        pass
    if np.isneginf(values).all():
        assert sums.log_sum == -math.inf
        return
    total = np.logaddexp.reduce(values)
    assert sums.log_sum == pytest.approx(total, rel=1e-12, abs=1e-11)
    while not sums.down(core.Deadline(0.0)):
        pass
    nodes, factors = sums.marginals()
    p = np.exp(values - total)
    states = np.array(every)
    expected = [np.bincount(states[:, i], p, d) for i, d in enumerate(logs.num_labels)]
    np.testing.assert_allclose(nodes, np.concatenate(expected), atol=1e-11)
    expected = [np.zeros(0)]
    for a, b in itertools.pairwise(logs.scope_start.tolist()):
        scope = logs.scope[a:b]
        shape = tuple(logs.num_labels[scope])
        joint = np.ravel_multi_index(states[:, scope].T, shape)
        expected.append(np.bincount(joint, p, math.prod(shape)))
    np.testing.assert_allclose(factors, np.concatenate(expected), atol=1e-11)

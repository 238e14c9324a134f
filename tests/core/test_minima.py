"""Bounds are no larger than in exact arithmetic, and hardly smaller."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

import softmap
from softmap import core
from softmap.model.layout import layout
from support.families import FAMILIES, PAIRWISE
from support.proof_models import Case, Sizes, case
from support.strategies import seeds

# All sums are whole numbers of 2^-FINE: products of two floats still are when they are divided by
# 2^52 twice, as the units in the last place are.
FINE = 2 * 1074 + 2 * 52
LAST = 52
TINY = 1 << FINE - 1074


def native(model):
    return layout(model.network)


def bound_of(case: Case, threads: int = 1) -> float:
    return core.dual_bound(native(case.model), case.lam, case.model.constant, threads)


def units(value: float | Fraction) -> int:
    """A finite float, or a product of two, as a whole number of `2 ** -FINE`."""
    above, below = value.as_integer_ratio()
    return above << FINE - (below.bit_length() - 1)  # what is below is a power of two


def exact_bound(case: Case) -> tuple[Fraction | None, Fraction]:
    """The exact dual bound (None: +inf), and how much rounding may take off.

    An entry may be lowered by a few units in the last place of its own terms, and the least of the
    lowered entries counts: large terms at entries far above the least one allow nothing.
    """
    model, lam = case.model, [units(v) for v in case.lam.tolist()]
    value = lowered = units(model.constant)
    for entries in [*node_entries(model, lam), *edge_entries(case, lam)]:
        if not entries:
            return None, Fraction(0)
        value += min(one for one, _ in entries)
        lowered += min(one - loss for one, loss in entries)
    loss = value - lowered + (abs(value) >> LAST) + TINY
    return Fraction(value, 1 << FINE), Fraction(loss, 1 << FINE)


def node_entries(model, lam):
    unary, ends = model.unary.tolist(), model.edges.ravel().tolist()
    for i in range(model.n):
        entries = []
        starts = [int(model.network.half_offset[h]) for h, end in enumerate(ends) if end == i]
        for x in range(model.num_labels[i]):
            cost = unary[model.network.node_offset[i] + x]
            if cost == np.inf:
                continue
            terms = [units(cost), *(-lam[start + x] for start in starts)]
            total = sum(terms)
            second = 8 * len(terms) ** 2 * sum(map(abs, terms)) >> 2 * LAST
            entries.append((total, (abs(total) >> LAST) + second + TINY))
        yield entries


def edge_entries(case, lam):
    model = case.model
    forbidden = np.isinf(model.unary).tolist()
    nodes, halves = model.network.node_offset.tolist(), model.network.half_offset.tolist()
    for e, (i, j) in enumerate(model.edges.tolist()):
        entries, pair = [], case.pair[e]
        for x in range(model.num_labels[i]):
            if forbidden[nodes[i] + x]:
                continue
            a = lam[halves[2 * e] + x]
            for y in range(model.num_labels[j]):
                if forbidden[nodes[j] + y] or (exact := pair(x, y)) is None:
                    continue
                b, cost = lam[halves[2 * e + 1] + y], units(exact)
                largest = max(abs(a), abs(b), abs(cost))
                steps = 5 + 2 * abs(x - y)
                entries.append((a + b + cost, (steps * largest >> LAST) + steps * TINY))
        yield entries


def check(case: Case) -> None:
    bound, (want, loss) = bound_of(case), exact_bound(case)
    assert not math.isnan(bound)
    if want is None:
        assert bound == np.inf
        return
    assert Fraction(bound) <= want
    assert want - Fraction(bound) <= loss


SIZES = [
    Sizes(),
    Sizes(hard=True),
    Sizes(whole=True),
    *(Sizes(scale=s, hard=h) for s in (1e-300, 1e-200, 1e-10, 1e200, 1e290) for h in (False, True)),
    Sizes(scale=5e-324, whole=True),
    *(Sizes(big=10.0**k, lam=s) for k in (6, 9, 12, 15, 18) for s in (1.0, 10.0**k)),
    Sizes(lam=1e16),
    Sizes(lam=1e16, hard=True),
    Sizes(lam=1e-16, big=1e15, hard=True),
]


EACH = settings().max_examples // 5  # seeds


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_a_bound_is_just_under_the_exact_one(family, sizes):
    for seed in range(EACH):
        check(case(seed, sizes, (family,)))


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_so_it_is_for_mixtures(sizes):
    for seed in range(100, 100 + EACH):
        check(case(seed, sizes))


def test_wide_labels_take_single_edges():
    for seed in range(4):
        check(case(seed, Sizes(lam=1e3), PAIRWISE, most=70))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("lam", [0.0, 1.0, 2.0])
def test_overflow_lowers_the_bound(family, lam):
    for seed in range(40):
        try:
            one = case(seed, Sizes(scale=1e308, lam=lam, big=1.5), (family,))
        except softmap.ModelError:  # a product that overflows
            continue
        bound, (want, _) = bound_of(one), exact_bound(one)
        assert not math.isnan(bound)
        assert bound == -np.inf or Fraction(bound) <= want


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_multipliers_that_are_no_numbers_prove_nothing(bad):
    proved = 0
    for seed in range(20):
        one = case(seed, Sizes(hard=True), PAIRWISE)
        where = seed % one.lam.size
        one.lam[where] = bad
        h = int(np.searchsorted(one.model.network.half_offset, where, side="right")) - 1
        state = one.model.network.node_offset[one.model.edges[h // 2][h % 2]]
        state += where - one.model.network.half_offset[h]
        if one.model.unary[state] < np.inf:
            assert bound_of(one) == -np.inf
            proved += 1
    assert proved


def test_minima_agree_with_plain_numpy():
    for seed in range(60):
        one = case(seed, Sizes(hard=seed % 2 == 0))
        model, lam = one.model, one.lam
        nodes, edges = np.empty(model.n), np.empty(model.m)
        core.node_minima(native(model), lam, nodes)
        core.edge_minima(native(model), lam, edges)
        reduced = model.unary.copy()
        for e, (i, j) in enumerate(model.edges):
            a, b = lam[model.network.half_slice(2 * e)], lam[model.network.half_slice(2 * e + 1)]
            reduced[model.network.node_slice(i)] -= a
            reduced[model.network.node_slice(j)] -= b
            table = model.network.table(e) + a[:, None] + b[None, :]
            table[np.isinf(model.network.unary_of(i))] = np.inf
            table[:, np.isinf(model.network.unary_of(j))] = np.inf
            assert edges[e] == pytest.approx(table.min(), rel=1e-13, abs=1e-13)
            assert edges[e] <= table.min() + 1e-15 * abs(edges[e]) or edges[e] == np.inf
        want = np.minimum.reduceat(reduced, model.network.node_offset[:-1])
        np.testing.assert_allclose(nodes, want, rtol=1e-13, atol=1e-13)


def test_threads_change_no_bit():
    rng = np.random.default_rng(0)
    n = 12_000
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    weights = rng.normal(size=n - 1)
    model = softmap.Model(
        rng.normal(size=(n, 5)), edges, softmap.TruncatedLinear(weights, rng.uniform(0, 4, n - 1))
    )
    lam = rng.normal(size=int(model.network.half_offset[-1]))
    held = native(model)
    bounds = {core.dual_bound(held, lam, 0.3, threads) for threads in (1, 2, 3, 5)}
    assert len(bounds) == 1
    single, several = np.empty((2, model.m))
    core.edge_minima(held, lam, single, 1)
    core.edge_minima(held, lam, several, 3)
    np.testing.assert_array_equal(single, several)


def test_rounding_is_to_nearest_again_afterwards():
    one = case(0, Sizes())
    bound_of(one)
    assert 1.0 + 2.0**-53 == 1.0
    assert np.float64(1.0) - np.float64(2.0**-60) == 1.0


def test_a_careful_sum_loses_nothing_to_cancellation():
    assert core.careful_sum(np.array([1.0, 1e100, 1.0, -1e100])) == 2.0
    values = np.random.default_rng(0).normal(size=10_001) * 10.0 ** np.linspace(-5, 5, 10_001)
    assert core.careful_sum(values) == pytest.approx(math.fsum(values), rel=1e-15)
    assert core.careful_sum(np.array([1.0, np.inf])) == np.inf


def test_arrays_of_the_wrong_size_are_refused():
    one = case(0, Sizes())
    with pytest.raises(ValueError, match="lam must have"):
        core.dual_bound(native(one.model), one.lam[:-1], 0.0, 1)
    with pytest.raises(TypeError):
        core.dual_bound(native(one.model), one.lam.astype(np.float32), 0.0, 1)


def _rows(seed):
    rng = np.random.default_rng(seed)
    start = np.cumsum(np.concatenate([[0], rng.integers(1, 6, 9)]))
    values = rng.integers(-3, 4, start[-1]).astype(float)
    values[rng.random(len(values)) < 0.3] = np.inf
    return values, start, [values[a:b] for a, b in itertools.pairwise(start)]


@given(seeds)
def test_extremes_of_rows_are_those_of_their_finite_values(seed):
    values, start, rows = _rows(seed)
    low, high = np.empty((2, len(rows)))
    core.row_extremes(values, start, low, high)
    finite = [row[np.isfinite(row)] for row in rows]
    assert low.tolist() == [float(row.min()) if row.size else 0.0 for row in finite]
    assert high.tolist() == [float(row.max()) if row.size else 0.0 for row in finite]


@given(seeds)
def test_the_cheapest_label_is_the_first_of_least_cost(seed):
    values, _, rows = _rows(seed)
    labels = np.empty(len(rows), np.int64)
    model = softmap.Model([np.zeros(len(row)) for row in rows], np.zeros((0, 2), int), [])
    core.cheapest(native(model), values, labels)
    assert labels.tolist() == [int(np.argmin(row)) for row in rows]


def test_rows_without_values_are_refused():
    with pytest.raises(ValueError, match="row 1 has no values"):
        core.row_extremes(np.zeros(2), np.array([0, 1, 1]), *np.empty((2, 2)))

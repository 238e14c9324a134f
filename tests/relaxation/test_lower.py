"""Tables rounded down against products in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmap import Model, SharedTables, Tables, TruncatedLinear, TruncatedQuadratic
from softmap.model.potentials.tables import TableStack
from softmap.relaxation.bounds import reduced_nodes
from softmap.relaxation.dual import reduced_unary
from softmap.relaxation.flat import lower_tables
from support.strategies import models, random_lam

numbers = st.floats(-1e200, 1e200, allow_subnormal=False)


@given(weight=numbers, truncation=st.floats(0, 8), square=st.booleans())
def test_products_are_rounded_down_by_one_step_at_most(weight, truncation, square):
    kind = TruncatedQuadratic if square else TruncatedLinear
    model = Model([np.zeros(3), np.zeros(4)], [[0, 1]], kind([weight], [truncation]))
    found = lower_tables(model.network, np.array([0])).reshape(3, 4)
    for x in range(3):
        for y in range(4):
            distance = min(float((x - y) ** 2 if square else abs(x - y)), truncation)
            exact = Fraction(weight) * Fraction(distance)
            assert Fraction(found[x, y]) <= exact
            assert Fraction(np.nextafter(np.nextafter(found[x, y], np.inf), np.inf)) > exact


@given(weight=st.floats(0.1, 10), truncation=st.floats(0.1, 8), power=st.integers(-900, 900))
def test_products_are_rounded_alike_at_all_scales(weight, truncation, power):
    def lowered(scaled):
        model = Model(np.zeros((2, 3)), [[0, 1]], TruncatedLinear([scaled], [truncation]))
        return lower_tables(model.network, np.array([0]))

    np.testing.assert_array_equal(
        lowered(np.ldexp(weight, power)), np.ldexp(lowered(weight), power)
    )


@given(
    weight=st.floats(0, 1e200, allow_subnormal=False),
    entry=st.floats(-1e100, 1e100, allow_subnormal=False),
)
def test_so_are_shared_tables(weight, entry):
    model = Model(np.zeros((2, 1)), [[0, 1]], SharedTables([[[entry]]], [0], [weight]))
    assert Fraction(lower_tables(model.network, np.array([0]))[0]) <= Fraction(weight) * Fraction(
        entry
    )


def test_tables_stay_as_they_are():
    rng = np.random.default_rng(1)
    tables = rng.normal(size=(3, 2, 2))
    tables[1, 0, 1] = np.inf
    model = Model(np.zeros((4, 2)), [[0, 1], [1, 2], [2, 3]], Tables(tables))
    found = lower_tables(model.network, np.array([2, 1]))
    np.testing.assert_array_equal(found, tables[[2, 1]].ravel())
    assert not np.shares_memory(found, model.potentials[0].tables)


def test_tables_of_many_shapes_are_not_listed_one_by_one(monkeypatch):
    rng = np.random.default_rng(2)
    labels = [2, 3, 2, 4, 3]
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [0, 2]])
    tables = [rng.normal(size=(labels[i], labels[j])) for i, j in edges]
    model = Model([np.zeros(d) for d in labels], edges, Tables(tables))
    monkeypatch.setattr(TableStack, "split", lambda _: pytest.fail("a list of all tables"))
    expected = np.concatenate([table.ravel() for table in tables])
    np.testing.assert_array_equal(lower_tables(model.network, np.arange(5)), expected)


@given(model=models(), seed=st.integers(0, 99))
def test_compiled_reduced_costs_are_the_plain_ones(model, seed):
    lam = random_lam(model, seed)
    expected = reduced_unary(model.network, lam)
    size = np.abs(lam).max(initial=1.0)
    for threads in (1, 2):
        found = reduced_nodes(model.network, lam, threads)
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12 * size)


@given(models(), st.integers(0, 2**32 - 1))
def test_tables_of_some_edges_in_any_order(model, seed):
    rng = np.random.default_rng(seed)
    for edges in (np.arange(model.m), rng.permutation(model.m)[: rng.integers(model.m + 1)]):
        found = np.split(
            lower_tables(model.network, edges), np.cumsum(np.diff(model.network.edge_offset)[edges])
        )
        assert not found[-1].size
        for e, table in zip(edges.tolist(), found, strict=False):
            np.testing.assert_allclose(table, model.network.table(e).ravel(), rtol=1e-15)

"""Models from factors of any arity have the energies of the factors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmap.errors import ModelError
from softmap.model import Cardinality, Model
from softmap.model.potentials import Potts

NAN, INF = np.nan, np.inf


@st.composite
def factor_lists(draw):
    """Label counts, and factors of arities 0 to 4 over few variables, so that scopes repeat."""
    n = draw(st.integers(1, 4))
    counts = draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    scopes = st.permutations(range(n)).flatmap(
        lambda order: st.integers(0, n).map(lambda arity: tuple(order[:arity]))
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    factors = []
    for scope in draw(st.lists(scopes, max_size=8)):
        table = np.array(rng.normal(size=[counts[i] for i in scope]))
        if scope:
            table[rng.random(table.shape) < 0.1] = np.inf
        factors.append((scope, table))
    return counts, factors


def energies(counts, factors):
    labellings = np.array(list(itertools.product(*(range(d) for d in counts))))
    total = [sum(float(t[tuple(x[list(s)])]) for s, t in factors) for x in labellings]
    return labellings, np.array(total)


@given(factor_lists(), st.floats(-5, 5))
def test_energies_are_those_of_the_factors(case, constant):
    counts, factors = case
    model = Model.from_factors(counts, factors, constant=constant)
    labellings, expected = energies(counts, factors)
    np.testing.assert_allclose(model.energy(labellings), expected + constant, atol=1e-12)
    np.testing.assert_allclose(model.energy(labellings[0]), expected[0] + constant, atol=1e-12)


@given(factor_lists())
def test_each_set_of_variables_becomes_one_edge_or_one_auxiliary(case):
    counts, factors = case
    model = Model.from_factors(counts, factors)
    scopes = [s if len(s) < 3 else [i for i in s if counts[i] > 1] for s, _ in factors]
    larger = {frozenset(s) for s in scopes if len(s) > 2}
    pairs = {frozenset(s) for s in scopes if len(s) == 2}
    assert model.network.num_variables == len(counts)
    assert (
        model.network.n == len(counts) + len(larger) == len(counts) + len(model.network.auxiliaries)
    )
    assert model.network.m == len(pairs) + sum(len(s) for s in larger)


def test_pairs_merge_whichever_way_they_are_written():
    first, second = np.arange(6.0).reshape(2, 3), 10 * np.arange(6.0).reshape(3, 2)
    model = Model.from_factors([2, 3], [((0, 1), first), ((1, 0), second), ((0, 1), first)])
    assert model.edges.tolist() == [[0, 1]]
    np.testing.assert_array_equal(model.network.table(0), 2 * first + second.T)


def test_constants_and_unaries_add_up():
    model = Model.from_factors([2], [((), 1.5), ((0,), [1, 2]), ((), 2.0), ((0,), [10, 20])])
    assert model.constant == 3.5
    assert model.unary.tolist() == [11.0, 22.0]


def test_auxiliary_states_follow_from_the_labels_and_are_never_shown():
    table = np.arange(12.0).reshape(2, 3, 2)
    model = Model.from_factors([2, 2, 3], [((1, 2, 0), table)])
    assert (model.network.n, model.network.num_variables) == (4, 3)
    assert model.network.num_labels.tolist() == [2, 2, 3, 12]
    states = model.network.complete([1, 0, 2])
    assert states.tolist() == [1, 0, 2, 0 * 6 + 2 * 2 + 1]
    assert model.network.unary_of(3)[states[3]] == table[0, 2, 1]
    for e, (aux, member) in enumerate(model.network.edges.tolist()):
        assert aux == 3
        assert model.network.table(e)[states[3], states[member]] == 0.0
        assert np.isfinite(model.network.table(e)).sum() == 12
    assert model.network.complete([[0, 0, 0], [1, 1, 2]])[:, 3].tolist() == [0, 11]
    with pytest.raises(ModelError, match=r"labels must have shape \(3,\)"):
        model.energy(states)
    with pytest.raises(ModelError, match=r"evidence: variable 3 is outside 0\.\.2"):
        model.condition({3: 0})


def test_auxiliaries_of_one_shape_share_their_maps():
    table = np.zeros((2, 2, 2))
    model = Model.from_factors([2] * 5, [((i, i + 1, i + 2), table) for i in range(3)])
    assert len(model.network.potentials[0].maps) == 3
    assert len(model.network.potentials[0]) == 9


def test_structured_groups_are_kept_beside_the_factors():
    pair = ((0, 1), np.ones((2, 2)))
    model = Model.from_factors([2, 2, 2], [pair], groups=[([[0, 1], [1, 2]], Potts([5.0, 7.0]))])
    assert [p.family for p in model.potentials] == ["tables", "potts"]
    assert model.energy([0, 1, 0]) == 1 + 5 + 7


def test_a_generator_may_reuse_its_array():
    def factors():
        table = np.zeros((2, 2))
        for k in range(3):
            table[:] = k
            yield (k, k + 1), table

    assert Model.from_factors([2] * 4, factors()).energy([0] * 4) == 0 + 1 + 2


def test_what_is_handed_over_stays_as_it_was():
    table, other = np.ones((2, 2)), np.ones((2, 2))
    Model.from_factors([2, 2], [((0, 1), table), ((0, 1), other), ((1, 0), other)])
    assert (table == 1).all()
    assert (other == 1).all()


def test_many_pairs_are_fine():
    rng = np.random.default_rng(0)
    n = 2_000
    factors = [((k % n, (7 * k + 1 + k // n) % n), rng.normal(size=(2, 2))) for k in range(3 * n)]
    factors = [(s, t) for s, t in factors if s[0] != s[1]]
    model = Model.from_factors([2] * n, factors)
    labels = rng.integers(0, 2, n)
    expected = sum(t[labels[i], labels[j]] for (i, j), t in factors)
    assert model.energy(labels) == pytest.approx(expected)


def test_chains_that_end_in_variables_with_one_label():
    """What remains of such a factor is a cost of the running variable alone."""
    counts = [2] * 8 + [1, 1]
    costs = np.where(np.arange(11) == 3, 0.0, np.inf)
    factor = Cardinality(range(10), [1] * 8 + [0, 0], costs)
    model = Model.from_factors(counts, [factor])
    assert model.energy([1, 0, 0, 0, 0, 0, 0, 0, 0, 0]) == 0.0
    assert model.energy([1, 1, 0, 0, 0, 0, 0, 0, 0, 0]) == INF


BAD = {
    "num_labels must list the label count": lambda: Model.from_factors([], []),
    "num_labels must be integers, not float64": lambda: Model.from_factors([2.5], []),
    "variable 1 has no labels": lambda: Model.from_factors([2, 0], []),
    "factor 1: scope (0, 0) names a variable twice": lambda: Model.from_factors(
        [2], [((), 0.0), ((0, 0), np.eye(2))]
    ),
    "factor 0: variable 1 is outside 0..0": lambda: Model.from_factors([2], [((1,), [0, 0])]),
    "factor 0: the scope must be a tuple of variable numbers, not 0": lambda: Model.from_factors(
        [2], [(0, [0, 0])]
    ),
    "variable numbers, not (0.5,)": lambda: Model.from_factors([2], [((0.5,), [0, 0])]),
    "factor 0 over (1, 0) needs costs of shape (3, 2), not (2, 3)": lambda: Model.from_factors(
        [2, 3], [((1, 0), np.zeros((2, 3)))]
    ),
    "factor 0 over (0, 1) has nan at (1, 0)": lambda: Model.from_factors(
        [2, 2], [((0, 1), [[0, 0], [NAN, 0]])]
    ),
    "factor 0 over (0,) has -inf at (1,)": lambda: Model.from_factors([2], [((0,), [0, -INF])]),
    "factor 0 without variables must be finite, not inf": lambda: Model.from_factors(
        [2], [((), INF)]
    ),
    "costs of factor 0 must be real numbers": lambda: Model.from_factors([2], [((0,), "ab")]),
    "constant must be finite": lambda: Model.from_factors([2], [], constant=NAN),
}


@pytest.mark.parametrize("text", BAD)
def test_bad_factors_are_named(text):
    with pytest.raises(ModelError) as caught:
        BAD[text]()
    assert text in str(caught.value)

"""Arc consistency against a plain numpy twin that goes round and round until nothing changes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given

from softmap.errors import InfeasibleModel
from softmap.model import Model
from softmap.model.potentials import Potts, Projection, Tables
from softmap.relaxation.consistency import arc_consistency, tighten
from support.oracles import energy_by_hand
from support.strategies import models, seeds

NOT_EQUAL = np.where(np.eye(2, dtype=bool), np.inf, 0.0)


def slow_consistency(model: Model) -> np.ndarray:
    """The greatest fixed point, empty variables included."""
    allowed = np.isfinite(model.network.unary)
    while True:
        before = allowed.copy()
        for e, (i, j) in enumerate(model.network.edges):
            pair = np.isfinite(model.network.table(e))
            first, second = (allowed[model.network.node_slice(v)] for v in (i, j))
            first &= (pair & second[None, :]).any(axis=1)
            second &= (pair & first[:, None]).any(axis=0)
        if (before == allowed).all():
            return allowed


def empty_nodes(model: Model, allowed: np.ndarray) -> set[int]:
    return {i for i in range(model.n) if not allowed[model.network.node_slice(i)].any()}


def random_constraints(seed: int) -> Model:
    """Ragged, dense in +inf, often infeasible."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    counts = rng.integers(1, 4, n)
    edges = np.array([e for e in itertools.combinations(range(n), 2) if rng.random() < 0.7])
    edges = edges.reshape(-1, 2)
    share = rng.choice([0.2, 0.5])

    def table(*shape: int) -> np.ndarray:
        return np.where(rng.random(shape) < share, np.inf, rng.normal(size=shape))

    unary = [np.where(rng.random(d) < 0.1, np.inf, 0.0) for d in counts]
    return Model(unary, edges, Tables([table(counts[i], counts[j]) for i, j in edges]))


@given(models(hard=True))
def test_the_mask_is_the_fixed_point_of_the_twin(model):
    np.testing.assert_array_equal(arc_consistency(model.network), slow_consistency(model))


@given(seeds)
def test_infeasible_exactly_when_the_twin_empties_a_variable_and_names_one(seed):
    model = random_constraints(seed)
    expected = slow_consistency(model)
    empty = empty_nodes(model, expected)
    if not empty:
        np.testing.assert_array_equal(arc_consistency(model), expected)
        return
    with pytest.raises(InfeasibleModel, match="leave variable") as caught:
        arc_consistency(model)
    assert caught.value.variable in empty
    assert f"variable {caught.value.variable} " in str(caught.value)


@given(models(hard=True, max_n=4, max_d=3))
def test_tightening_keeps_every_labelling_of_finite_cost(model):
    tight = tighten(model)
    ranges = [range(int(d)) for d in model.network.num_labels[: model.network.num_variables]]
    labellings = np.array(list(itertools.product(*ranges)))
    expected = [energy_by_hand(model, model.network.complete(x)) for x in labellings]
    np.testing.assert_allclose(tight.energy(labellings), expected)
    assert tighten(tight) is tight
    np.testing.assert_array_equal(arc_consistency(tight), np.isfinite(tight.unary))


@given(models(hard=False))
def test_without_constraints_everything_is_allowed(model):
    assert arc_consistency(model).all()
    assert tighten(model) is model.network


def test_a_fixed_variable_runs_down_a_long_chain():
    n = 500
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)[::-1]
    chain = Model(np.zeros((n, 2)), edges, np.broadcast_to(NOT_EQUAL, (n - 1, 2, 2)))
    allowed = arc_consistency(chain.condition({0: 1})).reshape(n, 2)
    np.testing.assert_array_equal(allowed[:, 1], np.arange(n) % 2 == 0)
    with pytest.raises(InfeasibleModel):
        arc_consistency(chain.condition({0: 1, n - 1: 1}))


def test_potts_of_infinite_weight_is_equality():
    model = Model(np.zeros((3, 3)), [[0, 1], [1, 2]], Potts([np.inf, np.inf]))
    assert model.network.has_forbidden
    allowed = arc_consistency(model.condition({2: 1})).reshape(3, 3)
    np.testing.assert_array_equal(allowed, [[False, True, False]] * 3)


def test_a_variable_that_is_all_forbidden_is_named_even_when_isolated():
    model = Model([[0.0], [np.inf, np.inf]], [], [])
    with pytest.raises(InfeasibleModel, match="leave variable 1 without a state"):
        arc_consistency(model)
    with pytest.raises(InfeasibleModel) as caught:
        tighten(model)
    assert caught.value.variable == 1


def test_an_impossible_factor_is_named_by_its_members():
    model = Model.from_factors([2] * 4, [((3, 1, 2), np.full((2, 2, 2), np.inf))])
    with pytest.raises(InfeasibleModel, match=r"the factor over variables \[1, 2, 3\]") as caught:
        arc_consistency(model)
    assert caught.value.variable == 1


def test_a_label_that_no_joint_state_projects_to_is_forbidden():
    tie = Projection([[0, 2, 2]], [3])
    model = Model([np.zeros(3), np.zeros(3)], [[0, 1]], tie)
    assert model.network.has_forbidden
    assert arc_consistency(model).tolist() == [True, True, True, True, False, True]


def test_a_factor_passes_constraints_on():
    odd = np.where(np.indices((2, 2, 2)).sum(axis=0) % 2, 0.0, np.inf)
    model = Model.from_factors([2, 2, 2], [((0, 1, 2), odd)])
    assert arc_consistency(model)[:6].all()
    allowed = arc_consistency(model.condition({0: 1, 1: 1}))
    assert allowed[:6].tolist() == [False, True, False, True, False, True]


def large_constraints(seed: int, share: float) -> Model:
    """More edges than one thread looks at; a variable that is given starts long chains."""
    rng = np.random.default_rng(seed)
    n, labels = 9_000, 3
    chain = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    across = np.sort(rng.integers(n, size=(2_000, 2)), axis=1)
    across = np.unique(across[across[:, 0] < across[:, 1] - 1], axis=0)
    edges = np.concatenate([chain, across])
    edges = edges[rng.permutation(len(edges))]
    excluded = rng.random((len(edges), labels, labels)) < share
    excluded[:, 0, 0] = False  # label 0 of all variables is possible
    excluded[rng.random(len(edges)) < 0.5] |= ~np.eye(labels, dtype=bool)
    unary = np.where(rng.random((n, labels)) < 0.05, np.inf, 0.0)
    unary[:, 0] = 0.0
    return Model(unary, edges, Tables(np.where(excluded, np.inf, 1.0)))


def rounds_consistency(model: Model) -> tuple[np.ndarray, int]:
    """The twin for equal label counts, all edges at once, with its number of rounds."""
    pair = np.isfinite(np.array(model.potentials[0].tables))
    (i, j), allowed = model.edges.T, np.isfinite(model.unary).reshape(model.n, -1)
    for rounds in itertools.count(1):
        before = allowed.copy()
        np.logical_and.at(allowed, i, (pair & before[j][:, None, :]).any(axis=2))
        np.logical_and.at(allowed, j, (pair & before[i][:, :, None]).any(axis=1))
        if (before == allowed).all():
            return allowed.ravel(), rounds
    raise AssertionError


@pytest.mark.threads
@pytest.mark.parametrize("share", [0.05, 0.2, 0.35])
def test_rounds_on_several_threads_reach_the_fixed_point_of_the_twin(share):
    model = large_constraints(3, share)
    expected, rounds = rounds_consistency(model)
    assert rounds > 3
    assert not np.array_equal(expected, np.isfinite(model.unary))
    for threads in (1, 2, 5):
        np.testing.assert_array_equal(arc_consistency(model, threads), expected)


@pytest.mark.threads
def test_many_edges_that_leave_a_variable_without_states_are_found_out():
    model = large_constraints(4, 0.2)
    tables = np.array(model.potentials[0].tables)
    tables[:, 0, :] = np.inf  # the first end of an edge may not have label 0
    model = Model(model.unary.reshape(model.n, -1), model.edges, Tables(tables))
    expected, _ = rounds_consistency(model)
    named = set()
    for threads in (1, 2, 5):
        with pytest.raises(InfeasibleModel) as error:
            arc_consistency(model, threads)
        assert error.value.variable in empty_nodes(model, expected)
        named.add(error.value.variable)
    assert len(named) == 1

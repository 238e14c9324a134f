"""The m best and m diverse labellings, against enumeration."""

import functools
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import softmap
from softmap.labels.exact import ExactSearch
from softmap.relaxation.flat import flatten
from softmap.run.problem import Problem
from support.oracles import energies_by_hand
from support.small_models import random_model
from support.strategies import FAMILIES

CASES = [(family, seed) for family in FAMILIES for seed in range(6)]


@functools.cache
def ranked(family, seed):
    """A model, and all its labellings of finite cost, cheapest first: for several tests."""
    model = random_model(family, seed)
    return model, *ranking(model)


def ranking(model):
    """All labellings of finite cost, cheapest first."""
    ranges = [range(int(d)) for d in model.network.num_labels[: model.network.num_variables]]
    every = np.array(list(product(*ranges)))
    energies = energies_by_hand(model, model.network.complete(every))
    order = np.argsort(energies, kind="stable")
    order = order[np.isfinite(energies[order])]
    return every[order], energies[order]


def close(a, b):
    return a == pytest.approx(b, rel=2e-6, abs=1e-6)


@pytest.mark.parametrize(("family", "seed"), CASES)
def test_the_best_labellings_in_order(family, seed):
    model, _, energies = ranked(family, seed)
    if not len(energies):
        return
    found = softmap.solve_mbest(model, 9)
    assert len(found) == min(9, len(energies))
    assert len({tuple(entry.labels.flat) for entry in found}) == len(found)
    for entry, energy in zip(found, energies, strict=False):
        assert close(entry.energy, energy)
        assert entry.energy == model.energy(entry.labels)
        assert entry.proved
        assert entry.bound <= energy + 1e-12 * abs(energy)


@pytest.mark.parametrize("distance", [1, 2, 3])
@pytest.mark.parametrize(("family", "seed"), CASES[::2])
def test_diverse_labellings_are_the_best_that_are_far_enough(family, seed, distance):
    model, every, energies = ranked(family, seed)
    if not len(energies):
        return
    found = softmap.solve_mbest(model, 4, diversity=distance)
    for k, entry in enumerate(found):
        earlier = [other.labels for other in found[:k]]
        far = np.all([(every != x).sum(axis=1) >= distance for x in earlier], axis=0)
        left = energies[np.broadcast_to(far, len(energies))]
        assert all((entry.labels != x).sum() >= distance for x in earlier)
        assert close(entry.energy, left.min())
        assert entry.bound <= left.min() + 1e-12 * abs(left.min())
        assert entry.proved
    if len(found) < 4:
        earlier = [entry.labels for entry in found]
        assert not np.all([(every != x).sum(axis=1) >= distance for x in earlier], axis=0).any()


def test_larger_factors_and_constants():
    rng = np.random.default_rng(5)
    factors = [((0, 1, 2), rng.normal(size=(2, 3, 2))), ((2, 3), rng.normal(size=(2, 2)))]
    model = softmap.Model.from_factors([2, 3, 2, 2], factors, constant=100.0)
    _, energies = ranking(model)
    found = softmap.solve_mbest(model, 24)
    np.testing.assert_allclose([e.energy for e in found], energies, atol=1e-4)
    assert all(e.bound <= energy + 1e-12 for e, energy in zip(found, energies, strict=True))


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_costs_of_any_size(scale):
    model = softmap.generators.random_grid(3, 3, 2, seed=2)
    big = softmap.Model(
        (scale * model.unary).reshape(9, 2),
        model.edges,
        scale * np.stack(list(model.network.tables())),
    )
    plain = [tuple(e.labels.flat) for e in softmap.solve_mbest(model, 4)]
    assert [tuple(e.labels.flat) for e in softmap.solve_mbest(big, 4)] == plain


def test_without_time_labellings_differ_and_bounds_hold():
    model = softmap.generators.random_grid(4, 3, 2, seed=3)
    _, energies = ranking(model)
    found = softmap.solve_mbest(model, 6, time_limit=0.0)
    assert len({tuple(entry.labels.flat) for entry in found}) == len(found) == 6
    for entry, energy in zip(found, energies, strict=False):
        assert entry.bound <= energy + 1e-12 <= entry.energy + 2e-12


def test_infeasible_models_say_so():
    model = softmap.Model(np.zeros((2, 2)), [[0, 1]], np.full((1, 2, 2), np.inf))
    with pytest.raises(softmap.InfeasibleModel):
        softmap.solve_mbest(model, 2)


@pytest.mark.parametrize("wrong", [{"m": 0}, {"m": 2, "diversity": 0}, {"m": 2, "gap": -1.0}])
def test_wrong_values_are_named(wrong):
    name = list(wrong)[-1]
    with pytest.raises(softmap.OptionError, match=name):
        softmap.solve_mbest(softmap.generators.random_tree(4), **wrong)


@pytest.mark.parametrize("constant", [0.0, 1e220])
@pytest.mark.parametrize("diversity", [None, 1])
def test_bounds_hold_for_costs_that_are_tiny_beside_others(diversity, constant):
    """Such costs are 0 in the units of a run, where others are not."""
    unary = [[-1e-139, 0.0], [0.0, -1e-139], [1e220, -1e-140]]
    table = [[0.0, 1e200], [1e200, 1e-141]]
    model = softmap.Model(unary, [[0, 1]], [table], constant=constant)
    exact = sorted(
        Fraction(constant)
        + sum(Fraction(unary[i][x]) for i, x in enumerate(labels))
        + Fraction(model.network.table(0)[labels[0], labels[1]])
        for labels in product(range(2), repeat=3)
    )
    for entry, best in zip(softmap.solve_mbest(model, 2, diversity=diversity), exact, strict=False):
        assert Fraction(entry.bound) <= best
        assert not entry.proved or entry.energy == pytest.approx(float(best), rel=1e-5)


def test_a_search_rounds_tiny_negative_costs_down():
    unary = [[-1e-139, 0.0], [0.0, -1e-139], [1e220, -1e-140]]
    tables = [[[0.0, 1e200], [1e200, 1e-141]], [[0.0, 1e210], [1e100, -1e-139]]]
    model = softmap.Model(unary, [[0, 1], [1, 2]], softmap.Tables(tables))
    assert ExactSearch(flatten(model.network)).run().lower_bound <= model.energy([1, 1, 1])


def test_units_that_round_no_cost_are_those_of_a_consistent_model():
    """Bounds of parts and of the whole are of the same states."""
    never = softmap.Tables([[[1e200, 0.0], [np.inf, np.inf]]])
    model = softmap.Model([[0.0, 1.0], [-1e-139, 0.0]], [[0, 1]], never, constant=3.0)
    problem = Problem.unrounded(model)
    assert problem.model.unary.tolist() == [0.0, np.inf, -1e-139, 0.0]
    assert (problem.exponent, problem.model.constant) == (0, 0.0)


def test_a_proof_of_ranks_may_begin_with_a_search_of_all_labellings(tmp_path):
    """The run before it found other labels of nearly the same cost."""
    inf = np.inf
    model = softmap.Model(
        [
            np.array([0.4690558612346649, -0.7388782501220703, -1e16, -0.4690558612346649]),
            np.array([0.1, inf, -0.7388782501220703]),
            np.array([-1e16, 0.3333333333333333]),
            np.array([0.7388782501220703, -0.5743005871772766, -0.1]),
            np.array([-0.3333333333333333, 0.4690558612346649]),
            np.array([0.8968374133110046, 0.8968374133110046]),
        ],
        None,
        [
            (
                [(2, 4)],
                softmap.Tables(
                    [[[0.7388782501220703, -0.04360601305961609], [-1e16, -0.7388782501220703]]]
                ),
            ),
            ([(4, 0)], softmap.TruncatedLinear([0.5743005871772766], [1.0])),
            ([(5, 4)], softmap.Tables([[[inf, 1e16], [-0.3333333333333333, 0.4690558612346649]]])),
            (
                [(3, 1)],
                softmap.SharedTables(
                    [
                        [
                            [-0.4690558612346649, 0.9001182317733765, 0.1],
                            [-0.7388782501220703, -0.8968374133110046, -0.5743005871772766],
                            [-0.8968374133110046, -0.3333333333333333, -0.3333333333333333],
                        ]
                    ],
                    [0],
                    [0.0],
                ),
            ),
            (
                [(3, 4)],
                softmap.SharedTables(
                    [
                        [
                            [-0.7388782501220703, 0.9001182317733765],
                            [0.04360601305961609, -0.8968374133110046],
                            [-0.3333333333333333, -0.5743005871772766],
                        ]
                    ],
                    [0],
                    [0.0],
                ),
            ),
            ([(5, 2)], softmap.Potts([0.9001182317733765])),
            (
                [(3, 4)],
                softmap.SharedTables(
                    [
                        [
                            [0.3333333333333333, 0.8968374133110046],
                            [0.9001182317733765, inf],
                            [inf, -0.9001182317733765],
                        ]
                    ],
                    [0],
                    [3.0],
                ),
            ),
            ([(2, 0)], softmap.Potts([0.8968374133110046])),
            (
                [(1, 0)],
                softmap.Tables(
                    [
                        [
                            [-1e16, 0.8968374133110046, 0.8968374133110046, inf],
                            [-1e16, 0.7388782501220703, inf, -0.1],
                            [1e16, inf, -0.8968374133110046, 0.5743005871772766],
                        ]
                    ]
                ),
            ),
        ],
        constant=-0.8968374133110046,
    )
    path = tmp_path / "ranks.proof"
    assert len(softmap.solve_mbest(model, 1, threads=1, proof=path)) == 1  # KeyError
    assert softmap.verify(model, proof=path).holds

"""Tightened models: the same energies, a tighter LP, and λ that keeps its bound."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmap import core, lp
from softmap.errors import ModelError
from softmap.model import Model
from softmap.model.potentials import Potts, Projection
from softmap.relaxation.bounds import dual_bound
from softmap.subsolvers.clusters.regions import arrange, build, carry, region_order
from support.oracles import brute_force, energy_by_hand
from support.small_models import cases, random_clusters, random_labels, random_model
from support.strategies import random_lam

CASES = cases()


@pytest.mark.parametrize(("family", "seed"), CASES)
def test_energies_stay_and_the_lp_lies_between_the_old_one_and_the_optimum(family, seed):
    model = random_model(family, seed)
    tight = build(model.network, random_clusters(model, seed)).model
    labels = random_labels(model, seed)
    expected = energy_by_hand(model, model.network.complete(labels))
    assert energy_by_hand(tight, tight.complete(labels)) == pytest.approx(expected, abs=1e-9)
    optimum = brute_force(model)[0]
    before, after = lp.solve(model).value, lp.solve(tight).value
    assert before - 1e-6 <= after <= optimum + 1e-6


@pytest.mark.parametrize(("family", "seed"), CASES)
def test_carried_lam_keeps_its_bound(family, seed):
    model = random_model(family, seed)
    first, more = random_clusters(model, seed), random_clusters(model, seed + 1)
    plain, some, all_of_them = (build(model.network, c) for c in ([], first, first + more))
    lam = random_lam(model, seed)
    on_some = carry(plain, lam, some)
    assert dual_bound(some.model, on_some) >= dual_bound(model.network, lam) - 1e-9
    on_some = on_some + random_lam(some.model, seed + 1)
    on_all = carry(some, on_some, all_of_them)
    assert dual_bound(all_of_them.model, on_all) >= dual_bound(some.model, on_some) - 1e-9


def test_a_frustrated_triangle_becomes_tight():
    model = Model(np.zeros((3, 2)), [[0, 1], [1, 2], [0, 2]], Potts([-1.0, -1.0, -1.0]))
    assert lp.solve(model).value == pytest.approx(-3.0)
    tight = build(model.network, [(2, 0, 1)])
    assert tight.clusters == ((0, 1, 2),)
    assert lp.solve(tight.model).value == pytest.approx(-2.0)


def test_a_cycle_of_four_needs_its_chord_as_a_pair():
    edges = [[0, 1], [1, 2], [2, 3], [0, 3]]
    model = Model(np.zeros((4, 2)), edges, Potts([-1.0, 1.0, 1.0, 1.0]))
    triangles = build(model.network, [(0, 1, 2), (0, 2, 3)])
    assert [0, 2] in triangles.pairs.tolist()
    face = build(model.network, [(0, 1, 2, 3)])
    assert len(face.pairs) == 4  # the diagonals carry nothing that one cluster could share
    for tight in (triangles, face):
        assert lp.solve(tight.model).value == pytest.approx(brute_force(model)[0])


def test_factors_are_tied_to_the_pairs_inside_them():
    rng = np.random.default_rng(0)
    factors = [((0, 1, 2), rng.normal(size=(2, 2, 2))), ((1, 2), rng.normal(size=(2, 2)))]
    factors += [((2, 3), rng.normal(size=(2, 2))), ((1, 3), rng.normal(size=(2, 2)))]
    model = Model.from_factors([2, 2, 2, 2], factors)
    tight = build(model.network, [(1, 2, 3)])
    pair = tight.first_pair + tight.pairs.tolist().index([1, 2])
    assert {(4, pair), (tight.first_cluster, pair)} <= set(
        zip(tight.upper, tight.lower, strict=True)
    )


def test_ties_of_one_shape_share_one_map():
    model = Model(
        np.zeros((9, 2)), [[i, j] for i in range(9) for j in range(i)], Potts(np.ones(36))
    )
    tight = build(model.network, [(i, i + 1, i + 2) for i in range(7)])
    ties = tight.model.potentials[-1]
    assert isinstance(ties, Projection)
    assert len(ties.maps) == 5  # two from pairs to variables, three from triplets to pairs


def test_another_order_of_nodes_leaves_lam_as_it_is():
    model = random_model("tables", 7)
    tight = build(model.network, random_clusters(model, 7))
    arranged, states = arrange(tight)
    lam = random_lam(tight.model, 7)
    assert dual_bound(arranged, lam) == pytest.approx(dual_bound(tight.model, lam))
    assert np.array_equal(arranged.unary[states], tight.model.unary)
    assert sorted(region_order(tight)) == list(range(tight.model.n))


@pytest.mark.parametrize("cluster", [(0, 1), (0, 1, 1), (0, 1, 9), (-1, 0, 1)])
def test_clusters_that_are_none(cluster):
    with pytest.raises(ModelError, match="cluster"):
        build(random_model("tables", 0).network, [cluster])


@given(st.integers(0, 10_000), st.integers(1, 3))
def test_blocks_are_moved_to_their_places(seed, threads):
    rng = np.random.default_rng(seed)
    size = rng.integers(0, 5, 12)
    begin = rng.integers(0, 20, 12)
    target = np.cumsum(size) - size
    source, out = rng.random(24), np.zeros(int(size.sum()) + 1)
    core.move_blocks(source, begin, size, out, target, threads)
    expected = np.concatenate([*(source[b : b + s] for b, s in zip(begin, size, strict=True)), [0]])
    assert np.array_equal(out, expected)


@pytest.mark.parametrize(
    ("begin", "size", "target"), [(3, 2, 0), (-1, 1, 0), (0, 2, 3), (0, -1, 1)]
)
def test_blocks_outside_an_array_are_refused(begin, size, target):
    numbers = [np.array([value]) for value in (begin, size, target)]
    with pytest.raises(ValueError, match="not within"):
        core.move_blocks(np.zeros(4), numbers[0], numbers[1], np.zeros(4), numbers[2], 1)


def test_blocks_are_moved_by_several_threads():
    rng = np.random.default_rng(1)
    size, source = rng.integers(1, 90, 3000), rng.random(200_000)
    begin, target = rng.integers(0, 200_000 - 90, 3000), np.cumsum(size) - size
    outs = [np.zeros(int(size.sum())) for _ in range(2)]
    for out, threads in zip(outs, (1, 3), strict=True):
        core.move_blocks(source, begin, size, out, target, threads)
    assert np.array_equal(*outs)
    assert np.array_equal(outs[0][target], source[begin])

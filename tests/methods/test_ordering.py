"""The order of passes: valid levels, wide where a graph is long and thin, natural elsewhere."""

import numpy as np
import pytest
from hypothesis import given

import softmap
from softmap import Model, core, generators, solve
from softmap.methods.sweeps.planning import PLANNING, decoding_order, pass_order
from support.strategies import models

LENGTH = 4 * PLANNING.width**2 + 5


def band(n: int, seed: int = 0) -> Model:
    """A long thin graph, numbered along itself: neighbours and those two apart."""
    rng = np.random.default_rng(seed)
    i = np.arange(n)
    edges = np.concatenate([np.stack([i[:-k], i[k:]], axis=1) for k in (1, 2)])
    weights = rng.uniform(0.1, 1.0, len(edges))
    return Model(rng.random((n, 3)), edges, softmap.Potts(weights))


def orderly(model: Model) -> np.ndarray:
    rank, level = pass_order(model.network.graph)
    assert sorted(rank) == list(range(model.network.n))
    first, second = model.network.edges.T
    assert ((rank[first] < rank[second]) == (level[first] < level[second])).all()
    assert (level[first] != level[second]).all()
    return rank


@given(models())
def test_small_models_keep_their_order(model):
    assert (orderly(model) == np.arange(model.network.n)).all()


def test_grids_trees_and_random_graphs_keep_their_order():
    for model in (
        generators.potts_grid(40, 40, 2, seed=0),
        generators.random_tree(2000, 2, seed=0),
        generators.erdos_renyi(1500, 2, seed=0),
        generators.potts_grid(1, 4 * LENGTH, 2, seed=0),  # a chain is solved by one pass as it is
    ):
        assert (orderly(model) == np.arange(model.n)).all()


def test_levels_of_long_thin_graphs_are_wide():
    for model in (band(LENGTH), generators.potts_grid(LENGTH // 3, 3, 2, seed=0)):
        rank = orderly(model)
        _, level = pass_order(model.network.graph)
        assert not (rank == np.arange(model.n)).all()
        assert np.bincount(level).mean() >= core.LANES


def test_labels_are_decided_last_of_the_pass_first():
    model = band(LENGTH)
    rank = pass_order(model.network.graph)[0]
    order = decoding_order(model.network.graph, model.network.num_variables)
    assert (np.diff(rank[order]) == -1).all()
    small = generators.potts_grid(5, 5, 2, seed=0)
    assert (decoding_order(small.network.graph, 25) == np.arange(25)[::-1]).all()


@pytest.mark.parametrize("method", ["anneal", "trws"])
def test_another_order_proves_the_same_optimum(method):
    model = band(LENGTH, seed=3)
    shuffled = np.random.default_rng(0).permutation(model.n)  # numbers that say nothing
    there = np.argsort(shuffled)
    other = Model(model.unary.reshape(-1, 3)[shuffled], there[model.edges], model.potentials[0])
    along, across = (solve(m, method=method, goal="lp", threads=1) for m in (model, other))
    for found in (along, across):
        assert found.relative_gap(found.lp_gap) <= 1e-4
    assert along.bound <= across.primal
    assert across.bound <= along.primal
    assert model.energy(along.labels) == along.energy

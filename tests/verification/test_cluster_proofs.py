"""The checker builds tightened relaxations by itself: the same as those of the solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap.subsolvers.clusters.regions import build
from softmap.verification.regions import tightened
from support.strategies import models


@given(models(max_n=6), st.integers(0, 99))
def test_tightened_models_are_those_of_the_solver(model, seed):
    rng, n = np.random.default_rng(seed), model.network.num_variables
    if n < 3:
        return
    sizes = rng.integers(3, min(n, 4) + 1, int(rng.integers(1, 5)))
    clusters = [tuple(rng.permutation(n)[:size].tolist()) for size in sizes]
    theirs = build(model.network, clusters).model
    ours = tightened(model.network, clusters, theirs.half_size)
    assert ours.edges.tolist() == theirs.edges.tolist()
    assert ours.num_labels.tolist() == theirs.num_labels.tolist()
    assert ours.constant == theirs.constant
    for e in range(ours.m):
        assert np.array_equal(ours.table(e), theirs.table(e))
    # costs of parallel edges are added exactly here, and with an allowance there
    split = int(model.network.node_offset[-1])
    assert np.array_equal(ours.unary[:split], theirs.unary[:split])
    assert (ours.unary >= theirs.unary).all()
    assert np.allclose(ours.unary, theirs.unary, rtol=1e-9, atol=1e-9)


def test_costs_of_parallel_edges_are_rounded_down():
    tables = np.array([[[0.1, 0.2], [0.3, np.inf]]] * 3)
    model = softmap.Model(np.zeros((3, 2)), [(0, 1), (1, 0), (0, 1)], softmap.Tables(tables))
    own = tightened(model.network, [(0, 1, 2)], 100).unary[6:10]
    assert own[-1] == np.inf
    assert own[:3] == pytest.approx([0.3, 0.7, 0.8])
    assert own[0] <= 3 * 0.1

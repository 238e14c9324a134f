"""The smoothed optimum in whole-array operations, against that of any model."""

from __future__ import annotations

import numpy as np
import pytest

import softmap
from softmap.learn import layer, soft_map_vjp
from softmap.learn.layer import LayerProblem

EDGES = softmap.generators.grid_edges(3, 4)
RNG = np.random.default_rng(3)
UNARY, TABLES = RNG.normal(size=(2, 12, 3)), RNG.normal(size=(2, len(EDGES), 3, 3))
GIVEN = RNG.normal(size=UNARY.shape), RNG.normal(size=TABLES.shape)


@pytest.mark.parametrize("eta", [0.7, 12.0])
def test_marginals_and_gradients_are_those_of_the_general_code(eta):
    problem = LayerProblem(EDGES, eta)
    nodes, edges, lam = layer.device_forward(problem, UNARY, TABLES, np)
    expected, pull = soft_map_vjp(UNARY, TABLES, EDGES, eta)
    assert np.allclose(nodes, expected.nodes, atol=1e-9)
    assert np.allclose(edges, expected.edges, atol=1e-9)
    found = layer.device_backward(problem, (UNARY, TABLES), lam, GIVEN, np)
    for a, b in zip(found, pull(*GIVEN), strict=True):
        assert np.allclose(a, b, atol=1e-7)


def test_without_edges_it_is_a_softmax():
    problem = LayerProblem(np.zeros((0, 2), dtype=np.int64), 2.0)
    none = np.zeros((2, 0, 3, 3))
    nodes, edges, lam = layer.device_forward(problem, UNARY, none, np)
    weight = np.exp(-2 * UNARY)
    assert np.allclose(nodes, weight / weight.sum(axis=-1, keepdims=True))
    assert edges.shape == none.shape
    by_unary, _ = layer.device_backward(problem, (UNARY, none), lam, (GIVEN[0], none), np)
    mean = (nodes * GIVEN[0]).sum(axis=-1, keepdims=True)
    assert np.allclose(by_unary, -2 * nodes * (GIVEN[0] - mean))


def test_hard_constraints_are_left_to_the_general_code():
    excluded = TABLES.copy()
    excluded[0, 0, 0, 0] = np.inf
    assert layer.device_forward(LayerProblem(EDGES, 1.0), UNARY, excluded, np) is None

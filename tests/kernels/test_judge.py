"""The judge's compiled loops: many edges at a time, one at a time, and plain numpy say the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap.kernels.judge import careful_sum, edge_minima, projected_costs
from softmap.kernels.nodes import node_minima, soft_nodes
from softmap.kernels.vectors import LANES
from softmap.model.layout import layout
from softmap.model.potentials import (
    Potts,
    SharedTables,
    Tables,
    TruncatedLinear,
    TruncatedQuadratic,
)
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import reduced_unary
from strategies import models, random_lam


def _uniform(family: str, seed: int, d: int, hard: bool) -> softmap.Model:
    """A model whose edges are all alike, as tiles want them, and not a multiple of the lanes."""
    rng = np.random.default_rng(seed)
    edges = [(i, j) for i in range(7) for j in range(i) if rng.random() < 0.7]
    m = len(edges)
    unary = rng.normal(size=(7, d))
    tables = rng.normal(size=(m, d, d))
    if hard:
        unary[rng.random(unary.shape) < 0.2] = np.inf
        unary[:, 0] = 0.0
        tables[rng.random(tables.shape) < 0.3] = np.inf
        tables[:, 0, :] = tables[:, :, 0] = 0.5
    weights = rng.uniform(0.0, 2.0, m)
    potential = {
        "tables": lambda: Tables(tables),
        "shared": lambda: SharedTables(tables[:2], rng.integers(0, 2, m), weights),
        "potts": lambda: Potts(weights),
        "linear": lambda: TruncatedLinear(weights, rng.uniform(0.5, 3.0, m)),
        "quadratic": lambda: TruncatedQuadratic(weights, rng.uniform(0.5, 6.0, m)),
    }[family]()
    return softmap.Model(unary, edges, potential)


@pytest.mark.parametrize("family", ["tables", "shared", "potts", "linear", "quadratic"])
@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("d", [2, 3, 7])
def test_tiles_of_edges_agree_with_single_ones(family, hard, d):
    for seed in range(4):
        model = tighten(_uniform(family, seed, d, hard))
        assert model.m % LANES or seed
        lay, m, eta = layout(model), model.m, 30.0
        lam = random_lam(model, seed)
        allowed = np.isfinite(model.unary)
        nodes = np.where(allowed, np.random.default_rng(seed).random(allowed.size), 0.0)
        nodes /= np.repeat(np.add.reduceat(nodes, model.node_offset[:-1]), model.num_labels)
        together, alone = np.empty((2, 3, m))
        least_together, least_alone = np.empty((2, m))
        projected_costs(lay, lam, eta, nodes, together, 0, m)
        edge_minima(lay, lam, least_together, 0, m)
        for e in range(m):  # one edge is never a tile
            projected_costs(lay, lam, eta, nodes, alone, e, e + 1)
            edge_minima(lay, lam, least_alone, e, e + 1)
        np.testing.assert_allclose(together, alone, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(least_together, least_alone, rtol=1e-13, atol=1e-13)


@given(models(), st.integers(0, 9), st.sampled_from([0.1, 3.0, 1e4]))
def test_soft_nodes_are_the_softmax_of_the_reduced_costs(model, seed, eta):
    model = tighten(model)
    theta = reduced_unary(model, random_lam(model, seed))
    nodes, (entropy, minima) = np.empty_like(theta), np.empty((2, model.n))
    step = np.ones(model.n, dtype=np.int64)
    arrays = (model.node_offset, step, theta, eta, nodes, entropy, minima)
    soft_nodes(layout(model), *arrays, 0, model.n)
    for i in range(model.n):
        cost = theta[model.node_slice(i)]
        weights = np.exp(-eta * (cost - cost.min()))
        p = weights / weights.sum()
        np.testing.assert_allclose(nodes[model.node_slice(i)], p, rtol=1e-9, atol=1e-13)
        want = -(p[p > 0] * np.log(p[p > 0])).sum()
        assert entropy[i] == pytest.approx(want, abs=1e-9)
        assert minima[i] == pytest.approx(cost.min() - np.log(weights.sum()) / eta, abs=1e-9)


@given(models(), st.integers(0, 9))
def test_node_minima_are_those_of_the_reduced_costs(model, seed):
    model = tighten(model)
    lam = random_lam(model, seed)
    least = np.empty(model.n)
    node_minima(layout(model), lam, least, 0, model.n)
    want = np.minimum.reduceat(reduced_unary(model, lam), model.node_offset[:-1])
    np.testing.assert_allclose(least, want, rtol=1e-12, atol=1e-12)


def test_a_careful_sum_loses_nothing_to_cancellation():
    assert careful_sum(np.array([1.0, 1e100, 1.0, -1e100])) == 2.0
    values = np.random.default_rng(0).normal(size=10_001) * 10.0 ** np.linspace(-5, 5, 10_001)
    assert careful_sum(values) == pytest.approx(
        float(np.sum(values.astype(np.longdouble))), rel=1e-15
    )

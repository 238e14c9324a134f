"""The compiled optimum of a forest, against enumeration and the dual in plain numpy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap import core
from softmap.model.layout import layout
from softmap.relaxation.bounds import dual_bound


def optimum(model):
    """Labels and λ of the compiled function; None if the graph has a cycle."""
    network = model.network
    labels = np.empty(network.n, dtype=np.int64)
    lam = np.empty(int(network.half_offset[-1]))
    return (labels, lam) if core.tree_optimum(layout(network), labels, lam) else None


@st.composite
def forests(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 7))
    counts = rng.integers(1, 4, n)
    edges = [(int(rng.integers(0, i)), i) for i in range(1, n) if rng.random() < 0.8]
    edges = [pair if rng.random() < 0.5 else pair[::-1] for pair in edges]
    rng.shuffle(edges)
    tables = [
        rng.normal(size=(counts[i], counts[j])).round(draw(st.integers(0, 6))) for i, j in edges
    ]
    unary = [rng.normal(size=count) for count in counts]
    constant = float(rng.normal())
    if not edges:
        return softmap.Model(unary, constant=constant)
    return softmap.Model(unary, edges, tables, constant=constant)


@given(forests())
def test_labels_are_optimal_and_lam_proves_it(model):
    labels, lam = optimum(model)
    every = itertools.product(*map(range, model.num_labels))
    least = min(model.energy(list(one)) for one in every)
    assert model.energy(labels) == pytest.approx(least, abs=1e-12)
    bound = core.dual_bound(layout(model.network), lam, model.constant, 1)
    assert least - 1e-12 <= bound <= least
    assert dual_bound(model.network, lam) == pytest.approx(bound, abs=1e-12)


@pytest.mark.parametrize(
    "potential",
    [softmap.Potts(0.7), softmap.Potts(-0.7), softmap.TruncatedLinear(0.4, 1.0),
     softmap.TruncatedQuadratic(0.3, 2.0)],
    ids=lambda one: f"{one.family} {one.weights[0]}",
)  # fmt: skip
def test_each_family_has_its_messages(potential):
    rng = np.random.default_rng(3)
    edges = [(0, 1), (2, 1), (1, 3), (3, 4)]
    model = softmap.Model(rng.normal(size=(5, 4)), edges, potential)
    labels, lam = optimum(model)
    least = min(model.energy(list(one)) for one in itertools.product(range(4), repeat=5))
    assert model.energy(labels) == pytest.approx(least, abs=1e-12)
    assert core.dual_bound(layout(model.network), lam, 0.0, 1) == pytest.approx(least, abs=1e-12)


@pytest.mark.parametrize("edges", [[(0, 1), (1, 2), (2, 0)], [(0, 1), (1, 0)]])
def test_a_cycle_is_recognised(edges):
    assert optimum(softmap.Model(np.zeros((4, 2)), edges, softmap.Potts(1.0))) is None


def test_costs_of_a_long_chain_stay_local():
    """Messages without their minima: λ does not grow with the length of the chain."""
    rng = np.random.default_rng(0)
    n = 20_000
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    model = softmap.Model(rng.random((n, 3)) + 5.0, edges, rng.random((n - 1, 3, 3)))
    labels, lam = optimum(model)
    assert np.abs(lam).max() < 20.0
    bound = core.dual_bound(layout(model.network), lam, 0.0, 1)
    energy = model.energy(labels)
    assert energy * (1 - 1e-14) <= bound <= energy

"""The interior-point method for the LP, against dense linear algebra and HiGHS."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softmap
from softmap import core
from softmap.relaxation import lp
from softmap.relaxation.bounds import dual_bound
from softmap.relaxation.polytope import PrimalPoint
from softmap.subsolvers.passes.interior import interior_point
from support.deadlines import stopping
from support.strategies import PAIRWISE, models

MODELS = [
    softmap.generators.erdos_renyi(12, 3, seed=0),
    softmap.generators.random_grid(3, 4, 4, seed=1),
    softmap.generators.random_tree(9, 3, seed=2),
    softmap.Model([[0.0, 1.0, 2.0], [1.0], [0.5, 0.0]], [[0, 1], [2, 0], [0, 2]],
                  softmap.Tables([np.ones((3, 1)), np.arange(6.0).reshape(2, 3) % 4,
                                  -np.eye(3, 2)])),
]  # fmt: skip


@dataclass
class Twin:
    """Predictor and corrector steps on min c·z, A z = b, z >= 0 with dense matrices."""

    model: softmap.Model

    def __post_init__(self):
        program = lp.program_of(self.model.network)
        self.states = len(program.states)
        self.a, self.b, self.c = program.matrix.toarray(), program.rhs, program.cost
        nodes, edges = self.model.num_labels, self.model.edges
        pairs = nodes[edges].prod(axis=1)
        edge = np.searchsorted(self.model.network.edge_offset, program.pairs, side="right") - 1
        self.z = 1.0 / np.concatenate([np.repeat(nodes, nodes), pairs[edge]])
        self.pi = self._dual_start(self.c[self.states :], edge)

    def _dual_start(self, costs, edge):
        """Multipliers for which all reduced costs are at least the mean absolute cost."""
        model, least = self.model, np.full(self.model.m, np.inf)
        scale = np.abs(model.unary).mean() + np.abs(costs).mean()
        np.minimum.at(least, edge, costs)
        pi = np.zeros(len(self.b))
        halves = np.repeat(np.repeat((scale - least) / 2, 2), model.num_labels[model.edges.ravel()])
        pi[model.n :] = -halves
        reduced = (self.c - self.a.T @ pi)[: self.states]
        pi[: model.n] = np.minimum.reduceat(reduced, model.network.node_offset[:-1]) - scale
        return pi

    @property
    def gap(self):
        return self.z @ (self.c - self.a.T @ self.pi)

    def step(self):
        s = self.c - self.a.T @ self.pi
        gap, towards = self.z @ s, -self.z * s
        dz, dpi = self._newton(s, towards)
        ds = -self.a.T @ dpi
        after = (self.z + _most(self.z, dz) * dz) @ (s + _most(s, ds) * ds)
        centre = gap / len(s) * (after / gap) ** 3
        dz, dpi = self._newton(s, towards + centre - dz * ds)
        self.z = self.z + min(1.0, 0.995 * _most(self.z, dz)) * dz
        self.pi = self.pi + min(1.0, 0.995 * _most(s, -self.a.T @ dpi)) * dpi

    def _newton(self, s, towards):
        """The solution of A dz = b - A z, ds = -A^T dpi, s dz + z ds = towards."""
        normal = (self.a * (self.z / s)) @ self.a.T
        right = self.b - self.a @ self.z - self.a @ (towards / s)
        dpi = np.linalg.lstsq(normal, right, rcond=1e-12)[0]
        return (towards + self.z * (self.a.T @ dpi)) / s, dpi


def _most(v, dv):
    falling = dv < 0
    return min(1.0, *(-v[falling] / dv[falling])) if falling.any() else 1.0


@pytest.mark.parametrize("model", MODELS)
def test_steps_are_those_of_dense_matrices(model):
    method, twin = interior_point(model.network), Twin(model)
    assert method.gap == pytest.approx(twin.gap, rel=1e-12)
    for _ in range(5):
        assert method.step()
        twin.step()
        assert method.gap == pytest.approx(twin.gap, rel=1e-6)
        np.testing.assert_allclose(method.nodes(), twin.z[: twin.states], rtol=1e-5, atol=1e-9)


def solved(model):
    """The bound and the cost of the point at the end of the method."""
    method = interior_point(model.network)
    for _ in range(100):
        if not method.step():
            break
    nodes = method.nodes()
    nodes /= np.repeat(np.add.reduceat(nodes, model.network.node_offset[:-1]), model.num_labels)
    return dual_bound(model.network, method.lam()), PrimalPoint(model.network, nodes).make().cost


@given(models(families=PAIRWISE, hard=False))
def test_ends_at_the_optimum_of_highs(model):
    value = lp.solve(model).value
    size = 1.0 + abs(value) + float(np.abs(model.unary).sum())
    bound, cost = solved(model)
    assert bound <= value + 1e-7 * size
    assert cost >= value - 1e-7 * size
    assert cost - bound <= 1e-5 * size


@settings(deadline=None)
@given(st.integers(10, 70), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_ends_at_the_optimum_of_random_graphs(n, labels, seed):
    model = softmap.generators.erdos_renyi(n, labels, seed=seed)
    value = lp.solve(model).value
    bound, cost = solved(model)
    assert bound == pytest.approx(value, rel=1e-6, abs=1e-6)
    assert cost == pytest.approx(value, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("looks", [1, 2, 5])
def test_a_deadline_leaves_the_state_unchanged(looks):
    model = MODELS[0]
    method, straight = interior_point(model.network), interior_point(model.network)
    with pytest.raises(core.OutOfTime):
        method.step(stopping(looks))
    assert method.step()
    assert straight.step()
    np.testing.assert_array_equal(method.nodes(), straight.nodes())
    np.testing.assert_array_equal(method.lam(), straight.lam())


def test_false_arrays_are_rejected():
    labels, edges = np.array([2, 2]), np.array([[0, 1]], dtype=np.int32)
    unary, pairs = np.zeros(4), np.zeros(4)
    core.InteriorPoint(labels, edges, unary, pairs)
    with pytest.raises(ValueError, match="finite"):
        core.InteriorPoint(labels, edges, unary, np.array([0.0, np.inf, 0.0, 0.0]))
    with pytest.raises(ValueError, match="no edge 0, 2"):
        core.InteriorPoint(labels, np.array([[0, 2]], dtype=np.int32), unary, pairs)
    with pytest.raises(ValueError, match="pairs must have 4"):
        core.InteriorPoint(labels, edges, unary, np.zeros(5))
    with pytest.raises(ValueError, match="needs a label"):
        core.InteriorPoint(np.array([0, 2]), edges, unary, pairs)

"""Marginals of the smoothed relaxation and their derivatives, against independent oracles."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings

import softmap
from softmap.methods.marginals import adjoint, curvature, newton, smoothed_optimum
from softmap.methods.marginals.curvature import Curvature, ModelFrame, conjugate_gradients
from softmap.relaxation.consistency import tighten
from support.oracles import violation
from support.strategies import models

GRID = softmap.generators.random_grid(2, 3, 3, seed=1)
TREE = softmap.generators.random_tree(6, 3, seed=2)


def constraints(model):
    """A of the local polytope A μ = b, written row by row over nodes and then edges."""
    nodes, pairs = int(model.network.node_offset[-1]), int(model.network.edge_offset[-1])
    rows = []
    for i in range(model.n):
        row = np.zeros(nodes + pairs)
        row[model.network.node_slice(i)] = 1
        rows.append(row)
    for e, ends in enumerate(model.edges.tolist()):
        shape = model.num_labels[ends]
        place = nodes + model.network.edge_offset[e] + np.arange(shape.prod()).reshape(shape)
        for side, i in enumerate(ends):
            for x in range(shape[side]):
                row = np.zeros(nodes + pairs)
                row[place.take(x, axis=side)] = 1
                row[model.network.node_offset[i] + x] -= 1
                rows.append(row)
    return np.array(rows)


def costs(model):
    return np.concatenate([model.unary, *(table.ravel() for table in model.network.tables())])


def kkt_optimum(model, eta):
    """Newton's method on the optimality conditions of min ⟨C, μ⟩ - H(μ)/η, A μ = b, all dense."""
    A, c = constraints(model), costs(model)
    b = np.r_[np.ones(model.n), np.zeros(len(A) - model.n)]
    y = np.zeros(len(A))
    for _ in range(200):
        mu = np.exp(-eta * (c + A.T @ y) - 1)
        residual = A @ mu - b
        step = np.linalg.lstsq(eta * (A * mu) @ A.T, residual, rcond=1e-13)[0]
        length = min(1.0, 1.0 / (eta * np.abs(A.T @ step).max() + 1e-300))
        y += length * step
    assert np.abs(residual).max() < 1e-12
    return mu, A


@pytest.mark.parametrize("model", [GRID, TREE], ids=["grid", "tree"])
@pytest.mark.parametrize("eta", [0.5, 3.0])
def test_it_is_the_optimum_of_the_regularised_program(model, eta):
    soft = smoothed_optimum(model, eta, tol=1e-12)
    mu, _ = kkt_optimum(model, eta)
    assert np.abs(np.r_[soft.nodes, soft.edges] - mu).max() < 1e-9
    value = costs(model) @ mu + (mu * np.log(mu)).sum() / eta + model.constant
    assert soft.value == pytest.approx(value, abs=1e-9)
    assert 0 <= soft.gap < 1e-8


@pytest.mark.parametrize("model", [GRID, TREE], ids=["grid", "tree"])
def test_gradients_are_those_of_the_optimality_conditions(model):
    """Exact differentiation: dμ = -η (D - D Aᵀ (A D Aᵀ)⁺ A D) dC with D = diag μ."""
    eta = 2.0
    mu, A = kkt_optimum(model, eta)
    D = np.diag(mu)
    jacobian = -eta * (D - D @ A.T @ np.linalg.pinv(A @ D @ A.T, rcond=1e-12) @ A @ D)
    g = np.random.default_rng(0).normal(size=len(mu))
    nodes = len(model.unary)
    found = adjoint(smoothed_optimum(model, eta, tol=1e-13), g[:nodes], g[nodes:])
    assert np.abs(np.concatenate(found) - g @ jacobian).max() < 1e-8


def test_gradients_are_those_of_finite_differences():
    rng, eta, h = np.random.default_rng(3), 4.0, 1e-5
    g_nodes, g_edges = (
        rng.normal(size=GRID.unary.size),
        rng.normal(size=GRID.network.edge_offset[-1]),
    )
    tables = np.stack(list(GRID.network.tables()))

    def value(du, dt):
        model = softmap.Model(GRID.unary.reshape(-1, 3) + du, GRID.edges, tables + dt)
        soft = smoothed_optimum(model, eta, tol=1e-13)
        return g_nodes @ soft.nodes + g_edges @ soft.edges

    by_node, by_edge = adjoint(smoothed_optimum(GRID, eta, tol=1e-13), g_nodes, g_edges)
    for _ in range(4):
        du, dt = rng.normal(size=(GRID.n, 3)), rng.normal(size=tables.shape)
        slope = (value(h * du, h * dt) - value(-h * du, -h * dt)) / (2 * h)
        assert slope == pytest.approx(by_node @ du.ravel() + by_edge @ dt.ravel(), abs=1e-6)


@settings(max_examples=15)
@given(models(max_n=4, max_d=3))
def test_marginals_are_consistent_and_bound_the_partition_function(model):
    soft = smoothed_optimum(model, 1.0, tol=1e-9)
    tight = soft.model
    sums = np.add.reduceat(soft.nodes, tight.node_offset[:-1])
    assert np.abs(sums - 1).max() < 1e-12
    assert violation(tight, soft.nodes, soft.edges).max < 1e-8
    assert soft.gap >= 0
    # H of nodes and edges is at least the entropy of any distribution with these marginals
    assert -soft.value >= softmap.exact_marginals(model).log_partition - 1e-9


@settings(max_examples=10)
@given(models(max_n=4, max_d=3))
def test_products_are_those_of_a_dense_hessian(model):
    frame = ModelFrame(tighten(model))
    size = int(frame.model.half_offset[-1])
    rng = np.random.default_rng(0)
    lam = np.where(np.isposinf(frame.model.unary)[frame.states], 0.0, 0.3 * rng.normal(size=size))
    point = Curvature(frame, lam, 1.5)
    dual = softmap.SmoothedDual(model, 1.5)
    assert point.value == pytest.approx(dual.value(lam), abs=1e-9)
    assert np.allclose(point.slack, dual.slack(lam), atol=1e-12)
    v, h = rng.normal(size=size), 1e-5
    v[np.isposinf(frame.model.unary)[frame.states]] = 0.0
    change = (dual.gradient(lam + h * v) - dual.gradient(lam - h * v)) / (2 * h)
    assert np.allclose(point.hessian(v), change, atol=1e-6)


def test_the_preconditioner_inverts_the_block_of_a_star():
    star = softmap.Model(
        np.random.default_rng(0).normal(size=(4, 3)),
        [[0, 1], [0, 2], [3, 0]],
        np.random.default_rng(1).normal(size=(3, 3, 3)),
    )
    point = smoothed_optimum(star, 1.0, tol=1e-13).curvature
    mine = np.repeat(star.edges.reshape(-1) == 0, 3)
    v = np.where(mine, np.random.default_rng(2).normal(size=18), 0.0)
    back = np.where(mine, point.precondition(np.where(mine, point.hessian(v), 0.0)), 0.0)
    off = (back - v).reshape(6, 3)
    assert np.abs(off - off.mean(axis=1, keepdims=True)).max() < 1e-10


def test_parts_of_a_system_are_solved_each_by_its_own_steps():
    scale, part = np.array([1.0, 2.0, 1e6, 3e6, 0.0]), np.array([0, 0, 1, 1, 2])
    rhs = np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    parts = SimpleNamespace(
        xp=np, dot=lambda a, b: np.bincount(part, a * b), each=lambda values: values[part]
    )
    found = conjugate_gradients(lambda v: scale * v, lambda r: r, rhs, parts, tol=1e-12, limit=10)
    assert found.done
    assert found.products == 2
    assert np.allclose(scale * found.x, rhs)


def test_a_result_has_soft_marginals_beside_its_point():
    result = softmap.solve(GRID)
    soft = result.marginals(1.0)
    assert isinstance(soft, softmap.SoftMarginals)
    assert soft.of(0).min() > 0.01  # soft, where the point is a vertex
    sharp = result.marginals(200.0)
    assert GRID.energy([int(np.argmax(sharp.of(i))) for i in range(GRID.n)]) == result.energy
    assert softmap.SmoothedDual(GRID, 1.0).slack(soft.lam) == pytest.approx(0, abs=1e-9)


def test_what_is_not_accurate_is_said(monkeypatch):
    monkeypatch.setattr(newton, "SMOOTHING", replace(newton.SMOOTHING, rounds=0))
    with pytest.warns(softmap.ConvergenceWarning, match="smaller eta"):
        soft = smoothed_optimum(GRID, 20.0)
    assert soft.slack > 1e-6
    monkeypatch.undo()
    monkeypatch.setattr(curvature, "SMOOTHING", replace(curvature.SMOOTHING, step_products=0))
    with pytest.warns(softmap.ConvergenceWarning, match="gradient"):
        adjoint(smoothed_optimum(GRID, 2.0), GRID.unary, np.zeros(GRID.network.edge_offset[-1]))
    with pytest.raises(softmap.OptionError, match="eta"):
        smoothed_optimum(GRID, 0.0)

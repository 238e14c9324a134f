"""`perturbed_map`: its draws, and its gradient, against enumeration and exact expectations."""

import itertools
import types
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softmap
from softmap.learn import perturbed, perturbed_map, perturbed_map_vjp

TRIANGLE = np.array([[0, 1], [1, 2], [0, 2]])


def enumerated(unary, tables, edges, noise):
    """Mean indicators of the cheapest labellings under the given noise, by enumeration."""
    n, d = unary.shape
    every = np.array(list(itertools.product(range(d), repeat=n)))
    pairwise = sum((tables[e][every[:, i], every[:, j]] for e, (i, j) in enumerate(edges)), 0.0)
    best = [
        every[np.argmin(sum((unary - g)[v, every[:, v]] for v in range(n)) + pairwise)]
        for g in noise
    ]
    hot = np.eye(d)[best]
    pairs = [np.einsum("sx,sy->xy", hot[:, i], hot[:, j]) / len(noise) for i, j in edges]
    return hot.mean(axis=0), np.array(pairs).reshape(-1, d, d)


@pytest.fixture
def by_enumeration(monkeypatch):
    """Solves small models by enumeration: a thousand samples in a second."""

    def solved(models, **_):
        every = np.array(list(itertools.product(range(2), repeat=2)))
        return [types.SimpleNamespace(labels=cheapest(model, every)) for model in models]

    def cheapest(model, every):
        labels = every if model.edges.size else np.arange(model.unary.size)[:, None]
        return labels[np.argmin([model.energy(x) for x in labels])]

    monkeypatch.setattr(perturbed, "solve_batch", solved)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 3), st.floats(0.3, 5.0), st.floats(0.1, 3.0))
def test_labels_and_gradients_are_those_of_enumeration(seed, d, eta, step):
    rng = np.random.default_rng(seed)
    unary, tables = rng.normal(size=(2, 3, d)), 2 * rng.normal(size=(3, d, d))
    g, h = rng.normal(size=(2, 3, d)), rng.normal(size=(2, 3, d, d))
    beliefs, pull = perturbed_map_vjp(
        unary, tables, TRIANGLE, eta, samples=3, step=step, seed=seed, threads=1
    )
    by_unary, by_tables = pull(g, h)
    length = step / (eta * max(np.abs(g).max(), np.abs(h).max()))
    noise = np.random.default_rng(seed).gumbel(size=(3, 2, 3, d)) / eta
    total = 0.0
    for k in range(2):
        before = enumerated(unary[k], tables, TRIANGLE, noise[:, k])
        after = enumerated(unary[k] + length * g[k], tables + length * h[k], TRIANGLE, noise[:, k])
        np.testing.assert_allclose(beliefs.nodes[k], before[0], atol=1e-12)
        np.testing.assert_allclose(beliefs.edges[k], before[1], atol=1e-12)
        np.testing.assert_allclose(by_unary[k], (after[0] - before[0]) / length, atol=1e-12)
        total = total + (after[1] - before[1]) / length  # one table for both members
    np.testing.assert_allclose(by_tables, total, atol=1e-9)


def test_one_variable_has_the_gibbs_marginals_and_their_gradient_in_expectation(by_enumeration):
    cost, eta, samples = np.array([[0.3, -0.2, 0.6]]), 1.5, 800
    beliefs, pull = perturbed_map_vjp(
        cost,
        np.zeros((0, 3, 3)),
        [],
        eta,
        samples=samples,
        step=0.2,
        seed=1,
    )
    gibbs = np.exp(-eta * cost[0]) / np.exp(-eta * cost[0]).sum()
    np.testing.assert_allclose(beliefs.nodes[0], gibbs, atol=4 / np.sqrt(samples))
    g = np.array([[1.0, 0.0, -1.0]])
    moved = np.exp(-eta * (cost + g * 0.2 / eta)[0])
    expected = (moved / moved.sum() - gibbs) * eta / 0.2  # of the difference, without error
    jacobian = -eta * (np.diag(gibbs) - np.outer(gibbs, gibbs))
    found = pull(g, np.zeros((0, 3, 3)))[0][0]
    np.testing.assert_allclose(found, expected, atol=4 * eta / np.sqrt(0.2 * samples))
    np.testing.assert_allclose(expected, jacobian @ g[0], atol=0.15)


def test_the_gradient_of_two_coupled_variables_in_expectation(by_enumeration):
    """The expectation over two differences of Gumbel variables (logistic), by quadrature."""
    eta, samples, step = 1.0, 800, 0.5
    unary, weight = np.array([[0.0, 0.4], [0.2, 0.0]]), 0.7
    beliefs, pull = perturbed_map_vjp(
        unary, weight, [[0, 1]], eta, samples=samples, step=step, seed=2, threads=1
    )
    u = (np.arange(300) + 0.5) / 300
    z = np.log(u / (1 - u))  # the noise of label 1 minus that of label 0

    def mean(weight):
        cost = [
            (unary[0, 1] - z[:, None]) * x
            + (unary[1, 1] - unary[1, 0] - z) * y
            + unary[0, 0] * (1 - x)
            + weight * (x != y)
            for x, y in itertools.product((0, 1), repeat=2)
        ]
        return np.bincount(np.argmin(cost, axis=0).ravel(), minlength=4).reshape(2, 2) / z.size**2

    table = np.array([[0.0, 1.0], [1.0, 0.0]])
    expected = (mean(weight + step) - mean(weight)) / step
    tolerance = 4 / np.sqrt(step * samples)
    np.testing.assert_allclose(beliefs.edges[0], mean(weight), atol=4 / np.sqrt(samples))
    by_table = pull(np.zeros((2, 2)), table[None])[1][0]
    np.testing.assert_allclose(by_table, expected, atol=tolerance)


def test_frameworks_give_the_gradient_of_numpy():
    rng = np.random.default_rng(0)
    unary, tables = rng.normal(size=(2, 3, 2)), rng.normal(size=(3, 2, 2))
    g = rng.normal(size=unary.shape)
    _, pull = perturbed_map_vjp(unary, tables, TRIANGLE, 2.0, samples=4, seed=3, threads=1)
    expected = pull(g, np.zeros((2, 3, 2, 2)))
    assert np.abs(expected[0]).max() > 0
    torch = pytest.importorskip("torch")
    costs = [torch.tensor(a, requires_grad=True) for a in (unary, tables)]
    beliefs = perturbed_map(*costs, TRIANGLE, 2.0, samples=4, seed=3, threads=1)
    (beliefs.nodes * torch.tensor(g)).sum().backward()
    for cost, gradient in zip(costs, expected, strict=True):
        np.testing.assert_allclose(cost.grad.numpy(), gradient, atol=1e-12)


def test_jax_gives_the_gradient_of_numpy_under_jit():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jax = pytest.importorskip("jax")
    rng = np.random.default_rng(0)
    unary, tables = rng.normal(size=(2, 3, 2)), rng.normal(size=(3, 2, 2))
    g = rng.normal(size=unary.shape)
    _, pull = perturbed_map_vjp(unary, tables, TRIANGLE, 2.0, samples=4, seed=3, threads=1)
    expected = pull(g, np.zeros((2, 3, 2, 2)))

    def loss(unary, tables, seed):
        beliefs = perturbed_map(unary, tables, TRIANGLE, 2.0, samples=4, seed=seed, threads=1)
        return (beliefs.nodes * g).sum()

    found = jax.jit(jax.grad(loss, (0, 1)))(jax.numpy.array(unary), jax.numpy.array(tables), 3)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-4, atol=1e-4)


def test_members_with_graphs_of_their_own_and_wrong_arguments():
    unary = np.random.default_rng(5).normal(size=(2, 3, 2))
    graphs = [[[0, 1], [1, 2]], [[0, 2], [-1, -1]]]
    beliefs = perturbed_map(unary, 0.5, graphs, 2.0, samples=2, threads=1)
    assert beliefs.edges[1, 1].sum() == 0
    np.testing.assert_allclose(beliefs.edges[1, 0].sum(axis=1), beliefs.nodes[1, 0])
    for wrong in ({"samples": 0}, {"step": 0.0}, {"seed": -1}, {"checkpoint": "x"}):
        with pytest.raises(softmap.OptionError):
            perturbed_map(unary, 0.5, TRIANGLE, 2.0, **wrong)

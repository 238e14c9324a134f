"""`transport_cost`: its value, and its gradients by finite differences of an exact LP."""

import numpy as np
import pytest
from scipy.optimize import linprog

import softmap
from softmap.learn import transport_cost
from softmap.learn.transport import Moved

GAP = 1e-9


def exact(a, b, costs):
    """The optimum, by HiGHS."""
    n, m = costs.shape
    sums = np.vstack([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))])
    return linprog(costs.ravel(), A_eq=sums[:-1], b_eq=np.concatenate([a, b])[:-1]).fun


def drawn(seed, n=4, m=5):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m)), rng.random((n, m))


def slopes(seed, step=1e-6):
    """Derivatives of the optimum along one change of each argument, and the changes."""
    given, rng = drawn(seed), np.random.default_rng(seed + 1000)
    changes = [rng.normal(size=part.shape) for part in given]
    for k in (0, 1):  # masses keep their sum
        changes[k] -= changes[k].mean()
    made = []
    for k, change in enumerate(changes):
        ends = []
        for sign in (1, -1):
            moved = list(given)
            moved[k] = given[k] + sign * step * change
            ends.append(exact(*moved))
        made.append((ends[0] - ends[1]) / (2 * step))
    return given, changes, made


@pytest.mark.parametrize("seed", range(6))
def test_gradients_are_those_of_the_linear_program(seed):
    given, changes, expected = slopes(seed)
    moved = Moved.of(*given, GAP)
    assert moved.cost == pytest.approx(exact(*given), rel=1e-8)
    assert transport_cost(*given, gap=GAP) == moved.cost
    found = [float((g * c).sum()) for g, c in zip(moved.gradients, changes, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_what_members_of_a_batch_share_has_the_sum_of_their_gradients():
    (a, b, costs), (c, _, _) = drawn(1), drawn(2)
    both = Moved.of(np.stack([a, c]), b, costs, GAP)
    alone = [Moved.of(first, b, costs, GAP) for first in (a, c)]
    np.testing.assert_allclose(both.cost, [one.cost for one in alone])
    by_a, by_b, by_costs = both.pulled(np.array([1.0, 10.0]), [(2, 4), b.shape, costs.shape])
    first, second = (one.gradients for one in alone)
    np.testing.assert_allclose(by_a, [first[0], 10 * second[0]], atol=1e-6)
    np.testing.assert_allclose(by_b, first[1] + 10 * second[1], atol=1e-6)
    np.testing.assert_allclose(by_costs, first[2] + 10 * second[2], atol=1e-6)


@pytest.mark.parametrize("shared", [False, True])
def test_torch_differentiates_by_all_arguments(shared):
    torch = pytest.importorskip("torch")
    given, changes, expected = slopes(3)
    tensors = [torch.tensor(part, requires_grad=True) for part in given]
    first = tensors[0].expand(2, -1) if shared else tensors[0]
    found = transport_cost(first, *tensors[1:], gap=GAP)
    assert found.shape == ((2,) if shared else ())
    (found.sum() / (2 if shared else 1)).backward()
    slope = [float((t.grad * torch.tensor(c)).sum()) for t, c in zip(tensors, changes, strict=True)]
    np.testing.assert_allclose(slope, expected, atol=1e-5)


def test_torch_takes_single_precision():
    torch = pytest.importorskip("torch")
    a, b, costs = drawn(4)
    logits = torch.tensor(np.log(a), dtype=torch.float32, requires_grad=True)
    found = transport_cost(torch.softmax(logits, 0), b.astype(np.float32), costs)
    found.backward()
    assert found.dtype == logits.grad.dtype == torch.float32
    assert float(found.detach()) == pytest.approx(exact(a, b, costs), rel=2e-3)
    assert abs(float(logits.grad.sum())) < 1e-6


def test_jax_differentiates_by_all_arguments():
    jax = pytest.importorskip("jax")
    given, changes, expected = slopes(5)
    with jax.enable_x64(True):
        arrays = [jax.numpy.asarray(part) for part in given]
        cost = lambda *parts: transport_cost(*parts, gap=GAP)  # noqa: E731
        grads = jax.jit(jax.grad(cost, argnums=(0, 1, 2)))(*arrays)
        slope = [float((g * c).sum()) for g, c in zip(grads, changes, strict=True)]
        batch = jax.numpy.stack([arrays[0], arrays[0]])
        both = jax.grad(lambda a: cost(a, *arrays[1:]).sum())(batch)
    np.testing.assert_allclose(slope, expected, atol=1e-5)
    np.testing.assert_allclose(both, np.stack([grads[0], grads[0]]), atol=1e-6)


def test_a_family_of_costs_is_refused():
    with pytest.raises(softmap.ModelError, match="as an array"):
        transport_cost([0.5, 0.5], [0.5, 0.5], softmap.Potts(1.0))

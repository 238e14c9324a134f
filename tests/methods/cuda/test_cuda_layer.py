"""`soft_map` of tensors on a GPU: computed there, with the numbers of the processor."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import softmap
from methods.cuda.conftest import usable
from softmap.learn import layer, soft_map_vjp

EDGES = softmap.generators.grid_edges(5, 6)
RNG = np.random.default_rng(0)
UNARY, TABLES = RNG.normal(size=(3, 30, 4)), RNG.normal(size=(3, len(EDGES), 4, 4))
G_NODES, G_EDGES = RNG.normal(size=UNARY.shape), RNG.normal(size=TABLES.shape)

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not usable(), reason="needs a CUDA device"),
]


@pytest.fixture
def calls(monkeypatch):
    """How often the device was asked; the processor is not to be."""
    seen = []

    def watched(name):
        real = getattr(layer, name)

        def call(*arguments):
            seen.append(name)
            return real(*arguments)

        return call

    for name in ("device_forward", "device_backward"):
        monkeypatch.setattr(layer, name, watched(name))
    monkeypatch.setattr("softmap.learn.layer.LayerProblem.forward", None)
    return seen


def expected():
    beliefs, pull = soft_map_vjp(UNARY, TABLES, EDGES, 3.0)
    return beliefs, pull(G_NODES, G_EDGES)


def test_torch_tensors_stay_on_the_device(request):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch sees no device")
    beliefs, gradients = expected()
    seen = request.getfixturevalue("calls")
    unary, tables = (torch.tensor(a, device="cuda", requires_grad=True) for a in (UNARY, TABLES))
    import cupy

    assert cupy.from_dlpack(unary.detach()).data.ptr == unary.data_ptr()
    nodes, edges = softmap.soft_map(unary, tables, EDGES, 3.0)
    assert nodes.is_cuda
    assert edges.is_cuda
    assert np.allclose(nodes.detach().cpu(), beliefs.nodes, atol=1e-9)
    assert np.allclose(edges.detach().cpu(), beliefs.edges, atol=1e-9)
    given = (torch.tensor(a, device="cuda") for a in (G_NODES, G_EDGES))
    sum((a * g).sum() for a, g in zip((nodes, edges), given, strict=True)).backward()
    for a, b in zip((unary.grad, tables.grad), gradients, strict=True):
        assert a.is_cuda
        assert np.allclose(a.cpu(), b, atol=1e-7)
    assert seen == ["device_forward", "device_backward"]


def test_jax_arrays_stay_on_the_device(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jax = pytest.importorskip("jax")
        if jax.default_backend() != "gpu":
            pytest.skip("JAX sees no device")
        _, gradients = expected()
        seen = request.getfixturevalue("calls")

        def loss(unary, tables):
            nodes, edges = softmap.soft_map(unary, tables, EDGES, 3.0)
            return (nodes * G_NODES).sum() + (edges * G_EDGES).sum()

        found = jax.grad(loss, argnums=(0, 1))(jax.numpy.array(UNARY), jax.numpy.array(TABLES))
    for a, b in zip(found, gradients, strict=True):
        assert np.allclose(np.asarray(a), b, atol=1e-4)
    assert seen == ["device_forward", "device_backward"]

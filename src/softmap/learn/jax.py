"""`soft_map` and `perturbed_map` for JAX arrays: callbacks with custom gradients."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from softmap.learn import layer
from softmap.learn.layer import Beliefs, LayerProblem
from softmap.learn.perturbed import Draws
from softmap.learn.weights import Tensors
from softmap.methods.cuda import cupy_or_none

EACH: dict[str, Any] = {"vmap_method": "broadcast_all"}  # a batch is one call


def soft_map(unary: Any, pairwise: Any, problem: LayerProblem) -> Beliefs:
    """`softmap.soft_map` if one of the costs is a JAX array; works under `jit` and `vmap`."""
    import jax
    import jax.numpy as jnp

    first, second = _arrays(unary, pairwise)
    dtype = first.dtype
    full, tables = problem.shapes(first.shape, second.shape)
    halves = (*full[:-2], 2 * problem.edges.shape[-2], full[-1])
    array_of: Any = jax.ShapeDtypeStruct
    kinds = [array_of(shape, dtype) for shape in (full, tables, halves)]

    def call(function: Any, results: list[Any], *arrays: Any) -> Any:
        there = _on_gpu(jax, arrays)
        if there is not None:
            made = function(*(there.from_dlpack(array) for array in arrays), xp=there)
            if made is not None:
                return [jax.dlpack.from_dlpack(there.ascontiguousarray(a)) for a in made]
        return jax.pure_callback(function, results, *arrays, **EACH)

    @jax.custom_vjp
    def optimum(unary: Any, pairwise: Any) -> Any:  # marginals of nodes and edges, λ
        return tuple(call(found, kinds, unary, pairwise))

    def forward(unary: Any, pairwise: Any) -> Any:
        made = optimum(unary, pairwise)
        return made, (unary, pairwise, made[2])

    @jax.custom_vjp
    def pull(*arrays: Any) -> Any:  # costs, λ, gradients by the marginals
        return tuple(call(pulled, kinds[:2], *arrays))

    def pull_back(kept: Any, along: Any) -> Any:
        costs, lam, given = kept[:2], kept[2], kept[3:]
        bent = jax.pure_callback(_bent, kinds[:2], *costs, *given, *along, **EACH)
        return (*bent, jnp.zeros_like(lam), *pull(*costs, lam, *along))

    def _bent(*arrays: Any) -> Any:
        pairs = (tuple(map(_double, arrays[k : k + 2])) for k in (0, 2, 4))
        return _rounded(problem.bent(*pairs), dtype)

    def found(unary: Any, pairwise: Any, xp: Any = None) -> Any:
        if xp is not None:
            made = layer.device_forward(problem, unary, pairwise, xp)
            if made is None:
                return None
            half = (*unary.shape[:-2], *halves[-2:])
            return [a.astype(dtype) for a in (*made[:2], made[2].reshape(half))]
        unary, pairwise = np.asarray(unary), np.asarray(pairwise)
        soft = problem.forward(unary, pairwise)
        return [array.astype(dtype) for array in (soft.nodes, soft.pairs, soft.lam)]

    def pulled(unary: Any, pairwise: Any, lam: Any, nodes: Any, pairs: Any, xp: Any = None) -> Any:
        if xp is not None:
            made = layer.device_backward(problem, (unary, pairwise), lam, (nodes, pairs), xp)
            return [a.astype(dtype) for a in made]
        unary, pairwise = np.asarray(unary), np.asarray(pairwise)
        soft = problem.at(unary, pairwise, np.asarray(lam))
        grads = soft.pulled(np.asarray(nodes), np.asarray(pairs))
        return [grad.astype(dtype) for grad in grads]

    optimum.defvjp(forward, lambda kept, given: pull(*kept, *given[:2]))
    pull.defvjp(lambda *arrays: (pull(*arrays), arrays), pull_back)
    costs = jnp.broadcast_to(first, full), jnp.broadcast_to(second, tables)
    return Beliefs(*optimum(*costs)[:2])


def perturbed_map(unary: Any, pairwise: Any, draws: Draws, seed: Any) -> Beliefs:
    """`softmap.learn.perturbed_map` if one of the costs is a JAX array; works under `jit`."""
    import jax
    import jax.numpy as jnp

    first, second = _arrays(unary, pairwise)
    shapes = draws.shapes(first.shape, second.shape)
    array_of: Any = jax.ShapeDtypeStruct
    kinds = [array_of(shape, first.dtype) for shape in shapes]

    def call(function: Any, *arrays: Any) -> Any:
        return tuple(jax.pure_callback(function, kinds, *arrays, **EACH))

    def found(seed: Any, *costs: Any) -> Any:
        return _rounded(_seeded(draws, seed).mean(*map(_double, costs)), first.dtype)

    def pulled(seed: Any, *arrays: Any) -> Any:
        costs, mean, given = (tuple(map(_double, arrays[k : k + 2])) for k in (0, 2, 4))
        return _rounded(_seeded(draws, seed).pulled(costs, mean, given), first.dtype)

    @jax.custom_vjp
    def frequencies(unary: Any, pairwise: Any, seed: Any) -> Any:
        return call(found, seed, unary, pairwise)

    def forward(unary: Any, pairwise: Any, seed: Any) -> Any:
        mean = frequencies(unary, pairwise, seed)
        return mean, (seed, unary, pairwise, *mean)

    def backward(kept: Any, given: Any) -> Any:
        return (*call(pulled, *kept, *given), None)

    frequencies.defvjp(forward, backward)
    costs = (jnp.broadcast_to(a, shape) for a, shape in zip((first, second), shapes, strict=True))
    return Beliefs(*frequencies(*costs, jnp.asarray(seed)))


def _arrays(unary: Any, pairwise: Any) -> tuple[Any, Any]:
    """Return both as JAX arrays of one floating type."""
    import jax.numpy as jnp

    dtype = jnp.result_type(unary, pairwise, jnp.float32)
    return jnp.asarray(unary, dtype), jnp.asarray(pairwise, dtype)


def _seeded(draws: Draws, seed: Any) -> Draws:
    return draws.seeded(np.asarray(seed))


def _double(array: Any) -> Any:
    return np.asarray(array, dtype=np.float64)


def _rounded(arrays: Any, dtype: Any) -> list[Any]:
    return [array.astype(dtype) for array in arrays]


def tensors(like: Any) -> Tensors:
    """Return operations on JAX arrays of the type of `like`."""
    import jax.numpy as jnp

    return Tensors(partial(jnp.asarray, dtype=like.dtype), jnp.where, jnp.minimum)


def _on_gpu(jax: Any, arrays: Any) -> Any:
    """Return CuPy if all arrays are concrete (not traced) and on a GPU, else None."""
    if any(isinstance(array, jax.core.Tracer) for array in arrays):
        return None
    if {d.platform for array in arrays for d in array.devices()} != {"gpu"}:
        return None
    return cupy_or_none()

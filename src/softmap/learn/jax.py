"""The differentiable functions for JAX arrays: callbacks with custom gradients."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from softmap.extend.device import cupy_or_none
from softmap.learn import layer
from softmap.learn.layer import Beliefs, LayerProblem
from softmap.learn.perturbed import Draws
from softmap.learn.transport import Moved
from softmap.learn.weights import Tensors

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
    here = Computed(problem, dtype)

    def call(function: Any, results: list[Any], *given: Any) -> Any:
        arrays = [jnp.asarray(array) for array in given]  # cotangents may be NumPy arrays
        there = _on_gpu(jax, arrays)
        if there is not None:
            made = function(*(there.from_dlpack(array) for array in arrays), xp=there)
            if made is not None:
                return [jax.dlpack.from_dlpack(there.ascontiguousarray(a)) for a in made]
        return jax.pure_callback(function, results, *arrays, **EACH)

    @jax.custom_vjp
    def optimum(unary: Any, pairwise: Any) -> Any:  # marginals of nodes and edges, λ
        return tuple(call(here.found, kinds, unary, pairwise))

    def forward(unary: Any, pairwise: Any) -> Any:
        made = optimum(unary, pairwise)
        return made, (unary, pairwise, made[2])

    @jax.custom_vjp
    def pull(*arrays: Any) -> Any:  # costs, λ, gradients by the marginals
        return tuple(call(here.pulled, kinds[:2], *arrays))

    def pull_back(kept: Any, along: Any) -> Any:
        costs, lam, given = kept[:2], kept[2], kept[3:]
        bent = jax.pure_callback(here.bent, kinds[:2], *costs, *given, *along, **EACH)
        return (*bent, jnp.zeros_like(lam), *pull(*costs, lam, *along))

    optimum.defvjp(forward, lambda kept, given: pull(*kept, *given[:2]))
    pull.defvjp(lambda *arrays: (pull(*arrays), arrays), pull_back)
    costs = jnp.broadcast_to(first, full), jnp.broadcast_to(second, tables)
    return Beliefs(*optimum(*costs)[:2])


@dataclass(frozen=True)
class Computed:
    """The functions behind the callbacks: arrays of NumPy, or of CuPy (`xp`) on a GPU."""

    problem: LayerProblem
    dtype: Any

    def found(self, unary: Any, pairwise: Any, xp: Any = None) -> Any:
        """Return marginals of nodes and edges, and λ; None for what a GPU does not compute."""
        if xp is not None:
            made = layer.device_forward(self.problem, unary, pairwise, xp)
            if made is None:
                return None
            half = (*unary.shape[:-2], 2 * self.problem.edges.shape[-2], unary.shape[-1])
            return _rounded((*made[:2], made[2].reshape(half)), self.dtype)
        soft = self.problem.forward(np.asarray(unary), np.asarray(pairwise))
        return _rounded((soft.nodes, soft.pairs, soft.lam), self.dtype)

    def pulled(self, *arrays: Any, xp: Any = None) -> Any:
        """Return gradients by the costs, given costs, λ and gradients by the marginals."""
        (unary, pairwise, lam), given = arrays[:3], arrays[3:]
        if xp is not None:
            costs = unary, pairwise
            return _rounded(layer.device_backward(self.problem, costs, lam, given, xp), self.dtype)
        soft = self.problem.at(np.asarray(unary), np.asarray(pairwise), np.asarray(lam))
        return _rounded(soft.pulled(*map(np.asarray, given)), self.dtype)

    def bent(self, *arrays: Any) -> Any:
        """Return derivatives of `pulled` along a change of the costs."""
        pairs = (tuple(map(_double, arrays[k : k + 2])) for k in (0, 2, 4))
        return _rounded(self.problem.bent(*pairs), self.dtype)


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


def transport_cost(a: Any, b: Any, costs: Any, gap: float) -> Any:
    """`softmap.learn.transport_cost` if one of the arrays is a JAX array; works under `jit`."""
    import jax
    import jax.numpy as jnp

    dtype = jnp.result_type(a, b, costs, jnp.float32)
    parts = [jnp.asarray(given, dtype) for given in (a, b, costs)]
    shapes = [part.shape for part in parts]
    batch = next(
        (shape[:1] for shape, own in zip(shapes, (1, 1, 2), strict=True) if len(shape) > own), ()
    )
    kinds = [
        jax.ShapeDtypeStruct((*batch, *shape), dtype)
        for shape in ((), *(shape[-own:] for shape, own in zip(shapes, (1, 1, 2), strict=True)))
    ]

    def found(first: Any, second: Any, table: Any) -> Any:
        moved = Moved.of(np.asarray(first), np.asarray(second), np.asarray(table), gap)
        return _rounded((moved.cost, *moved.gradients), dtype)

    def pulled(given: Any, *kept: Any) -> Any:
        value, first, second, plan = map(_double, kept)
        moved = Moved(value, (first, second, plan))
        return _rounded(moved.pulled(_double(given), shapes), dtype)

    @jax.custom_vjp
    def cost(*arrays: Any) -> Any:
        return jax.pure_callback(found, kinds, *arrays)[0]

    def forward(*arrays: Any) -> Any:
        made = jax.pure_callback(found, kinds, *arrays)
        return made[0], tuple(made)

    def backward(kept: Any, given: Any) -> Any:
        like = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]
        return tuple(jax.pure_callback(pulled, like, given, *kept))

    cost.defvjp(forward, backward)
    return cost(*parts)


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

"""The differentiable functions for PyTorch tensors, with custom gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.utils.dlpack import from_dlpack

from softmap.extend.device import cupy_or_none
from softmap.learn import layer
from softmap.learn.layer import Beliefs, LayerProblem
from softmap.learn.perturbed import Draws
from softmap.learn.transport import Moved
from softmap.learn.weights import Tensors


@torch.compiler.disable  # the compiled core cannot be traced: torch.compile breaks the graph
def soft_map(unary: Any, pairwise: Any, problem: LayerProblem) -> Beliefs:
    """`softmap.soft_map` for PyTorch tensors; batches are broadcast by PyTorch."""
    first, second = _tensors(unary, pairwise)
    full, tables = problem.shapes(tuple(first.shape), tuple(second.shape))
    return Beliefs(*SoftMap.apply(first.expand(full), second.expand(tables), problem)[:2])


@torch.compiler.disable
def perturbed_map(unary: Any, pairwise: Any, draws: Draws, seed: Any) -> Beliefs:
    """`softmap.learn.perturbed_map` for PyTorch tensors."""
    first, second = _tensors(unary, pairwise)
    full, tables = draws.shapes(tuple(first.shape), tuple(second.shape))
    fixed = draws.seeded(int(seed))
    return Beliefs(*PerturbedMap.apply(first.expand(full), second.expand(tables), fixed))


@torch.compiler.disable
def transport_cost(a: Any, b: Any, costs: Any, gap: float) -> Any:
    """`softmap.learn.transport_cost` for PyTorch tensors."""
    like = next(given for given in (a, b, costs) if isinstance(given, torch.Tensor))
    parts = [
        torch.as_tensor(given, dtype=like.dtype, device=like.device) for given in (a, b, costs)
    ]
    return TransportCost.apply(*parts, gap)[0]


def tensors(like: Any) -> Tensors:
    """Return operations on tensors of the type and device of `like`."""

    def array(values: Any) -> Any:
        if isinstance(values, list | tuple):
            return torch.stack([array(value) for value in values])
        return torch.as_tensor(values, dtype=like.dtype, device=like.device)

    return Tensors(array, torch.where, torch.minimum)


def _tensors(unary: Any, pairwise: Any) -> tuple[Any, Any]:
    """Return both as tensors of one floating type on one device (those of the given tensor)."""
    like = unary if isinstance(unary, torch.Tensor) else pairwise
    dtype = like.dtype if like.dtype.is_floating_point else torch.get_default_dtype()
    if isinstance(unary, torch.Tensor) and isinstance(pairwise, torch.Tensor):
        dtype = torch.promote_types(dtype, pairwise.dtype)
    return (
        torch.as_tensor(unary, dtype=dtype, device=like.device),
        torch.as_tensor(pairwise, dtype=dtype, device=like.device),
    )


def _array(tensor: Any) -> Any:
    """Return a float64 NumPy array; it shares memory with a float64 tensor on the CPU."""
    plain = tensor.detach().cpu().double().contiguous()
    return np.from_dlpack(plain)


def _cupy_for(tensor: Any) -> Any:
    """Return CuPy if the tensor is on a GPU and CuPy is installed, else None (CPU)."""
    return cupy_or_none() if tensor.is_cuda else None


def _there(cupy: Any, *tensors: Any) -> tuple[Any, ...]:
    """Return the tensors as CuPy arrays that share their memory."""
    return tuple(cupy.from_dlpack(tensor.detach().contiguous()) for tensor in tensors)


class SoftMap(torch.autograd.Function):
    """Marginals and λ forward, one adjoint solve backward."""

    @staticmethod
    def forward(unary: Any, pairwise: Any, problem: LayerProblem) -> Any:
        cupy = _cupy_for(unary)
        if cupy is not None:
            with cupy.cuda.Device(unary.device.index):
                costs = _there(cupy, unary, pairwise)
                found = layer.device_forward(problem, costs[0], costs[1], cupy)
            if found is not None:
                half = (*unary.shape[:-2], 2 * problem.edges.shape[-2], unary.shape[-1])
                made = from_dlpack(found[2].reshape(half))  # float64, as on the CPU below
                return (*_back(found[:2], unary), made)
        soft = problem.forward(_array(unary), _array(pairwise))
        lam = torch.from_numpy(np.ascontiguousarray(soft.lam)).to(unary.device)
        return (_like(soft.nodes, unary), _like(soft.pairs, unary), lam)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        unary, pairwise, ctx.problem = inputs
        ctx.mark_non_differentiable(output[2])
        ctx.save_for_backward(unary, pairwise, output[2])

    @staticmethod
    def backward(ctx: Any, nodes: Any, pairs: Any, _: Any) -> Any:
        unary, pairwise, lam = ctx.saved_tensors
        return (*Pull.apply(unary, pairwise, nodes, pairs, lam, ctx.problem), None)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *given: Any) -> Any:
        tensors = _in_front(info.batch_size, in_dims[:2], given[:2])
        return SoftMap.apply(*tensors, given[2]), (0, 0, 0)


class Pull(torch.autograd.Function):
    """The vector-Jacobian product. The Jacobian is symmetric, so `Pull` is its own gradient."""

    @staticmethod
    def forward(
        unary: Any, pairwise: Any, nodes: Any, pairs: Any, lam: Any, problem: LayerProblem
    ) -> Any:
        cupy = _cupy_for(unary) if problem.edges.ndim == 2 else None
        finite = bool(torch.isfinite(unary).all() and torch.isfinite(pairwise).all())
        if cupy is not None and finite:
            with cupy.cuda.Device(unary.device.index):
                costs, given = _there(cupy, unary, pairwise), _there(cupy, nodes, pairs)
                (known,) = _there(cupy, lam)
                return _back(layer.device_backward(problem, costs, known, given, cupy), unary)
        soft = problem.at(_array(unary), _array(pairwise), _array(lam))
        grads = soft.pulled(_array(nodes), _array(pairs))
        return tuple(_like(array, unary) for array in grads)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        *tensors, ctx.problem = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, by_unary: Any, by_pairwise: Any) -> Any:
        unary, pairwise, nodes, pairs, lam = ctx.saved_tensors
        given = Pull.apply(unary, pairwise, by_unary, by_pairwise, lam, ctx.problem)
        bend = _bend((unary, pairwise), (nodes, pairs), (by_unary, by_pairwise), ctx.problem)
        return (*bend, *given, None, None)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *given: Any) -> Any:
        tensors = _in_front(info.batch_size, in_dims[:5], given[:5])
        return Pull.apply(*tensors, given[5]), (0, 0)


class PerturbedMap(torch.autograd.Function):
    """Mean labellings forward; those of the moved costs, under the same noise, backward."""

    @staticmethod
    def forward(unary: Any, pairwise: Any, draws: Draws) -> Any:
        found = draws.mean(_array(unary), _array(pairwise))
        return tuple(_like(array, unary) for array in found)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        *costs, ctx.draws = inputs
        ctx.save_for_backward(*costs, *output)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *given: Any) -> Any:
        arrays = [_array(tensor) for tensor in ctx.saved_tensors]
        found = ctx.draws.pulled(arrays[:2], arrays[2:], [_array(g) for g in given])
        return (*(_like(array, ctx.saved_tensors[0]) for array in found), None)


class TransportCost(torch.autograd.Function):
    """The cost of a plan forward; the plan and the potentials backward."""

    @staticmethod
    def forward(a: Any, b: Any, costs: Any, gap: float) -> Any:
        first, second, table = (tensor.detach().cpu().numpy() for tensor in (a, b, costs))
        moved = Moved.of(first, second, table, gap)
        cost = _like(moved.cost, a).reshape(moved.cost.shape)
        return (cost, *(_like(part, a) for part in moved.gradients))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.shapes = [tensor.shape for tensor in inputs[:3]]
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*output)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, given: Any, *_: Any) -> Any:
        cost, *gradients = (_array(tensor) for tensor in ctx.saved_tensors)
        made = Moved(cost, tuple(gradients)).pulled(_array(given), ctx.shapes)
        return (*(_like(array, given) for array in made), None)


def _bend(costs: Any, given: Any, along: Any, problem: LayerProblem) -> Any:
    """As `LayerProblem.bent`, of tensors. It cannot be differentiated again."""
    if torch.is_grad_enabled() and any(t.requires_grad for t in (*costs, *given, *along)):
        raise RuntimeError(
            "soft_map can be differentiated twice, not three times: take the second derivative "
            "without create_graph=True"
        )
    bent = problem.bent(*(tuple(map(_array, pair)) for pair in (costs, given, along)))
    return tuple(_like(array, cost) for array, cost in zip(bent, costs, strict=True))


def _in_front(size: int, in_dims: Any, tensors: Any) -> list[Any]:
    """Return all tensors with the mapped dimension first."""
    return [
        tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
        for tensor, dim in zip(tensors, in_dims, strict=True)
    ]


def _back(arrays: Any, like: Any) -> Any:
    """Return CuPy arrays as tensors."""
    return tuple(from_dlpack(array).to(dtype=like.dtype) for array in arrays)


def _like(array: Any, tensor: Any) -> Any:
    made = torch.from_numpy(np.ascontiguousarray(array))
    return made.to(dtype=tensor.dtype, device=tensor.device)

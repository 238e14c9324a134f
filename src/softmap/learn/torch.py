"""`soft_map` for PyTorch tensors: a function with a gradient of its own."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from softmap.learn import device
from softmap.learn.layer import Beliefs, Problem, _edges, shapes
from softmap.methods.cuda import cupy_or_none

__all__ = ["soft_map"]


def soft_map(unary: Any, pairwise: Any, edges: Any, eta: float, tol: float) -> Beliefs:
    """`softmap.soft_map` where one of the costs is a tensor; batches are broadcast by PyTorch."""
    import torch

    first, second = _tensors(torch, unary, pairwise)
    if isinstance(edges, torch.Tensor):
        edges = edges.detach().cpu().numpy()
    problem = Problem(_edges(edges), eta, tol)
    full, tables = shapes(tuple(first.shape), tuple(second.shape), len(problem.edges))
    return Beliefs(*_function().apply(first.expand(full), second.expand(tables), problem))


def _tensors(torch: Any, unary: Any, pairwise: Any) -> tuple[Any, Any]:
    """Both as tensors of one floating type on one device: that of the tensor among them."""
    like = unary if isinstance(unary, torch.Tensor) else pairwise
    dtype = like.dtype if like.dtype.is_floating_point else torch.get_default_dtype()
    if isinstance(unary, torch.Tensor) and isinstance(pairwise, torch.Tensor):
        dtype = torch.promote_types(dtype, pairwise.dtype)
    return (
        torch.as_tensor(unary, dtype=dtype, device=like.device),
        torch.as_tensor(pairwise, dtype=dtype, device=like.device),
    )


def _array(tensor: Any) -> Any:
    """A float64 NumPy array, the same memory where the tensor is one on the processor."""
    plain = tensor.detach().cpu().double().contiguous()
    return np.from_dlpack(plain)


def _cupy_for(tensor: Any) -> Any:
    """CuPy, where the tensor is on a GPU and CuPy installed; else the processor does the work."""
    return cupy_or_none() if tensor.is_cuda else None


def _there(cupy: Any, *tensors: Any) -> tuple[Any, ...]:
    """The same memory as arrays of CuPy."""
    return tuple(cupy.from_dlpack(tensor.detach().contiguous()) for tensor in tensors)


@cache
def _function() -> Any:
    import torch
    from torch.autograd.function import once_differentiable
    from torch.utils.dlpack import from_dlpack

    class SoftMap(torch.autograd.Function):
        """Marginals forward, one adjoint solve backward."""

        @staticmethod
        def forward(ctx: Any, unary: Any, pairwise: Any, problem: Problem) -> Any:
            ctx.save_for_backward(unary, pairwise)
            ctx.problem, ctx.cupy = problem, _cupy_for(unary)
            if ctx.cupy is not None:
                with ctx.cupy.cuda.Device(unary.device.index):
                    costs = _there(ctx.cupy, unary, pairwise)
                    found = device.forward(problem, costs[0], costs[1], ctx.cupy)
                if found is not None:
                    ctx.lam = found[2]
                    return _back(found[:2], (unary, pairwise))
                ctx.cupy = None
            soft = problem.forward(_array(unary), _array(pairwise))
            ctx.lam = soft.lam
            parts = ((soft.nodes, unary), (soft.edges, pairwise))
            return tuple(_like(array, tensor) for array, tensor in parts)

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, nodes: Any, pairs: Any) -> Any:
            if ctx.cupy is not None:
                with ctx.cupy.cuda.Device(nodes.device.index):
                    costs = _there(ctx.cupy, *ctx.saved_tensors)
                    given = _there(ctx.cupy, nodes, pairs)
                    found = device.backward(ctx.problem, costs, ctx.lam, given, ctx.cupy)
                return (*_back(found, (nodes, pairs)), None)
            unary, pairwise = map(_array, ctx.saved_tensors)
            soft = ctx.problem.at(unary, pairwise, ctx.lam)
            grads = ctx.problem.backward(soft, _array(nodes), _array(pairs))
            parts = zip(grads, (nodes, pairs), strict=True)
            return (*(_like(array, tensor) for array, tensor in parts), None)

    def _back(arrays: Any, tensors: Any) -> Any:
        pairs = zip(arrays, tensors, strict=True)
        return tuple(from_dlpack(a).to(dtype=t.dtype) for a, t in pairs)

    def _like(array: Any, tensor: Any) -> Any:
        made = torch.from_numpy(array).reshape(tensor.shape)
        return made.to(dtype=tensor.dtype, device=tensor.device)

    return SoftMap

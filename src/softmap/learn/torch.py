"""`soft_map` for PyTorch tensors: a function with a gradient of its own."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from softmap.learn.layer import Beliefs, Problem, _edges, shapes

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


@cache
def _function() -> Any:
    import torch
    from torch.autograd.function import once_differentiable

    class SoftMap(torch.autograd.Function):
        """Marginals forward, one adjoint solve backward."""

        @staticmethod
        def forward(ctx: Any, unary: Any, pairwise: Any, problem: Problem) -> Any:
            soft = problem.forward(_array(unary), _array(pairwise))
            ctx.save_for_backward(unary, pairwise)
            ctx.problem, ctx.lam = problem, soft.lam
            parts = ((soft.nodes, unary), (soft.edges, pairwise))
            return tuple(_like(array, tensor) for array, tensor in parts)

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, nodes: Any, pairs: Any) -> Any:
            unary, pairwise = map(_array, ctx.saved_tensors)
            soft = ctx.problem.at(unary, pairwise, ctx.lam)
            grads = ctx.problem.backward(soft, _array(nodes), _array(pairs))
            parts = zip(grads, (nodes, pairs), strict=True)
            return (*(_like(array, tensor) for array, tensor in parts), None)

    def _like(array: Any, tensor: Any) -> Any:
        made = torch.from_numpy(array).reshape(tensor.shape)
        return made.to(dtype=tensor.dtype, device=tensor.device)

    return SoftMap

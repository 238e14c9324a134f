"""The smoothed dual at one λ: marginals, slack, and products with covariances and the Hessian.

Let M λ = (Σ_e λ_{e,i}, -λ_{e,i} - λ_{e,j}). The marginals are μ = softmax(η (M λ - C)) in each
block. The gradient of L is Mᵀ μ = -ν. Its Hessian is η Mᵀ Cov(μ) M, which is never formed.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from softmap.errors import ConvergenceWarning
from softmap.methods.marginals.newton import SMOOTHING, Solved, conjugate_gradients
from softmap.model import Model
from softmap.relaxation.dual import EdgeBatch, Floats, edge_batches, half_states

Ints = NDArray[np.int64]
LEAST = 1e-290  # marginals below this count as 0 when something is divided by them


class EdgeTables(Protocol):
    """Edges with tables of one shape, as `EdgeBatch`; the arrays may be on a device."""

    @property
    def rows(self) -> Any: ...
    @property
    def cols(self) -> Any: ...
    def reduced(self, lam: Any, /) -> Any: ...


class Frame(Protocol):
    """What does not depend on λ: costs, and which entries of arrays belong together.

    Attributes
    ----------
    xp : module
        numpy or cupy, whichever the arrays belong to.
    unary : float64 array
        Costs of the nodes, flat over node states.
    constant : float
        Constant of the energy.
    batches : sequence of EdgeTables
        The edges.
    states : int64 array
        For each entry of a half-edge array, that of a node array with the same label.
    """

    xp: Any
    unary: Any
    constant: float
    states: Any

    @property
    def batches(self) -> Sequence[EdgeTables]: ...

    def dot(self, a: Any, b: Any, /) -> Any:
        """The product of half-edge arrays, one number per part."""

    def each(self, values: Any, /) -> Any:
        """One number per part, for every half-edge of it."""

    def gather(self, half: Any, /) -> Any:
        """Return Σ_{e∈N_i} of a half-edge array, flat over node states."""

    def by_node(self, nodes: Any, /) -> Any:
        """Return the sum of each node's block, repeated over the block."""

    def softened(self, cost: Any, eta: float, /) -> tuple[Any, float]:
        """Return the Gibbs distributions of the nodes, and the sum of their soft minima."""


class ModelFrame:
    """The `Frame` of a tightened model; its parts are the connected components."""

    xp: Any = np

    def __init__(self, model: Model) -> None:
        self.model, self.unary, self.constant = model, model.unary, model.constant
        self.batches: tuple[EdgeBatch, ...] = tuple(edge_batches(model))
        self.states: Ints = half_states(model)
        component = model.graph.components() if model.m else np.arange(model.n, dtype=np.int32)
        self._parts = int(component.max()) + 1
        node = model.edges.reshape(-1)
        self._part = np.repeat(component[node], model.num_labels[node])

    def dot(self, a: Floats, b: Floats) -> Floats:
        """The product of half-edge arrays, one number per component."""
        return np.asarray(np.bincount(self._part, a * b, self._parts), dtype=np.float64)

    def each(self, values: Floats) -> Floats:
        """One number per component, for every half-edge of it."""
        return values[self._part]

    def gather(self, half: Floats) -> Floats:
        """Return Σ_{e∈N_i} of a half-edge array, flat over node states."""
        size = int(self.model.node_offset[-1])
        return np.asarray(np.bincount(self.states, half, size), dtype=np.float64)

    def by_node(self, nodes: Floats) -> Floats:
        """Return the sum of each node's block, repeated over the block."""
        sums = np.add.reduceat(nodes, self.model.node_offset[:-1])
        return np.repeat(sums, self.model.num_labels)

    def softened(self, cost: Floats, eta: float) -> tuple[Floats, float]:
        """Return the Gibbs distributions of the nodes, and the sum of their soft minima."""
        start, labels = self.model.node_offset[:-1], self.model.num_labels
        least = np.minimum.reduceat(cost, start)
        weight = np.exp(-eta * (cost - np.repeat(least, labels)))
        mass = np.add.reduceat(weight, start)
        return weight / np.repeat(mass, labels), float((least - np.log(mass) / eta).sum())


class Curvature:
    """The marginals μ^λ at η, and products with the derivatives of L at λ.

    Attributes
    ----------
    frame : Frame
        The costs.
    nodes : float64 array
        Node marginals, flat over node states.
    tables : list of float64 arrays
        Edge marginals, one array (k, d_i, d_j) per batch of the frame.
    sums : float64 array
        S_{e,i}, flat over half-edges.
    value : float
        L(λ), the constant included.
    """

    def __init__(self, frame: Frame, lam: Any, eta: float) -> None:
        self.frame, self.lam, self.eta, xp = frame, lam, eta, frame.xp
        self.nodes, total = frame.softened(frame.unary - frame.gather(lam), eta)
        self.tables: list[Any] = []
        self.sums = xp.zeros(lam.size)
        for batch in frame.batches:
            table = batch.reduced(lam)
            low = table.min(axis=(1, 2), keepdims=True)
            xp.exp(xp.multiply(xp.subtract(table, low, out=table), -eta, out=table), out=table)
            mass = table.sum(axis=(1, 2), keepdims=True)
            table /= mass
            self.tables.append(table)
            self.sums[batch.rows], self.sums[batch.cols] = table.sum(axis=2), table.sum(axis=1)
            total += float((low - xp.log(mass) / eta).sum())
        self.value = -total - frame.constant

    @cached_property
    def slack(self) -> Any:
        """The slack ν = S - μ_i, the negative gradient of L."""
        return self.sums - self.nodes[self.frame.states]

    @cached_property
    def worst(self) -> float:
        """The largest |ν_{e,i}(x)|."""
        return self._largest(self.slack)

    def _largest(self, *arrays: Any) -> float:
        """The largest absolute value of an entry, or 0."""
        return max((float(self.frame.xp.abs(a).max()) for a in arrays if a.size), default=0.0)

    def at(self, lam: Any) -> Curvature:
        """Return the same object at another λ."""
        return Curvature(self.frame, lam, self.eta)

    def pulled_back(
        self, nodes: Any, tables: Sequence[Any], tol: float = SMOOTHING.adjoint
    ) -> tuple[Any, list[Any]]:
        """Return the derivative of ⟨nodes, μ_i⟩ + ⟨tables, μ_e⟩ by the costs of nodes and edges.

        Implicit differentiation of Mᵀ μ(C, λ(C)) = 0 gives -(w - η Cov(μ) M z) with
        w = η Cov(μ) g and ∇²L z = Mᵀ w. It takes one linear solve for all costs.
        """
        node_w, table_w = self.node_covariance(nodes), self.table_covariance(tables)
        rhs = node_w[self.frame.states] - self.sides(table_w)
        if self._largest(rhs) <= SMOOTHING.nothing * self.eta * self._largest(nodes, *tables):
            rhs = self.frame.xp.zeros_like(rhs)  # what rounding has left of sums that vanish
        solved = self.solve(rhs, tol, SMOOTHING.products)
        if not solved.done:
            warnings.warn(
                f"the gradient at eta={self.eta:g} is not accurate: {solved.products} products "
                "with the Hessian were not enough; a smaller eta is easier",
                ConvergenceWarning,
                stacklevel=3,
            )
        by_node = self.node_covariance(self.frame.gather(solved.x)) - node_w
        by_table = self.table_covariance(self.spread(solved.x))
        return by_node, [-w - moved for w, moved in zip(table_w, by_table, strict=True)]

    def solve(self, rhs: Any, tol: float, limit: int) -> Solved:
        """Solve ∇²L(λ) x = `rhs` by conjugate gradients."""
        frame = self.frame
        return conjugate_gradients(
            self.hessian, self.precondition, rhs, frame, tol=tol, limit=limit
        )

    def node_covariance(self, v: Any) -> Any:
        """η Cov(μ_i) v for every node."""
        return self.eta * self.nodes * (v - self.frame.by_node(self.nodes * v))

    def table_covariance(self, tables: Sequence[Any]) -> list[Any]:
        """η Cov(μ_e) v for every edge; v and the result are shaped like `tables`."""
        out = []
        for mu, v in zip(self.tables, tables, strict=True):
            mean = (mu * v).sum(axis=(1, 2), keepdims=True)
            out.append(self.eta * mu * (v - mean))
        return out

    def sides(self, tables: Sequence[Any]) -> Any:
        """Return the sums of tables over either endpoint, flat over half-edges."""
        out = self.frame.xp.zeros_like(self.sums)
        for batch, table in zip(self.frame.batches, tables, strict=True):
            out[batch.rows], out[batch.cols] = table.sum(axis=2), table.sum(axis=1)
        return out

    def spread(self, half: Any) -> list[Any]:
        """Return v_{e,i}(x) + v_{e,j}(y) as tables."""
        return [
            half[batch.rows][:, :, None] + half[batch.cols][:, None, :]
            for batch in self.frame.batches
        ]

    def hessian(self, v: Any) -> Any:
        """Return ∇²L(λ) v. Arrays that are constant on every half-edge are in its kernel."""
        out = self.node_covariance(self.frame.gather(v))[self.frame.states]
        for batch, mu in zip(self.frame.batches, self.tables, strict=True):
            a, b = v[batch.rows], v[batch.cols]
            p, q = self.sums[batch.rows], self.sums[batch.cols]
            mean = ((p * a).sum(axis=1) + (q * b).sum(axis=1))[:, None]
            out[batch.rows] += self.eta * (p * (a - mean) + (mu @ b[:, :, None])[:, :, 0])
            out[batch.cols] += self.eta * (q * (b - mean) + (a[:, None, :] @ mu)[:, 0, :])
        return out

    @cached_property
    def _inverse(self) -> tuple[Any, Any]:
        """1 / S on half-edges, and 1 / (1/μ_i + Σ_e 1/S_{e,i}) on node states."""
        xp = self.frame.xp
        with np.errstate(divide="ignore"):
            inverse = xp.where(self.sums > LEAST, 1.0 / self.sums, 0.0)
            node = xp.where(self.nodes > LEAST, 1.0 / self.nodes, np.inf)
        return inverse, 1.0 / (node + self.frame.gather(inverse))

    def precondition(self, r: Any) -> Any:
        """Multiply r by the block-diagonal preconditioner; r sums to 0 on every half-edge.

        The blocks are the stars. If ν = 0 the Hessian's block of a node is Cov(μ_i) ⊗ (1 + 1 1ᵀ),
        as in the proof of the star update, and the preconditioner is its inverse up to constants.
        It is positive definite also for ν ≠ 0.
        """
        inverse, node = self._inverse
        scaled = inverse * r
        common = node * self.frame.gather(scaled)
        return (scaled - inverse * common[self.frame.states]) / self.eta

"""The smoothed dual at one λ: marginals, slack, and products with covariances and the Hessian.

Let M λ = (Σ_e λ_{e,i}, -λ_{e,i} - λ_{e,j}). The marginals are μ = softmax(η (M λ - C)) in each
block. The gradient of L is Mᵀ μ = -ν. Its Hessian is η Mᵀ Cov(μ) M, which is never formed.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.methods.marginals.newton import Solved, conjugate_gradients
from softmap.model import Model
from softmap.relaxation.dual import EdgeBatch, Floats, edge_batches, half_states

Ints = NDArray[np.int64]
LEAST = 1e-290  # marginals below this count as 0 when something is divided by them


class Frame:
    """What does not depend on λ: a tightened model, its tables, and which entries belong together.

    Attributes
    ----------
    model : Model, as `tighten` leaves it
    batches : tuple of EdgeBatch
    states : for each entry of a half-edge array, that of a node array with the same label

    Its parts are the connected components.
    """

    xp: Any = np

    def __init__(self, model: Model) -> None:
        self.model = model
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


class Curvature:
    """The marginals μ^λ at η, and products with the derivatives of L at λ.

    Attributes
    ----------
    nodes : float64 array
        Node marginals, flat over node states.
    tables : list of float64 arrays
        Edge marginals, one array (k, d_i, d_j) per batch of the frame.
    sums : float64 array
        S_{e,i}, flat over half-edges.
    value : float
        L(λ), `model.constant` included.
    """

    def __init__(self, frame: Frame, lam: Floats, eta: float) -> None:
        self.frame, self.lam, self.eta = frame, lam, eta
        model, total = frame.model, 0.0
        cost = model.unary - frame.gather(lam)
        least = np.minimum.reduceat(cost, model.node_offset[:-1])
        weight = np.exp(-eta * (cost - np.repeat(least, model.num_labels)))
        mass = np.add.reduceat(weight, model.node_offset[:-1])
        self.nodes: Floats = weight / np.repeat(mass, model.num_labels)
        total += float((least - np.log(mass) / eta).sum())
        self.tables: list[Floats] = []
        self.sums: Floats = np.zeros(int(model.half_offset[-1]))
        for batch in frame.batches:
            table = batch.reduced(lam)
            low = table.min(axis=(1, 2), keepdims=True)
            np.exp(np.multiply(np.subtract(table, low, out=table), -eta, out=table), out=table)
            mass = table.sum(axis=(1, 2), keepdims=True)
            table /= mass
            self.tables.append(table)
            self.sums[batch.rows], self.sums[batch.cols] = table.sum(axis=2), table.sum(axis=1)
            total += float((low - np.log(mass) / eta).sum())
        self.value = -total - model.constant

    @cached_property
    def slack(self) -> Floats:
        """The slack ν = S - μ_i, the negative gradient of L."""
        return self.sums - self.nodes[self.frame.states]

    @property
    def worst(self) -> float:
        """The largest |ν_{e,i}(x)|."""
        return float(np.abs(self.slack).max(initial=0.0))

    def at(self, lam: Floats) -> Curvature:
        """Return the same object at another λ."""
        return Curvature(self.frame, lam, self.eta)

    def solve(self, rhs: Floats, tol: float, limit: int) -> Solved:
        """Solve ∇²L(λ) x = `rhs` by conjugate gradients."""
        frame = self.frame
        return conjugate_gradients(
            self.hessian, self.precondition, rhs, frame, tol=tol, limit=limit
        )

    def node_covariance(self, v: Floats) -> Floats:
        """η Cov(μ_i) v for every node."""
        return self.eta * self.nodes * (v - self.frame.by_node(self.nodes * v))

    def table_covariance(self, tables: list[Floats]) -> list[Floats]:
        """η Cov(μ_e) v for every edge; v and the result are shaped like `tables`."""
        out = []
        for mu, v in zip(self.tables, tables, strict=True):
            mean = (mu * v).sum(axis=(1, 2), keepdims=True)
            out.append(self.eta * mu * (v - mean))
        return out

    def sides(self, tables: list[Floats]) -> Floats:
        """Return the sums of tables over either endpoint, flat over half-edges."""
        out = np.zeros_like(self.sums)
        for batch, table in zip(self.frame.batches, tables, strict=True):
            out[batch.rows], out[batch.cols] = table.sum(axis=2), table.sum(axis=1)
        return out

    def spread(self, half: Floats) -> list[Floats]:
        """Return v_{e,i}(x) + v_{e,j}(y) as tables."""
        return [
            half[batch.rows][:, :, None] + half[batch.cols][:, None, :]
            for batch in self.frame.batches
        ]

    def hessian(self, v: Floats) -> Floats:
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
    def _inverse(self) -> tuple[Floats, Floats]:
        """1 / S on half-edges, and 1 / (1/μ_i + Σ_e 1/S_{e,i}) on node states."""
        with np.errstate(divide="ignore"):
            inverse = np.where(self.sums > LEAST, 1.0 / self.sums, 0.0)
            node = np.where(self.nodes > LEAST, 1.0 / self.nodes, np.inf)
        return inverse, 1.0 / (node + self.frame.gather(inverse))

    def precondition(self, r: Floats) -> Floats:
        """Multiply r by the block-diagonal preconditioner; r sums to 0 on every half-edge.

        The blocks are the stars. If ν = 0 the Hessian's block of a node is Cov(μ_i) ⊗ (1 + 1 1ᵀ),
        as in the proof of the star update, and the preconditioner is its inverse up to constants.
        It is positive definite also for ν ≠ 0.
        """
        inverse, node = self._inverse
        scaled = inverse * r
        common = node * self.frame.gather(scaled)
        return (scaled - inverse * common[self.frame.states]) / self.eta

"""The smoothed dual at one λ: marginals, slack, and products with covariances and the Hessian.

Let M λ = (Σ_e λ_{e,i}, -λ_{e,i} - λ_{e,j}). The marginals are μ = softmax(η (M λ - C)) in each
block. The gradient of L is Mᵀ μ = -ν. Its Hessian is η Mᵀ Cov(μ) M, which is never formed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from softmap.errors import ConvergenceWarning
from softmap.model import Network
from softmap.relaxation.dual import EdgeBatch, edge_batches, half_states

LEAST = 1e-290  # marginals below this count as 0 when something is divided by them


@dataclass(frozen=True)
class SmoothLimits:
    """Tolerances and limits of the computation of the smoothed optimum.

    Attributes
    ----------
    tol : float
        Largest |ν| of marginals that count as consistent.
    mild : float
        Smallest η for continuation in η, in units of 1 / scale of the costs.
    coarse : float
        Tolerance of |ν| at intermediate values of η.
    sweeps : int
        Number of sweeps before the first Newton step; it grows from round to round.
    rounds : int
        Largest number of rounds of sweeps and Newton steps.
    steps : int
        Number of Newton steps in one round.
    step_products : int
        Largest number of products with the Hessian for one Newton step; ten times as many for a
        gradient.
    adjoint : float
        Relative accuracy of the adjoint solve, in the norm of its preconditioner.
    nothing : float
        Right-hand sides below this value, relative to the absolute values of their terms, are 0.
    """

    tol: float = 1e-10
    mild: float = 8.0
    coarse: float = 1e-3
    sweeps: int = 24
    rounds: int = 3
    steps: int = 12
    step_products: int = 400
    adjoint: float = 1e-11
    nothing: float = 1e-14


SMOOTHING = SmoothLimits()


class OneShape(NamedTuple):
    """Edges with tables of one shape, on any device; `EdgeBatch` has these attributes, too.

    Attributes
    ----------
    cost : float64 array (k, d_i, d_j)
        C_e.
    rows, cols : int64 arrays (k, d_i) and (k, d_j)
        Indices of the labels of the first and second endpoint in half-edge arrays.
    """

    cost: Any
    rows: Any
    cols: Any


class Frame:
    """What does not depend on λ: costs, and which entries of arrays belong together.

    Parameters
    ----------
    unary : float64 array
        Costs of the nodes, flat over node states.
    batches : sequence of EdgeBatch or OneShape
        The edges.
    states : int64 array
        For each entry of a half-edge array, that of a node array with the same label.
    blocks : sequence of int64 arrays (k, d)
        For each number of labels, the entries of the nodes with so many labels in node arrays.
    parts : int
        Number of parts of the graph. Each has its own step lengths.
    part : int64 array, optional
        The part of each entry of a half-edge array. By default, the parts have equal sizes and
        follow each other.
    constant : float, default 0
        Constant of the energy.
    xp : module, default numpy
        numpy or cupy, whichever the arrays belong to.
    """

    def __init__(
        self,
        unary: Any,
        batches: Sequence[EdgeBatch | OneShape],
        states: Any,
        blocks: Sequence[Any],
        parts: int,
        part: Any = None,
        constant: float = 0.0,
        xp: Any = np,
    ) -> None:
        self.unary, self.batches, self.states, self.constant = unary, batches, states, constant
        self.xp, self._blocks, self._parts, self._part = xp, blocks, parts, part
        self._node = xp.zeros(unary.size, dtype=np.int64)  # any numbers, one for each node
        for block in blocks:
            self._node[block] = block[:, :1]

    def dot(self, a: Any, b: Any) -> Any:
        """The product of half-edge arrays, one number per part."""
        if self._part is None:
            return (a * b).reshape(self._parts, -1).sum(axis=1)
        return self.xp.bincount(self._part, a * b, self._parts)

    def each(self, values: Any) -> Any:
        """One number per part, for every half-edge of it."""
        if self._part is None:
            return self.xp.repeat(values, self.states.size // self._parts)
        return values[self._part]

    def gather(self, half: Any) -> Any:
        """Return Σ_{e∈N_i} of a half-edge array, flat over node states."""
        if not half.size:
            return self.xp.zeros_like(self.unary)
        return self.xp.bincount(self.states, weights=half, minlength=self.unary.size)

    def by_node(self, nodes: Any) -> Any:
        """Return the sum of each node's block, repeated over the block."""
        return self.xp.bincount(self._node, nodes)[self._node]

    def softened(self, cost: Any, eta: float) -> tuple[Any, float]:
        """Return the Gibbs distributions of the nodes, and the sum of their soft minima."""
        out, total, xp = self.xp.empty_like(cost), 0.0, self.xp
        for block in self._blocks:
            rows = cost[block]
            low = rows.min(axis=1, keepdims=True)
            weight = xp.exp(-eta * (rows - low))
            mass = weight.sum(axis=1, keepdims=True)
            out[block] = weight / mass
            total += float((low - xp.log(mass) / eta).sum())
        return out, total

    def _finite(self) -> Iterator[tuple[Any, Any]]:
        """Yield the least and the largest finite cost of tables, some tables at a time."""
        tables = [self.unary[block] for block in self._blocks]
        for costs in (*tables, *(b.cost.reshape(len(b.cost), -1) for b in self.batches)):
            known = self.xp.isfinite(costs)
            low = self.xp.where(known, costs, np.inf).min(axis=1)
            high = self.xp.where(known, costs, -np.inf).max(axis=1)
            some = low <= high
            yield low[some], high[some]

    @cached_property
    def scale(self) -> float:
        """The mean range of costs; see `relaxation.dual.cost_scale`."""
        width = self.xp.concatenate([high - low for low, high in self._finite()])
        wide = width[width > 0]
        return float(wide.mean()) if wide.size else self.largest or 1.0

    @cached_property
    def largest(self) -> float:
        """The largest |cost| that is finite."""
        sizes = (self.xp.abs(a) for pair in self._finite() for a in pair)
        return max((float(a.max()) for a in sizes if a.size), default=0.0)

    def reachable(self, eta: float, tol: float) -> float:
        """Return `tol`, or the smallest |ν| that rounding errors of η C allow if it is larger."""
        return max(tol, 16 * float(np.finfo(np.float64).eps) * (1.0 + eta * self.largest))


class ModelFrame(Frame):
    """The frame of a tightened model; its parts are the connected components."""

    def __init__(self, model: Network) -> None:
        self.model, self.edge_batches = model, tuple(edge_batches(model))
        component = model.graph.components() if model.m else np.arange(model.n, dtype=np.int32)
        node, labels = model.edges.reshape(-1), model.num_labels
        super().__init__(
            model.unary,
            self.edge_batches,
            half_states(model),
            [
                model.node_offset[:-1][labels == d][:, None] + np.arange(d)
                for d in np.unique(labels)
            ],
            int(component.max()) + 1,
            np.repeat(component[node], labels[node]),
            model.constant,
        )


@dataclass(frozen=True)
class Solved:
    """A solution, the number of products used, and whether every part reached its tolerance."""

    x: Any
    products: int
    done: bool


def conjugate_gradients(
    matrix: Callable[[Any], Any],
    precondition: Callable[[Any], Any],
    rhs: Any,
    parts: Frame,
    *,
    tol: float,
    limit: int,
) -> Solved:
    """Solve `matrix(x) = rhs` for a right-hand side in the range of a semidefinite matrix.

    The matrix is block-diagonal. Each part (block) has its own step lengths, and stops when
    √(rᵀ P r) has fallen by the factor `tol`; one product is shared by all parts. The component of x
    in the kernel of the matrix is arbitrary.
    """
    xp = parts.xp
    x, r = xp.zeros_like(rhs), rhs.copy()
    z = precondition(r)
    direction, rho = z.copy(), parts.dot(r, z)
    goal = tol**2 * rho
    for products in range(limit):
        active = rho > goal
        if not bool(active.any()):
            return Solved(x, products, True)
        image = matrix(direction)
        curve = parts.dot(direction, image)
        moving = active & (curve > 0)
        if not bool(moving.any()):  # only rounding is left
            return Solved(x, products + 1, bool((rho <= 1e4 * goal).all()))
        step = parts.each(xp.where(moving, rho / xp.where(moving, curve, 1.0), 0.0))
        x += step * direction
        r -= step * image
        z = precondition(r)
        new = parts.dot(r, z)
        keep = parts.each(xp.where(moving, new / xp.where(moving, rho, 1.0), 0.0))
        direction = z + keep * direction
        rho = xp.where(moving, new, xp.minimum(rho, goal))
    return Solved(x, limit, bool((rho <= goal).all()))


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
            table = batch.cost + _pair_sums(batch, lam)
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
        solved = self.solve(rhs, tol, 10 * SMOOTHING.step_products)
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
        return [_pair_sums(batch, half) for batch in self.frame.batches]

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


def _pair_sums(batch: EdgeBatch | OneShape, half: Any) -> Any:
    """Return v_{e,i}(x) + v_{e,j}(y) for the edges of a batch."""
    return half[batch.rows][:, :, None] + half[batch.cols][:, None, :]

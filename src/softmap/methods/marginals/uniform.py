"""The smoothed optimum of a batch of models with one number of labels, in numpy or CuPy.

It does what `smooth` and `curvature` do for any model, for tensors of costs without hard
constraints. Every step is a few operations on whole arrays, so that CuPy runs it on the GPU. λ is
an array (m, 2, d); the members of a batch are concatenated and have their own step lengths.
"""

from __future__ import annotations

import math
import warnings
from functools import cached_property, partial
from typing import Any

import numpy as np

from softmap.errors import ConvergenceWarning
from softmap.methods.marginals.curvature import LEAST
from softmap.methods.marginals.newton import SMOOTHING, Solved, approach, conjugate_gradients
from softmap.model.graph import Graph


class Costs:
    """The costs of a batch of models over one graph.

    Parameters
    ----------
    unary : float array (batch · n, d)
    tables : float array (batch · m, d, d)
    edges : int array (m, 2)
        Edges of one member, in host memory.
    batch : int
        Number of members.
    xp : module
        numpy or cupy, whichever the arrays belong to.
    """

    def __init__(self, unary: Any, tables: Any, edges: Any, batch: int, xp: Any = np) -> None:
        self.unary, self.tables, self.xp, self.batch = unary, tables, xp, batch
        n, self.labels = len(unary) // batch, unary.shape[1]
        graph = Graph.from_edges(np.ascontiguousarray(edges, dtype=np.int32), n)
        shift = n * np.arange(batch)
        ends = np.asarray(edges, dtype=np.int64)[None] + shift[:, None, None]
        self.node = xp.asarray(ends.reshape(-1, 2))
        self._states = (self.node[:, :, None] * self.labels + xp.arange(self.labels)).reshape(-1)
        self.degree = xp.bincount(self.node.reshape(-1), minlength=len(unary))
        colour = np.tile(graph.colouring(), batch)
        of_half = colour[ends.reshape(-1)]
        self.stars = [
            xp.asarray(np.flatnonzero(of_half == c)) for c in range(int(colour.max(initial=-1)) + 1)
        ]

    def gather(self, half: Any) -> Any:
        """Return the sum of a half-edge array over the edges of each node."""
        if not half.size:
            return self.xp.zeros_like(self.unary)
        size = self.unary.size
        found = self.xp.bincount(self._states, weights=half.reshape(-1), minlength=size)
        return found.reshape(self.unary.shape)

    def at_ends(self, nodes: Any) -> Any:
        """Return a node array at both endpoints of every edge."""
        return nodes[self.node]

    def dot(self, a: Any, b: Any) -> Any:
        """Return the inner product of half-edge arrays, one number per member."""
        return (a * b).reshape(self.batch, -1).sum(axis=1)

    def each(self, values: Any) -> Any:
        """Repeat one number per member over its half-edges."""
        return self.xp.repeat(values, len(self.node) // self.batch)[:, None, None]

    @cached_property
    def scale(self) -> float:
        """The mean range of costs; see `relaxation.dual.cost_scale`."""
        flat = [self.unary, self.tables.reshape(len(self.tables), self.labels**2)]
        width = self.xp.concatenate([a.max(axis=1) - a.min(axis=1) for a in flat if a.size])
        wide = width[width > 0]
        return float(wide.mean()) if wide.size else self.largest or 1.0

    @cached_property
    def largest(self) -> float:
        """The largest |cost|."""
        return max(float(self.xp.abs(a).max()) for a in (self.unary, self.tables) if a.size)


class Point:
    """The marginals μ at λ and η, and products with derivatives; see `curvature.Curvature`."""

    def __init__(self, costs: Costs, lam: Any, eta: float) -> None:
        self.costs, self.lam, self.eta = costs, lam, eta
        xp = costs.xp
        self.nodes, soft = _softened(costs.unary - costs.gather(lam), eta, xp)
        raised = costs.tables + lam[:, 0, :, None] + lam[:, 1, None, :]
        flat, more = _softened(raised.reshape(len(raised), costs.labels**2), eta, xp)
        self.tables = flat.reshape(raised.shape)
        self.sums = xp.stack([self.tables.sum(axis=2), self.tables.sum(axis=1)], axis=1)
        self.slack = self.sums - costs.at_ends(self.nodes)
        self.worst = float(xp.abs(self.slack).max()) if self.slack.size else 0.0
        self.value = -float(soft) - float(more)

    def node_covariance(self, v: Any) -> Any:
        """Return η Cov(μ_i) v."""
        return self.eta * self.nodes * (v - (self.nodes * v).sum(axis=1, keepdims=True))

    def table_covariance(self, v: Any) -> Any:
        """Return η Cov(μ_e) v."""
        mean = (self.tables * v).sum(axis=(1, 2), keepdims=True)
        return self.eta * self.tables * (v - mean)

    def hessian(self, v: Any) -> Any:
        """Return ∇²L(λ) v."""
        costs, mu, (a, b) = self.costs, self.tables, (v[:, 0], v[:, 1])
        mean = (self.sums * v).sum(axis=(1, 2))[:, None, None]
        crossed = costs.xp.stack(
            [(mu @ b[:, :, None])[:, :, 0], (a[:, None, :] @ mu)[:, 0, :]], axis=1
        )
        own = costs.at_ends(self.node_covariance(costs.gather(v)))
        return own + self.eta * (self.sums * (v - mean) + crossed)

    @cached_property
    def _inverse(self) -> tuple[Any, Any]:
        xp, sums, nodes = self.costs.xp, self.sums, self.nodes
        inverse = xp.where(sums > LEAST, 1.0 / xp.maximum(sums, LEAST), 0.0)
        node = 1.0 / xp.maximum(nodes, LEAST) + self.costs.gather(inverse)
        return inverse, xp.where(nodes > LEAST, 1.0 / node, 0.0)

    def precondition(self, r: Any) -> Any:
        """Multiply r by the block-diagonal preconditioner; see `Curvature.precondition`."""
        inverse, node = self._inverse
        scaled = inverse * r
        common = self.costs.at_ends(node * self.costs.gather(scaled))
        return (scaled - inverse * common) / self.eta

    def at(self, lam: Any) -> Point:
        """Return the same object at another λ."""
        return Point(self.costs, lam, self.eta)

    def solve(self, rhs: Any, tol: float, limit: int) -> Solved:
        """The Hessian's inverse times `rhs`, each member with its own steps."""
        return conjugate_gradients(
            self.hessian, self.precondition, rhs, self.costs, tol=tol, limit=limit
        )


def _softened(cost: Any, eta: float, xp: Any) -> tuple[Any, Any]:
    """Return the Gibbs distributions of the rows, and the sum of their soft minima."""
    if not cost.size:
        return cost, 0.0
    low = cost.min(axis=1, keepdims=True)
    weight = xp.exp(-eta * (cost - low))
    mass = weight.sum(axis=1, keepdims=True)
    return weight / mass, (low - xp.log(mass) / eta).sum()


def _swept(point: Point, count: int) -> Point:
    """Return the point after `count` sweeps over the stars, colour by colour (star update)."""
    costs, eta, xp = point.costs, point.eta, point.costs.xp
    lam = point.lam.copy()
    flat = lam.reshape(-1, costs.labels)
    for _ in range(count):
        for star in costs.stars:
            edge, side = star // 2, star % 2
            raised = costs.tables[edge] + lam[edge, 0, :, None] + lam[edge, 1, None, :]
            rows = xp.where((side == 0)[:, None, None], raised, raised.transpose(0, 2, 1))
            low = rows.min(axis=2)
            soft = low - xp.log(xp.exp(-eta * (rows - low[:, :, None])).sum(axis=2)) / eta
            node = costs.node.reshape(-1)[star]
            change = xp.zeros_like(flat)
            change[star] = soft
            theta = costs.unary - costs.gather(lam) + costs.gather(change)
            flat[star] += theta[node] / (costs.degree[node] + 1)[:, None] - soft
    return point.at(lam)


def optimum(costs: Costs, eta: float, tol: float) -> Point:
    """Return the smoothed optimum; see `smooth.smoothed_optimum`."""
    lam = costs.xp.zeros((*costs.node.shape, costs.labels))
    tol = max(tol, 16 * float(np.finfo(np.float64).eps) * (1.0 + eta * costs.largest))
    halvings = math.ceil(math.log2(max(1.0, eta * costs.scale / SMOOTHING.mild)))
    point = approach(partial(Point, costs), _swept, lam, eta, tol, halvings=halvings, growth=4)
    if not point.worst <= tol:
        warnings.warn(
            f"marginals at eta={eta:g} agree to {point.worst:.1g} only, not to {tol:.1g}; "
            "a smaller eta converges faster",
            ConvergenceWarning,
            stacklevel=2,
        )
    return point


def pulled_back(point: Point, nodes: Any, tables: Any) -> tuple[Any, Any]:
    """Return the derivative of ⟨nodes, μ_i⟩ + ⟨tables, μ_e⟩ by the costs; see `smooth.adjoint`."""
    xp = point.costs.xp
    node_w, table_w = point.node_covariance(nodes), point.table_covariance(tables)
    sides = xp.stack([table_w.sum(axis=2), table_w.sum(axis=1)], axis=1)
    solved = point.solve(point.costs.at_ends(node_w) - sides, SMOOTHING.adjoint, SMOOTHING.products)
    if not solved.done:
        warnings.warn(
            f"the gradient at eta={point.eta:g} is not accurate: {SMOOTHING.products} products "
            "with the Hessian were not enough; a smaller eta is easier",
            ConvergenceWarning,
            stacklevel=2,
        )
    x = solved.x
    spread = x[:, 0, :, None] + x[:, 1, None, :]
    by_node = point.node_covariance(point.costs.gather(x)) - node_w
    return by_node, -table_w - point.table_covariance(spread)

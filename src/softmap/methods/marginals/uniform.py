"""The smoothed optimum of a batch of models with one number of labels, in numpy or CuPy.

It does what `smooth` does for any model, for tensors of costs without hard constraints. Every step
is a few operations on whole arrays, so that CuPy runs it on the GPU. The members of a batch are
concatenated and have their own step lengths.
"""

from __future__ import annotations

import math
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from softmap.methods.marginals.curvature import Curvature
from softmap.methods.marginals.newton import SMOOTHING, approach, reach, warn_unless_consistent
from softmap.model.graph import Graph


class OneShape(NamedTuple):
    """Edges with tables of one shape (see `curvature.EdgeTables`)."""

    cost: Any
    rows: Any
    cols: Any

    def reduced(self, lam: Any) -> Any:
        """C_e(x_i, x_j) + λ_{e,i}(x_i) + λ_{e,j}(x_j)."""
        return self.cost + lam[self.rows][:, :, None] + lam[self.cols][:, None, :]


class UniformFrame:
    """The `curvature.Frame` of a batch of models over one graph; its parts are the members.

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

    constant = 0.0

    def __init__(self, unary: Any, tables: Any, edges: Any, batch: int, xp: Any = np) -> None:
        self.unary, self.tables, self.xp, self._members = unary.reshape(-1), tables, xp, batch
        (nodes, self.labels), d = unary.shape, unary.shape[1]
        n = nodes // batch
        graph = Graph.from_edges(np.ascontiguousarray(edges, dtype=np.int32), n)
        shift = n * np.arange(batch)
        ends = np.asarray(edges, dtype=np.int64)[None] + shift[:, None, None]
        self.node = xp.asarray(ends.reshape(-1))
        self.states = (self.node[:, None] * d + xp.arange(d)).reshape(-1)
        half = xp.arange(len(self.node) * d).reshape(-1, 2, d)
        self.batches = (OneShape(tables, half[:, 0], half[:, 1]),) if len(tables) else ()
        self.degree = xp.bincount(self.node, minlength=nodes)
        colour = np.tile(graph.colouring(), batch)
        of_half = colour[ends.reshape(-1)]
        self.stars = [
            xp.asarray(np.flatnonzero(of_half == c)) for c in range(int(colour.max(initial=-1)) + 1)
        ]

    def gather(self, half: Any) -> Any:
        """Return the sum of a half-edge array over the edges of each node."""
        if not half.size:
            return self.xp.zeros_like(self.unary)
        return self.xp.bincount(self.states, weights=half, minlength=self.unary.size)

    def dot(self, a: Any, b: Any) -> Any:
        """Return the inner product of half-edge arrays, one number per member."""
        return (a * b).reshape(self._members, -1).sum(axis=1)

    def each(self, values: Any) -> Any:
        """Repeat one number per member over its half-edges."""
        return self.xp.repeat(values, self.states.size // self._members)

    def by_node(self, nodes: Any) -> Any:
        """Return the sum of each node's block, repeated over the block."""
        return self.xp.repeat(nodes.reshape(-1, self.labels).sum(axis=1), self.labels)

    def softened(self, cost: Any, eta: float) -> tuple[Any, float]:
        """Return the Gibbs distributions of the nodes, and the sum of their soft minima."""
        rows = cost.reshape(-1, self.labels)
        low = rows.min(axis=1, keepdims=True)
        weight = self.xp.exp(-eta * (rows - low))
        mass = weight.sum(axis=1, keepdims=True)
        total = float((low - self.xp.log(mass) / eta).sum())
        return (weight / mass).reshape(-1), total

    @cached_property
    def scale(self) -> float:
        """The mean range of costs; see `relaxation.dual.cost_scale`."""
        d = self.labels
        flat = [self.unary.reshape(-1, d), self.tables.reshape(len(self.tables), d**2)]
        width = self.xp.concatenate([a.max(axis=1) - a.min(axis=1) for a in flat if a.size])
        wide = width[width > 0]
        return float(wide.mean()) if wide.size else self.largest or 1.0

    @cached_property
    def largest(self) -> float:
        """The largest |cost|."""
        return max(float(self.xp.abs(a).max()) for a in (self.unary, self.tables) if a.size)


def _swept(frame: UniformFrame, point: Curvature, count: int) -> Curvature:
    """Return the point after `count` sweeps over the stars, colour by colour (star update)."""
    eta, xp, d = point.eta, frame.xp, frame.labels
    flat = point.lam.reshape(-1, d).copy()
    lam = flat.reshape(-1, 2, d)
    for _ in range(count):
        for star in frame.stars:
            edge, side = star // 2, star % 2
            raised = frame.tables[edge] + lam[edge, 0, :, None] + lam[edge, 1, None, :]
            rows = xp.where((side == 0)[:, None, None], raised, raised.transpose(0, 2, 1))
            low = rows.min(axis=2)
            soft = low - xp.log(xp.exp(-eta * (rows - low[:, :, None])).sum(axis=2)) / eta
            node = frame.node[star]
            change = xp.zeros_like(flat)
            change[star] = soft
            theta = frame.unary + frame.gather((change - flat).reshape(-1))
            own = theta.reshape(-1, d)[node]
            flat[star] += own / (frame.degree[node] + 1)[:, None] - soft
    return point.at(flat.reshape(-1))


def optimum(frame: UniformFrame, eta: float, tol: float) -> Curvature:
    """Return the smoothed optimum; see `smooth.smoothed_optimum`."""
    lam = frame.xp.zeros(frame.states.size)
    tol = max(tol, reach(eta, frame.largest))
    halvings = math.ceil(math.log2(max(1.0, eta * frame.scale / SMOOTHING.mild)))
    at, sweep = partial(Curvature, frame), partial(_swept, frame)
    point = approach(at, sweep, lam, eta, tol, halvings=halvings, growth=4)
    warn_unless_consistent(point, tol)
    return point

"""The smoothed optimum of a batch of models with one number of labels, in numpy or CuPy.

It does what `smooth` does for any model, for tensors of costs without hard constraints. Every step
is a few operations on whole arrays, so that CuPy runs it on the GPU. The members of a batch are
concatenated and have their own step lengths.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from softmap.methods.marginals.curvature import Curvature, Frame, OneShape
from softmap.methods.marginals.newton import approach, warn_unless_consistent
from softmap.model.graph import Graph


class UniformFrame(Frame):
    """The frame of a batch of models over one graph; its parts are the members.

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
        nodes, d = unary.shape
        n = nodes // batch
        graph = Graph.from_edges(np.ascontiguousarray(edges, dtype=np.int32), n)
        shift = n * np.arange(batch)
        ends = np.asarray(edges, dtype=np.int64)[None] + shift[:, None, None]
        self.tables, self.node = tables, xp.asarray(ends.reshape(-1))
        states = (self.node[:, None] * d + xp.arange(d)).reshape(-1)
        half = xp.arange(states.size).reshape(-1, 2, d)
        batches = (OneShape(tables, half[:, 0], half[:, 1]),) if len(tables) else ()
        blocks = [xp.arange(nodes * d).reshape(nodes, d)]
        super().__init__(unary.reshape(-1), batches, states, blocks, batch, xp=xp)
        self.labels, self.degree = d, xp.bincount(self.node, minlength=nodes)
        colour = np.tile(graph.colouring(), batch)
        of_half = colour[ends.reshape(-1)]
        self.stars = [
            xp.asarray(np.flatnonzero(of_half == c)) for c in range(int(colour.max(initial=-1)) + 1)
        ]

    def swept(self, point: Curvature, count: int) -> Curvature:
        """Return the point after `count` sweeps over the stars, colour by colour (star update)."""
        eta, xp, d = point.eta, self.xp, self.labels
        flat = point.lam.reshape(-1, d).copy()
        lam = flat.reshape(-1, 2, d)
        for _ in range(count):
            for star in self.stars:
                edge, side = star // 2, star % 2
                raised = self.tables[edge] + lam[edge, 0, :, None] + lam[edge, 1, None, :]
                rows = xp.where((side == 0)[:, None, None], raised, raised.transpose(0, 2, 1))
                low = rows.min(axis=2)
                soft = low - xp.log(xp.exp(-eta * (rows - low[:, :, None])).sum(axis=2)) / eta
                node = self.node[star]
                change = xp.zeros_like(flat)
                change[star] = soft
                theta = self.unary + self.gather((change - flat).reshape(-1))
                own = theta.reshape(-1, d)[node]
                flat[star] += own / (self.degree[node] + 1)[:, None] - soft
        return point.at(flat.reshape(-1))

    def at(self, lam: Any, eta: float) -> Curvature:
        """Return the marginals at a λ, and their derivatives."""
        return Curvature(self, lam, eta)

    def optimum(self, eta: float, tol: float) -> Curvature:
        """Return the smoothed optimum; see `smooth.smoothed_optimum`."""
        point = approach(self, self.swept, eta, tol, growth=4)
        warn_unless_consistent(point, tol)
        return point

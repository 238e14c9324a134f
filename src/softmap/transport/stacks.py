"""Tables of costs over whole arrays, of numpy or CuPy: messages along them, and plans."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

BLOCK = 1 << 24  # entries of a table that are worked on at a time: temporary arrays of 128 MiB
DRIFT = 8.0  # change of η times a message after which factors are computed again
LEAST = 1e-300


class EdgeStack:
    """Edges with tables of one shape that send at the same time.

    Parameters
    ----------
    xp : module
        numpy or CuPy.
    tables : array (1 or g, rows, cols)
        Costs.
    entries, states : pairs of int64 arrays (g, labels)
        Places of the labels of both endpoints in half-edge arrays and in node arrays.
    earlier : int
        The side, 0 for rows and 1 for columns, that sends in the forward half of a pass.
    keeps : bool
        Whether factors are kept; without them every message is a sum of exponentials.
    """

    def __init__(
        self, xp: Any, tables: Any, entries: Any, states: Any, earlier: int, keeps: bool
    ) -> None:
        self.xp, self.tables, self.entries, self.states = xp, tables, entries, states
        self.earlier, self.keeps = earlier, keeps
        self._eta = 0.0
        self._factors: Any = None
        self._then: list[Any] = [None, None]
        self._reduced: list[Any] = [None, None]

    def message(self, side: int, sent: Any, own: Any, eta: float) -> Any:
        """Return the messages into one side; `own` are the costs there, for the factors."""
        if not self.keeps or eta == math.inf:
            return self.softmin(side, sent, eta)
        if not self._serve(side, sent, eta):
            self._build(side, sent, own, eta)
        xp, sender = self.xp, self._reduced[1 - side]
        low = (sent - sender).min(axis=1, keepdims=True)
        mass = xp.exp(-eta * (sent - sender - low))
        if len(mass) == 1:  # a product of a matrix and a vector, not of two stacks
            factors = self._factors[0]
            out = (mass[0] @ factors if side else factors @ mass[0])[None]
        elif side:
            out = xp.matmul(mass[:, None, :], self._factors)[:, 0]
        else:
            out = xp.matmul(self._factors, mass[:, :, None])[:, :, 0]
        return low - self._reduced[side] - xp.log(xp.maximum(out, LEAST)) / eta

    def softmin(self, side: int, sent: Any, eta: float) -> Any:
        """Return the minima of cost + sent into one side, soft at finite η, block by block."""
        xp, labels = self.xp, self.tables.shape[1 + side]
        out = xp.empty((len(sent), labels))
        for part in self._parts(labels, sent.size):
            table = self.tables[:, :, part] if side else self.tables[:, part]
            value = table + (sent[:, :, None] if side else sent[:, None, :])
            out[:, part] = soft_minima(xp, value, 2 - side, eta)
        return out

    def _parts(self, labels: int, others: int) -> Iterator[slice]:
        step = max(1, BLOCK // max(others, 1))
        return (slice(k, min(k + step, labels)) for k in range(0, labels, step))

    def _serve(self, side: int, sent: Any, eta: float) -> bool:
        if eta != self._eta:
            return False
        moved = sent - self._then[1 - side]
        return eta * float((moved.max(axis=1) - moved.min(axis=1)).max()) <= DRIFT

    def _build(self, side: int, sent: Any, own: Any, eta: float) -> None:
        xp, self._eta = self.xp, eta
        self._then[1 - side], self._then[side] = sent.copy(), own.copy()
        self._reduced[side] = -self.softmin(side, sent, math.inf)
        self._reduced[1 - side] = -self.softmin(1 - side, self._reduced[side], math.inf)
        row, col = self._reduced
        if self._factors is None:
            self._factors = xp.empty((len(row), row.shape[1], col.shape[1]))
        for part in self._parts(row.shape[1], col.size):
            value = self.tables[:, part] + row[:, part, None]
            value = xp.maximum(value + col[:, None, :], 0.0)
            value *= -eta
            xp.exp(value, out=self._factors[:, part])


def soft_minima(xp: Any, costs: Any, axis: int, eta: float) -> Any:
    """Return the minima of finite costs along an axis, soft at finite η; the costs are overwritten.

    Parameters
    ----------
    xp : module
        numpy or CuPy.
    costs : array
        Costs; changed in place.
    axis : int
        The axis.
    eta : float
        Inverse temperature η, possibly +inf.
    """
    low = costs.min(axis=axis)
    if eta == math.inf:
        return low
    costs -= xp.expand_dims(low, axis)
    costs *= -eta
    return low - xp.log(xp.exp(costs, out=costs).sum(axis=axis)) / eta


def distance_tables(xp: Any, near: Any, rows: int, cols: int) -> Any:
    """Return a view (g, rows, cols) of the costs near[:, |x - y|], without memory for the pairs.

    Parameters
    ----------
    xp : module
        numpy or CuPy.
    near : array (g, at least rows and cols)
        Costs by distance.
    rows, cols : int
        Numbers of labels.
    """
    at = xp.abs(xp.arange(1 - rows, cols))
    line = xp.ascontiguousarray(near[:, at])  # by y - x
    strides = (line.strides[0], line.strides[1], line.strides[1])
    view = xp.lib.stride_tricks.as_strided(line, (len(line), rows, cols), strides)
    return view[:, ::-1]


class RoundedPlan:
    """The plan exp(-η (C + a + b)) of one edge, in blocks of rows, and its rounding."""

    def __init__(self, xp: Any, table: Any, a: Any, b: Any, eta: float) -> None:
        self.xp, self.table, self.a, self.b, self.eta = xp, table, a, b, eta
        step = max(1, BLOCK // max(len(b), 1))
        self.parts = [slice(k, k + step) for k in range(0, len(a), step)]
        low = [float(self._value(part).min()) for part in self.parts]
        self.low = min(low)

    def _value(self, part: slice) -> Any:
        return self.table[part] + self.a[part, None] + self.b

    def _masses(self, part: slice, rows: Any, cols: Any) -> Any:
        mass = self.xp.exp(-self.eta * (self._value(part) - self.low))
        return mass * rows[part, None] * cols

    def __call__(self, p: Any, q: Any, plan: Any) -> tuple[float, float]:
        xp = self.xp
        rows, cols = xp.ones(len(p)), xp.ones(len(q))
        sums = xp.concatenate([self._masses(k, rows, cols).sum(axis=1) for k in self.parts])
        every = sums.sum()
        sums /= every
        slack = float(xp.abs(sums - p).sum())
        rows = xp.minimum(1.0, p / xp.maximum(sums, LEAST)) / every
        have = sum(self._masses(k, rows, cols).sum(axis=0) for k in self.parts)
        slack += float(xp.abs(have - q).sum())
        cols = xp.minimum(1.0, q / xp.maximum(have, LEAST))
        return self._scaled(p.copy(), q.copy(), rows, cols, plan), slack

    def _scaled(self, rest: Any, need: Any, rows: Any, cols: Any, plan: Any) -> float:
        """Return the cost of the scaled plan and of the rank-one plan of what is missing."""
        xp, cost = self.xp, 0.0
        for part in self.parts:
            mass = self._masses(part, rows, cols)
            cost += float((mass * self.table[part]).sum())
            rest[part] -= mass.sum(axis=1)
            need -= mass.sum(axis=0)
            if plan is not None:
                plan[part] += mass.get() if hasattr(mass, "get") else mass
        rest, need = xp.maximum(rest, 0.0), xp.maximum(need, 0.0)
        most = float(xp.maximum(rest.sum(), need.sum()))
        if most == 0.0:
            return cost
        if plan is not None:
            lack = xp.outer(rest, need) / most
            plan += lack.get() if hasattr(lack, "get") else lack
        return cost + float(rest @ (self.table @ need)) / most

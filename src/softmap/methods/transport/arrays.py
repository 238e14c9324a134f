"""The messages of transport over whole arrays, of numpy on the host or of CuPy on a GPU.

`ArrayNetwork` has the verbs of the compiled `core.TransportNetwork`. Edges with tables of one shape
that send at the same time are one stack. At finite η a stack keeps the factors
exp(-η (C + row + col)) of the costs reduced by two potentials, so that a message is a product of a
matrix and a vector; they are computed again when the messages have moved (stabilised scaling,
Schmitzer 2019). No bound depends on them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from softmap import core
from softmap.machine import available_memory
from softmap.methods.cuda.cupy_device import find_arrays
from softmap.methods.transport.problem import TransportProblem

BLOCK = 1 << 24  # entries of a table that are worked on at a time: temporary arrays of 128 MiB
DRIFT = 8.0  # change of η times a message after which factors are computed again
LONGEST = 1.0  # longest extrapolation of a message, times η (decision 75)
LEAST = 1e-300
ALL = slice(None)


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
        self._eta, self._factors = 0.0, None
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
            low = value.min(axis=2 - side)
            if eta < math.inf:
                value -= xp.expand_dims(low, 2 - side)
                value *= -eta
                low = low - xp.log(xp.exp(value, out=value).sum(axis=2 - side)) / eta
            out[:, part] = low
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


class ArrayNetwork:
    """Messages along a graph, some of whose nodes have given marginals, over whole arrays.

    Parameters
    ----------
    problem : TransportProblem
        Costs and masses.
    xp : module
        numpy or CuPy.
    room : int or None
        Bytes of memory that may be used; None for no limit. Without room for the factors, which
        take as much as one table per edge, messages are computed without them.
    """

    def __init__(self, problem: TransportProblem, xp: Any, room: int | None) -> None:
        self.problem, self.xp = problem, xp
        model = problem.model
        self._unary, self._mass = xp.asarray(model.unary), xp.asarray(problem.mass)
        self._owner = xp.asarray(problem.owner)
        self._given = xp.asarray(~problem.free())
        self._logs = xp.log(xp.maximum(self._mass, LEAST))
        ends, forward, backward = model.edges, *_levels(model)
        first = (ends[:, 0] > ends[:, 1]).astype(np.int64)
        node = np.take_along_axis(ends, np.stack([first, 1 - first], axis=1), axis=1)
        earlier = np.bincount(node[:, 1], minlength=model.n)
        later = np.bincount(node[:, 0], minlength=model.n)
        chains = np.maximum(1, np.maximum(earlier, later)).astype(np.float64)
        self._chains = xp.asarray(np.repeat(chains, model.num_labels))
        sizes = model.num_labels[ends].astype(np.int64)
        keeps = room is None or 8 * int(sizes.prod(axis=1).sum()) <= room // 2
        keys = np.stack([*sizes.T, first, forward[node[:, 0]], backward[node[:, 1]]], axis=1)
        rows = {tuple(map(int, key)) for key in keys}
        groups = {key: np.flatnonzero((keys == key).all(axis=1)) for key in sorted(rows)}
        self._edges = list(groups.values())
        self._stacks = [self._stack(k, key[2], keeps) for key, k in groups.items()]
        number = range(len(self._stacks))
        times = list(groups)
        self._order = [
            sorted(number, key=lambda k: times[k][3]),
            sorted(number, key=lambda k: times[k][4]),
        ]
        self._msg, self._drift = xp.zeros(len(problem.owner)), xp.zeros(len(problem.owner))
        self._t, self._product, self._loss = 1.0, 0.0, math.inf
        self._point: Any = None  # what `coupled` needs of the messages
        self._place = {
            int(e): (k, place)
            for k, edges in enumerate(self._edges)
            for place, e in enumerate(edges)
        }

    def _stack(self, edges: Any, earlier: int, keeps: bool) -> EdgeStack:
        problem, xp, places = self.problem, self.xp, []
        model = problem.model
        for side in (0, 1):
            start = model.half_offset[2 * edges + side]
            labels = np.arange(int(model.num_labels[model.edges[edges[0], side]]))
            places.append(start[:, None] + labels)
        shown = edges[:1] if problem.shared else edges
        tables = xp.stack([xp.asarray(model.table(int(e))) for e in shown])
        entries = [xp.asarray(at) for at in places]
        states = [xp.asarray(problem.owner[at]) for at in places]
        return EdgeStack(xp, tables, entries, states, earlier, keeps)

    def passes(
        self, count: int, eta: float, momentum: bool, ranges: Any, deadline: Any = None
    ) -> tuple[int, float]:
        """Make passes; return how many, and the misplaced mass of the edges times their ranges."""
        loss = math.inf
        for done in range(count):
            self._extrapolate(eta, momentum)
            found = self._half_pass(True, eta, deadline) and self._backward(eta, ranges, deadline)
            if not found:
                return done, loss
            loss = self._loss
        return count, loss

    def multipliers(self, eta: float, lam: Any, deadline: Any = None) -> bool:
        """Write λ of a hard backward half pass; return whether there was time for it."""
        if not self._half_pass(True, eta, deadline):
            return False
        xp, hard = self.xp, self._msg.copy()
        out, theta = xp.empty_like(hard), self._theta(hard)
        for k in self._order[1]:
            stack = self._stacks[k]
            late, soon = 1 - stack.earlier, stack.earlier
            sent = self._prepared(stack, late, theta, hard, eta)
            into = stack.softmin(soon, sent, math.inf)
            best = -stack.softmin(late, -into, math.inf)  # the largest that the receiver allows
            given = self._given[stack.states[late]]
            out[stack.entries[late]] = xp.where(given, best, sent)
            out[stack.entries[soon]] = -into
            xp.add.at(theta, stack.states[soon], into - hard[stack.entries[soon]])
            hard[stack.entries[soon]] = into
            if deadline is not None and deadline.passed:
                return False
        lam[:] = self._fetched(out)
        return True

    def sides(self, eta: float, out: Any, deadline: Any = None) -> bool:
        """Write the marginals of all edges at both endpoints; return whether there was time."""
        theta, found = self._theta(self._msg), self.xp.empty_like(self._msg)
        for stack in self._stacks:
            sent = [self._prepared(stack, side, theta, self._msg, eta) for side in (0, 1)]
            for side in (0, 1):
                into = stack.message(side, sent[1 - side], sent[side], eta)
                found[stack.entries[side]] = self._normalised(into + sent[side], eta)
            if deadline is not None and deadline.passed:
                return False
        out[:] = self._fetched(found)
        return True

    def messages(self, out: Any) -> None:
        """Write the messages into all half-edges."""
        out[:] = self._fetched(self._msg)

    def set_messages(self, msg: Any) -> None:
        """Set the messages into all half-edges."""
        self._msg, self._point = self.xp.asarray(msg).copy(), None

    def coupled(
        self, edge: int, eta: float, p: Any, q: Any, plan: Any = None
    ) -> tuple[float, float]:
        """Return the cost of a coupling of p and q along an edge, and the rounded mass.

        The coupling is added to `plan`. Its marginals are those of Altschuler et al. (2017).
        """
        if self.problem.family:  # has a plan in closed form
            return self._on_host().coupled(edge, eta, p, q, plan)
        if self._point is None:
            self._point = self._theta(self._msg)
        k, place = self._place[edge]
        stack, one = self._stacks[k], slice(place, place + 1)
        a, b = (self._prepared(stack, s, self._point, self._msg, eta, one)[0] for s in (0, 1))
        table = stack.tables[place % len(stack.tables)]
        rounding = _Rounding(self.xp, table, a, b, eta)
        return rounding(self.xp.asarray(p), self.xp.asarray(q), plan)

    def _on_host(self) -> Any:
        """Return the compiled network with the same messages."""
        if self._point is None:
            self._point = self.problem.compiled()
            self._point.set_messages(self._fetched(self._msg))
        return self._point

    def _fetched(self, array: Any) -> Any:
        return array.get() if hasattr(array, "get") else array

    def _theta(self, msg: Any) -> Any:
        return self._unary + self.xp.bincount(self._owner, weights=msg, minlength=self._unary.size)

    def _prepared(
        self, stack: EdgeStack, side: int, theta: Any, msg: Any, eta: float, edges: slice = ALL
    ) -> Any:
        """Return what the nodes of one side send along the edges of a stack."""
        at = stack.states[side][edges]
        own = self.xp.where(self._given[at], -self._logs[at] / eta, theta[at] / self._chains[at])
        return own - msg[stack.entries[side][edges]]

    def _extrapolate(self, eta: float, momentum: bool) -> None:
        self._point = None
        now = 1.0 if self._product > 0 else self._t
        self._t, self._product = 0.5 * (1 + math.sqrt(1 + 4 * now * now)), 0.0
        beta = (now - 1) / self._t if momentum else 0.0
        for stack in self._stacks:
            at = stack.entries[stack.earlier]
            self._drift[at] = (beta * self._drift[at]).clip(-LONGEST / eta, LONGEST / eta)
            self._msg[at] += self._drift[at]

    def _half_pass(self, forward: bool, eta: float, deadline: Any, before: Any = None) -> bool:
        """Send along all edges; call before(k, new messages) before messages are replaced."""
        self._point, theta = None, self._theta(self._msg)
        for k in self._order[0 if forward else 1]:
            stack = self._stacks[k]
            to = 1 - stack.earlier if forward else stack.earlier
            sent, own = (self._prepared(stack, s, theta, self._msg, eta) for s in (1 - to, to))
            out = stack.message(to, sent, own, eta)
            out -= out.min(axis=1, keepdims=True)
            if before is not None:
                before(k, out)
            at = stack.entries[to]
            self.xp.add.at(theta, stack.states[to], out - self._msg[at])
            self._msg[at] = out
            if deadline is not None and deadline.passed:
                return False
        return True

    def _backward(self, eta: float, ranges: Any, deadline: Any) -> bool:
        """Make the backward half of a pass, with the misplaced mass and the restart product."""
        xp, self._loss = self.xp, 0.0
        then = self._theta(self._msg)

        def observe(k: int, out: Any) -> None:
            stack = self._stacks[k]
            at, states = stack.entries[stack.earlier], stack.states[stack.earlier]
            free = self._normalised(then[states] / self._chains[states], eta)
            mass = xp.where(self._given[states], self._mass[states], free)
            step, drift = self._msg[at] - out, self._drift[at]
            rise = xp.where(mass > 0, -step, xp.inf)
            scaled = mass * xp.exp(-eta * xp.maximum(-step - rise.min(axis=1, keepdims=True), 0.0))
            scaled /= scaled.sum(axis=1, keepdims=True)
            weight = xp.asarray(ranges[self._edges[k]])
            self._loss += float(weight @ xp.abs(scaled - mass).sum(axis=1))
            self._product += float((mass * step * (drift - (1 + core.TURN) * step)).sum())
            self._drift[at] = drift - (1 + core.RELAX) * step

        return self._half_pass(False, eta, deadline, observe)

    def _normalised(self, value: Any, eta: float) -> Any:
        mass = self.xp.exp(-eta * (value - value.min(axis=1, keepdims=True)))
        return mass / mass.sum(axis=1, keepdims=True)


class _Rounding:
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


def _levels(model: Any) -> tuple[Any, Any]:
    """Return, per node, its turn in the forward and in the backward half of a pass."""
    forward, backward = np.zeros(model.n, dtype=np.int64), np.zeros(model.n, dtype=np.int64)
    low, high = model.edges.min(axis=1), model.edges.max(axis=1)
    for e in np.argsort(low, kind="stable"):
        forward[high[e]] = max(forward[high[e]], forward[low[e]] + 1)
    for e in np.argsort(-high, kind="stable"):
        backward[low[e]] = max(backward[low[e]], backward[high[e]] + 1)
    return forward, backward


def open_network(problem: TransportProblem, backend: str) -> Any:
    """Return the network of a problem on a backend, "cpu" or "cuda"."""
    if backend == "cpu":
        return problem.compiled()
    xp, room = find_arrays()
    return ArrayNetwork(problem, xp, available_memory() if room is None else room)

"""The messages of transport over whole arrays, of numpy on the host or of CuPy on a GPU.

`ArrayNetwork` has the verbs of the compiled `core.TransportNetwork`. Edges with tables of one shape
that send at the same time are one stack. At finite η a stack keeps the factors
exp(-η (C + row + col)) of the costs reduced by two potentials, so that a message is a product of a
matrix and a vector; they are computed again when the messages have moved (stabilised scaling,
Schmitzer 2019). No bound depends on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from softmap import Potts, TruncatedLinear, TruncatedQuadratic
from softmap.extend import core, machine
from softmap.extend.device import Aside, chosen_device, find_arrays, require_cupy
from softmap.transport.problem import TransportProblem
from softmap.transport.stacks import LEAST, EdgeStack, RoundedPlan, distance_tables

LATE = {"passes": (0, math.inf), "multipliers": False, "sides": False, "set_messages": None}
"""What verbs return at the end of a run; the others raise `core.OutOfTime`."""
LONGEST = 1.0  # longest extrapolation of a message, times η (decision 75)
ALL = slice(None)


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
        chains, groups = _grouped(model)
        self._chains = xp.asarray(np.repeat(chains, model.num_labels))
        entries = int(model.num_labels[model.edges].astype(np.int64).prod(axis=1).sum())
        keeps = room is None or 8 * entries <= room // 2
        self._edges, times = list(groups.values()), list(groups)
        self._stacks = [self._stack(k, key[2], keeps) for key, k in groups.items()]
        number = range(len(times))
        self._order = [sorted(number, key=lambda k: times[k][turn]) for turn in (3, 4)]
        self._msg, self._drift = xp.zeros(len(problem.owner)), xp.zeros(len(problem.owner))
        self._t, self._product, self._loss = 1.0, 0.0, math.inf
        self._point: dict[str, Any] = {}  # what `coupled` needs of the messages
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
        tables = self._tables(edges[:1] if problem.shared else edges)
        entries = [xp.asarray(at) for at in places]
        states = [xp.asarray(problem.owner[at]) for at in places]
        return EdgeStack(xp, tables, entries, states, earlier, keeps)

    def _tables(self, edges: Any) -> Any:
        """Return the tables of edges of one shape; costs by distance take no room for pairs."""
        model, xp = self.problem.model, self.xp
        family = model.potentials[0]
        if not isinstance(family, Potts | TruncatedLinear | TruncatedQuadratic):
            return xp.stack([xp.asarray(model.table(int(e))) for e in edges])
        rows, cols = (int(count) for count in model.num_labels[model.edges[edges[0]]])
        near = family.value(edges[:, None], 0, np.arange(max(rows, cols)))
        return distance_tables(xp, xp.asarray(near), rows, cols)

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
        self._msg, self._point = self.xp.asarray(msg).copy(), {}

    def coupled(
        self, edge: int, eta: float, p: Any, q: Any, plan: Any = None
    ) -> tuple[float, float]:
        """Return the cost of a coupling of p and q along an edge, and the rounded mass.

        The coupling is added to `plan`. Its marginals are those of Altschuler et al. (2017).
        """
        if self.problem.family:  # few costs
            return self._on_host().coupled(edge, eta, p, q, plan)
        if "theta" not in self._point:
            self._point["theta"] = self._theta(self._msg)
        theta = self._point["theta"]
        k, place = self._place[edge]
        stack, one = self._stacks[k], slice(place, place + 1)
        a, b = (self._prepared(stack, s, theta, self._msg, eta, one)[0] for s in (0, 1))
        table = stack.tables[place % len(stack.tables)]
        rounding = RoundedPlan(self.xp, table, a, b, eta)
        return rounding(self.xp.asarray(p), self.xp.asarray(q), plan)

    def _on_host(self) -> Any:
        """Return the compiled network with the same messages."""
        if "host" not in self._point:
            self._point["host"] = self.problem.compiled()
            self._point["host"].set_messages(self._fetched(self._msg))
        return self._point["host"]

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
        self._point = {}
        now = 1.0 if self._product > 0 else self._t
        self._t, self._product = 0.5 * (1 + math.sqrt(1 + 4 * now * now)), 0.0
        beta = (now - 1) / self._t if momentum else 0.0
        for stack in self._stacks:
            at = stack.entries[stack.earlier]
            self._drift[at] = (beta * self._drift[at]).clip(-LONGEST / eta, LONGEST / eta)
            self._msg[at] += self._drift[at]

    def _half_pass(self, forward: bool, eta: float, deadline: Any, before: Any = None) -> bool:
        """Send along all edges; call before(k, new messages) before messages are replaced."""
        self._point, theta = {}, self._theta(self._msg)
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


def _grouped(model: Any) -> tuple[Any, dict[tuple[int, ...], Any]]:
    """Return, per node, among how many chains it divides its cost, and groups of edges.

    The edges of a group have one key: number of rows and of columns, the side of the earlier node,
    and its turn in the forward and that of the later node in the backward half of a pass.
    """
    ends, forward, backward = model.edges, *_levels(model)
    first = (ends[:, 0] > ends[:, 1]).astype(np.int64)
    node = np.take_along_axis(ends, np.stack([first, 1 - first], axis=1), axis=1)
    met = [np.bincount(node[:, side], minlength=model.n) for side in (0, 1)]
    chains = np.maximum(1.0, np.maximum(*met))
    times = forward[node[:, 0]], backward[node[:, 1]]
    keys = np.stack([*model.num_labels[ends].T, first, *times], axis=1).astype(np.int64)
    kinds, which = np.unique(keys, axis=0, return_inverse=True)
    return chains, {
        tuple(kind.tolist()): np.flatnonzero(which.reshape(-1) == k) for k, kind in enumerate(kinds)
    }


def _levels(model: Any) -> tuple[Any, Any]:
    """Return, per node, its turn in the forward and in the backward half of a pass."""
    forward, backward = np.zeros(model.n, dtype=np.int64), np.zeros(model.n, dtype=np.int64)
    low, high = model.edges.min(axis=1), model.edges.max(axis=1)
    for e in np.argsort(low, kind="stable"):
        forward[high[e]] = max(forward[high[e]], forward[low[e]] + 1)
    for e in np.argsort(-high, kind="stable"):
        backward[low[e]] = max(backward[low[e]], backward[high[e]] + 1)
    return forward, backward


class TimedNetwork:
    """The verbs of an `ArrayNetwork` on a device, none of which outlasts the end of a run.

    CuPy is imported and compiles its kernels when they are first used, in any of the calls. With a
    time limit, calls are made in another thread, and end with `LATE` or raise `core.OutOfTime`.

    Parameters
    ----------
    problem : TransportProblem
        Costs and masses.
    limit : core.Deadline
        The end of the run.
    """

    def __init__(self, problem: TransportProblem, limit: core.Deadline) -> None:
        require_cupy()
        self._problem, self._number, self._aside = problem, chosen_device(), Aside()
        self._limit = None if limit.end == math.inf else limit
        self._network: ArrayNetwork | None = None

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        return partial(self._done, verb)

    def _done(self, verb: str, *given: Any) -> Any:
        try:
            return self._aside(lambda: getattr(self._opened(), verb)(*given), self._limit)
        except core.OutOfTime:
            if verb not in LATE:
                raise
            return LATE[verb]

    def _opened(self) -> ArrayNetwork:
        if self._network is None:
            xp, room = find_arrays(self._number)
            room = machine.available_memory() if room is None else room
            self._network = ArrayNetwork(self._problem, xp, room)
        return self._network


def open_network(problem: TransportProblem, backend: str, limit: core.Deadline) -> Any:
    """Return the network of a problem on a backend, "cpu" or "cuda", for a run until a limit."""
    return problem.compiled() if backend == "cpu" else TimedNetwork(problem, limit)

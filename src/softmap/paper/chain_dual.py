"""The smoothed dual over chains as a function of shares, for steps that passes do not make.

A pass stores messages, from which the shares follow. Steps between two points need the shares
themselves: the costs of a network with one node per variable and chain, which is a set of paths. A
pass of the compiled loops over that network is an exact dynamic programme. Lemma 7 of
`docs/theory/rates.md` is about this function.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.methods.base import Floats
from softmap.methods.sweeps.chains import Chains
from softmap.methods.sweeps.loops import CLOCK, NONE, ChainLoops, Messages
from softmap.methods.sweeps.planning import chain_schedule, pass_order
from softmap.model import Network
from softmap.model.inputs import FlatUnary

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Paths:
    """The chains of a network as paths over copies of its nodes.

    Attributes
    ----------
    node : int64[copies]
        The node of each copy; the copies of a node are consecutive, nodes are in the order of a
        pass.
    edges : int64[m, 2]
        The edges of the network between copies.
    before, after : int64[copies]
        The half-edge at each copy that comes from earlier nodes, and that leads to later ones; -1
        if there is none.
    length : int64[copies]
        ℓ, the number of nodes of the path of each copy.
    """

    node: Ints
    edges: Ints
    before: Ints
    after: Ints
    length: Ints


def paths(model: Network) -> Paths:
    """Return the chains of a pass: n_i copies of node i, with one edge at most on either side."""
    rank = pass_order(model.graph)[0]
    swapped = rank[model.edges[:, 0]] > rank[model.edges[:, 1]]
    early = np.where(swapped, model.edges[:, 1], model.edges[:, 0]).astype(np.int64)
    late = np.where(swapped, model.edges[:, 0], model.edges[:, 1]).astype(np.int64)
    onwards, leading = _slots(early, model.n)
    back, arriving = _slots(late, model.n)
    copies = np.maximum(np.maximum(leading, arriving), 1)
    order = np.argsort(rank, kind="stable")
    first = np.empty(model.n, dtype=np.int64)
    first[order] = np.cumsum(copies[order]) - copies[order]
    tail, head = first[early] + onwards, first[late] + back
    total = int(copies.sum())
    before, after = np.full((2, total), -1, dtype=np.int64)
    half = 2 * np.arange(model.m)
    before[head], after[tail] = half + ~swapped, half + swapped
    ends = np.stack([np.where(swapped, head, tail), np.where(swapped, tail, head)], axis=1)
    length = _lengths(tail, head, total)
    return Paths(np.repeat(order, copies[order]), ends, before, after, length)


def _slots(node: Ints, n: int) -> tuple[Ints, Ints]:
    """Number the edges of each node; return the number of each edge, and their count by node."""
    order = np.argsort(node, kind="stable")
    counts = np.bincount(node, minlength=n)
    start = np.cumsum(counts) - counts
    slot = np.empty(len(node), dtype=np.int64)
    slot[order] = np.arange(len(node)) - start[node[order]]
    return slot, counts


def _lengths(tail: Ints, head: Ints, copies: int) -> Ints:
    """Return the number of nodes of the path of each copy, by doubling the distance looked at."""
    length = np.zeros(copies, dtype=np.int64)
    for sender, receiver in ((tail, head), (head, tail)):
        target, distance = np.arange(copies), np.zeros(copies, dtype=np.int64)
        target[sender], distance[sender] = receiver, 1
        while (distance[target] > 0).any():
            distance += distance[target]
            target = target[target]
        length += distance
    return length + 1


class ChainDual:
    """L_T of the chains of an engine, as a function of the change of shares from C_i / n_i.

    Changes are arrays over labels of copies. Those of a node add up to zero, and each has mean zero
    over its labels.

    Parameters
    ----------
    chains : Chains
        The engine of a run. Its model has finite costs and no factor nodes.
    deadline : Deadline, optional
        Raises `core.OutOfTime` if it passes first.

    Attributes
    ----------
    counts : int64[copies]
        The number of labels of each copy.
    levels : int
        B, the number of levels of a half pass.
    lengths : int64[chains]
        The number of nodes of each chain.
    """

    def __init__(self, chains: Chains, deadline: core.Deadline | None = None) -> None:
        self._chains, model = chains, chains.model
        self._paths = paths(model)
        node = self._paths.node
        counts = model.num_labels[node]
        self._start = np.cumsum(counts) - counts
        label = np.arange(int(counts.sum())) - np.repeat(self._start, counts)
        self.counts = counts
        self._entry = np.repeat(model.node_offset[node], counts) + label
        self._before = self._messages_at(self._paths.before, label)
        self._after = self._messages_at(self._paths.after, label)
        self._many = np.bincount(node, minlength=model.n).astype(np.float64)
        self._base = (model.unary / np.repeat(self._many, model.num_labels))[self._entry]
        self._copies = self._network(counts)
        self.threads = chains.loops.threads
        self._plan = chain_schedule(self._copies, self.threads, deadline)
        self._loops = ChainLoops(self._copies, self._plan, self.threads)
        at, step = self._plan.node_places
        self._places = np.repeat(at, counts) + label * np.repeat(step, counts)
        self._length = np.repeat(self._paths.length, counts).astype(np.float64)
        inverse = np.bincount(self._entry, 1.0 / self._length)
        self._part = 1.0 / (self._length * inverse[self._entry])
        self.levels = len(chains.plan.row_start) - 1
        self.lengths: Ints = self._paths.length[self._paths.before < 0]

    def _messages_at(self, half: Ints, label: Ints) -> Ints:
        """The indices of the messages into copies along half-edges; that of a spare 0 for none."""
        model = self._chains.model
        first = np.where(half >= 0, model.half_offset[half], model.half_size)
        return np.repeat(first, self.counts) + np.where(np.repeat(half >= 0, self.counts), label, 0)

    def _network(self, counts: Ints) -> Network:
        model = self._chains.model
        groups = [(self._paths.edges[a:b], potential) for a, b, potential in model.groups()]
        return Network(FlatUnary(self._base.copy(), counts), None, groups)

    def change(self, messages: Messages) -> Floats:
        """Return the change of shares that messages stand for after a half pass."""
        lam = np.append(self._chains.loops.lam(messages.msg), 0.0)
        sums = lam[self._before] + lam[self._after]
        sums -= (np.bincount(self._entry, sums) / np.bincount(self._entry))[self._entry]
        means = np.add.reduceat(sums, self._start) / self.counts
        centred: Floats = sums - np.repeat(means, self.counts)
        return centred

    def marginals(
        self, change: Floats, eta: float, deadline: core.Deadline | None = None
    ) -> tuple[float, Floats, Messages] | None:
        """Return L_T, the marginals of the copies, and the engine's messages of these shares.

        None if the deadline passes first. The messages into late endpoints are exact.
        """
        self._set(change)
        state = self._fresh()
        if self._loops.passes(2, state, eta, momentum=False, deadline=deadline) < 2:
            return None
        nodes, _, minima = self._loops.marginals(state.msg, eta, forward=False)
        value = -self._total(state.shift, minima)
        return value, nodes, self._chains.start(self._loops.lam(state.msg))

    def half_pass(self, messages: Messages, eta: float) -> float:
        """Minimise L_T over the shares of one level after the other, in place; return its value."""
        self._chains.loops.half_pass(False, messages.msg, eta, shift=messages.shift)
        return self.value(messages, eta)

    def value(self, messages: Messages, eta: float) -> float:
        """Return L_T of the engine's messages after a backward half pass."""
        minima = self._chains.loops.marginals(messages.msg, eta, forward=False)[2]
        return -self._total(messages.shift, minima)

    def consensus(self, nodes: Floats) -> Floats:
        """Return the mean q_i of the marginals of a node's copies, weighted by 1 / ℓ."""
        mean: Floats = np.bincount(self._entry, self._part * nodes).astype(np.float64)
        return mean

    def step(self, nodes: Floats, consensus: Floats, eta: float) -> Floats:
        """Return W⁻¹ ∇L_T within the shares that add up: (q_i - p) / (η ℓ / 2)."""
        change: Floats = (consensus[self._entry] - nodes) * (2.0 / eta) / self._length
        return change

    def product(self, first: Floats, second: Floats, eta: float) -> float:
        """Return the inner product of two changes in the metric W = η ℓ / 2."""
        terms = self._length * first  # no `@`, whose threads would take longer than the product
        terms *= second
        return 0.5 * eta * float(core.careful_sum(terms, self.threads))

    def bounding(self, change: Floats) -> tuple[float, Floats]:
        """Return the chain bound of shares, up to rounding, and a λ that proves it."""
        self._set(change)
        state, token = self._fresh(), object()
        bound = self._loops.lowered(state.msg, state.shift, token)
        return bound + self._chains.model.constant, self._loops.cut(state.msg, token)

    def _set(self, change: Floats) -> None:
        self._loops.forget()
        self._plan.unary[self._places] = self._base + change

    def _fresh(self) -> Messages:
        message = np.zeros(self._plan.message_size)
        return Messages(message, NONE, np.array(CLOCK), np.zeros(len(self._plan.blocks)))

    def _total(self, shift: Floats, minima: float) -> float:
        shifts = core.careful_sum(shift, self.threads)
        return float(core.careful_sum(np.array([shifts, minima, self._chains.model.constant])))

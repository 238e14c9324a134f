"""Labellings by parts: each part is labelled with its boundary held fixed, one turn after another.

Parts of one turn have no edges between them, so that each may change its labels without asking: the
cost of the whole falls by what each part gains.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.distributed.engines import PartEngine
from softmap.distributed.judge import Arrays
from softmap.distributed.parts import piece
from softmap.distributed.passes import Passes
from softmap.labels import best_labelling, decode, forests, round_nodes
from softmap.model import Model

__all__ = ["LabelsByParts"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROUNDS = 2  # improvements over all parts after a labelling was read off


class LabelsByParts:
    """The best labelling so far, each process its own parts.

    Attributes
    ----------
    labels : dict from part to the labels of its nodes, halo included
    energy : float
        Of the whole labelling; +inf until one obeys the hard constraints.
    """

    def __init__(self, passes: Passes) -> None:
        self._passes = passes
        self.labels: dict[int, Ints] = {
            number: np.zeros(chains.part.model.n, dtype=np.int64)
            for number, chains in passes.chains.items()
        }
        self.energy = math.inf

    def look(self, lam: Arrays, nodes: Arrays, seed: int) -> None:
        """Read labels off λ and node marginals and improve them; all processes together."""
        found = self.read_off(lam, nodes)
        for step in range(ROUNDS):
            for turn in self._turns():
                for number in turn:
                    self._improve(number, found[number], seed + step)
                self._passes.halo.nodes(found)
        self.take(found)

    def read_off(self, lam: Arrays, nodes: Arrays) -> dict[int, Ints]:
        """Read labels off λ and node marginals; all processes together."""
        found: dict[int, Ints] = {
            number: np.full(len(own), -1) for number, own in self.labels.items()
        }
        # last part first: λ stands as a forward pass has left it
        for turn in reversed(self._turns()):
            for number in turn:
                self._decode(number, found[number], lam, nodes)
            self._passes.halo.nodes(found)
        self.take(found)
        return found

    def _decode(self, number: int, labels: Ints, lam: Arrays, nodes: Arrays) -> None:
        inner = _Inner(self._passes.chains[number])  # made when needed: it is as large as a part
        labels[: inner.own] = inner.decoded(labels, lam, nodes)

    def _improve(self, number: int, labels: Ints, seed: int) -> None:
        inner = _Inner(self._passes.chains[number])
        labels[: inner.own] = inner.improved(labels, seed)

    def round(self, nodes: Arrays) -> None:
        """Take each variable's most likely label; all processes together."""
        found = {}
        for number, chains in self._passes.chains.items():
            found[number] = round_nodes(chains.part.model, nodes[number])
        self._passes.halo.nodes(found)
        self.take(found)

    def _turns(self) -> list[list[int]]:
        turns = self._passes.whole.turns
        mine = self._passes.chains.keys()
        return [[n for n in mine if turns[n] == turn] for turn in range(int(turns.max()) + 1)]

    def take(self, labels: dict[int, Ints]) -> None:
        """Keep a labelling if it is better; its halos are filled in."""
        energy = self.energy_of(labels)
        # labels that nobody has looked at might cost less than +inf
        if energy < self.energy or math.isinf(self.energy):
            self.energy = energy
            self.labels = {number: own.copy() for number, own in labels.items()}

    def energy_of(self, labels: dict[int, Ints]) -> float:
        """Cost of a whole labelling, by a sum over the parts in their order."""
        rows = [[_cost(self._passes.chains[number], own)] for number, own in labels.items()]
        table = self._passes.team.table(rows, 1)
        return float(core.careful_sum(np.append(table[:, 0], self._passes.whole.constant)))


class _Inner:
    """The own variables of one part, with edges among them only."""

    def __init__(self, chains: PartEngine) -> None:
        self._chains, part = chains, chains.part
        self.own = part.own
        model = part.model
        inside = np.flatnonzero((model.edges < part.own).all(axis=1))
        everyone = np.arange(model.n)
        self.model = piece(model, everyone[: part.own], inside, everyone)
        kept = np.zeros(2 * model.m, dtype=bool)
        kept.reshape(-1, 2)[inside] = True
        # a byte per entry of λ: this is made where memory is needed most
        self._inside = np.repeat(kept, model.num_labels[model.edges.reshape(-1)])
        self._unary = model.unary[: chains.own_states]

    def decoded(self, labels: Ints, lam: Arrays, nodes: Arrays) -> Ints:
        """Labels read off λ and marginals, given the neighbours that are decided."""
        part = self._chains.part
        model = self._given(labels, lam[part.number])
        marginals = nodes[part.number][: self._chains.own_states]
        inside = lam[part.number][self._inside]
        order = np.argsort(self._chains.rank[: self.own])[::-1]  # last of a pass first
        candidates = [round_nodes(model, marginals), decode(model, inside, order)]
        return best_labelling(model, candidates)[0]

    def improved(self, labels: Ints, seed: int) -> Ints:
        """No dearer labels, given the neighbours'."""
        model = self._given(labels, None)
        return forests(model, best_labelling(model, [labels[: self.own]])[0], 1, 0.0, seed)

    def _given(self, labels: Ints, lam: Floats | None) -> Model:
        """The model of the own variables, given the labels of the halo; those of -1 are open.

        An open neighbour adds the message that λ stands for, to the variable that receives it.
        """
        part = self._chains.part
        model, total = part.model, self._unary.copy()
        for first, last, potential in model.groups():
            ends = model.edges[first:last].astype(np.int64)
            for side in (0, 1):
                cut = np.flatnonzero((ends[:, side] < self.own) & (ends[:, 1 - side] >= self.own))
                near, far = ends[cut, side], labels[ends[cut, 1 - side]]
                if lam is not None:
                    half = 2 * (first + cut[far < 0]) + side
                    self._add_messages(total, near[far < 0], half, lam)
                cut, near, far = cut[far >= 0], near[far >= 0], far[far >= 0]
                k, x, at = self._spread(cut, near)
                y = np.repeat(far, model.num_labels[near])
                cost = potential.value(k, x, y) if side == 0 else potential.value(k, y, x)
                total += np.bincount(at, cost, len(total))
        return self.model.replace(unary=total)

    def _spread(self, cut: Ints, near: Ints) -> tuple[Ints, Ints, Ints]:
        """Each edge once per label of its near end: edge, label, place of the state."""
        model = self._chains.part.model
        counts = model.num_labels[near]
        label = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.repeat(cut, counts), label, np.repeat(model.node_offset[near], counts) + label

    def _add_messages(self, total: Floats, near: Ints, half: Ints, lam: Floats) -> None:
        model = self._chains.part.model
        h, label, at = self._spread(half, near)
        message = -lam[model.half_offset[h] + label]
        total += np.bincount(at, message, len(total))


def _cost(chains: PartEngine, labels: Ints) -> float:
    """A part's share of the cost of a labelling: own variables and own edges."""
    model, own = chains.part.model, chains.part.own
    if (labels < 0).any():
        return math.inf
    terms = [model.unary[model.node_offset[:own] + labels[:own]]]
    for first, last, potential in model.groups():
        k = np.flatnonzero(chains.owned[first:last])
        ends = model.edges[first:last][k]
        terms.append(potential.value(k, labels[ends[:, 0]], labels[ends[:, 1]]))
    return float(core.careful_sum(np.concatenate(terms).astype(np.float64)))

"""Labellings of a distributed model: parts are improved one colour after another.

Parts of one colour have no edges between them. Each may change its labels while its boundary is
held fixed, and the decreases of the energy add up.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softmap.labels import best_labelling, decode, forests, round_nodes
from softmap.model import Network
from softmap.model.inputs import within
from softmap.model.sums import exact_terms
from softmap.parts.cut import ModelPart, piece
from softmap.parts.passes import PartsPasses
from softmap.run.values import BestValues

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Arrays = dict[int, Floats]  # by part


class LabelsByParts:
    """Finds labellings; each process holds the labels of its own parts, halo included.

    Parameters
    ----------
    passes : PartsPasses
        The messages of this process's parts.
    best : BestValues
        The best values of the run; its labels are arrays by part.

    Attributes
    ----------
    rounds : int
        Number of rounds of local search over all parts after decoding.
    """

    rounds = 2

    def __init__(self, passes: PartsPasses, best: BestValues) -> None:
        self._passes, self._best = passes, best

    def search(self, lam: Arrays, nodes: Arrays, seed: int) -> None:
        """Decode labels from λ and node marginals, and improve them; collective call."""
        found = self.read_off(lam, nodes)
        for step in range(self.rounds):
            for turn in self._turns():
                for number in turn:
                    inner = _Inner(self._passes.chains[number].part)
                    found[number][: inner.own] = inner.improved(found[number], seed + step)
                self._passes.boundary.nodes(found)
        self.offer(found)

    def read_off(self, lam: Arrays, nodes: Arrays) -> dict[int, Ints]:
        """Decode labels from λ and node marginals; collective call of all processes."""
        found: dict[int, Ints] = {
            number: np.full(each.part.model.n, -1) for number, each in self._passes.chains.items()
        }
        # backward over the colours, since λ comes from a forward pass
        for turn in reversed(self._turns()):
            for number in turn:
                # a submodel is as large as its part: only one is in memory at a time
                inner = _Inner(self._passes.chains[number].part)
                labels = inner.decoded(found[number], lam[number], nodes[number])
                found[number][: inner.own] = labels
            self._passes.boundary.nodes(found)
        self.offer(found)
        return found

    def round(self, nodes: Arrays) -> None:
        """Round the marginals: the most likely label of each variable; collective call."""
        chains = self._passes.chains
        found = {k: round_nodes(each.part.model, nodes[k]) for k, each in chains.items()}
        self._passes.boundary.nodes(found)
        self.offer(found)

    def _turns(self) -> list[list[int]]:
        turns, mine = self._passes.whole.turns, self._passes.chains
        return [[n for n in mine if turns[n] == turn] for turn in range(int(turns.max()) + 1)]

    def offer(self, labels: dict[int, Ints]) -> None:
        """Offer a labelling with its halos; collective call of all processes."""
        kept = {number: own.copy() for number, own in labels.items()}
        self._best.offer_labelling(kept, self._energy(kept))

    def _energy(self, labels: dict[int, Ints]) -> float:
        """Energy of a labelling of all parts: the exact sum, rounded once, as `Model.energy`."""
        chains, team = self._passes.chains, self._passes.team
        own = [term for k, x in labels.items() for term in exact_terms(_costs(chains[k].part, x))]
        told: list[list[float]] = team.comm.allgather(own)
        return math.fsum([self._passes.whole.constant, *(term for one in told for term in one)])


class _Inner:
    """The submodel of the own variables of one part and the edges among them."""

    def __init__(self, part: ModelPart) -> None:
        self._part, self.own, nodes = part, part.own, np.arange(part.model.n)
        self._inside = (part.model.edges < self.own).all(axis=1)
        inner = np.flatnonzero(self._inside)
        self._model = piece(part.model, nodes[: self.own], inner, nodes)

    def decoded(self, labels: Ints, lam: Floats, nodes: Floats) -> Ints:
        """Decode labels from λ and marginals, given the labels of decided neighbours."""
        given = self._given(labels, lam)
        model = self._part.model
        # one byte per entry of λ: memory peaks here
        inside = np.repeat(np.repeat(self._inside, 2), model.num_labels[model.edges.reshape(-1)])
        order = np.argsort(self._part.rank[: self.own])[::-1]  # reverse order of a pass
        rounded = round_nodes(given, nodes[: self._part.own_states])
        return best_labelling(given, [rounded, decode(given, lam[inside], order)])[0]

    def improved(self, labels: Ints, seed: int) -> Ints:
        """Improve labels by local search with the halo fixed; the energy never rises."""
        given = self._given(labels, None)
        return forests(given, best_labelling(given, [labels[: self.own]])[0], 1, 0.0, seed)

    def _given(self, labels: Ints, lam: Floats | None) -> Network:
        """Return the model of the own variables, given the labels of the halo; -1 is undecided.

        An undecided neighbour contributes the message -λ to the costs of the own variable.
        """
        model, total = self._part.model, self._part.model.unary[: self._part.own_states].copy()
        for first, last, potential in model.groups():
            ends = model.edges[first:last].astype(np.int64)
            for side in (0, 1):
                cut = np.flatnonzero((ends[:, side] < self.own) & (ends[:, 1 - side] >= self.own))
                near, far = ends[cut, side], labels[ends[cut, 1 - side]]
                counts = model.num_labels[near]
                label = within(counts)
                edge, other = np.repeat(cut, counts), np.repeat(far, counts)
                open_ = other < 0
                pair = (label, other) if side == 0 else (other, label)
                cost = potential.value(edge, *(np.maximum(end, 0) for end in pair))
                if lam is not None:
                    half = model.half_offset[2 * (first + edge) + side] + label
                    cost[open_] = -lam[half[open_]]
                at = np.repeat(model.node_offset[near], counts) + label
                total += np.bincount(at, cost, len(total))
        return self._model.replace(unary=total)


def _costs(part: ModelPart, labels: Ints) -> Floats:
    """The cost terms of own variables and own edges in a complete labelling."""
    model, own = part.model, part.own
    terms = [model.unary[model.node_offset[:own] + labels[:own]]]
    for first, last, potential in model.groups():
        k = np.flatnonzero(part.counted[first:last])
        ends = model.edges[first:last][k]
        terms.append(potential.value(k, labels[ends[:, 0]], labels[ends[:, 1]]))
    return np.concatenate(terms).astype(np.float64)

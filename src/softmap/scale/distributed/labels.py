"""Labellings by parts: each part is labelled with its boundary held fixed, one turn after another.

Parts of one turn have no edges between them, so that each may change its labels without asking: the
cost of the whole falls by what each part gains.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from softmap.labels import best_labelling, decode, forests, round_nodes
from softmap.model import Model
from softmap.model.sums import exact_terms
from softmap.scale.distributed.parts import Part, piece, spread
from softmap.scale.distributed.passes import Passes

__all__ = ["LabelsByParts"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Arrays = dict[int, Floats]  # by part


class LabelsByParts:
    """The best labelling so far, each process its own parts.

    Attributes
    ----------
    labels : dict from part to the labels of its nodes, halo included
    energy : float
        Of the whole labelling; +inf until one obeys the hard constraints.
    rounds : int
        Improvements over all parts after a labelling was read off.
    """

    rounds = 2

    def __init__(self, passes: Passes) -> None:
        self._passes = passes
        self.labels: dict[int, Ints] = {
            number: np.zeros(chains.part.model.n, dtype=np.int64)
            for number, chains in passes.chains.items()
        }
        self.energy = math.inf

    def price_again(self) -> None:
        """Compute the energy of labels that were put in place; all processes together."""
        self.energy = self._energy(self.labels)

    def search(self, lam: Arrays, nodes: Arrays, seed: int) -> None:
        """Read labels off λ and node marginals and improve them; all processes together."""
        found = self.read_off(lam, nodes)
        for step in range(self.rounds):
            for turn in self._turns():
                for number in turn:
                    inner = _Inner(self._passes.chains[number].part)
                    found[number][: inner.own] = inner.improved(found[number], seed + step)
                self._passes.boundary.nodes(found)
        self._offer(found)

    def read_off(self, lam: Arrays, nodes: Arrays) -> dict[int, Ints]:
        """Read labels off λ and node marginals; all processes together."""
        found: dict[int, Ints] = {
            number: np.full(len(own), -1) for number, own in self.labels.items()
        }
        # last part first: λ is as a forward pass has left it
        for turn in reversed(self._turns()):
            for number in turn:
                inner = _Inner(
                    self._passes.chains[number].part
                )  # as large as the part: one at a time
                labels = inner.decoded(found[number], lam[number], nodes[number])
                found[number][: inner.own] = labels
            self._passes.boundary.nodes(found)
        self._offer(found)
        return found

    def round(self, nodes: Arrays) -> None:
        """Take each variable's most likely label; all processes together."""
        chains = self._passes.chains
        found = {k: round_nodes(each.part.model, nodes[k]) for k, each in chains.items()}
        self._passes.boundary.nodes(found)
        self._offer(found)

    def _turns(self) -> list[list[int]]:
        turns = self._passes.whole.turns
        mine = self._passes.chains.keys()
        return [[n for n in mine if turns[n] == turn] for turn in range(int(turns.max()) + 1)]

    def _offer(self, labels: dict[int, Ints]) -> None:
        """Keep a labelling if it is better; its halos are filled in."""
        energy = self._energy(labels)
        # labels that nobody has looked at might cost less than +inf
        if energy < self.energy or math.isinf(self.energy):
            self.energy = energy
            self.labels = {number: own.copy() for number, own in labels.items()}

    def _energy(self, labels: dict[int, Ints]) -> float:
        """Cost of a whole labelling: the exact sum, rounded once, as `Model.energy` has it."""
        chains, team = self._passes.chains, self._passes.team
        own = [term for k, x in labels.items() for term in exact_terms(_costs(chains[k].part, x))]
        told: list[list[float]] = team.comm.allgather(own)
        return math.fsum([self._passes.whole.constant, *(term for one in told for term in one)])


class _Inner:
    """The own variables of one part, with edges among them only."""

    def __init__(self, part: Part) -> None:
        self._part = part
        model, self.own = self._part.model, self._part.own
        self._inside = (model.edges < self.own).all(axis=1)
        everyone = np.arange(model.n)
        chosen = np.flatnonzero(self._inside)
        self._model = piece(model, everyone[: self.own], chosen, everyone)

    def decoded(self, labels: Ints, lam: Floats, nodes: Floats) -> Ints:
        """Labels read off λ and marginals, given the neighbours that are decided."""
        given = self._given(labels, lam)
        model = self._part.model
        # a byte per entry of λ: this is made where memory is needed most
        inside = np.repeat(np.repeat(self._inside, 2), model.num_labels[model.edges.reshape(-1)])
        order = np.argsort(self._part.rank[: self.own])[::-1]  # last of a pass first
        rounded = round_nodes(given, nodes[: self._part.own_states])
        return best_labelling(given, [rounded, decode(given, lam[inside], order)])[0]

    def improved(self, labels: Ints, seed: int) -> Ints:
        """No dearer labels, given the neighbours'."""
        given = self._given(labels, None)
        return forests(given, best_labelling(given, [labels[: self.own]])[0], 1, 0.0, seed)

    def _given(self, labels: Ints, lam: Floats | None) -> Model:
        """The model of the own variables, given the labels of the halo; those of -1 are open.

        An open neighbour adds the message that λ stands for, to the variable that receives it.
        """
        model, total = self._part.model, self._part.model.unary[: self._part.own_states].copy()
        for first, last, potential in model.groups():
            ends = model.edges[first:last].astype(np.int64)
            for side in (0, 1):
                cut = np.flatnonzero((ends[:, side] < self.own) & (ends[:, 1 - side] >= self.own))
                near, far = ends[cut, side], labels[ends[cut, 1 - side]]
                counts = model.num_labels[near]
                label = spread(counts)
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


def _costs(part: Part, labels: Ints) -> Floats:
    """The costs of own variables and own edges in a labelling; all labels are known."""
    model, own = part.model, part.own
    terms = [model.unary[model.node_offset[:own] + labels[:own]]]
    for first, last, potential in model.groups():
        k = np.flatnonzero(part.counted[first:last])
        ends = model.edges[first:last][k]
        terms.append(potential.value(k, labels[ends[:, 0]], labels[ends[:, 1]]))
    return np.concatenate(terms).astype(np.float64)

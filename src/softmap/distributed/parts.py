"""Parts of a model: own variables, the halo of their neighbours, and the order of a pass.

A pass goes through *phases*. Parts of one phase have no edges between them, so that they can be
worked on at the same time; within a part the variables follow each other in their natural order.
Where too many parts touch each other for that, phases are the colours of a colouring of the
variables themselves. Either way the order is one order of all variables, whoever owns which part:
by phase, then by part, then by number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softmap.errors import ModelError
from softmap.model import Model
from softmap.model.graph import Graph
from softmap.model.inputs import Group

__all__ = ["Cut", "Part", "Whole", "cut_model", "first_fit", "piece"]

Ints = NDArray[np.int64]
MOST_PHASES = 8  # colours of the parts up to which parts are worked on one colour at a time


@dataclass(frozen=True)
class Whole:
    """What all parts have in common.

    Attributes
    ----------
    variables, edges, parts : int
    constant : float
    phases : int
        Phases of a pass.
    turns : int64[parts]
        Colours of the parts: those of one colour have no edges between them.
    fingerprint : str
        Of the model that was cut.
    """

    variables: int
    edges: int
    parts: int
    constant: float
    phases: int
    turns: Ints
    fingerprint: str


@dataclass(frozen=True, eq=False)
class Part:
    """Own variables, their neighbours in other parts, and all edges of the former.

    Attributes
    ----------
    number : int
    model : Model
        Nodes `0..own-1` are the part's own, those at its boundary last; the others are its halo.
        All three are in the order of the whole model, and so are the edges.
    own : int
    nodes, edges : int64
        Numbers in the whole model.
    home, phase : int64[nodes]
        The part that owns each node, and its phase.
    """

    number: int
    model: Model
    own: int
    nodes: Ints
    edges: Ints
    home: Ints
    phase: Ints

    @property
    def rank(self) -> Ints:
        """Place of each node in the order of a pass, among the nodes of this part."""
        order = np.lexsort([self.nodes, self.home, self.phase])
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return rank

    @property
    def alike(self) -> NDArray[np.int32]:
        """Edges between own nodes of one phase."""
        edges = self.model.edges[(self.model.edges < self.own).all(axis=1)]
        return edges[self.phase[edges[:, 0]] == self.phase[edges[:, 1]]]

    def levels(self, depth: Ints) -> tuple[Ints, list[tuple[int, int]]]:
        """Levels of the nodes, phase after phase, and the levels of each phase.

        `depth` is the level of each own node within its phase; the halo comes last of all.
        """
        phase = self.phase[: self.own]
        keys, dense = np.unique(
            phase * (int(depth.max(initial=0)) + 1) + depth, return_inverse=True
        )
        level = np.full(self.model.n, len(keys), dtype=np.int64)
        level[: self.own] = dense.reshape(-1)
        phases = range(int(phase.max(initial=-1)) + 1)
        first = [int(level[: self.own][phase >= p].min(initial=len(keys))) for p in phases]
        return level, list(zip(first, [*first[1:], len(keys)], strict=True))

    def ends(self, rank: Ints) -> tuple[Ints, Ints]:
        """Early and late end of each edge."""
        first, second = self.model.edges.T.astype(np.int64)
        swapped = rank[first] > rank[second]
        return np.where(swapped, second, first), np.where(swapped, first, second)


@dataclass(frozen=True, eq=False)
class Cut:
    """How a model is cut: part, phase of every variable, and the colours of the parts."""

    part: Ints
    phase: Ints
    turns: Ints

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return len(self.turns)

    @classmethod
    def of(cls, model: Model, part: Ints) -> Cut:
        """The order for variables in parts."""
        parts = int(part.max()) + 1
        ends = part[model.edges]
        crossing = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0)
        turns = first_fit(crossing, parts)
        if parts > 1 and int(turns.max()) + 1 > max(2, min(MOST_PHASES, parts // 2)):
            return cls(part, model.graph.colouring().astype(np.int64), turns)
        return cls(part, turns[part], turns)


def first_fit(edges: NDArray[np.integer], n: int) -> Ints:
    """Colours of n nodes so that edges join different ones."""
    graph = Graph.from_edges(np.ascontiguousarray(edges, dtype=np.int32).reshape(-1, 2), n)
    return graph.colouring().astype(np.int64)


def cut_model(model: Model, part: Ints, wanted: range | None = None) -> tuple[Whole, list[Part]]:
    """The parts of a model that is in memory; all, or those in a range of numbers."""
    if len(model.auxiliaries):
        raise ModelError(
            "a model with factors of more than two variables cannot be cut into parts; "
            "softmap.solve solves it on one machine"
        )
    cut = Cut.of(model, part)
    whole = Whole(
        variables=model.n,
        edges=model.m,
        parts=cut.parts,
        constant=model.constant,
        phases=int(cut.phase.max()) + 1,
        turns=cut.turns,
        fingerprint=model.fingerprint(),
    )
    numbers = range(cut.parts) if wanted is None else wanted
    return whole, list(_parts(model, cut, numbers))


def _parts(model: Model, cut: Cut, wanted: range) -> Iterator[Part]:
    ends = cut.part[model.edges]
    by_part = np.argsort(cut.part, kind="stable")
    start = np.searchsorted(cut.part[by_part], np.arange(cut.parts + 1))
    local = np.full(model.n, -1, dtype=np.int64)
    for number in wanted:
        own = by_part[start[number] : start[number + 1]]
        edges = np.flatnonzero((ends == number).any(axis=1))
        touched = np.unique(model.edges[edges])
        crossing = edges[(ends[edges] != number).any(axis=1)]
        own = inner_first(own, np.unique(model.edges[crossing]))
        halo = touched[cut.part[touched] != number].astype(np.int64)
        nodes = np.concatenate([own, halo])
        local[nodes] = np.arange(len(nodes))
        yield Part(
            number=number,
            model=piece(model, nodes, edges, local),
            own=len(own),
            nodes=nodes,
            edges=edges,
            home=cut.part[nodes],
            phase=cut.phase[nodes],
        )


def inner_first(own: Ints, boundary: NDArray[np.integer]) -> Ints:
    """Own nodes with those at the boundary last; both halves keep their order.

    Edges between inner nodes then lie in memory as the nodes do, and vectors are loaded in one go.
    """
    outer = np.isin(own, boundary)
    return np.concatenate([own[~outer], own[outer]])


def piece(model: Model, nodes: Ints, edges: Ints, local: Ints) -> Model:
    """The model of some nodes and edges."""
    groups: list[Group] = []
    for first, last, potential in model.groups():
        chosen = edges[(edges >= first) & (edges < last)]
        if len(chosen):
            groups.append((local[model.edges[chosen]], potential.take(chosen - first)))
    labels = model.num_labels[nodes]
    at = np.repeat(model.node_offset[nodes], labels)
    within = np.arange(len(at)) - np.repeat(np.cumsum(labels) - labels, labels)
    flat = model.unary[at + within]
    if labels.min() == labels.max():
        return Model(flat.reshape(len(nodes), -1), None, groups)
    return Model(np.split(flat, np.cumsum(labels)[:-1]), None, groups)

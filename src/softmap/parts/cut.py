"""Parts of a model: own variables, the halo of their neighbours, and the order of a pass.

A pass consists of *phases*. Parts of one phase have no edges between them and are processed in
parallel; within a part, the variables keep their natural order. If too many parts are adjacent for
a small number of phases, the phases are instead the colours of a colouring of the variables. Both
cases define one order of all variables, by phase, then by part, then by number, which does not
depend on the processes that own the parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import FormatError, ModelError
from softmap.io.npz import model_arrays, model_from_arrays
from softmap.model import Network
from softmap.model.graph import Graph
from softmap.model.inputs import Group, within

Ints = NDArray[np.int64]
ARRAYS = ("nodes", "edges", "home", "phase", "own")  # of a part, besides those of its model


@dataclass(frozen=True)
class Whole:
    """Properties of the whole model, known to all parts.

    Attributes
    ----------
    variables, edges, parts : int
        Their numbers in the whole model.
    constant : float
        The constant of the energy.
    phases : int
        Number of phases of a pass.
    turns : int64[parts]
        Colours of the parts; parts of one colour have no edges between them.
    fingerprint : str
        Fingerprint of the whole model.
    """

    variables: int
    edges: int
    parts: int
    constant: float
    phases: int
    turns: Ints
    fingerprint: str


@dataclass(frozen=True, eq=False)
class ModelPart:
    """Own variables, their neighbours in other parts, and all edges of own variables.

    Attributes
    ----------
    number : int
        Index of the part.
    model : Network
        The submodel. Nodes `0..own-1` are own nodes, first the inner and then the boundary nodes;
        the remaining nodes are the halo. Each of these three groups, and the edges, are in the
        order of the whole model.
    own : int
        Number of own nodes.
    nodes, edges : int64 array
        Their numbers in the whole model.
    home, phase : int64[nodes]
        The part that owns each node, and the phase of the node.
    """

    number: int
    model: Network
    own: int
    nodes: Ints
    edges: Ints
    home: Ints
    phase: Ints

    def arrays(self) -> dict[str, Any]:
        """Return the part as arrays by name, those of its model among them."""
        own = {f"part.{name}": getattr(self, name) for name in ARRAYS}
        return own | model_arrays(self.model)

    @staticmethod
    def of_arrays(
        number: int, arrays: dict[str, NDArray[Any]], whole: Whole, path: Path
    ) -> ModelPart:
        """Return the part of the arrays of `arrays`; raise `FormatError` if they contradict.

        Parameters
        ----------
        number : int
            Index of the part.
        arrays : dict
            The arrays by name.
        whole : Whole
            The model of the part.
        path : Path
            The file of the arrays, for errors.
        """
        own = {name: arrays.pop(f"part.{name}", None) for name in ARRAYS}
        if any(array is None for array in own.values()):
            raise FormatError("expected a part of a model", path)
        model = model_from_arrays(arrays, path).network
        values: dict[str, Any] = {name: np.asarray(own[name], dtype=np.int64) for name in ARRAYS}
        values["own"] = int(values["own"])
        part = ModelPart(number=number, model=model, **values)
        if not _sound(part, whole):
            raise FormatError("damaged part: the sizes of its arrays contradict each other", path)
        return part

    @property
    def own_states(self) -> int:
        """Number of states of the own nodes, whose states come first."""
        return int(self.model.node_offset[self.own])

    @cached_property
    def rank(self) -> Ints:
        """Position of each node in the order of a pass, among the nodes of this part."""
        order = np.lexsort([self.nodes, self.home, self.phase])
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return rank

    @property
    def ends(self) -> tuple[Ints, Ints]:
        """Early and late endpoint of each edge."""
        rank, (first, second) = self.rank, self.model.edges.T.astype(np.int64)
        swapped = rank[first] > rank[second]
        return np.where(swapped, second, first), np.where(swapped, first, second)

    @cached_property
    def counted(self) -> NDArray[np.bool_]:
        """A mask of the edges that belong to the part: their early endpoint is own."""
        return self.ends[0] < self.own

    def levels(self) -> tuple[Ints, list[tuple[int, int]]]:
        """Return the level of each node (halo last), and the range of levels of each phase."""
        own, phase = self.own, self.phase[: self.own]
        edges = self.model.edges[(self.model.edges < own).all(axis=1)]
        alike = edges[phase[edges[:, 0]] == phase[edges[:, 1]]]
        depth = Graph.from_edges(alike, own).levels(self.rank[:own]).astype(np.int64)
        keys, dense = np.unique(
            phase * (int(depth.max(initial=0)) + 1) + depth, return_inverse=True
        )
        level = np.full(self.model.n, len(keys), dtype=np.int64)
        level[:own] = dense.reshape(-1)
        phases = range(int(phase.max(initial=-1)) + 1)
        first = [int(level[:own][phase >= p].min(initial=len(keys))) for p in phases]
        return level, list(zip(first, [*first[1:], len(keys)], strict=True))


def _sound(part: ModelPart, whole: Whole) -> bool:
    """Whether the arrays of a part are consistent, so that other code may rely on them."""
    n, m = part.model.n, part.model.m
    sizes = [(part.nodes, n, whole.variables), (part.home, n, whole.parts)]
    sizes += [(part.phase, n, whole.phases), (part.edges, m, whole.edges)]
    own = part.home == part.number
    return (
        all(a.shape == (k,) and (a >= 0).all() and (a < most).all() for a, k, most in sizes)
        and 0 < part.own <= n
        and bool(own[: part.own].all() and not own[part.own :].any())
        and bool((part.model.edges < part.own).any(axis=1).all())
    )


def cut_model(
    model: Network, part: Ints, wanted: range | None = None
) -> tuple[Whole, list[ModelPart]]:
    """Partition a model that is in memory.

    Parameters
    ----------
    model : Network
        The whole model.
    part : int64[variables]
        The part of each variable.
    wanted : range, optional
        The parts to return; all by default.
    """
    if model.has_factors:
        raise ModelError(
            "a model with factors of more than two variables cannot be cut into parts; "
            "softmap.solve solves it on one machine"
        )
    parts = int(part.max()) + 1
    ends = part[model.edges]
    crossing = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0)
    touching = Graph.from_edges(np.ascontiguousarray(crossing, dtype=np.int32), parts)
    turns = touching.colouring().astype(np.int64)
    # with more colours, most processes would be idle in each phase
    few = parts == 1 or int(turns.max()) + 1 <= max(2, min(8, parts // 2))
    phase = turns[part] if few else model.graph.colouring().astype(np.int64)
    whole = Whole(
        variables=model.n,
        edges=model.m,
        parts=parts,
        constant=model.constant,
        phases=int(phase.max()) + 1,
        turns=turns,
        fingerprint=model.fingerprint(),
    )
    by_part = np.argsort(part, kind="stable")
    start = np.searchsorted(part[by_part], np.arange(parts + 1))
    local = np.full(model.n, -1, dtype=np.int64)

    def made(number: int) -> ModelPart:
        own = by_part[start[number] : start[number + 1]]
        edges = np.flatnonzero((ends == number).any(axis=1))
        nodes = part_nodes(number, own, model.edges[edges], ends[edges])
        local[nodes] = np.arange(len(nodes))
        cut = piece(model, nodes, edges, local)
        return ModelPart(number, cut, len(own), nodes, edges, part[nodes], phase[nodes])

    return whole, [made(number) for number in (range(parts) if wanted is None else wanted)]


def part_nodes(
    number: int, own: Ints, ends: NDArray[np.integer], home: NDArray[np.integer]
) -> Ints:
    """The nodes of a part: first inner nodes, then own boundary nodes, then the halo.

    The messages between inner nodes are then contiguous, so that kernels load whole vectors.

    Parameters
    ----------
    number : int
        Index of the part.
    own : int array
        The own nodes of the part.
    ends : int array
        Endpoints of all edges with an own node.
    home : int array
        The part of each endpoint in `ends`.
    """
    boundary = np.unique(ends[(home != number).any(axis=1)]).astype(np.int64)
    outer = np.isin(own, boundary)
    return np.concatenate([own[~outer], own[outer], np.setdiff1d(boundary, own)])


def piece(model: Network, nodes: Ints, edges: Ints, local: Ints) -> Network:
    """Return the submodel of some nodes and edges."""
    groups: list[Group] = []
    for first, last, potential in model.groups():
        chosen = edges[(edges >= first) & (edges < last)]
        if len(chosen):
            groups.append((local[model.edges[chosen]], potential.take(chosen - first)))
    labels, flat = model.num_labels[nodes], model.unary[states_of(model, nodes)]
    if labels.min() == labels.max():
        return Network(flat.reshape(len(nodes), -1), None, groups)
    return Network(np.split(flat, np.cumsum(labels)[:-1]), None, groups)


def states_of(model: Network, nodes: Ints) -> Ints:
    """Indices of the states of some nodes in arrays over all states."""
    labels = model.num_labels[nodes]
    return np.repeat(model.node_offset[nodes], labels) + within(labels)

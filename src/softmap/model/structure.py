"""The flat arrays of a model, the positions of nodes and edges in them, and energies.

Two kinds of nodes are not the user's. *Chain variables* (`Running`) hold the partial count or sum
of a factor; their labels follow from those of other variables. *Auxiliary nodes* (`Auxiliaries`)
represent factors of three or more variables by their joint states.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap import core
from softmap.errors import ModelError, shown
from softmap.model.graph import Graph
from softmap.model.inputs import checked_labels, checked_number
from softmap.model.many import Many
from softmap.model.names import Names
from softmap.model.potentials import Potential, Projection
from softmap.model.potentials.base import Costs, Ints, frozen, integers, is_one_value, offsets
from softmap.model.sums import careful_sums


@dataclass(frozen=True)
class Running:
    """How the label of each chain variable follows from the labels of variables before it.

    Chain variable `r` has label `maps[offset[r] + Σ stride[k] * label[member[k]]]`, summed over `k`
    in `start[r]:start[r + 1]`. Chain variables are the last variables of a model.
    """

    start: Ints
    member: Ints
    stride: Ints
    offset: Ints
    maps: Ints

    def __len__(self) -> int:
        return len(self.offset)

    def follow(self, labels: Ints) -> Ints:
        """Return the labels of all variables, given those without chain variables.

        Both arrays have shape (..., variables).
        """
        count = labels.shape[-1]
        every = np.concatenate([labels, np.zeros((*labels.shape[:-1], len(self)), np.int64)], -1)
        columns = every.reshape(-1, count + len(self)).T.copy()
        if columns.shape[1] == 1:
            columns[count:, 0] = self._follow_one(columns[:count, 0].tolist())
        else:
            for r in range(len(self)):
                own = slice(self.start[r], self.start[r + 1])
                place = self.offset[r] + self.stride[own] @ columns[self.member[own]]
                columns[count + r] = self.maps[place]
        return columns.T.reshape(every.shape)

    def _follow_one(self, labels: list[int]) -> list[int]:
        """Return the labels of the chain variables for one labelling, without numpy calls."""
        count = len(labels)
        member, stride, maps = self.member.tolist(), self.stride.tolist(), self.maps.tolist()
        start, k = self.start.tolist(), 0
        for r, place in enumerate(self.offset.tolist()):
            while k < start[r + 1]:
                place += stride[k] * labels[member[k]]
                k += 1
            labels.append(maps[place])
        return labels[count:]

    def arrays(self) -> dict[str, Ints]:
        """All arrays by name."""
        names = ("start", "member", "stride", "offset", "maps")
        return {name: getattr(self, name) for name in names}


_NONE = np.zeros(0, np.int64)
NO_RUNNING = Running(np.zeros(1, np.int64), _NONE, _NONE, _NONE, _NONE)


def running_of(parts: Sequence[tuple[tuple[int, ...], Ints]]) -> Running:
    """Make a `Running` from pairs (scope, labels); `labels` has one axis per variable of the scope.

    Equal arrays of labels are stored once.
    """
    if not parts:
        return NO_RUNNING
    known: dict[tuple[tuple[int, ...], bytes], int] = {}
    seen: dict[int, tuple[int, list[int]]] = {}  # arrays seen before, by id
    maps: list[Ints] = []
    start, size = [0], 0
    member: list[int] = []
    stride: list[int] = []
    offset: list[int] = []
    for scope, labels in parts:
        if id(labels) not in seen:
            key = labels.shape, labels.tobytes()
            if key not in known:
                known[key] = size
                maps.append(labels.ravel())
                size += labels.size
            steps = [s // labels.itemsize for s in np.ascontiguousarray(labels).strides]
            seen[id(labels)] = known[key], steps
        place, steps = seen[id(labels)]
        member += scope
        stride += steps
        start.append(len(member))
        offset.append(place)
    arrays = (start, member, stride, offset, np.concatenate(maps))
    return Running(*(frozen(a, np.int64) for a in arrays))


def check_running(given: Running, num_labels: Ints) -> Running:
    """Return `given` with read-only arrays; raise `ModelError` if a label would be out of range."""
    parts = [integers(a, "chain variables") for a in given.arrays().values()]
    running = Running(*(frozen(a, np.int64) for a in parts))
    visible = len(num_labels) - len(running)
    start, member, stride, offset, maps = parts
    sound = all(a.ndim == 1 for a in parts) and visible > 0 and len(start) == len(offset) + 1
    sound = sound and start[0] == 0 and start[-1] == len(member) == len(stride)
    sound = bool(sound and (np.diff(start) > 0).all())
    if sound:
        owner = np.repeat(np.arange(len(running)), np.diff(start))
        sound = bool(((member >= 0) & (member < visible + owner) & (stride >= 0)).all())
    if sound:
        reach = np.add.reduceat(stride * (num_labels[member] - 1.0), start[:-1])
        sound = bool(((offset >= 0) & (offset + reach < len(maps))).all())
    if sound:
        ends = (offset + reach).astype(np.int64) + 1
        counts = num_labels[visible:]
        sound = all(
            0 <= maps[a:b].min() and maps[a:b].max() < count
            for a, b, count in zip(offset.tolist(), ends.tolist(), counts.tolist(), strict=True)
        )
    if not sound:
        raise ModelError("the chain variables do not fit the model")
    return running


PIECE = 1 << 16  # number of nodes or edges processed at a time


@dataclass(frozen=True)
class Auxiliaries:
    """How the joint state of each auxiliary node follows from the labels of its members.

    Auxiliary node `a` has state `Σ stride[k] * label[member[k]]`, summed over `k` in
    `start[a]:start[a + 1]`.
    """

    start: Ints
    member: Ints
    stride: Ints

    def __len__(self) -> int:
        return len(self.start) - 1

    def states(self, labels: Ints) -> Ints:
        """Return the joint states for labellings of shape (..., variables)."""
        terms = labels[..., self.member] * self.stride
        total: Ints = np.add.reduceat(terms, self.start[:-1], axis=-1)
        return total


NO_AUXILIARIES = Auxiliaries(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True)
class CostSizes:
    """Sizes of a model's costs, in units of `2**exponent`."""

    exponent: int
    largest: float  # largest |cost|: between 1/2 and 1, or 0
    width: float  # sum of the ranges (largest - smallest cost) of all tables
    node_width: float  # the part of `width` that unary costs have
    scale: float  # mean of the ranges that are not 0; 0 if all tables are constant
    total: float  # sum over all tables of the largest |cost|


class Structure:
    """The arrays of a model, the positions in them, and the costs of labellings.

    `Model` documents the attributes.
    """

    unary: Costs
    num_labels: Ints
    n: int
    m: int
    num_variables: int
    edges: NDArray[np.int32]
    potentials: tuple[Potential, ...]
    group_start: Ints
    constant: float
    auxiliaries: Auxiliaries
    running: Running
    required: tuple[Many, ...]
    required_chains: tuple[tuple[int, int], ...]
    shape: tuple[int, ...] | None
    names: Names | None

    @cached_property
    def node_offset(self) -> Ints:
        """The start of each node's block in node arrays such as `unary`; length n + 1."""
        return offsets(self.num_labels)

    @cached_property
    def half_offset(self) -> Ints:
        """The start of each half-edge's block in arrays such as λ; length 2m + 1."""
        return offsets(self.num_labels[self.edges.reshape(-1)])

    @cached_property
    def is_even(self) -> bool:
        """Whether all nodes have the same number of labels."""
        return bool(self.num_labels.min() == self.num_labels.max())

    @property
    def half_size(self) -> int:
        """The length of arrays such as λ (one entry per half-edge and label)."""
        if self.is_even:  # avoids the array of offsets
            return 2 * self.m * int(self.num_labels[0])
        return int(self.half_offset[-1])

    @cached_property
    def edge_offset(self) -> Ints:
        """The start of each edge's row-major block in edge arrays; length m + 1."""
        return offsets(self.num_labels[self.edges].prod(axis=1))

    @property
    def edge_size(self) -> int:
        """The length of edge arrays (one entry per edge and pair of labels)."""
        if self.is_even:
            return self.m * int(self.num_labels[0]) ** 2
        return int(self.edge_offset[-1])

    @cached_property
    def graph(self) -> Graph:
        """The half-edges of each node."""
        return Graph.from_edges(self.edges, self.n)

    @cached_property
    def has_forbidden(self) -> bool:
        """Whether any cost is +inf, projections of auxiliary nodes excepted."""
        largest = self.unary.max(initial=0.0)  # faster than a mask of all costs
        if largest == np.inf or any(p.has_forbidden() for p in self.potentials):
            return True
        visible = self.n - len(self.auxiliaries)
        return any(
            bool(((self.edges[first:last] < visible).all(axis=1) & (p.num_labels > 1)).any())
            for first, last, p in self.groups()
            if isinstance(p, Projection)
        )

    @cached_property
    def cost_sizes(self) -> CostSizes:
        """The sizes of the costs."""
        largest, total, width, several = 0.0, 0.0, [0.0, 0.0], 0
        for edges, pieces in enumerate((self.node_extremes(), self.edge_extremes())):
            for low, high in pieces:
                size, widths = np.maximum(np.abs(low), np.abs(high)), high - low
                largest, total = max(largest, float(size.max())), total + float(size.sum())
                width[edges] += float(widths.sum())
                several += int(np.count_nonzero(widths))
        exponent = int(np.frexp(largest)[1])
        largest, total, *width = (math.ldexp(size, -exponent) for size in (largest, total, *width))
        both = sum(width)
        scale = both / several if several else 0.0
        return CostSizes(exponent, largest, both, width[0], scale, total)

    def node_extremes(self) -> Iterator[tuple[Costs, Costs]]:
        """Yield the smallest and largest finite cost of the nodes, 0 if there is none, in pieces.

        Pieces stay in the cache, and take no memory.
        """
        even = int(self.num_labels[0]) if self.is_even else 0
        rows: Ints = np.arange(min(PIECE, self.n) + 1) * even
        for first in range(0, self.n, PIECE):
            count = min(PIECE, self.n - first)
            if not even:
                rows = offsets(self.num_labels[first : first + count])
            start = first * even if even else int(self.node_offset[first])
            low, high = np.empty((2, count))
            costs = self.unary[start : start + int(rows[count])]
            core.row_extremes(costs, rows[: count + 1], low, high)
            yield low, high

    def edge_extremes(self) -> Iterator[tuple[Costs, Costs]]:
        """Yield the smallest and largest finite cost of the edges, as `node_extremes`."""
        for first, last, potential in self.groups():
            yield from potential.extreme_pieces(*self.end_labels(first, last), PIECE)

    def extremes(self) -> tuple[Costs, Costs]:
        """Return the smallest and largest finite cost of every node, then of every edge.

        Both are 0 for a node or edge without a finite cost.
        """
        low, high = np.empty((2, self.n + self.m))
        start = offsets(self.num_labels)  # not `node_offset`, which would be kept
        core.row_extremes(self.unary, start, low[: self.n], high[: self.n])
        for first, last, p in self.groups():
            edges = slice(self.n + first, self.n + last)
            low[edges], high[edges] = p.extremes(*self.end_labels(first, last))
        return low, high

    @property
    def num_visible(self) -> int:
        """The length of a labelling: the number of variables without chain variables."""
        return self.num_variables - len(self.running)

    @property
    def has_chains(self) -> bool:
        """Whether there are chain variables."""
        return len(self.running) > 0

    @property
    def has_factors(self) -> bool:
        """Whether there are factor nodes."""
        return len(self.auxiliaries) > 0

    @property
    def is_plain(self) -> bool:
        """Whether the nodes are the variables of the user, and no others."""
        return not self.has_chains and not self.has_factors

    def groups(self) -> Iterator[tuple[int, int, Potential]]:
        """Yield (first edge, last edge + 1, potential) for each group of edges."""
        for g, potential in enumerate(self.potentials):
            yield int(self.group_start[g]), int(self.group_start[g + 1]), potential

    def end_labels(self, first: int, last: int) -> tuple[Ints, Ints]:
        """Return the label counts of the first and second endpoints of edges `first:last`."""
        if self.is_even:  # a broadcast view needs no memory
            same = np.broadcast_to(self.num_labels[0], (last - first,))
            return same, same
        ends = self.edges[first:last]
        return self.num_labels[ends[:, 0]], self.num_labels[ends[:, 1]]

    def node_slice(self, i: int) -> slice:
        """Return the slice of node `i` in node arrays."""
        i = checked_number(i, self.n, "node")
        return slice(int(self.node_offset[i]), int(self.node_offset[i + 1]))

    def half_slice(self, h: int) -> slice:
        """Return the slice of half-edge `h` in arrays such as λ."""
        h = checked_number(h, 2 * self.m, "half-edge")
        return slice(int(self.half_offset[h]), int(self.half_offset[h + 1]))

    def unary_of(self, i: int) -> Costs:
        """Return the costs of the labels of node `i`."""
        return self.unary[self.node_slice(i)]

    def table(self, e: int) -> Costs:
        """Return the dense costs of edge `e`; rows are the labels of its first endpoint."""
        e = checked_number(e, self.m, "edge")
        g = int(np.searchsorted(self.group_start, e, side="right")) - 1
        i, j = self.edges[e]
        rows, cols = int(self.num_labels[i]), int(self.num_labels[j])
        return self.potentials[g].as_table(int(e - self.group_start[g]), rows, cols)

    def tables(self) -> Iterator[Costs]:
        """Iterate over the dense costs of all edges."""
        return (self.table(e) for e in range(self.m))

    # --- energies -------------------------------------------------------------------------------

    def complete(self, labels: ArrayLike) -> Ints:
        """Return the labels of all nodes, given those of the variables.

        The labels of chain variables and auxiliary nodes follow from the given ones.

        Parameters
        ----------
        labels : int array or mapping
            A labelling, a batch of labellings, or a mapping from names to states.
        """
        if isinstance(labels, Mapping):
            if self.names is None:
                raise ModelError("the variables of this model have no names; see Model.with_names")
            labels = self.names.labels(labels)
        chosen = self.with_running(labels)
        if not len(self.auxiliaries):
            return chosen
        return np.concatenate([chosen, self.auxiliaries.states(chosen)], axis=-1)

    def with_running(self, labels: ArrayLike) -> Ints:
        """Return `labels` with the labels of chain variables appended, unless they are present."""
        counts = self.num_labels[: self.num_variables]
        if not len(self.running):
            return checked_labels(labels, counts, self.shape)
        if np.shape(labels)[-1:] == counts.shape:
            return checked_labels(labels, counts)
        chosen = checked_labels(labels, counts[: self.num_visible], self.shape)
        return self.running.follow(chosen)

    def energy(self, labels: ArrayLike) -> Any:
        """Return the energy (total cost) of a labelling, or of each labelling of a batch.

        Parameters
        ----------
        labels : int array or mapping
            One label per variable, flat or in the shape of the grid; an array (batch, variables);
            or, in a model with names, a mapping from names to states.

        Returns
        -------
        float or float64[batch]
            The exact sum of the costs, rounded once; `+inf` if a hard constraint is violated.

        Examples
        --------
        >>> import softmap
        >>> model = softmap.Model([[0, 1], [1, 0]], [[0, 1]], softmap.Potts(0.4))
        >>> model.energy([[0, 0], [0, 1]])
        array([1. , 0.4])
        """
        return careful_sums(self.cost_terms(labels))

    def cost_terms(self, labels: ArrayLike) -> NDArray[np.float64]:
        """Return the terms of the energy: costs of nodes and edges, and the constant.

        Parameters
        ----------
        labels : int array or mapping
            A labelling or a batch of them, as for `energy`.

        Returns
        -------
        float64[..., n + m + 1]
            The terms; their exact sum, rounded once, is the energy.

        Examples
        --------
        >>> import softmap
        >>> model = softmap.Model([[0, 1], [1, 0]], [[0, 1]], softmap.Potts(0.4))
        >>> model.cost_terms([0, 1]).tolist()
        [0.0, 0.0, 0.4, 0.0]
        """
        x = self.complete(labels)
        terms = np.empty((*x.shape[:-1], self.n + self.m + 1))
        terms[..., : self.n] = self.unary[self.node_offset[:-1] + x]
        for first, last, potential in self.groups():
            for begin in range(first, last, PIECE):
                end = min(begin + PIECE, last)
                early, late = self.edges[begin:end].T
                each = np.arange(begin - first, end - first)
                values = potential.value(each, x[..., early], x[..., late])
                terms[..., self.n + begin : self.n + end] = values
        terms[..., -1] = self.constant
        return terms

    @property
    def nbytes(self) -> int:
        """The memory of the arrays that define the model, in bytes."""
        arrays = [a for p in self.potentials for a in p.arrays().values()]
        stored = sum(a.itemsize if is_one_value(a) else a.nbytes for a in arrays)
        return self.unary.nbytes + self.edges.nbytes + stored


# Attributes that do not depend on other costs: `Model._with` copies them, and pickles hold them.
CARRIED = frozenset(Structure.__annotations__) | {
    "node_offset",
    "half_offset",
    "edge_offset",
    "graph",
    "is_even",
}


def unique_rows(rows: Ints) -> tuple[Ints, Ints]:
    """Return the distinct rows of an integer array, ascending, and the index of each row in them.

    As `np.unique` along the first axis, which is slow.
    """
    code, count = np.zeros(len(rows), dtype=np.int64), 1
    for column in rows.T if len(rows) else ():
        low, span = int(column.min()), int(column.max()) - int(column.min()) + 1
        if count * span >= 1 << 62:  # ranks: at most len(rows) codes times len(rows) values
            (code, count), (column, span), low = _ranks(code), _ranks(column), 0
        code, count = code * span + (column - low), count * span
    distinct = np.unique(code)
    index = np.searchsorted(distinct, code)
    which = np.empty(len(distinct), dtype=np.int64)
    which[index] = np.arange(len(rows))  # any of equal rows
    return rows[which], index


def _ranks(values: Ints) -> tuple[Ints, int]:
    """Return the index of each value among the distinct ones, and the number of these."""
    distinct = np.unique(values)
    return np.searchsorted(distinct, values), len(distinct)


def check_auxiliaries(model: Structure, given: Auxiliaries) -> Auxiliaries:
    """Return `given` with read-only arrays; raise `ModelError` if it contradicts the model.

    The states of an auxiliary node enumerate the joint states of its members, each once. One edge
    leads from the auxiliary node to each member. Its potential is the projection, or forbids at
    least what the projection forbids.
    """
    if not isinstance(given, Auxiliaries):
        raise ModelError(f"expected auxiliaries, not {shown(given)}")
    parts = (integers(a, "auxiliaries") for a in (given.start, given.member, given.stride))
    aux = Auxiliaries(*(frozen(a, np.int64) for a in parts))
    if aux.start.ndim == 1 and len(aux.start) == 1 and not len(aux.member) + len(aux.stride):
        return aux
    visible = model.n - len(aux.start) + 1
    _check_members(aux, visible)
    owner = np.repeat(np.arange(len(aux)), np.diff(aux.start))
    _check_strides(aux, owner, model.num_labels, visible)
    _check_couplings(model, aux, owner, visible)
    return aux


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ModelError(f"the auxiliary variables do not fit the model: {message}")


def _check_members(aux: Auxiliaries, visible: int) -> None:
    start, member = aux.start, aux.member
    flat = start.ndim == member.ndim == aux.stride.ndim == 1
    _require(flat and len(start) > 1, "expected flat arrays")
    _require(visible > 0, "the model has no more nodes than auxiliary variables")
    _require(bool(start[0] == 0 and (np.diff(start) > 0).all()), "each needs a member")
    _require(len(member) == len(aux.stride) == int(start[-1]), "expected a stride per member")
    _require(bool(((member >= 0) & (member < visible)).all()), "members must be variables")


def _check_strides(aux: Auxiliaries, owner: Ints, num_labels: Ints, visible: int) -> None:
    """Each stride is the product of the label counts of the members with smaller strides."""
    labels = num_labels[aux.member].astype(np.float64)
    order = np.lexsort((labels, aux.stride, owner))
    arity = np.diff(aux.start)
    expected = np.ones(len(aux))
    for place in range(int(arity.max())):
        which = np.flatnonzero(arity > place)
        k = order[aux.start[which] + place]
        right = bool((aux.stride[k] == expected[which]).all())
        _require(right, "a stride is not the product of the label counts before it")
        expected[which] *= labels[k]
    complete = bool((expected == num_labels[visible:]).all())
    _require(complete, "the number of states is not the number of joint states of the members")


def _check_couplings(model: Structure, aux: Auxiliaries, owner: Ints, visible: int) -> None:
    """The edges at auxiliary nodes are the projections to the members, in any order."""
    own = owner * visible + aux.member
    in_order = bool((np.diff(own) > 0).all())
    rank = np.arange(len(own)) if in_order else np.argsort(own, kind="stable")
    _require(in_order or bool((np.diff(own[rank]) > 0).all()), "a member is named twice")
    found, regions = [], False
    for first, last, potential in model.groups():
        ends = model.edges[first:last].astype(np.int64)
        at = np.flatnonzero((ends >= visible).any(axis=1))
        if not len(at):
            continue
        ends = ends[at]
        between = (ends >= visible).all(axis=1)
        if between.any():
            regions = True
            _check_regions(potential, at[between], ends[between] - visible, model, aux)
            at, ends = at[~between], ends[~between]
        _require(bool((ends[:, 1] < visible).all()), "their edges must lead to their members")
        keys = (ends[:, 0] - visible) * visible + ends[:, 1]
        if in_order and np.array_equal(own, keys):  # the order in which file readers list them
            k = rank
        else:
            k = rank[np.minimum(np.searchsorted(own[rank], keys), len(own) - 1)]
        _require(bool((own[k] == keys).all()), "an edge leads to no member")
        if isinstance(potential, Projection):
            _check_maps(potential, at, aux.stride[k], model.num_labels[aux.member[k]])
        else:
            _check_tables(model, first + at, aux.stride[k])
        found.append(keys)
    keys = np.sort(np.concatenate([np.zeros(0, np.int64), *found]))
    once = bool((np.diff(keys) > 0).all())  # a region need not have an edge to every member
    whole = once if regions else np.array_equal(keys, own[rank])
    _require(whole, "expected one edge to each member")


def _check_regions(
    potential: Potential, edges: Ints, ends: Ints, model: Structure, aux: Auxiliaries
) -> None:
    """Edges between two auxiliary nodes: the members of the second are a subset of the first's.

    The map of an edge takes each joint state of the first node to the joint state of the second
    node with the same labels.
    """
    _require(isinstance(potential, Projection), "edges between them must be projections")
    assert isinstance(potential, Projection)
    visible = model.n - len(aux)
    owner = np.repeat(np.arange(len(aux)), np.diff(aux.start))
    own = owner * visible + aux.member
    rank = np.argsort(own, kind="stable")
    first, second = ends.T
    arity = np.diff(aux.start)[second]
    for size in np.unique(arity).tolist():
        some = np.flatnonzero(arity == size)
        inner = aux.start[second[some]][:, None] + np.arange(size)
        keys = first[some][:, None] * visible + aux.member[inner]
        k = rank[np.minimum(np.searchsorted(own[rank], keys), len(own) - 1)]
        subset = bool((own[k] == keys).all())
        _require(subset, "an edge leads to a node whose members are not all members of the first")
        labels = model.num_labels[aux.member[inner]]
        columns = [potential.index[edges[some]][:, None], aux.stride[k], aux.stride[inner], labels]
        for t, *rest in unique_rows(np.concatenate(columns, axis=1))[0].tolist():
            outer, strides, counts = rest[:size], rest[size : 2 * size], rest[2 * size :]
            state = np.arange(len(potential.maps[t]))
            parts = zip(outer, strides, counts, strict=True)
            expected = sum(state // step % count * stride for step, stride, count in parts)
            fits = np.array_equal(potential.maps[t], expected)
            _require(fits, "the map of an edge between them does not keep the labels")


def _check_maps(potential: Projection, edges: Ints, stride: Ints, labels: Ints) -> None:
    """Each map gives the label of the member in every joint state; every map is checked once."""
    steps, of_step = np.unique(stride, return_inverse=True)
    counts, of_count = np.unique(labels, return_inverse=True)
    # One integer per combination (map, stride, label count): np.unique of rows is slow.
    used = np.unique((potential.index[edges] * len(steps) + of_step) * len(counts) + of_count)
    rest, which = np.divmod(used, len(counts))
    columns = (rest // len(steps), steps[rest % len(steps)], counts[which])
    for t, step, count in np.column_stack(columns).tolist():
        label = np.arange(len(potential.maps[t])) // step % count
        fits = np.array_equal(potential.maps[t], label)
        _require(fits, "the map of an edge does not give the label of the member")


def _check_tables(model: Structure, edges: Ints, stride: Ints) -> None:
    """Every pair of states that the projection forbids is forbidden."""
    for e, step in zip(edges.tolist(), stride.tolist(), strict=True):
        table = model.table(e)
        states, labels = table.shape
        apart = (np.arange(states) // step % labels)[:, None] != np.arange(labels)
        forbids = bool(np.isposinf(table[apart]).all())
        _require(forbids, "a potential allows states that do not match")

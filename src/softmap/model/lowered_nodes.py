"""The nodes of a network that are not the user's variables, and their labels.

Two kinds of nodes are not the user's. *Chain variables* (`Running`) hold the partial count or sum
of a factor; their labels follow from those of other variables. *Auxiliary nodes* (`Auxiliaries`)
represent factors of three or more variables by their joint states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softmap.errors import ModelError, shown
from softmap.model.potentials import Potential, Projection
from softmap.model.potentials.base import Ints, frozen, integers
from softmap.model.structure import Structure, unique_rows


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

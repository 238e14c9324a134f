"""The check that each auxiliary node of a model represents a factor of three or more variables."""

from __future__ import annotations

import numpy as np

from softmap.errors import ModelError, shown
from softmap.model.potentials import Potential, Projection
from softmap.model.potentials.base import Ints, frozen, integers
from softmap.model.structure import Auxiliaries, Structure

__all__ = ["Auxiliaries", "check_auxiliaries"]


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
        for t, *rest in np.unique(np.concatenate(columns, axis=1), axis=0).tolist():
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

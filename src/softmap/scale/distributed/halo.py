"""Exchanges between parts: messages along cut edges, and values of halo variables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from softmap.scale.distributed.parts import Part, spread
from softmap.scale.distributed.team import Team

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Pairs = dict[tuple[int, int], Ints]  # (sending part, receiving part) -> indices
Write = Callable[[int, Ints, NDArray[Any]], None]


class _Side:
    """One side of an exchange: the array indices of each own part, and their message positions.

    Attributes
    ----------
    sizes : dict from int to int
        Process to the length of the message exchanged with it, in entries.
    parts : list of (int, int array, list)
        Each own part, its array indices, and a list of (process, slice of the message, slice of the
        array indices).
    """

    def __init__(self, team: Team, pairs: Pairs, own: int) -> None:
        self.sizes: dict[int, int] = defaultdict(int)
        places: dict[int, list[Ints]] = defaultdict(list)
        lengths: dict[int, int] = defaultdict(int)
        pieces: dict[int, list[tuple[int, slice, slice]]] = defaultdict(list)
        for pair in sorted(pair for pair, listed in pairs.items() if len(listed)):
            part, process, count = pair[own], int(team.owner[pair[1 - own]]), len(pairs[pair])
            at, within = self.sizes[process], lengths[part]
            pieces[part].append((process, slice(at, at + count), slice(within, within + count)))
            places[part].append(pairs[pair])
            self.sizes[process], lengths[part] = at + count, within + count
        self.parts = [
            (part, np.concatenate(listed), pieces[part]) for part, listed in places.items()
        ]


class Exchange:
    """An exchange: array entries that are read in some parts and written in others.

    All entries for one process are sent in one message, and every part is read and written once.

    Parameters
    ----------
    reads, writes : dict from (int, int) to int array
        (sending part, receiving part) to array indices of own parts. The n-th entry that the sender
        reads is the n-th that the receiver writes.
    dtype : numpy dtype
        Type of the arrays.
    """

    def __init__(
        self, team: Team, reads: Pairs, writes: Pairs, dtype: DTypeLike = np.float64
    ) -> None:
        self._team, self._dtype = team, np.dtype(dtype)
        self._out, self._in = _Side(team, reads, 0), _Side(team, writes, 1)
        elsewhere = (size for process, size in self._out.sizes.items() if process != team.rank)
        self.sent_bytes = self._dtype.itemsize * sum(elsewhere)

    def run(self, arrays: Mapping[int, NDArray[Any]], write: Write | None = None) -> None:
        """Copy entries of the parts' arrays, or call `write(part, places, values)` with them."""
        team = self._team
        leaving, arriving = (
            {process: np.empty(size, self._dtype) for process, size in side.sizes.items()}
            for side in (self._out, self._in)
        )
        requests = [
            team.comm.Irecv(buffer, source=process, tag=7)
            for process, buffer in arriving.items()
            if process != team.rank
        ]
        for part, places, pieces in self._out.parts:
            values = arrays[part][places]
            for process, at, within in pieces:
                leaving[process][at] = values[within]
        for process, buffer in leaving.items():
            if process == team.rank:
                arriving[process] = buffer
            else:
                requests.append(team.comm.Isend(buffer, process, 7))
        for request in requests:
            request.Wait()
        for part, places, pieces in self._in.parts:
            values = np.concatenate([arriving[process][at] for process, at, _ in pieces])
            if write is None:
                arrays[part][places] = values
            else:
                write(part, places, values)


class Boundary:
    """Exchanges that copy values of own variables into the halos of other parts."""

    def __init__(self, team: Team, parts: Iterable[Part]) -> None:
        by_number = {part.number: part for part in parts}
        cuts = [_CutEdges(part).nodes() for part in by_number.values()]
        shared, halo = (_merged(cut[side] for cut in cuts) for side in (0, 1))
        self._nodes = Exchange(team, shared, halo, np.int64)

        def states(pairs: Pairs, side: int) -> Pairs:
            return {pair: _states(by_number[pair[side]], at) for pair, at in pairs.items()}

        self._states = Exchange(team, states(shared, 0), states(halo, 1))

    def nodes(self, arrays: Mapping[int, Ints]) -> None:
        """Fill in the halo entries of integer arrays over nodes."""
        self._nodes.run(arrays)

    def states(self, arrays: Mapping[int, Floats]) -> None:
        """Fill in the halo entries of float arrays over node states."""
        self._states.run(arrays)


def _states(part: Part, nodes: Ints) -> Ints:
    """Indices of the states of some nodes in arrays over all states of a part."""
    labels = part.model.num_labels[nodes]
    return np.repeat(part.model.node_offset[nodes], labels) + spread(labels)


def message_exchanges(
    team: Team, places: Iterable[tuple[Part, Callable[[Ints], Ints]]], phases: int
) -> dict[tuple[bool, int], Exchange]:
    """Return, by (forward, phase), the exchange of messages that nodes send to other parts.

    `places` lists parts, each with a function that maps half-edges to the indices of the messages
    into them.
    """
    cuts = [(_CutEdges(part), at) for part, at in places]
    return {
        (forward, phase): Exchange(
            team,
            _merged(cut.sends(forward, phase, at) for cut, at in cuts),
            _merged(cut.receives(forward, phase, at) for cut, at in cuts),
        )
        for forward in (True, False)
        for phase in range(phases)
    }


class _CutEdges:
    """The edges of one part that lead to other parts, in the order of the whole model."""

    def __init__(self, part: Part) -> None:
        self.part = part
        first_own = part.model.edges[:, 0] < part.own
        edges = np.flatnonzero(first_own != (part.model.edges[:, 1] < part.own))
        self.own_half = 2 * edges + np.where(first_own[edges], 0, 1)
        node, rank = part.model.edges.reshape(-1), part.rank
        self.own, self.far = node[self.own_half], node[self.own_half ^ 1]
        self.early = rank[self.own] < rank[self.far]  # whether the own endpoint is the early one
        self.other = part.home[self.far]

    def sends(self, forward: bool, phase: int, places: Callable[[Ints], Ints]) -> Pairs:
        """Indices of messages from own nodes of a phase to other parts, by (this, other)."""
        mine = (self.early == forward) & (self.part.phase[self.own] == phase)
        return {
            (self.part.number, other): places(self.own_half[chosen] ^ 1)
            for other, chosen in self._by_other(mine)
        }

    def receives(self, forward: bool, phase: int, places: Callable[[Ints], Ints]) -> Pairs:
        """Indices of messages from other parts' nodes of a phase, by (other, this)."""
        theirs = (self.early != forward) & (self.part.phase[self.far] == phase)
        return {
            (other, self.part.number): places(self.own_half[chosen])
            for other, chosen in self._by_other(theirs)
        }

    def nodes(self) -> tuple[Pairs, Pairs]:
        """Own nodes in other halos, by (this, other), and halo nodes here, by (other, this).

        Both are in the order of the model.
        """
        shared, halo, me = {}, {}, self.part.number
        for other, chosen in self._by_other(np.ones(len(self.own), dtype=bool)):
            shared[me, other] = np.unique(self.own[chosen]).astype(np.int64)
            halo[other, me] = np.unique(self.far[chosen]).astype(np.int64)
        return shared, halo

    def _by_other(self, mask: NDArray[np.bool_]) -> list[tuple[int, Ints]]:
        found = np.unique(self.other[mask])
        return [(int(other), np.flatnonzero(mask & (self.other == other))) for other in found]


def _merged(pieces: Iterable[Pairs]) -> Pairs:
    return {pair: places for piece in pieces for pair, places in piece.items()}

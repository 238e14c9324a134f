"""What parts tell each other: messages along cut edges, and values of nodes at the boundary."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.distributed.engines import Engines, PartEngine
from softmap.distributed.team import Team

__all__ = ["Exchange", "Halo"]

Ints = NDArray[np.int64]
Pairs = dict[tuple[int, int], Ints]  # (from part, to part) -> places, the same in both
Ready = Callable[[int, Ints], Any]


class _Side:
    """One side of an exchange: the places of each own part, and where in messages they belong.

    Attributes
    ----------
    sizes : dict from process to the length of the message to it, or from it
    parts : list of (part, its places, [(process, where in the message, where among the places)])
    """

    def __init__(self, team: Team, pairs: Pairs, own: int, ready: Ready) -> None:
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
            (part, ready(part, np.concatenate(listed)), pieces[part])
            for part, listed in places.items()
        ]

    def buffers(self, dtype: Any) -> dict[int, NDArray[Any]]:
        """Room for a message per process."""
        return {process: np.empty(size, dtype) for process, size in self.sizes.items()}


class Exchange:
    """One kind of exchange: places that are read in some parts and written in others.

    `reads` holds the places of own parts by (from, to), `writes` likewise for what arrives; the
    n-th place that one side reads is the n-th that the other writes. Everything for one process
    travels in one message, and every part is read and written in one go. `ready(part, places)`
    puts places where the arrays of a part are.
    """

    def __init__(self, team: Team, reads: Pairs, writes: Pairs, ready: Ready) -> None:
        self._team = team
        self._out, self._in = _Side(team, reads, 0, ready), _Side(team, writes, 1, ready)
        self.sent = sum(size for process, size in self._out.sizes.items() if process != team.rank)

    def run(
        self,
        read: Callable[[int, Any], NDArray[Any]],
        write: Callable[[int, Any, NDArray[Any]], None],
        dtype: Any = np.float64,
    ) -> None:
        """`read(part, places)` here and there, `write(part, places, values)` there and here."""
        team, leaving, arriving = self._team, self._out.buffers(dtype), self._in.buffers(dtype)
        requests = [
            team.comm.Irecv(buffer, source=process, tag=7)
            for process, buffer in arriving.items()
            if process != team.rank
        ]
        for part, places, pieces in self._out.parts:
            values = read(part, places)
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
            found = [arriving[process][at] for process, at, _ in pieces]
            write(part, places, found[0] if len(found) == 1 else np.concatenate(found))


class Halo:
    """All exchanges of the parts of one process."""

    def __init__(self, team: Team, chains: Engines, phases: int) -> None:
        self.chains = chains

        def there(part: int, places: Ints) -> Any:
            return chains[part].ready(places)

        cuts = {number: _CutEdges(each) for number, each in chains.items()}
        self._messages = {
            (forward, phase): Exchange(
                team,
                _merged(cut.sends(forward, phase) for cut in cuts.values()),
                _merged(cut.receives(forward, phase) for cut in cuts.values()),
                there,
            )
            for forward in (True, False)
            for phase in range(phases)
        }
        shared = _merged(cut.shared() for cut in cuts.values())
        halo = _merged(cut.halo() for cut in cuts.values())
        self._nodes = Exchange(team, shared, halo, lambda _, places: places)
        self._states = Exchange(team, self._spread(shared, 0), self._spread(halo, 1), there)
        own = [each.dtype for each in chains.values()]
        self._dtype = own[0] if own else np.dtype(np.float64)

    def _spread(self, pairs: Pairs, side: int) -> Pairs:
        """Places of nodes to places of their states; `side` of the pair is a part of this one."""
        return {pair: self.chains[pair[side]].state_places(nodes) for pair, nodes in pairs.items()}

    @property
    def bytes_per_pass(self) -> int:
        """What this process sends to others in one pass."""
        sent = sum(exchange.sent for exchange in self._messages.values())
        return self._dtype.itemsize * sent

    def messages(self, forward: bool, phase: int, arrays: dict[int, Any]) -> None:
        """Carry on what the nodes of one phase have sent to other parts."""
        self._messages[forward, phase].run(
            lambda part, places: self.chains[part].read(arrays[part], places),
            lambda part, places, values: self.chains[part].take(
                places, values, early=not forward, msg=arrays[part]
            ),
            self._dtype,
        )

    def states(self, arrays: dict[int, Any]) -> None:
        """Fill in the halo's entries of arrays over node states, as a judgement has them."""
        self._states.run(
            lambda part, places: self.chains[part].read(arrays[part], places),
            lambda part, places, values: self.chains[part].write(arrays[part], places, values),
        )

    def nodes(self, arrays: dict[int, NDArray[Any]], dtype: Any = np.int64) -> None:
        """Fill in the halo's entries of arrays over nodes."""

        def write(part: int, places: Ints, values: NDArray[Any]) -> None:
            arrays[part][places] = values

        self._nodes.run(lambda part, places: arrays[part][places], write, dtype)


class _CutEdges:
    """The edges of one part that lead to others, in the order of the whole model."""

    def __init__(self, chains: PartEngine) -> None:
        self.chains, part = chains, chains.part
        self.part = part
        first_own = part.model.edges[:, 0] < part.own
        cut = first_own != (part.model.edges[:, 1] < part.own)
        edges = np.flatnonzero(cut)
        self.own_half = 2 * edges + np.where(first_own[edges], 0, 1)
        node = part.model.edges.reshape(-1)
        self.own, self.far = node[self.own_half], node[self.own_half ^ 1]
        self.early = chains.rank[self.own] < chains.rank[self.far]  # whether the own end is
        self.other = part.home[self.far]

    def sends(self, forward: bool, phase: int) -> Pairs:
        """Places of messages that own nodes of a phase send to others, by (this, other)."""
        mine = (self.early == forward) & (self.part.phase[self.own] == phase)
        return {
            (self.part.number, int(other)): self.chains.places(self.own_half[chosen] ^ 1)
            for other, chosen in self._by_other(mine)
        }

    def receives(self, forward: bool, phase: int) -> Pairs:
        """Places of messages that others' nodes of a phase send here, by (other, this)."""
        theirs = (self.early != forward) & (self.part.phase[self.far] == phase)
        return {
            (int(other), self.part.number): self.chains.places(self.own_half[chosen])
            for other, chosen in self._by_other(theirs)
        }

    def _by_other(self, mask: NDArray[np.bool_]) -> list[tuple[int, Ints]]:
        found = np.unique(self.other[mask])
        return [(int(other), np.flatnonzero(mask & (self.other == other))) for other in found]

    def shared(self) -> Pairs:
        """Own nodes that others have in their halo, by (this, other), in the order of the model."""
        every = np.ones(len(self.own), dtype=bool)
        return {
            (self.part.number, other): np.unique(self.own[chosen]).astype(np.int64)
            for other, chosen in self._by_other(every)
        }

    def halo(self) -> Pairs:
        """Nodes of others in the halo, by (other, this), in the order of the model."""
        every = np.ones(len(self.own), dtype=bool)
        return {
            (other, self.part.number): np.unique(self.far[chosen]).astype(np.int64)
            for other, chosen in self._by_other(every)
        }


def _merged(pieces: Any) -> Pairs:
    found: Pairs = {}
    for piece in pieces:
        found |= piece
    return found

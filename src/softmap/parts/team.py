"""The processes of a run: the owner of each part, sums that do not depend on owners, exchanges.

Parts exchange messages along cut edges, and values of halo variables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from softmap.errors import OptionError, shown
from softmap.parts.cut import ModelPart, states_of

Floats = NDArray[np.float64]


class Alone:
    """A communicator of one process, without MPI."""

    rank = 0
    size = 1

    def bcast(self, value: Any, root: int = 0) -> Any:
        """Return the value itself."""
        return value

    def allgather(self, value: Any) -> list[Any]:
        """Return a list with the value of this process."""
        return [value]

    def Barrier(self) -> None:
        """Do nothing: there is no other process."""

    def Iallgatherv(self, sent: Any, received: Any) -> Alone:
        """Copy the sent array into the received array; return a completed request."""
        received[0][:] = sent
        return self

    def Wait(self) -> None:
        """Do nothing: the request is complete."""


class Team:
    """The processes that share the parts of a model.

    Parameters
    ----------
    comm : communicator of mpi4py or None
        None: only this process takes part.
    parts : int
        Number of parts of the model; every process owns a range of part numbers.
    """

    def __init__(self, comm: Any, parts: int) -> None:
        if comm is None:
            comm = Alone()
        elif not isinstance(comm, Alone) and not hasattr(comm, "Iallgatherv"):
            raise OptionError(f"comm={shown(comm)}: expected a communicator of mpi4py, or None")
        self.comm, self.rank, self.size, self.parts = comm, int(comm.rank), int(comm.size), parts
        starts = [-(-rank * parts // self.size) for rank in range(self.size + 1)]
        self.mine = range(starts[self.rank], starts[self.rank + 1])
        self.owner = np.repeat(np.arange(self.size), np.diff(starts))
        self._counts = np.diff(starts)

    def table(self, rows: list[Any], width: int) -> Floats:
        """Gather one row of numbers per part from all processes, in the order of the parts."""
        return self.begin(rows, width)()

    def begin(self, rows: list[Any], width: int) -> Callable[[], Floats]:
        """As `table`, without blocking: the function returned waits for the rows."""
        own = np.ascontiguousarray(rows, dtype=np.float64).reshape(-1)
        everything = np.empty(self.parts * width)
        request = self.comm.Iallgatherv(own, [everything, (self._counts * width).tolist()])

        def finish() -> Floats:
            request.Wait()
            return everything.reshape(self.parts, width)

        return finish

    def first_problem(self, words: str) -> str:
        """Return the first sentence that a process has about what failed; "" if none failed."""
        return next((told for told in self.comm.allgather(words) if told), "")

    def together(self, value: Any) -> Any:
        """Broadcast the value of process 0 and return it."""
        return self.comm.bcast(value, root=0)


Ints = NDArray[np.int64]
Pairs = dict[tuple[int, int], Ints]  # (sending part, receiving part) -> indices
Write = Callable[[int, Ints, NDArray[Any]], None]
Places = Callable[[Ints], Ints]  # half-edges -> indices of the messages into them


class Exchange:
    """An exchange: array entries that are read in some parts and written in others.

    All entries for one process are sent in one message.

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
        self._out, self._in = _by_process(team, reads, 1), _by_process(team, writes, 0)
        elsewhere = (_size(self._out[process]) for process in self._out if process != team.rank)
        self.sent_bytes = self._dtype.itemsize * sum(elsewhere)

    def __call__(self, arrays: Mapping[int, NDArray[Any]], write: Write | None = None) -> None:
        """Copy entries of the parts' arrays, or call `write(part, places, values)` with them."""
        comm, rank = self._team.comm, self._team.rank
        leaving = {
            process: np.concatenate([arrays[part][places] for part, places in listed])
            for process, listed in self._out.items()
        }
        arriving = {
            process: leaving[rank] if process == rank else np.empty(_size(listed), self._dtype)
            for process, listed in self._in.items()
        }
        requests = [comm.Irecv(a, source=k, tag=7) for k, a in arriving.items() if k != rank]
        requests += [comm.Isend(a, k, 7) for k, a in leaving.items() if k != rank]
        for request in requests:
            request.Wait()
        for process, listed in self._in.items():
            cuts = np.cumsum([len(places) for _, places in listed])[:-1]
            for (part, places), values in zip(
                listed, np.split(arriving[process], cuts), strict=True
            ):
                if write is None:
                    arrays[part][places] = values
                else:
                    write(part, places, values)


Listed = list[tuple[int, Ints]]  # own parts and array indices, in the order of a message


def _size(listed: Listed) -> int:
    return sum(len(places) for _, places in listed)


def _by_process(team: Team, pairs: Pairs, other: int) -> dict[int, Listed]:
    """What is exchanged with each process; both processes list it in the order of the pairs."""
    found: dict[int, Listed] = defaultdict(list)
    for pair in sorted(pair for pair, places in pairs.items() if len(places)):
        found[int(team.owner[pair[other]])].append((pair[1 - other], pairs[pair]))
    return found


class Boundary:
    """Exchanges that copy values of own variables into the halos of other parts.

    Attributes
    ----------
    nodes : Exchange
        Fills in the halo entries of integer arrays over nodes.
    states : Exchange
        Fills in the halo entries of float arrays over node states.
    """

    def __init__(self, team: Team, parts: Iterable[ModelPart]) -> None:
        by_number = {part.number: part for part in parts}
        cuts = [_CutEdges(part).nodes() for part in by_number.values()]
        shared, halo = (_merged(cut[side] for cut in cuts) for side in (0, 1))
        self.nodes = Exchange(team, shared, halo, np.int64)
        reads, writes = (
            {pair: states_of(by_number[pair[side]].model, at) for pair, at in pairs.items()}
            for side, pairs in enumerate((shared, halo))
        )
        self.states = Exchange(team, reads, writes)


def message_exchanges(
    team: Team, places: Iterable[tuple[ModelPart, Places]], phases: int
) -> dict[tuple[bool, int], Exchange]:
    """Return, by (forward, phase), the exchange of messages that nodes send to other parts."""
    cuts = [(_CutEdges(part), at) for part, at in places]

    def exchange(forward: bool, phase: int) -> Exchange:
        both = [cut.messages(forward, phase, at) for cut, at in cuts]
        return Exchange(team, _merged(p for p, _ in both), _merged(p for _, p in both))

    return {
        (forward, phase): exchange(forward, phase)
        for forward in (True, False)
        for phase in range(phases)
    }


class _CutEdges:
    """The edges of one part that lead to other parts, in the order of the whole model."""

    def __init__(self, part: ModelPart) -> None:
        self.part = part
        first_own = part.model.edges[:, 0] < part.own
        edges = np.flatnonzero(first_own != (part.model.edges[:, 1] < part.own))
        self.own_half = 2 * edges + np.where(first_own[edges], 0, 1)
        node, rank = part.model.edges.reshape(-1), part.rank
        self.own, self.far = node[self.own_half], node[self.own_half ^ 1]
        self.early = rank[self.own] < rank[self.far]  # whether the own endpoint is the early one
        self.other = part.home[self.far]

    def messages(self, forward: bool, phase: int, places: Places) -> tuple[Pairs, Pairs]:
        """Indices of messages of a phase, sent by (this, other) and received by (other, this)."""
        me, half = self.part.number, self.own_half
        mine = (self.early == forward) & (self.part.phase[self.own] == phase)
        theirs = (self.early != forward) & (self.part.phase[self.far] == phase)
        sent = {(me, k): places(half[chosen] ^ 1) for k, chosen in self._by_other(mine)}
        return sent, {(k, me): places(half[chosen]) for k, chosen in self._by_other(theirs)}

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

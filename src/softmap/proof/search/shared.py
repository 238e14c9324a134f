"""One exact search on several processes, each of which has a part of the open nodes.

Every process sets up the same search, from the same model, λ and labels. As soon as all of them
are in the same search, process 0 keeps its open nodes and the others drop theirs, since those are
nodes of the same tree. From then on the processes search in short slices. Between slices they tell
each other the best labelling and the lowest bound of their open nodes, and processes with many
nodes give some to processes with few.

In every process, nodes elsewhere count with a lower bound that other processes have told. So the
bound of each process is at any time a bound on all labellings, and a process that says its search
is complete has proved it for all. Nodes are exchanged only between searches whose reduced models
are equal (`shared` of the compiled search returns a fingerprint). Where they differ, because a
limit stopped presolve in one process or because dynamic programming may replace the search, every
process searches alone; the first one that is done ends the search of all.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from softmap import core
from softmap.errors import SoftmapError
from softmap.proof.search.exact import ExactResult, ExactSearch


class Communicator(Protocol):
    """What a search needs of a communicator; those of mpi4py have it."""

    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    def allgather(self, value: Any, /) -> list[Any]: ...
    def alltoall(self, values: list[Any], /) -> list[Any]: ...
    def bcast(self, value: Any, root: int = 0) -> Any: ...


@dataclass(frozen=True)
class Sharing:
    """How a search is shared.

    Attributes
    ----------
    first : int
        Backtracks of the first slice, in which all processes do the same. As long as they are not
        in one search, the limit doubles from slice to slice.
    backtracks : int
        Backtracks of slices of a shared search; -1 for no limit. Only tests change it.
    shortest, longest : float
        Least and largest length of a slice, in seconds; it is the least while a process is idle.
    part : float
        Length of a slice between these, as a fraction of the time so far.
    uneven : int
        Nodes move from one process to another that has fewer by this factor.
    most : int
        Largest number of nodes that a process gives away at once.
    """

    first: int = 200
    backtracks: int = -1
    shortest: float = 0.02
    longest: float = 0.5
    part: float = 0.05
    uneven: int = 2
    most: int = 2000


class Standing(NamedTuple):
    """What `core.ExactSearch.shared` says about a search that processes may share."""

    fingerprint: int
    nodes: int
    lower: int
    cost: int


class News(NamedTuple):
    """What a process tells all others between two slices."""

    seconds: float
    problem: str
    stopped: bool
    complete: bool
    energy: float
    bound: float
    standing: Standing | None


class Move(NamedTuple):
    """Open nodes that one process gives to another."""

    giver: int
    taker: int
    nodes: int


def moves(nodes: list[int], sharing: Sharing) -> list[Move]:
    """Which processes give nodes to which: the richest to the poorest, the second to the second.

    Parameters
    ----------
    nodes : list of int
        Number of open nodes of each process.
    sharing : Sharing
        When nodes move, and how many.
    """
    order = sorted(range(len(nodes)), key=lambda process: nodes[process])
    found = []
    for taker, giver in zip(order[: len(order) // 2], reversed(order), strict=False):
        if nodes[giver] > max(1, sharing.uneven * nodes[taker]):
            some = min((nodes[giver] - nodes[taker]) // 2, sharing.most)
            found.append(Move(giver, taker, some))
    return found


class SharedSearch:
    """A search that all processes of a communicator continue together.

    Parameters
    ----------
    comm : communicator of mpi4py
        The processes.
    search : ExactSearch
        The search of this process: the same model, λ, labels and options in all processes.
    enough : function, optional
        Called with the lowest energy and the best bound; the search ends if it returns True.
    stop : core.Deadline, optional
        A flag that stops the search of all processes, in any of them.
    sharing : Sharing
        Tuning.
    """

    def __init__(
        self,
        comm: Communicator,
        search: ExactSearch,
        *,
        enough: Callable[[float, float], bool] | None = None,
        stop: core.Deadline | None = None,
        sharing: Sharing = Sharing(),
    ) -> None:
        self._comm, self._search, self._sharing = comm, search, sharing
        self._enough, self._stop = enough, stop
        self._found: ExactResult | None = None
        self._error: BaseException | None = None
        self._fingerprint: int | None = None  # of the search whose nodes are shared

    def run(self, time_limit: float = math.inf) -> ExactResult:
        """Search up to a time limit; collective call of all processes.

        Returns the best labelling and the best bound of all processes, in each of them. If the
        search of a process raises an exception, so does the call in all processes.
        """
        began, tuning, alone = time.perf_counter(), self._sharing, self._sharing.first
        self._slice(time_limit, time_limit, alone)
        while True:
            news = self._news(time.perf_counter() - began)
            spent = news[0].seconds  # by one clock
            left = time_limit - spent
            if left <= 0 or self._over(news):
                return self._together()
            least = self._share([each.standing for each in news])
            if least is None:
                alone *= 2  # what a slice of a search alone does not complete may start again
                self._slice(min(max(tuning.longest, spent), left), left, alone)
            else:
                seconds = min(tuning.longest, tuning.part * spent) if least > 0 else 0.0
                self._slice(min(max(tuning.shortest, seconds), left), left, tuning.backtracks)

    @contextmanager
    def _guarded(self) -> Any:
        """Keep an exception for the next exchange, so that no process waits for this one."""
        try:
            yield
        except BaseException as error:  # also KeyboardInterrupt
            self._error = self._error or error

    def _slice(self, seconds: float, left: float, backtracks: int) -> None:
        if self._error is not None:
            return
        with self._guarded():
            stop = core.Deadline() if self._stop is None else self._stop
            self._found = self._search.run(
                deadline=stop.within(seconds), end=stop.within(left), backtrack_limit=backtracks
            )

    def _news(self, seconds: float) -> list[News]:
        found, error = self._found, self._error
        told: Any = self._search.native.shared() if found and not error else None
        news: list[News] = self._comm.allgather(
            News(
                seconds,
                "" if error is None else str(error) or type(error).__name__,
                self._stop is not None and self._stop.stopped,
                found is not None and found.complete,
                math.inf if found is None else found.energy,
                -math.inf if found is None else found.lower_bound,
                None if told is None else Standing(*told),
            )
        )
        if error is not None:
            raise error
        for process, each in enumerate(news):
            if each.problem:
                raise SoftmapError(f"the search of process {process} failed: {each.problem}")
        return news

    def _over(self, news: list[News]) -> bool:
        energy, bound = min(each.energy for each in news), max(each.bound for each in news)
        enough = self._enough is not None and self._enough(energy, bound)
        return enough or any(each.complete or each.stopped for each in news)

    def _share(self, told: list[Standing | None]) -> int | None:
        """Exchange labels and nodes if all processes are in one search.

        Returns the least number of nodes of a process, or None if they are not in one search.
        """
        every = [each for each in told if each is not None]
        if len(every) < len(told) or len({each.fingerprint for each in every}) > 1:
            return None
        nodes, first = [each.nodes for each in every], every[0].fingerprint != self._fingerprint
        self._fingerprint = every[0].fingerprint
        if first:
            nodes[1:] = [0] * (len(nodes) - 1)
        planned = moves(nodes, self._sharing)  # the same in all processes
        best = min(range(len(every)), key=lambda process: every[process].cost)
        news = any(each.cost > every[best].cost for each in every)
        parcels: list[Any] = [None] * len(every)
        with self._guarded():
            parcels = self._packed(every, planned, best if news else -1, first)
        if planned or news:
            arrived = self._comm.alltoall(parcels)
            with self._guarded():
                self._unpack(arrived, every[best].cost)
        for giver, taker, some in planned:
            nodes[giver], nodes[taker] = nodes[giver] - some, nodes[taker] + some
        return min(nodes)

    def _packed(
        self, every: list[Standing], planned: Iterable[Move], best: int, first: bool
    ) -> list[Any]:
        """Say what others search, and take out what this process gives away."""
        native, me = self._search.native, self._comm.rank
        others = [each.lower for process, each in enumerate(every) if process != me]
        # valid until the next exchange: a bound of nodes is one of all nodes below them
        if others:
            native.set_elsewhere(min(others))
        if first and me > 0:
            native.give(1 << 60, 1)  # nodes of the tree of process 0, which keeps its own
        labels = np.array(native.best(), np.int64) if best == me else None
        parcels: list[Any] = [(labels, b"")] * len(every)
        for giver, taker, some in planned:
            if giver == me:  # each second one, so that both have nodes of low bounds
                parcels[taker] = labels, native.give(some, 2)
        return parcels

    def _unpack(self, arrived: Iterable[Any], cost: int) -> None:
        native = self._search.native
        for parcel in arrived:
            if parcel is None:
                continue  # the process that sent it has failed, and says so next
            labels, nodes = parcel
            if labels is not None:
                native.take(labels, cost)
            native.receive(nodes)

    def _together(self) -> ExactResult:
        """The best of what all processes have found: each bound is one of the whole model."""
        found = self._found
        assert found is not None
        told = self._comm.allgather(replace(found, labels=None))
        best = min(range(len(told)), key=lambda process: told[process].energy)
        labels = self._comm.bcast(found.labels, root=best)
        energy = told[best].energy
        return replace(
            found,
            labels=labels,
            energy=energy,
            lower_bound=min(max(each.lower_bound for each in told), energy),
            complete=any(each.complete for each in told),
            infeasible=any(each.infeasible for each in told),
            nodes=sum(each.nodes for each in told),
            backtracks=sum(each.backtracks for each in told),
            counts=found.counts | {"nodes": [each.nodes for each in told]},
        )

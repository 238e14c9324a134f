"""Processes as threads: a communicator within one process, for tests of what processes exchange."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


class Ranks:
    """The collective calls of mpi4py's communicators that a shared search makes."""

    def __init__(self, rank: int, size: int, board: list[Any], gate: threading.Barrier) -> None:
        self.rank, self.size, self._board, self._gate = rank, size, board, gate

    def allgather(self, value: Any) -> list[Any]:
        self._board[self.rank] = value
        self._gate.wait(60)
        told = list(self._board)
        self._gate.wait(60)  # nobody writes before all have read
        return told

    def alltoall(self, values: list[Any]) -> list[Any]:
        assert len(values) == self.size
        return [row[self.rank] for row in self.allgather(values)]

    def bcast(self, value: Any, root: int = 0) -> Any:
        return self.allgather(value)[root]


def together(size: int, work: Callable[[Ranks], Any]) -> list[Any]:
    """Call `work` once for each of `size` processes at the same time; what it returns or raises."""
    board, gate = [None] * size, threading.Barrier(size)

    def one(rank: int) -> Any:
        try:
            return work(Ranks(rank, size, board, gate))
        except BaseException as error:
            return error

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(one, range(size)))

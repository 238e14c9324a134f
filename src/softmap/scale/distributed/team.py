"""The processes of a run: who owns which part, and sums that do not depend on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import MissingExtra, OptionError, shown

__all__ = ["Alone", "Team", "world"]

Floats = NDArray[np.float64]


class Alone:
    """Stands for a communicator where there is one process and no MPI."""

    rank = 0
    size = 1

    def bcast(self, value: Any, root: int = 0) -> Any:
        """What everybody has."""
        return value

    def allgather(self, value: Any) -> list[Any]:
        """What everybody has, from everybody."""
        return [value]

    def Barrier(self) -> None:
        """Nobody to wait for."""

    def Iallgatherv(self, sent: Any, received: Any) -> Alone:
        """What everybody has, from everybody, at once."""
        received[0][:] = sent
        return self

    def Wait(self) -> None:
        """Nothing is under way."""


def world() -> Any:
    """All processes that mpiexec has started; this one alone where nobody has."""
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise MissingExtra("softmap.scale.distributed", "mpi") from error
    return MPI.COMM_WORLD


class Team:
    """The processes that share the parts of a model.

    Parameters
    ----------
    comm : communicator of mpi4py, or None for this process alone
    parts : int
        Parts of the model; every process owns a range of numbers.
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

    def on_this_machine(self) -> int:
        """Processes that share this one's machine, itself included."""
        if isinstance(self.comm, Alone):
            return 1
        from mpi4py import MPI

        near = self.comm.Split_type(MPI.COMM_TYPE_SHARED)
        try:
            return int(near.size)
        finally:
            near.Free()

    def table(self, rows: list[Any], width: int) -> Floats:
        """A row of numbers per own part in; the rows of all parts, in their order, out."""
        return self.begin(rows, width)()

    def begin(self, rows: list[Any], width: int) -> Callable[[], Floats]:
        """The same, begun now: the function that is returned waits for the others."""
        own = np.ascontiguousarray(rows, dtype=np.float64).reshape(-1)
        everything = np.empty(self.parts * width)
        request = self.comm.Iallgatherv(own, [everything, (self._counts * width).tolist()])

        def finish() -> Floats:
            request.Wait()
            return everything.reshape(self.parts, width)

        return finish

    def together(self, value: Any) -> Any:
        """What the first process says."""
        return self.comm.bcast(value, root=0)

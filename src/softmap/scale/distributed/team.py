"""The processes of a run: the owner of each part, and sums that do not depend on owners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import MissingExtra, OptionError, shown

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


def world() -> Any:
    """The communicator of all processes started by mpiexec, or of this process alone."""
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise MissingExtra("softmap.scale.distributed", "mpi") from error
    return MPI.COMM_WORLD


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

    def on_this_machine(self) -> int:
        """Number of processes on this machine, this one included."""
        if isinstance(self.comm, Alone):
            return 1
        from mpi4py import MPI

        near = self.comm.Split_type(MPI.COMM_TYPE_SHARED)
        try:
            return int(near.size)
        finally:
            near.Free()

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

    def together(self, value: Any) -> Any:
        """Broadcast the value of process 0 and return it."""
        return self.comm.bcast(value, root=0)

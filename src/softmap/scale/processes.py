"""The processes of a run: communicators of mpi4py, and one that needs no MPI."""

from __future__ import annotations

from typing import Any

from softmap.errors import needs_extra


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
    with needs_extra("softmap.scale.distributed", "mpi"):
        from mpi4py import MPI
    return MPI.COMM_WORLD


def on_this_machine(comm: Any) -> int:
    """Number of processes of a communicator on this machine, this one included."""
    if isinstance(comm, Alone):
        return 1
    from mpi4py import MPI

    near = comm.Split_type(MPI.COMM_TYPE_SHARED)
    try:
        return int(near.size)
    finally:
        near.Free()

"""The processes of a run: communicators of mpi4py."""

from __future__ import annotations

from typing import Any

from softmap.errors import needs_extra
from softmap.extend.parts import Alone


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

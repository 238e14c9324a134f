"""Solve one model on many processes with MPI (extra `mpi`).

The variables are partitioned into *parts*, and every process owns some parts. The order of a pass
depends on the parts but not on the number of processes. A run on eight processes therefore returns
the same result as a run on one.
"""

from softmap.scale.distributed.solve import DistributedResult, resume, solve
from softmap.scale.distributed.storage import write_grid, write_parts

__all__ = ["DistributedResult", "resume", "solve", "write_grid", "write_parts"]

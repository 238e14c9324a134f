"""One model over many processes, by way of MPI (extra `mpi`).

The variables are cut into *parts*; every process owns some of them. A pass over the parts is a pass
over the whole model in an order of its own (`order`), whatever the number of processes, so that a
run on eight processes gives what a run on one gives.
"""

from softmap.scale.distributed.solve import DistributedResult, resume, solve
from softmap.scale.distributed.storage import write_grid, write_parts

__all__ = ["DistributedResult", "resume", "solve", "write_grid", "write_parts"]

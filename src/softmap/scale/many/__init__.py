"""Many models on many machines, with Dask (extra `dask`)."""

from softmap.scale.many.solve import solve_many

__all__ = ["solve_many"]

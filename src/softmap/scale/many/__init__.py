"""Many models on many machines, by way of Dask (extra `dask`)."""

from softmap.scale.many.solve import solve_many

__all__ = ["solve_many"]

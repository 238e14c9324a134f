"""Where a method runs: on the processor, or on a device."""

from __future__ import annotations

from typing import Any

from softmap.algorithms.base import Algorithm
from softmap.algorithms.registry import make

__all__ = ["method_on"]


def method_on(backend: str, method: str, **options: Any) -> Algorithm:
    """A method by name, configured by the options of `make`, on the backend asked for."""
    if backend == "cpu":
        return make(method, **options)
    from softmap.cuda.anneal import CudaAnneal  # loads no CuPy unless there is a run to begin

    return CudaAnneal.configured(options["eta"], options["threads"], options["dtype"])

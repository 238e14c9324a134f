"""The CUDA backend: the annealed chain solver on a GPU, for `softmap.solve(model, backend="cuda")`.

Kernels are CUDA C++ (``src/core/cuda``), compiled when they are first needed by the compiler that
CuPy brings along, for the shape of the model at hand. The same text is compiled for the host
(`softmap.core._device`), where all of this can be tried without a device.
"""

from __future__ import annotations

from softmap.methods.cuda.cupy_device import cupy_or_none, describe, find_device
from softmap.methods.cuda.devices import Device, HostDevice
from softmap.methods.cuda.engine import Engine

__all__ = ["Device", "Engine", "HostDevice", "cupy_or_none", "describe", "find_device"]

"""The CUDA backend: the annealed chain solver on a GPU, for `softmap.solve(model, backend="cuda")`.

Kernels are CUDA C++ (``src/core/cuda``). CuPy's compiler compiles them for the shape of a model
when they are first needed. The same source is compiled for the host (`softmap.core._device`), so
that tests can run the backend without a GPU.
"""

from __future__ import annotations

from softmap.methods.cuda.cupy_device import cupy_or_none, describe, find_device
from softmap.methods.cuda.devices import Device, HostDevice
from softmap.methods.cuda.engine import DeviceEngine

__all__ = ["Device", "DeviceEngine", "HostDevice", "cupy_or_none", "describe", "find_device"]

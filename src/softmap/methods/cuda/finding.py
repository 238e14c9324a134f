"""Is there a device, and if not, what is missing."""

from __future__ import annotations

import os
from typing import Any

from softmap.errors import MissingExtra, OptionError
from softmap.methods.cuda.devices import Device, HostDevice

__all__ = ["cupy_or_none", "describe", "find_device"]

EXTRA = "cuda13"  # or cuda12, by the driver
SWITCH = "SOFTMAP_CUDA"  # "host" runs the kernels without a device


def find_device() -> Device:
    """The device that kernels run on; an error says what is missing."""
    if os.environ.get(SWITCH) == "host":
        return HostDevice()
    try:
        import cupy
    except ImportError as error:
        raise MissingExtra("backend='cuda'", EXTRA) from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # CuPy's own, of several types; also a driver that is too old
        raise OptionError(f"backend='cuda': no CUDA device can be used ({error})") from error
    if not count:
        raise OptionError("backend='cuda': this machine has no CUDA device")
    from softmap.methods.cuda.cupy_device import CupyDevice

    return CupyDevice(cupy)


def cupy_or_none() -> Any:
    """CuPy, if it is installed."""
    try:
        import cupy
    except ImportError:
        return None
    return cupy


def describe() -> str:
    """What was found, in words."""
    try:
        import cupy
    except ImportError:
        return f"none (CuPy is not installed: pip install '.[{EXTRA}]' in a clone)"
    try:
        return ", ".join(_described(cupy, k) for k in range(cupy.cuda.runtime.getDeviceCount()))
    except Exception as error:
        return f"none (CuPy {cupy.__version__}: {error})"


def _described(cupy: Any, number: int) -> str:
    found = cupy.cuda.runtime.getDeviceProperties(number)
    driver = cupy.cuda.runtime.driverGetVersion()
    return (
        f"{found['name'].decode()}, {found['totalGlobalMem'] / 2**30:.0f} GiB, compute capability "
        f"{found['major']}.{found['minor']} (CuPy {cupy.__version__}, driver for CUDA "
        f"{driver // 1000}.{driver % 1000 // 10})"
    )

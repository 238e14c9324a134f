"""Which device a process takes where several run on one machine."""

from __future__ import annotations

from softmap.cuda.devices import Device
from softmap.cuda.finding import cupy_or_none, find_device

__all__ = ["device_number"]


def device_number(number: int) -> Device:
    """The device for the process of this number on its machine: one each, as far as they go."""
    cupy = cupy_or_none()
    if cupy is not None:
        try:
            count = cupy.cuda.runtime.getDeviceCount()
        except Exception:  # no driver, or one that is too old: `find_device` says so
            count = 0
        if count:
            cupy.cuda.Device(number % count).use()
    return find_device()

"""What the machine offers this process."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["available_memory", "usable_cores"]

MEMINFO = Path("/proc/meminfo")
GROUP = Path("/sys/fs/cgroup")  # where a container says what it may use


def usable_cores() -> int:
    """Cores that this process may use, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available_memory() -> int | None:
    """Bytes that this process may still allocate without swapping; None where nothing says so."""
    found = [_available(), _left_in_group()]
    return min((bytes_ for bytes_ in found if bytes_ is not None), default=None)


def _available() -> int | None:
    try:
        lines = MEMINFO.read_text().splitlines()
    except OSError:
        return None
    sizes = (line.split()[1] for line in lines if line.startswith("MemAvailable:"))
    return next((1024 * int(size) for size in sizes), None)


def _left_in_group() -> int | None:
    try:
        most, used = ((GROUP / f"memory.{name}").read_text().strip() for name in ("max", "current"))
        return max(0, int(most) - int(used))
    except (OSError, ValueError):  # no such group, or "max": no limit
        return None

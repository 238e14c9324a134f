"""What a file may make us allocate: decided from its size and the memory, before allocating."""

from __future__ import annotations

import os

from softmap.errors import FormatError

__all__ = ["MOST_AXES", "available_memory", "check_arity", "check_entries", "human"]

MOST_AXES = 64  # of a NumPy array

# A file may describe more than it spells out (default costs, shared functions, constraints). Up to
# this many bytes always; above, at most EXPANSION bytes for each byte of the file.
FREE_BYTES = 64 << 20
EXPANSION = 4096


def available_memory() -> int:
    """Bytes of memory that can still be had; a cautious guess where the system does not say."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") + _reclaimable()
    except (AttributeError, OSError, ValueError):
        return 4 << 30


def _reclaimable() -> int:
    """Page cache the kernel would give back (Linux), else 0."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("Cached:"):
                    return int(line.split()[1]) << 9  # half of it, in bytes
    except (OSError, ValueError, IndexError):
        pass
    return 0


def human(size: float) -> str:
    """A number of bytes in words."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} PB"


def check_arity(arity: int, name: object = None, line: int | None = None) -> None:
    """Refuse a factor whose table would have more axes than an array can have."""
    if arity > MOST_AXES:
        raise FormatError(
            f"expected factors of at most {MOST_AXES} variables, found one of {arity}",
            name,
            line,
            expected=f"at most {MOST_AXES} variables",
        )


def check_entries(
    entries: int, file_size: int, name: object = None, line: int | None = None
) -> None:
    """Refuse a file that asks for `entries` costs of eight bytes each, if that is absurd."""
    need = 8 * int(entries)
    if need <= FREE_BYTES // 16:
        return
    allowed = min(max(FREE_BYTES, EXPANSION * file_size), available_memory() // 3)
    if need > allowed:
        raise FormatError(
            f"the file ({human(file_size)}) declares {int(entries):.6g} costs, {human(need)}; "
            f"expected at most {human(allowed)}",
            name,
            line,
            expected=f"at most {human(allowed)} of costs",
        )

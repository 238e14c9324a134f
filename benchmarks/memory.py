"""Peak memory of this process."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_megabytes() -> float:
    """Most memory held since `reset_peak`, or since the start where that is not possible.

    `ru_maxrss` also remembers the process that started this one, so Linux's own page comes first.
    """
    if STATUS.is_file():
        for line in STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def reset_peak() -> None:
    """Forget the peak so far, where the system can (Linux)."""
    try:
        RESET.write_text("5")
    except OSError:
        return

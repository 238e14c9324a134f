"""When, where and with which versions a run was made: stored with its figures."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

import softmap
from softmap.machine import usable_cores


def facts() -> dict[str, str | int]:
    """The date, the machine and the versions, for a file of stored runs."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "softmap": softmap.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": f"{_processor()}, {platform.machine()}",
        "cores": usable_cores(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
    }


def sentence(known: dict[str, str | int]) -> str:
    """The facts as one sentence for a page."""
    parts = [f"Measured on {known['date']} with softmap {known['softmap']}"]
    parts += [f"Python {known['python']}"] if "python" in known else []
    parts += [f"numpy {known['numpy']}"] if "numpy" in known else []
    return f"{', '.join(parts)}; {known['machine']}, {known['cores']} cores."


def _processor() -> str:
    """The name of the processor, where Linux tells it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.system()

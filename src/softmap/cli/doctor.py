"""softmap doctor: the environment, for bug reports and for oneself."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from softmap import __version__
from softmap.cli.console import facts_table, results
from softmap.machine import usable_cores

__all__ = ["doctor_command"]

CORE = ("numpy", "scipy", "numba", "highspy", "typer", "rich")
OPTIONAL = {
    "matplotlib": "softmap[plot]",
    "pillow": "softmap[plot]",
    "plotly": "softmap[report]",
    "h5py": "softmap[opengm]",
    "networkx": "softmap[interop]",
    "pandas": "softmap[interop]",
    "pgmpy": "softmap[interop]",
    "jax": "jax",
}


def doctor_command() -> None:
    """Print versions, threads, devices, kernel cache."""
    facts = {
        "softmap": __version__,
        "python": f"{platform.python_version()} ({platform.system()}, {platform.machine()})",
        **{name: _installed(name, "softmap") for name in CORE},
        **{name: _installed(name, source) for name, source in OPTIONAL.items()},
        "threads": _threads(),
        "devices": _devices(),
        "kernel cache": _cache(),
    }
    results().print(facts_table(facts))


def _installed(package: str, source: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return f"not installed (pip install '{source}')"


def _threads() -> str:
    wanted = os.environ.get("NUMBA_NUM_THREADS")
    return f"{usable_cores()} usable" + (f", NUMBA_NUM_THREADS={wanted}" if wanted else "")


def _devices() -> str:
    if find_spec("jax") is None:
        return "processor only (no jax)"
    import jax

    return ", ".join(str(device) for device in jax.devices())


def _cache() -> str:
    """numba writes beside the kernels unless NUMBA_CACHE_DIR says otherwise."""
    import softmap

    named = os.environ.get("NUMBA_CACHE_DIR")
    folder = Path(named) if named else Path(softmap.__file__).parent / "kernels" / "__pycache__"
    compiled = list(folder.rglob("*.nbc")) if folder.is_dir() else []
    size = sum(file.stat().st_size for file in compiled) / 2**20
    if not compiled:
        return f"empty: the first solve compiles for some seconds ({folder})"
    return f"{len(compiled)} compiled functions, {size:.1f} MiB ({folder})"

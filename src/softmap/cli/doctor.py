"""softmap doctor: the environment, for bug reports and for oneself."""

from __future__ import annotations

import platform
from importlib.util import find_spec

from softmap import __version__
from softmap.cli.console import facts_table, results
from softmap.machine import usable_cores

__all__ = ["doctor_command"]

CORE = ("numpy", "scipy", "highspy", "typer", "rich")
OPTIONAL = {
    "matplotlib": "softmap[plot]",
    "pillow": "softmap[plot]",
    "plotly": "softmap[report]",
    "h5py": "softmap[opengm]",
    "networkx": "softmap[interop]",
    "pandas": "softmap[interop]",
    "pgmpy": "softmap[interop]",
    "dimod": "softmap[dimod]",
    "distributed": "softmap[dask]",
    "mpi4py": "softmap[mpi]",
    "pymetis": "softmap[metis]",
    "jax": "jax",
}


def doctor_command() -> None:
    """Print versions, threads, devices and the instruction set of the compiled loops."""
    facts = {
        "softmap": __version__,
        "python": f"{platform.python_version()} ({platform.system()}, {platform.machine()})",
        **{name: _installed(name, "softmap") for name in CORE},
        **{name: _installed(name, source) for name, source in OPTIONAL.items()},
        "threads": _threads(),
        "devices": _devices(),
        "cuda": _cuda(),
        "compiled for": _compiled(),
    }
    results().print(facts_table(facts))


def _installed(package: str, source: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return f"not installed (pip install '{source}')"


def _threads() -> str:
    return f"{usable_cores()} usable"


def _devices() -> str:
    if find_spec("jax") is None:
        return "processor only (no jax)"
    import jax

    return ", ".join(str(device) for device in jax.devices())


def _cuda() -> str:
    """What `backend="cuda"` would find."""
    from softmap.cuda import describe

    return describe()


def _compiled() -> str:
    """The instruction set that is loaded, and those that could be."""
    from softmap import core

    return f"{core.level()} (this machine offers {', '.join(core.available())})"

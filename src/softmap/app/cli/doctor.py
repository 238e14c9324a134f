"""softmap doctor: a description of the environment, for bug reports."""

from __future__ import annotations

import json
import platform
from importlib.util import find_spec
from typing import Any

from softmap import __version__
from softmap.app.cli.options import JsonOption
from softmap.machine import usable_cores
from softmap.views.console import facts_table, results

CORE = ("numpy", "scipy", "highspy", "typer", "rich", "pillow")
OPTIONAL = {
    "matplotlib": ".[plot]",
    "h5py": ".[opengm]",
    "networkx": ".[interop]",
    "pandas": ".[interop]",
    "pgmpy": ".[interop]",
    "dimod": ".[dimod]",
    "distributed": ".[dask]",
    "mpi4py": ".[mpi]",
    "pymetis": ".[metis]",
    "torch": ".[torch]",
    "jax": ".[jax]",
    "scikit-learn": "scikit-learn",
}


def doctor_command(as_json: JsonOption = False) -> None:
    """Print versions, threads, devices and the instruction set."""
    from softmap import core
    from softmap.methods.cuda import describe

    if as_json:
        print(json.dumps(_object()))
        return
    facts = {
        "softmap": __version__,
        "python": f"{platform.python_version()} ({platform.system()}, {platform.machine()})",
        **{name: _installed(name, name) for name in CORE},
        **{name: _installed(name, source) for name, source in OPTIONAL.items()},
        "threads": f"{usable_cores()} usable",
        "devices": _devices(),
        "cuda": describe(),
        "compiled for": f"{core.level()} (this machine offers {', '.join(core.available())})",
    }
    results().print(facts_table(facts))


def _object() -> dict[str, Any]:
    """The fields of `--json`; packages that are not installed are null."""
    from softmap import core

    return {
        "softmap": __version__,
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "packages": {name: _version(name) for name in (*CORE, *OPTIONAL)},
        "threads": usable_cores(),
        "compiled_for": core.level(),
        "available": list(core.available()),
    }


def _version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _installed(package: str, source: str) -> str:
    return _version(package) or f"not installed (pip install '{source}')"


def _devices() -> str:
    if find_spec("jax") is None:
        return "processor only (no jax)"
    import jax

    return ", ".join(str(device) for device in jax.devices())

"""The compiled loops, for the instruction set of this machine.

The inner loops (``src/core``) are compiled once per instruction set: ``v2``, ``v3`` and ``v4`` on
x86-64, ``plain`` elsewhere. A build from source has the best level that the machine runs, a wheel
has all of them. Importing this package loads the best available level that the processor runs. The
environment variable ``SOFTMAP_CPU`` selects another level.

>>> from softmap import core
>>> core.level() in core.available()
True
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING

from softmap.errors import OptionError

if TYPE_CHECKING:
    from softmap.core._native import *  # noqa: F403

_X86_64 = ("v2", "v3", "v4")


def _module(name: str) -> ModuleType:
    return import_module(f"{__name__}.{name}")


def _load_native() -> ModuleType:
    if not find_spec(f"{__name__}._native"):
        raise ImportError(
            "the compiled core of softmap is missing: install softmap with pip, "
            "or in a clone with `make demo`"
        )
    return _module("_native")


def available() -> tuple[str, ...]:
    """Return the instruction sets that are built and that this machine runs, best last."""
    machine = native.cpu_level()
    if machine == "plain":
        return ("plain",)
    if machine not in _X86_64:
        raise ImportError("softmap needs a processor with SSE4.2 (x86-64-v2)")
    levels = _X86_64[: _X86_64.index(machine) + 1]
    built = tuple(level for level in levels if find_spec(f"{__name__}._kernels_{level}"))
    if not built:
        raise ImportError(
            f"softmap was built for a newer processor than this one (x86-64-{machine}): reinstall "
            "it here, or build it with --config-settings=cmake.define.SOFTMAP_LEVELS=all"
        )
    return built


def _chosen() -> str:
    levels = available()
    wanted = os.environ.get("SOFTMAP_CPU") or levels[-1]
    if wanted not in levels:
        raise OptionError(f"SOFTMAP_CPU={wanted}: this machine offers {', '.join(levels)}")
    return wanted


native = _load_native()
native.use(_module(f"_kernels_{_chosen()}").table)
globals().update({name: getattr(native, name) for name in dir(native) if not name.startswith("_")})

"""MAP inference in discrete Markov random fields, with a proof of how good the answer is.

Everything here is loaded on first use: ``import softmap`` is cheap.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from softmap import generators, lp
    from softmap.algorithms.registry import METHODS
    from softmap.certificate import certificate
    from softmap.consistency import arc_consistency
    from softmap.errors import (
        CheckpointError,
        FormatError,
        InfeasibleModel,
        MissingExtra,
        ModelError,
        OptionError,
        SoftmapError,
    )
    from softmap.io import read, write
    from softmap.model import Model
    from softmap.objective import SmoothedDual
    from softmap.potentials import (
        Potts,
        Projection,
        SharedTables,
        Tables,
        TruncatedLinear,
        TruncatedQuadratic,
    )
    from softmap.result import Result, Snapshot, Status, Trace
    from softmap.solve import iterate, resume, solve

# Public name -> the module that defines it; None: the name is itself a module of the package.
_HOME: dict[str, str | None] = {
    "CheckpointError": "errors",
    "FormatError": "errors",
    "InfeasibleModel": "errors",
    "METHODS": "algorithms.registry",
    "MissingExtra": "errors",
    "Model": "model",
    "ModelError": "errors",
    "OptionError": "errors",
    "Potts": "potentials",
    "Projection": "potentials",
    "Result": "result",
    "SharedTables": "potentials",
    "SmoothedDual": "objective",
    "Snapshot": "result",
    "SoftmapError": "errors",
    "Status": "result",
    "Tables": "potentials",
    "Trace": "result",
    "TruncatedLinear": "potentials",
    "TruncatedQuadratic": "potentials",
    "arc_consistency": "consistency",
    "certificate": "certificate",
    "generators": None,
    "iterate": "solve",
    "lp": None,
    "read": "io",
    "resume": "solve",
    "solve": "solve",
    "write": "io",
}

__all__ = [
    "METHODS",
    "CheckpointError",
    "FormatError",
    "InfeasibleModel",
    "MissingExtra",
    "Model",
    "ModelError",
    "OptionError",
    "Potts",
    "Projection",
    "Result",
    "SharedTables",
    "SmoothedDual",
    "Snapshot",
    "SoftmapError",
    "Status",
    "Tables",
    "Trace",
    "TruncatedLinear",
    "TruncatedQuadratic",
    "__version__",
    "arc_consistency",
    "certificate",
    "generators",
    "iterate",
    "lp",
    "read",
    "resume",
    "solve",
    "write",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'softmap' has no attribute {name!r}")
    home = _HOME[name]
    if home is None:
        return import_module(f"softmap.{name}")
    value = getattr(import_module(f"softmap.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))


class _Package(ModuleType):
    """The package, in which ``softmap.solve`` stays the function.

    Importing the submodule of that name would bind the module over it.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and _HOME.get(name) is not None):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package

"""MAP inference in discrete Markov random fields, with a proof of how good the answer is.

Everything here is loaded on first use: ``import softmap`` is cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from softmap import distributed, generators
    from softmap.algorithms.registry import METHODS
    from softmap.errors import (
        CheckpointError,
        CheckpointWarning,
        FormatError,
        InfeasibleModel,
        MissingExtra,
        ModelError,
        NotEnoughMemory,
        OptionError,
        SoftmapError,
        WriteError,
    )
    from softmap.io import read, write
    from softmap.many import solve_many
    from softmap.model import (
        AllDifferent,
        AtMostOne,
        Cardinality,
        ExactlyOne,
        Linear,
        Max,
        Model,
        Or,
        Parity,
        Potts,
        Projection,
        SharedTables,
        Tables,
        TruncatedLinear,
        TruncatedQuadratic,
    )
    from softmap.relaxation import lp
    from softmap.relaxation.consistency import arc_consistency
    from softmap.relaxation.dual import SmoothedDual
    from softmap.solving.batch import solve_batch
    from softmap.solving.certificate import certificate
    from softmap.solving.mbest import RankedLabelling, solve_mbest
    from softmap.solving.result import Result, load_result
    from softmap.solving.solve import iterate, resume, solve
    from softmap.solving.trace import Snapshot, Status, Trace
    from softmap.verification import verify

# Public name -> the module or package that it is an attribute of.
_HOME = {
    "AllDifferent": "model",
    "AtMostOne": "model",
    "Cardinality": "model",
    "CheckpointError": "errors",
    "CheckpointWarning": "errors",
    "ExactlyOne": "model",
    "FormatError": "errors",
    "InfeasibleModel": "errors",
    "Linear": "model",
    "METHODS": "algorithms.registry",
    "Max": "model",
    "MissingExtra": "errors",
    "Model": "model",
    "ModelError": "errors",
    "NotEnoughMemory": "errors",
    "OptionError": "errors",
    "Or": "model",
    "Parity": "model",
    "Potts": "model",
    "Projection": "model",
    "RankedLabelling": "solving.mbest",
    "Result": "solving.result",
    "SharedTables": "model",
    "SmoothedDual": "relaxation.dual",
    "Snapshot": "solving.trace",
    "SoftmapError": "errors",
    "Status": "solving.trace",
    "Tables": "model",
    "Trace": "solving.trace",
    "TruncatedLinear": "model",
    "TruncatedQuadratic": "model",
    "WriteError": "errors",
    "arc_consistency": "relaxation.consistency",
    "certificate": "solving.certificate",
    "iterate": "solving.solve",
    "load_result": "solving.result",
    "read": "io",
    "resume": "solving.solve",
    "solve": "solving.solve",
    "solve_batch": "solving.batch",
    "solve_many": "many",
    "solve_mbest": "solving.mbest",
    "verify": "verification",
    "write": "io",
}

# Public name -> the module that it is.
_MODULES = {"distributed": "distributed", "generators": "generators", "lp": "relaxation.lp"}

__all__ = [
    "METHODS",
    "AllDifferent",
    "AtMostOne",
    "Cardinality",
    "CheckpointError",
    "CheckpointWarning",
    "ExactlyOne",
    "FormatError",
    "InfeasibleModel",
    "Linear",
    "Max",
    "MissingExtra",
    "Model",
    "ModelError",
    "NotEnoughMemory",
    "OptionError",
    "Or",
    "Parity",
    "Potts",
    "Projection",
    "RankedLabelling",
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
    "WriteError",
    "__version__",
    "arc_consistency",
    "certificate",
    "distributed",
    "generators",
    "iterate",
    "load_result",
    "lp",
    "read",
    "resume",
    "solve",
    "solve_batch",
    "solve_many",
    "solve_mbest",
    "verify",
    "write",
]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        value: object = import_module(f"softmap.{_MODULES[name]}")
    elif name in _HOME:
        value = getattr(import_module(f"softmap.{_HOME[name]}"), name)
    else:
        raise AttributeError(f"module 'softmap' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))

"""What extensions of softmap import beside its public names.

Families of potentials, methods, subsolvers, file formats and decoders need this package and
`import softmap` alone. So do the packages of softmap that are built on its solver: `codes`,
`interop`, `learn`, `scale`, `transport`, `views` and `app.vision`; an import contract holds it.
Names are imported on first use.

Arrays that users give
    `numbers`, `integers` (checked, as float64 and int64), `plain` (of PyTorch, JAX and pandas as
    numpy), `frozen` (read-only); the types `Costs` and `Ints`.
Families of potentials
    `Potential`, with `per_edge` and `edge_indices` for its arguments, and `KernelData` for the
    compiled loops; `Differentiable`, what a family becomes if PyTorch or JAX differentiate by an
    argument (`requires_gradient`).
Methods
    `Algorithm`, which makes a `State` and from it a `Proposal`.
Subsolvers
    `Subsolver`, or `Once` if it runs once before the relaxation; its `Plan` and its `Outcome`; a
    bound without data is `Stated` evidence.
File formats
    `Format`, a row of `softmap.io.FORMATS`; `LIMITS` of what a file may allocate.
Models
    `checked_model`; `Network`, what loops see; `layout`, its arrays for the compiled core;
    `model_facts`, its sizes in words; `neighbours`, the edges of a grid by `directions`, which look
    at a deadline.
Decoders, and other loops of their own
    `core`, the compiled loops; `machine`: cores, memory, and whether a person watches;
    `call_began`, from when the time limit of a call counts; `write_dual`, a proof file of λ;
    `relative_gap`, and `PROVED`, up to which labels count as optimal.
Many runs
    `checked_options`; `memory_needed`; `detached` and `attached`, a result without its model and
    with it.

`register` makes a family, a method, a subsolver or a format known. Five modules have what fewer
extensions need: `extend.store` (files and archives), `extend.factors` (conversions),
`extend.device` (a GPU), `extend.smoothing` (the smoothed optimum and its derivatives) and
`extend.parts` (one model in parts).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from softmap import core, machine
    from softmap.clock import call_began
    from softmap.drive.prooffile import write_dual
    from softmap.io.formats import Format
    from softmap.io.limits import LIMITS
    from softmap.methods.base import Algorithm, Proposal, State
    from softmap.model.facts import model_facts
    from softmap.model.graph import directions, neighbours
    from softmap.model.layout import layout
    from softmap.model.model import checked_model
    from softmap.model.network import Network
    from softmap.model.potentials.base import (
        Costs,
        Differentiable,
        Ints,
        KernelData,
        Potential,
        frozen,
        integers,
        numbers,
        per_edge,
        plain,
        requires_gradient,
    )
    from softmap.model.potentials.base import places as edge_indices
    from softmap.relaxation.gaps import PROVED, relative_gap
    from softmap.run.evidence import Stated
    from softmap.run.memory import memory_needed
    from softmap.run.subsolver import Once, Outcome, Plan, Subsolver
    from softmap.tasks.batch import checked_options
    from softmap.tasks.workers import attached, detached

__all__ = [
    "LIMITS", "PROVED", "Algorithm", "Costs", "Differentiable", "Format", "Ints", "KernelData",
    "Network", "Once", "Outcome", "Plan", "Potential", "Proposal", "State", "Stated", "Subsolver",
    "attached", "call_began", "checked_model", "checked_options", "core", "detached", "directions",
    "edge_indices", "frozen", "integers", "layout", "machine", "memory_needed", "model_facts",
    "neighbours", "numbers", "per_edge", "plain", "register", "relative_gap", "requires_gradient",
    "write_dual",
]  # fmt: skip

# Module -> names here, separated by blanks; `name=other` is called `other` there.
_NAMES = {
    "drive.prooffile": "write_dual",
    "io.formats": "Format",
    "io.limits": "LIMITS",
    "methods.base": "Algorithm Proposal State",
    "clock": "call_began",
    "model.facts": "model_facts",
    "model.graph": "directions neighbours",
    "model.layout": "layout",
    "model.model": "checked_model",
    "model.network": "Network",
    "model.potentials.base": "Costs Differentiable Ints KernelData Potential edge_indices=places "
    "frozen integers numbers per_edge plain requires_gradient",
    "relaxation.gaps": "PROVED relative_gap",
    "run.evidence": "Stated",
    "run.memory": "memory_needed",
    "run.subsolver": "Once Outcome Plan Subsolver",
    "tasks.batch": "checked_options",
    "tasks.workers": "attached detached",
}
_HOMES = {
    name.partition("=")[0]: (home, name.rpartition("=")[2])
    for home, names in _NAMES.items()
    for name in names.split()
}
_MODULES = ("core", "machine")


def __getattr__(name: str) -> object:
    if name in _MODULES:
        value: object = import_module(f"softmap.{name}")
    elif name in _HOMES:
        home, there = _HOMES[name]
        value = getattr(import_module(f"softmap.{home}"), there)
    else:
        raise AttributeError(f"module 'softmap.extend' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def register(kind: type[Potential] | type[Algorithm] | type[Subsolver] | Format) -> None:
    """Make an extension known under its name, until the process ends.

    A file can then hold the family, `softmap.solve(method=...)` take the method,
    `softmap.read(format=...)` read the format, and runs have the subsolver: before the relaxation
    if it derives from `Once`, else beside it.

    Parameters
    ----------
    kind : class of Potential, Algorithm or Subsolver, or a Format
        The extension. A family or a method has its name in `family` or `name`.
    """
    from softmap.io.formats import FORMATS, Format
    from softmap.methods.base import METHODS, Algorithm
    from softmap.model.potentials import FAMILIES, Potential
    from softmap.run.subsolver import Once, Subsolver
    from softmap.subsolvers import registry

    if isinstance(kind, Format):
        FORMATS[kind.name] = kind
    elif not isinstance(kind, type):
        raise TypeError(f"{kind!r} is no family, method, subsolver or format")
    elif issubclass(kind, Potential):
        FAMILIES[kind.family] = kind
    elif issubclass(kind, Algorithm):
        METHODS[kind.name] = kind
    elif issubclass(kind, Once):
        registry.TABLE = (registry.Line(registry.Place.BEFORE, kind), *registry.TABLE)
    elif issubclass(kind, Subsolver):
        registry.TABLE = (*registry.TABLE, registry.Line(registry.Place.BESIDE, kind))
    else:
        raise TypeError(f"{kind!r} is no family, method, subsolver or format")

"""Shapes: the compile-time parameters of kernels (labels, family, half-edges per node)."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.methods.cuda.tiling import Tiling
from softmap.model import Network
from softmap.model.potentials import Potential

Ints = NDArray[np.int64]
NUMBERS = {"float32": "float", "float64": "double"}  # names of the types in C++
SHARED = len(core.KINDS)  # kind of tables that several edges share
TRUNCATED = tuple(core.KINDS.index(name) for name in ("linear", "quadratic"))


@dataclass(frozen=True)
class Choices:
    """Limits that decide the kernels of a model."""

    per_edge: int = 32  # largest number of labels for one thread per edge of a node
    bounds: tuple[tuple[int, int], ...] = ((2, 2), (0, 4), (4, 0))
    """Largest numbers of half-edges to earlier and later levels for one thread per edge."""
    teamed: int = 4  # largest number of labels for several warps per tile: `teamed` of batches.hpp
    linked: int = 16  # largest number of labels for messages stored by edge
    linked_levels: int = 64  # largest number of levels for messages stored by edge


CHOICES = Choices()


@dataclass(frozen=True)
class Shape:
    """The compile-time parameters of kernels: the members of `Facts` in ``arena.hpp``."""

    doubles: bool = False
    kind: int = -1
    labels: int = 0
    reach: int = 0
    early: int = 0
    late: int = 0
    spread: bool = False
    plain: bool = False
    exact: bool = False
    ragged: bool = False
    linked: bool = False

    @property
    def name(self) -> str:
        """The C++ initialiser of the shape: the members that differ from their defaults."""
        told = (f for f in fields(self) if getattr(self, f.name) != f.default)
        facts = (f".{f.name} = {self._told(f.name)}" for f in told)
        return f"Shape<Facts{{{', '.join(facts)}}}>"

    def _told(self, name: str) -> str:
        if name == "kind":
            return (*core.KINDS, "shared_tables")[self.kind]
        return str(getattr(self, name)).lower()

    def bounded(self, early: int, late: int) -> Shape:
        """Return the shape for nodes with few half-edges, which has one thread per edge."""
        if self.kind >= 0 and self.labels <= CHOICES.per_edge and not self.linked:
            for most in CHOICES.bounds:
                if early <= most[0] and late <= most[1]:
                    return replace(self, early=most[0], late=most[1])
        return self

    @property
    def heats(self) -> bool:
        """Whether the closed form depends on the range of η, as for truncated costs."""
        return self.plain and self.kind in TRUNCATED

    @property
    def wide(self) -> bool:
        """Whether passes compute with the range of doubles.

        See `numbers_of_passes` of ``src/core/cuda/edges.hpp``; the general shape may also read
        single precision.
        """
        return self.doubles or self.kind == core.KINDS.index("linear")

    @property
    def teamed(self) -> bool:
        """Whether several warps share a tile; see `WarpTeam` in ``src/core/cuda/passes.hpp``."""
        plain = self.kind >= 0 and not self.linked and not self.early + self.late
        return plain and self.labels <= CHOICES.teamed

    def ways(self, forward: bool) -> int:
        """Return the number of threads per node in a half pass."""
        return (self.late if forward else self.early) or 1


def room_of(labels: int) -> int:
    """Return the number of labels of the general shape, rounded up so that few are compiled."""
    return max(4, 1 << (labels - 1).bit_length())


def shape_of(model: Network, tiling: Tiling, dtype: str) -> Shape:
    """Return the shape of a model: one family and number of labels, else the general shape.

    The caller determines whether tables are `exact`.
    """
    widest = int(model.num_labels.max())
    general = Shape(
        dtype == "float64", labels=room_of(widest), spread=tiling.spread, ragged=tiling.ragged
    )
    if len(model.potentials) != 1 or model.num_labels.min() != widest:
        return general
    potential = model.potentials[0]
    rows, cols = model.end_labels(0, model.m)
    data = potential.kernel_data(rows, cols)
    kind = core.KINDS.index(data.kind)
    if data.kind == "projection":
        return general
    own = data.offset is None and data.stride and data.weight is None
    if data.kind == "tables" and not own:  # products with a weight, which bounds round down
        kind = SHARED
    reach, plain = 0, False
    if data.kind in ("linear", "quadratic"):
        keys = np.unique(potential.tile_key(rows, cols))
        reach = int(keys[0]) if len(keys) == 1 else 0
    if data.weight is not None and data.kind != "tables":
        plain = bool((data.weight >= 0).all() and np.isfinite(data.weight).all())
    linked = data.kind == "tables" and bool(own) and linkable(tiling, widest)
    return replace(general, kind=kind, labels=widest, reach=reach, plain=plain, linked=linked)


def linkable(tiling: Tiling, labels: int) -> bool:
    """Whether to store messages by edge: few labels and an irregular graph."""
    levels = len(tiling.level_start) - 1
    plain = not (tiling.spread or tiling.ragged)
    return plain and labels <= CHOICES.linked and levels <= CHOICES.linked_levels


def steepest(model: Network) -> float:
    """Return the largest cost in the sums of exponentials of a closed form."""
    most = 0.0
    for first, last, potential in model.groups():
        if last > first:
            most = max(most, _steepest(potential, *model.end_labels(first, last)))
    return most


def _steepest(potential: Potential, rows: Ints, cols: Ints) -> float:
    data = potential.kernel_data(rows, cols)
    if data.weight is None or data.kind == "tables":
        return 0.0
    if data.kind == "potts":
        return float(np.abs(data.weight).max())
    return float((np.abs(data.weight) * potential.tile_key(rows, cols)).max())

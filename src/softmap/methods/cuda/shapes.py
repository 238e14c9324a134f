"""What a kernel is compiled for: label counts, family, half-edges per node."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.methods.cuda.tiling import Tiling
from softmap.model import Model
from softmap.model.potentials import Potential

__all__ = ["NUMBERS", "SHARED", "TRUNCATED", "Shape", "room_of", "shape_of", "steepest"]

Ints = NDArray[np.int64]
NUMBERS = {"float32": "float", "float64": "double"}  # as C++ names them
SHARED = len(core.KINDS)  # tables that several edges share
TRUNCATED = tuple(core.KINDS.index(name) for name in ("linear", "quadratic"))


@dataclass(frozen=True)
class Choices:
    """What decides which kernels a model gets."""

    per_edge: int = 32  # labels up to which every edge of a node with few has a thread
    bounds: tuple[tuple[int, int], ...] = ((2, 2), (0, 4), (4, 0))
    """Few half-edges: to earlier and to later levels."""
    teamed: int = 4  # labels up to which several warps work for a tile: `teamed` of batches.hpp
    linked: int = 16  # labels up to which messages may lie by edge
    linked_levels: int = 64  # levels up to which they do


CHOICES = Choices()


@dataclass(frozen=True)
class Shape:
    """What kernels are compiled for: `Facts` in ``src/core/cuda/arena.hpp``, member by member."""

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
        """As C++ writes it: what differs from the defaults."""
        told = (f for f in fields(self) if getattr(self, f.name) != f.default)
        facts = (f".{f.name} = {self._told(f.name)}" for f in told)
        return f"Shape<Facts{{{', '.join(facts)}}}>"

    def _told(self, name: str) -> str:
        if name == "kind":
            return (*core.KINDS, "shared_tables")[self.kind]
        return str(getattr(self, name)).lower()

    def bounded(self, early: int, late: int) -> Shape:
        """For nodes with few half-edges to earlier and later levels: a thread for each edge."""
        if self.kind >= 0 and self.labels <= CHOICES.per_edge and not self.linked:
            for most in CHOICES.bounds:
                if early <= most[0] and late <= most[1]:
                    return replace(self, early=most[0], late=most[1])
        return self

    @property
    def heats(self) -> bool:
        """Whether closed forms differ by η: those of truncated costs do."""
        return self.plain and self.kind in TRUNCATED

    @property
    def wide(self) -> bool:
        """Whether passes compute with the range of doubles: `numbers_of_passes` of
        ``src/core/cuda/edges.hpp``, but that the general shape may read single precision."""
        return self.doubles or self.kind == core.KINDS.index("linear")

    @property
    def teamed(self) -> bool:
        """Whether several warps may work for a tile: see `Team` in ``src/core/cuda/passes.hpp``."""
        plain = self.kind >= 0 and not self.linked and not self.early + self.late
        return plain and self.labels <= CHOICES.teamed

    def ways(self, forward: bool) -> int:
        """Threads that work for one node in a half pass."""
        return (self.late if forward else self.early) or 1


def room_of(labels: int) -> int:
    """Labels of a general shape for so many: few shapes, so that few are compiled."""
    return max(4, 1 << (labels - 1).bit_length())


def shape_of(model: Model, tiling: Tiling, dtype: str) -> Shape:
    """One family and one label count if the model is like that, else the general shape.

    Whether tables are `exact` is for the caller to find out.
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
    if data.kind == "tables" and not own:  # times a weight, which a bound has to round down
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
    """Whether messages are to lie by edge: labels are few, and edges lead anywhere."""
    levels = len(tiling.level_start) - 1
    plain = not (tiling.spread or tiling.ragged)
    return plain and labels <= CHOICES.linked and levels <= CHOICES.linked_levels


def steepest(model: Model) -> float:
    """The largest cost that sums of exponentials of a closed form may meet."""
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

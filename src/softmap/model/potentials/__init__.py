"""The families of potentials: subclasses of `base.Potential`."""

from softmap.model.potentials.base import KernelData, Potential
from softmap.model.potentials.distance import Potts, TruncatedLinear, TruncatedQuadratic
from softmap.model.potentials.projection import Projection
from softmap.model.potentials.tables import SharedTables, Tables

FAMILIES: dict[str, type[Potential]] = {
    cls.family: cls
    for cls in (Tables, SharedTables, Potts, TruncatedLinear, TruncatedQuadratic, Projection)
}

__all__ = [
    "FAMILIES",
    "KernelData",
    "Potential",
    "Potts",
    "Projection",
    "SharedTables",
    "Tables",
    "TruncatedLinear",
    "TruncatedQuadratic",
]

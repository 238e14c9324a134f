"""The table of the subsolvers: one line each. Nothing else lists them.

Classes are named as text, so that a subsolver that a run does not need is never imported. What is
said of a subsolver elsewhere (its name in traces and reports, its kind of evidence) is an
attribute of its class.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from importlib import import_module
from typing import NamedTuple

from softmap.run.evidence import Evidence
from softmap.run.subsolver import Subsolver

__all__ = ["TABLE", "Line", "Place", "evidence", "kinds", "numbered"]


class Place(Enum):
    """When a subsolver has its turns."""

    BEFORE = auto()  # before the relaxation, in the order of the table
    RELAXATION = auto()  # it leads: without a time limit, the others wait until it has ended
    BESIDE = auto()  # from the first check of the relaxation on, if that leaves the gap open
    CHECKED = auto()  # after each check and each slice


class Line(NamedTuple):
    """One line of the table.

    Attributes
    ----------
    place : Place
        When the subsolver has its turns.
    code : str or type
        Its class as "module:Class", which is imported when needed; or the class itself.
    """

    place: Place
    code: str | type[Subsolver]

    @property
    def kind(self) -> type[Subsolver]:
        """The class."""
        if not isinstance(self.code, str):
            return self.code
        module, name = self.code.split(":")
        kind: type[Subsolver] = getattr(import_module(module), name)
        return kind


TABLE: tuple[Line, ...] = (
    Line(Place.BEFORE, "softmap.subsolvers.forests.forest:Forest"),
    Line(Place.BEFORE, "softmap.subsolvers.search.eliminate:Eliminate"),
    Line(Place.BEFORE, "softmap.subsolvers.cuts.cut:Cut"),
    Line(Place.BEFORE, "softmap.subsolvers.permutations.assign:Assign"),
    Line(Place.BEFORE, "softmap.subsolvers.permutations.permute:Permute"),
    Line(Place.BEFORE, "softmap.subsolvers.labels.obey:Obey"),
    Line(Place.BEFORE, "softmap.subsolvers.labels.expand:Expand"),
    Line(Place.RELAXATION, "softmap.subsolvers.passes.passes:Passes"),
    Line(Place.CHECKED, "softmap.subsolvers.passes.interior:Interior"),
    Line(Place.CHECKED, "softmap.subsolvers.passes.vertex:Vertex"),
    Line(Place.CHECKED, "softmap.subsolvers.passes.decode:Decode"),
    Line(Place.BESIDE, "softmap.subsolvers.cores.cores:Cores"),
    Line(Place.BESIDE, "softmap.subsolvers.search.search:Search"),
    Line(Place.BESIDE, "softmap.subsolvers.spins.semidefinite:Semidefinite"),
    Line(Place.BESIDE, "softmap.subsolvers.clusters.tighten:Tighten"),
    Line(Place.BESIDE, "softmap.subsolvers.labels.improve:Improve"),
)


def kinds(*places: Place) -> Iterator[type[Subsolver]]:
    """Yield the classes of some places, of all by default, in the order of the table."""
    for line in TABLE:
        if not places or line.place in places:
            yield line.kind


def evidence(word: str) -> type[Evidence] | None:
    """The class of evidence of a kind, if a subsolver has one with data of its own."""
    classes = [kind.evidence for kind in kinds()]
    named = {str(one.kind): one for one in classes if one is not None}
    return named.get(word)


def numbered() -> dict[int, str]:
    """The names of the subsolvers by the numbers that files of earlier versions have for them."""
    return {kind.number: kind.name for kind in kinds() if kind.number is not None}

"""`Evidence`: what proves a lower bound, with its value, its kind and the records that show it.

Each subsolver that proves bounds has its own kind of evidence. `Best`, results, checkpoints,
reports and proof files use what all kinds have in common.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from softmap.io.store import Arrays
from softmap.run.records import Recorded, dual_record

if TYPE_CHECKING:
    from softmap.model import Network
    from softmap.run.problem import Problem
    from softmap.tuning import Tuning

__all__ = [
    "Evidence", "Relaxation", "RelaxedPoint", "Scope", "Stated", "evidence_arrays",
]  # fmt: skip

Scope = tuple[int, ...]


class RelaxedPoint(Protocol):
    """A point of the relaxation whose dual proves a bound."""

    @property
    def bound(self) -> float: ...
    @property
    def primal(self) -> float: ...
    @property
    def node_marginals(self) -> NDArray[np.float64]: ...
    @property
    def gap(self) -> float: ...


@dataclass(frozen=True, eq=False, kw_only=True)
class Evidence:
    """What proves a lower bound on the cost of all labellings.

    Attributes
    ----------
    value : float
        The bound.
    kind : str
        The kind of evidence, as a word.
    text : str
        The kind of evidence, as text that users see.
    stated : bool
        Whether the bound is only stated: `softmap.verify` checks it from a proof file only.
    nodes : int
        Number of nodes of the search tree, or of whatever else the evidence consists of.
    scopes : tuple of tuples of int
        The groups of variables that it is about, if it is about some.
    """

    value: float = -math.inf
    stated: ClassVar[bool] = False

    @property
    def kind(self) -> str:
        raise NotImplementedError

    @property
    def text(self) -> str:
        raise NotImplementedError

    @property
    def nodes(self) -> int:
        return 0

    @property
    def scopes(self) -> tuple[Scope, ...]:
        return ()

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        """One line: arrays and clusters of a large proof would fill many pages."""
        size = f" ({self.size})" if self.size else ""
        return f"{type(self).__name__}({self.text}{size})"

    @property
    def size(self) -> str:
        """The size of the evidence in words; empty if it has none."""
        return ""

    @property
    def log(self) -> Recorded | None:
        """What was kept of a search for a proof file."""
        return None

    @property
    def facts(self) -> dict[str, str]:
        """Numbers of the evidence for a report, by name."""
        return {}

    @property
    def plain(self) -> Evidence:
        """The evidence without the records of a search, as results and checkpoints keep it."""
        return self

    def back(self, problem: Problem) -> Evidence | None:
        """Return the evidence in the user's units; None if the bound of λ has to do instead."""
        return None

    def records(self, lam: Any) -> Iterator[bytes]:
        """Yield the records of a proof file that need nothing else, in the user's units.

        Those of evidence that is only stated prove `recorded`.

        Parameters
        ----------
        lam : float64 array
            λ of the result.
        """
        return dual_record((), lam)

    @property
    def recorded(self) -> float | None:
        """The bound that `records` prove; None if it is the bound of λ."""
        return None

    def renewed(self, problem: Problem, tuning: Tuning) -> Evidence | None:
        """Return this evidence of an earlier result for the costs of another problem.

        Its bound is computed again. None if that is not possible, or takes a search.

        Parameters
        ----------
        problem : Problem
            The other problem.
        tuning : Tuning
            The numbers of the run.
        """
        return None

    def point(self, model: Network, labels: Any) -> RelaxedPoint | None:
        """Return a point of the relaxation that proves the bound, if it is none of λ.

        Parameters
        ----------
        model : Network
            The model of the result.
        labels : int array or None
            Its best labelling.
        """
        return None

    def arrays(self) -> Arrays:
        """Return the data of the evidence as arrays by name."""
        return {}

    @classmethod
    def of_arrays(cls, arrays: Arrays, value: float) -> Evidence:
        """Return the evidence of the arrays of `arrays`; raise ValueError if they are none."""
        return cls(value=value)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Relaxation(Evidence):
    """λ of the LP relaxation, which `Best` and results keep."""

    kind = "relaxation"
    text = "the dual of the LP relaxation"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Stated(Evidence):
    """Evidence whose records are needed to check it: of a search, for example.

    Attributes
    ----------
    kind, text : str
        Its kind, as a word and as text.
    nodes : int
        Number of nodes of the search tree, or of whatever else the evidence consists of.
    parts : str
        What `nodes` counts, in words; the first word is the plural of its name.
    start : Evidence or None
        Weaker evidence that the search started from, and that needs no records.
    log : Recorded or None
        What was kept of the search for a proof file.
    """

    stated: ClassVar[bool] = True
    kind: str = "search"
    text: str = "an exact search"
    nodes: int = 0
    parts: str = "nodes of the search tree"
    start: Evidence | None = None
    log: Recorded | None = None

    @property
    def size(self) -> str:
        if not self.nodes:
            return ""
        word = self.parts.split()[0]
        return f"{self.nodes:,} {word.removesuffix('s') if self.nodes == 1 else word}"

    @property
    def facts(self) -> dict[str, str]:
        return {self.parts: f"{self.nodes:,}"} if self.nodes else {}

    @property
    def plain(self) -> Evidence:
        return self if self.log is None else replace(self, log=None)

    def back(self, problem: Problem) -> Evidence | None:
        start = None if self.start is None else self.start.back(problem)
        return replace(self, value=problem.bound_back(self.value), start=start, log=None)

    def records(self, lam: Any) -> Iterator[bytes]:
        return super().records(lam) if self.start is None else self.start.records(lam)

    @property
    def recorded(self) -> float | None:
        return None if self.start is None else self.start.value

    def arrays(self) -> Arrays:
        arrays: Arrays = {
            name: np.array(getattr(self, name)) for name in ("text", "nodes", "parts")
        }
        if self.start is not None:
            arrays |= {f"start/{name}": a for name, a in evidence_arrays(self.start).items()}
            arrays |= {"start/value": np.array(self.start.value)}
        return arrays


def evidence_arrays(evidence: Evidence) -> Arrays:
    """Return evidence as arrays by name, without its value and its records."""
    return {"kind": np.array(evidence.kind), **evidence.arrays()}

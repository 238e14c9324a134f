"""What a run gives back: the labelling, the certificate, the trace, and why it stopped."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import astuple, dataclass, field, fields
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from softmap.model import Model
from softmap.relaxation.gaps import Gaps

if TYPE_CHECKING:
    from softmap.solving.judge import Judge

__all__ = ["Result", "Row", "Snapshot", "Status", "Trace"]

Floats = NDArray[np.float64]


class Status(Enum):
    """Why a run stopped; the value is the sentence a person reads."""

    LP_GAP = "the LP gap is within the tolerance"
    GAP = "the labelling is proved optimal within the tolerance"
    UPDATES = "all updates asked for are done"
    TIME_LIMIT = "the time limit was reached"
    WORK_LIMIT = "the work limit was reached"
    CALLBACK = "on_snapshot asked to stop"
    INTERRUPTED = "interrupted; this is the best found so far"
    STALLED = "neither gap has improved for long"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Row:
    """One check of a run. `bound`, `primal` and `energy` are the best so far."""

    work: int
    sweeps: float
    seconds: float
    eta: float
    bound: float
    smoothed: float
    primal: float
    energy: float
    slack: float


@dataclass
class Trace:
    """The rows of a run, one per check."""

    rows: list[Row] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, k: int) -> Row:
        return self.rows[k]

    def columns(self) -> dict[str, NDArray[Any]]:
        """The trace as arrays by column name."""
        names = [f.name for f in fields(Row)]
        return {name: np.array([getattr(row, name) for row in self.rows]) for name in names}

    def to_csv(self, path: str | Path) -> None:
        """Write the trace with a header line."""
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([f.name for f in fields(Row)])
            writer.writerows(astuple(row) for row in self.rows)


@dataclass(frozen=True)
class Snapshot:
    """What `on_snapshot` and `iterate` see at each check: the row, and the best labelling."""

    row: Row
    labels: NDArray[np.int64]

    def __getattr__(self, name: str) -> Any:
        """The columns of the row, so that `snapshot.bound` reads as it should."""
        if name.startswith("_") or name == "row":
            raise AttributeError(name)
        return getattr(self.row, name)

    @property
    def lp_gap(self) -> float:
        """`primal - bound`."""
        return max(0.0, self.row.primal - self.row.bound)

    @property
    def gap(self) -> float:
        """`energy - bound`."""
        return max(0.0, self.row.energy - self.row.bound)


@dataclass(frozen=True, eq=False)
class Result(Gaps):
    """A labelling, a certified bound, a point of the local polytope, and how they were found.

    Attributes
    ----------
    labels, energy
        The best labelling; `energy == model.energy(labels)`.
    bound
        Certified lower bound: `bound <= LP optimum <= MAP optimum`.
    primal, node_marginals, edge_marginals
        A point of the local polytope and its cost, `primal >= LP optimum`.
    lam
        λ whose unsmoothed dual is `bound`; also a warm start.
    trace, status
        One row per check; why the run stopped.
    work, sweeps
        Half-edge messages sent, and the same in units of all half-edges.
    """

    model: Model
    method: str
    status: Status
    labels: NDArray[np.int64]
    energy: float
    bound: float
    primal: float
    lam: Floats
    eta: float
    trace: Trace
    work: int
    sweeps: float
    seconds: float
    setup_seconds: float
    threads: int
    messages: Floats
    _judge: Judge

    @cached_property
    def node_marginals(self) -> Floats:
        """Node marginals of the point of the polytope, flat over `model.node_offset`."""
        return self._judge.node_marginals()

    @cached_property
    def edge_marginals(self) -> Floats:
        """Its edge marginals, flat over `model.edge_offset`; made when asked for."""
        return self._judge.edge_marginals()

    def report(self, path: str | Path) -> None:
        """Write one self-contained HTML page about this run."""
        from importlib import import_module

        import_module("softmap.report").write(self, path)

    def __repr__(self) -> str:
        return (
            f"Result(energy={self.energy:.10g}, bound={self.bound:.10g}, "
            f"primal={self.primal:.10g}, status={self.status.name})"
        )

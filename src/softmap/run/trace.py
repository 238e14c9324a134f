"""`Status`, `Trace` and `Snapshot`: why a run stopped, its rows, and what callbacks receive."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from enum import Enum
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import OptionError
from softmap.later import later
from softmap.model import Model
from softmap.relaxation.gaps import Gaps

__all__ = ["RELAXATION", "Row", "Snapshot", "Status", "Trace"]

TABLE_ROWS = 20  # most rows that a notebook shows
RELAXATION = "relaxation"  # the name of the subsolver that leads, in the column `stage`


class Status(Enum):
    """Why a run stopped; the value is the sentence that users see."""

    LP_GAP = "the LP gap is within the tolerance"
    GAP = "the labelling is proved optimal within the tolerance"
    UPDATES = "all updates asked for are done"
    TIME_LIMIT = "the time limit was reached"
    WORK_LIMIT = "the work limit was reached"
    CALLBACK = "on_snapshot asked to stop"
    INTERRUPTED = "interrupted; this is the best found so far"
    STALLED = "neither gap has improved for long"
    OPTIMAL = "the labelling is proved optimal"
    NONE_BELOW = "no labelling costs less than the upper bound, within the tolerance"
    RELAXED = "the relaxation had its share of the time"
    EFFORT = "the default effort is spent; a time limit or goal='optimal' goes on"
    EXHAUSTED = "no subsolver can do more"
    MEMORY_LIMIT = "no subsolver can do more within the memory limit"
    FAILED = "a subsolver has failed, and no other can do more"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Row:
    """One check of a run.

    Attributes
    ----------
    work, sweeps, seconds : messages so far, the same over all half-edges, time in the loop
    bound, primal, energy : the best so far
    eta, smoothed, slack
        Inverse temperature; value of the smoothed dual, NaN where it is not known; how much the
        marginals of edges and variables disagree.
    stage : the name of the subsolver that has run: "relaxation", "search", "labels", ...
    lp_bound
        The best bound on the LP optimum; the same as `bound` until another subsolver has more.
    """

    work: int
    sweeps: float
    seconds: float
    eta: float
    bound: float
    smoothed: float
    primal: float
    energy: float
    slack: float
    stage: str = RELAXATION
    lp_bound: float = math.nan

    def __post_init__(self) -> None:
        if math.isnan(self.lp_bound):  # the relaxation's own, where nothing else is known
            object.__setattr__(self, "lp_bound", self.bound)


@dataclass(eq=False, repr=False)
class Trace:
    """The rows of a run, one per check.

    Attributes
    ----------
    rows : list of Row
        The rows in order.
    """

    rows: list[Row] = field(default_factory=list)

    def __repr__(self) -> str:
        """The number of rows and the names of the columns; no numbers."""
        names = ", ".join(f.name for f in fields(Row))
        return f"Trace({len(self.rows)} rows of {names})"

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, k: int) -> Row:
        return self.rows[k]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace):
            return NotImplemented
        same = self.stages == other.stages
        return same and np.array_equal(self.array(), other.array(), equal_nan=True)

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def from_array(cls, array: NDArray[np.float64], stages: Sequence[str]) -> Trace:
        """Return the trace of an array made by `array`, and of `stages`."""
        names = [f.name for f in fields(Row)][: array.shape[1]]
        if len(names) < len(fields(Row)) - 1 or array.shape[1] > len(names):
            raise ValueError(f"a trace has {len(fields(Row))} columns, not {array.shape[1]}")
        rows = [dict(zip(names, line, strict=True)) for line in array.tolist()]
        numbers = [int(row["stage"]) for row in rows]
        if any(not 0 <= number < len(stages) for number in numbers):
            raise ValueError("a row of the trace is of no subsolver")
        return cls(
            [
                Row(**row | {"work": int(row["work"]), "stage": stages[number]})
                for row, number in zip(rows, numbers, strict=True)
            ]
        )

    @property
    def stages(self) -> list[str]:
        """The names of the subsolvers of all rows, each once, in the order of the rows."""
        return list(dict.fromkeys(row.stage for row in self.rows))

    def relaxed(self) -> Trace:
        """Return the trace with the bounds of the relaxation alone."""
        return Trace([replace(row, bound=row.lp_bound) for row in self.rows])

    def array(self) -> NDArray[np.float64]:
        """Return the trace as an array, with one row per `Row` and one column per field.

        The column `stage` has places in `stages`.
        """
        place = {name: float(k) for k, name in enumerate(self.stages)}
        rows = [[place.get(value, value) for value in astuple(row)] for row in self.rows]
        return np.array(rows, float).reshape(-1, len(fields(Row)))

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the trace as arrays by column name."""
        names = [f.name for f in fields(Row)]
        return {name: np.array([getattr(row, name) for row in self.rows]) for name in names}

    def _repr_html_(self) -> str:
        names, half = [f.name for f in fields(Row)], TABLE_ROWS // 2
        rows: list[Row | None] = [*self.rows]
        if len(rows) > TABLE_ROWS:
            rows[half:-half] = [None]
        body = ["".join(f"<td>{text}</td>" for text in _cells(row)) for row in rows]
        head = "".join(f"<th>{name}</th>" for name in names)
        lines = "".join(f"<tr>{line}</tr>" for line in (head, *body))
        return f"<div><b>softmap.Trace: {len(self.rows)} checks</b><table>{lines}</table></div>"

    def to_csv(self, path: str | Path) -> None:
        """Write the trace as a CSV file with a header line."""
        import csv  # imported late: few runs write a trace
        import io

        from softmap.io.atomic import write_text

        text = io.StringIO(newline="")
        writer = csv.writer(text)
        writer.writerow([f.name for f in fields(Row)])
        writer.writerows(astuple(row) for row in self.rows)
        write_text(path, [text.getvalue()])


def _cells(row: Row | None) -> list[str]:
    """The text of a table row; dots for rows that are left out."""
    if row is None:
        return ["…"] * len(fields(Row))
    return [value if isinstance(value, str) else f"{value:.6g}" for value in astuple(row)]


@later("labels")
@dataclass(frozen=True, eq=False, repr=False)
class Snapshot(Gaps):
    """What `on_snapshot` and `iterate` see at each check: the row, and the best labelling.

    The labels cannot be written to; `snapshot.labels.copy()` can.

    Attributes
    ----------
    model, labels : the model, and the best labelling so far
    row : the `Row`, whose columns are attributes of the snapshot, too
    lam : λ where the method stands, in the units of the model
        It is made when it is asked for, which has to be before the run goes on.
    updates : the number of updates so far, as the option `updates` counts them
    """

    model: Model
    row: Row
    labels: NDArray[np.int64]
    _lam: Callable[[], NDArray[np.float64]] | None = None
    updates: int = 0

    def __repr__(self) -> str:
        """The numbers of the row that matter most; no arrays."""
        numbers = f"bound={self.row.bound:.10g}, energy={self.row.energy:.10g}"
        return f"Snapshot({numbers}, seconds={self.row.seconds:.3g}, stage={self.row.stage})"

    @cached_property
    def lam(self) -> NDArray[np.float64]:
        """λ where the method stands."""
        if self._lam is None:
            raise OptionError("this snapshot has no λ")
        return self._lam()

    @property
    def lp_gap(self) -> float:
        """`primal - lp_bound`, at least 0: how well the LP relaxation is solved."""
        return max(0.0, self.row.primal - self.row.lp_bound)

    def __post_init__(self) -> None:
        # The run replaces its best labelling, and never writes to it: a copy can be made later.
        object.__setattr__(self, "labels", partial(_own, self.model, self.labels))

    def __getattr__(self, name: str) -> Any:
        """Return a field of the row, so that `snapshot.bound` works."""
        if name.startswith("_") or name == "row":
            raise AttributeError(name)
        return getattr(self.row, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(f.name for f in fields(Row))})


def _own(model: Model, labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a read-only copy of the labels: users could make a view writeable."""
    own = labels[: model.n].copy()
    own = own if model.shape is None else own.reshape(model.shape)
    own.flags.writeable = False
    return own

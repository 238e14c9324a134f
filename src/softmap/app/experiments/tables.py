"""Tables, and the statistics of figures and claims: means, deviations, ratios over trials."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import FormatError
from softmap.io.atomic import write_text

Column = NDArray[Any]
WORDS = ("method", "form", "fingerprint")
WHOLE = ("n", "m", "trial", "trials", "updates", "work")


class Table:
    """A table: columns of equal length by name.

    The name of a column decides if it holds text, integers, or float64 (written with ten digits).
    """

    def __init__(self, columns: Mapping[str, Column]) -> None:
        self.columns = dict(columns)
        if len({len(column) for column in self.columns.values()}) > 1:
            raise ValueError("columns of a table must have one length")

    @classmethod
    def from_rows(cls, names: Iterable[str], rows: Iterable[Iterable[Any]]) -> Table:
        """Return a table made of rows; values are in the order of `names`."""
        names = list(names)
        values = list(zip(*rows, strict=True)) or [() for _ in names]
        return cls({name: _typed(name, value) for name, value in zip(names, values, strict=True)})

    @classmethod
    def from_csv(cls, path: Path | str) -> Table:
        """Read a file that `to_csv` wrote."""
        with open(path, newline="", encoding="utf-8") as file:
            header, *rows = list(csv.reader(file)) or [[]]
        try:
            return cls.from_rows(header, rows)
        except ValueError as error:
            raise FormatError(
                f"not a table of `softmap reproduce`: {error}", path=str(path)
            ) from error

    def to_csv(self, path: Path | str) -> None:
        """Write a header and the rows, atomically."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        written = [[_written(name, v) for v in column] for name, column in self.columns.items()]
        writer.writerows(zip(*written, strict=True))
        write_text(Path(path), [out.getvalue()])

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def where(self, **equal: Any) -> Table:
        """Return the rows whose columns have these values."""
        keep = np.ones(len(self), dtype=bool)
        for name, value in equal.items():
            keep &= self.columns[name] == value
        return Table({name: column[keep] for name, column in self.columns.items()})

    def distinct(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Yield the distinct values of some columns, in order of appearance."""
        rows = zip(*(self.columns[name].tolist() for name in names), strict=True)
        return iter(dict.fromkeys(rows))

    def by_trial(self, name: str) -> Column:
        """Return a column as an array (trials, points); every trial has the same points."""
        trials = np.unique(self.columns["trial"])
        return np.stack([self.where(trial=t)[name] for t in trials])


def _typed(name: str, values: Iterable[Any]) -> Column:
    if name in WORDS:
        return np.array(list(values), dtype=object)
    return np.array([int(v) if name in WHOLE else float(v) for v in values])


def _written(name: str, value: Any) -> str:
    return str(value) if name in WORDS + WHOLE else f"{value:.10g}"


Floats = NDArray[np.float64]

# Gaps are clipped to this value from below: the tolerance of the LP solver.
FLOOR = 1e-6


@dataclass(frozen=True)
class Curve:
    """Mean and standard deviation over trials, at each evaluation of a run."""

    updates: Floats
    work: Floats
    mean: Floats
    deviation: Floats

    @property
    def last(self) -> float:
        """The mean at the last evaluation."""
        return float(self.mean[-1])


def curve(table: Table, column: str = "gap") -> Curve:
    """Average the trials of one method at one η."""
    values = np.maximum(table.by_trial(column), FLOOR)
    return _averaged(table, values)


def log_ratio(standard: Table, accelerated: Table, column: str = "gap") -> Floats:
    """Return log(gap of the standard method / gap of the accelerated one), (trials, points).

    This is the paper's competitive ratio, positive if the accelerated variant has the lower error.
    Trials with the same number share their random numbers and are compared with each other.
    """
    above = np.maximum(standard.by_trial(column), FLOOR)
    below = np.maximum(accelerated.by_trial(column), FLOOR)
    return np.log(above / below)


def ratio_curve(table: Table, method: str, form: str, column: str = "gap") -> Curve:
    """Return the log-competitive ratio of one method and one form, averaged over trials."""
    standard = table.where(method=method, form="standard")
    accelerated = table.where(method=method, form=form)
    return _averaged(standard, log_ratio(standard, accelerated, column))


def first_below(found: Curve, level: float) -> float:
    """Return the number of updates after which the mean first is at most `level`; inf if never."""
    reached = np.flatnonzero(found.mean <= level)
    return float(found.updates[reached[0]]) if reached.size else math.inf


def _averaged(table: Table, values: Floats) -> Curve:
    updates = table.by_trial("updates")[0].astype(float)
    work = table.by_trial("work").mean(axis=0)
    return Curve(updates, work, values.mean(axis=0), values.std(axis=0))

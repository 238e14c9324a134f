"""Tidy tables: one row per observation, columns as arrays, CSV in and out."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import FormatError
from softmap.io.atomic import write_text

__all__ = ["Table"]

Column = NDArray[Any]
WORDS = ("method", "form", "fingerprint")
WHOLE = ("n", "m", "trial", "trials", "updates", "work")


class Table:
    """Columns of equal length by name.

    Words and whole numbers are recognised by the name of their column; all else is float64,
    written with ten digits.
    """

    def __init__(self, columns: Mapping[str, Column]) -> None:
        self.columns = dict(columns)
        if len({len(column) for column in self.columns.values()}) > 1:
            raise ValueError("columns of a table must have one length")

    @classmethod
    def from_rows(cls, names: Iterable[str], rows: Iterable[Iterable[Any]]) -> Table:
        """Rows of values in the order of the names."""
        names = list(names)
        values = list(zip(*rows, strict=True)) or [() for _ in names]
        return cls({name: _typed(name, value) for name, value in zip(names, values, strict=True)})

    @classmethod
    def from_csv(cls, path: Path | str) -> Table:
        """Read what `to_csv` wrote."""
        with open(path, newline="", encoding="utf-8") as file:
            header, *rows = list(csv.reader(file)) or [[]]
        try:
            return cls.from_rows(header, rows)
        except ValueError as error:
            raise FormatError(f"not a table of ours: {error}", path=str(path)) from error

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
        """The rows whose columns have these values."""
        keep = np.ones(len(self), dtype=bool)
        for name, value in equal.items():
            keep &= self.columns[name] == value
        return Table({name: column[keep] for name, column in self.columns.items()})

    def distinct(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Different values of some columns, in order of appearance."""
        rows = zip(*(self.columns[name].tolist() for name in names), strict=True)
        return iter(dict.fromkeys(rows))

    def by_trial(self, name: str) -> Column:
        """A column as (trials, points); every trial must have the same points."""
        trials = np.unique(self.columns["trial"])
        return np.stack([self.where(trial=t)[name] for t in trials])


def _typed(name: str, values: Iterable[Any]) -> Column:
    if name in WORDS:
        return np.array(list(values), dtype=object)
    return np.array([int(v) if name in WHOLE else float(v) for v in values])


def _written(name: str, value: Any) -> str:
    return str(value) if name in WORDS + WHOLE else f"{value:.10g}"

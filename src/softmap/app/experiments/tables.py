"""Tables of text, integers and numbers, as CSV files."""

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

Column = NDArray[Any]
WORDS = ("method", "form", "fingerprint")
WHOLE = ("n", "graph", "m", "updates")
EXACT = ("optimum", "cvxpy_optimum")  # written with every bit


class Table:
    """A table: columns of equal length by name.

    The name of a column decides if it holds text, integers, or float64 (written with ten digits, or
    all that it has).
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


def _typed(name: str, values: Iterable[Any]) -> Column:
    if name in WORDS:
        return np.array(list(values), dtype=object)
    return np.array([int(v) if name in WHOLE else float(v) for v in values])


def _written(name: str, value: Any) -> str:
    if name in EXACT:
        return repr(float(value))
    return str(value) if name in WORDS + WHOLE else f"{value:.10g}"

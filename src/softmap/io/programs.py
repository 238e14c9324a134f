"""Integer linear programs (LP and MPS files): columns become variables.

A row becomes the factor that it is: at most one, exactly one, at least one, a budget, or a table if
it has few variables. Columns must be whole numbers in a small range.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from softmap.errors import FormatError
from softmap.io.limits import LIMITS
from softmap.io.program_texts import ProgramData, lp_program, mps_program
from softmap.io.streams import Content
from softmap.model import Model
from softmap.model.factors import Assembly
from softmap.model.inputs import within
from softmap.model.many import Cardinality, Linear, Many
from softmap.model.model import assembled
from softmap.model.potentials.base import Costs, Ints

_DIGITS = 9  # coefficients of a row must be whole after multiplication by 10 to this power
_ROUNDING = 2.0**-51  # relative error of a decimal and of its product with a power of ten
_LARGEST = 2.0**48  # sums of whole numbers up to here are exact, and so are bounds of them


def parse_lp(content: Content) -> Model:
    """Return the model of a linear program in CPLEX's LP format."""
    return _ProgramReader(content, lp_program(content)).model()


def parse_mps(content: Content) -> Model:
    """Return the model of a linear program in MPS format."""
    return _ProgramReader(content, mps_program(content)).model()


class _ProgramReader:
    """Reader of columns and rows; errors name them."""

    def __init__(self, content: Content, program: ProgramData) -> None:
        self.content = content
        self.names, self.rows = program.names, program.rows
        if not self.names:
            raise self._error("at least one column", "none")
        self.sign = -1.0 if program.maximise else 1.0
        self.costs: Costs = self.sign * np.array(program.costs)
        if not np.isfinite(self.costs).all():
            j = int(np.argmin(np.isfinite(self.costs)))
            raise self._error("finite costs", f"column {self.names[j]!r} costs {self.costs[j]:g}")
        self.constant = self.sign * program.offset
        if not np.isfinite(self.constant):
            raise self._error("a finite constant", f"{self.constant:g}")
        self.least, self.sizes = self._columns(program)
        self.low, self.high = np.array(program.row_low), np.array(program.row_high)
        never = (self.low == np.inf) | (self.high == -np.inf)
        if never.any():
            name = self.rows[int(np.argmax(never))]
            raise self._error("rows that can hold", f"row {name!r} with an infinite bound")
        self.start, self.index, self.value = _by_rows(program)  # without entries that are 0
        content.take(int(self.sizes.sum()))
        self.assembly = Assembly(self.sizes)

    def _error(self, expected: str, found: str) -> FormatError:
        return self.content.error(expected, found)

    def _columns(self, program: ProgramData) -> tuple[Ints, Ints]:
        """Return the least value and the number of values of each column."""
        given = np.array(program.low), np.array(program.high)
        low, high = np.ceil(given[0]), np.floor(given[1])
        whole = np.array(program.whole) | ((given[0] == given[1]) & (low == high))
        with np.errstate(invalid="ignore"):  # ∞ - ∞
            good = whole & (high >= low) & (high - low < LIMITS.integer_values)
        if not good.all():
            j = int(np.argmin(good))
            kind = "whole numbers" if whole[j] else "real numbers"
            raise self._error(
                f"columns of whole numbers, of at most {LIMITS.integer_values} values each",
                f"column {self.names[j]!r} of {kind} from {low[j]:g} to {high[j]:g}",
            )
        far = np.maximum(np.abs(low), np.abs(high)) > _LARGEST
        if far.any():
            j = int(np.argmax(far))
            value = f"column {self.names[j]!r} from {low[j]:g} to {high[j]:g}"
            raise self._error(f"columns of whole numbers within ±{_LARGEST:g}", value)
        return low.astype(np.int64), (high - low).astype(np.int64) + 1

    def model(self) -> Model:
        value = np.repeat(self.least, self.sizes) + within(self.sizes)
        self.assembly.add_flat_unary(np.repeat(self.costs, self.sizes) * value)
        self.assembly.add_constant(self.constant)
        for (weights, sizes, low, high), rows in self._groups().items():
            self._add(np.array(rows), np.array(weights), np.array(sizes), low, high)
        return assembled(self.assembly.pieces()).with_names(self.names)

    def _groups(self) -> dict[tuple[Any, ...], list[Ints]]:
        """Return the columns of rows by coefficients, label counts and bounds, which others share.

        Columns of a row are in the order of their coefficients. Rows that always hold are left out.
        """
        count = len(self.low)
        row = np.repeat(np.arange(count), np.diff(self.start))
        weights, low, high = self._whole(row)
        sizes = self.sizes[self.index]
        order = np.lexsort((sizes, weights, row))
        columns, weights, sizes = self.index[order], weights[order], sizes[order]
        self._require_exact(row, weights, np.abs(self.least[columns]) + sizes)
        shift = np.bincount(row, weights * self.least[columns], count)
        low, high = low - shift, high - shift
        ends = weights * (sizes - 1)
        least = np.bincount(row, np.minimum(ends, 0), count)
        most = np.bincount(row, np.maximum(ends, 0), count)
        groups: dict[tuple[Any, ...], list[Ints]] = {}
        for i in np.flatnonzero((low > least) | (most > high)).tolist():
            part = slice(self.start[i], self.start[i + 1])
            if part.start == part.stop:
                raise self._error("rows that can hold", f"row {self.rows[i]!r} without columns")
            key = (*(tuple(a[part].tolist()) for a in (weights, sizes)), low[i], high[i])
            groups.setdefault(key, []).append(columns[part])
        return groups

    def _require_exact(self, row: Ints, weights: Ints, values: Ints) -> None:
        """Reject rows whose sums may be too large to be exact."""
        sums = np.bincount(row, np.abs(weights) * values.astype(np.float64), len(self.low))
        if (sums > _LARGEST).any():
            i = int(np.argmax(sums > _LARGEST))
            found = f"up to {sums[i]:g} in row {self.rows[i]!r}"
            raise self._error(f"sums of whole numbers up to {_LARGEST:g}", found)

    def _add(self, rows: Ints, weights: Ints, sizes: Ints, low: float, high: float) -> None:
        """Add the same factor for each row of columns."""
        factor = _row_factor(np.arange(len(weights)), weights, sizes, low, high)
        if isinstance(factor, Many):
            self.content.take(LIMITS.running_variable * rows.size)
            self.assembly.add_copies(factor, rows)
            return
        self.content.take(len(rows) * (factor.size + LIMITS.joint_state))
        if rows.shape[1] == 2:
            self.assembly.add_tables(rows, np.broadcast_to(factor, (len(rows), *factor.shape)))
            return
        for row in rows.tolist():
            self.assembly.add_factor(row, factor)

    def _whole(self, row: Ints) -> tuple[Ints, Costs, Costs]:
        """Return coefficients and bounds, each row times a power of ten that makes it whole."""
        weights, low, high = np.zeros(len(row), np.int64), self.low.copy(), self.high.copy()
        left = np.ones(len(low), dtype=bool)
        for power in range(_DIGITS + 1):
            scaled = self.value * 10.0**power
            near = np.round(scaled)
            odd = (np.abs(scaled - near) > _ROUNDING * np.abs(scaled)) | (np.abs(near) >= 2**40)
            done = left & (np.bincount(row, odd, len(low)) == 0)
            weights[done[row]] = near[done[row]].astype(np.int64)
            low[done] = _up(low[done] * 10.0**power)
            high[done] = -_up(-high[done] * 10.0**power)
            left &= ~done
            if not left.any():
                return weights, low, high
        raise self._error(
            f"coefficients that are whole after multiplication by at most 1e{_DIGITS}",
            f"others in row {self.rows[int(np.argmax(left))]!r}",
        )


def _up(bound: Costs) -> Costs:
    """Return the smallest whole numbers that are not below bounds, up to rounding."""
    finite = np.isfinite(bound)
    return np.where(finite, np.ceil(bound - _ROUNDING * np.abs(np.where(finite, bound, 0))), bound)


def _row_factor(columns: Ints, weights: Ints, sizes: Ints, low: float, high: float) -> Many | Costs:
    """Return the factor `low ≤ Σ weight · label ≤ high`: a table, a count or a sum."""
    k = len(columns)
    if k <= LIMITS.clause_variables and int(np.prod(sizes)) <= 2**LIMITS.clause_variables:
        total = np.zeros((), dtype=np.int64)
        for w, d in zip(weights.tolist(), sizes.tolist(), strict=True):
            total = np.add.outer(total, w * np.arange(d))
        return np.where((low <= total) & (total <= high), 0.0, np.inf)
    if (sizes == 2).all() and (np.abs(weights) == 1).all():
        # a column with coefficient -1 counts if it is 0
        count = np.arange(k + 1) - int((weights < 0).sum())
        costs = np.where((low <= count) & (count <= high), 0.0, np.inf)
        return Cardinality(columns, (weights > 0).astype(np.int64), costs)
    rows = [w * np.arange(d) for w, d in zip(weights.tolist(), sizes.tolist(), strict=True)]
    ends = (None if np.isinf(low) else low, None if np.isinf(high) else high)
    return Linear(columns, rows, low=ends[0], high=ends[1])


def _by_rows(program: ProgramData) -> tuple[Ints, Ints, Costs]:
    """Return the matrix as starts of rows, columns and coefficients, one per row and column."""
    count, width = len(program.rows), len(program.names)
    cell = np.array(program.row, dtype=np.int64) * width + np.array(program.column, dtype=np.int64)
    cell, place = np.unique(cell, return_inverse=True)
    value = np.bincount(place, np.array(program.value, dtype=np.float64), len(cell))
    cell, value = cell[value != 0], value[value != 0]
    counts = np.bincount(cell // width, minlength=count)
    return np.append(0, np.cumsum(counts)), cell % width, value

"""Integer linear programs (LP and MPS files), read by HiGHS: columns become variables.

A row becomes the factor that it is: at most one, exactly one, at least one, a budget, or a table if
it has few variables. Columns must be whole numbers in a small range.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Any

import numpy as np

from softmap.errors import FormatError, WriteError
from softmap.io.limits import LIMITS
from softmap.io.streams import Content
from softmap.model import Model
from softmap.model.factors import Assembly
from softmap.model.inputs import within
from softmap.model.many import Cardinality, Linear, Many
from softmap.model.potentials.base import Costs, Ints

_DIGITS = 9  # coefficients of a row must be whole after multiplication by 10 to this power
_ROUNDING = 1e-14  # relative error of a decimal and of its product with a power of ten


def parse_lp(content: Content) -> Model:
    """Return the model of a linear program in CPLEX's LP format."""
    return _ProgramReader(content, ".lp").model()


def parse_mps(content: Content) -> Model:
    """Return the model of a linear program in MPS format."""
    return _ProgramReader(content, ".mps").model()


class _ProgramReader:
    """Reader of columns and rows; errors name them."""

    def __init__(self, content: Content, suffix: str) -> None:
        self.content = content
        highs = _highs(content, suffix)
        lp = highs.getLp()
        if not lp.num_col_:
            raise self._error("at least one column", "none")
        if highs.getModel().hessian_.dim_:
            raise self._error("a linear objective", "a quadratic one")
        self.names = _names(lp.col_names_, "x", lp.num_col_)
        self.rows = _names(lp.row_names_, "row ", lp.num_row_)
        self.sign = 1.0 if lp.sense_.name == "kMinimize" else -1.0
        self.costs: Costs = self.sign * np.array(lp.col_cost_)
        if not np.isfinite(self.costs).all():
            j = int(np.argmin(np.isfinite(self.costs)))
            raise self._error("finite costs", f"column {self.names[j]!r} costs {self.costs[j]:g}")
        self.constant = self.sign * float(lp.offset_)
        self.least, self.sizes = self._columns(lp)
        self.low, self.high = np.array(lp.row_lower_), np.array(lp.row_upper_)
        self.start, self.index, self.value = _by_rows(lp)  # without entries that are 0
        content.take(int(self.sizes.sum()))
        self.assembly = Assembly(self.sizes)

    def _error(self, expected: str, found: str) -> FormatError:
        return self.content.error(expected, found)

    def _columns(self, lp: Any) -> tuple[Ints, Ints]:
        """Return the least value and the number of values of each column."""
        whole = np.array([kind.name == "kInteger" for kind in lp.integrality_], dtype=bool)
        low, high = np.ceil(np.array(lp.col_lower_)), np.floor(np.array(lp.col_upper_))
        fixed = np.array(lp.col_lower_) == np.array(lp.col_upper_)
        whole = (np.resize(whole, len(low)) if len(whole) else np.zeros(len(low), bool)) | (
            fixed & (low == high)
        )
        good = whole & (high >= low) & (high - low < LIMITS.integer_values)
        if not good.all():
            j = int(np.argmin(good))
            kind = "whole numbers" if whole[j] else "real numbers"
            raise self._error(
                f"columns of whole numbers, of at most {LIMITS.integer_values} values each",
                f"column {self.names[j]!r} of {kind} from {low[j]:g} to {high[j]:g}",
            )
        return low.astype(np.int64), (high - low).astype(np.int64) + 1

    def model(self) -> Model:
        value = np.repeat(self.least, self.sizes) + within(self.sizes)
        self.assembly.add_flat_unary(np.repeat(self.costs, self.sizes) * value)
        self.assembly.add_constant(self.constant)
        for (weights, sizes, low, high), rows in self._groups().items():
            self._add(np.array(rows), np.array(weights), np.array(sizes), low, high)
        return Model.from_pieces(self.assembly.pieces()).with_names(self.names)

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


def _highs(content: Content, suffix: str) -> Any:
    """Let HiGHS read the text, from a file that it can name."""
    import highspy

    try:
        content.data.decode()  # HiGHS takes any bytes for names
    except UnicodeDecodeError as error:
        raise content.error("text in UTF-8", f"byte {error.object[error.start]:#x}") from None
    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.setOptionValue("output_flag", False)
    try:
        number, path = tempfile.mkstemp(suffix)
    except OSError as error:
        raise WriteError(tempfile.gettempdir(), error) from error
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content.data)
        status = highs.readModel(path)
    except OSError as error:
        raise WriteError(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            os.remove(path)
    if status != highspy.HighsStatus.kOk:
        raise content.error(f"a linear program ({suffix}) that HiGHS can read", "another text")
    return highs


def _names(given: Any, other: str, count: int) -> list[str]:
    """Return the names of the file, which are unique; numbers if there are none."""
    names = [str(name) for name in given]
    return names if len(set(names)) == count else [f"{other}{i + 1}" for i in range(count)]


def _by_rows(lp: Any) -> tuple[Ints, Ints, Costs]:
    """Return the matrix as starts of rows, columns and coefficients."""
    matrix = lp.a_matrix_
    start = np.array(matrix.start_, dtype=np.int64)
    index, value = np.array(matrix.index_, dtype=np.int64), np.array(matrix.value_)
    outer = np.repeat(np.arange(len(start) - 1), np.diff(start))
    row, column = (index, outer) if matrix.format_.name == "kColwise" else (outer, index)
    order = np.argsort(row, kind="stable")
    order = order[value[order] != 0]
    counts = np.bincount(row[order], minlength=lp.num_row_)
    return np.append(0, np.cumsum(counts)), column[order], value[order]

"""Dense tables: one per edge, or a few that many edges share, each edge with a weight."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap import core
from softmap.errors import ModelError, shown
from softmap.model.potentials.base import (
    LARGEST_COST,
    RANGE,
    Costs,
    Ints,
    KernelData,
    Potential,
    beyond,
    frozen,
    integers,
    largest,
    least_steps,
    numbers,
    per_edge,
    places,
    scale_factor,
    single,
    times,
)

ORDINARY = (2.0**-30, 2.0**30)  # range of factors that scale the weights and leave the tables
SMALLEST = 2.0**-1022  # smaller numbers have fewer digits


def _shifted(costs: Costs, exponent: Ints) -> Costs:
    """Return costs times powers of two, infinite where that is beyond the range of float64."""
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(costs, exponent)


class TableStack:
    """Concatenated row-major tables in one flat array; their shapes may differ."""

    def __init__(self, tables: ArrayLike | Sequence[ArrayLike]) -> None:
        if isinstance(tables, np.ndarray) and tables.dtype != object:
            self._from_array(numbers(tables, "tables"))
        elif isinstance(tables, str | bytes) or not np.iterable(tables):
            raise ModelError(f"tables must be an array or a list of them, not {shown(tables)}")
        else:
            self._from_list([numbers(t, f"table {k}") for k, t in enumerate(tables)])
        self._reject_bad_entries()

    def _from_array(self, tables: NDArray[Any]) -> None:
        if tables.ndim != 3:
            raise ModelError(
                f"tables must have shape (edges, d, d'), not {tables.shape}; "
                "Potts(weights) has one weight per edge"
            )
        count, rows, cols = tables.shape
        self.flat: Costs = frozen(tables).reshape(-1)
        self.rows: Ints = np.broadcast_to(np.int64(rows), (count,))
        self.cols: Ints = np.broadcast_to(np.int64(cols), (count,))
        self.stride = rows * cols

    def _from_list(self, tables: list[NDArray[Any]]) -> None:
        for k, table in enumerate(tables):
            if table.ndim != 2:
                raise ModelError(f"table {k} must be two-dimensional, not of shape {table.shape}")
        shapes = np.array([t.shape for t in tables], dtype=np.int64).reshape(-1, 2)
        if len(shapes) and (shapes == shapes[0]).all():
            self._from_array(np.stack(tables))
            return
        self.flat = frozen(np.concatenate([t.ravel() for t in tables]) if tables else np.zeros(0))
        self.rows, self.cols = frozen(shapes[:, 0], np.int64), frozen(shapes[:, 1], np.int64)
        self.stride = 0

    def _reject_bad_entries(self) -> None:
        # min and max propagate NaN, so that no temporary array is needed
        flat = self.flat
        self.largest = 0.0
        if not flat.size:
            return
        low = flat.min()
        sound = not np.isnan(low) and low != -np.inf
        if sound:
            self.largest = largest(flat, low)
            if self.largest <= LARGEST_COST:
                return
        wrong = beyond(flat) if sound else np.isnan(flat) | (flat == -np.inf)
        place = int(np.argmax(wrong))
        k = int(np.searchsorted(self.offset, place, side="right")) - 1
        x, y = divmod(place - int(self.offset[k]), int(self.cols[k]))
        raise ModelError(f"table {k} has {flat[place]} at ({x}, {y}); {RANGE}")

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def offset(self) -> Ints:
        """The start of each table in `flat`."""
        sizes = self.rows * self.cols
        return frozen(np.cumsum(sizes) - sizes, np.int64)

    def split(self, flat: Costs | None = None) -> list[Costs]:
        """Return the tables as a list of views, or such views of another flat array."""
        own = self.flat if flat is None else flat
        sizes = zip(self.offset, self.rows, self.cols, strict=True)
        return [own[o : o + r * c].reshape(r, c) for o, r, c in sizes]

    @property
    def even(self) -> Costs | None:
        """The tables as one (count, d, d') array, if there are some and all shapes agree."""
        if not self.stride or not len(self):
            return None
        return self.flat.reshape(len(self), int(self.rows[0]), int(self.cols[0]))

    def array(self) -> Costs | list[Costs]:
        """Return one (count, d, d') array if all shapes agree, else a list of tables."""
        even = self.even
        return self.split() if even is None else even

    def extremes(self) -> tuple[Costs, Costs]:
        """Return the smallest and largest finite entry of each table (0 if it has none)."""
        low, high = np.empty((2, len(self)))
        even = np.arange(len(self) + 1) * self.stride
        start = even if self.stride else np.append(self.offset, len(self.flat))
        core.row_extremes(self.flat, start, low, high)
        return low, high

    def entries(self, k: Any, x: Any, y: Any) -> Costs:
        """Return entry (x, y) of tables `k`; the three are broadcast together."""
        begin = np.multiply(k, self.stride) if self.stride else self.offset[k]
        return self.flat[begin + np.multiply(x, self.cols[k]) + y]


def _check_shapes(name: str, have: tuple[Ints, Ints], need: tuple[Ints, Ints]) -> None:
    wrong = (have[0] != need[0]) | (have[1] != need[1])
    if wrong.any():
        k = int(np.argmax(wrong))
        raise ModelError(
            f"{name}: the table of edge {k} has shape ({have[0][k]}, {have[1][k]}), "
            f"but its endpoints have {need[0][k]} and {need[1][k]} labels"
        )


class Tables(Potential):
    """One dense table of costs per edge.

    Parameters
    ----------
    tables : (m, d, d') array or list of m two-dimensional arrays
        Rows are the labels of an edge's first endpoint, columns those of its second. Use a list if
        shapes differ.

    Examples
    --------
    >>> import softmap
    >>> table = softmap.Tables([[[0, 1], [2, 0]]])
    >>> softmap.Model([[0, 0], [0, 0]], [[0, 1]], table).energy([1, 0])
    2.0
    """

    family = "tables"

    def __init__(self, tables: ArrayLike | Sequence[ArrayLike]) -> None:
        self._stack = TableStack(tables)

    @property
    def tables(self) -> Costs | list[Costs]:
        """The tables: one 3-D array if all shapes agree, else a list."""
        return self._stack.array()

    def __len__(self) -> int:
        return len(self._stack)

    def value(self, k: Any, x: Any, y: Any) -> Costs:
        return self._stack.entries(k, x, y)

    def stack(self, k: ArrayLike, rows: int, cols: int) -> Costs:
        even = self._stack.even
        if even is None or even.shape[1:] != (rows, cols):
            return super().stack(k, rows, cols)
        return even[np.asarray(k)]

    def factors(self, k: Ints, rows: int, cols: int) -> tuple[Costs, Costs]:
        even, ones = self._stack.even, np.ones(len(k))
        if even is not None and np.array_equal(k, np.arange(len(even))):
            return ones, even  # all of them: no copy
        return ones, self.stack(k, rows, cols)

    def take(self, index: ArrayLike) -> Tables:
        tables, chosen = self.tables, places(index, len(self))
        return Tables(
            tables[chosen] if isinstance(tables, np.ndarray) else [tables[k] for k in chosen]
        )

    def scaled(self, factor: float) -> Tables:
        tables = self.tables
        if isinstance(tables, np.ndarray):
            return Tables(times(tables, factor))
        return Tables([times(t, factor) for t in tables])

    def arrays(self) -> dict[str, NDArray[Any]]:
        s = self._stack
        return {"flat": s.flat, "rows": s.rows, "cols": s.cols}

    def largest(self, rows: Ints, cols: Ints) -> float:
        return self._stack.largest

    def extremes(self, rows: Ints, cols: Ints) -> tuple[Costs, Costs]:
        return self._stack.extremes()

    def steps(self, rows: Ints, cols: Ints) -> Costs:
        return least_steps(self._stack.flat, self._stack.offset)

    def check(self, rows: Ints, cols: Ints) -> None:
        super().check(rows, cols)
        _check_shapes("Tables", (self._stack.rows, self._stack.cols), (rows, cols))

    def kernel_data(self, rows: Ints, cols: Ints) -> KernelData:
        s = self._stack
        offset = None if s.stride else s.offset
        return KernelData("tables", offset=offset, stride=s.stride, table=s.flat)


class SharedTables(Potential):
    """Tables that many edges share: edge k has the costs `weights[k] * tables[index[k]]`.

    Parameters
    ----------
    tables : (K, d, d') array or list of K two-dimensional arrays
        Rows are the labels of an edge's first endpoint, columns those of its second.
    index : int or int array
        The table of each edge, or one table for all edges.
    weights : float array, optional
        One finite, non-negative factor per edge; 1 by default.

    Examples
    --------
    >>> import softmap
    >>> shared = softmap.SharedTables([[[0, 1], [2, 0]]], index=[0, 0], weights=[1, 0.5])
    >>> softmap.Model([[0, 0]] * 3, [[0, 1], [1, 2]], shared).energy([1, 0, 1])
    2.5
    """

    family = "shared"

    def __init__(
        self,
        tables: ArrayLike | Sequence[ArrayLike],
        index: ArrayLike,
        weights: ArrayLike | None = None,
    ) -> None:
        self._stack = TableStack(tables)
        given_index = np.atleast_1d(integers(index, "SharedTables: index"))
        self.index: Ints = frozen(given_index, np.int64)
        self.alike = single(index) and weights is None
        if self.index.ndim != 1:
            raise ModelError(f"SharedTables: index must be a list, not of shape {self.index.shape}")
        if self.index.size and not (0 <= self.index.min() and self.index.max() < len(self._stack)):
            raise ModelError(f"SharedTables: index must lie in 0..{len(self._stack) - 1}")
        given = np.ones(len(self.index)) if weights is None else weights
        self.weights = per_edge(given, "SharedTables weights")
        if len(self.weights) != len(self.index):
            raise ModelError(
                f"SharedTables: {len(self.weights)} weights for {len(self.index)} edges"
            )
        if self.weights.size and not (self.weights.min() >= 0 and np.isfinite(self.weights).all()):
            raise ModelError("SharedTables: weights must be finite and not negative")
        if self._stack.flat.max(initial=0.0) == np.inf and (zero := self.weights == 0).any():
            hard = np.maximum.reduceat(self._stack.flat, self._stack.offset) == np.inf
            if (bad := zero & hard[self.index]).any():
                raise ModelError(
                    f"SharedTables: edge {int(np.argmax(bad))} has weight 0 but a table with "
                    "forbidden (+inf) entries; 0 times +inf has no meaning"
                )

    @property
    def tables(self) -> Costs | list[Costs]:
        """The distinct tables."""
        return self._stack.array()

    def __len__(self) -> int:
        return len(self.index)

    def value(self, k: Any, x: Any, y: Any) -> Costs:
        return self.weights[k] * self._stack.entries(self.index[k], x, y)

    def factors(self, k: Ints, rows: int, cols: int) -> tuple[Costs, Costs]:
        x, y = np.arange(rows)[:, None], np.arange(cols)[None, :]
        return self.weights[k], self._stack.entries(self.index[k][:, None, None], x, y)

    def take(self, index: ArrayLike) -> SharedTables:
        chosen = places(index, len(self))
        return SharedTables(self.tables, self.index[chosen], self.weights[chosen])

    def scaled(self, factor: float) -> SharedTables:
        number = scale_factor(factor)
        if ORDINARY[0] <= number <= ORDINARY[1]:
            with np.errstate(over="ignore", under="ignore"):
                weights = self.weights * number
            if bool(((weights <= LARGEST_COST) & (weights >= SMALLEST) | (weights == 0)).all()):
                return SharedTables(self.tables, self.index, weights)
        return self._scaled_near_one(number)

    def _scaled_near_one(self, factor: float) -> SharedTables:
        """Return the potential with all costs times a factor, and tables with costs up to 1.

        Neither tables nor weights leave the range of float64 then, unless the costs do: a weight is
        half of the largest cost of its edge, or more. Powers of two move no rounding. Weights of
        tables without finite costs but 0 are kept: they may be of any size.
        """
        mantissa, exponent = math.frexp(factor)
        reach = np.max(np.abs(self._stack.extremes()), axis=0)
        shift = np.where(reach > 0, np.frexp(reach)[1], 0)
        each = np.repeat(shift, self._stack.rows * self._stack.cols)
        flat = _shifted(self._stack.flat, -each)
        costly = reach[self.index] > 0
        weights = _shifted(self.weights * (2.0 * mantissa), shift[self.index] + exponent - 1)
        weights = np.where(costly, weights, self.weights)  # of tables with nothing to scale
        if (lost := ~(weights <= LARGEST_COST)).any():
            k = int(np.argmax(lost))
            cost = self.weights[k] * reach[self.index[k]]
            raise ModelError(f"a cost of {cost} times {factor} is beyond the range of float64")
        even = self._stack.even
        tables = self._stack.split(flat) if even is None else flat.reshape(even.shape)
        return self._without_lost(tables, weights)

    def _without_lost(self, tables: Costs | list[Costs], weights: Costs) -> SharedTables:
        """Return the potential of these tables and weights; forbidden entries stay forbidden.

        An edge of costs that underflow gets a table of 0 and +inf.
        """
        hard = np.array([bool(np.isposinf(table).any()) for table in tables], dtype=bool)
        lost = (weights < SMALLEST) & (self.weights > 0) & hard[self.index]
        if not lost.any():
            return SharedTables(tables, self.index, weights)
        kinds, which = np.unique(self.index[lost], return_inverse=True)
        more = [np.where(np.isposinf(tables[t]), np.inf, 0.0) for t in kinds.tolist()]
        index, weights = self.index.copy(), weights.copy()
        index[lost], weights[lost] = len(tables) + which.reshape(-1), 1.0
        return SharedTables([*tables, *more], index, weights)

    def arrays(self) -> dict[str, NDArray[Any]]:
        s = self._stack
        stack = {"flat": s.flat, "rows": s.rows, "cols": s.cols}
        return {**stack, "index": self.index, "weights": self.weights}

    def largest(self, rows: Ints, cols: Ints) -> float:
        return self._stack.largest * largest(self.weights)

    def extremes(self, rows: Ints, cols: Ints) -> tuple[Costs, Costs]:
        low, high = self._stack.extremes()
        return low[self.index] * self.weights, high[self.index] * self.weights

    def steps(self, rows: Ints, cols: Ints) -> Costs:
        steps = least_steps(self._stack.flat, self._stack.offset)[self.index]
        return np.multiply(steps, self.weights, where=self.weights > 0, out=np.zeros_like(steps))

    def check(self, rows: Ints, cols: Ints) -> None:
        super().check(rows, cols)
        have = self._stack.rows[self.index], self._stack.cols[self.index]
        _check_shapes("SharedTables", have, (rows, cols))
        with np.errstate(over="ignore"):
            wrong = ~np.isfinite(self.extremes(rows, cols)).all(axis=0)
        if wrong.any():
            k = int(np.argmax(wrong))
            raise ModelError(
                f"SharedTables: edge {k} has weight {self.weights[k]}; its product with the costs "
                "of the table overflows float64"
            )

    def kernel_data(self, rows: Ints, cols: Ints) -> KernelData:
        offset = self._stack.offset[self.index]
        return KernelData("tables", weight=self.weights, offset=offset, table=self._stack.flat)

"""Exact sums over the last variables of many cases at once, as products of matrices.

If the labels of all but a few variables are fixed, those few are split into two halves. Tables
between them are one matrix for all cases. A table with a fixed variable is, in each case, a
function of one half. So the sum of case k is u_k · M v_k, and those of all cases are one product of
matrices: 2 flops per labelling, at the speed of dense linear algebra.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from softmap.methods.marginals.tables import EPS, Ints, LogTables
from softmap.relaxation.dual import Floats

LABELLINGS = 1 << 20  # of the variables that are not fixed: a matrix of 8 MB
UNDERFLOW = 2.0**-1000  # more than an underflow takes off a product of three numbers up to 1

Factor = tuple[tuple[int, ...], Floats]


class Leaves:
    """Sums over the first variables of an order, for cases that fix the labels of all others.

    Parameters
    ----------
    logs : LogTables
        The tables.
    order : int array
        All variables; those that are summed over come first.
    labellings : int, optional
        Largest number of labellings of the variables that are summed over.

    Attributes
    ----------
    depth : int or None
        Number of variables that a case fixes; None if a table has a fixed variable and variables
        of both halves, so that the sums are not of this form.
    error : float
        Bound on the rounding error of each log.
    entries : int
        Number of table entries that each case computes.
    """

    def __init__(self, logs: LogTables, order: Ints, labellings: int = LABELLINGS) -> None:
        sizes = logs.flat.num_labels[order].astype(np.float64)
        count = int((np.cumprod(sizes) <= labellings).sum())
        self.depth: int | None = len(order) - count
        half = int((np.cumprod(sizes[:count]) <= math.sqrt(labellings)).sum())
        if half == 0:  # a variable with so many labels is no half
            self.depth = None
            return
        self._halves = order[:half].tolist(), order[half:count].tolist()
        self._fixed = {int(v): k for k, v in enumerate(order[::-1][: self.depth])}
        self._num = logs.flat.num_labels
        self._shift = logs.shift
        self._outside: list[Factor] = []
        self._between: list[Factor] = []
        self._sides: tuple[list[Factor], list[Factor]] = ([], [])
        size, terms = abs(logs.shift), 1
        for scope, table in logs.factors():
            size += float(np.abs(table, where=np.isfinite(table), out=np.zeros(table.shape)).max())
            terms += 1
            if not self._put(scope, table):
                self.depth = None
                return
        rows, cols = (math.prod(int(self._num[v]) for v in half) for half in self._halves)
        self.entries = rows + cols
        self.error = logs.error + 4 * EPS * (terms * size + rows + cols + 32)
        self._matrix, self._top = self._joined(rows, cols)

    def _put(self, scope: tuple[int, ...], table: Floats) -> bool:
        """Put a table where it counts; return False if there is no such place."""
        inside = [[v for v in scope if v in half] for half in self._halves]
        if not any(v in self._fixed for v in scope):
            self._between.append((scope, table))
        elif not inside[0] and not inside[1]:
            self._outside.append((scope, table))
        elif inside[0] and inside[1]:
            return False
        else:
            self._sides[1 if inside[1] else 0].append((scope, table))
        return True

    def _joined(self, rows: int, cols: int) -> tuple[Floats, float]:
        variables = self._halves[0] + self._halves[1]
        out = np.zeros([int(self._num[v]) for v in variables])
        for scope, table in self._between:
            out += _spread(variables, scope, table)
        top = float(out.max()) if np.isfinite(out.max()) else 0.0
        return np.exp(out.reshape(rows, cols) - top), top

    def sums(self, cases: Ints) -> tuple[Floats, Floats]:
        """Return bounds, from below and above, on log Σ of each case.

        Parameters
        ----------
        cases : int array (k, depth)
            Labels of the last variable of the order, of the one before it, and so on.
        """
        known = np.full(len(cases), self._shift + self._top)
        for scope, table in self._outside:
            known = known + table[tuple(cases[:, self._fixed[v]] for v in scope)]
        one, other = (self._vectors(side, cases) for side in (0, 1))
        known = known + one[1] + other[1]
        sums = ((one[0] @ self._matrix) * other[0]).sum(axis=1)
        error = self.error + EPS * 8 * np.abs(np.where(np.isfinite(known), known, 0.0))
        with np.errstate(divide="ignore"):
            below, above = np.log(sums), np.log(sums + self._matrix.size * UNDERFLOW)
        return known + below - error, known + above + error

    def _vectors(self, side: int, cases: Ints) -> tuple[Floats, Floats]:
        """Return the factors of one half, each row with the largest entry 1, and the logs of it."""
        half = self._halves[side]
        found: dict[tuple[int, ...], Floats] = {}
        for scope, table in self._sides[side]:
            inside = tuple(v for v in scope if v not in self._fixed)
            taken = [k for k, v in enumerate(scope) if v in self._fixed]
            rest = [k for k in range(table.ndim) if k not in taken]
            chosen = table.transpose(*taken, *rest)[
                tuple(cases[:, self._fixed[scope[k]]] for k in taken)
            ]
            found[inside] = found[inside] + chosen if inside in found else chosen
        out = np.zeros((len(cases), *(int(self._num[v]) for v in half)))
        for inside, values in found.items():
            out += _spread(half, inside, values)
        flat = out.reshape(len(cases), -1)
        top = flat.max(axis=1)
        top = np.where(np.isfinite(top), top, 0.0)
        return np.exp(flat - top[:, None]), top


def _spread(variables: Sequence[int], scope: Sequence[int], table: Floats) -> Floats:
    """Return a table with axes for all variables; axes before those of the scope are kept."""
    extra = table.ndim - len(scope)
    axes = sorted(range(len(scope)), key=lambda k: variables.index(scope[k]))
    moved = table.transpose(*range(extra), *(extra + k for k in axes))
    sizes = dict(zip(scope, table.shape[extra:], strict=True))
    return moved.reshape(*table.shape[:extra], *(sizes.get(v, 1) for v in variables))

"""The semidefinite bound of models of many labels, by alternating directions.

The matrix `x x'` of indicators is relaxed to one that has no negative entry and no negative
eigenvalue, zeros for pairs of labels that exclude each other, and equal sums over the labels of
each variable. Together these imply the local polytope. Two matrices, one with the entries and one
with the eigenvalues, are drawn together by a third one, the dual: its part with negative
eigenvalues is a sum of squares, and the rest are costs moved between pairs and variables. So every
step can prove a bound (`IndicatorForm.certify`).
"""

from __future__ import annotations

import math
import time

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal, eigvalsh_tridiagonal
from scipy.sparse import csr_array

from softmap import core
from softmap.subsolvers.spins.bound import UNIT
from softmap.subsolvers.spins.indicators import IndicatorForm, Squares
from softmap.subsolvers.spins.spin_numbers import SquareSteps

__all__ = ["SquareBound"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LONGER = 1.618  # length of the step of the dual matrix; below (1 + √5) / 2 it converges


class SquareBound:
    """Bounds of a form that improve step by step.

    Parameters
    ----------
    form : IndicatorForm
        The cost as a function of indicators.
    logged : bool
        Whether the squares of the best bound are kept.
    steps : SquareSteps
        The numbers of the run.

    Attributes
    ----------
    bound : float
        The best bound.
    bounds : int
        Number of bounds that were computed.
    work : int
        Number of matrix entries that were multiplied by vectors, 16 numbers at a time.
    """

    nodes, done = 1, False

    def __init__(self, form: IndicatorForm, *, logged: bool, steps: SquareSteps) -> None:
        self._form, self._logged, self._numbers = form, logged, steps
        self._up, self._down = form.basis, csr_array(form.basis.T)
        self._costs = np.where(form.allowed, form.costs, 0.0)
        self._penalty = steps.penalty * max(float(np.abs(self._costs).mean()), 1e-290)
        share = 1.0 / form.sizes[form.variable]
        self._near = np.where(form.allowed, np.outer(share, share), 0.0)
        np.fill_diagonal(self._near, share)
        self._dual = np.zeros_like(self._near)
        self._steps, self._seconds = 0, 0.0
        self.bound, self.bounds, self.work = -math.inf, 0, 0
        self.leaves: Squares | None = None
        self._best = form.rounded(self._near, steps.rows)

    def labels(self, variables: int) -> Ints:
        """The labels of lowest cost that were found."""
        return self._best[1][:variables]

    def relax(self, steps: int, deadline: core.Deadline, end: core.Deadline) -> float:
        """Make some steps, and compute the bound after them; return what it has gained.

        Steps that were made count if a deadline passes: another call continues after them.

        Parameters
        ----------
        steps : int
            Number of steps.
        deadline : Deadline
            When to stop: `core.OutOfTime` is raised before a step.
        end : Deadline
            The end of the run, which interrupts a step: `core.OutOfTime` is raised. The bound is
            computed before, and no step starts if one with a bound would not end in time, by the
            measured time of the last step.
        """
        proved, numbers = None, self._numbers
        while proved is None:
            deadline.require()
            if end.left < numbers.proving * self._seconds:
                return 0.0
            began, last = time.perf_counter(), end.left < (numbers.proving + 1) * self._seconds
            proved = self._step(end, last=last or self._steps + 1 >= steps)
            self._steps += 1
            if proved is None:
                self._seconds = time.perf_counter() - began
        self._steps, before = 0, self.bound
        self.bounds += 1
        rounded = self._form.rounded(self._near, numbers.rows, end)
        self._best = min(self._best, rounded, key=lambda one: one[0])
        if proved.bound > before:
            self.bound, self.leaves = proved.bound, proved if self._logged else None
        return self.bound - before

    def _step(self, end: core.Deadline, *, last: bool) -> Squares | None:
        """One step; the last one of several proves a bound and balances the penalty.

        Nothing changes if `end` passes: `core.OutOfTime` is raised.
        """
        form, penalty = self._form, self._penalty
        point = self._near - (self._costs + self._dual) / penalty
        point[~form.allowed] = 0.0
        np.maximum(point, 0.0, out=point)
        inner = self._down @ np.ascontiguousarray((self._down @ (point + self._dual / penalty)).T)
        inner = (inner + inner.T) / 2
        level, vectors = _part_above(inner, len(form.sizes), end)
        roots = self._up @ vectors
        near = roots @ roots.T
        moved, apart, proved = float(np.linalg.norm(near - self._near)), point - near, None
        if last:
            below = _part_below(inner, level, vectors, end)
            factor = self._up @ (math.sqrt(penalty) * below)
            proved = self._proved(factor, self._dual + penalty * apart)
            distance = float(np.linalg.norm(apart))
            sense = int(distance > 2 * moved) - int(moved > 2 * distance)
            self._penalty *= self._numbers.balanced**sense
        self._near = near
        self._dual += LONGER * penalty * apart
        self.work += self._up.shape[1] ** 3 // 16
        return proved

    def _proved(self, factor: Floats, dual: Floats) -> Squares:
        """The bound of a dual matrix, of which `factor` is the part with negative eigenvalues."""
        form = self._form
        rest = form.means(dual + factor @ factor.T)
        both = np.add.reduceat(rest, form.start, axis=0) / form.sizes[:, None]
        return form.certify(factor, both[form.variable] / 2 - rest)


def _part_above(matrix: Floats, total: float, end: core.Deadline) -> tuple[float, Floats]:
    """t and V, where V V' is the positive part of `matrix - t` and has the trace `total`."""
    reflections, n = matrix.copy(), len(matrix)
    diagonal, beside = np.empty((2, n))
    core.make_tridiagonal(reflections, diagonal, beside, end)
    beside = beside[:-1]
    values = eigvalsh_tridiagonal(diagonal, beside)
    level = _threshold(values, total)
    found, vectors = _largest(diagonal, beside, int((values > level).sum()))
    rows = np.ascontiguousarray(vectors.T)
    core.multiply_by_reflections(reflections, rows, end)
    return level, rows.T * np.sqrt(np.maximum(found - level, 0.0))


def _largest(diagonal: Floats, beside: Floats, count: int) -> tuple[Floats, Floats]:
    """The largest eigenvalues of a tridiagonal matrix, and their eigenvectors."""
    n = len(diagonal)
    try:
        found = eigh_tridiagonal(
            diagonal, beside, select="i", select_range=(n - count, n - 1), lapack_driver="stebz"
        )
    except LinAlgError:  # inverse iteration may fail for clusters of eigenvalues
        values, vectors = np.linalg.eigh(
            np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
        )
        return values[n - count :], vectors[:, n - count :]
    values, vectors = found
    return values, vectors


def _part_below(matrix: Floats, level: float, above: Floats, end: core.Deadline) -> Floats:
    """F, where F F' is the negative part of `matrix - t`, with its sign flipped, and slightly more.

    Parameters
    ----------
    matrix : float64 array (N, N)
        The matrix.
    level : float
        t.
    above : float64 array (N, r)
        V of `_part_above`.
    end : Deadline
        When to stop: `core.OutOfTime` is raised.

    Raises FloatingPointError if a matrix has an entry that is not finite.
    """
    below = above @ above.T - matrix + level * np.eye(len(matrix))
    if not np.isfinite(below).all():  # otherwise the loop would not end
        raise FloatingPointError("eigenvectors are not finite")
    shift = len(matrix) * UNIT * float(np.abs(matrix).max()) + 1e-290
    while True:
        factor = below + shift * np.eye(len(matrix))
        if core.cholesky(factor, end):
            return np.tril(factor)
        shift *= 4.0


def _threshold(values: Floats, total: float) -> float:
    """The number t for which the positive parts of `values - t` have the given sum."""
    falling = values[::-1]
    level = (np.cumsum(falling) - total) / np.arange(1, len(values) + 1)
    return float(level[np.flatnonzero(falling > level)[-1]])

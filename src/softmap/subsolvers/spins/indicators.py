"""A model of pairs as a quadratic function of indicators: one number, 0 or 1, per possible label.

If x has one 1 per variable, the cost is `constant + x' costs x`. Beside that, for any matrix F and
any numbers m of a label and another variable,

    x' costs x = |F' x|² + Σ_i (own of i's label) + Σ_{i≠j} (rest of the labels of i and j),
    own of a   = costs[a, a] - |F_a|² + 2 Σ_j m[a, j],
    rest of a, b = costs[a, b] - F_a · F_b - m[a, j] - m[b, i],

because the sums over m cancel. A square is not negative, so that the least costs of all variables
and pairs bound the cost. F and m need not be exact in any way: only the rounding errors of these
few operations are subtracted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert
from scipy.sparse import block_diag, csr_array, hstack

from softmap import core
from softmap.model import Network
from softmap.model.inputs import within
from softmap.relaxation.flat import flatten
from softmap.subsolvers.spins.bound import UNIT

__all__ = ["IndicatorForm", "Squares"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Squares:
    """Squares and moved costs that prove a bound.

    Attributes
    ----------
    bound : float
        The bound; it leaves room for the rounding errors of another certificate.
    factor : float64 array (K, r)
        F: one square per column.
    moved : float64 array (K, n)
        m, for each label and each other variable.
    possible : bool array
        Which labels of the model have rows.
    """

    bound: float
    factor: Floats
    moved: Floats
    possible: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class IndicatorForm:
    """The cost `constant + x' costs x` of indicators x of K possible labels of n variables.

    Attributes
    ----------
    costs : float64 array (K, K)
        Symmetric; +inf for pairs of labels that exclude each other.
    variable : int64 array (K,)
        The variable of each possible label, in increasing order.
    label : int64 array (K,)
        The label itself.
    possible : bool array
        Which labels of the model are possible.
    constant : float
        The constant of the model.
    lost : float
        Upper bound on the rounding error of an entry of `costs`.
    """

    costs: Floats
    variable: Ints
    label: Ints
    possible: NDArray[np.bool_]
    constant: float
    lost: float

    @classmethod
    def of(cls, model: Network) -> IndicatorForm:
        """Return the form of a model of pairs."""
        flat, sizes = flatten(model), model.num_labels.astype(np.int64)
        possible, variable = np.isfinite(flat.unary), np.repeat(np.arange(model.n), sizes)
        k, ends = len(possible), flat.scope.reshape(-1, 2)
        first, second = ends.T
        area = sizes[first] * sizes[second]
        row, column = np.divmod(within(area), np.repeat(sizes[second], area))
        start = np.cumsum(sizes) - sizes
        at = (row + np.repeat(start[first], area)) * k + column + np.repeat(start[second], area)
        costs = np.bincount(at, flat.tables / 2, k * k).reshape(k, k)
        costs = costs + costs.T
        costs[variable[:, None] == variable] = np.inf
        np.fill_diagonal(costs, flat.unary)
        costs = costs[np.ix_(possible, possible)]
        keys = np.minimum(first, second) * model.n + np.maximum(first, second)
        tables = int(np.unique(keys, return_counts=True)[1].max())
        sums = np.abs(np.where(np.isfinite(flat.tables), flat.tables, 0.0)).max()
        lost = tables**2 * UNIT * float(sums) if tables > 1 else 0.0
        label = (np.arange(k) - start[variable])[possible]
        return cls(costs, variable[possible], label, possible, flat.constant, lost)

    @cached_property
    def allowed(self) -> NDArray[np.bool_]:
        """Which pairs of labels do not exclude each other."""
        return np.isfinite(self.costs)

    @cached_property
    def start(self) -> Ints:
        """The first possible label of each variable."""
        return np.flatnonzero(np.diff(self.variable, prepend=-1))

    @cached_property
    def sizes(self) -> Ints:
        """The number of possible labels of each variable."""
        return np.bincount(self.variable)

    @cached_property
    def basis(self) -> csr_array:
        """Orthonormal columns: they span the vectors whose sums over each variable are equal."""
        parts = [csr_array(helmert(d).T) if d > 1 else csr_array((1, 0)) for d in self.sizes]
        equal = 1.0 / self.sizes[self.variable]
        equal /= math.sqrt(equal @ equal)
        return csr_array(hstack([block_diag(parts), equal[:, None]]))

    def means(self, matrix: Floats) -> Floats:
        """The mean of a row over the labels of each variable."""
        return np.asarray(np.add.reduceat(matrix, self.start, axis=1) / self.sizes)

    def certify(self, factor: Floats, moved: Floats) -> Squares:
        """Return the bound that squares and moved costs prove, -inf if it is not finite.

        Parameters
        ----------
        factor : float64 array (K, r)
            F.
        moved : float64 array (K, n)
            m; what it has for a label's own variable is ignored.
        """
        n = len(self.sizes)
        moved[np.arange(len(moved)), self.variable] = 0.0
        squares = factor @ factor.T
        rest = self._rest(squares, moved[:, self.variable], factor.shape[1])
        rest = np.minimum.reduceat(np.minimum.reduceat(rest, self.start), self.start, axis=1)
        own = np.minimum.reduceat(self._own(squares.diagonal(), moved, factor.shape[1]), self.start)
        terms = np.concatenate([own, 2 * rest[np.triu_indices(n, 1)], [self.constant]])
        bound = core.lower_sum(terms) if np.isfinite(terms).all() else -math.inf
        return Squares(float(bound), factor, moved, self.possible)

    def _rest(self, squares: Floats, moved: Floats, rank: int) -> Floats:
        """What remains of pairs, less several times the rounding errors: room for a checker."""
        lengths = np.sqrt(squares.diagonal())
        sizes = (rank + 8) * np.outer(lengths, lengths) + 8 * (np.abs(moved) + np.abs(moved.T))
        sizes += 8 * np.abs(np.where(self.allowed, self.costs, 0.0))
        left = self.costs - squares - (moved + moved.T)
        return np.asarray(left - (8 * UNIT * sizes + 4 * self.lost + 1e-290))

    def _own(self, square: Floats, moved: Floats, rank: int) -> Floats:
        """What remains of single labels, likewise."""
        costs = self.costs.diagonal()
        sizes = np.abs(costs) + 2 * np.abs(moved).sum(axis=1) + square
        left = costs - square + 2 * moved.sum(axis=1)
        return np.asarray(left - (8 * UNIT * (rank + moved.shape[1] + 8) * sizes + 1e-290))

    def rounded(
        self, point: Floats, rows: int, deadline: core.Deadline | None = None
    ) -> tuple[float, Ints]:
        """Return labels from a matrix that stands for `x x'`, after their cost.

        Some labels are taken for granted, one at a time: the others are those of the largest
        entries of its row. The best result is improved by single labels.

        Parameters
        ----------
        point : float64 array (K, K)
            Larger entries stand for pairs of labels that are more likely.
        rows : int
            Number of labels that are taken for granted, one at a time.
        deadline : Deadline, optional
            When to stop improving; none by default.
        """
        some = point[np.linspace(0, len(point) - 1, rows).astype(np.int64)]
        some = np.concatenate([point.diagonal()[None], some])
        chosen = np.stack([
            first + some[:, first : first + d].argmax(axis=1)
            for first, d in zip(self.start, self.sizes, strict=True)
        ], axis=1)  # fmt: skip
        prices = [self.costs[np.ix_(each, each)].sum() for each in chosen]
        best = chosen[int(np.argmin(prices))]
        if math.isfinite(min(prices)):
            self._improve(best, deadline or core.Deadline())
        return float(self.costs[np.ix_(best, best)].sum()), self.label[best]

    def _improve(self, chosen: Ints, deadline: core.Deadline) -> None:
        """Change the label that gains most until no change gains anything, or time is up."""
        every = np.arange(len(self.costs))
        least = 1e-12 * float(np.abs(self.costs[self.allowed]).max())
        while not deadline.passed:
            beside = self.costs[:, chosen]
            beside[every, self.variable] = 0.0
            price = self.costs.diagonal() + 2 * beside.sum(axis=1)
            gain = price[chosen][self.variable] - price
            best = int(gain.argmax())
            if not gain[best] > least:
                return
            chosen[self.variable[best]] = best

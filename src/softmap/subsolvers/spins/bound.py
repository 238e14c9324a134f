"""Unit vectors, triangle inequalities, and the bound that their multipliers prove.

For any diagonal y and multipliers g >= 0 of triangles with matrices A (as in
`src/core/spins/vectors.hpp`), spins x with signs obey

    x' C x >= sum(y) - sum(g)   if   C - Σ g A - diag(y) has no negative eigenvalue.

That is certified by a Cholesky factorisation in floating point, with a margin for its rounding
errors (Rump, BIT 46, 2006).

Products of matrices are those of sparse ones or of `einsum`, in blocks: the threads of a BLAS
library wait for each other on a busy machine and look at no deadline.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh_tridiagonal
from scipy.sparse import csr_array

from softmap import core
from softmap.subsolvers.spins.spin_numbers import SpinSteps
from softmap.tuning import TUNING

__all__ = ["SpinBound", "SpinMultipliers", "triangle_matrix"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SIGNS = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], dtype=np.float64)
UNIT = 2.0**-53
BLOCK = 256  # rows of a product between two looks at the deadline


@dataclass(frozen=True, eq=False)
class SpinMultipliers:
    """A certified bound on `x' C x`.

    Attributes
    ----------
    bound : float
        The bound; it leaves room for the rounding errors of another certificate.
    diagonal : float64 array (N,)
        y.
    triangles : int32 array (m, 4)
        Three spins and the number of the signs of their products.
    weights : float64 array (m,)
        The multipliers of the triangles.
    rest : float
        The most that further sweeps with these multipliers can add, up to rounding errors.
    """

    bound: float
    diagonal: Floats
    triangles: NDArray[np.int32]
    weights: Floats
    rest: float


def triangle_matrix(n: int, triangles: Ints, weights: Floats) -> Floats:
    """Return Σ g A, so that `x' A x` is the sum of the three signed products."""
    i, j, k, kind = triangles.T
    at = np.concatenate([i * n + j, i * n + k, j * n + k])
    half = (SIGNS[kind] * (weights / 2)[:, None]).T.ravel()
    upper = np.bincount(at, half, n * n).reshape(n, n)
    return np.asarray(upper + upper.T, np.float64)


class SpinBound:
    """The semidefinite bound of one matrix.

    Parameters
    ----------
    matrix : float64 array (N, N)
        Symmetric, without a diagonal.
    vectors : float64 array (N, rank)
        Unit vectors to start from; they are changed.
    triangles, weights : arrays, optional
        Triangles to start from, with multipliers.

    Attributes
    ----------
    vectors : float64 array (N, rank)
        The current vectors.
    """

    def __init__(
        self,
        matrix: Floats,
        vectors: Floats,
        triangles: Ints | None = None,
        weights: Floats | None = None,
    ) -> None:
        self.matrix, self.vectors = matrix, vectors
        self._triangles = np.zeros((0, 4), np.int64) if triangles is None else triangles
        self._weights = np.zeros(0) if weights is None else weights
        self._averages = self._weights.copy()
        self._dual = vectors.copy()  # vectors that are optimal for the averages
        self._scale = max(float(np.abs(matrix).mean()), 1e-300)

    @staticmethod
    def start(n: int, seed: int) -> Floats:
        """Return n random unit vectors.

        Their number of entries is the next multiple of 8 above √(2n), at most 64.
        """
        rank = min(64, 8 * math.ceil((math.sqrt(2 * n) + 1) / 8))
        vectors = np.random.default_rng(seed).standard_normal((n, rank))
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    @property
    def triangles(self) -> tuple[Ints, Floats]:
        """The current triangles and the averages of their multipliers."""
        return self._triangles, self._averages

    def relax(self, sweeps: int, deadline: core.Deadline | None = None) -> None:
        """Sweep without triangles."""
        _mix(self.matrix, self.vectors, sweeps, deadline)
        self._dual = self.vectors.copy()

    def tighten(
        self, steps: int, penalty: float, keep: float, deadline: core.Deadline | None = None
    ) -> None:
        """Steps of vectors and multipliers together."""
        core.mix_triangles(
            self.matrix, self.vectors, self._triangles, self._weights, self._averages,
            penalty * self._scale, keep, steps, deadline,
        )  # fmt: skip

    def separate(self, least: float, most: int, deadline: core.Deadline | None = None) -> float:
        """Add violated triangles, remove slack ones; return the largest violation.

        Parameters
        ----------
        least : float
            Violation from which triangles are added.
        most : int
            Largest number of them.
        deadline : Deadline, optional
            When to stop.
        """
        n, gram = len(self.matrix), np.einsum("ik,jk->ij", self.vectors, self.vectors)
        used = (self._averages > 1e-2 * self._scale) | (self._weights > 1e-3 * self._scale)
        used |= _slack(gram, self._triangles) < least
        flat = core.violated_triangles(gram, least, most, deadline)
        found = np.asarray(flat, np.int64).reshape(-1, 4)
        old = self._triangles[used]
        place = n ** np.array([2, 1, 0]) * 4
        keys, known = (t[:, :3] @ place + t[:, 3] for t in (found, old))
        found = found[~np.isin(keys, known)]
        self._triangles = np.concatenate([old, found])
        none = np.zeros(len(found))
        self._weights = np.concatenate([self._weights[used], none])
        self._averages = np.concatenate([self._averages[used], none])
        return float(-_slack(gram, found).min(initial=0.0))

    def certify(
        self,
        sweeps: int,
        deadline: core.Deadline | None = None,
        lost: float = 0.0,
        numbers: SpinSteps | None = None,
    ) -> SpinMultipliers | None:
        """Return the bound of the averaged multipliers; None if none can be certified.

        Parameters
        ----------
        sweeps : int
            Sweeps over vectors for these multipliers, to find the diagonal.
        deadline : Deadline, optional
            When to stop: `core.OutOfTime` is raised.
        lost : float, default 0
            Upper bound on the sum of the errors of all entries of the matrix.
        numbers : SpinSteps, optional
            The numbers of the run.
        """
        used = self._averages > 1e-6 * self._scale
        triangles, weights = self._triangles[used], self._averages[used]
        n = len(self.matrix)
        matrix = self.matrix - triangle_matrix(n, triangles, weights)
        _mix(matrix, self._dual, sweeps, deadline)
        diagonal, value = _diagonal(matrix, self._dual, deadline)
        matrix[np.diag_indices(n)] -= diagonal
        shift = _shift(matrix, numbers or TUNING.of(SpinSteps), deadline)
        sizes = np.abs(self.matrix).sum(axis=1).max() + 2 * weights.sum() + np.abs(diagonal).max()
        for _ in range(20):
            # 4 (n + 2) u trace exceeds Rump's constant; then the rounding of the matrix itself
            trace = float(matrix.trace()) + n * shift
            margin = UNIT * (4 * (n + 2) * trace + (len(weights) + 8) * sizes) + lost + 1e-290
            if _factorises(matrix, shift + margin, deadline):
                lowered = diagonal - (shift + 2 * margin)
                terms = np.concatenate([lowered, -weights, [-8 * n * margin]])
                small = triangles.astype(np.int32)  # many are kept, one array per leaf
                bound = core.lower_sum(terms)
                return SpinMultipliers(
                    bound, lowered, small, weights, value - weights.sum() - bound
                )
            shift = 2 * shift + 4 * margin
        return None


def _mix(matrix: Floats, vectors: Floats, sweeps: int, deadline: core.Deadline | None) -> None:
    rows = csr_array(matrix)
    start, column = rows.indptr.astype(np.int64), rows.indices.astype(np.int64)
    core.mix(start, column, rows.data, vectors, sweeps, deadline)


def _slack(gram: Floats, triangles: Ints) -> Floats:
    i, j, k, kind = triangles.T
    products = np.stack([gram[i, j], gram[i, k], gram[j, k]], axis=1)
    return np.asarray(1.0 + (SIGNS[kind] * products).sum(axis=1))


def _diagonal(
    matrix: Floats, vectors: Floats, deadline: core.Deadline | None
) -> tuple[Floats, float]:
    """The diagonal for which unit vectors are nearly optimal, and the value of the vectors."""
    found, value = np.empty(len(matrix)), 0.0
    for first in range(0, len(matrix), BLOCK):
        own = slice(first, first + BLOCK)
        forces = csr_array(matrix[own]) @ vectors
        found[own] = -np.sqrt(np.einsum("ik,ik->i", forces, forces))
        value += float(np.einsum("ik,ik", forces, vectors[own]))
        _look(deadline)
    return found, value


def _shift(matrix: Floats, numbers: SpinSteps, deadline: core.Deadline | None) -> float:
    """About the least shift of the diagonal with which a matrix has no negative eigenvalue.

    Nothing rests on it. Small matrices are factorised with several shifts, by bisection to 2 %.
    """
    largest = float(np.abs(matrix).max())
    if len(matrix) > 300:
        least = _least_eigenvalue(matrix, numbers, deadline)
        return 1.2 * max(0.0, -least) + 1e-8 * largest
    high = 1e-7 * largest
    while high > 0 and not _factorises(matrix, high, deadline):
        high *= 4.0
    low = high / 4.0
    for _ in range(6):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if _factorises(matrix, middle, deadline) else (middle, high)
    return high


def _least_eigenvalue(matrix: Floats, numbers: SpinSteps, deadline: core.Deadline | None) -> float:
    """An estimate of the least eigenvalue from above: Lanczos steps, not reorthogonalised."""
    rows, before = csr_array(matrix), np.zeros(len(matrix))
    now = np.random.default_rng(0).standard_normal(len(matrix))
    now /= math.sqrt(now @ now)
    middle, beside, least = [], [0.0], math.inf
    while True:
        after = rows @ now - beside[-1] * before
        middle.append(float(after @ now))
        after -= middle[-1] * now
        beside.append(math.sqrt(after @ after))
        if len(middle) % numbers.lanczos == 0 or beside[-1] <= 1e-12 * abs(middle[0]):
            last, least = least, _lowest(middle, beside[1:-1])
            if last - least <= 1e-3 * abs(least) or len(middle) >= numbers.longest_lanczos:
                return least
        before, now = now, after / beside[-1]
        _look(deadline)


def _lowest(middle: list[float], beside: list[float]) -> float:
    """The least eigenvalue of a tridiagonal matrix."""
    found = eigvalsh_tridiagonal(middle, beside, select="i", select_range=(0, 0))
    return float(found[0])


def _look(deadline: core.Deadline | None) -> None:
    if deadline is not None:
        deadline.require()


def _factorises(matrix: Floats, shift: float, deadline: core.Deadline | None) -> bool:
    factor = matrix.copy()
    factor[np.diag_indices(len(matrix))] += shift
    return bool(core.cholesky(factor, deadline))

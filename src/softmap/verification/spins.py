"""Leaves of semidefinite bounds: exact costs of spins, and eigenvalues with certified error.

Costs are integers, in quarters of a power of two. The one thing computed in floating point is a
lower bound on the least eigenvalue of a matrix M, from the remainder M - L L' of any matrix L: what
is rounded is bounded afterwards, however L was found.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.verification.exact import UNIT, exact_sum
from softmap.verification.integers import Flat, Given, flat_model
from softmap.verification.limit import CALL, ITEM, Limits
from softmap.verification.records import Ints, Rejected

Floats = NDArray[np.float64]
Path = tuple[tuple[int, int], ...]
MATRICES = 5  # that exist at a time, each with one entry for two spins
LARGE = 64  # bytes of an entry that does not fit into 64 bits
PRODUCTS = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])  # of pairs, by kind


class SpinLeaves:
    """The bound that leaves of a tree prove: decisions about spins, and multipliers.

    Parameters
    ----------
    flat : Flat
        The model: two labels per variable, factors of two variables, finite costs.
    effort : Limits
        Limits the work.
    """

    def __init__(self, flat: Flat, effort: Limits) -> None:
        pairs = all(len(scope) == 2 and scope[0] != scope[1] for scope, _ in flat.factors)
        if not pairs or any(len(costs) != 2 for costs in flat.unary):
            raise Rejected("a proof by spins needs two labels and factors of pairs")
        n = len(flat.unary)
        effort.spend([n + 1, n + 1], 4, MATRICES)
        self._effort, self._leaves = effort, dict[Path, Fraction]()
        ends = np.array([scope for scope, _ in flat.factors], np.int64).reshape(-1, 2)
        tables = np.array([table for _, table in flat.factors]).reshape(-1, 2, 2)
        unary, tables, exponent = _integers(np.array(flat.unary), tables)
        self._quarter = Fraction(2) ** exponent / 4
        kind = unary.dtype
        effort.keep((n + 1) ** 2 * (8 if kind == np.int64 else LARGE))
        matrix, field = np.zeros((n + 1, n + 1), kind), 2 * (unary[:, 0] - unary[:, 1])
        first, second = tables[:, 0] - tables[:, 1], tables[:, :, 0] - tables[:, :, 1]
        np.add.at(field, ends[:, 0], first.sum(axis=1))
        np.add.at(field, ends[:, 1], second.sum(axis=1))
        np.add.at(matrix, (ends[:, 0], ends[:, 1]), first[:, 0] - first[:, 1])
        matrix += matrix.T
        self._step = math.gcd(
            *(2 * field + 2 * matrix[:n, :n].sum(axis=1)).tolist(),
            *(4 * matrix[ends[:, 0], ends[:, 1]]).tolist(),
        )
        matrix[:n, n] = matrix[n, :n] = field
        self._zeros = 4 * (int(unary[:, 0].sum()) + int(tables[:, 0, 0].sum()))
        self._offset = flat.constant  # the cost is this plus quarters
        self._constant = self._zeros - int(matrix.sum()) // 2
        # all spins may be reversed if no one has a field: the last one is +1 then
        self._matrix = matrix if field.any() else matrix[:n, :n]

    def add(self, decisions: Ints, diagonal: Ints, triangles: Ints, weights: Ints) -> None:
        """Check one leaf: variables and labels, and its multipliers as bits of real numbers."""
        last = len(self._matrix) - 1
        path = _path(decisions, last)
        spins, signs = np.array([i for i, _ in path], np.int64), [1 - 2 * a for _, a in path]
        free = np.delete(np.arange(last + 1), spins)
        values = np.array(signs, self._matrix.dtype)
        matrix = self._matrix[np.ix_(free, free)]
        row = values @ self._matrix[np.ix_(spins, free)] if len(spins) else 0 * matrix[-1]
        constant, inner = self._constant + int(row[-1]), self._matrix[np.ix_(spins, spins)]
        constant += int(values @ inner @ values) // 2 if len(spins) else 0
        row[-1] = 0
        matrix[-1] += row
        matrix[:, -1] += row
        y, g = diagonal.view(np.float64), weights.view(np.float64)
        if len(y) != len(free) or not np.isfinite(y).all():
            raise Rejected("expected one finite number for each spin")
        kind = ITEM if matrix.dtype == object else 1
        self._effort.spend([len(y), len(y)], 4 * kind + len(y) // 64, MATRICES)
        self._effort.require(160 * len(triangles))
        self._effort.work(64 * CALL + ITEM * (len(path) + len(triangles)))
        self._effort.keep(CALL + 160 * len(path))
        found = _certified(matrix, self._quarter / 2, y, (_corners(triangles, len(y), g), g))
        total = found + self._offset + constant * self._quarter
        self._leaves[path] = max(total, self._leaves.get(path, total))

    def bound(self) -> Fraction:
        """The bound of all leaves, rounded up to a possible cost."""
        longest = max(map(len, self._leaves), default=0)
        self._effort.work(ITEM * (longest + 1) * 2 * (len(self._leaves) + longest))
        found = _covered(self._leaves)
        zeros, step = self._offset + self._zeros * self._quarter, self._step * self._quarter
        return zeros - ((zeros - found) // step) * step if step else zeros


def _integers(unary: Floats, tables: Floats) -> tuple[Any, Any, int]:
    """Costs as integers in units of 2**exponent: int64 if their sums fit, else Python's."""
    costs = np.concatenate([unary.ravel(), tables.ravel()])
    if not np.isfinite(costs).all():
        raise Rejected("a proof by spins needs a model without hard constraints")
    ratios = [cost.as_integer_ratio() for cost in np.unique(costs).tolist()]
    lowest = max((below.bit_length() - 1 for _, below in ratios), default=0)
    largest = max((abs(above) << lowest - below.bit_length() + 1 for above, below in ratios))
    if largest * max(16 * len(costs), 1) < 1 << 60:
        whole = np.ldexp(costs, lowest).astype(np.int64)
    else:
        whole = np.array([int(Fraction(c) * 2**lowest) for c in costs.tolist()], dtype=object)
    return whole[: unary.size].reshape(-1, 2), whole[unary.size :].reshape(-1, 2, 2), -lowest


def _path(decisions: Ints, last: int) -> Path:
    spins, labels = decisions[::2].tolist(), decisions[1::2].tolist()
    path = tuple(zip(spins, labels, strict=True))
    if len(set(spins)) < len(spins) or not all(0 <= i < last and 0 <= a <= 1 for i, a in path):
        raise Rejected("a decision is not about a spin, or is made twice")
    return path


def _corners(triangles: Ints, n: int, weights: Floats) -> Ints:
    corners = triangles.reshape(-1, 4)
    rising = (corners[:, 0] < corners[:, 1]) & (corners[:, 1] < corners[:, 2])
    inside = (corners[:, 0] >= 0) & (corners[:, 2] < n)
    if not (rising & inside & (corners[:, 3] >= 0) & (corners[:, 3] < 4)).all():
        raise Rejected("a triangle has spins that do not exist")
    if len(weights) != len(corners) or not (weights >= 0).all() or np.isinf(weights).any():
        raise Rejected("a multiplier of a triangle is missing or negative")
    return corners


def _certified(matrix: Any, unit: Fraction, y: Floats, triangles: tuple[Ints, Floats]) -> Fraction:
    """A lower bound on `unit · x' matrix x` over spins: sum(y) - sum(g) + n · least eigenvalue.

    `unit` is a power of two. All is divided by another one, so that the largest numbers are near 1:
    then nothing overflows, and what underflows is less than `TINY` in all.
    """
    (corners, g), n = triangles, len(y)
    largest = max(_size(matrix, unit), Fraction(float(np.abs(y).max())), Fraction(1, 2**900))
    largest = max(largest, Fraction(float(g.max(initial=0.0))))
    power = math.frexp(float(largest))[1] if largest < 2**900 else 5000
    if abs(power) > 1000:
        raise Rejected("the costs are too large or too small for a proof by spins")
    scale = math.frexp(float(unit))[1] - 1 - power
    scaled = np.ldexp(matrix.astype(np.float64), scale)
    y_scaled, g_scaled = np.ldexp(y, -power), np.ldexp(g, -power)
    i, j, k, kind = corners.T
    at, half = np.concatenate([i * n + j, i * n + k, j * n + k]), np.tile(g_scaled / 2, 3)
    sums = np.bincount(at, half * PRODUCTS[kind].T.ravel(), n * n).reshape(n, n)
    sizes = np.abs(scaled).sum(axis=1) + np.abs(y_scaled)
    sizes += np.bincount(np.concatenate([i, j, k]), np.tile(g_scaled, 3), n)
    terms = 8 + int(np.bincount(at, minlength=1).max(initial=0))
    rounding = 2 * UNIT * terms * float(sizes.max())
    sums += sums.T
    scaled -= sums
    scaled[np.diag_indices(n)] -= y_scaled
    del sums
    least = -(_below_zero(scaled) + rounding)
    total = exact_sum([*y.tolist(), *(-g).tolist()])
    return total + n * Fraction(least) * Fraction(2) ** power


TINY = 1e-200


def _below_zero(matrix: Floats) -> float:
    """A number d such that no eigenvalue of a symmetric matrix, which changes, is below -d."""
    n = len(matrix)
    trace = float(np.abs(matrix.diagonal()).sum())
    shift = 8 * UNIT * (n + 2) * trace + TINY
    matrix[np.diag_indices(n)] += shift
    try:
        factor = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        raise Rejected("a matrix has a negative eigenvalue") from None
    for k, row in enumerate(factor):
        row[k + 1 :] = 0.0
    rest = factor @ factor.T
    np.subtract(matrix, rest, out=rest)
    # each entry of the product has an error of at most (n + 2) u (|L| |L'|), whose norm is at most
    # the sum of all squares; the norm of the remainder is at most the root of its sum of squares
    size, squares = float(np.linalg.norm(rest)), float(np.square(factor, out=factor).sum())
    bound = shift * (1 + 4 * UNIT) + 1.001 * size + 4 * UNIT * (n + 2) * (squares + trace) + TINY
    if not math.isfinite(bound):
        raise Rejected("a matrix is not finite")
    return bound


def _size(matrix: Any, unit: Fraction) -> Fraction:
    return unit * int(max(map(abs, (int(matrix.max()), int(matrix.min())))))


def _covered(leaves: dict[Path, Fraction]) -> Fraction:
    """The bound of all spins: of a leaf, or of both labels of one variable, whichever is more."""
    known = dict(leaves)
    for length in range(max(map(len, known), default=0), 0, -1):
        for path in [p for p in known if len(p) == length and p[-1][1] == 0]:
            parent, other = path[:-1], (*path[:-1], (path[-1][0], 1))
            if other in known:
                least = min(known[path], known[other])
                known[parent] = max(known.get(parent, least), least)
    if () not in known:
        raise Rejected("the leaves do not cover all spins")
    return known[()]


class SpinProof:
    """Checks the records of leaves.

    Parameters
    ----------
    given : Given
        The model.
    """

    def __init__(self, given: Given) -> None:
        given = given.about_costs("spins")
        self._leaves = SpinLeaves(flat_model(given.model), given.effort)

    def step(self, name: str, arrays: list[Any]) -> None:
        """Check one leaf."""
        if name != "spins":
            raise Rejected(f"{name} out of its place")
        self._leaves.add(*arrays)

    def bound(self) -> Fraction:
        """The bound of all leaves."""
        return self._leaves.bound()

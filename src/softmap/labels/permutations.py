"""Models whose variables all have different labels: their costs in integers, and symmetries.

The labels are a permutation, or a part of one if there are more labels than variables. Compiled
loops (`src/core/permutations`) search for labels and prove bounds in exact integers; costs are
rounded down to multiples of a power of two, so that these bounds hold for the model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from softmap import core
from softmap.model import Model
from softmap.model.many import AllDifferent
from softmap.model.potentials.base import Costs, Ints
from softmap.relaxation.bounds import lower_tables

__all__ = ["Permutation", "Symmetry", "is_permutation"]

TOTAL_BITS = 46  # bits of the sum of all ranges of costs, so that no sum overflows 64 bits
FRACTION_BITS = 20  # most bits of a multiplier behind the point of a cost
MOST_MAPS = 2_000  # symmetries of labels that are listed
MOST_STEPS = 20_000  # steps of the search for them


def is_permutation(model: Model, given: Model) -> bool:
    """Whether all variables must have different labels, by forbidden pairs or an `AllDifferent`.

    Factors of more variables, and those with chain variables, must not have negative costs: they
    are left out.

    Parameters
    ----------
    model : Model
        The model to solve.
    given : Model
        The model that it was made from, which knows the `AllDifferent`.
    """
    n = model.num_visible
    if not model.has_forbidden or not model.m or not 3 <= n <= model.num_labels[:n].min():
        return False
    inner = _inner_edges(model)
    different = any(_covers(factor, n) for factor in given.required)
    if not len(inner) or (not different and len(inner) != n * (n - 1) // 2):
        return False
    pairs = np.sort(model.edges[inner].astype(np.int64), axis=1) @ (n, 1)
    if len(set(pairs.tolist())) < len(inner) or (model.n > n and not _harmless(model)):
        return False
    return different or _all_tables_forbid(model, inner)


def _inner_edges(model: Model) -> Ints:
    """The edges between two visible variables."""
    return np.flatnonzero((model.edges < model.num_visible).all(axis=1))


def _covers(factor: object, n: int) -> bool:
    return isinstance(factor, AllDifferent) and len(set(factor.variables)) == n


def _harmless(model: Model) -> bool:
    """Whether all costs beside those of visible variables and their edges are at least 0."""
    low = model.extremes()[0]
    outer = (model.edges >= model.num_visible).any(axis=1)
    nodes, edges = low[model.num_visible : model.n], low[model.n :][outer]
    return bool((nodes >= 0).all() and (edges >= 0).all())


def _all_tables_forbid(model: Model, inner: Ints) -> bool:
    """Whether the tables of all edges forbid equal labels."""
    for (i, j), table in _tables(model, inner):
        both = min(table.shape)
        costs = table.diagonal() + model.unary[model.node_slice(i)][:both]
        if not np.isposinf(costs + model.unary[model.node_slice(j)][:both]).all():
            return False
    return True


def _tables(model: Model, inner: Ints) -> Iterator[tuple[list[int], Costs]]:
    """Yield the endpoints and the table of each edge, rounded down."""
    ends = model.edges[inner].astype(np.int64)
    shapes = model.num_labels[ends]
    flat = np.split(lower_tables(model, inner), np.cumsum(shapes.prod(axis=1))[:-1])
    for pair, table, shape in zip(ends.tolist(), flat, shapes.tolist(), strict=True):
        yield pair, table.reshape(shape)


@dataclass(frozen=True, eq=False)
class Symmetry:
    """Symmetries of the costs of a permutation.

    Attributes
    ----------
    maps : int64[k, d]
        Permutations of the labels that leave all costs as they are, the identity among them.
    kind : int64[n]
        Variables of the same kind can be exchanged.
    """

    maps: Ints
    kind: Ints

    @property
    def size(self) -> float:
        """Logarithm of the number of symmetries."""
        counts = np.bincount(self.kind)
        return math.log(len(self.maps)) + sum(math.lgamma(c + 1) for c in counts.tolist())


@dataclass(frozen=True, eq=False)
class Permutation:
    """Costs of n variables whose labels, among d, all differ; in integers, rounded down.

    The cost of labels x is at least `(base + Σ_i unary[i, x_i] + Σ_{i<j} pair[i, x_i, j, x_j]) *
    2**exponent`, and this if nothing was rounded.

    Attributes
    ----------
    unary : int64[n, d]
        Costs of labels, at least 0.
    pair : int64[n, d, n, d]
        Costs of pairs, at least 0; 0 for equal variables or labels.
    shift : int64[n, n]
        The costs that were subtracted from the pairs of i < j.
    base : int
        All that was subtracted.
    exponent : int
        Exponent of the unit.
    step : int
        A common divisor of all costs.
    barrier : int
        Cost of a forbidden label or pair: more than all other costs together.
    """

    unary: Ints
    pair: Ints
    shift: Ints
    base: int
    exponent: int
    step: int
    barrier: int

    @classmethod
    def of(cls, model: Model) -> Permutation:
        """Return the costs of the visible variables of a model and of the edges between them."""
        n = model.num_visible
        d = int(model.num_labels[:n].max())
        unary = np.full((n, d), np.inf)
        for i, row in enumerate(unary):
            row[: model.num_labels[i]] = model.unary[model.node_slice(i)]
        pair = np.zeros((n, d, n, d))
        for (i, j), table in _tables(model, _inner_edges(model)):
            rows, cols = table.shape
            pair[i, :rows, j, :cols] = table
            pair[j, :cols, i, :rows] = table.T
        return cls._rounded(unary, pair)

    @classmethod
    def _rounded(cls, unary: Costs, pair: Costs) -> Permutation:
        n, d = unary.shape
        unused = np.eye(n, dtype=bool)[:, None, :, None] | np.eye(d, dtype=bool)[None, :, None, :]
        pair[unused] = 0.0
        barred, apart = np.isposinf(unary), np.isposinf(pair)
        unary[barred], pair[apart] = 0.0, 0.0
        exponent = _exponent(unary, pair)
        whole_unary, whole_pair = (np.floor(np.ldexp(c, -exponent)) for c in (unary, pair))
        exact = np.array_equal(np.ldexp(whole_unary, exponent), unary)
        exact = exact and np.array_equal(np.ldexp(whole_pair, exponent), pair)
        one, two = whole_unary.astype(np.int64), whole_pair.astype(np.int64)
        lows = np.where(barred, np.iinfo(np.int64).max, one).min(axis=1)
        shift = np.where(unused | apart, np.iinfo(np.int64).max, two).min(axis=(1, 3))
        lows[barred.all(axis=1)] = 0
        shift[(unused | apart).all(axis=(1, 3))] = 0
        one, two = one - lows[:, None], two - shift[:, None, :, None]
        one[barred], two[apart | unused] = 0, 0
        barrier = int(one.max(axis=1).sum() + two.max(axis=(1, 3)).sum() // 2) + 1
        step = int(np.gcd(np.gcd.reduce(one.ravel()), np.gcd.reduce(two.ravel()))) or 1
        one[barred], two[apart] = barrier, barrier
        base = int(lows.sum()) + int(np.triu(shift, 1).sum())
        return cls(one, two, shift, base, exponent, step if exact else 1, barrier)

    @cached_property
    def scale(self) -> int:
        """The number, a power of two, by which compiled loops multiply all costs."""
        return 1 << min(FRACTION_BITS, max(0, TOTAL_BITS - self.barrier.bit_length()))

    @cached_property
    def native(self) -> core.PermutationCosts:
        """The costs times `scale`, as compiled loops take them."""
        n, d = self.unary.shape
        pair = (self.pair * self.scale).reshape(n * d, n * d)
        return core.PermutationCosts(self.unary * self.scale, pair)

    def transposed(self) -> Permutation:
        """The same costs with variables and labels exchanged; there must be as many of both."""
        pair = np.ascontiguousarray(self.pair.transpose(1, 0, 3, 2))
        unary = np.ascontiguousarray(self.unary.T)
        return Permutation(
            unary, pair, self.shift, self.base, self.exponent, self.step, self.barrier
        )

    def cost(self, labels: Ints) -> int:
        """The cost of labels in units, without `base`."""
        i = np.arange(len(labels))
        pairs = self.pair[i[:, None], labels[:, None], i, labels]
        return int(self.unary[i, labels].sum() + pairs.sum() // 2)

    def value(self, scaled: int) -> float:
        """A lower bound as a cost, from one that a compiled loop has found; rounded down."""
        units = -(-scaled // (self.scale * self.step)) * self.step + self.base
        near = float(units)
        near = near if near <= units else math.nextafter(near, -math.inf)
        return math.ldexp(near, self.exponent)

    def symmetry(self) -> Symmetry:
        """Return symmetries of the costs."""
        n, d = self.unary.shape
        kind = np.arange(n)
        for i in range(n):
            same = (j for j in range(i) if kind[j] == j and self._exchangeable(i, j))
            kind[i] = next(same, i)
        ids: dict[bytes, int] = {}
        columns = np.ascontiguousarray(self.pair.transpose(1, 3, 0, 2))
        looks = [[ids.setdefault(columns[p, q].tobytes(), len(ids)) for q in range(d)]
                 for p in range(d)]  # fmt: skip
        alike = [ids.setdefault(self.unary[:, p].tobytes(), len(ids)) for p in range(d)]
        return Symmetry(_maps(looks, alike), kind)

    def _exchangeable(self, i: int, j: int) -> bool:
        """Whether exchanging the labels of two variables never changes the cost."""
        if not np.array_equal(self.unary[i], self.unary[j]):
            return False
        between = self.pair[i, :, j]
        others = np.delete(np.arange(len(self.unary)), (i, j))
        return np.array_equal(between, between.T) and np.array_equal(
            self.pair[i][:, others], self.pair[j][:, others]
        )


def _exponent(unary: Costs, pair: Costs) -> int:
    """Exponent of the unit: exact if the sum of all ranges then has few enough bits."""
    spread = np.ptp(unary, axis=1).sum() + np.ptp(pair, axis=(1, 3)).sum()
    largest = max(float(np.abs(unary).max()), float(np.abs(pair).max()))
    if largest == 0.0:
        return 0
    finest = max(math.frexp(spread)[1] - TOTAL_BITS, math.frexp(largest)[1] - 52)
    used = np.concatenate([unary[unary != 0], pair[pair != 0]])
    mantissa, power = np.frexp(used)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    zeros = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return max(int((power - 53 + zeros).min()), finest)


def _maps(looks: list[list[int]], alike: list[int]) -> Ints:
    """Permutations of labels that keep the look of each label and pair, by depth-first search."""
    d, left = len(alike), MOST_STEPS
    found: list[list[int]] = [list(range(d))]
    stack: list[list[int]] = [[]]
    while stack and left > 0 and len(found) < MOST_MAPS:
        image = stack.pop()
        p, left = len(image), left - 1
        if p == d:
            found.append(image)
            continue
        stack.extend(
            [*image, q]
            for q in range(d)
            if q not in image
            and alike[p] == alike[q]
            and all(
                looks[p][k] == looks[q][image[k]] and looks[k][p] == looks[image[k]][q]
                for k in range(p)
            )
        )
    return np.array(found, dtype=np.int64)

"""Models whose variables all have different labels: their costs in integers, and symmetries.

The labels are a permutation, or a part of one if there are more labels than variables. Compiled
loops (`src/core/permutations`) search for labels and prove bounds in exact integers; costs are
rounded down to multiples of a power of two, so that these bounds hold for the model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.labels.different import inner_tables
from softmap.model import Network
from softmap.model.potentials.base import Costs, Ints
from softmap.model.sums import float_below, last_bits, units_below
from softmap.tuning import TUNING, Numbers

__all__ = ["Permutation", "PermutationLog", "Symmetry", "SymmetryNumbers"]

TOTAL_BITS = 46  # bits of the sum of all ranges of costs, so that no sum overflows 64 bits
LARGEST_BITS = 50  # bits of a cost, so that no sum overflows
LARGEST_EXPONENT = 1_100  # above that of every float64
FRACTION_BITS = 20  # most bits of a multiplier behind the point of a cost
PIECE = 1 << 16  # entries that fit into the cache, between two looks at a deadline


@dataclass(frozen=True)
class SymmetryNumbers(Numbers):
    """The search for symmetries of a permutation."""

    labels: int = 40  # most labels; D68
    steps: int = 10_000  # most steps; D68
    listed: int = 2_000  # most symmetries that are listed; D68


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
        The costs that were subtracted from the pairs of i < j; 0 for i >= j.
    base : int
        All that was subtracted.
    exponent : int
        Exponent of the unit.
    step : int
        A common divisor of all costs; 1 if costs were rounded.
    barrier : int
        Cost of a forbidden label or pair: more than all other costs together.
    shared : int
        The label of the model that variables may share, -1 if there is none. Variable i has a
        label of its own instead, d - n + i, and `shared` is forbidden.
    """

    unary: Ints
    pair: Ints
    shift: Ints
    base: int
    exponent: int
    step: int
    barrier: int
    shared: int = -1

    @classmethod
    def of(
        cls, model: Network, shared: Sequence[int] = (), deadline: core.Deadline | None = None
    ) -> Permutation:
        """Return the costs of the visible variables of a model and of the edges between them.

        Parameters
        ----------
        model : Network
            A model whose labels differ.
        shared : sequence of int, default ()
            The label that needs not, if there is one.
        deadline : core.Deadline, optional
            Raises `core.OutOfTime` if this passes first.
        """
        n, inner = len(model.visible_counts), model.inner_edges
        d = int(model.num_labels[:n].max())
        unary = np.full((n, d), np.inf)
        for i, row in enumerate(unary):
            row[: model.num_labels[i]] = model.unary[model.node_slice(i)]
        tables = np.full((len(inner), d, d), np.inf)
        for some in _pieces(len(inner), d * d, deadline):
            for table, (_, own) in zip(tables[some], inner_tables(model, inner[some]), strict=True):
                table[: len(own), : own.shape[1]] = own
        different = np.setdiff1d(np.arange(d), shared)
        tables[:, different, different] = np.inf
        edges = model.edges[inner].astype(np.int64)
        label = shared[0] if shared else -1
        return cls._rounded(unary, tables, edges, label, deadline)

    @classmethod
    def _rounded(
        cls, unary: Costs, tables: Costs, edges: Ints, shared: int = -1,
        deadline: core.Deadline | None = None,
    ) -> Permutation:  # fmt: skip
        """Return the costs of labels [n, d] and edges [m, d, d] in integers."""
        n, d = unary.shape
        blocks = [unary, tables.reshape(len(tables), d * d)]
        exponent = _exponent(blocks, deadline)
        whole = [_Block.of(costs, exponent, deadline) for costs in blocks]
        barrier = sum(int(block.above.max(axis=1).sum()) for block in whole) + 1
        bits, exact = 0, all(block.exact for block in whole)
        if exact:  # multipliers need bits behind the point
            largest = max(int(np.abs(block.low).max(initial=0)) for block in whole)
            bits = min(FRACTION_BITS, TOTAL_BITS - barrier.bit_length())
            bits = max(0, min(bits, LARGEST_BITS - largest.bit_length()))
        _require(deadline)
        step = math.gcd(*(int(np.gcd.reduce(block.above.ravel())) for block in whole)) or 1
        _require(deadline)
        one, two = (block.filled(barrier) << bits for block in whole)
        two, (first, second) = two.reshape(-1, d, d), edges.T
        if shared >= 0:
            one = _separated(one, shared, np.arange(n), n, barrier << bits)
            two = _separated(two, shared, first, n, barrier << bits).transpose(0, 2, 1)
            two = _separated(two, shared, second, n, barrier << bits).transpose(0, 2, 1)
            d += n
        pair, shift = np.zeros((n, d, n, d), np.int64), np.zeros((n, n), np.int64)
        by_pair = pair.transpose(0, 2, 1, 3)
        for some in _pieces(len(edges), d * d, deadline):
            by_pair[first[some], second[some]] = two[some]
            by_pair[second[some], first[some]] = two[some].transpose(0, 2, 1)
        by_pair[:, :, np.arange(d), np.arange(d)] = 0
        shift[edges.min(axis=1), edges.max(axis=1)] = whole[1].low << bits
        base = sum(int(block.low.sum()) for block in whole) << bits
        step = step << bits if exact else 1
        return cls(one, pair, shift, base, exponent - bits, step, barrier << bits, shared)

    @cached_property
    def native(self) -> core.PermutationCosts:
        """The costs as compiled loops take them."""
        return core.PermutationCosts(self.unary, self.pair.reshape(self.unary.size, -1))

    def inner(self, labels: Ints) -> Ints:
        """Return the labels of the permutation for those of the model."""
        n, d = self.unary.shape
        return np.where(labels == self.shared, np.arange(d - n, d), labels)

    def outer(self, labels: Ints) -> Ints:
        """Return the labels of the model for those of the permutation."""
        n, d = self.unary.shape
        return labels if self.shared < 0 else np.where(labels < d - n, labels, self.shared)

    def transposed(self) -> Permutation:
        """The same costs with variables and labels exchanged; there must be as many of both."""
        pair = np.ascontiguousarray(self.pair.transpose(1, 0, 3, 2))
        return replace(self, unary=np.ascontiguousarray(self.unary.T), pair=pair)

    def cost(self, labels: Ints) -> int:
        """The cost of labels in units, without `base`."""
        i = np.arange(len(labels))
        pairs = self.pair[i[:, None], labels[:, None], i, labels]
        return int(self.unary[i, labels].sum() + pairs.sum() // 2)

    def value(self, bound: int) -> float:
        """Convert a lower bound in units, without `base`, to a cost; rounded down."""
        units = -(-bound // self.step) * self.step + self.base
        return math.ldexp(float_below(units), self.exponent)

    def symmetry(self, numbers: SymmetryNumbers | None = None) -> Symmetry:
        """Return symmetries of the costs; none but the identity if there are many labels."""
        numbers = numbers or TUNING.of(SymmetryNumbers)
        (n, d), kind = self.unary.shape, np.arange(len(self.unary))
        if d > numbers.labels:
            return Symmetry(np.arange(d)[None], kind)
        for i in range(n):
            same = (j for j in range(i) if kind[j] == j and self._exchangeable(i, j))
            kind[i] = next(same, i)
        ids: dict[bytes, int] = {}
        columns = np.ascontiguousarray(self.pair.transpose(1, 3, 0, 2))
        looks = [[ids.setdefault(columns[p, q].tobytes(), len(ids)) for q in range(d)]
                 for p in range(d)]  # fmt: skip
        alike = [ids.setdefault(self.unary[:, p].tobytes(), len(ids)) for p in range(d)]
        return Symmetry(_maps(looks, alike, numbers), kind)

    def _exchangeable(self, i: int, j: int) -> bool:
        """Whether exchanging the labels of two variables never changes the cost."""
        if not np.array_equal(self.unary[i], self.unary[j]):
            return False
        between = self.pair[i, :, j]
        others = np.delete(np.arange(len(self.unary)), (i, j))
        return np.array_equal(between, between.T) and np.array_equal(
            self.pair[i][:, others], self.pair[j][:, others]
        )


@dataclass(frozen=True, eq=False)
class PermutationLog:
    """The multipliers of all nodes of a search that has ended, as records of a proof.

    Attributes
    ----------
    costs : Permutation
        The costs.
    search : core.AssignmentSearch
        The search.
    maps : int64[k, d]
        The symmetries of the labels that it used.
    """

    costs: Permutation
    search: core.AssignmentSearch
    maps: Ints

    def records(self, exponent: int) -> Iterator[tuple[Ints, Ints, Ints, Ints]]:
        """Yield sizes and path, rows, columns and labels of each node, from the root on.

        Parameters
        ----------
        exponent : int
            The costs are those of the model times `2**exponent`.
        """
        costs, (n, d) = self.costs, self.costs.unary.shape
        data, at = np.empty(self.search.logged, dtype=np.int64), 0
        self.search.read_log(data)
        extra = np.concatenate([[self.search.bound + costs.base], self.maps.ravel()])
        while at < len(data):
            k, at = int(data[at]), at + 1
            path, m, e = data[at : at + 2 * k], n - k, d - k
            at += 2 * k
            free = np.setdiff1d(np.arange(n), path[::2])
            rows = data[at : at + m * e * m].reshape(m, e, m)
            rows = rows + costs.shift[np.ix_(free, free)][:, None, :]
            at += m * e * m
            columns, labels = data[at : at + m * e * e], data[at + m * e * e : at + m * e * e + e]
            at += m * e * e + e
            sizes = [n, d, costs.exponent - exponent]
            yield np.concatenate([sizes, path if k else extra]), rows.ravel(), columns, labels
            extra = extra[:0]  # the root may come again


class _Block(NamedTuple):
    """Rows of costs in units: their smallest entries, and what the others exceed them by.

    `exact` if nothing was rounded; forbidden entries are 0 in `above`.
    """

    low: Ints
    above: Ints
    finite: NDArray[np.bool_]
    exact: bool

    @classmethod
    def of(cls, costs: Costs, exponent: int, deadline: core.Deadline | None = None) -> _Block:
        """Return costs in units of `2**exponent`, rounded down."""
        low, above = np.zeros(len(costs), np.int64), np.empty(costs.shape, np.int64)
        finite, exact = np.isfinite(costs), True
        for some in _pieces(len(costs), costs.shape[1], deadline):
            given = np.where(finite[some], costs[some], 0.0)
            whole = units_below(given, exponent)
            exact = exact and np.array_equal(np.ldexp(whole, exponent), given)
            units = whole.astype(np.int64)
            least = np.where(finite[some], units, np.iinfo(np.int64).max).min(axis=1)
            low[some] = np.where(finite[some].any(axis=1), least, 0)
            above[some] = np.where(finite[some], units - low[some, None], 0)
        return cls(low, above, finite, exact)

    def filled(self, barrier: int) -> Ints:
        """The differences, with forbidden entries at the barrier."""
        return np.where(self.finite, self.above, barrier)


def _separated(costs: Ints, label: int, variables: Ints, n: int, barrier: int) -> Ints:
    """Costs [k, d, ...] of some of n variables whose own label, d + i, replaces a shared one."""
    k, d = costs.shape[:2]
    out = np.full((k, d + n, *costs.shape[2:]), barrier)
    out[:, :d] = costs
    out[np.arange(k), d + variables] = costs[:, label]
    out[:, label] = barrier
    return out


def _exponent(blocks: list[Costs], deadline: core.Deadline | None = None) -> int:
    """Exponent of the unit: exact if the sum of all ranges then has few enough bits."""
    largest, spreads, least = 0.0, [0.0], LARGEST_EXPONENT
    for costs in blocks:
        for some in _pieces(len(costs), costs.shape[1], deadline):
            used = np.where(np.isfinite(costs[some]), costs[some], 0.0)
            spreads += np.ptp(used, axis=1).tolist()
            largest = max(largest, float(np.abs(used).max(initial=0.0)))
            least = min(least, int(last_bits(used[used != 0]).min(initial=LARGEST_EXPONENT)))
    spread = math.fsum(spreads)
    finest = max(math.frexp(spread)[1] - TOTAL_BITS, math.frexp(largest)[1] - LARGEST_BITS)
    return max(least, finest) if largest else 0


def _pieces(rows: int, each: int, deadline: core.Deadline | None) -> Iterator[slice]:
    """Rows of `each` entries, some at a time; look at a deadline before each piece."""
    count = max(1, PIECE // max(each, 1))
    for begin in range(0, rows, count):
        _require(deadline)
        yield slice(begin, begin + count)


def _require(deadline: core.Deadline | None) -> None:
    if deadline is not None:
        deadline.require()


def _maps(looks: list[list[int]], alike: list[int], numbers: SymmetryNumbers) -> Ints:
    """Permutations of labels that keep the look of each label and pair, by depth-first search."""
    d, left = len(alike), numbers.steps
    found: list[list[int]] = []
    stack: list[list[int]] = [[]]
    while stack and left > 0 and len(found) < numbers.listed:
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
    return np.array(found or [list(range(d))], dtype=np.int64)

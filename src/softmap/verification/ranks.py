"""The check of m-best proofs: a lower bound on all labellings but those of the file.

The labellings of the file form a tree, with one variable per level. Where a branch leaves the tree,
it is a *part*: all labellings that agree with one of the file in the variables before, and differ
from all of these in the next one. The parts are all other labellings, each in one part.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from softmap.model import Network
from softmap.verification.conclusion import exact_energy
from softmap.verification.dual import reduced_costs
from softmap.verification.integers import Flat, flat_model, hard_constraints
from softmap.verification.limit import CALL, ITEM, Limits
from softmap.verification.records import Ints, Rejected
from softmap.verification.search import SearchLog
from softmap.verification.table import RECORDS, SEARCH

OF_OTHERS = frozenset(kind.name for kind in RECORDS.values() if kind.checker not in ("", SEARCH))
Bound: TypeAlias = Fraction | float  # a float is infinite: no labelling, or no bound


class Rank(NamedTuple):
    """A labelling of the file, and what is proved of its rank.

    Attributes
    ----------
    labels : tuple of int
        The labelling.
    energy : Fraction
        Its cost.
    bound : Fraction or -inf
        No labelling costs less, apart from those of smaller ranks.
    """

    labels: tuple[int, ...]
    energy: Fraction
    bound: Bound


class _Box(NamedTuple):
    """Labellings that begin as a row, with a next label that is not excluded; and their bound."""

    row: int
    excluded: frozenset[int]
    bound: Bound


class RankedProof:
    """Checks the records of an m-best proof.

    Parameters
    ----------
    model : Network
        The model that the proof refers to.
    exponent : int
        The solver multiplied all costs by 2**exponent.
    effort : Limits
        Limits the sizes of tables.
    order, labels : int64 array
        The record EXCEPT: the variables in the order of the levels, and the labellings.
    """

    def __init__(
        self, model: Network, exponent: int, effort: Limits, order: Ints, labels: Ints
    ) -> None:
        n = len(model.visible_counts)
        if not np.array_equal(np.sort(order), np.arange(n)) or not n or len(labels) % n:
            raise Rejected("the order of the variables is none")
        rows = labels.reshape(-1, n)
        effort.work(4 * ITEM * len(rows) * (model.n + model.m) + 2 * CALL * len(rows))
        effort.keep(32 * rows.size + CALL * len(rows))
        self._energies = [exact_energy(model, row) for row in rows]
        self._labels = [tuple(row.tolist()) for row in rows]
        self._order, self._rows = order, rows[:, order]
        if not len(rows) or len(set(self._labels)) < len(rows):
            raise Rejected("a labelling is listed twice, or there is none")
        self._model, self._exponent, self._effort = model, exponent, effort
        self._dual: _RankedDual | None = None
        self._flat: Flat | None = None
        self._boxes: dict[int, list[_Box]] = {}  # by the number of variables that are fixed
        self._open: tuple[int, int, frozenset[int]] | None = None
        self._search: SearchLog | None = None
        self._hard = False
        self._ranks: tuple[Rank, ...] | None = None
        self._proved: Bound = -math.inf
        self._others: Bound = -math.inf

    def step(self, name: str, arrays: list[Any]) -> None:
        """Check one record."""
        if self._ranks is not None:
            raise Rejected(f"{name} after the conclusion")
        if name == "dual" and self._dual is None and not len(arrays[0]):
            self._dual = _RankedDual(self._model, self._order, arrays[2].view(np.float64))
        elif name == "part" and self._dual is not None:
            self._finish()
            self._open = self._part(*arrays)
        elif name == "hard" and self._open and not self._hard and self._search is None:
            self._hard = True
        elif name == "ranks" and self._dual is not None:
            self._finish()
            self._conclude(self._dual, arrays[0].view(np.float64).tolist())
        elif self._open is not None and name not in OF_OTHERS:
            self._search = self._search or self._begin(*self._open)
            self._search.step(name, arrays)
        else:
            raise Rejected(f"{name} out of its place")

    @property
    def bound(self) -> Fraction:
        """The lower bound on all labellings."""
        if self._ranks is None:
            raise Rejected("there is no conclusion about ranks")
        return Fraction(min(*self._energies, self._proved))

    @property
    def ranks(self) -> tuple[tuple[Rank, ...], Bound]:
        """The ranks, and the bound on all other labellings."""
        return self._ranks or (), self._others

    # --- parts that were searched -----------------------------------------------------------------

    def _part(self, where: Ints, excluded: Ints) -> tuple[int, int, frozenset[int]]:
        """Return the row, the number of fixed variables and the excluded labels of a record."""
        row, depth = where.tolist()
        if not (0 <= row < len(self._rows) and 0 <= depth < len(self._order)):
            raise Rejected("there is no such part")
        if len(excluded) and not 0 <= excluded.min() <= excluded.max() < self._count(depth):
            raise Rejected("there is no such label")
        return row, depth, frozenset(excluded.tolist())

    def _count(self, depth: int) -> int:
        return int(self._model.num_labels[self._order[depth]])

    def _begin(self, row: int, depth: int, excluded: frozenset[int]) -> SearchLog:
        """Begin the check of a search over the labellings of a part."""
        self._flat = self._flat or flat_model(self._model)
        self._effort.work(CALL * depth + len(self._flat.unary))
        self._effort.keep(CALL)
        unary = list(self._flat.unary)
        out = [[a for a in range(self._count(k)) if a != self._rows[row, k]] for k in range(depth)]
        for k, labels in enumerate([*out, sorted(excluded)]):
            i = int(self._order[k])
            unary[i] = unary[i].copy()
            unary[i][labels] = np.inf
        flat = Flat(unary, self._flat.factors, self._flat.constant)
        return SearchLog(
            hard_constraints(flat) if self._hard else flat, self._exponent, self._effort
        )

    def _finish(self) -> None:
        """Keep the bound of the last part."""
        if self._open is not None:
            if self._search is None:
                raise Rejected("a part without records")
            row, depth, excluded = self._open
            bound: Bound = self._search.bound()
            self._search.release()
            if self._hard:  # a labelling of finite cost would cost 0
                bound = math.inf if bound > 0 else -math.inf
            self._boxes.setdefault(depth, []).append(_Box(row, excluded, bound))
        self._open, self._search, self._hard = None, None, False

    # --- the bound of all parts -------------------------------------------------------------------

    def _conclude(self, dual: _RankedDual, numbers: list[float]) -> None:
        """Check the stated bound of each rank, and that of all other labellings."""
        self._proved = min(self._bounds(dual), default=math.inf)
        least = [self._proved]
        for energy in reversed(self._energies):
            least.append(min(energy, least[-1]))
        if len(numbers) != len(least) or any(map(math.isnan, numbers)):
            raise Rejected("there is not one bound for each rank and one for the rest")
        for k, (number, bound) in enumerate(zip(numbers, reversed(least), strict=True)):
            if number > bound:
                raise Rejected(f"rank {k + 1}: {number!r} does not follow")
        *bounds, self._others = (x if math.isinf(x) else Fraction(x) for x in numbers)
        self._ranks = tuple(map(Rank, self._labels, self._energies, bounds))

    def _bounds(self, dual: _RankedDual) -> Iterator[Bound]:
        """Yield a lower bound for each part, level by level of the tree."""
        first = np.lexsort(self._rows.T[::-1])
        rows, place = self._rows[first], np.argsort(first)
        stack: list[tuple[int, int, int, int, Bound]] = [(0, 0, len(first), 0, -math.inf)]
        while stack:
            depth, begin, end, cost, above = stack.pop()
            if depth == len(self._order):
                continue
            known = self._boxes.get(depth, ())
            self._effort.work(CALL * 8 + ITEM * (len(known) + end - begin + self._count(depth)))
            boxes = [box for box in known if begin <= place[box.row] < end]
            labels = rows[begin:end, depth]
            starts = [begin, *(begin + 1 + np.flatnonzero(np.diff(labels))).tolist(), end]
            used = frozenset(labels.tolist())
            own = [box.bound for box in boxes if box.excluded <= used]
            yield max(above, dual.bound(depth, cost, used), *own)
            for one, last in pairwise(starts):
                label = int(rows[one, depth])
                into = [box.bound for box in boxes if label not in box.excluded]
                further = cost + dual.cost(depth, label)
                stack.append((depth + 1, one, last, further, max([above, *into])))


class _RankedDual:
    """The bound of λ for parts of the labellings: only the least costs of some variables change.

    Costs are integers in a common unit of 2**-shift.
    """

    def __init__(self, model: Network, order: Ints, lam: NDArray[np.float64]) -> None:
        if len(lam) != model.half_offset[-1] or not np.isfinite(lam).all():
            raise Rejected("λ is not a finite number for every half-edge")
        rest, costs = reduced_costs(model, lam, len(model.visible_counts))
        every = [rest, *(c for block in costs for c in block if c is not None)]
        self._shift = max(one.denominator.bit_length() for one in every) - 1
        whole = [[None if c is None else self._units(c) for c in costs[i]] for i in order.tolist()]
        self._costs = whole
        self._after = [self._units(rest)]  # of all levels from one on
        for block in reversed(whole):
            allowed = [c for c in block if c is not None]
            if not allowed:
                raise Rejected("a variable has no label")
            self._after.append(self._after[-1] + min(allowed))
        self._after.reverse()

    def _units(self, cost: Fraction) -> int:
        return cost.numerator * ((1 << self._shift) // cost.denominator)

    def cost(self, depth: int, label: int) -> int:
        """The reduced cost of a label that is allowed."""
        found = self._costs[depth][label]
        if found is None:
            raise Rejected("a labelling has a forbidden label")
        return found

    def bound(self, depth: int, cost: int, excluded: frozenset[int]) -> Bound:
        """The bound of a part: `cost` is that of the fixed labels, the next one is not excluded."""
        block = enumerate(self._costs[depth])
        free = [c for label, c in block if c is not None and label not in excluded]
        if not free:
            return math.inf
        return Fraction(cost + min(free) + self._after[depth + 1], 1 << self._shift)

"""What a model is made of, before it is lowered: tables, and factors over many variables.

A factor over many variables is kept as it was given. Which tables were given before it is kept,
too, because the order of the edges of the lowered form depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from softmap.model.chains import SIZES, Chain, chains
from softmap.model.inputs import Group
from softmap.model.many import AllDifferent, Constraints, Many, Parity, Repeated, kept_whole
from softmap.model.potentials import Potential
from softmap.model.potentials.base import Costs, Ints
from softmap.model.tables import Counts, FactorTables

__all__ = ["Copies", "Parities", "Pieces", "Placed", "Single", "is_kept"]


@dataclass(frozen=True)
class Single:
    """One factor over many variables.

    Attributes
    ----------
    factor : Many
        The factor.
    before : Counts
        How many tables were given before it.
    chain : Chain or None
        Its chain, with variables numbered from the number of variables on; None if it is not made
        yet.
    """

    factor: Many
    before: Counts
    chain: Chain | None = None

    def made(self, num_labels: Ints) -> Chain:
        """Return the chain."""
        if self.chain is not None:
            return self.chain
        sizes = num_labels[list(self.factor.variables)].tolist()
        return chains(self.factor, sizes, len(num_labels))

    def repeated(self) -> list[Repeated]:
        """Return the factor and its variables."""
        return [(self.factor, np.array([self.factor.variables]))]


@dataclass(frozen=True)
class Copies:
    """Copies of one factor over many variables, in bulk.

    Attributes
    ----------
    factor : Many
        The factor, over variables 0 to k - 1.
    scopes : int64[copies, k]
        The variables of each copy.
    before : Counts
        How many tables were given before them.
    chain : Chain
        The chain of the first copy, with chain variables numbered from k on.
    """

    factor: Many
    scopes: Ints
    before: Counts
    chain: Chain

    def repeated(self) -> list[Repeated]:
        """Return the factor and the variables of its copies."""
        return [(self.factor, self.scopes)]


@dataclass(frozen=True)
class Parities:
    """Hard parities over variables with two labels, too many variables for a table.

    Parity k is over `members[start[k]:start[k + 1]]`.
    """

    members: Ints
    start: Ints
    odd: Ints
    before: Counts

    def repeated(self) -> list[Repeated]:
        """Return one factor for each number of variables and right-hand side."""
        count = np.diff(self.start)
        pairs: list[Repeated] = []
        for size, is_odd in np.unique(np.column_stack([count, self.odd != 0]), axis=0).tolist():
            rows = self.start[:-1][(count == size) & ((self.odd != 0) == is_odd)]
            scopes = self.members[rows[:, None] + np.arange(size)]
            pairs.append((Parity(range(size), bool(is_odd)), scopes))
        return pairs


Placed = Single | Copies | Parities


@dataclass(frozen=True)
class Pieces:
    """All factors of a model.

    Attributes
    ----------
    tables : FactorTables
        The constant, and the costs of variables, edges and larger factors.
    groups : list of (edges, potential)
        Further edges.
    many : tuple of Single, Copies or Parities
        The factors over many variables that are not tables.
    """

    tables: FactorTables
    groups: list[Group]
    many: tuple[Placed, ...] = ()

    @property
    def constraints(self) -> Constraints:
        """The factors over many variables."""
        return Constraints(tuple([pair for placed in self.many for pair in placed.repeated()]))

    def with_costs(self, unary: Costs, constant: float) -> Pieces:
        """Return the same factors with these unary costs and this constant."""
        return replace(self, tables=self.tables.with_costs(unary, constant))

    def with_pairs(self, groups: Sequence[tuple[Ints, Potential]]) -> Pieces:
        """Return the same factors with these edges instead."""
        return replace(self, tables=self.tables.without_pairs(), groups=list(groups))

    def reach(self) -> tuple[float, float]:
        """Return the largest |finite cost| of all chains, and their number of tables and nodes."""
        largest, count = 0.0, 0.0
        for placed in self.many:
            chain = None if isinstance(placed, Parities) else placed.chain
            if chain is None:  # its costs are 0 and +inf
                continue
            copies = len(placed.scopes) if isinstance(placed, Copies) else 1
            count += copies * (len(chain.factors) + len(chain.num_labels))
            distinct = {id(costs): costs for _, costs in chain.factors}.values()
            finite = (np.abs(costs[np.isfinite(costs)]).max(initial=0.0) for costs in distinct)
            largest = max(largest, *finite, 0.0)
        return largest, count


def is_kept(factor: AllDifferent, sizes: Sequence[int]) -> bool:
    """Whether an `AllDifferent` is more than one table."""
    labels = np.arange(max(sizes))
    owners = (np.array(sizes)[:, None] > labels).sum(axis=0)
    shared = np.flatnonzero(owners > 1)
    if len(shared) != 1:
        return True
    joint = math.prod([d for d in sizes if d > shared[0]])
    return bool(owners[shared[0]] > 2 and joint > SIZES.dense)


def is_required(factor: Many, chain: Chain) -> bool:
    """Whether a network keeps the factor beside its chain."""
    return kept_whole(factor) and (not chain.tree or (factor.hard and bool(chain.num_labels)))

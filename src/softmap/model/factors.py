"""The factors of a model as users and file readers give them: checked, and collected.

`Model.from_factors` and all file readers use `Assembly`. It takes single factors and whole arrays
of factors, in any order.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softmap.errors import ModelError, shown
from softmap.model.chains import SIZES as CHAINS
from softmap.model.chains import chains
from softmap.model.inputs import Group, finite_number, groups_of
from softmap.model.many import AllDifferent, Many, Parity
from softmap.model.names import Names
from softmap.model.pieces import Copies, Parities, Pieces, Placed, Single, is_kept
from softmap.model.potentials.base import (
    LARGEST_COST,
    RANGE,
    Costs,
    Ints,
    beyond,
    integers,
    largest,
    numbers,
    refuse_gradient,
)
from softmap.model.tables import SIZES, FactorTables, Scope

Factor = tuple[Sequence[Any], ArrayLike]


class Assembly(FactorTables):
    """Collect factors, and return the pieces of a model.

    A factor over many variables is kept as it is, unless one small table says the same.
    """

    def __init__(self, num_labels: Ints) -> None:
        super().__init__(num_labels)
        self.many: list[Placed] = []

    def add_many(self, factor: Many) -> None:
        """Add a factor over many variables."""
        sizes = self.num_labels[list(factor.variables)].tolist()
        if isinstance(factor, AllDifferent) and is_kept(factor, sizes):
            self.many.append(Single(factor, self.counts))  # its chains are made when it is lowered
            return
        chain = chains(factor, sizes, len(self.num_labels))
        if chain.num_labels or not chain.tree:
            self.many.append(Single(factor, self.counts, chain))
            return
        for scope, costs in chain.factors:
            self.add_factor(scope, costs)

    def add_copies(self, factor: Many, scopes: Ints) -> None:
        """Add the same factor over many variables for each row of `scopes`, in bulk.

        The variables of `factor` are replaced by those of the row; a column of `scopes` has
        variables with the same number of labels. The result is that of `add_many`, row by row.
        """
        if len(scopes) < 2:
            for row in scopes.tolist():
                self.add_many(factor.over(tuple(row)))
            return
        k = scopes.shape[1]
        own = factor.over(tuple(range(k)))
        chain = chains(own, self.num_labels[scopes[0]].tolist(), k)
        if chain.num_labels or not chain.tree:
            self.many.append(Copies(own, scopes, self.counts, chain))
            return
        for scope, costs in chain.factors:
            self.add_repeated(scopes[:, list(scope)], costs, bulk=False)

    def add_parities(self, members: Ints, start: Ints, odd: Ints) -> None:
        """Add hard parities over variables with two labels, in bulk.

        Parity k is over `members[start[k]:start[k + 1]]`. The long ones become the chains that
        `add_many` makes of them.
        """
        count = np.diff(start)
        long = np.flatnonzero(2.0**count > CHAINS.dense)
        for size, is_odd in np.unique(np.column_stack([count, odd != 0]), axis=0).tolist():
            if size and 2.0**size <= CHAINS.dense:
                rows = start[:-1][(count == size) & ((odd != 0) == is_odd)]
                scopes = members[rows[:, None] + np.arange(size)]
                self.add_copies(Parity(range(size), bool(is_odd)), scopes)
        if not len(long):
            return
        places = start[long][:, None]  # of the long ones alone
        sizes = count[long]
        first = np.append(0, np.cumsum(sizes))
        kept = np.repeat(places[:, 0] - first[:-1], sizes) + np.arange(int(first[-1]))
        self.many.append(Parities(members[kept], first, odd[long], self.counts))

    def pieces(self, groups: Sequence[Group] = (), names: Names | None = None) -> Pieces:
        """Return all factors; `groups` are further edges, which keep their potentials.

        Raises `InfeasibleModel` if the variables of an `AllDifferent` cannot all differ; `names`
        are used in its message.
        """
        pieces = Pieces(self, list(groups), tuple(self.many))
        for factor in pieces.constraints.of_kind(AllDifferent):
            allowed = [np.isfinite(own) for own in self.costs_of(factor.variables)]
            factor.require(allowed, None if names is None else names.variables)
        return pieces


# --- input of users -------------------------------------------------------------------------------


def assemble(
    num_labels: ArrayLike,
    factors: Iterable[Factor],
    groups: Sequence[Group] = (),
    constant: float = 0.0,
    names: Names | None = None,
) -> Pieces:
    """Check a list of factors and return the parts of its model; see `Model.from_factors`."""
    counts = checked_counts(num_labels)
    sizes: list[int] = counts.tolist()
    assembly = Assembly(counts)
    assembly.add_constant(finite_number(constant, "constant"))
    for number, factor in enumerate(factors):
        if isinstance(factor, Many):
            scope = _scope(number, factor.variables, names)
            _check_range(number, scope, len(sizes))
            assembly.add_many(factor.over(scope))
            continue
        scope, table = _checked(number, factor, sizes, names)
        if table.ndim == 0:
            assembly.add_constant(finite_number(table, f"factor {number} without variables"))
        elif table.ndim == 1:
            assembly.add_unary(scope[0], table)
        elif table.ndim == 2 and scope[0] > scope[1]:
            assembly.add_factor(scope[::-1], np.array(table.T, order="C"))
        else:
            assembly.add_factor(scope, np.array(table, order="C"))
    return assembly.pieces(groups_of(groups), names)


def checked_counts(num_labels: ArrayLike) -> Ints:
    """Return the label counts; there must be at least one variable, each with a label."""
    if isinstance(num_labels, list | tuple) and any(isinstance(d, str) for d in num_labels):
        raise ModelError(
            f"num_labels: expected numbers, or a mapping from names to numbers, such as "
            f"{{{next(d for d in num_labels if isinstance(d, str))!r}: 2}}; found a list of names"
        )
    counts = integers(num_labels, "num_labels")
    if counts.ndim != 1 or counts.size == 0:
        raise ModelError(
            "num_labels must list the label count of at least one variable, "
            f"not {shown(num_labels)}"
        )
    if counts.min() < 1:
        raise ModelError(
            f"variable {int(np.argmin(counts))} has no labels; every variable needs one or more"
        )
    if (total := int(counts.sum(dtype=np.float64))) > SIZES.total_labels:
        raise ModelError(f"the variables have {total} labels in all, too many for any memory")
    return counts


def listed_factors(factors: Any) -> list[Any]:
    """Return the factors as a list; raise `ModelError` if they are no list."""
    if isinstance(factors, str | bytes | Mapping) or not np.iterable(factors):
        listed = "; its items() are one" if isinstance(factors, Mapping) else ""
        raise ModelError(f"factors must be a list of (scope, costs), not {shown(factors)}{listed}")
    if isinstance(factors, list | tuple):
        return list(factors)
    return [_kept(factor) for factor in factors]


def _kept(factor: Any) -> Any:
    """Return a factor of a generator, which may reuse its array for the next one."""
    if isinstance(factor, tuple | list) and len(factor) == 2 and isinstance(factor[1], np.ndarray):
        return factor[0], factor[1].copy()
    return factor


def _check_range(number: int, scope: Scope, count: int) -> None:
    for i in scope:
        if not 0 <= i < count:
            raise ModelError(f"factor {number}: variable {shown(i)} is outside 0..{count - 1}")


def _checked(
    number: int, factor: Any, sizes: list[int], names: Names | None
) -> tuple[Scope, Costs]:
    try:
        scope, costs = factor
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"factor {number} must be a pair (scope, costs), not {shown(factor)}"
        ) from error
    variables = _scope(number, scope, names)
    refuse_gradient(costs, f"costs of factor {number}")
    table = numbers(costs, f"costs of factor {number}")
    if len(set(variables)) != len(variables):
        raise ModelError(f"factor {number}: scope {variables} names a variable twice")
    _check_range(number, variables, len(sizes))
    expected = tuple([sizes[i] for i in variables])
    if table.shape != expected:
        raise ModelError(
            f"factor {number} over {scope} needs costs of shape {expected}, not {table.shape}"
        )
    low = table.min()
    sound = low > -np.inf  # NaN compares as false
    if not sound or largest(table, low) > LARGEST_COST:
        bad = beyond(table) if sound else np.isnan(table) | (table == -np.inf)
        place = tuple(np.argwhere(bad)[0].tolist())
        raise ModelError(f"factor {number} over {variables} has {table[place]} at {place}; {RANGE}")
    return variables, table


def _scope(number: int, scope: Any, names: Names | None) -> Scope:
    """Return the variable numbers of a scope, which may be given by name if there are names."""
    try:
        if names is not None and not isinstance(scope, str | bytes):
            return tuple(names.place[v] if v in names.place else operator.index(v) for v in scope)
        return tuple(map(operator.index, scope))
    except TypeError as error:
        raise ModelError(f"factor {number}: {_scope_fault(scope, names)}") from error


def _scope_fault(scope: Any, names: Names | None) -> str:
    """Return what is wrong with a scope: its kind, or the first variable that does not exist."""
    what = "numbers" if names is None else "names or numbers"
    if names is not None and isinstance(scope, tuple | list):
        strange = next(v for v in scope if v not in names.place and not isinstance(v, int))
        some = ", ".join(map(repr, names.variables[:4]))
        more = ", …" if len(names.variables) > 4 else ""
        return f"there is no variable {shown(strange)}; the variables are {some}{more}"
    expected = f"the scope must be a tuple of variable {what}"
    alone = f"; ({shown(scope)},) is a tuple of one" if isinstance(scope, str) else ""
    order = "; a factor is (scope, costs)" if isinstance(scope, np.ndarray) else ""
    return f"{expected}, not {shown(scope)}{alone}{order}"

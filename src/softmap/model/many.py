"""Factors over many variables without their tables: counts, budgets, parities, maxima.

Each factor is a finite automaton that reads the labels of its variables in order; the cost is a
function of the last state. `softmap.model.chains` turns the automaton into small tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap import core
from softmap.arguments import flag, real
from softmap.errors import InfeasibleModel, ModelError, listed
from softmap.model.potentials.base import (
    LARGEST_COST,
    RANGE,
    Costs,
    Ints,
    integers,
    largest,
    numbers,
)

MOST_SUMS = 1 << 16
_BEYOND = 1 << 60  # above any sum: larger bounds are replaced by this one
_FAILED = 1 << 61  # one state for all sums that can no longer satisfy the bounds


@dataclass(frozen=True)
class Automaton:
    """A finite automaton over the labels of some variables; it starts in state 0.

    Attributes
    ----------
    variables : tuple of int
        The variables in the order in which they are read.
    moves : list of int64[states, labels]
        Label x of variable t takes state s to `moves[t][s, x]`; -1 is forbidden.
    costs : float64[states]
        Cost of each last state.
    prices : list of float64[states, labels], optional
        Cost of each move; none by default.
    """

    variables: tuple[int, ...]
    moves: list[Ints]
    costs: Costs
    prices: list[Costs] | None = None


class Many:
    """Base class of factors over many variables, given by number, or by name if they have names."""

    variables: tuple[Any, ...]

    def __init__(self, variables: Any = None) -> None:
        if variables is None:
            kind = type(self).__name__
            raise ModelError(f"{kind} needs its variables: {kind}([0, 1, 2]) is a factor by itself")
        if _has_names(variables):
            self.variables = tuple(variables)
        else:
            given = integers(variables, f"{type(self).__name__} variables")
            if given.ndim != 1 or not given.size:
                raise ModelError(f"{type(self).__name__} needs a list of variables")
            self.variables = tuple(given.tolist())
        if len(set(self.variables)) != len(self.variables):
            raise ModelError(f"{type(self).__name__} names a variable twice")

    def over(self, variables: tuple[int, ...]) -> Self:
        """Return the same factor over other variables; their number stays the same."""
        if len(set(variables)) != len(variables):
            raise ModelError(f"{type(self).__name__} names a variable twice")
        other = copy(self)
        other.variables = variables
        return other

    def automata(self, sizes: Sequence[int]) -> list[Automaton]:
        """Return automata whose costs add up to the factor.

        `sizes` are the label counts of its variables.
        """
        raise NotImplementedError

    @property
    def hard(self) -> bool:
        """Whether it is a sum or count that only forbids, and may be searched as a whole."""
        return False

    def require(self, allowed: Sequence[NDArray[np.bool_]], names: Sequence[Any] | None) -> None:
        """Raise `InfeasibleModel` if no allowed labels satisfy the factor.

        Only factors that do not become one tree need this check: on a tree, arc consistency detects
        infeasibility.

        Parameters
        ----------
        allowed : sequence of bool arrays
            Mask of the allowed labels of each variable of the factor.
        names : sequence, optional
            Names of the variables of the model in error messages; their numbers by default.
        """

    def called(self, places: Sequence[int], names: Sequence[Any] | None) -> str:
        """Return the names of some variables of the factor, for error messages."""
        numbered = [self.variables[t] for t in places]
        return listed(numbered if names is None else [names[i] for i in numbered])

    def arrays(self, sizes: Sequence[int]) -> tuple[Ints, Costs]:
        """Return the integers and the costs that define the factor, beside its variables.

        `sizes` are the label counts of its variables. Only families in `KINDS` have arrays.
        """
        raise NotImplementedError

    @classmethod
    def from_arrays(
        cls, variables: Ints, sizes: Sequence[int], integers: Ints, costs: Costs
    ) -> Many:
        """Return the factor of `arrays`; raise `ModelError` if they do not fit."""
        raise NotImplementedError

    def stored(self) -> tuple[Ints, Costs]:
        """Return the integers and costs that define the factor in a file, beside its variables.

        Only the families in `STORED` have them.
        """
        raise NotImplementedError

    @classmethod
    def restored(cls, variables: Ints, integers: Ints, costs: Costs) -> Many:
        """Return the factor of `stored`; raise `ModelError` or `ValueError` if they do not fit."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.variables)} variables)"


Kind = TypeVar("Kind", bound=Many)

Repeated = tuple[Many, Ints]
"""A factor, and the variables of each of its copies: one row per copy."""


class Constraints(Sequence[Many]):
    """The factors over many variables of a model, each made when it is asked for.

    Parameters
    ----------
    repeated : tuple of (Many, int array)
        Factors, and the variables of each of their copies.
    """

    def __init__(self, repeated: tuple[Repeated, ...]) -> None:
        self.repeated = repeated

    def __len__(self) -> int:
        return sum(len(scopes) for _, scopes in self.repeated)

    @overload
    def __getitem__(self, index: int) -> Many: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Many]: ...
    def __getitem__(self, index: int | slice) -> Many | Sequence[Many]:
        if isinstance(index, slice):
            return tuple(self)[index]
        place = index + len(self) if index < 0 else index
        for factor, scopes in self.repeated:
            if 0 <= place < len(scopes):
                return factor.over(tuple(scopes[place].tolist()))
            place -= len(scopes)
        raise IndexError(f"there are {len(self)} constraints, not {index}")

    def of_kind(self, kind: type[Kind]) -> Iterator[Kind]:
        """Iterate over the factors of one family; others are not made for that."""
        for factor, scopes in self.repeated:
            if isinstance(factor, kind):
                for row in scopes.tolist():
                    yield factor.over(tuple(row))

    def __repr__(self) -> str:
        return repr(tuple(self))


NO_CONSTRAINTS = Constraints(())


def _has_names(variables: Any) -> bool:
    if isinstance(variables, np.ndarray):
        return variables.ndim == 1 and variables.dtype.kind == "U"
    if not isinstance(variables, list | tuple) or not any(isinstance(v, str) for v in variables):
        return False
    return all(isinstance(v, str | int | np.integer) for v in variables)


class Cardinality(Many):
    """A factor with cost `costs[c]` if `c` of the variables have the label.

    Parameters
    ----------
    variables : list of int or str
        The variables, by number, or by name in a model with names.
    label : int or list of int
        The label that is counted: one for all variables, or one for each.
    costs : float array
        `k + 1` costs for `k` variables, one per count; `+inf` forbids a count.

    Examples
    --------
    Exactly two of three binary variables have label 1:

    >>> import softmap
    >>> two = softmap.Cardinality([0, 1, 2], 1, [float("inf"), float("inf"), 0, float("inf")])
    >>> model = softmap.Model.from_factors([2, 2, 2], [((0,), [0, 1]), two])
    >>> softmap.solve(model).labels.tolist()
    [0, 1, 1]
    """

    def __init__(self, variables: Any, label: Any, costs: ArrayLike) -> None:
        super().__init__(variables)
        k = len(self.variables)
        given = integers(label, "label")
        if given.shape not in ((), (k,)) or (given < 0).any():
            raise ModelError(f"label must be one label, or one for each of {k} variables")
        self.label = np.broadcast_to(given, (k,))
        self.costs = _checked_costs(costs)
        if self.costs.shape != (k + 1,):
            raise ModelError(f"expected {k + 1} costs, one for each count, not {self.costs.shape}")

    def ones(self, t: int, d: int) -> Ints:
        """Return 1 for each counted label of variable t, else 0; int64[d]."""
        return (np.arange(d) == self.label[t]).astype(np.int64)

    def all_ones(self, sizes: Sequence[int]) -> Ints:
        """Return `ones` of all variables, concatenated."""
        return np.concatenate([self.ones(t, d) for t, d in enumerate(sizes)])

    def arrays(self, sizes: Sequence[int]) -> tuple[Ints, Costs]:
        """Return which labels are counted (1 or 0), and the cost of each count."""
        return self.all_ones(sizes), self.costs

    def stored(self) -> tuple[Ints, Costs]:
        """Return the label of each variable, and the cost of each count."""
        return np.array(self.label, dtype=np.int64), self.costs

    @classmethod
    def restored(cls, variables: Ints, integers: Ints, costs: Costs) -> Cardinality:
        """Return the factor of `stored`."""
        return cls(variables, integers, costs)

    def require(self, allowed: Sequence[NDArray[np.bool_]], names: Sequence[Any] | None) -> None:
        """Raise `InfeasibleModel` if no attainable count has finite cost."""
        sizes, flat = np.array([len(own) for own in allowed]), np.concatenate(allowed)
        counted, start = self.all_ones(sizes.tolist()) > 0, np.cumsum(sizes) - sizes
        must = int(np.sum(~np.logical_or.reduceat(flat & ~counted, start)))
        may = int(np.sum(np.logical_or.reduceat(flat & counted, start)))
        if not np.isfinite(self.costs[must : may + 1]).any():
            raise InfeasibleModel(
                f"no labelling has finite cost: {type(self).__name__} can count between {must} and "
                f"{may} of variables {self.called(range(len(allowed)), names)}, and all of these "
                "counts cost +inf",
                self.variables[0],
            )

    @property
    def hard(self) -> bool:
        """Whether the costs are 0 and +inf, with 0 in one range."""
        free = np.flatnonzero(self.costs == 0.0)
        forbidden = np.count_nonzero(self.costs == np.inf)
        return 0 < forbidden == len(self.costs) - len(free) and bool(
            not len(free) or free[-1] - free[0] < len(free)
        )

    def _cap(self) -> int:
        """The smallest count from which on all costs are equal."""
        changes = np.flatnonzero(self.costs[1:] != self.costs[:-1])
        return int(changes[-1]) + 1 if len(changes) else 0

    @property
    def states(self) -> int:
        """The number of counts that the automaton must distinguish."""
        cap = self._cap()
        return max(cap, 1) if self.costs[cap] == np.inf else cap + 1

    @property
    def convex(self) -> bool:
        """Whether the costs are convex: finite in one range, with non-decreasing differences."""
        finite = np.flatnonzero(np.isfinite(self.costs))
        if not len(finite) or finite[-1] - finite[0] >= len(finite):
            return False
        rises = np.diff(self.costs[finite])
        slack = 1e-12 * np.abs(self.costs[finite]).max()  # rounding errors of the differences
        return bool((rises[1:] >= rises[:-1] - slack).all())

    def automata(self, sizes: Sequence[int]) -> list[Automaton]:
        """Return one automaton, whose state is the count so far (capped)."""
        cap = self._cap()
        lost = bool(self.costs[cap] == np.inf)  # every count from `cap` on is forbidden
        most = self.states - 1
        moves, known = [], dict[tuple[int, bytes], Ints]()  # most variables have equal moves
        for t, d in enumerate(sizes):
            own = self.ones(t, d)
            key = min(t, most), own.tobytes()
            if key not in known:
                counted = np.arange(key[0] + 1)[:, None] + own
                known[key] = np.where(counted >= cap, -1 if lost else cap, counted)
            moves.append(known[key])
        return [Automaton(self.variables, moves, self.costs[: min(most, len(sizes)) + 1])]


class Among(Cardinality):
    """A factor with cost `costs[c]` if `c` variables have a label in their own set.

    Parameters
    ----------
    variables : list of int or str
        The variables, by number, or by name in a model with names.
    labels : list of lists of int
        The labels that are counted, for each variable.
    costs : float array
        `k + 1` costs for `k` variables, one per count.
    """

    def __init__(self, variables: Any, labels: Sequence[Sequence[int]], costs: ArrayLike) -> None:
        super().__init__(variables, 0, costs)
        self.labels = [integers(own, "labels").reshape(-1) for own in labels]
        if len(self.labels) != len(self.variables):
            raise ModelError(
                f"expected a set of labels for each of {len(self.variables)} variables"
            )

    def ones(self, t: int, d: int) -> Ints:
        """Return 1 for each counted label of variable t, else 0; int64[d]."""
        return np.isin(np.arange(d), self.labels[t]).astype(np.int64)

    @classmethod
    def from_arrays(
        cls, variables: Ints, sizes: Sequence[int], integers: Ints, costs: Costs
    ) -> Among:
        """Return the factor of `arrays`, with one set of labels per variable."""
        rows = _by_label(integers, sizes)
        labels = [np.flatnonzero(row).tolist() for row in rows]
        return cls(variables, labels, costs)

    def stored(self) -> tuple[Ints, Costs]:
        """Return the number of counted labels of each variable, then these; and the costs."""
        return _joined(self.labels), self.costs

    @classmethod
    def restored(cls, variables: Ints, integers: Ints, costs: Costs) -> Among:
        """Return the factor of `stored`."""
        return cls(variables, [row.tolist() for row in _apart(integers, len(variables))], costs)


def _joined(rows: Sequence[Ints]) -> Ints:
    """Return the lengths of integer arrays, then their entries."""
    sizes = np.array([len(row) for row in rows], dtype=np.int64)
    return np.concatenate([sizes, *rows]).astype(np.int64)


def _apart(joined: Ints, count: int) -> list[Ints]:
    """Return the arrays of `_joined`."""
    sizes, entries = joined[:count], joined[count:]
    if len(sizes) != count or (sizes < 0).any() or sizes.sum() != len(entries):
        raise ModelError("the integers of a factor over many variables do not fit")
    return np.split(entries, np.cumsum(sizes)[:-1])


def _checked_costs(costs: Any) -> Costs:
    given = numbers(costs, "costs")
    if np.isnan(given).any() or (given == -np.inf).any() or largest(given) > LARGEST_COST:
        raise ModelError(f"one of the costs is NaN, -inf or too large; {RANGE}")
    return given


def _penalty(penalty: Any) -> float:
    cost = _checked_costs(penalty)
    if cost.ndim:
        raise ModelError(f"penalty must be one cost, not an array of shape {cost.shape}")
    return float(cost)


def _counts(factor: Many, variables: Any, wrong: Any, penalty: Any) -> Costs:
    """Return the costs of counts 0 to k: the penalty where `wrong(count)` is true, else 0."""
    Many.__init__(factor, variables)
    return np.where(wrong(np.arange(len(factor.variables) + 1)), _penalty(penalty), 0.0)


class AtMostOne(Cardinality):
    """A factor that penalises labellings in which two or more variables have the label.

    Parameters
    ----------
    variables : list of int or str
        The variables, by number, or by name in a model with names.
    label : int or list of int, default 1
        One label for all variables, or one for each.
    penalty : float, default +inf
        Cost of a violation; `+inf` forbids it.

    Examples
    --------
    >>> import softmap
    >>> factors = [((0,), [1, 0]), ((1,), [2, 0]), softmap.AtMostOne([0, 1])]
    >>> softmap.solve(softmap.Model.from_factors([2, 2], factors)).labels.tolist()
    [0, 1]
    """

    def __init__(self, variables: Any = None, label: Any = 1, penalty: float = math.inf) -> None:
        super().__init__(variables, label, _counts(self, variables, lambda c: c > 1, penalty))

    def stored(self) -> tuple[Ints, Costs]:
        """Return the label of each variable, and the penalty."""
        return np.array(self.label, dtype=np.int64), self.costs[-1:][:1]

    @classmethod
    def restored(cls, variables: Ints, integers: Ints, costs: Costs) -> AtMostOne:
        """Return the factor of `stored`."""
        return cls(variables, integers, costs.item())


class ExactlyOne(Cardinality):
    """A factor that penalises labellings in which not exactly one variable has the label.

    Parameters
    ----------
    variables : list of int or str
        The variables, by number, or by name in a model with names.
    label : int or list of int, default 1
        One label for all variables, or one for each.
    penalty : float, default +inf
        Cost of a violation; `+inf` forbids it.

    Examples
    --------
    >>> import softmap
    >>> factors = [((0,), [0, 2]), ((1,), [0, 1]), softmap.ExactlyOne([0, 1])]
    >>> softmap.solve(softmap.Model.from_factors([2, 2], factors)).labels.tolist()
    [0, 1]
    """

    def __init__(self, variables: Any = None, label: Any = 1, penalty: float = math.inf) -> None:
        super().__init__(variables, label, _counts(self, variables, lambda c: c != 1, penalty))

    def stored(self) -> tuple[Ints, Costs]:
        """Return the label of each variable, and the penalty."""
        return np.array(self.label, dtype=np.int64), self.costs[0:][:1]

    @classmethod
    def restored(cls, variables: Ints, integers: Ints, costs: Costs) -> ExactlyOne:
        """Return the factor of `stored`."""
        return cls(variables, integers, costs.item())


class Or(Cardinality):
    """A factor that penalises labellings in which no variable has the label (a clause).

    Parameters
    ----------
    variables : list of int or str
        The variables, by number, or by name in a model with names.
    label : int or list of int, default 1
        One label for all variables, or one for each (0 for a negated literal).
    penalty : float, default +inf
        Cost of a violation; `+inf` forbids it.

    Examples
    --------
    The clause "x0 or not x1":

    >>> import softmap
    >>> factors = [((0,), [0, 1]), ((1,), [5, 0]), softmap.Or([0, 1], label=[1, 0])]
    >>> softmap.solve(softmap.Model.from_factors([2, 2], factors)).labels.tolist()
    [1, 1]
    """

    def __init__(self, variables: Any = None, label: Any = 1, penalty: float = math.inf) -> None:
        super().__init__(variables, label, _counts(self, variables, lambda c: c < 1, penalty))

    def stored(self) -> tuple[Ints, Costs]:
        """Return the label of each variable, and the penalty."""
        return np.array(self.label, dtype=np.int64), self.costs[0:][:1]

    @classmethod
    def restored(cls, variables: Ints, integers: Ints, costs: Costs) -> Or:
        """Return the factor of `stored`."""
        return cls(variables, integers, costs.item())


class Parity(Many):
    """A factor that penalises labellings whose sum of labels has the wrong parity.

    Parameters
    ----------
    variables : list of int or str
        The variables, by number, or by name in a model with names.
    odd : bool, default False
        Whether the sum must be odd; by default it must be even.
    penalty : float, default +inf
        Cost of a violation; `+inf` forbids it.

    Examples
    --------
    >>> import softmap
    >>> factors = [((0,), [2, 0]), ((1,), [0, 1]), softmap.Parity([0, 1])]
    >>> softmap.solve(softmap.Model.from_factors([2, 2], factors)).labels.tolist()
    [1, 1]
    """

    def __init__(self, variables: Any, odd: bool = False, penalty: float = math.inf) -> None:
        super().__init__(variables)
        self.odd = flag("odd", odd)
        self.penalty = _penalty(penalty)

    def automata(self, sizes: Sequence[int]) -> list[Automaton]:
        """Return one automaton, whose state is the parity so far."""
        later = {d: (np.arange(2)[:, None] + np.arange(d)) % 2 for d in set(sizes)}
        moves = [later[sizes[0]][:1], *(later[d] for d in sizes[1:])]
        costs = np.array([self.penalty, 0.0] if self.odd else [0.0, self.penalty])
        return [Automaton(self.variables, moves, costs)]

    def stored(self) -> tuple[Ints, Costs]:
        """Return whether the sum is odd, and the penalty."""
        return np.array([self.odd], dtype=np.int64), np.array([self.penalty])

    @classmethod
    def restored(cls, variables: Ints, integers: Ints, costs: Costs) -> Parity:
        """Return the factor of `stored`."""
        return cls(variables, bool(integers.item()), costs.item())


class Max(Many):
    """A factor with cost `costs[y]` if `y` is the largest label of its variables.

    Parameters
    ----------
    variables : list of int or str
        The variables, by number, or by name in a model with names.
    costs : float array
        One cost per label.

    Examples
    --------
    >>> import softmap
    >>> factors = [((0,), [1, 0]), ((1,), [1, 0]), softmap.Max([0, 1], [0, 1.5])]
    >>> softmap.solve(softmap.Model.from_factors([2, 2], factors)).labels.tolist()
    [1, 1]
    """

    def __init__(self, variables: Any, costs: ArrayLike) -> None:
        super().__init__(variables)
        self.costs = _checked_costs(costs)
        if self.costs.ndim != 1 or not self.costs.size:
            raise ModelError("Max needs a list of costs, one for each label")

    def automata(self, sizes: Sequence[int]) -> list[Automaton]:
        """Return one automaton, whose state is the largest label so far."""
        if len(self.costs) < max(sizes):
            raise ModelError(f"Max needs {max(sizes)} costs, one for each label")
        moves, states = [], 1
        for d in sizes:
            moves.append(np.maximum(np.arange(states)[:, None], np.arange(d)))
            states = max(states, d)
        return [Automaton(self.variables, moves, self.costs[:states])]

    def stored(self) -> tuple[Ints, Costs]:
        """Return the costs."""
        return np.zeros(0, dtype=np.int64), self.costs

    @classmethod
    def restored(cls, variables: Ints, integers: Ints, costs: Costs) -> Max:
        """Return the factor of `stored`."""
        return cls(variables, costs)


class Linear(Many):
    """A linear constraint with integer weights: `low <= Σ weight <= high`, else a penalty.

    Parameters
    ----------
    variables : list of int or str
        The variables, by number, or by name in a model with names.
    weights : list of int, or list of int arrays
        One weight per variable, which is multiplied by the label; or for each variable an array
        with one weight per label.
    low : float, optional
        Lower bound of the sum; none by default.
    high : float, optional
        Upper bound of the sum; none by default.
    penalty : float, default +inf
        Cost of a violation; `+inf` forbids it.

    Examples
    --------
    A knapsack: items of weights 2, 3 and 4, capacity 6, values 3, 4 and 6.

    >>> import softmap
    >>> values = [((i,), [0, -value]) for i, value in enumerate((3, 4, 6))]
    >>> capacity = softmap.Linear([0, 1, 2], [2, 3, 4], high=6)
    >>> softmap.solve(softmap.Model.from_factors([2, 2, 2], [*values, capacity])).labels.tolist()
    [1, 0, 1]
    """

    def __init__(
        self,
        variables: Any,
        weights: Any,
        *,
        low: float | None = None,
        high: float | None = None,
        penalty: float = math.inf,
    ) -> None:
        super().__init__(variables)
        listed = isinstance(weights, list | tuple) or (
            isinstance(weights, np.ndarray) and weights.ndim > 0
        )
        given = list(weights) if listed else []
        whole = isinstance(weights, np.ndarray) and weights.dtype == np.int64
        self.weights = given if whole else [integers(w, "weights") for w in given]
        if len(given) != len(self.variables):
            raise ModelError(f"expected weights for {len(self.variables)} variables")
        self.low = -math.inf if low is None else _whole("low", low, math.ceil)
        self.high = math.inf if high is None else _whole("high", high, math.floor)
        self.penalty = _penalty(penalty)

    def automata(self, sizes: Sequence[int]) -> list[Automaton]:
        """Return one automaton, whose state is the sum so far.

        Sums that satisfy the bounds whatever the other labels are share one state. Sums that
        violate them in any case share another.
        """
        found = self.automaton(sizes)
        if found is None:
            raise ModelError(
                f"Linear over {len(sizes)} variables has more than {MOST_SUMS} different sums"
            )
        return [found]

    @property
    def hard(self) -> bool:
        """Whether a violation is forbidden."""
        return self.penalty == math.inf

    def arrays(self, sizes: Sequence[int]) -> tuple[Ints, Costs]:
        """Return the weights by label; and both bounds and the penalty."""
        rows = [_row(w, d) for w, d in zip(self.weights, sizes, strict=True)]
        return np.concatenate(rows), np.array([self.low, self.high, self.penalty])

    @classmethod
    def from_arrays(
        cls, variables: Ints, sizes: Sequence[int], integers: Ints, costs: Costs
    ) -> Linear:
        """Return the factor of `arrays`, with one weight per label."""
        low, high, penalty = costs.tolist()
        return cls(variables, _by_label(integers, sizes), low=low, high=high, penalty=penalty)

    def stored(self) -> tuple[Ints, Costs]:
        """Return the weights; and both bounds and the penalty.

        Of each variable, the first integer says if there is one weight per label (1) or one weight
        that is multiplied by the label (0).
        """
        rows = [np.append(int(w.ndim > 0), w) for w in self.weights]
        return _joined(rows), np.array([self.low, self.high, self.penalty])

    @classmethod
    def restored(cls, variables: Ints, integers: Ints, costs: Costs) -> Linear:
        """Return the factor of `stored`."""
        low, high, penalty = costs.tolist()
        rows = _apart(integers, len(variables))
        weights = [row[1:] if row[0] else row[1:].reshape(()) for row in rows]
        return cls(variables, weights, low=low, high=high, penalty=penalty)

    def automaton(self, sizes: Sequence[int], entries: float = math.inf) -> Automaton | None:
        """Return the automaton; None if its sums are too many, or the entries of its chain."""
        moves, total, sums = [], 0, np.zeros(1, dtype=np.int64)
        for place, kept in self._steps(sizes):
            total += place.size * len(kept)
            if total > entries or place.size > MOST_SUMS:
                return None
            moves.append(place)
            sums = kept
        return Automaton(self.variables, moves, np.where(sums == _FAILED, self.penalty, 0.0))

    def shifted(self, sizes: Sequence[int]) -> tuple[list[Ints], int]:
        """Weights by label, from 0 on, for each variable, and the sum of what was taken away."""
        rows = [_row(w, d) for w, d in zip(self.weights, sizes, strict=True)]
        least = [int(row.min()) for row in rows]
        return [row - low for row, low in zip(rows, least, strict=True)], sum(least)

    def _steps(self, sizes: Sequence[int]) -> Iterator[tuple[Ints, Ints]]:
        """After each variable: where each sum and label lead, and the sums that there are then.

        Weights are counted from the least of each variable. Equal steps share their arrays.
        """
        rows, least = self.shifted(sizes)
        most = [max(row.tolist()) for row in rows]
        low, high, rest, top = max(self.low - least, 0), self.high - least, sum(most), 0
        sums = np.zeros(1, dtype=np.int64)
        known: dict[tuple[int, bytes, float, float], tuple[Ints, Ints]] = {}
        same: dict[bytes, Ints] = {sums.tobytes(): sums}
        for row, largest_weight in zip(rows, most, strict=True):
            rest -= largest_weight
            top += largest_weight  # no sum is larger
            needed, safe = max(low - rest, 0), max(min(high - rest, top), -1)
            key = id(sums), row.tobytes(), needed, safe
            if key not in known:
                place, kept = self._step(sums, row, (needed, high), (low, safe))
                known[key] = place, same.setdefault(kept.tobytes(), kept)
            place, sums = known[key]
            yield place, sums

    def _step(
        self, sums: Ints, row: Ints, possible: tuple[float, float], safe: tuple[float, float]
    ) -> tuple[Ints, Ints]:
        """One step: sums out of the possible ones fail, all that are safe are one state."""
        after = np.where(sums[:, None] == _FAILED, _FAILED, sums[:, None] + row)
        fails = (after == _FAILED) | (after < possible[0]) | (after > possible[1])
        after = np.where((after >= safe[0]) & (after <= safe[1]), int(min(safe[0], _BEYOND)), after)
        after[fails] = _FAILED
        kept, place = np.unique(after, return_inverse=True)
        place = place.reshape(after.shape)
        if self.penalty == math.inf and len(kept) and kept[-1] == _FAILED:
            place[after == _FAILED] = -1
            kept = kept[:-1]
        # a state that no move leads to, if there is none
        return place, kept if len(kept) else np.zeros(1, dtype=np.int64)


def _whole(name: str, bound: Any, rounded: Any) -> float:
    value = real(name, bound)
    if math.isnan(value):
        raise ModelError(f"{name} must be a number, not NaN")
    if math.isinf(value):
        return value if (value > 0) == (rounded is math.floor) else math.copysign(_BEYOND, value)
    within = min(max(value, -float(_BEYOND)), float(_BEYOND))
    return float(rounded(within))


def _row(weights: Ints, d: int) -> Ints:
    row = weights * np.arange(d) if weights.ndim == 0 else weights
    if row.shape != (d,):
        raise ModelError(f"expected {d} weights, one for each label, not {row.shape}")
    if row.max() > 2**40 or row.min() < -(2**40):
        raise ModelError("weights must be at most 2^40")
    return row


class AllDifferent(Many):
    """A hard constraint: no two of the variables have the same label.

    It is the sum of one `AtMostOne` per label; their linear relaxation is the assignment polytope.

    Parameters
    ----------
    variables : list of int or str
        The variables, by number, or by name in a model with names.

    Examples
    --------
    >>> import softmap
    >>> factors = [((0,), [0, 1]), ((1,), [0, 3]), softmap.AllDifferent([0, 1])]
    >>> softmap.solve(softmap.Model.from_factors([2, 2], factors)).labels.tolist()
    [1, 0]
    """

    def require(self, allowed: Sequence[NDArray[np.bool_]], names: Sequence[Any] | None) -> None:
        """Raise `InfeasibleModel`, naming a Hall set, if no matching gives distinct labels."""
        costs = np.full((len(allowed), max(map(len, allowed))), np.inf)
        for row, mask in zip(costs, allowed, strict=True):
            row[: len(mask)][mask] = 0.0
        label_of, prices = np.empty(len(costs), dtype=np.int64), np.empty(costs.shape[1])
        core.linear_assignment(costs, label_of, prices)  # a maximum matching
        alone = np.flatnonzero(label_of < 0)
        if not len(alone):
            return
        labels = [np.flatnonzero(mask) for mask in allowed]
        crowd, between = _hall_set(int(alone[0]), labels, label_of)
        raise InfeasibleModel(
            f"no labelling has finite cost: variables {self.called(crowd, names)} must have "
            f"different labels, but the {len(crowd)} variables have only {between} allowed labels "
            "together",
            self.variables[crowd[0]],
        )

    @property
    def hard(self) -> bool:
        """It only forbids."""
        return True

    def arrays(self, sizes: Sequence[int]) -> tuple[Ints, Costs]:
        """Its variables define it."""
        return np.zeros(0, dtype=np.int64), np.zeros(0)

    @classmethod
    def from_arrays(
        cls, variables: Ints, sizes: Sequence[int], integers: Ints, costs: Costs
    ) -> AllDifferent:
        """Return the factor over these variables."""
        return cls(variables)

    def stored(self) -> tuple[Ints, Costs]:
        """Its variables define it."""
        return np.zeros(0, dtype=np.int64), np.zeros(0)

    @classmethod
    def restored(cls, variables: Ints, integers: Ints, costs: Costs) -> AllDifferent:
        """Return the factor over these variables."""
        return cls(variables)

    def automata(self, sizes: Sequence[int]) -> list[Automaton]:
        """Return one automaton for each label that two or more variables can have."""
        found = []
        for label in range(max(sizes)):
            own = [(v, d) for v, d in zip(self.variables, sizes, strict=True) if d > label]
            if len(own) > 1:
                part = AtMostOne([v for v, _ in own], label)
                found += part.automata([d for _, d in own])
        return found


KINDS: tuple[type[Many], ...] = (AllDifferent, Among, Linear)
"""The families beside chains in networks, by number; `Among` holds every cardinality."""

STORED: dict[str, type[Many]] = {
    kind.__name__: kind
    for kind in (AllDifferent, Among, AtMostOne, Cardinality, ExactlyOne, Linear, Max, Or, Parity)
}
"""The families that files hold as they are."""


def kept_whole(factor: Many) -> bool:
    """Whether models keep the factor beside its chain: files can hold it."""
    return isinstance(factor, AllDifferent | Cardinality | Linear)


def kind_of(factor: Many) -> int:
    """Return the number in `KINDS` of the family that holds the factor in files."""
    family = Among if isinstance(factor, Cardinality) else type(factor)
    return next(k for k, kind in enumerate(KINDS) if issubclass(family, kind))


def _by_label(integers: Ints, sizes: Sequence[int]) -> list[Ints]:
    """Split integers that are given for all labels of all variables; one array per variable."""
    if len(integers) != sum(sizes):
        raise ModelError(f"expected {sum(sizes)} integers, one for each label, not {len(integers)}")
    return np.split(integers, np.cumsum(sizes)[:-1])


def _hall_set(first: int, labels: list[NDArray[np.int64]], label_of: Ints) -> tuple[list[int], int]:
    """Variables with fewer labels than there are of them, from one that no matching serves."""
    owner = {int(label): k for k, label in enumerate(label_of.tolist()) if label >= 0}
    crowd, reached, front = {first}, set(), [first]
    while front:
        for label in labels[front.pop()].tolist():
            if label not in reached:  # a maximum matching gives it to somebody
                reached.add(label)
                if owner[label] not in crowd:
                    crowd.add(owner[label])
                    front.append(owner[label])
    return sorted(crowd), len(reached)


def joint(automaton: Automaton) -> Costs:
    """Return the table of costs over all joint states of one automaton."""
    state: Ints = np.zeros((), dtype=np.int64)
    paid: Costs = np.zeros(())
    for t, moves in enumerate(automaton.moves):
        if automaton.prices is not None:
            paid = paid[..., None] + automaton.prices[t][state]
        state = np.where(state[..., None] >= 0, moves[state], -1)
    return paid + final_costs(automaton.costs, state)


def final_costs(costs: Costs, state: Ints) -> Costs:
    """Return the costs of last states; `+inf` for state -1."""
    padded = np.append(costs, np.inf)
    return padded[state]

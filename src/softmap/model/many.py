"""Factors over many variables without their tables: counts, budgets, parities, maxima.

Each is an automaton: a state that every variable moves on, and a cost of the last state.
`softmap.model.chains` writes it out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.arguments import flag, real
from softmap.errors import InfeasibleModel, ModelError
from softmap.model.potentials.base import (
    LARGEST_COST,
    RANGE,
    Costs,
    Ints,
    integers,
    largest,
    numbers,
)

__all__ = [
    "AllDifferent", "Among", "AtMostOne", "Automaton", "Cardinality", "ExactlyOne", "Linear",
    "Many", "Max", "Or", "Parity", "Regular", "dense", "final_costs", "joint",
]  # fmt: skip

MOST_SUMS = 1 << 16
SHOWN = 12  # variables that a message names
_BEYOND = 1 << 60  # more than any sum: bounds beyond it are as good as this one
_FAILED = 1 << 61  # stands for all sums that cannot hold any more


@dataclass(frozen=True)
class Automaton:
    """From state 0, variable t moves state s to `moves[t][s, x]` (-1: forbidden)."""

    variables: tuple[int, ...]
    moves: list[Ints]
    costs: Costs


class Many:
    """A factor over many variables, which are given by number, or by name where they have names."""

    variables: tuple[Any, ...]

    def __init__(self, variables: Any) -> None:
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
        """The same factor over other variables, as many."""
        if len(set(variables)) != len(variables):
            raise ModelError(f"{type(self).__name__} names a variable twice")
        other = copy(self)
        other.variables = variables
        return other

    def automata(self, sizes: Sequence[int]) -> list[Automaton]:
        """What the factor is the sum of; `sizes` are the label counts of its variables."""
        raise NotImplementedError

    def require(self, allowed: Sequence[NDArray[np.bool_]], names: Sequence[Any] | None) -> None:
        """Raise `InfeasibleModel` unless labels obey it that its variables may have.

        For factors that are not written as one tree: there, arc consistency misses nothing.

        Parameters
        ----------
        allowed : sequence of bool arrays
            Which labels each of its variables may have.
        names : sequence, optional
            What messages call the variables of the model; their numbers if left out.
        """

    def called(self, places: Sequence[int], names: Sequence[Any] | None) -> str:
        """Some of its variables, as messages name them."""
        numbered = [self.variables[t] for t in places[:SHOWN]]
        found = numbered if names is None else [names[i] for i in numbered]
        return ", ".join(map(str, found)) + (", …" if len(places) > SHOWN else "")

    def cost(self, labels: Sequence[int], sizes: Sequence[int]) -> float:
        """The cost of labels of its variables, in order."""
        total = 0.0
        for automaton in self.automata(sizes):
            place = {v: t for t, v in enumerate(self.variables)}
            state = 0
            for v, moves in zip(automaton.variables, automaton.moves, strict=True):
                state = int(moves[state, labels[place[v]]]) if state >= 0 else -1
            total += float(automaton.costs[state]) if state >= 0 else math.inf
        return total

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.variables)} variables)"


def _has_names(variables: Any) -> bool:
    if isinstance(variables, np.ndarray):
        return variables.ndim == 1 and variables.dtype.kind == "U"
    if not isinstance(variables, list | tuple) or not any(isinstance(v, str) for v in variables):
        return False
    return all(isinstance(v, str | int | np.integer) for v in variables)


class Cardinality(Many):
    """`costs[c]` where c of the variables have the label (k + 1 costs for k variables).

    `label` is one label for all, or a list of one for each variable.
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
        """1 for each label of variable t that counts."""
        return (np.arange(d) == self.label[t]).astype(np.int64)

    def require(self, allowed: Sequence[NDArray[np.bool_]], names: Sequence[Any] | None) -> None:
        """Every count between those that must and those that may be counted can be had."""
        counted = [self.ones(t, len(own)).astype(bool) for t, own in enumerate(allowed)]
        must = sum(not own[~ones].any() for own, ones in zip(allowed, counted, strict=True))
        may = sum(bool(own[ones].any()) for own, ones in zip(allowed, counted, strict=True))
        if not np.isfinite(self.costs[must : may + 1]).any():
            raise InfeasibleModel(
                f"no labelling has finite cost: {type(self).__name__} can count between {must} and "
                f"{may} of variables {self.called(range(len(allowed)), names)}, and all of these "
                "counts cost +inf",
                self.variables[0],
            )

    def _cap(self) -> int:
        """The count from which on all costs are the same."""
        changes = np.flatnonzero(self.costs[1:] != self.costs[:-1])
        return int(changes[-1]) + 1 if len(changes) else 0

    @property
    def states(self) -> int:
        """How many counts have to be told apart."""
        cap = self._cap()
        return max(cap, 1) if self.costs[cap] == np.inf else cap + 1

    @property
    def convex(self) -> bool:
        """Whether costs rise by more and more: finite in one range, with no smaller rise later."""
        finite = np.flatnonzero(np.isfinite(self.costs))
        if not len(finite) or finite[-1] - finite[0] >= len(finite):
            return False
        rises = np.diff(self.costs[finite])
        slack = 1e-12 * np.abs(self.costs[finite]).max()  # of rounding
        return bool((rises[1:] >= rises[:-1] - slack).all())

    def automata(self, sizes: Sequence[int]) -> list[Automaton]:
        """One: the count so far, as far as costs still tell counts apart."""
        cap = self._cap()
        lost = bool(self.costs[cap] == np.inf)  # as many, or more: no way back
        most = self.states - 1
        moves = []
        for t, d in enumerate(sizes):
            counted = np.arange(min(t, most) + 1)[:, None] + self.ones(t, d)
            moves.append(np.where(counted >= cap, -1 if lost else cap, counted))
        return [Automaton(self.variables, moves, self.costs[: min(most, len(sizes)) + 1])]


class Among(Cardinality):
    """`costs[c]` where c of the variables have a label of their set of `labels`."""

    def __init__(self, variables: Any, labels: Sequence[Sequence[int]], costs: ArrayLike) -> None:
        super().__init__(variables, 0, costs)
        self.labels = [integers(own, "labels").reshape(-1) for own in labels]
        if len(self.labels) != len(self.variables):
            raise ModelError(
                f"expected a set of labels for each of {len(self.variables)} variables"
            )

    def ones(self, t: int, d: int) -> Ints:
        """1 for each label of variable t that counts."""
        return np.isin(np.arange(d), self.labels[t]).astype(np.int64)


class Regular(Many):
    """The labels, one after the other, are a word that an automaton accepts; else forbidden.

    `moves[s, x]` is the state after state s and label x, or -1; the first state is 0, and
    `costs[s]` is the cost of the last one.
    """

    def __init__(self, variables: Any, moves: ArrayLike, costs: ArrayLike) -> None:
        super().__init__(variables)
        self.moves, self.costs = integers(moves, "moves"), _checked_costs(costs)
        sound = self.moves.ndim == 2 and self.costs.shape == self.moves.shape[:1]
        if not sound or self.moves.min() < -1 or self.moves.max() >= len(self.moves):
            raise ModelError("expected moves from each state by each label, and a cost of each")

    def automata(self, sizes: Sequence[int]) -> list[Automaton]:
        """One: its own."""
        if max(sizes) > self.moves.shape[1]:
            raise ModelError(f"Regular needs moves by {max(sizes)} labels")
        moves = [self.moves[:, :d] for d in sizes]
        return [Automaton(self.variables, [moves[0][:1], *moves[1:]], self.costs)]


def _checked_costs(costs: Any) -> Costs:
    given = numbers(costs, "costs")
    if np.isnan(given).any() or (given == -np.inf).any() or largest(given) > LARGEST_COST:
        raise ModelError(f"expected costs, found another number among them; {RANGE}")
    return given


def _penalty(penalty: Any) -> float:
    cost = _checked_costs(penalty)
    if cost.ndim:
        raise ModelError(f"penalty must be one cost, not an array of shape {cost.shape}")
    return float(cost)


def _counts(variables: Any, wrong: Any, penalty: Any) -> Costs:
    """Costs of counts 0 to k, where `wrong` says which counts pay."""
    k = len(Many(variables).variables)
    return np.where(wrong(np.arange(k + 1)), _penalty(penalty), 0.0)


class AtMostOne(Cardinality):
    """At most one of the variables has the label; else a penalty (forbidden by default)."""

    def __init__(self, variables: Any, label: Any = 1, penalty: float = math.inf) -> None:
        super().__init__(variables, label, _counts(variables, lambda c: c > 1, penalty))


class ExactlyOne(Cardinality):
    """Exactly one of the variables has the label; else a penalty (forbidden by default)."""

    def __init__(self, variables: Any, label: Any = 1, penalty: float = math.inf) -> None:
        super().__init__(variables, label, _counts(variables, lambda c: c != 1, penalty))


class Or(Cardinality):
    """At least one of the variables has the label; else a penalty (forbidden by default)."""

    def __init__(self, variables: Any, label: Any = 1, penalty: float = math.inf) -> None:
        super().__init__(variables, label, _counts(variables, lambda c: c < 1, penalty))


class Parity(Many):
    """The sum of the labels is even, or odd if so asked; else a penalty."""

    def __init__(self, variables: Any, odd: bool = False, penalty: float = math.inf) -> None:
        super().__init__(variables)
        self.odd = flag("odd", odd)
        self.penalty = _penalty(penalty)

    def automata(self, sizes: Sequence[int]) -> list[Automaton]:
        """One: the parity so far."""
        later = {d: (np.arange(2)[:, None] + np.arange(d)) % 2 for d in set(sizes)}
        moves = [later[sizes[0]][:1], *(later[d] for d in sizes[1:])]
        costs = np.array([self.penalty, 0.0] if self.odd else [0.0, self.penalty])
        return [Automaton(self.variables, moves, costs)]


class Max(Many):
    """`costs[y]` where y is the greatest of the labels."""

    def __init__(self, variables: Any, costs: ArrayLike) -> None:
        super().__init__(variables)
        self.costs = _checked_costs(costs)
        if self.costs.ndim != 1 or not self.costs.size:
            raise ModelError("Max needs a list of costs, one for each label")

    def automata(self, sizes: Sequence[int]) -> list[Automaton]:
        """One: the greatest label so far."""
        if len(self.costs) < max(sizes):
            raise ModelError(f"Max needs {max(sizes)} costs, one for each label")
        moves, states = [], 1
        for d in sizes:
            moves.append(np.maximum(np.arange(states)[:, None], np.arange(d)))
            states = max(states, d)
        return [Automaton(self.variables, moves, self.costs[:states])]


class Linear(Many):
    """The weights of the labels add up to at least `low` and at most `high`; else a penalty.

    Parameters
    ----------
    variables : list of int
    weights : whole numbers
        One for each variable (times the label), or a list of one array of weights per label each.
    low, high : bounds of the sum; None for none
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
        self.weights = [integers(w, "weights") for w in given]
        if len(given) != len(self.variables):
            raise ModelError(f"expected weights for {len(self.variables)} variables")
        self.low = -math.inf if low is None else _whole("low", low, math.ceil)
        self.high = math.inf if high is None else _whole("high", high, math.floor)
        self.penalty = _penalty(penalty)

    def automata(self, sizes: Sequence[int]) -> list[Automaton]:
        """One: the sum so far; sums that can no longer fail, or no longer hold, are one state."""
        sums, moves = np.zeros(1, dtype=np.int64), []
        for place, kept in self._steps(sizes):
            moves.append(place)
            sums = kept
        return [Automaton(self.variables, moves, np.where(sums == _FAILED, self.penalty, 0.0))]

    def too_long(self, sizes: Sequence[int], entries: int) -> bool:
        """Whether the tables of its chain have more than so many entries."""
        total, before = 0, 1
        try:
            for place, kept in self._steps(sizes):
                total += before * place.shape[1] * len(kept)
                before = len(kept)
                if total > entries:
                    return True
        except ModelError:  # more sums than an automaton can have
            return True
        return False

    def shifted(self, sizes: Sequence[int]) -> tuple[list[Ints], int]:
        """Weights by label, from 0 on, for each variable, and the sum of what was taken away."""
        rows = [_row(w, d) for w, d in zip(self.weights, sizes, strict=True)]
        least = [int(row.min()) for row in rows]
        return [row - low for row, low in zip(rows, least, strict=True)], sum(least)

    def cost(self, labels: Sequence[int], sizes: Sequence[int]) -> float:
        """The cost of labels of its variables, in order."""
        rows = [_row(w, d) for w, d in zip(self.weights, sizes, strict=True)]
        total = sum(int(row[x]) for row, x in zip(rows, labels, strict=True))
        return 0.0 if self.low <= total <= self.high else self.penalty

    def _steps(self, sizes: Sequence[int]) -> Iterator[tuple[Ints, Ints]]:
        """After each variable: where each sum and label lead, and the sums that there are then."""
        rows = [_row(w, d) for w, d in zip(self.weights, sizes, strict=True)]
        least = np.append(np.cumsum([r.min() for r in rows][::-1])[::-1], 0)[1:]
        most = np.append(np.cumsum([r.max() for r in rows][::-1])[::-1], 0)[1:]
        sums = np.zeros(1, dtype=np.int64)
        for row, below, above in zip(rows, least.tolist(), most.tolist(), strict=True):
            if len(sums) * len(row) > MOST_SUMS:
                raise ModelError(
                    f"Linear over {len(sizes)} variables has more than {MOST_SUMS} different sums"
                )
            after = np.where(sums[:, None] == _FAILED, _FAILED, sums[:, None] + row)
            low, high = self.low - below, self.high - above
            safe = int(low) if low > -math.inf else int(min(high, 0.0))
            fails = (after == _FAILED) | (after < self.low - above) | (after > self.high - below)
            after = np.where((after >= low) & (after <= high), safe, after)
            after[fails] = _FAILED
            kept, place = np.unique(after, return_inverse=True)
            place = place.reshape(after.shape)
            if self.penalty == math.inf and len(kept) and kept[-1] == _FAILED:
                place[after == _FAILED] = -1
                kept = kept[:-1]
            sums = kept if len(kept) else np.zeros(1, dtype=np.int64)  # never reached
            yield place, sums


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
    """No label is used twice: one `AtMostOne` for each label, together the assignment polytope."""

    def require(self, allowed: Sequence[NDArray[np.bool_]], names: Sequence[Any] | None) -> None:
        """A matching gives each variable a label of its own, or there is a Hall set."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import maximum_bipartite_matching

        labels = [np.flatnonzero(mask) for mask in allowed]
        start = np.cumsum([0, *map(len, labels)])
        flat = np.concatenate(labels)
        shape = len(labels), max(map(len, allowed))
        graph = csr_array((np.ones(len(flat), dtype=np.int8), flat, start), shape=shape)
        label_of = maximum_bipartite_matching(graph, perm_type="column")
        alone = np.flatnonzero(label_of < 0)
        if not len(alone):
            return
        crowd, between = _hall_set(int(alone[0]), labels, label_of)
        raise InfeasibleModel(
            f"no labelling has finite cost: variables {self.called(crowd, names)} must have "
            f"different labels, but the {len(crowd)} variables have only {between} allowed labels "
            "together",
            self.variables[crowd[0]],
        )

    def automata(self, sizes: Sequence[int]) -> list[Automaton]:
        """One for each label that two variables can have."""
        found = []
        for label in range(max(sizes)):
            own = [(v, d) for v, d in zip(self.variables, sizes, strict=True) if d > label]
            if len(own) > 1:
                part = AtMostOne([v for v, _ in own], label)
                found += part.automata([d for _, d in own])
        return found


def _hall_set(
    first: int, labels: list[NDArray[np.int64]], label_of: NDArray[np.int32]
) -> tuple[list[int], int]:
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


def dense(factor: Many, sizes: Sequence[int]) -> Costs:
    """The table with all joint states: what the factor means."""
    known = dict(zip(factor.variables, sizes, strict=True))
    total: Costs = np.zeros(tuple(sizes))
    for automaton in factor.automata(sizes):
        own = [known[v] for v in automaton.variables]
        axes = [factor.variables.index(v) for v in automaton.variables]
        shape = [1] * len(sizes)
        for axis, d in zip(axes, own, strict=True):
            shape[axis] = d
        total += joint(automaton).reshape(shape)
    return total


def joint(automaton: Automaton) -> Costs:
    """The table of one automaton."""
    state: Ints = np.zeros((), dtype=np.int64)
    for moves in automaton.moves:
        state = np.where(state[..., None] >= 0, moves[state], -1)
    return final_costs(automaton.costs, state)


def final_costs(costs: Costs, state: Ints) -> Costs:
    """Costs of last states; -1 is forbidden."""
    padded = np.append(costs, np.inf)
    return padded[state]

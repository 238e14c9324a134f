"""Factors over many variables as small tables and auxiliary chain variables.

An automaton becomes a chain: each chain variable holds the state so far and is coupled to the
previous chain variable and to one variable of the factor. A chain is a tree, so its LP relaxation
is the convex hull of the factor, as tight as the table of all joint states. Its size is the number
of variables times the square of the number of states.

Counts of many variables, and sums of large weights, have too many states for a chain. They are
summed in digits: a chain keeps the last digit and emits carries, and the carries are summed in the
same way. A table (for counts) or a short chain (for sums) holds the costs over all digits. The cost
of every labelling is exact. The LP relaxation, called *digit relaxation*, keeps the mean of the
sum: it is the convex hull of a count if costs are convex (as for budgets), and may be weaker
otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from softmap.errors import ModelError
from softmap.model.many import Automaton, Cardinality, Linear, Many, final_costs, joint
from softmap.model.potentials.base import Costs, Ints


@dataclass(frozen=True)
class ChainSizes:
    """Sizes that decide if a factor over many variables becomes a table, a chain or digits.

    Attributes
    ----------
    dense : int
        Largest number of joint states of a factor that becomes one table.
    entries : int
        Largest number of entries of all tables of one chain.
    sum_entries : int
        Largest number of entries of a chain of sums; larger sums are held in digits.
    states : int
        Largest number of states of a count as a chain, if costs are not convex.
    convex_states : int
        Largest number of states of a count as a chain, if costs are convex and digits are as tight.
    base : int
        Base of the digits.
    few_labels : int
        Equivalent labels are merged if a variable has more labels than this.
    """

    dense: int = 64
    entries: int = 1 << 26
    sum_entries: int = 1 << 21
    states: int = 64
    convex_states: int = 12
    base: int = 4
    few_labels: int = 3


SIZES = ChainSizes()

Scope = tuple[int, ...]


@dataclass
class Chain:
    """Tables and chain variables, which are numbered from `free` on.

    The label of a chain variable is a function of earlier variables. `follows` holds the numbers of
    these variables, and an array of labels with one axis per variable. `tree` says whether the
    tables form a tree.
    """

    free: int
    num_labels: list[int] = field(default_factory=list)
    factors: list[tuple[Scope, Costs]] = field(default_factory=list)
    follows: list[tuple[Scope, Ints]] = field(default_factory=list)
    steps: dict[tuple[int, int, int], tuple[Any, Ints, Costs]] = field(default_factory=dict)
    tree: bool = True

    def at(self, free: int) -> Chain:
        """Return the same chain with chain variables that are numbered from `free` on."""
        if free == self.free:
            return self
        by = free - self.free

        def moved(scope: Scope) -> Scope:
            return tuple([i if i < self.free else i + by for i in scope])

        factors = [(moved(scope), costs) for scope, costs in self.factors]
        running = [(moved(scope), labels) for scope, labels in self.follows]
        return Chain(free, self.num_labels, factors, running, tree=self.tree)

    def follow(self, scope: Scope, states: Ints, count: int, prices: Costs | None = None) -> int:
        """Add a chain variable with `count` labels and label `states[...]`; -1 is forbidden.

        `prices` are costs of the same shape as `states`. Calls with the same arrays share one
        table.
        """
        number = self.free + len(self.num_labels)
        key = id(states), id(prices), count
        if key not in self.steps:
            own = 0.0 if prices is None else prices[..., None]
            table = np.where(states[..., None] == np.arange(count), own, np.inf)
            # the entry holds both arrays, so that their ids stay unique
            self.steps[key] = (states, prices), np.maximum(states, 0), table
        _, labels, table = self.steps[key]
        self.num_labels.append(count)
        self.factors.append(((*scope, number), table))
        self.follows.append((scope, labels))
        return number


def chains(factor: Many, sizes: Sequence[int], free: int) -> Chain:
    """Return the tables and chain variables of a factor.

    The first table of a chain covers the first two variables of the factor, the last table the last
    two, so that no chain variable is needed at either end.

    Parameters
    ----------
    factor : Many
    sizes : sequence of int
        Label counts of its variables.
    free : int
        Number of the first chain variable.
    """
    known = dict(zip(factor.variables, sizes, strict=True))
    found = Chain(free)
    if isinstance(factor, Cardinality) and _needs_digits(factor):
        _count_in_digits(factor, sizes, found)
        found.tree = False
        return found
    if isinstance(factor, Linear):
        automaton = factor.automaton(sizes, SIZES.sum_entries)
        found.tree = automaton is not None
        if automaton is None:
            _add_in_digits(factor, sizes, found)
        else:
            _add(automaton, list(sizes), found)
        return found
    automata = factor.automata(sizes)
    found.tree = len(automata) == 1
    for automaton in automata:
        _add(automaton, [known[v] for v in automaton.variables], found)
    return found


def without_single_labels(scope: Sequence[int], costs: Costs) -> tuple[Sequence[int], Costs]:
    """Return a factor without its variables of a single label, if it has three or more variables.

    One variable is kept in any case.
    """
    if len(scope) <= 2 or 1 not in costs.shape:
        return scope, costs
    kept = [i for i, d in zip(scope, costs.shape, strict=True) if d > 1] or [scope[0]]
    return kept, costs.reshape([d for d in costs.shape if d > 1] or [1])


def _add(automaton: Automaton, sizes: list[int], found: Chain) -> None:
    """Add an automaton as one table if that is small, else as a chain."""
    if math.prod(sizes) <= SIZES.dense or len(sizes) <= 2:
        found.factors.append((automaton.variables, joint(automaton)))
    else:
        _unroll(automaton, found)


def _needs_digits(factor: Cardinality) -> bool:
    most = SIZES.convex_states if factor.convex else SIZES.states
    return factor.states > most and len(factor.variables) > SIZES.base


def _unroll(automaton: Automaton, found: Chain) -> None:
    k = len(automaton.variables)
    names, moves, prices = _by_classes(automaton, found)
    states = [len(m) for m in moves]
    entries = sum(states[t] * moves[t].shape[1] * states[t + 1] for t in range(1, k - 2))
    if entries > SIZES.entries:
        raise ModelError(
            f"a chain over {k} variables would need tables of {entries:.3g} entries; "
            f"expected at most {SIZES.entries:.3g}"
        )
    before = names[0]
    # the state after the first variable, and the costs so far, for each of its labels
    state, paid = moves[0][0], None if prices is None else prices[0][0]
    for t in range(1, k - 2):
        # from the second step on, every state of the chain is one that the automaton is in
        reached = moves[t] if t > 1 else np.where(state[:, None] >= 0, moves[t][state], -1)
        own = None if prices is None else prices[t]
        if own is not None and paid is not None and t == 1:
            own = paid[:, None] + own[state]
        before = found.follow((before, names[t]), reached, states[t + 1], own)
    if k > 3:
        state, paid = np.arange(states[k - 2]), None
    reached = np.where(state[:, None] >= 0, moves[k - 2][state], -1)
    last = np.where(reached[..., None] >= 0, moves[k - 1][reached], -1)
    costs = final_costs(automaton.costs, last)
    if prices is not None:
        first = prices[k - 2][state] + (0.0 if paid is None else paid[:, None])
        costs = costs + first[..., None] + prices[k - 1][reached]
    found.factors.append(((before, names[k - 2], names[k - 1]), costs))


def _by_classes(automaton: Automaton, found: Chain) -> tuple[Scope, list[Ints], list[Costs] | None]:
    """Variables, moves and prices of the automaton after merging equivalent labels.

    Two labels are equivalent if they move every state alike, at the same prices. A new variable
    holds the class of the label; tables then have one axis entry per class.
    """
    names, short, costs = [], [], []
    known: dict[tuple[int, bytes], tuple[Ints, Costs, Ints]] = {}  # most have equal moves
    for t, (v, moves) in enumerate(zip(automaton.variables, automaton.moves, strict=True)):
        d = moves.shape[1]
        prices = np.zeros((0, d)) if automaton.prices is None else automaton.prices[t]
        if d > SIZES.few_labels:
            key = d, moves.tobytes() + prices.tobytes()
            if key not in known:
                both = np.concatenate([moves, prices])
                _, kept, kinds = np.unique(both, axis=1, return_index=True, return_inverse=True)
                known[key] = moves[:, kept], prices[:, kept], kinds.reshape(-1)
            classes, charged, kinds = known[key]
            if 2 * classes.shape[1] <= d:
                v = found.follow((v,), kinds, classes.shape[1])
                moves, prices = classes, charged
        names.append(v)
        short.append(moves)
        costs.append(prices)
    return tuple(names), short, None if automaton.prices is None else costs


def _count_in_digits(factor: Cardinality, sizes: Sequence[int], found: Chain) -> None:
    """Add the digits of the count, the last one first, then the table of costs over all digits."""
    counted: list[tuple[int, Ints]] = []
    for t, (v, d) in enumerate(zip(factor.variables, sizes, strict=True)):
        ones = factor.ones(t, d)
        if d > SIZES.few_labels:
            v, ones = found.follow((v,), ones, 2), np.arange(2)
        counted.append((v, ones))
    digits: list[int] = []
    while counted:
        digit, counted = _last_digit(counted, found)
        digits.append(digit)
    scope = tuple(digits[::-1])
    shape = [found.num_labels[v - found.free] for v in scope]
    count = np.zeros((), dtype=np.int64)
    for d in shape:
        count = SIZES.base * count[..., None] + np.arange(d)
    k = len(sizes)
    costs = np.where(count <= k, factor.costs[np.minimum(count, k)], np.inf)
    found.factors.append((scope, costs))


def _add_in_digits(factor: Linear, sizes: Sequence[int], found: Chain) -> None:
    """Add the digits of a weighted sum, last digit first, and a comparison with both bounds.

    The weights of each variable are shifted to a minimum of 0 before they are split into digits.
    """
    rows, least = factor.shifted(sizes)
    most = sum(int(row.max()) for row in rows)
    own = list(zip(factor.variables, rows, strict=True))
    digits: list[tuple[int, int]] = []
    carries: list[tuple[int, Ints]] = []
    while most or carries or not digits:
        parts = [(v, row % SIZES.base) for v, row in own]
        column = [*((v, part) for v, part in parts if part.any()), *carries]
        own = [(v, row // SIZES.base) for v, row in own]
        carries = []
        most //= SIZES.base
        if not column:  # this digit is 0 in all weights
            zero = np.zeros(sizes[0], dtype=np.int64)
            digits.append((found.follow((factor.variables[0],), zero, 1), 1))
            continue
        digit, carries = _last_digit(column, found)
        labels = len(column[0][1]) if digit < found.free else found.num_labels[digit - found.free]
        if any(v == digit for v, _ in digits):  # weights of one variable with equal digits
            digit = found.follow((digit,), np.arange(labels), labels)
        digits.append((digit, labels))
    low, high = factor.low - least, factor.high - least
    _compare(digits[::-1], low, high, factor.penalty, found)


def _compare(
    digits: list[tuple[int, int]], low: float, high: float, penalty: float, found: Chain
) -> None:
    """Add a penalty unless low ≤ number ≤ high; `digits` lists the leading digit first.

    The state of the comparison has two bits: whether the digits so far equal those of `low`, and
    whether they equal those of `high`.
    """
    top = SIZES.base ** len(digits) - 1
    low, high = max(low, 0), min(high, top)
    if low > high:
        moves = [np.full((1 if t == 0 else 2, d), 1) for t, (_, d) in enumerate(digits)]
        costs = np.array([penalty, penalty])
    else:
        moves, costs = _comparison(digits, int(low), int(high), penalty)
    automaton = Automaton(tuple(v for v, _ in digits), moves, costs)
    _add(automaton, [d for _, d in digits], found)


def _comparison(
    digits: list[tuple[int, int]], low: int, high: int, penalty: float
) -> tuple[list[Ints], Costs]:
    """Transitions and costs of the states inside, at low, at high, at both (start), outside."""
    inside, at_low, at_high, at_both, outside = range(5)
    moves: list[Ints] = []
    for t, (_, d) in enumerate(digits):
        place = SIZES.base ** (len(digits) - 1 - t)
        least, most = low // place % SIZES.base, high // place % SIZES.base
        x = np.arange(d)
        table = np.empty((5, d), dtype=np.int64)
        table[inside], table[outside] = inside, outside
        table[at_low] = np.select([x < least, x == least], [outside, at_low], inside)
        table[at_high] = np.select([x > most, x == most], [outside, at_high], inside)
        above = np.select([x < least, x == least], [outside, 1], 0)
        below = np.select([x > most, x == most], [outside, 2], 0)
        table[at_both] = np.where((above == outside) | (below == outside), outside, above + below)
        moves.append(table)
    moves[0] = moves[0][at_both : at_both + 1]
    return moves, np.array([0.0, 0.0, 0.0, 0.0, penalty])


def _last_digit(
    counted: list[tuple[int, Ints]], found: Chain
) -> tuple[int, list[tuple[int, Ints]]]:
    """Return the variable of the last digit of a sum, and the carries, to be summed next.

    Chain variables hold the partial sum; once it may exceed `base`, it is reduced to its last
    digit, and a carry is emitted. `counted` lists variables, with the summand of each label.
    """
    before, state = counted[0]
    most = int(state.max())
    carries: list[tuple[int, Ints]] = []
    room = 2 * SIZES.base - 1
    for t, (v, ones) in enumerate(counted[1:], 1):
        most += int(ones.max())
        before = found.follow((before, v), state[:, None] + ones, most + 1)
        state = np.arange(most + 1)
        last = t == len(counted) - 1
        following = 0 if last else int(counted[t + 1][1].max())
        if most >= SIZES.base and (last or most + following > room):
            carry = found.follow((before,), state // SIZES.base, most // SIZES.base + 1)
            carries.append((carry, np.arange(most // SIZES.base + 1)))
            before = found.follow((before,), state % SIZES.base, SIZES.base)
            state, most = np.arange(SIZES.base), SIZES.base - 1
    if len(counted) == 1 and not np.array_equal(state, np.arange(len(state))):
        before = found.follow((before,), state, most + 1)  # map labels to digits
    return before, carries

"""Factors over many variables as small tables and *running* variables, which nobody gets to see.

An automaton becomes a chain: a running variable for the state so far, tied to the one before and to
one variable of the factor. A chain is a tree, so its linear relaxation is the convex hull of the
factor: nothing is lost against the table with all joint states, and the size grows with the number
of variables times the square of the number of states.

Counts of many variables, and sums of large weights, have too many states for that. They are added
up in digits: a chain holds the last digit and lets a carry out now and then, and the carries are
added up in the same way. A table (of counts) or a short chain (of sums) holds the costs by all
digits. Every labelling costs what it should. The linear relaxation of that, the *digit relaxation*,
keeps the mean of the sum: it is the convex hull of a count where costs are convex (budgets are),
and may be below the hull elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from softmap.errors import ModelError
from softmap.model.many import Automaton, Cardinality, Linear, Many, final_costs, joint
from softmap.model.potentials.base import Costs, Ints

__all__ = ["SIZES", "Chain", "ChainSizes", "chains"]


@dataclass(frozen=True)
class ChainSizes:
    """When a factor over many variables is a table, a chain, or counted in digits.

    Attributes
    ----------
    dense : int
        Largest number of joint states of a factor that becomes one table.
    entries : int
        Largest number of entries of all tables of one chain.
    sum_entries : int
        The same for a chain of sums; a longer one is replaced by digits.
    states : int
        Largest number of states of a count that is not held in digits, if digits lose something.
    convex_states : int
        The same for convex costs, where digits lose nothing.
    base : int
        Base of the digits.
    few_labels : int
        Labels that move all states alike are joined if a variable has more labels than this.
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
    """Tables and running variables, which are numbered from `free` on.

    The label of a running variable follows from those before it: `running` holds their numbers,
    and an array of labels with one axis for each. `tree`: whether all tables together are a tree.
    """

    free: int
    num_labels: list[int] = field(default_factory=list)
    factors: list[tuple[Scope, Costs]] = field(default_factory=list)
    running: list[tuple[Scope, Ints]] = field(default_factory=list)
    steps: dict[tuple[int, int], tuple[Ints, Ints, Costs]] = field(default_factory=dict)
    tree: bool = True

    def follow(self, scope: Scope, states: Ints, count: int) -> int:
        """A new variable with `count` labels that has label `states[...]`; -1 is forbidden.

        The same array of states again shares its table.
        """
        number = self.free + len(self.num_labels)
        key = id(states), count
        if key not in self.steps:
            table = np.where(states[..., None] == np.arange(count), 0.0, np.inf)
            self.steps[key] = states, np.maximum(states, 0), table  # keeps the array of this id
        _, labels, table = self.steps[key]
        self.num_labels.append(count)
        self.factors.append(((*scope, number), table))
        self.running.append((scope, labels))
        return number


def chains(factor: Many, sizes: Sequence[int], free: int) -> Chain:
    """The tables of a factor whose variables have `sizes` labels; `free` is the first free number.

    The last running variables are left out: the first table of a chain holds its first two
    variables, the last one its last two.
    """
    known = dict(zip(factor.variables, sizes, strict=True))
    found = Chain(free)
    if isinstance(factor, Cardinality) and _needs_digits(factor):
        _count_in_digits(factor, sizes, found)
        found.tree = False
        return found
    if isinstance(factor, Linear) and factor.too_long(sizes, SIZES.sum_entries):
        _add_in_digits(factor, sizes, found)
        found.tree = False
        return found
    automata = factor.automata(sizes)
    found.tree = len(automata) == 1
    for automaton in automata:
        own = [known[v] for v in automaton.variables]
        if math.prod(own) <= SIZES.dense or len(own) <= 2:
            found.factors.append((automaton.variables, joint(automaton)))
        else:
            _unroll(automaton, found)
    return found


def _needs_digits(factor: Cardinality) -> bool:
    most = SIZES.convex_states if factor.convex else SIZES.states
    return factor.states > most and len(factor.variables) > SIZES.base


def _unroll(automaton: Automaton, found: Chain) -> None:
    k = len(automaton.variables)
    names, moves = _by_classes(automaton, found)
    states = [len(m) for m in moves]
    entries = sum(states[t] * moves[t].shape[1] * states[t + 1] for t in range(1, k - 2))
    if entries > SIZES.entries:
        raise ModelError(
            f"a chain over {k} variables would need tables of {entries:.3g} entries; "
            f"expected at most {SIZES.entries:.3g}"
        )
    before = names[0]
    state = moves[0][0]  # after the first variable, by its label
    for t in range(1, k - 2):
        # from the second step on, every state of the chain is one that the automaton is in
        reached = moves[t] if t > 1 else np.where(state[:, None] >= 0, moves[t][state], -1)
        before = found.follow((before, names[t]), reached, states[t + 1])
    if k > 3:
        state = np.arange(states[k - 2])
    reached = np.where(state[:, None] >= 0, moves[k - 2][state], -1)
    last = np.where(reached[..., None] >= 0, moves[k - 1][reached], -1)
    costs = final_costs(automaton.costs, last)
    found.factors.append(((before, names[k - 2], names[k - 1]), costs))


def _by_classes(automaton: Automaton, found: Chain) -> tuple[Scope, list[Ints]]:
    """Names and moves where labels that move all states alike have become one.

    A new variable holds the class of the label, so that tables have its few labels on their axis.
    """
    names, short = [], []
    for v, moves in zip(automaton.variables, automaton.moves, strict=True):
        d = moves.shape[1]
        if d > SIZES.few_labels:
            kept, kinds = np.unique(moves, axis=1, return_inverse=True)
            if 2 * kept.shape[1] <= d:
                v, moves = found.follow((v,), kinds.reshape(-1), kept.shape[1]), kept
        names.append(v)
        short.append(moves)
    return tuple(names), short


def _count_in_digits(factor: Cardinality, sizes: Sequence[int], found: Chain) -> None:
    """Digits of the count, the last one first; then one table of the costs over all of them."""
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
    """Digits of a weighted sum, the last one first; then a comparison with both bounds.

    Each variable adds the digits of its weights, from which its least weight has been taken away.
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
        if not column:  # all digits here are 0
            zero = np.zeros(sizes[0], dtype=np.int64)
            digits.append((found.follow((factor.variables[0],), zero, 1), 1))
            continue
        digit, carries = _last_digit(column, found)
        if digit < found.free:  # a variable of the factor itself
            digits.append((digit, len(column[0][1])))
        else:
            digits.append((digit, found.num_labels[digit - found.free]))
    low, high = factor.low - least, factor.high - least
    _compare(digits[::-1], low, high, factor.penalty, found)


def _compare(
    digits: list[tuple[int, int]], low: float, high: float, penalty: float, found: Chain
) -> None:
    """A penalty unless the number with these digits, the first one first, lies within bounds.

    The state of the comparison is twice a bit each: whether the digits so far are those of `low`,
    and whether they are those of `high`.
    """
    top = SIZES.base ** len(digits) - 1
    low, high = max(low, 0), min(high, top)
    if low > high:
        moves = [np.full((1 if t == 0 else 2, d), 1) for t, (_, d) in enumerate(digits)]
        costs = np.array([penalty, penalty])
    else:
        moves, costs = _comparison(digits, int(low), int(high), penalty)
    automaton = Automaton(tuple(v for v, _ in digits), moves, costs)
    if math.prod(d for _, d in digits) <= SIZES.dense or len(digits) <= 2:
        found.factors.append((automaton.variables, joint(automaton)))
    else:
        _unroll(automaton, found)


def _comparison(
    digits: list[tuple[int, int]], low: int, high: int, penalty: float
) -> tuple[list[Ints], Costs]:
    """Moves of the states 0: inside, 1: at low, 2: at high, 3: at both, 4: outside; begin at 3."""
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
    """The variable that holds the last digit of a sum, and the carries, to be added in turn.

    The sum so far runs through several variables, up to `base` or a little more, and is then cut to
    its last digit. `counted` holds what each label of a variable adds.
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
        before = found.follow((before,), state, most + 1)  # labels that are no digits themselves
    return before, carries

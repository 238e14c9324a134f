"""Every condition of the check of cores: literals, hints and steps of small models."""

from __future__ import annotations

import copy
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import softmap
from softmap.verification.cores import CoreProof
from softmap.verification.hints import LONG, Constraints, LiteralSum
from softmap.verification.integers import HALF, Scale, flat_model
from softmap.verification.literals import Literals, _weights
from softmap.verification.records import Rejected
from support.logical import logical_model

INF = np.inf


def accepts(own, name: str, *given) -> bool:
    """Whether an object accepts a step; a copy, if a step that is rejected changes it."""
    try:
        getattr(copy.deepcopy(own) if name in ("learn", "costs") else own, name)(*given)
    except Rejected:
        return False
    return True


# --- sums -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "weight"), [(3, 1), (3, 1 << 70), (LONG + 9, 2), (70, 1 << 60)])
def test_the_largest_sum_leaves_out_what_fails(count, weight):
    signs = [1 if k % 3 else -1 for k in range(1, count + 1)]
    own = LiteralSum([(k * sign, weight + k) for k, sign in enumerate(signs, 1)], 1)
    holds = bytearray(2 * 100 + 1)
    for x in (1, -2, 3):  # literal 1 holds, 2 and -3 fail
        holds[x] = 1
    assert own.most(holds) == sum(weight + k for k in range(1, count + 1) if k not in (2, 3))


# --- hints ----------------------------------------------------------------------------------------


def rules(*constraints) -> Constraints:
    found = Constraints()
    for one in constraints:
        found.add(one)
    return found


@pytest.mark.parametrize(
    ("clause", "hints", "follows"),
    [
        ((3,), (1, 2), True),  # 1 or 3, and -1 or 3
        ((3,), (-1, -2), True),
        ((3,), (1,), False),
        ((1, 3), (1,), True),
        ((1, 3), (), False),
        ((-3,), (1, 2), False),
        ((1, -1), (), True),
        ((1, -1), (9,), True),  # no hint is read
        ((3,), (2, 1), True),
        ((2,), (1,), False),  # constraint 0 implies nothing
        ((3,), (3,), False),  # there is no constraint 2
        ((3,), (1, 0), False),  # nor constraint -1
    ],
)
def test_clauses_follow_by_hints(clause, hints, follows):
    assert accepts(rules((1, 3), (-1, 3)), "learn", clause, hints) == follows


def test_a_hint_implies_one_literal():
    assert not accepts(rules((1, 2), (-1, -2)), "learn", (), (1, 2))
    own = rules(LiteralSum([(1, 1), (2, 1)], 1), (-1, -2))
    assert not accepts(own, "learn", (), (1, 1, 1, 2, 2))


def test_a_learned_clause_is_a_constraint_and_a_unit_holds_from_then_on():
    own = rules((1, 2), (1, -2), (3, 4, 5))
    assert not accepts(own, "learn", (3,), ())
    own.learn((1,), (1, 2))
    assert own.clause(3) == (1,)
    assert accepts(own, "learn", (1, 7), ())
    assert not accepts(own, "learn", (-1, 7), ())
    own = rules((1, 2), (1, -2))
    own.learn((1,), (1, 2))
    own.learn((1, 3), ())  # assumes -1, and 1 still holds after that
    own.learn((-2, 1), (2,))
    assert accepts(own, "learn", (1, 9), ())
    assert not accepts(own, "learn", (2,), ())
    assert not own.broken


def test_a_clause_of_two_makes_neither_literal_hold():
    own = rules((1, 2, 3), (-3, 1))
    own.learn((1, 2), (2, 1))
    for x in (1, 2, -1, -2):
        assert not accepts(own, "learn", (x,), ())


def test_a_known_unit_is_kept_when_it_is_assumed_again():
    own = rules((1, 2), (1, -2), (-1, 5))
    own.learn((1,), (1, 2))
    own.learn((-1, 5), (3,))  # assumes 1, which holds already
    assert accepts(own, "learn", (1, 9), ())


def test_no_constraints_can_hold_together_with_the_empty_clause():
    own = rules((1, 2), (1, -2), (-1, 2), (-1, -2))
    own.learn((1,), (1, 2))
    assert not own.broken
    own.learn((), (3, 4))
    assert own.broken
    own.learn((1, -1), ())
    assert own.broken


def test_numbers_of_constraints_and_clauses():
    own = rules((1, 2), LiteralSum([(1, 1), (2, 1)], 1))
    assert own.clause(0) == (1, 2)
    for number, said in ((-1, "no constraint"), (2, "no constraint"), (1, "no clause")):
        with pytest.raises(Rejected, match=said):
            own.clause(number)


@pytest.mark.parametrize(
    ("clause", "hints", "follows"),
    [
        ((1, 2), (1, 0), True),  # without 1 and 2, the sum is at most 1
        ((1, 2), (1,), True),
        ((1, 2), (1, 3), False),  # 3 follows, and nothing more
        ((1, 2), (1, -3), False),
        ((1, 2), (1, 3, 1, 0), True),
        ((1, -2), (1, 0), False),
        ((1, -2), (1, 3), False),
        ((1, -2, -3), (1, 0), False),
        ((1,), (1, 0), False),  # without 1, the sum can be 2
        ((1,), (1, 2, 4), True),  # 2 follows, and excludes itself
        ((1,), (1, 3, 4), False),
        ((2,), (1, 1, 2, 3), True),  # 1 follows, then 4 and 2
        ((2,), (1, 3, 2, 3), False),  # 3 does not follow
        ((2,), (1, 1, 3), False),
        ((-1, 2), (1, 3), False),
    ],
)
def test_sums_imply_literals_and_conflicts(clause, hints, follows):
    own = rules(LiteralSum([(1, 2), (2, 1), (3, 1)], 2), (-1, 4), (-4, 2), (-2, 1))
    assert accepts(own, "learn", clause, hints) == follows


def test_a_literal_that_fails_is_the_conflict_of_a_sum():
    own = rules(LiteralSum([(1, 1), (2, 1)], 2))
    assert accepts(own, "learn", (1,), (1, 1))
    own = rules(LiteralSum([(1, 1), (2, 1)], 1))
    assert not accepts(own, "learn", (1,), (1, 1))  # the sum can hold
    own.learn((1, 2), (1, 0))
    assert own.clause(1) == (1, 2)


def test_room_for_literals_keeps_what_holds():
    own = rules((1, 1024), (-1, 1024), (1, 1023), (-1, 1023), (1, -1000), (-1, -1000))
    for k, x in enumerate((1024, 1023, -1000)):
        own.learn((x,), (2 * k + 1, 2 * k + 2))

    own.add((1, 2049))
    own.add((-1, 2049))
    for size in (1024, 1025, 5, 2050):
        own.reserve(size)
        for x in (1024, 1023, -1000):
            assert accepts(own, "learn", (x, 7), ())
        for x in (-1024, -1023, 1000, 1025, -1025, 1, -1, 2050, -2050):
            if abs(x) <= size:
                assert not accepts(own, "learn", (x,), ())
    own.learn((2049,), (10, 11))
    assert not accepts(own, "learn", (-2050,), ())


@pytest.mark.parametrize(
    ("literals", "hints", "apart"),
    [
        ((1, 2), (1, 0, 0), True),  # 1 excludes 2
        ((1, 2), (0, 1, 0), True),  # 2 excludes 1
        ((2, 1), (1, 0, 0), True),
        ((1, 2), (0, 0), False),
        ((1, 2), (), False),
        ((1, 2, 3), (1, 0, 2, 0, 3, 0), True),
        ((1, 2, 3), (1, 0, 2, 0, 0), False),
        ((1, 2, 3), (1, 3, 0, 2, 0), True),
        ((1, 2, 3), (1, 3, 0, 0, 0), False),
        ((4, 1, 2), (4, 5, 0, 1, 0, 0), True),  # 4 never holds
        ((4, 1, 2), (4, 5, 1, 0, 1, 0, 0), True),
        ((4, 1, 2), (4, 0, 1, 0, 0), False),
        ((1, -1), (), True),
    ],
)
def test_at_most_one_of_a_group_holds(literals, hints, apart):
    own = rules((-1, -2), (-2, -3), (-1, -3), (-4, 5), (-4, -5))
    assert accepts(own, "require_apart", literals, hints) == apart
    for x in (1, 2, 3, 4, 5):
        for sign in (1, -1):
            assert not accepts(own, "learn", (sign * x,), ())


# --- literals -------------------------------------------------------------------------------------

UNIT = -20  # the exponent of the unit
OFTEN = pytest.mark.parametrize("seed", range(12))


class Named:
    """Literals of a random model, and their meanings by enumeration."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.model = logical_model(rng)
        flat = flat_model(self.model.network)
        self.sizes = [len(costs) for costs in flat.unary]
        self.tables = [((i,), c) for i, c in enumerate(flat.unary)] + flat.factors
        order = rng.permutation(len(self.sizes)).tolist()
        self.labels, x = {}, 2
        for i in order:
            d = self.sizes[i]
            self.labels[i] = {1: [1], 2: [-x, x]}.get(d) or [*range(x, x + d)]
            x += {1: 0, 2: 1}.get(d, d)
        self.first, self.last = x, x - 1 + sum(c.size for _, c in self.tables)
        self.costs: dict[int, tuple[int, int]] = {}  # table and least units of a literal
        scale = Scale(1, UNIT, HALF - 1)
        self.own = Literals(self.model.network, flat, scale, tuple(order), self.last)

    def units(self, number: int) -> np.ndarray:
        """Costs of a table above its smallest one, in units; -1 where they are infinite."""
        costs = self.tables[number][1]
        if not np.isfinite(costs).any():
            return np.full(costs.shape, -1)
        whole = np.floor(np.where(np.isfinite(costs), costs, 0.0) * 2.0**-UNIT)
        return np.where(np.isfinite(costs), whole - whole[np.isfinite(costs)].min(), -1).astype(int)

    def value(self, number: int, literal: int) -> np.ndarray | None:
        """Whether a literal holds in each state of a table; None if it is no function of that."""
        scope, shape, x = self.tables[number][0], self.tables[number][1].shape, abs(literal)
        found = np.ones(shape, bool) if x == 1 else None
        if self.costs.get(x, (-1, 0))[0] == number:
            units = self.units(number)
            found = (units >= self.costs[x][1]) | (units < 0)
        for axis, i in enumerate(scope):
            for a, y in enumerate(self.labels[i]):
                if x == y != 1:
                    found = np.indices(shape)[axis] == a
        return found if found is None or literal > 0 else ~found

    def implies(self, number: int, literal: int, cost: int) -> bool:
        """Whether a table costs at least so much where a literal holds, by all of its states."""
        own, units = self.value(number, literal), self.units(number)
        return own is not None and not own[(units >= 0) & (units < cost)].any()

    def some(self, rng: np.random.Generator, number: int) -> int:
        """A random literal, mostly one of the table."""
        near = [x for i in self.tables[number][0] for x in self.labels[i]]
        near += [1, self.last + 1, 0, *self.costs, self.labels[int(rng.choice(len(self.sizes)))][0]]
        return int(rng.choice(near)) * int(rng.choice([-1, 1]))


@OFTEN
def test_literals_of_costs_imply_them(seed):
    rng = np.random.default_rng(seed)
    named, x = Named(rng), 0
    for number in rng.permutation(len(named.tables)).tolist():
        units, x = named.units(number), x or named.first
        values = np.unique(units[units >= 0]).tolist()
        if not values:
            assert not accepts(named.own, "costs", number, ())
            continue
        steps = [*zip(values[::-1], values[-2::-1], strict=False)]
        chosen = [
            x + k if rng.random() < 0.7 else named.some(rng, number) for k in range(len(steps))
        ]
        told = [(y, high - low) for y, (high, low) in zip(chosen, steps, strict=True)]
        for wrong in (chosen[1:], [*chosen, x]):
            assert len(wrong) == len(steps) or not accepts(named.own, "costs", number, tuple(wrong))
        before = dict(named.costs)
        named.costs |= {y: (number, high) for y, (high, _) in zip(chosen, steps, strict=True)
                        if y >= named.first}  # fmt: skip
        right = all(
            (y not in before and y <= named.last and chosen.count(y) == 1)
            if y >= named.first
            else named.implies(number, y, high)
            for y, (high, _) in zip(chosen, steps, strict=True)
        )
        if right:
            assert named.own.costs(number, tuple(chosen)) == told
            with pytest.raises(Rejected, match="named twice"):
                named.own.costs(number, tuple(chosen))
            x += len(steps)
        else:
            named.costs = before
            assert not accepts(named.own, "costs", number, tuple(chosen))


@OFTEN
def test_clauses_follow_from_a_table_or_not(seed):
    rng = np.random.default_rng(seed)
    named = Named(rng)
    for number in range(len(named.tables)):
        values = np.unique(named.units(number)[named.units(number) >= 0]).tolist()
        if len(values) > 1:
            x = named.first + len(named.costs)
            named.costs |= {x + k: (number, high) for k, high in enumerate(values[:0:-1])}
            named.own.costs(number, tuple(range(x, x + len(values) - 1)))
    for _ in range(2):  # the second time, some are known
        for number in range(len(named.tables)):
            for _ in range(4):
                clause = tuple(named.some(rng, number) for _ in range(int(rng.integers(0, 4))))
                own = [named.value(number, x) for x in clause]
                wanted = all(v is not None for v in own) and bool(
                    np.any([named.units(number) < 0, *own], axis=0).all()
                )
                assert accepts(named.own, "require_clause", number, clause) == wanted


def holding(own: LiteralSum, named: Named, scope, labels) -> bool:
    true = {x for i, a in zip(scope, labels, strict=True) for b, y in enumerate(named.labels[i])
            for x in ([y] if a == b else [-y])}  # fmt: skip
    return sum(w for x, w in own.weights.items() if x in true) >= own.bound


@pytest.mark.parametrize("seed", [0, 20, 76, 183, 21, 42, 50, 159])  # a factor of each kind
def test_sums_hold_for_the_labels_that_a_factor_allows(seed):
    named = Named(np.random.default_rng(seed))
    assert named.model.network.required
    for k, factor in enumerate(named.model.network.required):
        scope = [*factor.variables]
        sizes = [named.sizes[i] for i in scope]
        every = [*itertools.product(*map(range, sizes))]
        ends = {softmap.AllDifferent: (-INF, 1)}.get(type(factor))
        if isinstance(factor, softmap.Linear) and factor.penalty == INF:
            ends = factor.low, factor.high
        elif isinstance(factor, softmap.Cardinality):
            finite = np.flatnonzero(np.isfinite(factor.costs)).tolist()
            ends = (finite[0], finite[-1]) if finite else (len(scope) + 1,) * 2
        for side, label in itertools.product((0, 1), range(max(sizes))):
            if ends is None or math.isinf(ends[side]):
                assert not accepts(named.own, "sum_of", k, label, side)
                continue
            own = named.own.sum_of(k, label, side)
            for labels in every:
                if isinstance(factor, softmap.AllDifferent):
                    total = labels.count(label)
                elif isinstance(factor, softmap.Linear):
                    rows, taken = factor.shifted(sizes)
                    total = taken + sum(int(r[a]) for r, a in zip(rows, labels, strict=True))
                else:
                    ones = [factor.ones(t, d) for t, d in enumerate(sizes)]
                    total = sum(int(row[a]) for row, a in zip(ones, labels, strict=True))
                wanted = total <= ends[1] if side else total >= ends[0]
                assert holding(own, named, scope, labels) == wanted
        assert not accepts(named.own, "sum_of", k, 0, 2)
        assert not accepts(named.own, "sum_of", k, 0, -1)
    for k in (-1, len(named.model.network.required)):
        assert not accepts(named.own, "sum_of", k, 0, 1)


def test_weights_of_factors_that_forbid():
    counted = softmap.Cardinality([0, 1], 1, [INF, INF, INF])
    assert _weights(counted, [2, 2], 0)[1:] == (3, 3)  # no count is possible
    assert _weights(softmap.AllDifferent([0, 1]), [2, 2], 0)[1:] == (-math.inf, 1)
    for factor in (softmap.Linear([0, 1], [1, 1], low=1, penalty=2.0), softmap.Parity([0, 1])):
        with pytest.raises(Rejected, match="not a hard one"):
            _weights(factor, [2, 2], 0)


def small(unary, tables=(), **options) -> softmap.Model:
    """Variables of two labels, and tables of pairs."""
    pairs = [pair for pair, _ in tables] or np.zeros((0, 2), int)
    stack = np.array([table for _, table in tables]) if tables else np.zeros((0, 2, 2))
    return softmap.Model(np.array(unary, float), pairs, stack, **options)


def named(model: softmap.Model, variables, last: int, granule: int = 1) -> Literals:
    return Literals(
        model.network, flat_model(model.network), Scale(granule, 0, HALF - 1), variables, last
    )


def test_numbers_of_variables_tables_and_literals_are_in_range():
    model = small([[0, 3], [0, 5]])
    own = named(model, (1, 0), 3)
    assert own.costs(1, (2,)) == [(2, 5)]
    for variables, last in (((2,), 2), ((-1,), 2), ((0, 0), 3), ((0, 1), 2), ((0, 1), 9)):
        with pytest.raises(Rejected):
            named(model, variables, last)
    assert named(model, (0, 1), 3).base == 0
    assert named(model, (0, 1), 8).costs(0, (8,)) == [(8, 3)]
    assert named(small([[2, 5], [2, 5], [7, 1]]), (0,), 2).base == 5
    for number in (-1, 2):
        with pytest.raises(Rejected, match="no table"):
            own.costs(number, (3,))
        with pytest.raises(Rejected, match="no table"):
            own.require_clause(number, (3,))
    with pytest.raises(Rejected, match="too large for the unit"):
        named(small([[0, 2.0**60], [1, 1]]), (0,), 2)
    with pytest.raises(Rejected, match="one literal for each cost"):
        own.costs(0, (3, 4))


def test_equal_tables_are_read_once_and_different_ones_apart():
    first, second, third = (np.array(t, float) for t in ([[INF, 1], [1, 0]], [[2, 1], [1, 0]],
                                                         [[0, 1], [1, INF]]))  # fmt: skip
    pairs = [((0, 1), first), ((1, 2), second), ((2, 3), first), ((0, 3), third)]
    own = named(small(np.zeros((4, 2)), pairs), (0, 1, 2, 3), 5)
    own.require_clause(6, (4, 5))
    for number, clause in ((5, (3, 4)), (7, (2, 5))):
        with pytest.raises(Rejected, match="does not follow"):
            own.require_clause(number, clause)
    own.require_clause(4, (2, 3))
    with pytest.raises(Rejected, match="no function of table"):
        own.require_clause(4, (2, 4))
    with pytest.raises(Rejected, match="no literal"):
        own.require_clause(4, (2, 9))


# --- steps ----------------------------------------------------------------------------------------

EITHER = np.array([[INF, 0.0], [0.0, 0.0]])  # one of two variables has label 1
TRIANGLE = [((0, 1), EITHER), ((1, 2), EITHER), ((0, 2), EITHER)]


def begun(model: softmap.Model, exponent: int = 1) -> CoreProof:
    """Literals 2, 3 and 4 are label 1 of three variables, in units of 1."""
    proof = CoreProof(model.network, flat_model(model.network), exponent)
    proof.booleans((1, exponent, 4), (0, 1, 2))
    return proof


def cover() -> CoreProof:
    """Label 1 costs 3, 5 and 4, and two variables need it: the optimum is 7, and 0.5 besides."""
    proof = begun(small([[0, 3], [0, 5], [0, 4]], TRIANGLE, constant=0.5))
    for i in range(3):
        proof.costs((i,), (2 + i,))
    for k, clause in enumerate(((2, 3), (3, 4), (2, 4))):
        proof.given((0, 3 + k), clause)
    return proof


def test_cores_and_counts_prove_the_optimum():
    proof = cover()
    assert proof.bound() == Fraction(1, 2)
    proof.core((3, 0))
    proof.core((2, 1))
    assert proof.bound() == Fraction(11, 2)
    proof.given((3, 0, 2), ())  # literal 5: variables 0 and 1
    proof.given((3, 1, 2), ())  # literal 6: variables 1 and 2
    proof.learned((4, 5, 6), (3, 2, 4, 0))
    proof.core((2, 5))
    assert proof.bound() == Fraction(15, 2)
    for count in (3, 2):
        proof.given((3, 2, count), ())
    proof.given((4, 2, 3), ())
    assert proof._rules.clause(8) == (-7, 8)
    assert not proof.infeasible
    for numbers, literals in (((6, 0), (-2,)), ((-1, 0), (-2,))):
        with pytest.raises(Rejected, match="no such constraint"):
            proof.given(numbers, literals)
    for number in (3, -1):
        with pytest.raises(Rejected, match="no core"):
            proof.given((3, number, 2), ())
    for count in (1, 2, 4):
        with pytest.raises(Rejected, match="twice, or out of range"):
            proof.given((3, 2, count), ())
    with pytest.raises(Rejected, match="numbered twice"):
        proof.booleans((1, 1, 4), (0, 1, 2))


@pytest.mark.parametrize("count", [2, 3])
def test_a_count_holds_if_so_many_literals_do(count):
    proof = cover()
    proof._rules.add((2, 3, 4))
    proof.core((3, 3))
    proof.given((3, 0, count), ())
    own = proof._rules._at(4)
    for values in itertools.product((False, True), repeat=4):
        true = {x if value else -x for x, value in zip((2, 3, 4, 5), values, strict=True)}
        holds = sum(w for x, w in own.weights.items() if x in true) >= own.bound
        assert holds == (values[3] or sum(values[:3]) < count)


@pytest.mark.parametrize(
    ("clause", "weight", "accepted"),
    [((2, 3), 3, True), ((2, 3), 4, False), ((3, 2), 4, False), ((2, 3), 0, True),
     ((2, 3), -1, False), ((2, 3, 2), 1, False), ((3, 4), 4, True), ((-2, 3), 1, False)],
)  # fmt: skip
def test_each_literal_of_a_core_costs_as_much_as_the_bound_rises(clause, weight, accepted):
    proof = cover()
    proof._rules.add(clause)
    if not accepted:
        with pytest.raises(Rejected, match=r"costs less|one twice"):
            proof.core((weight, 3))
        return
    proof.core((weight, 3))
    assert proof.bound() == Fraction(1, 2) + weight
    with pytest.raises(Rejected, match="costs less"):  # nothing is paid twice
        proof.core((6 - weight, 3))


def test_the_empty_clause_is_no_core_and_one_literal_has_no_counts():
    proof = cover()
    proof._rules.add(())
    with pytest.raises(Rejected, match="no literal"):
        proof.core((1, 3))
    proof._rules.add((4,))
    proof.core((1, 4))
    with pytest.raises(Rejected, match="no core"):
        proof.given((3, 0, 2), ())


@pytest.mark.parametrize("literal", [0, 5, -5])
def test_literals_are_known(literal):
    proof = cover()
    for action in (lambda: proof.learned((2, literal, -2), ()),
                   lambda: proof.group((0,), (2, literal, -2), ())):  # fmt: skip
        with pytest.raises(Rejected, match="no such literal"):
            action()
    proof.learned((2, 4, -4), ())


def test_what_costs_as_much_as_the_gap_is_forbidden_below_the_cut():
    proof = cover()
    for cut, x in ((4, -2), (6, -3), (1, 2)):
        with pytest.raises(Rejected, match="gap to the cut"):
            proof.given((5, cut), (x,))
    proof.given((5, 3), (-2,))
    proof.given((5, 5), (-3,))
    assert proof.bound() == Fraction(1, 2)  # nothing is proved about costs below 3
    proof.learned((), (4, 5, 1))
    assert proof.bound() == Fraction(7, 2)
    assert not proof.infeasible
    proof = cover()
    proof.core((3, 0))
    proof.given((5, 5), (-3,))  # 3 are paid, and 2 are left of 5
    with pytest.raises(Rejected, match="gap to the cut"):
        proof.given((5, 6), (-3,))


def test_without_a_labelling_there_is_no_bound():
    proof = cover()
    assert not proof.infeasible
    proof._rules.add((-2,))
    proof._rules.add((-3,))
    proof.learned((), (4, 5, 1))
    assert proof.infeasible
    with pytest.raises(Rejected, match="another conclusion"):
        proof.bound()


def packing() -> CoreProof:
    """Label 0 costs 3, 5 and 4, and one variable may have label 1: the optimum is 7."""
    tables = [(pair, EITHER[::-1, ::-1]) for pair, _ in TRIANGLE]
    proof = begun(small([[3, 0], [5, 0], [4, 0]], tables))
    for i in range(3):
        proof.costs((i,), (-2 - i,))
    for k, clause in enumerate(((-2, -3), (-3, -4), (-2, -4))):
        proof.given((0, 3 + k), clause)
    return proof


HINTS = (1, 3, 0, 2, 0, 0)


def test_a_group_pays_for_all_but_one():
    proof = packing()
    proof.group((3,), (2, 3, 4), HINTS)
    assert proof.bound() == 6
    assert proof._rules.clause(3) == (2, 3, 4, 5)
    assert proof._weight[5] == 3
    with pytest.raises(Rejected, match="costs less"):
        proof.group((3,), (2, 3, 4), HINTS)
    proof.group((1,), (3, 4), (2, 0, 0))
    assert proof.bound() == 7


@pytest.mark.parametrize(
    ("weight", "literals", "hints"),
    [(4, (2, 3, 4), HINTS), (-1, (2, 3, 4), HINTS), (1, (2,), HINTS), (1, (), ()),
     (1, (2, 2), (1, 1)), (1, (2, 3, 4), (1, 0, 2, 0, 0)), (1, (-2, -3), (1, 0, 1, 0)),
     (1, (2, 3, 4), ()), (3, (2, 2), (4, 0, 4, 0))],
)  # fmt: skip
def test_groups_that_are_none(weight, literals, hints):
    proof = packing()
    proof._rules.add((-2,))
    with pytest.raises(Rejected):
        proof.group((weight,), literals, hints)


def test_the_costs_of_a_table_are_paid_once():
    """Named twice, they proved 6 where the optimum is 3."""
    proof = begun(small([[0, 3], [0, 3], [0, 0]], TRIANGLE[:1]))
    proof.costs((0,), (2,))
    proof.costs((1,), (3,))
    with pytest.raises(Rejected, match="named twice"):
        proof.costs((1,), (3,))


def test_sums_of_hard_factors_and_of_the_labels_of_a_variable():
    total = softmap.Linear([*range(12)], [2] * 12, low=5, high=7)
    model = softmap.Model.from_factors([3] + [2] * 11, [((0,), [0.0, 1.0, 2.0]), total])
    proof = CoreProof(model.network, flat_model(model.network), 0)
    proof.booleans((1, 0, 15), (*range(12),))
    for side in (0, 1):
        proof.given((1, 0, 0, side), ())
    with pytest.raises(Rejected, match="have no literals"):
        named(model, (*range(11),), 14).sum_of(0, 0, 0)
    proof.given((2, 0), ())
    with pytest.raises(Rejected, match="can hold"):
        copy.deepcopy(proof).learned((-3,), (3, 0))  # alone
    proof.learned((-3, -4), (3, 0))  # one label
    proof.learned((-4, -5, -6), (2, 0))  # 4 + 2 + 2 exceed 7
    with pytest.raises(Rejected, match="can hold"):
        proof.learned((-4, -5), (2, 0))

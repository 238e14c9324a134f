"""Presolve steps, one by one: each keeps the optimum below the cut, or is rejected."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from softmap.verification.integers import FORBIDDEN, HALF, Flat, Scale
from softmap.verification.records import Rejected
from softmap.verification.reduction import LARGEST_MOVE, Reduction, _dominates
from support.effort import Ledger

INF = np.inf


def reduction(unary, factors=(), most: int = 100) -> Reduction:
    flat = Flat(
        [np.array(costs, dtype=float) for costs in unary],
        [(scope, np.array(table, dtype=float)) for scope, table in factors],
        Fraction(0),
    )
    return Reduction(flat, Scale(1, 0, most))


def optimum(left: Reduction) -> int:
    """The constant plus the least cost of all labellings left, at most the cut."""
    if left.closed:
        return left.cut
    variables, best = sorted(left.unary), left.cut
    for labels in itertools.product(*(range(len(left.unary[v])) for v in variables)):
        at = dict(zip(variables, labels, strict=True))
        cost = sum(int(left.unary[v][a]) for v, a in at.items())
        cost += sum(int(left.tables[f][tuple(at[v] for v in s)]) for f, s in left.scopes.items())
        best = min(best, left.base + cost)
    return best


def random_reduction(seed: int, forbidden: float = 0.0) -> Reduction:
    rng = np.random.default_rng(seed)

    def costs(*shape):
        found = rng.integers(0, 6, shape).astype(float)
        return np.where(rng.random(shape) < forbidden, INF, found)

    factors = [
        ((1, 0), costs(3, 2)),
        ((1, 2), costs(3, 2)),
        ((0, 2), costs(2, 2)),
        ((2, 3), costs(2, 3)),
    ]
    factors.append(((0, 1, 2), costs(2, 3, 2)))
    return reduction([costs(2), costs(3), costs(2), costs(3)], factors)


# --- tables ---------------------------------------------------------------------------------------


def test_minima_go_to_the_constant():
    left = reduction([[3, 5], [1, 2]], [((1, 0), [[4, 6], [9, 7]])], most=10)
    assert (left.base, left.cut) == (8, 19)
    assert left.tables[0].tolist() == [[0, 5], [2, 3]]  # the first variable first
    assert left.scopes == {0: (0, 1)}
    assert left.bound() == 8
    assert left.bound(4) == 12
    assert left.bound(400) == 19


def test_factors_of_one_scope_are_added():
    left = reduction([[0, 0], [0, 0]], [((0, 1), [[0, 1], [2, INF]]), ((1, 0), [[0, INF], [5, 1]])])
    assert left.tables[0].tolist() == [[0, 6], [FORBIDDEN, FORBIDDEN]]
    assert list(left.scopes) == [0]
    left = reduction([[0, 0]], [((0,), [0, INF])])
    assert left.unary[0].tolist() == [0, FORBIDDEN]


def test_a_table_of_forbidden_entries_closes_the_problem():
    assert reduction([[INF, INF]]).closed
    assert not reduction([[INF, 0]]).closed
    left = reduction([[0, 0], [0, 0]], [((0, 1), np.full((2, 2), INF))], most=7)
    assert left.closed
    assert left.bound() == left.cut == 8


def test_costs_that_grow_too_large_are_rejected():
    left = reduction([[0, 0]] * 4, [((0, 1), np.zeros((2, 2))), ((2, 3), np.zeros((2, 2)))])
    for _ in range(3):
        left.shift((0, 0), (LARGEST_MOVE, 0))
    assert left.base == -3 * LARGEST_MOVE
    with pytest.raises(Rejected, match="too large"):  # the cut is too far from the constant
        left.shift((1, 0), (LARGEST_MOVE, 0))


def test_a_single_cost_too_large_is_rejected():
    left = reduction([[0, 0], [0, 0]], [((0, 1), np.zeros((2, 2)))])
    left.tables[0][1, 1] = HALF - LARGEST_MOVE - 1
    left.shift((0, 0), (0, -LARGEST_MOVE))
    with pytest.raises(Rejected, match="too large"):
        left.shift((0, 0), (0, -1))


@pytest.mark.parametrize("move", [LARGEST_MOVE, -LARGEST_MOVE])
def test_amounts_at_their_limit(move):
    left = reduction([[0, 0], [0, 0]], [((0, 1), np.zeros((2, 2)))])
    left.shift((0, 0), (move, 0))
    for amounts in ((move + np.sign(move), 0), (0, move + np.sign(move)), (0,), (0, 0, 0)):
        with pytest.raises(Rejected, match="one amount for each label"):
            left.shift((0, 0), tuple(map(int, amounts)))


# --- labels ---------------------------------------------------------------------------------------


def test_forbidden_labels_are_removed():
    left = reduction([[0, INF, 1], [0, 0]], [((0, 1), [[0, 1], [0, 1], [INF, INF]])])
    for label in (1, 2):
        left.remove((0,), (label, -1))
        assert len(left.unary[0]) == 2
        left = reduction([[0, INF, 1], [0, 0]], [((0, 1), [[0, 1], [0, 1], [INF, INF]])])
    left.remove((0,), (2, -1, 1, -1))
    assert left.unary[0].tolist() == [0]
    assert left.tables[0].tolist() == [[0, 1]]
    with pytest.raises(Rejected, match="neither forbidden nor dominated"):
        left.remove((0,), (0, -1))
    half = reduction([[0, 1], [0, 0]], [((0, 1), [[0, 1], [INF, 0]])])
    with pytest.raises(Rejected, match="neither"):
        half.remove((0,), (1, -1))


@pytest.mark.parametrize("pair", [(3, 0), (-1, 0), (0, 0), (0, 3), (0, -2), (1, 5)])
def test_labels_that_there_are_not(pair):
    with pytest.raises(Rejected, match="lacks label"):
        reduction([[0, 0, 0]]).remove((0,), pair)


def test_a_label_dominates_once():
    left = reduction([[0, 0]])
    with pytest.raises(Rejected, match="lacks label"):
        left.remove((0,), (0, 1, 1, 0))


@pytest.mark.parametrize("unary", range(-3, 4))
def test_a_dominated_label_costs_no_less(unary):
    """The first label costs at most 2 more in the factor; `unary` is what it costs less."""
    table = [[0, 5, 3], [1, 3, 9]]
    left = reduction([[5, 5 + unary], [0, 0, 0]], [((0, 1), table)])
    if unary >= 2:
        left.remove((0,), (1, 0))
        assert left.unary[0].tolist() == [0]
    else:
        with pytest.raises(Rejected, match="neither"):
            left.remove((0,), (1, 0))


def test_forbidden_entries_and_domination():
    better_forbidden = reduction([[0, 9], [0, 0]], [((0, 1), [[0, INF], [0, 0]])])
    with pytest.raises(Rejected, match="neither"):
        better_forbidden.remove((0,), (1, 0))
    both_forbidden = reduction([[0, 9], [0, 0]], [((0, 1), [[0, INF], [0, INF]])])
    both_forbidden.remove((0,), (1, 0))
    worse_forbidden = reduction([[0, 1], [0, 0]], [((0, 1), [[1, 50], [0, INF]])])
    worse_forbidden.remove((0,), (1, 0))
    never = reduction([[9, 0], [0, 0]], [((0, 1), [[0, 0], [INF, INF]])])
    never.remove((0,), (1, 0))


def test_a_forbidden_entry_is_outweighed_by_nothing():
    """Three times the largest cost is more than the number that stands for infinity."""
    much = [np.array([[0], [HALF - 1]])] * 3
    assert _dominates(much, 0, 1)
    assert not _dominates([*much, np.array([[FORBIDDEN], [0]])], 0, 1)
    assert not _dominates([*much, np.array([[FORBIDDEN, 0], [0, 0]])], 0, 1)
    assert _dominates([*much, np.array([[FORBIDDEN, 0], [FORBIDDEN, 0]])], 0, 1)


def test_without_labels_the_problem_is_closed():
    left = reduction([[0, 1]], most=3)
    left.unary[0][:] = FORBIDDEN
    left.remove((0,), (0, -1, 1, -1))
    assert left.closed
    assert left.bound() == 4


@pytest.mark.parametrize("seed", range(20))
def test_removals_keep_the_optimum(seed):
    left, count = random_reduction(seed, 0.3), 0
    before = optimum(left)
    for v in range(4):
        for a, b in itertools.permutations(range(len(left.unary[v])), 2):
            for reason in (b, -1):
                try:
                    left.remove((v,), (a, reason))
                except Rejected:
                    continue
                count += 1
                assert optimum(left) == before
                break
            if left.closed:
                return


# --- persistent labels ----------------------------------------------------------------------------


def persistent_pair(extra: int) -> Reduction:
    """Label 0 of the first variable is 4 better, and at most `extra` worse in the factor."""
    return reduction([[0, 4], [0, 0]], [((0, 1), [[extra, 0], [0, 0]])])


@pytest.mark.parametrize("extra", range(6))
def test_labels_are_fixed_if_a_reparametrisation_shows_it(extra):
    amounts = (2 * extra, 0, 0, 0)  # half units: what label 0 costs more goes to its own costs
    left = persistent_pair(extra)
    if extra <= 4:
        left.persistent((0, 0), amounts)
        assert left.unary[0].tolist() == [0]
        assert optimum(left) == optimum(persistent_pair(extra))
    else:
        with pytest.raises(Rejected, match="increases the unary cost"):
            left.persistent((0, 0), amounts)
    if extra:
        with pytest.raises(Rejected, match="increase the cost of factor"):
            persistent_pair(extra).persistent((0, 0), (2 * extra - 1, 0, 0, 0))


def test_two_labels_are_fixed_together():
    table = [[0, 3], [3, 1]]
    left = reduction([[0, 0], [0, 0]], [((0, 1), table)])
    left.persistent((0, 0, 1, 0), (0,) * 4)
    assert optimum(left) == 0
    with pytest.raises(Rejected, match="increase the cost of factor"):
        reduction([[0, 0], [0, 0]], [((0, 1), table)]).persistent((0, 1, 1, 1), (0,) * 4)
    with pytest.raises(Rejected, match="increase the cost of factor"):
        reduction([[0, 0], [0, 0]], [((0, 1), table)]).persistent((0, 0), (0,) * 4)


def test_amounts_of_the_other_variable_are_free():
    """The second variable is not fixed: what is moved to its labels cancels."""
    left = reduction([[0, 4], [0, 0]], [((0, 1), [[1, 2], [0, 9]])])
    left.persistent((0, 0), (2, 0, 5, -7))
    with pytest.raises(Rejected):
        reduction([[0, 4], [0, 0]], [((0, 1), [[1, 2], [0, 9]])]).persistent((0, 0), (0, 0, 2, 0))


@pytest.mark.parametrize("label", [2, -1])
def test_a_label_that_is_none_cannot_be_fixed(label):
    with pytest.raises(Rejected, match="forbidden labels"):
        persistent_pair(0).persistent((0, label), (0,) * 4)


def test_forbidden_costs_say_nothing_about_persistency():
    with pytest.raises(Rejected, match="forbidden labels"):
        reduction([[0, INF]]).persistent((0, 0), ())
    left = reduction([[0, 0], [0, 0]], [((0, 1), [[0, 0], [0, INF]])])
    with pytest.raises(Rejected, match="forbidden entries"):
        left.persistent((0, 0), (0,) * 4)


def test_amounts_for_persistent_labels_are_of_their_factors():
    for amounts in ((0,) * 3, (0,) * 5):
        with pytest.raises(Rejected, match="one amount for each label"):
            persistent_pair(0).persistent((0, 0), amounts)


# --- factors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_a_sum_of_pairs_is_split_into_them(seed):
    rng = np.random.default_rng(seed)
    parts = [rng.integers(0, 5, (2, 3)), rng.integers(0, 5, (3, 2)), rng.integers(0, 5, (2, 2))]
    table = parts[0][:, :, None] + parts[1][None] + parts[2][:, None, :]
    if seed % 2:
        table = np.where(parts[0][:, :, None] == 4, INF, table)
    left = reduction([[0, 0], [0, 0, 0], [0, 0]], [((0, 1, 2), table)])
    before = optimum(left)
    left.split((0,))
    assert all(len(scope) == 2 for scope in left.scopes.values())
    assert optimum(left) <= before
    left.normalise()
    assert left.base <= before


@pytest.mark.parametrize("seed", range(20))
def test_a_split_is_a_lower_bound_or_rejected(seed):
    left = random_reduction(seed, 0.2 * (seed % 2))
    before, number = optimum(left), max(left.scopes)
    try:
        left.split((number,))
    except Rejected:
        return
    assert optimum(left) <= before


def test_a_split_numbers_its_pairs_by_their_last_variable():
    """Pairs that cost nothing get no number."""
    table = np.zeros((2, 2, 2, 2))
    table[1, 1] += 2  # the first two variables
    table[:, 0, :, 1] += 3  # the second and the last one
    table[0, :, 1] += 5  # the first and the third one
    left = reduction([[0, 0]] * 4, [((0, 1, 2, 3), table)])
    before = optimum(left)
    left.split((0,))
    assert left.scopes == {1: (0, 1), 2: (0, 2), 3: (1, 3)}
    assert left.tables[1].tolist() == [[0, 0], [0, 2]]
    assert left.tables[2].tolist() == [[0, 5], [0, 0]]
    assert left.tables[3].tolist() == [[0, 3], [0, 0]]
    assert optimum(left) == before
    apart = np.zeros((2, 2, 2, 2))
    apart[1, :, :, 1] += 2  # the first and the last one
    apart[:, 1, 1] += 3  # the second and the third one
    left = reduction([[0, 0]] * 4, [((0, 1, 2, 3), apart)])
    left.split((0,))
    assert left.scopes == {1: (1, 2), 2: (0, 3)}
    every = reduction([[0, 0]] * 4, [((0, 1, 2, 3), np.indices((2,) * 4).sum(axis=0) ** 2 % 5)])
    every.split((0,))
    order = [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)]
    assert list(every.scopes.values()) == [pair for pair in order if pair in every.scopes.values()]
    assert len(every.scopes) > 1


def test_only_larger_factors_are_split():
    left = random_reduction(1)
    with pytest.raises(Rejected, match="two variables"):
        left.split((0,))
    with pytest.raises(Rejected, match="there is no factor 99"):
        left.split((99,))


FUNCTION = [[INF, 1, INF], [0, INF, INF], [INF, 2, INF]]  # labels 1, 0, 1


def with_function(order=(0, 1), seed: int = 0) -> Reduction:
    rng = np.random.default_rng(seed)
    table = np.array(FUNCTION) if order == (0, 1) else np.array(FUNCTION).T
    factors = [(order, table), ((0, 1, 2), rng.integers(0, 5, (3, 3, 2)))]
    factors += [((1, 2), rng.integers(0, 5, (3, 2))), ((0, 2), rng.integers(0, 5, (3, 2)))]
    return reduction([[0, 1, 2], rng.integers(0, 4, 3), [0, 3]], factors)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_function_of_a_variable_replaces_another_variable(order, seed):
    left = with_function(order, seed)
    before = optimum(left)
    left.substitute((0, 0, 1), (1, 0, 1))
    assert 1 not in left.unary
    assert optimum(left) == before


def test_a_function_of_a_second_variable_with_fewer_labels():
    left = reduction([[0, 1, 2], [0, 2]], [((0, 1), [[INF, 3], [INF, INF], [0, INF]])])
    before = optimum(left)
    left.substitute((0, 1, 0), (2, 0))
    assert optimum(left) == before


def test_a_function_of_the_second_variable():
    left = reduction([[0, 1], [0, 2]], [((0, 1), [[INF, 3], [0, INF]])])
    before = optimum(left)
    left.substitute((0, 1, 0), (1, 0))
    assert list(left.unary) == [1]
    assert optimum(left) == before


@pytest.mark.parametrize(
    ("which", "image", "words"),
    [
        ((0, 0, 1), (1, 0), "two variables of a factor"),
        ((0, 0, 1), (1, 0, 1, 0), "two variables of a factor"),
        ((1, 0, 1), (1, 0, 1), "two variables of a factor"),
        ((0, 0, 2), (1, 0, 1), "two variables of a factor"),
        ((9, 0, 1), (1, 0, 1), "two variables of a factor"),
        ((0, 0, 1), (1, 0, 3), "is no label"),
        ((0, 0, 1), (1, 0, -1), "is no label"),
        ((0, 0, 1), (1, 0, 2), "is no function"),
        ((0, 0, 1), (0, 0, 1), "is no function"),
    ],
)
def test_functions_that_are_none(which, image, words):
    with pytest.raises(Rejected, match=words):
        with_function().substitute(which, image)


@pytest.mark.parametrize("forbidden", [0.0, 0.4])
@pytest.mark.parametrize("seed", range(12))
def test_variables_are_eliminated_by_minimisation(seed, forbidden):
    left = random_reduction(seed, forbidden)
    before = optimum(left)
    for v in np.random.default_rng(seed).permutation(4).tolist():
        left.eliminate((v,))
        assert optimum(left) == before
        if left.closed:
            return
    assert left.bound() == before


def test_elimination_counts_the_tables_of_its_sums():
    """Each of two labels adds up three tables of one entry per label of the neighbours."""
    pair, alike = np.zeros((2, 2)), [np.zeros(2)] * 3
    flat, ledger = Flat(alike, [((0, 1), pair), ((0, 2), pair)], Fraction(0)), Ledger()
    Reduction(flat, Scale(1, 0, 100), ledger).eliminate((0,))
    assert ledger.sums == [24]


def test_the_factors_of_a_variable_with_one_label_stay_apart():
    left = reduction([[2], [0, 0], [0, 0]], [((0, 1), [[0, 3]]), ((0, 2), [[4, 1]])])
    left.eliminate((0,))
    assert left.scopes == {}
    assert left.unary[1].tolist() == [0, 3]
    assert left.unary[2].tolist() == [3, 0]
    assert left.base == 3
    with pytest.raises(Rejected, match="there is no variable 0"):
        left.eliminate((0,))


def test_elimination_that_leaves_nothing_closes_the_problem():
    left = reduction([[0, 0], [0, 0]], [((0, 1), [[INF, 0], [INF, 0]])])
    left.unary[0][:] = FORBIDDEN
    left.eliminate((0,))
    assert left.closed


@pytest.mark.parametrize("seed", range(10))
def test_shifts_keep_every_cost(seed):
    left, rng = random_reduction(seed, 0.2), np.random.default_rng(seed)
    before = optimum(left)
    if left.closed:
        return
    left.shift((0, 1, 2, 0), tuple(rng.integers(-3, 4, 5).tolist()))
    assert optimum(left) == before
    assert all(int(table.min()) == 0 for table in [*left.unary.values(), *left.tables.values()])


@pytest.mark.parametrize("places", [(9, 0), (0, 2), (0, -1), (-1, 0), (0, 0, 9, 0), (9, 0, 0, 0)])
def test_shifts_of_what_there_is_not(places):
    with pytest.raises(Rejected, match="factor or axis"):
        random_reduction(1).shift(places, (0, 0, 0))


# --- components -----------------------------------------------------------------------------------


def test_a_component_has_its_own_numbers():
    left = reduction([[0, 1], [0, 0], [2, 0]], [((1, 2), [[0, 5], [6, 7]])])
    unary, factors = left.component((2, 1), (0,))
    assert unary == [[2, 0], [0, 0]]
    assert factors[0][0] == [1, 0]
    assert factors[0][1].tolist() == [[0, 5], [6, 7]]


@pytest.mark.parametrize(
    ("variables", "factors"),
    [
        ((), ()),
        ((1, 1), ()),
        ((1, 2), (0, 0)),
        ((1, 2), (5,)),
        ((1, 2), (0, 5)),
        ((0, 1), (5, 0)),
        ((1,), (0,)),
        ((0, 1), (0,)),
        ((7,), ()),
    ],
)
def test_components_that_are_none(variables, factors):
    left = reduction([[0, 1], [0, 0], [2, 0]], [((1, 2), [[0, 5], [6, 7]])])
    with pytest.raises(Rejected):
        left.component(variables, factors)


@pytest.mark.parametrize(("bound", "closed"), [(4, False), (5, False), (6, True)])
def test_a_solved_component_adds_its_bound(bound, closed):
    """Its labellings cost at most 2 + 3, if no entry is forbidden."""
    left = reduction([[0, 2], [0, 0], [1, 1]], [((0, 1), [[0, INF], [3, 1]])])
    base = left.base
    left.close((0, 1), (0,), bound)
    assert left.closed is closed
    assert left.base == base + bound
    assert list(left.unary) == [2]
    assert left.scopes == {}


def test_a_closed_problem_stays_closed():
    left = reduction([[0, 2], [0, 0], [1, 1]])
    left.closed = True
    left.close((0,), (), 0)
    assert left.closed

"""Steps of a search, one by one: each is accepted at its limit, and rejected beyond it."""

from __future__ import annotations

import numpy as np
import pytest

from softmap.verification import sides
from softmap.verification.integers import FORBIDDEN, HALF
from softmap.verification.limit import COPIES, Limits, Refused
from softmap.verification.node import bytes_of
from softmap.verification.records import Rejected
from softmap.verification.sides import LARGEST_COST
from softmap.verification.tree import Tree
from support.effort import Ledger

DIFFER = np.array([[0, 4], [4, 0]])


def tree(unary=None, factors=None, cut: int = 3) -> Tree:
    """By default two variables of two labels and a factor that costs 4 where they differ."""
    made = Tree(unary or [[0, 3], [5, 0]], factors or [([0, 1], DIFFER)])
    made.cut((cut,))
    return made


def step(made: Tree, words=(), amounts=(), variables=(), falls=(), out=()) -> Tree:
    made.step(words, amounts, variables, falls, out)
    made.compute_minima()
    return made


def limit(made, word: int) -> int:
    """The largest amount that may be moved from a factor to a label, by trying."""
    for amount in range(100):
        try:
            step(made(), words=(word,), amounts=(amount + 1,))
        except Rejected:
            return amount
    return 100


# --- moving costs ---------------------------------------------------------------------------------


def test_words_are_those_of_labels_of_factors():
    for word in (-1, 4, 100):
        for words in ((word,), (word, 0), (0, word)):
            with pytest.raises(Rejected, match="there is no label"):
                step(tree(), words=words, amounts=(0,) * len(words))
    for word in range(4):
        step(tree(), words=(word,), amounts=(0,))


def test_no_more_is_moved_than_a_factor_costs():
    assert [limit(tree, word) for word in range(4)] == [0, 0, 0, 0]
    wide = [([0, 1], np.array([[1, 4], [4, 2]]))]
    assert [limit(lambda: tree(factors=wide), word) for word in range(4)] == [1, 2, 1, 2]


def test_no_more_is_moved_than_a_factor_of_three_variables_costs():
    table = np.random.default_rng(2).permutation(np.arange(1, 13)).reshape(2, 3, 2)

    def made() -> Tree:
        return tree([[0, 0], [0, 0, 0], [0, 0]], [([0, 1, 2], table)])

    expected = [*table.min(axis=(1, 2)), *table.min(axis=(0, 2)), *table.min(axis=(0, 1))]
    assert [limit(made, word) for word in range(7)] == expected


def test_what_went_to_one_label_is_missing_for_the_others():
    table = np.array([[[3, 5], [6, 7]], [[8, 9], [4, 6]]])

    def three_left() -> Tree:
        return step(tree([[0, 0]] * 3, [([0, 1, 2], table)]), words=(0,), amounts=(1,))

    assert [limit(three_left, word) for word in (0, 1, 2, 4)] == [2, 4, 2, 2]
    wide = [([0, 1], np.array([[1, 4], [4, 2]]))]
    for word, left in ((0, 0), (1, 2), (2, 0), (3, 2)):
        made = lambda: step(tree(factors=wide), words=(2,), amounts=(1,))  # noqa: E731
        assert limit(made, word) == left


def test_costs_of_removed_labels_do_not_count():
    removed = step(tree(), out=(-2,))  # label 1 of the first variable
    step(removed, words=(1,), amounts=(100,))
    step(removed, words=(1,), amounts=(-300,))
    assert limit(lambda: step(tree(), out=(-2,)), 3) == 4  # label 1 of the second variable


def test_no_more_is_moved_from_a_label_than_it_costs():
    step(tree(), words=(2,), amounts=(-5,))
    with pytest.raises(Rejected, match="from a label"):
        step(tree(), words=(2,), amounts=(-6,))
    with pytest.raises(Rejected, match="from a label"):  # what is below 0 loses 0 to the factor
        step(tree(), words=(0,), amounts=(0,), variables=(0,), falls=(1,))


def test_the_bound_rises_by_what_every_label_costs():
    made = tree([[2, 3], [5, 4]])
    step(made, variables=(0, 1), falls=(2, 4))
    assert made.lower == 6
    for variable, fall in ((0, 3), (1, 5), (-1, 1), (0, -1)):
        with pytest.raises(Rejected):
            step(tree([[2, 3], [5, 4]]), variables=(variable,), falls=(fall,))
    assert step(tree(), variables=(0,), falls=(0,)).lower == 0


def test_costs_may_pass_through_a_label_to_the_bound():
    made = tree([[1, 0], [0, 0]], [([0, 1], np.array([[0, 0], [2, 3]]))])
    step(made, words=(1,), amounts=(2,), variables=(0,), falls=(1,))
    assert made.lower == 1
    with pytest.raises(Rejected, match="to the bound"):
        step(made, variables=(0,), falls=(1,))


# --- removing labels ------------------------------------------------------------------------------


@pytest.mark.parametrize(("cut", "holds"), [(3, True), (4, False)])
def test_a_label_is_removed_if_its_cost_reaches_the_cut(cut, holds):
    made = tree(cut=cut)
    if holds:
        step(made, out=(-2,))
    else:
        with pytest.raises(Rejected, match="do not reach the cut"):
            step(made, out=(-2,))


@pytest.mark.parametrize("cut", range(1, 9))
def test_a_reason_adds_the_least_of_a_factor(cut):
    """Label 1 of the first variable costs 3, and 4 + 5 or 0 + 2 with the second variable."""
    made = tree([[0, 3], [5, 2]], cut=cut)
    if cut <= 5:
        step(made, out=(1,))
    else:
        with pytest.raises(Rejected, match="do not reach the cut"):
            step(made, out=(1,))


@pytest.mark.parametrize(("cut", "holds"), [(6, True), (7, False)])
def test_a_reason_does_not_count_what_was_moved_twice(cut, holds):
    """Label 1 of the first variable: 3, and min(4 + 5, 1 + 2) with the second variable."""
    made = tree([[0, 3], [5, 2]], [([0, 1], np.array([[0, 0], [4, 1]]))], cut)
    step(made, words=(1,), amounts=(1,))
    if holds:
        step(made, out=(1,))
    else:
        with pytest.raises(Rejected, match="do not reach the cut"):
            step(made, out=(1,))


@pytest.mark.parametrize("cut", range(3, 9))
def test_a_reason_of_three_variables(cut):
    """Label 0 of the first variable: 1 + min of table + unary costs of the two others = 6."""
    table = np.array([[[1, 9], [3, 0]], [[0, 0], [0, 0]]])
    made = tree([[1, 0], [4, 2], [0, 3]], [([0, 1, 2], table)], cut)
    if cut <= 6:
        step(made, out=(0,))
    else:
        with pytest.raises(Rejected, match="do not reach the cut"):
            step(made, out=(0,))


def test_a_label_removed_twice_is_removed_once():
    made = tree([[5, 5], [0, 0]])
    step(made, out=(-1, -1))
    assert made.bound() == 0
    step(made, out=(-2,))
    assert made.bound() == 3  # no label is left: every labelling reaches the cut
    made = step(step(tree([[5, 5], [5, 0]]), out=(-1, -2)), out=(-3,))
    assert made.bound() == 3  # labels of another variable are left, and one was removed since


def test_what_was_moved_to_the_bound_is_no_part_of_the_reason():
    made = step(
        tree([[4, 6], [0, 0]], [([0, 1], np.zeros((2, 2), int))], 6), variables=(0,), falls=(4,)
    )
    step(made, out=(-2,))
    with pytest.raises(Rejected, match="do not reach the cut"):
        step(made, out=(-1,))


# --- combined factors -----------------------------------------------------------------------------


def three(costs=(0, 0)) -> Tree:
    """Three variables, a factor between the first one and each of the others."""
    return tree([list(costs), [0, 0], [0, 0]], [([0, 1], DIFFER), ([0, 2], DIFFER)])


@pytest.mark.parametrize(
    ("own", "members", "scope"),
    [
        ((), (), (0, 1)),
        ((), (0, 0), (0, 1)),
        ((), (-1, 0), (1, 2)),
        ((), (-1,), (0, 2)),
        ((), (0, 1), (0, 0, 1)),
        ((), (0, 1), (1,)),
        ((), (0, 1), (1, 1)),
        ((), (0,), (0, 2)),
        ((2,), (0,), (0, 1)),
        ((1,), (0,), (0, 1)),
    ],
)
def test_factors_that_are_not_combined(own, members, scope):
    with pytest.raises(Rejected, match="combine"):
        three().combine(own, members, scope)


def test_at_most_three_factors_and_the_costs_of_one_variable_are_combined():
    zero = [0, 0]
    ring = [([0, 1], DIFFER), ([1, 2], DIFFER), ([2, 3], DIFFER), ([0, 3], DIFFER)]
    made = tree([zero] * 4, ring)
    with pytest.raises(Rejected, match="combine"):
        made.combine((), (0, 1, 2, 3), (0, 2))
    with pytest.raises(Rejected, match="over two"):
        made.combine((1, 2), (0, 1, 2), (0, 3))
    made.combine((), (0, 1, 2), (0, 3))


def test_one_factor_replaces_itself():
    made = tree()
    made.combine((), (0,), (1, 0))
    assert [limit(lambda: _once(), word) for word in (4, 5, 6, 7)] == [0, 0, 0, 0]


def _once() -> Tree:
    made = tree()
    made.combine((), (0,), (1, 0))
    return made


@pytest.mark.parametrize("removed", [False, True])
def test_the_costs_of_a_variable_join_its_factors(removed):
    """Label 0 of the first variable costs 1, label 1 costs 3, and is removed at a cut of 3."""

    def made() -> Tree:
        out = step(three((1, 3)), out=(-2,) if removed else ())
        out.combine((0,), (0, 1), (1, 2))
        return out

    # the table is 1, 5, 5, and 9 without label 1, else min(9, 3)
    assert [limit(made, word) for word in (8, 9, 10, 11)] == [
        1,
        5 if removed else 3,
        1,
        5 if removed else 3,
    ]


def test_costs_moved_before_count_in_combined_factors():
    """With one label left, and 2 moved to it from each factor, the table is 0, 2, 2, 4."""

    def made() -> Tree:
        table = np.array([[2, 4], [9, 9]])
        out = tree([[0, 3], [0, 0], [0, 0]], [([0, 1], table), ([0, 2], table)])
        step(out, words=(0, 4), amounts=(2, 2))
        step(out, out=(-2,))
        out.combine((), (0, 1), (1, 2))
        return out

    assert [limit(made, word) for word in (8, 9, 10, 11)] == [0, 2, 0, 2]


def test_costs_moved_to_labels_of_both_variables_count():
    """1, 2, 9, 8 are left of the first factor; with the second one the least is 3, 5, 4, 6."""

    def made() -> Tree:
        table = np.array([[2, 4], [9, 9]])
        out = tree([[0, 0], [0, 0], [0, 0]], [([0, 1], table), ([0, 2], table)])
        step(out, words=(0, 3), amounts=(1, 1))
        out.combine((), (0, 1), (1, 2))
        return out

    assert [limit(made, word) for word in (8, 9, 10, 11)] == [3, 4, 3, 5]


@pytest.mark.parametrize(
    "amount", [LARGEST_COST, LARGEST_COST + 1, -LARGEST_COST, -LARGEST_COST - 1]
)
def test_very_large_costs_are_not_combined(amount):
    large = 2 * LARGEST_COST
    made = tree([[large, 0], [0, 0]], [([0, 1], np.array([[large, large], [0, 0]]))])
    step(made, words=(0,), amounts=(amount,))
    if abs(amount) > LARGEST_COST:
        with pytest.raises(Rejected, match="too large"):
            made.combine((), (0,), (0, 1))
    else:
        made.combine((), (0,), (0, 1))


def test_forbidden_sums_stay_forbidden():
    made = tree([[0, 0], [0, 0], [0, 0]], [([0, 1], np.full((2, 2), FORBIDDEN))] * 2)
    made.combine((), (0, 1), (0, 1))
    step(made, words=(8,), amounts=(HALF,))
    assert made.bound() == 0


def test_a_factor_that_was_combined_is_no_reason():
    made = three((1, 3))
    made.combine((), (0, 1), (1, 2))
    with pytest.raises(Rejected, match="removed is a reason"):
        step(made, out=(0,))


def test_combined_tables_are_counted_with_the_costs_of_a_variable():
    """Two tables and unary costs, added up for 8 joint labels."""
    factors, ledger = [([0, 1], DIFFER), ([0, 2], DIFFER)], Ledger()
    Tree([[0, 0]] * 3, factors, ledger).combine((0,), (0, 1), (1, 2))
    assert ledger.sums == [24]
    effort = Limits(1e-4)
    effort.keep(effort.free - 2 * bytes_of(DIFFER) - 8 * COPIES * 8 + 1)
    with pytest.raises(Refused, match="a table of 8 entries"):
        Tree([[0, 0]] * 3, factors, effort).combine((0,), (0, 1), (1, 2))


def test_a_combination_is_undone_with_its_node():
    made = three((1, 3))
    made.dive((0,))
    made.branch((1, 0, 0))
    made.combine((0,), (0, 1), (1, 2))
    with pytest.raises(Rejected, match="was removed"):
        step(made, words=(0,), amounts=(0,))
    made.leave()
    step(made, words=(0,), amounts=(0,))
    with pytest.raises(Rejected, match="there is no label"):
        step(made, words=(8,), amounts=(0,))
    step(made, variables=(0,), falls=(1,))  # its own costs are back
    assert made.lower == 1


# --- nodes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [HALF + 1, -HALF - 1])
def test_cuts_that_are_too_large(cut):
    with pytest.raises(Rejected, match="too large"):
        tree().cut((cut,))


def test_the_cut_only_falls():
    made = Tree([[0, 0]], [])
    made.cut((HALF,))
    assert made.upper == HALF
    made.cut((5,))
    made.cut((7,))
    assert made.upper == 5
    made.cut((-HALF,))
    assert made.upper == -HALF
    assert made.bound() == 0


def test_nodes_that_are_not_open():
    for number in (1, -1):
        with pytest.raises(Rejected, match="not open"):
            tree().dive((number,))
    made = tree()
    made.dive((0,))
    for number in (0, 1):
        with pytest.raises(Rejected, match="not open"):
            made.dive((number,))
    with pytest.raises(Rejected, match="before its last dive"):
        made.bound()


@pytest.mark.parametrize("decision", [(0, -1, 0), (0, 4, 0), (-1, 0, 0), (2, 0, 0)])
def test_decisions_about_nothing(decision):
    made = tree()
    made.dive((0,))
    with pytest.raises(Rejected, match="about no variable"):
        made.branch(decision)


def test_nothing_happens_outside_of_a_dive():
    for action in (lambda t: t.branch((0, 0, 0)), lambda t: t.close(), lambda t: t.leave()):
        with pytest.raises(Rejected):
            action(tree())


@pytest.mark.parametrize(
    ("kind", "here", "there"),
    [
        (0, [2], [0, 1, 3, 4]),
        (1, [0, 1, 3, 4], [2]),
        (2, [0, 1, 2], [3, 4]),
        (3, [3, 4], [0, 1, 2]),
    ],
)
def test_decisions_and_their_negations(kind, here, there):
    """A node is closed unless its one label that costs nothing is left."""
    for label in range(5):
        made = Tree([[0 if a == label else 9 for a in range(5)]], [])
        made.cut((9,))
        made.dive((0,))
        made.branch((0, kind, 2))
        assert closes(made) is (label not in here)
        if label not in here:
            assert closes(made) is (label not in there)


def closes(made: Tree) -> bool:
    """Whether the current node is closed after its labels of cost 9 are removed."""
    step(made, out=tuple(-1 - a for a in range(5) if made._cost[0][a] >= 9))
    try:
        made.close()
    except Rejected:
        return False
    return True


@pytest.mark.parametrize(("fall", "holds"), [(3, True), (2, False)])
def test_a_node_is_closed_at_the_cut(fall, holds):
    made = tree([[3, 4], [0, 0]])
    made.dive((0,))
    step(made, variables=(0,), falls=(fall,))
    if holds:
        made.close()
        assert made.bound() == 3
    else:
        with pytest.raises(Rejected, match="does not reach the cut"):
            made.close()


def test_a_whole_search():
    """The optimum is 2, and every node is explored with a cut of 2."""
    made = Tree([[0, 2], [0, 2]], [([0, 1], np.array([[7, 7], [0, 7]]))])
    made.cut((2,))
    made.dive((0,))
    made.branch((0, 0, 0))  # then the factor costs 7
    step(made, words=(0,), amounts=(7,), variables=(0,), falls=(7,))
    made.close()
    assert made.lower == 0  # costs are back
    step(made, variables=(0,), falls=(2,))
    made.close()
    assert made.bound() == 2


def test_nodes_left_open_keep_their_bounds():
    made = Tree([[1, 5], [2, 9]], [])
    made.cut((8,))
    made.dive((0,))
    step(made, variables=(0, 1), falls=(1, 2))
    made.branch((0, 0, 1))  # the negation has a bound of 3
    step(made, variables=(0,), falls=(4,))
    made.branch((1, 2, 0))  # the negation has a bound of 7
    made.leave()
    assert made.bound() == 3
    assert made.lower == 0
    made.dive((1,))  # label 0 of the first variable
    step(made, variables=(0, 1), falls=(1, 2))
    made.branch((1, 1, 0))
    step(made, variables=(1,), falls=(7,))
    made.close()
    made.leave()
    assert made.bound() == 3
    with pytest.raises(Rejected, match="not open"):
        made.dive((1,))


def test_a_node_that_reaches_the_cut_is_not_left_open():
    made = Tree([[4, 5]], [])
    made.cut((4,))
    made.dive((0,))
    step(made, variables=(0,), falls=(4,))
    made.leave()
    assert made.bound() == 4
    with pytest.raises(Rejected, match="not open"):
        made.dive((1,))


def test_one_dive_at_a_time():
    made = Tree([[0, 0]], [])
    made.cut((4,))
    made.dive((0,))
    made.branch((0, 0, 0))
    made.leave()
    made.dive((1,))
    with pytest.raises(Rejected, match="not open"):
        made.dive((2,))


def test_an_empty_node_is_closed_and_the_next_one_is_not():
    made = tree([[9, 9], [0, 0]])
    made.dive((0,))
    made.branch((1, 0, 0))
    step(made, out=(-1, -2))
    made.close()
    with pytest.raises(Rejected, match="does not reach the cut"):
        made.close()


def test_nothing_is_closed_outside_of_a_dive():
    made = step(tree([[3, 4], [0, 0]]), variables=(0,), falls=(3,))
    with pytest.raises(Rejected, match="does not reach the cut"):
        made.close()


def test_the_bound_of_a_node_is_no_less_than_where_its_dive_began():
    made = Tree([[3, 9], [0, 0]], [])
    made.cut((8,))
    made.dive((0,))
    step(made, variables=(0,), falls=(3,))
    made.leave()
    assert made.bound() == 3
    made.dive((1,))
    made.branch((1, 0, 0))
    made.leave()  # without any cost moved
    assert made.bound() == 3
    for number in (2, 3):
        made.dive((number,))
        made.leave()
    assert made.bound() == 3


# --- minima computed together ---------------------------------------------------------------------


def verdict(few: int, many: int, seed: int) -> bool:
    """Whether random moves and removals are accepted, with minima in lists or in arrays."""
    rng = np.random.default_rng(seed)
    table = rng.integers(3, 9, (5, 4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sides, "FEW", few)
        patch.setattr(sides, "MANY", many)
        made = tree([[0] * 5, rng.integers(0, 4, 4).tolist()], [([0, 1], table)], cut=5)
        try:
            for _ in range(2):
                words = rng.permutation(9)[:3].tolist()
                amounts = rng.integers(0, 4, 3).tolist()
                made.step(words, amounts, (), (), rng.integers(0, 9, rng.integers(2)).tolist())
            made.bound()
        except Rejected:
            return False
    return True


def test_minima_of_arrays_are_those_of_lists():
    found = [verdict(1000, 1, seed) for seed in range(200)]
    assert 20 < sum(found) < 180
    for many in (1, 3, 1000):
        assert [verdict(-1, many, seed) for seed in range(200)] == found


def test_no_bound_before_all_minima_are_computed(monkeypatch):
    monkeypatch.setattr(sides, "FEW", -1)
    made = tree([[0, 0], [0, 0]], [([0, 1], np.array([[1, 4], [4, 2]]))])
    made.step((0,), (2,), (0,), (0,), ())
    with pytest.raises(Rejected, match="in one of the last steps"):
        made.bound()


@pytest.mark.parametrize(("amount", "holds"), [(sides.GONE, True), (sides.GONE + 1, False)])
@pytest.mark.parametrize("sign", [1, -1])
def test_costs_of_arrays_fit_their_type(amount, holds, sign):
    minima = sides.Minima(2)
    minima.add_rows(np.array([[FORBIDDEN, 0], [5, FORBIDDEN]]))
    minima.add([0, 1], [-(1 << 62), -(1 << 62)], [0, 1], [sign * amount, 0])
    if holds:
        minima.compute()
        minima.compute()  # nothing is left
    else:
        with pytest.raises(Rejected, match="too large"):
            minima.compute()


@pytest.mark.parametrize(
    ("row", "costs", "least"),
    [(0, {0: 0, 1: 1}, 7), (1, {0: 0, 1: 1}, 4), (1, {0: 0}, 8), (2, {1: 1}, 6)],
)
def test_rows_are_those_of_their_tables(row, costs, least):
    for limit in (least, least + 1):
        minima = sides.Minima(2)
        assert minima.add_rows(np.array([[7, 9], [8, 3]])) == 0
        assert minima.add_rows(np.array([[6, 5]])) == 2
        minima.add([row], [limit], [*costs], [*costs.values()])
        if limit == least:
            minima.compute()
        else:
            with pytest.raises(Rejected, match="in one of the last steps"):
                minima.compute()

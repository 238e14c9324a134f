"""Leaves of semidefinite bounds: what the checker finds, against sums over all spins."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from softmap.verification import spins
from softmap.verification.integers import Flat
from softmap.verification.limit import CALL, COPIES, MEMORY, Limits, Refused
from softmap.verification.records import Rejected
from softmap.verification.spins import MATRICES, PRODUCTS, SpinLeaves

NONE = np.zeros(0, np.int64)


def random_flat(seed: int, n: int = 4, *, field: bool = True, unit: float = 2.0**-30) -> Flat:
    """A model of spins whose costs are multiples of a unit; both directions of pairs occur."""
    rng = np.random.default_rng(seed)
    pairs = [p if rng.random() < 0.5 else p[::-1] for p in itertools.combinations(range(n), 2)]
    pairs.append(pairs[0])  # two tables of one pair
    tables = [unit * rng.integers(-(1 << 31), 1 << 31, (2, 2)) for _ in pairs]
    unary = [unit * rng.integers(-(1 << 31), 1 << 31, 2) for _ in range(n)]
    if not field:
        tables = [table[0, 0] * np.eye(2) for table in tables]
        unary = [np.full(2, costs[0]) for costs in unary]
    return Flat(unary, list(zip(pairs, tables, strict=True)), Fraction(7, 3))


def labellings(flat: Flat, path: tuple[tuple[int, int], ...] = ()) -> tuple[Any, Any]:
    """All labellings with some decided labels, and their exact costs."""
    every = [x for x in itertools.product((0, 1), repeat=len(flat.unary))
             if all(x[i] == a for i, a in path)]  # fmt: skip
    costs = [
        flat.constant
        + sum(Fraction(float(own[a])) for own, a in zip(flat.unary, x, strict=True))
        + sum(Fraction(float(table[x[i], x[j]])) for (i, j), table in flat.factors)
        for x in every
    ]
    return np.array(every), costs


class Leaf:
    """The quadratic form of the free spins below some decisions, from averages of the costs."""

    def __init__(self, flat: Flat, path: tuple[tuple[int, int], ...] = (), field: bool = True):
        fixed = path if field else (*path, (len(flat.unary) - 1, 0))  # by symmetry
        every, costs = labellings(flat, fixed)
        self.path, self.mean = path, sum(costs) / len(costs)
        decided = {i for i, _ in fixed}
        signs = 1.0 - 2.0 * every
        free = [signs[:, i] for i in range(len(flat.unary)) if i not in decided]
        free.append(np.ones(len(every)))
        centred = np.array([float(cost - self.mean) for cost in costs])
        self.form = np.array([[(centred * a * b).mean() / 2 for b in free] for a in free])
        np.fill_diagonal(self.form, 0.0)

    def changed(self, triangles: Any, weights: Any) -> Any:
        """The form minus weighted triangle inequalities."""
        form = self.form.copy()
        for (i, j, k, kind), g in zip(triangles, weights, strict=True):
            for (a, b), sign in zip(((i, j), (i, k), (j, k)), PRODUCTS[kind], strict=True):
                form[a, b] -= g * sign / 2
                form[b, a] -= g * sign / 2
        return form

    def diagonal(self, triangles: Any = (), weights: Any = ()) -> Any:
        """Multipliers that leave a matrix with dominant diagonal, so no negative eigenvalue."""
        return -np.abs(self.changed(triangles, weights)).sum(axis=1)

    def add(self, leaves: SpinLeaves, y: Any, triangles: Any = (), weights: Any = ()) -> None:
        path = np.array([part for step in self.path for part in step], np.int64)
        corners = np.array(triangles, np.int64).ravel()
        leaves.add(path, bits(y), corners, bits(weights))


def bits(numbers: Any) -> Any:
    return np.array(numbers, np.float64).view(np.int64)


def near(found: Fraction, expected: float) -> bool:
    return abs(float(found) - expected) <= 1e-8 * (1 + abs(expected))


CASES = [((), True), (((2, 1),), True), (((0, 0), (3, 1)), True), ((), False), (((1, 1),), False)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("path", "field"), CASES)
def test_a_leaf_proves_what_its_multipliers_say(path, field, seed):
    flat = random_flat(seed, field=field)
    leaf, leaves = Leaf(flat, path, field), SpinLeaves(flat, Limits())
    triangles = [(0, 1, 2, kind) for kind in range(4)] if len(leaf.form) > 2 else []
    weights = np.random.default_rng(seed).random(len(triangles))
    y = leaf.diagonal(triangles, weights) - 40.0
    leaf.add(leaves, y, triangles, weights)
    every = [float(leaf.mean) + float(y.sum() - weights.sum())]
    for labels in itertools.product((0, 1), repeat=len(path)):  # the other leaves prove more
        there = tuple((i, a) for (i, _), a in zip(path, labels, strict=True))
        if there != path:
            rest = Leaf(flat, there, field)
            rest.add(leaves, rest.diagonal())
            every.append(float(rest.mean) + float(rest.diagonal().sum()))
    assert min(every) == every[0]
    assert near(leaves.bound(), min(every))
    assert leaves.bound() <= min(labellings(flat)[1])


def test_triangle_inequalities_hold_for_all_spins():
    """A sum of the three products, with the signs of a kind, is at least -1, and may be -1."""
    for signs in PRODUCTS:
        sums = [
            int(signs @ [x * y, x * z, y * z]) for x, y, z in itertools.product((-1, 1), repeat=3)
        ]
        assert min(sums) == -1


@pytest.mark.parametrize("factor", [2.0**-500, 2.0**-30, 2.0**30, 2.0**500])
def test_other_units_give_the_same_bound(factor):
    flat = random_flat(5)
    scaled = Flat(
        [factor * costs for costs in flat.unary],
        [(scope, factor * table) for scope, table in flat.factors],
        flat.constant * Fraction(factor),
    )
    found = []
    for one, times in ((flat, 1.0), (scaled, factor)):
        leaves, leaf = SpinLeaves(one, Limits()), Leaf(flat)
        leaf.add(leaves, times * leaf.diagonal())
        found.append(leaves.bound() / Fraction(times))
    assert found[0] == found[1]


def test_costs_of_very_different_sizes_are_exact():
    flat = random_flat(6)
    flat.unary[0][:] = 0.0, 2.0**90
    leaves, leaf = SpinLeaves(flat, Limits()), Leaf(flat, ((0, 0),))
    leaf.add(leaves, leaf.diagonal())
    other = Leaf(flat, ((0, 1),))
    other.add(leaves, other.diagonal())
    assert near(leaves.bound(), float(leaf.mean) + float(leaf.diagonal().sum()))
    assert leaves.bound() <= min(labellings(flat)[1])


@pytest.mark.parametrize("below", [0.5, 3.5, 4.5])
def test_bounds_are_raised_to_the_next_possible_cost_and_no_further(below):
    flat = random_flat(7, unit=2.0**-28)
    costs = labellings(flat)[1]
    step = math.gcd(*(int((cost - costs[0]) * 2**28) for cost in costs))
    coarse = Flat(
        [np.ldexp(one, 28) * 4 for one in flat.unary],
        [(scope, np.ldexp(table, 28) * 4) for scope, table in flat.factors],
        flat.constant,
    )
    leaf, leaves = Leaf(coarse), SpinLeaves(coarse, Limits())
    y = leaf.diagonal()
    total = Fraction(leaf.mean) + sum(map(Fraction, y.tolist()))
    zeros = labellings(coarse)[1][0]
    goal = zeros + (total - zeros) // (4 * step) * 4 * step  # a possible cost below the total
    y[0] -= float(total - goal) + below
    leaf.add(leaves, y)
    assert leaves.bound() == goal - 4 * step * (int(below) // (4 * step))


def test_without_any_difference_the_bound_is_the_cost():
    flat = Flat([np.full(2, 3.0)] * 2, [((0, 1), np.full((2, 2), 5.0))], Fraction(1, 3))
    leaves = SpinLeaves(flat, Limits())
    leaves.add(NONE, bits([-1.0, -1.0]), NONE, NONE)
    assert leaves.bound() == Fraction(34, 3)


def test_a_negative_eigenvalue_is_rejected_and_none_is_not():
    flat = random_flat(8)
    leaf = Leaf(flat)
    least = np.linalg.eigvalsh(leaf.form)[0]
    size = len(leaf.form)
    with pytest.raises(Rejected, match="negative eigenvalue"):
        leaf.add(SpinLeaves(flat, Limits()), np.full(size, least + 1e-6))
    leaves = SpinLeaves(flat, Limits())
    leaf.add(leaves, np.full(size, least - 1e-6))
    assert near(leaves.bound(), float(leaf.mean) + size * (least - 1e-6))
    assert leaves.bound() <= min(labellings(flat)[1])


def test_the_least_eigenvalue_is_certified_however_the_factor_was_rounded(monkeypatch):
    matrix = np.diag([1.0, 2.0, 3.0])
    assert 0.0 < spins._below_zero(matrix) < 1e-13
    exact = np.linalg.cholesky
    for error in (1e-3, -1e-3):
        monkeypatch.setattr(np.linalg, "cholesky", lambda m, e=error: exact(m) + e * np.tri(3))
        rest = matrix - (exact(matrix) + error * np.tri(3)) @ (exact(matrix) + error * np.tri(3)).T
        assert spins._below_zero(matrix) >= np.linalg.norm(rest)
    monkeypatch.setattr(np.linalg, "cholesky", lambda m: np.full((3, 3), np.nan))
    with pytest.raises(Rejected, match="not finite"):
        spins._below_zero(matrix)


def test_the_errors_of_a_factor_are_those_derived():
    matrix = np.array([[3.0, 1.0, 0.5], [1.0, -2.0, 0.0], [0.5, 0.0, 4.0]]) + 5 * np.eye(3)
    n, trace = 3, 20.0
    shift = 8 * spins.UNIT * (n + 2) * trace
    squares = np.square(np.linalg.cholesky(matrix)).sum()
    least = shift + 4 * spins.UNIT * (n + 2) * (squares + trace)
    rest = 1e-13  # of the remainder itself
    assert least * (1 - 1e-9) <= spins._below_zero(matrix) <= least + rest
    assert spins._below_zero(np.zeros((3, 3))) >= 2 * spins.TINY * (1 - 1e-9)


def test_the_size_of_a_matrix_is_that_of_its_largest_entry():
    for matrix in ([[0, -5], [-5, 3]], [[0, 5], [5, -3]]):
        assert spins._size(np.array(matrix), Fraction(1, 2)) == Fraction(5, 2)


def test_rounding_is_part_of_the_bound(monkeypatch):
    """Besides the errors of the factor, those of the sums in the matrix are subtracted."""
    monkeypatch.setattr(spins, "_below_zero", lambda matrix: 0.0)
    leaf = Leaf(random_flat(9))
    form, n = np.triu(leaf.form) + np.triu(leaf.form).T, len(leaf.form)
    y, g = -np.arange(10.0, 10.0 + n), np.array([3.0, 5.0])
    corners = np.array([[0, 1, 2, 0], [0, 1, 3, 1]])
    found = spins._certified(2 * form, Fraction(1, 2), y, (corners, g))
    sizes = np.abs(form).sum(axis=1) - y
    for corner, weight in zip(corners, g, strict=True):
        sizes[corner[:3]] += weight
    room = sum(map(Fraction, [*y.tolist(), *(-g).tolist()])) - found
    assert math.isclose(room, n * 2 * spins.UNIT * (8 + 2) * sizes.max(), rel_tol=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_triangles_change_the_entries_of_their_corners(seed):
    rng = np.random.default_rng(seed)
    flat = random_flat(seed)
    leaf, leaves = Leaf(flat), SpinLeaves(flat, Limits())
    size = len(leaf.form)
    every = list(itertools.combinations(range(size), 3))
    triangles = [(*every[k], int(rng.integers(4))) for k in rng.choice(len(every), 3, False)]
    weights = 4 * rng.random(3)
    matrix = leaf.changed(triangles, weights)
    least = np.linalg.eigvalsh(matrix)[0]
    with pytest.raises(Rejected, match="negative eigenvalue"):
        leaf.add(leaves, np.full(size, least + 1e-6), triangles, weights)
    leaf.add(leaves, np.full(size, least - 1e-6), triangles, weights)
    assert near(leaves.bound(), float(leaf.mean) + size * (least - 1e-6) - weights.sum())


def test_a_field_of_one_spin_is_not_forgotten():
    flat = random_flat(3, field=False)
    flat.unary[1][0] += 3.0
    leaf, leaves = Leaf(flat), SpinLeaves(flat, Limits())
    leaf.add(leaves, leaf.diagonal())
    assert near(leaves.bound(), float(leaf.mean) + float(leaf.diagonal().sum()))


def test_one_variable_without_a_choice():
    leaves = SpinLeaves(Flat([np.full(2, 3.0)], [], Fraction(1)), Limits())
    leaves.add(NONE, bits([-1.0]), NONE, NONE)
    assert leaves.bound() == 4


def test_sums_beyond_64_bits_are_exact():
    flat = random_flat(1, n=5, unit=2.0**28)
    leaf, leaves = Leaf(flat), SpinLeaves(flat, Limits())
    leaf.add(leaves, leaf.diagonal() * (1 + 1e-12))
    assert near(leaves.bound(), float(leaf.mean) + float(leaf.diagonal().sum()))


def test_sums_of_equal_signs_beyond_64_bits_are_exact():
    flat = Flat([np.array([2.0**58, -(2.0**58)])] * 10, [], Fraction(0))
    leaf, leaves = Leaf(flat), SpinLeaves(flat, Limits())
    leaf.add(leaves, leaf.diagonal() * (1 + 1e-12))
    assert near(leaves.bound(), float(leaf.diagonal().sum()))
    assert leaves.bound() <= -10 * 2**58


class Spent(Limits):
    """Remembers what was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[list[int], int, int]] = []

    def spend(self, shape: list[int], tables: int, copies: int = COPIES) -> None:
        self.asked.append((shape, tables, copies))


def test_the_effort_is_that_of_dense_matrices():
    effort = Spent()
    leaves = SpinLeaves(Flat([np.zeros(2)] * 64, [], Fraction(0)), effort)
    leaves.add(NONE, bits(np.full(64, -1.0)), NONE, NONE)
    assert effort.asked == [([65, 65], 4, MATRICES), ([64, 64], 5, MATRICES)]
    kept = 8 * 65**2 + CALL
    assert effort.spent[1] * MEMORY.constant == pytest.approx(kept, rel=1e-6)


def test_costs_beyond_64_bits_take_more_memory():
    """They are objects: 40 bytes and more, where others take eight."""
    effort, huge = Limits(), [np.array([0.0, 2.0**70 + k * 2.0**20]) for k in range(64)]
    SpinLeaves(Flat([*huge, np.array([0.0, 1.0])], [], Fraction(0)), effort)
    assert effort.spent[1] * MEMORY.constant >= 40 * 66**2


def test_models_that_are_none_of_spins_are_rejected():
    flat = random_flat(1)
    three = [np.zeros(3), *flat.unary[1:]]
    wrong = {
        "needs two labels": [
            Flat(three, flat.factors, flat.constant),
            Flat(flat.unary, [*flat.factors, ((0, 0), np.zeros((2, 2)))], flat.constant),
            Flat(flat.unary, [((0, 1, 2), np.zeros((2, 2, 2)))], flat.constant),
            Flat(flat.unary, [((0,), np.zeros(2))], flat.constant),
        ],
        "hard constraints": [
            Flat(flat.unary, [((0, 1), np.array([[0, math.inf], [0, 0]]))], flat.constant),
            Flat([np.array([0.0, math.inf]), *flat.unary[1:]], flat.factors, flat.constant),
        ],
    }
    for message, models in wrong.items():
        for model in models:
            with pytest.raises(Rejected, match=message):
                SpinLeaves(model, Limits())
    with pytest.raises(Refused):
        SpinLeaves(flat, Limits(1e-7))


def test_leaves_that_are_none_are_rejected():
    flat = random_flat(2)
    leaf = Leaf(flat)
    y, size = leaf.diagonal(), len(leaf.form)
    good = [0, 1, 2, 0]
    wrong = [
        ([], y[:-1], [], []), ([], [*y, -1.0], [], []), ([], [*y[:-1], math.nan], [], []),
        ([], [*y[:-1], -math.inf], [], []), ([], y, [1, 0, 2, 0], [0.1]),
        ([], y, [0, 2, 1, 0], [0.1]), ([], y, [0, 0, 1, 0], [0.1]), ([], y, [0, 1, 1, 0], [0.1]),
        ([], y, [-1, 1, 2, 0], [0.1]), ([], y, [0, 1, size, 0], [0.1]),
        ([], y, [0, 1, 2, 4], [0.1]), ([], y, [0, 1, 2, -1], [0.1]), ([], y, good, []),
        ([], y, good, [-0.1]), ([], y, good, [math.nan]), ([], y, good, [math.inf]),
        ([], y, [*good, 2, 1, 3, 0], [0.0, 0.0]), ([], y, good, [0.1, 0.1]),
    ]  # fmt: skip
    for decisions, diagonal, triangles, weights in wrong:
        with pytest.raises(Rejected):
            SpinLeaves(flat, Limits()).add(
                np.array(decisions, np.int64), bits(diagonal), np.array(triangles, np.int64),
                bits(weights),
            )  # fmt: skip
    for decisions in ([0, 0, 0, 1], [4, 0], [-1, 0], [0, 2], [0, -1]):
        with pytest.raises(Rejected, match="decision"):
            SpinLeaves(flat, Limits()).add(np.array(decisions), bits(y[1:]), NONE, NONE)
    last = [0, size - 2, size - 1, 3]
    SpinLeaves(flat, Limits()).add(NONE, bits(y - 9), np.array(last), bits([0.0]))


def test_numbers_beyond_the_range_are_rejected():
    flat = random_flat(3)
    leaf = Leaf(flat)
    for power, accepted in ((899, True), (900, False), (950, False)):
        y = leaf.diagonal()
        y[0] = -(2.0**power)
        if accepted:
            leaf.add(SpinLeaves(flat, Limits()), y)
        else:
            with pytest.raises(Rejected, match="too large or too small"):
                leaf.add(SpinLeaves(flat, Limits()), y)
    cancelled = [(0, 1, 2, kind) for kind in range(4)] + [(0, 1, 3, 0)]
    with pytest.raises(Rejected, match="too large or too small"):
        leaf.add(SpinLeaves(flat, Limits()), leaf.diagonal(), cancelled, [2.0**950] * 4 + [0.0])


def test_tiny_costs_prove_nothing_false():
    factor, flat = 2.0**-950, random_flat(3)
    tiny = Flat(
        [factor * costs for costs in flat.unary],
        [(scope, factor * table) for scope, table in flat.factors],
        Fraction(0),
    )
    leaves, leaf = SpinLeaves(tiny, Limits()), Leaf(flat)
    leaf.add(leaves, factor * leaf.diagonal())
    assert leaves.bound() <= min(labellings(tiny)[1])


def test_leaves_have_to_cover_all_spins():
    flat = random_flat(4)

    def leaves_of(paths: list[tuple[tuple[int, int], ...]]) -> tuple[SpinLeaves, dict]:
        leaves, values = SpinLeaves(flat, Limits()), {}
        for path in paths:
            leaf = Leaf(flat, path)
            leaf.add(leaves, leaf.diagonal())
            values[path] = float(leaf.mean) + float(leaf.diagonal().sum())
        return leaves, values

    zero, one = ((0, 0),), ((0, 1),)
    deep = [(*one, (2, 0)), (*one, (2, 1))]
    leaves, values = leaves_of([zero, *deep])
    assert near(leaves.bound(), min(values.values()))
    leaves, values = leaves_of([zero, one, *deep])
    below = max(values[one], min(values[path] for path in deep))
    assert near(leaves.bound(), min(values[zero], below))
    leaves, values = leaves_of([(), zero, one])
    assert near(leaves.bound(), max(values[()], min(values[zero], values[one])))
    for some in ([], [zero], [one], [zero, deep[0]], [zero, deep[1]], [zero, ((1, 1),)]):
        with pytest.raises(Rejected, match="cover"):
            leaves_of(some)[0].bound()


def test_the_better_of_two_equal_leaves_counts():
    flat = random_flat(4)
    leaf = Leaf(flat)
    for shifts in ((0.0, 5.0), (5.0, 0.0)):
        leaves = SpinLeaves(flat, Limits())
        for shift in shifts:
            leaf.add(leaves, leaf.diagonal() - shift)
        assert near(leaves.bound(), float(leaf.mean) + float(leaf.diagonal().sum()))

"""Multipliers of assignment problems: runs, results and proof files against enumeration."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import combinations, permutations, product
from pathlib import Path

import numpy as np
import pytest

import softmap
from softmap import core
from softmap.drive.stored import load_result
from softmap.errors import FormatError, ProofWarning
from softmap.labels.permutations import Permutation, PermutationLog
from softmap.run.problem import Problem
from softmap.run.records import record
from softmap.run.trace import Status
from softmap.subsolvers.permutations.multipliers import AssignmentEvidence
from softmap.subsolvers.permutations.permute import PermutationNumbers
from softmap.tuning import Tuning
from softmap.verification import Verdict
from softmap.verification.assignment import (
    LARGEST,
    MOST_LABELS,
    _Grid,
    _pairs,
    _separated,
    assignment_bound,
    check_sizes,
)
from softmap.verification.integers import Flat, flat_model
from softmap.verification.limit import Limits
from softmap.verification.permutations import PermutationTree
from softmap.verification.proof import check_proof
from softmap.verification.records import Rejected
from support.permutations import least_cost, partial_factors, permutation_model, random_factors
from support.proof_files import packed, taken_apart, write_proof


@pytest.mark.filterwarnings("ignore::softmap.errors.ProofWarning")
@pytest.mark.parametrize("seed", range(12))
def test_runs_and_their_proofs_agree_with_enumeration(seed, tmp_path):
    n, d, factors = random_factors(np.random.default_rng(seed), 5)
    best = least_cost(n, d, factors)
    make = partial(permutation_model, n, d, factors, many=seed % 3 == 0)
    assert agree(make, best, seed, tmp_path / "run.proof")


def agree(make: Callable[[], softmap.Model], best: Fraction | None, seed: int, path: Path) -> bool:
    """Whether a run and its proof agree with the optimum of enumeration."""
    try:
        model = make()
        result = softmap.solve(model, threads=1, seed=seed, proof=path)
    except softmap.InfeasibleModel:
        return best is None
    assert best is not None
    assert Fraction(result.bound) <= best
    assert result.status is Status.OPTIMAL
    assert math.isclose(result.energy, float(best), rel_tol=1e-9, abs_tol=1e-9)
    reports = softmap.verify(result), softmap.verify(model, proof=path)
    return all(report.holds for report in reports)


@pytest.mark.filterwarnings("ignore::softmap.errors.ProofWarning")
@pytest.mark.parametrize("seed", range(12))
def test_partial_matchings_and_their_proofs_agree_with_enumeration(seed, tmp_path):
    n, d, factors = partial_factors(np.random.default_rng(seed), 5)
    label = seed % d
    best = least_cost(n, d, factors, label)
    make = partial(permutation_model, n, d, factors, shared=label)
    assert agree(make, best, seed, tmp_path / "run.proof")


def partial_bound(model: softmap.Model, label: int, rng: np.random.Generator | None) -> Fraction:
    """The bound that the checker accepts for multipliers, some of which are altered."""
    problem = Problem.of(model, threads=1)
    costs = Permutation.of(problem.model, [label])
    ascent, (n, d) = core.AssignmentAscent(costs.native, 0), costs.unary.shape
    found = ascent.run(20 * costs.pair.size)
    arrays = [np.empty(size, dtype=np.int64) for size in (n * d * n, n * d * d, d)]
    ascent.multipliers(*arrays)
    arrays[0] = (arrays[0].reshape(n, d, n) + costs.shift[:, None, :]).ravel()
    if rng is not None:
        part = arrays[rng.integers(3)]
        part[rng.integers(len(part))] += rng.choice([-1, 1]) << rng.integers(30)
    exponent = costs.exponent - problem.exponent
    value = assignment_bound(model.network, np.array([n, d, exponent]), *arrays)
    if rng is None:
        assert value >= (found + costs.base) * Fraction(2) ** exponent
    return value


def test_the_checker_gives_each_variable_its_own_copy_of_a_shared_label():
    rng, bounds = np.random.default_rng(5), []
    for _ in range(6):
        tables = [((i, j), 1.0 * rng.integers(-9, 9, (4, 4))) for i, j in combinations(range(5), 2)]
        model = permutation_model(5, 4, tables, shared=3)
        best = least_cost(5, 4, tables, 3)
        assert best is not None
        bounds.append((partial_bound(model, 3, None), best))
        for _ in range(20):
            with contextlib.suppress(Rejected):
                assert partial_bound(model, 3, rng) <= best
    assert all(bound <= best for bound, best in bounds)
    assert any(bound == best for bound, best in bounds)
    for d in (5, 8, 10):  # there have to be four labels and five copies
        with pytest.raises(Rejected, match="same label"):
            assignment_bound(model.network, *zeros(5, d))


def weak_problem() -> softmap.Model:
    """A quadratic assignment whose bound stays below the optimum."""
    rng = np.random.default_rng(11)
    flow, distance = rng.integers(0, 9, (2, 7, 7))
    tables = [((i, j), flow[i, j] * distance + flow[j, i] * distance.T * 1.0)
              for i in range(7) for j in range(i + 1, 7)]  # fmt: skip
    return permutation_model(7, 7, tables)


@pytest.fixture(scope="module")
def weak() -> softmap.Result:
    """The result of a search, with the bound of the multipliers that it started from."""
    result = softmap.solve(weak_problem(), threads=1)
    start = result.proof.start
    assert result.proof.kind == "search"
    assert start.value < result.energy
    return replace(result, bound=start.value, proof=start, status=Status.EXHAUSTED)


def test_a_bound_by_multipliers_is_checked_stored_and_written(weak, tmp_path):
    assert weak.proof.kind == "assignment"
    assert softmap.verify(weak)["bound"].verdict is Verdict.CHECKED
    above = replace(weak, bound=math.nextafter(weak.bound, math.inf))
    assert softmap.verify(above)["bound"].verdict is Verdict.FALSE
    for bound in (math.inf, math.nan):
        assert softmap.verify(replace(weak, bound=bound))["bound"].verdict is Verdict.FALSE
    none = replace(weak, proof=AssignmentEvidence())
    assert softmap.verify(none)["bound"].verdict is Verdict.FALSE
    weak.save(tmp_path / "result.npz")
    loaded = load_result(tmp_path / "result.npz", weak.model)
    assert softmap.verify(loaded)["bound"].verdict is Verdict.CHECKED
    assert loaded.proof.value == weak.proof.value


def given_arrays(result: softmap.Result) -> list[np.ndarray]:
    given = result.proof.multipliers
    shape = np.array([*given.columns.shape[:2], given.exponent])
    return [shape, given.rows.ravel(), given.columns.ravel(), given.labels]


def test_altered_multipliers_prove_nothing_above_the_optimum(weak):
    arrays = given_arrays(weak)
    best = weak.energy  # a search has proved it
    rng, rejected = np.random.default_rng(1), 0
    for _ in range(60):
        altered = [array.copy() for array in arrays]
        which = altered[int(rng.integers(1, 4))]
        which[rng.integers(len(which))] += int(rng.integers(-3, 4)) << int(rng.integers(0, 50))
        try:
            assert assignment_bound(weak.model.network, *altered) <= best
        except Rejected:
            rejected += 1
    assert 0 < rejected < 60


def test_the_checker_names_what_is_wrong(weak):
    shape, rows, columns, labels = given_arrays(weak)
    large = np.full_like(rows, 1 << 60)
    wrong = {
        "of a permutation": (np.add(shape, [1, 0, 0]), rows, columns, labels),
        "multiplier for each": (shape, rows[1:], columns, labels),
        "too large": (shape, large, columns, labels),
        "exceed their costs": (shape, rows + (1 << 40), columns, labels),
    }
    for message, arrays in wrong.items():
        with pytest.raises(Rejected, match=message):
            assignment_bound(weak.model.network, *arrays)
    free = softmap.Model.from_factors([7] * 7, [((0, 1), np.zeros((7, 7)))])
    with pytest.raises(Rejected, match="same label"):
        assignment_bound(free.network, shape, 0 * rows, 0 * columns, labels)


def test_unused_labels_have_multipliers_of_at_most_zero():
    n, d, factors = 3, 4, [((i, j), np.ones((4, 4))) for i in range(3) for j in range(i + 1, 3)]
    model = permutation_model(n, d, factors)
    none = np.array([n, d, 0]), np.zeros(n * d * n, int), np.zeros(n * d * d, int)
    assert assignment_bound(model.network, *none, np.zeros(d, int)) == 3
    with pytest.raises(Rejected, match="positive"):
        assignment_bound(model.network, *none, np.ones(d, int))


def test_a_search_is_checked_by_its_file_and_stated_if_the_proof_is_too_large(weak, tmp_path):
    path = tmp_path / "run.proof"
    result = softmap.solve(weak.model, threads=1, proof=path)
    assert result.status is Status.OPTIMAL
    assert result.proof.kind == "search"
    assert softmap.verify(result, proof=path).verdict is Verdict.CHECKED
    short = Tuning(PermutationNumbers(logged=1_000))
    with pytest.warns(ProofWarning, match="stated only"):
        softmap.solve(weak.model, threads=1, proof=path, tuning=short)
    checked = check_proof(path, weak.model)
    assert Fraction(weak.bound) <= checked.bound < result.energy


# --- every condition of the checker, on small models ----------------------------------------------


def small_flat(rng: np.random.Generator, n: int, d: int) -> softmap.Model:
    """A model whose labels all differ: whole costs in both directions of pairs, a constant."""
    sizes = [d - int(rng.random() < 0.3) for _ in range(n)]
    unary = [np.where(rng.random(k) < 0.1, np.inf, 1.0 * rng.integers(-5, 6, k)) for k in sizes]
    edges = [p if rng.random() < 0.5 else p[::-1] for p in combinations(range(n), 2)]
    tables = [rng.integers(-5, 6, (sizes[i], sizes[j])) + apart(sizes[i], sizes[j])
              for i, j in edges]  # fmt: skip
    for table in tables:
        table[rng.random(table.shape) < 0.1] = np.inf
    return softmap.Model(
        unary, edges, softmap.SharedTables(tables, np.arange(len(edges))), constant=0.25
    )


def apart(rows: int, columns: int) -> np.ndarray:
    return np.where(np.eye(rows, columns, dtype=bool), np.inf, 0.0)


def expected(model: softmap.Model, d: int, row, column, labels) -> Fraction | None:
    """The bound of multipliers, raised to a possible sum, by loops; None if they prove none."""
    n, flat = model.network.num_visible, flat_model(model.network)
    costs = [[x for x in own if math.isfinite(x)] for own in flat.unary]
    tables = dict(flat.factors)
    for i, j in combinations(range(n), 2):
        own: list[float] = []
        for p, q in product(range(len(flat.unary[i])), range(len(flat.unary[j]))):
            cost = tables[i, j][p, q] if (i, j) in tables else tables[j, i][q, p]
            possible = np.isfinite([cost, flat.unary[i][p], flat.unary[j][q]]).all()
            paid = row[i, p, j] + column[i, p, q] + row[j, q, i] + column[j, q, p]
            if possible and p != q:
                own.append(cost)
                if cost < paid:
                    return None
        costs.append(own)
    total = flat.constant + int(labels.sum())
    for i in range(n):
        if not np.isfinite(flat.unary[i]).any():
            return None
        total += min(
            Fraction(float(cost)) - int(labels[p])
            + sum(int(row[i, p, j]) for j in range(n) if j != i)
            + sum(int(column[i, p, q]) for q in range(d) if q != p)
            for p, cost in enumerate(flat.unary[i]) if math.isfinite(cost)
        )  # fmt: skip
    first = flat.constant + sum(int(min(own)) for own in costs if own)
    step = math.gcd(*(int(x - own[0]) for own in costs for x in own))
    if not step:
        return max(total, first)
    return first + math.ceil((total - first) / step) * step


@pytest.mark.parametrize("seed", range(40))
def test_bounds_are_those_of_loops(seed):
    rng = np.random.default_rng(seed)
    n, d = (3, 3) if seed % 2 else (3, 4)
    model = small_flat(rng, n, d)
    low = -6 if seed % 4 < 2 else -2
    high = 1 if n < d else 2
    row = rng.integers(low, 2, (n, d, n))
    column, labels = rng.integers(low, high, (n, d, d)), rng.integers(-3, high, d)
    arrays = (np.array([n, d, 0]), row.ravel(), column.ravel(), labels)
    wanted = expected(model, d, row, column, labels)
    if wanted is None:
        with pytest.raises(Rejected, match=r"exceed their costs|no label"):
            assignment_bound(model.network, *arrays)
        return
    found = assignment_bound(model.network, *arrays)
    assert found == wanted
    best = [model.energy(x) for x in permutations(range(d), n)
            if all(x[i] < model.num_labels[i] for i in range(n))]  # fmt: skip
    assert found <= min(best, default=math.inf)


def plain(n: int = 2, d: int = 2, **options) -> softmap.Model:
    """All labels differ; no other cost unless it is given."""
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    tables = softmap.SharedTables([apart(d, d)], [0] * len(pairs))
    return softmap.Model(options.pop("unary", np.zeros((n, d))), pairs, tables, **options)


def zeros(n: int = 2, d: int = 2, exponent: int = 0) -> list[np.ndarray]:
    return [np.array([n, d, exponent]), *(np.zeros(k, int) for k in (n * d * n, n * d * d, d))]


def test_a_shared_label_becomes_one_of_each_variable():
    """Variable 1 of two has label 4 of five in place of the shared one."""
    costs = np.array([1.0, 2.0, 3.0])
    assert _separated(costs, 1, 1, 2, 5).tolist() == [1.0, math.inf, 3.0, math.inf, 2.0]
    assert _separated(costs, 3, 1, 2, 5).tolist() == [1.0, 2.0, 3.0, math.inf, math.inf]


def test_at_most_one_label_is_shared_by_constraints_that_say_so():
    table = np.array([[0.0, 0.0, 0.0], [0.0, math.inf, 0.0]])
    one = softmap.Model([np.zeros(2), np.zeros(3)], [[0, 1]], softmap.SharedTables([table], [0]))
    assert assignment_bound(one.network, *zeros(2, 5)) == 0  # n labels more than any variable has
    two = np.where(np.arange(9).reshape(3, 3) == 0, math.inf, 0.0)  # labels 1 and 2 are shared
    several = softmap.Model(np.zeros((2, 3)), [[0, 1]], softmap.SharedTables([two], [0]))
    rows = [np.arange(7)] * 7
    other = softmap.Model.from_factors([7] * 7, [softmap.Linear(range(7), rows, low=3, high=20)])
    assert len(other.network.required) == 1
    for model, n, d in ((several, 2, 5), (other, 7, 7)):
        with pytest.raises(Rejected, match="same label"):
            assignment_bound(model.network, *zeros(n, d))


def test_every_array_has_its_length_and_the_shape_three_numbers():
    for which, longer in product((1, 2, 3), (True, False)):
        arrays = zeros()
        arrays[which] = np.zeros(len(arrays[which]) + (1 if longer else -1), int)
        with pytest.raises(Rejected, match="one multiplier for each"):
            assignment_bound(plain().network, *arrays)
    for shape in ([2, 2], [2, 2, 0, 0], []):
        with pytest.raises(Rejected, match="numbers of variables"):
            assignment_bound(plain().network, np.array(shape), *zeros()[1:])


def test_sizes_are_those_of_the_model_and_within_limits():
    assert assignment_bound(plain(constant=3.0).network, *zeros()) == 3
    assert assignment_bound(plain().network, *zeros(exponent=5000)) == 0
    assert assignment_bound(plain().network, *zeros(exponent=-5000)) == 0
    for n, d, exponent in (
        (2, 2, 5001),
        (2, 2, -5001),
        (1, 2, 0),
        (3, 3, 0),
        (2, 1, 0),
        (-2, 2, 0),
    ):
        arrays = [np.array([n, d, exponent]), *(np.zeros(max(k, 0), int)
                  for k in (n * d * n, n * d * d, d))]  # fmt: skip
        with pytest.raises(Rejected, match="numbers of variables"):
            assignment_bound(plain().network, *arrays)
    with pytest.raises(Rejected, match="more labels"):
        assignment_bound(plain(2, 3).network, *zeros())
    ragged = softmap.Model(
        [np.zeros(2), np.zeros(3)], [[0, 1]], softmap.SharedTables([apart(2, 3)], [0])
    )
    with pytest.raises(Rejected, match="more labels"):
        assignment_bound(ragged.network, *zeros())
    assert assignment_bound(ragged.network, *zeros(2, 3)) == 0
    assert assignment_bound(plain().network, *zeros(2, MOST_LABELS)) == 0
    with pytest.raises(Rejected, match="numbers of variables"):
        assignment_bound(plain().network, *zeros(2, MOST_LABELS + 1))


@pytest.mark.parametrize("which", [1, 2, 3])
def test_multipliers_have_a_largest_size(which):
    arrays = zeros()
    arrays[which][0] = -LARGEST
    assert assignment_bound(plain().network, *arrays) <= 0
    arrays[which][0] = LARGEST
    check_sizes(2, 2, *arrays[1:])
    for beyond in (-LARGEST - 1, LARGEST + 1, -(1 << 63)):  # the last has no absolute value
        arrays[which][0] = beyond
        with pytest.raises(Rejected, match="too large"):
            assignment_bound(plain().network, *arrays)


@pytest.mark.parametrize("which", [2, 3])
def test_one_positive_multiplier_of_an_unused_label_is_enough_to_reject(which):
    arrays = zeros(2, 3)
    arrays[which][1] = 1
    with pytest.raises(Rejected, match="positive"):
        assignment_bound(plain(2, 3).network, *arrays)
    arrays = zeros(2, 2)  # all labels are used
    arrays[which][1] = 1
    if which == 3:
        assert assignment_bound(plain().network, *arrays) == 0


def flat_of(factors, unary=None) -> Flat:
    return Flat(unary or [np.zeros(2)] * 3, factors, Fraction(0))


def test_tables_of_pairs_have_one_direction_and_one_place():
    table = np.array([[1.0, 2.0], [3.0, 4.0]])
    pairs = _pairs(flat_of([((1, 0), table)]), 3)
    assert np.array_equal(pairs[0, 1], table.T)
    assert np.array_equal(_pairs(flat_of([((0, 1), table)]), 3)[0, 1], table)
    assert np.array_equal(pairs[1, 2], np.zeros((2, 2)))
    with pytest.raises(Rejected, match="more than one table"):
        _pairs(flat_of([((0, 1), table), ((1, 0), table)]), 3)
    closed = [np.array([0.0, np.inf]), np.zeros(2), np.zeros(2)]
    found = _pairs(flat_of([((0, 1), table)], closed), 3)[0, 1]
    assert np.array_equal(found, [[1.0, 2.0], [np.inf, np.inf]])


def test_what_is_left_out_costs_at_least_nothing():
    negative, free = np.array([[0.0, 0.0], [0.0, -1.0]]), np.zeros(2)
    assert (1, 2) not in _pairs(flat_of([((1, 2), -negative)]), 2)
    three = np.zeros((2, 2, 2))
    three[0, 1, 0] = -1.0
    for scope, table in (((1, 2), negative), ((0, 2), negative), ((0, 1, 2), three)):
        with pytest.raises(Rejected, match="negative costs"):
            _pairs(flat_of([(scope, table)]), 2)
    _pairs(flat_of([((0, 1, 2), -three)]), 2)
    with pytest.raises(Rejected, match="outside of the permutation has negative costs"):
        _pairs(flat_of([], [free, free, np.array([0.0, -1.0])]), 2)
    _pairs(flat_of([], [free, np.array([0.0, -1.0]), free]), 2)


def test_a_variable_without_a_label_is_rejected():
    with pytest.raises(Rejected, match="no label"):
        assignment_bound(plain(unary=np.array([[0.0, 0.0], [np.inf, np.inf]])).network, *zeros())


def test_labels_differ_by_a_constraint_over_all_variables_or_in_every_pair():
    none = softmap.SharedTables([np.zeros((3, 3))], [0])
    for members, ok in (([0, 1, 2], True), ([0, 1], False)):
        model = softmap.Model.from_factors([3] * 3, [softmap.AllDifferent(members)])
        if ok:
            assert assignment_bound(model.network, *zeros(3, 3)) == 0
        else:
            with pytest.raises(Rejected, match="same label"):
                assignment_bound(model.network, *zeros(3, 3))
    other = softmap.Cardinality(range(3), [0] * 3, [0.0, 0.0, 0.0, np.inf])
    with pytest.raises(Rejected, match="same label"):
        assignment_bound(softmap.Model.from_factors([3] * 3, [other]).network, *zeros(3, 3))
    half = apart(3, 3)
    half[1, 1] = 0.0
    for tables in (none, softmap.SharedTables([half], [0])):
        with pytest.raises(Rejected, match="same label"):
            assignment_bound(
                softmap.Model(np.zeros((2, 3)), [[0, 1]], tables).network, *zeros(2, 3)
            )


@pytest.mark.parametrize(
    ("tables", "total", "raised"),
    [
        ([[0.0, 6.0], [1.0, 5.0]], 2, 3),  # 1, 5, 7, 11: steps of 2
        ([[0.0, 6.0], [1.0, 5.0]], 1, 1),
        ([[0.0, 6.0], [1.0, 5.0]], -2, -1),
        ([[0.0, 6.0, np.inf], [1.0, np.inf, 4.0]], 2, 4),
        ([[2.0, 2.0], [3.0]], 1, 5),  # one sum only
        ([[2.0, 2.0], [3.0]], 7, 7),
        ([[0.5, 6.0], [1.0, 5.0]], 2, 2),  # not whole: nothing is raised
        ([[0.0, 6.0], [1.5, 5.0]], 2, 2),
    ],
)
def test_sums_are_raised_to_possible_ones(tables, total, raised):
    grid = _Grid(0)
    for table in tables:
        assert grid.units(np.array(table)).tolist() == [
            math.floor(cost) if math.isfinite(cost) else 0 for cost in table
        ]
    assert grid.raised(total) == raised


def test_costs_fit_the_unit():
    assert _Grid(3).units(np.array([8.0, -8.0, np.inf])).tolist() == [1, -1, 0]
    assert _Grid(-3).units(np.array([1.0])).tolist() == [8]
    assert _Grid(3).units(np.array([-1.0])).tolist() == [-1]
    assert _Grid(0).units(np.array([float(LARGEST), -float(LARGEST)])).tolist() == [
        LARGEST,
        -LARGEST,
    ]
    assert _Grid(0).units(np.array([np.inf])).tolist() == [0]
    for exponent, costs in ((0, [1.0, LARGEST + 1.0]), (0, [-LARGEST - 1.0]), (2000, [0.0, 1.0]),
                            (-2000, [1.0, 0.0])):  # fmt: skip
        with pytest.raises(Rejected, match="multiple of the unit"):
            _Grid(exponent).units(np.array(costs))


def test_pairs_pay_for_both_variables():
    model = plain(3, 3, unary=np.arange(9.0).reshape(3, 3))
    arrays = zeros(3, 3)
    for which, at in ((1, 1), (2, 1), (1, 9), (2, 10)):  # of variable 0 and of 1
        arrays[which][:] = 0
        arrays[which][at] = 1
        with pytest.raises(Rejected, match="exceed their costs"):
            assignment_bound(model.network, *arrays)
        arrays[which][at] = 0


@pytest.fixture(scope="module")
def trees(tmp_path_factory) -> list[tuple[softmap.Model, Path, Fraction]]:
    """Models with symmetric labels or more labels than variables, their proofs, and optima."""
    folder, found = tmp_path_factory.mktemp("trees"), []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        n, d = 6, 6 + seed % 4 // 3
        near = rng.integers(0, 9, (d, d)) * 1.0
        near += near[::-1, ::-1]  # the labels may be reversed
        flow = rng.integers(0, 6, (n, n))
        factors = [((i, j), flow[i, j] * near) for i in range(n) for j in range(i + 1, n)]
        model, path = permutation_model(n, d, factors), folder / f"{seed}.proof"
        problem = Problem.of(model)
        costs = Permutation.of(problem.model)
        ascent = core.AssignmentAscent(costs.native, seed)
        ascent.run(1_000)
        maps, best = costs.symmetry().maps, least_cost(n, d, factors)
        most = (1 << 40) - 1
        search = core.AssignmentSearch(
            ascent, False, maps, np.arange(n), most, costs.step, costs.barrier, seed, 1 << 20
        )
        assert search.run(1 << 60, None)
        log = PermutationLog(costs, search, maps)
        arrays = log.records(problem.exponent)
        body = b"".join(part for own in arrays for part in record(23, *own))
        write_proof(path, model, body)
        found.append((model, path, best))
    return found


def test_trees_prove_the_optimum_of_enumeration(trees):
    sizes = []
    for model, path, best in trees:
        checked = check_proof(path, model)
        assert checked.bound == best
        sizes.append(checked.records)
    assert max(sizes) > 10


def test_altered_trees_prove_nothing_above_the_optimum(trees, tmp_path):
    rng, path, rejected, weaker = np.random.default_rng(0), tmp_path / "altered.proof", 0, 0
    for _ in range(150):
        model, given, best = trees[int(rng.integers(len(trees)))]
        _, records = taken_apart(given)
        k = int(rng.integers(len(records)))
        array = records[k][1][int(rng.integers(4))]
        if rng.random() < 0.2:
            del records[k]
        elif array:
            array[int(rng.integers(len(array)))] += int(rng.integers(-3, 4)) << int(
                rng.integers(30)
            )
        write_proof(path, model, packed(records))
        try:
            bound = check_proof(path, model).bound
        except FormatError:
            rejected += 1
            continue
        assert bound <= best
        weaker += bound < best
    assert rejected > 10
    assert weaker > 0


def test_a_symmetry_that_changes_a_cost_is_rejected(weak):
    shape, *multipliers = given_arrays(weak)
    swapped = [1, 0, 2, 3, 4, 5, 6]
    with pytest.raises(Rejected, match="changes a cost"):
        PermutationTree(weak.model.network, Limits(), np.array([*shape, 0, *swapped]))
    with pytest.raises(Rejected, match="no permutation"):
        PermutationTree(weak.model.network, Limits(), np.array([*shape, 0, *[0] * 7]))
    assert len(multipliers) == 3

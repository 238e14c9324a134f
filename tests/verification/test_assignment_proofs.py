"""Multipliers of assignment problems: runs, results and proof files against enumeration."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import softmap
from softmap import core
from softmap.errors import FormatError, ProofWarning
from softmap.labels.permutations import Permutation, PermutationLog
from softmap.solving.problem import Problem
from softmap.solving.proof import Proof, ProofKind
from softmap.solving.prooffile import _arrays
from softmap.solving.result import load_result
from softmap.solving.trace import Status
from softmap.solving.tuning import TUNING
from softmap.verification import Verdict
from softmap.verification.assignment import assignment_bound
from softmap.verification.limit import TableLimit
from softmap.verification.permutations import PermutationTree
from softmap.verification.proof import check_proof
from softmap.verification.records import Rejected
from support.permutations import least_cost, permutation_model, random_factors
from support.proof_files import packed, taken_apart, write_proof


@pytest.mark.filterwarnings("ignore::softmap.errors.ProofWarning")
@pytest.mark.parametrize("seed", range(12))
def test_runs_and_their_proofs_agree_with_enumeration(seed, tmp_path):
    n, d, factors = random_factors(np.random.default_rng(seed), 5)
    best = least_cost(n, d, factors)
    path = tmp_path / "run.proof"
    try:
        model = permutation_model(n, d, factors, many=seed % 3 == 0)
        result = softmap.solve(model, threads=1, seed=seed, proof=path)
    except softmap.InfeasibleModel:
        assert best is None
        return
    assert best is not None
    assert Fraction(result.bound) <= best
    assert result.status is Status.OPTIMAL
    assert math.isclose(result.energy, float(best), rel_tol=1e-9, abs_tol=1e-9)
    assert softmap.verify(result).verdict is not Verdict.FALSE
    assert softmap.verify(model, proof=path).verdict is not Verdict.FALSE


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
    given = result.proof.multipliers
    assert result.proof.kind is ProofKind.SEARCH
    assert given.bound < result.energy
    proof = Proof(ProofKind.ASSIGNMENT, multipliers=given)
    return replace(result, bound=given.bound, proof=proof, status=Status.EXHAUSTED)


def test_a_bound_by_multipliers_is_checked_stored_and_written(weak, tmp_path):
    assert weak.proof.kind is ProofKind.ASSIGNMENT
    assert softmap.verify(weak)["bound"].verdict is Verdict.CHECKED
    above = replace(weak, bound=math.nextafter(weak.bound, math.inf))
    assert softmap.verify(above)["bound"].verdict is Verdict.FALSE
    none = replace(weak, proof=Proof(ProofKind.ASSIGNMENT))
    assert softmap.verify(none)["bound"].verdict is Verdict.FALSE
    weak.save(tmp_path / "result.npz")
    loaded = load_result(tmp_path / "result.npz", weak.model)
    assert softmap.verify(loaded)["bound"].verdict is Verdict.CHECKED
    assert loaded.proof.multipliers.bound == weak.proof.multipliers.bound


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
            assert assignment_bound(weak.model, *altered) <= best
        except Rejected:
            rejected += 1
    assert 0 < rejected < 60


def test_the_checker_names_what_is_wrong(weak):
    shape, rows, columns, labels = given_arrays(weak)
    large = np.full_like(rows, 1 << 60)
    wrong = {
        "sizes": (np.add(shape, [1, 0, 0]), rows, columns, labels),
        "multiplier for each": (shape, rows[1:], columns, labels),
        "too large": (shape, large, columns, labels),
        "exceed their costs": (shape, rows + (1 << 40), columns, labels),
    }
    for message, arrays in wrong.items():
        with pytest.raises(Rejected, match=message):
            assignment_bound(weak.model, *arrays)
    free = softmap.Model.from_factors([7] * 7, [((0, 1), np.zeros((7, 7)))])
    with pytest.raises(Rejected, match="same label"):
        assignment_bound(free, shape, 0 * rows, 0 * columns, labels)


def test_unused_labels_have_multipliers_of_at_most_zero():
    n, d, factors = 3, 4, [((i, j), np.ones((4, 4))) for i in range(3) for j in range(i + 1, 3)]
    model = permutation_model(n, d, factors)
    none = np.array([n, d, 0]), np.zeros(n * d * n, int), np.zeros(n * d * d, int)
    assert assignment_bound(model, *none, np.zeros(d, int)) == 3
    with pytest.raises(Rejected, match="positive"):
        assignment_bound(model, *none, np.ones(d, int))


def test_a_search_is_checked_by_its_file_and_stated_if_the_proof_is_too_large(weak, tmp_path):
    path = tmp_path / "run.proof"
    result = softmap.solve(weak.model, threads=1, proof=path)
    assert result.status is Status.OPTIMAL
    assert result.proof.kind is ProofKind.SEARCH
    assert softmap.verify(result, proof=path).verdict is Verdict.CHECKED
    short = replace(TUNING, permuted_logged=1_000)
    with pytest.warns(ProofWarning, match="stated only"):
        softmap.solve(weak.model, threads=1, proof=path, tuning=short)
    checked = check_proof(path, weak.model)
    assert Fraction(weak.bound) <= checked.bound < result.energy


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
        body = b"".join(part for own in arrays for part in (bytes([23]), *_arrays(*own)))
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
        PermutationTree(weak.model, TableLimit(), np.array([*shape, 0, *swapped]))
    with pytest.raises(Rejected, match="no permutation"):
        PermutationTree(weak.model, TableLimit(), np.array([*shape, 0, *[0] * 7]))
    assert len(multipliers) == 3

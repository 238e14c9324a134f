"""Proofs by cores: records of random models against enumeration, and altered ones."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import softmap
from softmap.errors import FormatError
from softmap.model import Model
from softmap.run.problem import Problem
from softmap.run.records import record
from softmap.subsolvers.cores.core_guided import CoreGuided
from softmap.subsolvers.cores.cores import CoreRecords
from softmap.verification.hints import Constraints, LiteralSum
from softmap.verification.proof import check_proof
from softmap.verification.records import Rejected
from support.logical import exact_least_cost, logical_model
from support.proof_files import packed, taken_apart, write_proof
from support.strategies import seeds


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cores")


def written(problem, folder, conflicts, told=math.inf):
    """The search after its end, and its proof file."""
    search = CoreGuided(problem.model, problem.given, 1 << 20)
    while not search.done:
        search.run(energy=told, conflicts=conflicts)
    steps, path = folder / "steps", folder / "run.proof"
    body = b"".join(CoreRecords(search).records(problem, lambda: steps))
    write_proof(path, problem.given, body, problem.exponent)
    return search, path


def random_problem(seed):
    """A random problem, and its optimum in exact arithmetic; None if there is no labelling."""
    try:
        problem = Problem.of(logical_model(np.random.default_rng(seed)))
    except softmap.InfeasibleModel:
        return None
    least = exact_least_cost(problem.given)
    return None if least is None else (problem, least)


@example(79949, 1, False)  # a group of literals that count others
@given(seeds, st.sampled_from([1, 3, 1 << 40]), st.booleans())
def test_proofs_are_accepted_and_prove_the_bound_of_the_search(folder, seed, conflicts, told):
    if (drawn := random_problem(seed)) is None:
        return
    problem, optimum = drawn
    known = problem.cost(float(optimum) + 1.0) if told else math.inf
    search, path = written(problem, folder, conflicts, known)
    found = check_proof(path, problem.given)
    assert Fraction(problem.bound_back(search.bound)) <= found.bound <= optimum


@settings(max_examples=30)
@given(seeds, st.integers(0, 1 << 30))
def test_altered_proofs_prove_nothing_above_the_optimum(folder, seed, change):
    if (drawn := random_problem(seed)) is None:
        return
    problem, optimum = drawn
    _, path = written(problem, folder, 1 << 40)
    header, records = taken_apart(path)
    rng = np.random.default_rng(change)
    for _ in range(3):
        altered = [(name, [list(array) for array in arrays]) for name, arrays in records]
        k = int(rng.integers(len(altered)))
        filled = [array for array in altered[k][1] if array]
        if rng.random() < 0.2 or not filled:
            del altered[k]
        else:
            array = filled[int(rng.integers(len(filled)))]
            array[int(rng.integers(len(array)))] += int(rng.choice([-2, -1, 1, 2, 7]))
        write_proof(path, problem.given, packed(altered), header["exponent"])
        try:
            assert check_proof(path, problem.given).bound <= optimum
        except FormatError:
            continue


def test_no_labelling_is_a_conclusion_of_its_own(folder):
    sums = [  # no sum of even weights is odd
        softmap.Linear([0, 1, 2, 3], [2, 2, 2, 2], low=3, high=3)
    ]
    model = Model.from_factors([2] * 4, [((0,), [0.0, 0.0]), *sums])
    problem = Problem.plain(model.network)
    search, path = written(problem, folder, 1 << 40)
    assert math.isinf(search.bound)
    with pytest.raises(FormatError, match="no labelling"):
        check_proof(path, model.network)
    body = b"".join(CoreRecords(search).records(problem, lambda: folder / "steps"))
    end = b"".join(record(20, [2], []))
    write_proof(path, model, bytes([21]) + body + end)
    assert check_proof(path, model.network).conclusion is not None


@given(st.lists(st.tuples(st.integers(-5, 5).filter(bool), st.integers(-4, 4)), max_size=8),
       st.integers(-6, 6))  # fmt: skip
def test_sums_in_normal_form_hold_for_the_same_values(terms, bound):
    found = LiteralSum(terms, bound)
    assert all(w > 0 for w in found.weights.values())
    assert len({abs(x) for x in found.weights}) == len(found.weights)
    for values in itertools.product([False, True], repeat=5):
        total = sum(w for x, w in terms if values[abs(x) - 1] == (x > 0))
        own = sum(w for x, w in found.weights.items() if values[abs(x) - 1] == (x > 0))
        assert (total >= bound) == (own >= found.bound)


@given(seeds)
def test_whatever_hints_say_no_clause_is_learned_that_does_not_follow(seed):
    rng = np.random.default_rng(seed)
    rules, kept = Constraints(), []
    for _ in range(6):
        lits = (rng.permutation(4)[:3] + 1) * rng.choice([-1, 1], 3)
        weights = rng.integers(1, 4, 3).tolist()
        kept.append(LiteralSum(zip(lits.tolist(), weights, strict=True), int(rng.integers(1, 4))))
        rules.add(kept[-1] if rng.random() < 0.5 else tuple(lits.tolist()))
        if isinstance(rules._at(len(kept) - 1), tuple):
            kept[-1] = LiteralSum([(int(x), 1) for x in lits], 1)
    values = itertools.product([False, True], repeat=4)
    every = [own for own in values if all(_holds(one, own) for one in kept)]
    for _ in range(12):
        size = int(rng.integers(0, 4))
        clause = tuple(((rng.permutation(4)[:size] + 1) * rng.choice([-1, 1], size)).tolist())
        hints = tuple(rng.integers(-4, 7, 6).tolist())
        try:
            rules.learn(clause, hints)
        except (Rejected, ValueError):
            rules = _again(rules, kept)
            continue
        wanted = LiteralSum([(x, 1) for x in clause], 1)
        assert all(_holds(wanted, own) for own in every)
        kept.append(wanted)


def _holds(one, values):
    return sum(w for x, w in one.weights.items() if values[abs(x) - 1] == (x > 0)) >= one.bound


def _again(rules, kept):
    """The constraints without what a rejected clause left behind: a checker stops there."""
    fresh = Constraints()
    for k in range(len(kept)):
        fresh.add(rules._at(k))
    return fresh

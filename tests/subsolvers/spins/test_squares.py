"""The semidefinite bound of many labels: against enumeration, the checker, and linear programs."""

from __future__ import annotations

import itertools
import math
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softmap
from adversary.proofs import energies
from softmap import core
from softmap.relaxation.consistency import tighten
from softmap.subsolvers.spins import squares
from softmap.subsolvers.spins.indicators import IndicatorForm, Squares
from softmap.subsolvers.spins.semidefinite import indicators
from softmap.subsolvers.spins.spin_numbers import SquareSteps
from softmap.subsolvers.spins.squares import SquareBound, _part_above, _part_below, _threshold
from softmap.verification.integers import flat_model
from softmap.verification.limit import Limits
from softmap.verification.squares import squares_bound
from support.squares import random_squares_model, squares_record

FOREVER = core.Deadline(math.inf)
SEEDS = st.integers(0, 1 << 40)


def made(seed: int) -> softmap.Model | None:
    """A model of pairs without labels that arc consistency removes; None if it is infeasible."""
    try:
        return tighten(random_squares_model(np.random.default_rng(seed)))
    except softmap.InfeasibleModel:
        return None


def checked(model: softmap.Model, found: Squares) -> Fraction:
    """What the checker finds from squares and moved costs."""
    arrays = [np.array(one, np.int64) for one in squares_record(found)]
    return squares_bound(flat_model(model.network), Limits(), *arrays)


def test_eigenvectors_that_do_not_converge_are_computed_otherwise(monkeypatch):
    rng = np.random.default_rng(5)
    matrix = rng.normal(size=(9, 9))
    matrix = matrix + matrix.T
    level, usual = _part_above(matrix, 2.0, FOREVER)

    def failing(*arguments, **named):
        raise np.linalg.LinAlgError("stein (eigh_tridiagonal) 1 eigenvectors failed to converge")

    monkeypatch.setattr(squares, "eigh_tridiagonal", failing)
    other, found = _part_above(matrix, 2.0, FOREVER)
    assert other == level
    np.testing.assert_allclose(found @ found.T, usual @ usual.T, atol=1e-12)
    with pytest.raises(FloatingPointError):  # a loop that waits for a number would not end
        _part_below(matrix, level, found * np.nan, FOREVER)


@given(SEEDS)
@settings(max_examples=25, deadline=None)
def test_no_bound_exceeds_the_optimum_and_the_checker_agrees(seed):
    model = made(seed)
    if model is None or not (costs := energies(model)):
        return
    bound = SquareBound(IndicatorForm.of(model.network), logged=True, steps=SquareSteps())
    optimum = min(costs.values())
    for steps in (1, 3, 20):
        bound.relax(steps, FOREVER, FOREVER)
        if bound.leaves is not None:
            assert bound.bound <= checked(model, bound.leaves) <= optimum
        labels = tuple(bound.labels(model.n).tolist())
        assert labels not in costs or costs[labels] >= optimum


@given(SEEDS)
@settings(max_examples=15, deadline=None)
def test_any_squares_and_moved_costs_prove_a_bound(seed):
    model, rng = made(seed), np.random.default_rng(seed)
    if model is None or not (costs := energies(model)):
        return
    form = IndicatorForm.of(model.network)
    k, size = len(form.variable), float(np.abs(form.costs[form.allowed]).max())
    factor = rng.normal(size=(k, int(rng.integers(0, 5)))) * math.sqrt(size)
    moved = rng.normal(size=(k, model.n)) * size
    found = form.certify(factor, moved)
    assert found.bound <= checked(model, found) <= min(costs.values())


def complete(n: int, d: int, seed: int) -> softmap.Model:
    """Random tables for all pairs."""
    rng = np.random.default_rng(seed)
    pairs = list(itertools.combinations(range(n), 2))
    return softmap.Model(
        rng.normal(size=(n, d)), pairs, softmap.Tables(rng.normal(size=(len(pairs), d, d)))
    )


def test_it_is_at_least_the_local_polytope_and_closes_most_of_its_gap():
    for seed in range(3):
        model = complete(6, 3, seed)
        optimum = float(min(energies(model).values()))
        linear = softmap.solve(model, goal="lp", threads=1).lp_bound
        bound = SquareBound(IndicatorForm.of(model.network), logged=False, steps=SquareSteps())
        for _ in range(20):
            bound.relax(10, FOREVER, FOREVER)
        assert linear < bound.bound <= optimum + 1e-9
        assert optimum - bound.bound < 0.5 * (optimum - linear)
        assert bound.leaves is None
        assert float(model.energy(bound.labels(6))) == pytest.approx(optimum)


def test_costs_are_those_of_labellings():
    for seed in range(6):
        model = made(seed)
        if model is None:
            continue
        form = IndicatorForm.of(model.network)
        every = zip(form.variable.tolist(), form.label.tolist(), strict=True)
        place = {pair: k for k, pair in enumerate(every)}
        for labels, cost in energies(model).items():
            chosen = [place[i, a] for i, a in enumerate(labels)]
            sum_of = form.constant + form.costs[np.ix_(chosen, chosen)].sum()
            assert sum_of == pytest.approx(float(cost), rel=1e-9, abs=1e-9)


def test_the_basis_is_orthonormal_and_has_equal_sums():
    model = made(3)
    form = IndicatorForm.of(model)
    basis = form.basis.toarray()
    assert basis.shape[1] == indicators(model)
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-14)
    sums = np.add.reduceat(basis, form.start, axis=0)
    np.testing.assert_allclose(sums, sums[:1].repeat(len(sums), 0), atol=1e-14)


def test_labels_are_those_of_a_matrix_that_is_decided():
    form = IndicatorForm.of(model := complete(5, 3, 5).network)
    best = min(costs := energies(model), key=costs.__getitem__)
    x = (form.label == np.array(best)[form.variable]).astype(float)
    cost, labels = form.rounded(np.outer(x, x), 32)
    assert labels.tolist() == list(best)
    assert cost == pytest.approx(float(costs[best]))


def test_positive_parts_above_the_threshold_have_the_given_sum():
    values = np.sort(np.random.default_rng(0).normal(size=30))
    for total in (0.1, 3.0, 100.0):
        assert np.maximum(values - _threshold(values, total), 0.0).sum() == pytest.approx(total)


def test_steps_count_if_the_deadline_passes_and_nothing_starts_at_the_end():
    form = IndicatorForm.of(complete(5, 3, 1).network)
    whole, parts = (SquareBound(form, logged=False, steps=SquareSteps()) for _ in range(2))
    whole.relax(4, FOREVER, FOREVER)
    end = core.Deadline(math.inf)
    for looks in (2, 2, 3):  # a look before each step
        end = core.Deadline(math.inf)
        end.stop_after(looks)
        try:
            parts.relax(4, end, FOREVER)
        except core.OutOfTime:
            continue
    assert (parts.bound, parts.bounds) == (whole.bound, 1)
    before = parts.work
    assert parts.relax(4, FOREVER, core.Deadline(0.0)) == 0.0
    assert parts.work == before
    with pytest.raises(core.OutOfTime):
        parts.relax(4, core.Deadline(0.0), FOREVER)


def test_a_step_that_the_end_interrupts_changes_nothing():
    form = IndicatorForm.of(complete(5, 3, 1).network)
    whole, parts = (SquareBound(form, logged=False, steps=SquareSteps()) for _ in range(2))
    whole.relax(4, FOREVER, FOREVER)
    interrupted = 0
    for looks in (1, 2, 5, 9, 12, 100):  # at each column of the decomposition, and later
        end = core.Deadline(math.inf)
        end.stop_after(looks)
        with suppress(core.OutOfTime):
            parts.relax(4, FOREVER, end)
            break
        interrupted += 1
    assert interrupted == 5
    assert (parts.bound, parts.bounds, parts.work) == (whole.bound, 1, whole.work)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 17, 40])
def test_the_tridiagonal_form_has_the_eigenvalues_and_its_reflections_the_vectors(n):
    rng = np.random.default_rng(n)
    for matrix in (rng.normal(size=(n, n)), np.zeros((n, n)), np.ones((n, n)), np.eye(n)):
        matrix = matrix + matrix.T
        reflections = matrix.copy()
        diagonal, beside = np.empty((2, n))
        core.make_tridiagonal(reflections, diagonal, beside)
        small = np.diag(diagonal) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1)
        rows = np.eye(n)
        core.multiply_by_reflections(reflections, rows)
        np.testing.assert_allclose(rows @ rows.T, np.eye(n), atol=1e-13)
        np.testing.assert_allclose(rows.T @ small @ rows, matrix, atol=1e-13 * n)


@given(SEEDS)
@settings(max_examples=25, deadline=None)
def test_the_parts_above_and_below_a_level_make_up_the_matrix(seed):
    rng = np.random.default_rng(seed)
    n, rank = int(rng.integers(1, 30)), int(rng.integers(1, 5))
    low = rng.normal(size=(n, rank))
    for matrix in (rng.normal(size=(n, n)), low @ low.T, np.zeros((n, n))):
        matrix = matrix + matrix.T
        level, above = _part_above(matrix, 3.0, FOREVER)
        below = _part_below(matrix, level, above, FOREVER)
        assert np.trace(above @ above.T) == pytest.approx(3.0)
        whole = above @ above.T - below @ below.T + level * np.eye(n)
        np.testing.assert_allclose(whole, matrix, atol=1e-10)
        np.testing.assert_allclose(above.T @ below @ below.T, 0.0, atol=1e-9)


def test_models_that_are_none_of_pairs_have_no_indicators():
    assert (
        indicators(softmap.Model([[0.0, 1.0]], [], softmap.Tables(np.zeros((0, 2, 2)))).network)
        == 0
    )
    third = softmap.Model.from_factors([2, 2, 2], [((0, 1, 2), np.zeros((2, 2, 2)))])
    assert indicators(third.network) == 0
    hard = np.zeros((3, 4))
    hard[1, 2:] = np.inf
    model = softmap.Model(hard, [(0, 1), (1, 2)], softmap.Tables(np.zeros((2, 4, 4))))
    assert indicators(model.network) == 10 - 3 + 1

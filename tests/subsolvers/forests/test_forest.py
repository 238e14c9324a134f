"""Forests are answered without a run, with the same promises as a run's result."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap import Status
from softmap.drive import loop
from softmap.subsolvers.forests.forest import ForestNumbers
from softmap.tuning import Tuning


def forest(seed: int, n: int = 7, labels: int = 3) -> softmap.Model:
    rng = np.random.default_rng(seed)
    edges = [(int(rng.integers(0, i)), i) for i in range(1, n) if rng.random() < 0.9]
    unary = [rng.normal(size=int(rng.integers(1, labels + 1))) for _ in range(n)]
    tables = [rng.normal(size=(len(unary[i]), len(unary[j]))) for i, j in edges]
    return softmap.Model(unary, edges, tables, constant=float(rng.normal()))


@given(st.integers(0, 2**32 - 1))
def test_the_answer_is_the_optimum_and_everything_about_it_is_checked(seed):
    model = forest(seed)
    result = softmap.solve(model, threads=1)
    every = itertools.product(*map(range, model.num_labels.tolist()))
    assert result.energy == pytest.approx(min(model.energy(list(one)) for one in every), abs=1e-12)
    assert result.status is Status.OPTIMAL
    assert result.energy == model.energy(result.labels)
    assert result.bound <= result.energy == result.primal
    assert softmap.verify(result)


def test_no_run_is_made(monkeypatch):
    def none(*given, **options):
        raise AssertionError("a run was made")

    model = forest(1)
    monkeypatch.setattr(loop.Run, "__init__", none)
    assert softmap.solve(model).trace[-1].stage == "trees"
    with pytest.raises(AssertionError, match="a run was made"):
        softmap.solve(model, tuning=Tuning(ForestNumbers(entries=3)))


@pytest.mark.parametrize("exponent", [-1070, -400, 400, 900])
def test_costs_of_any_size_are_proved_or_left_to_a_run(exponent):
    model = forest(3)
    scaled = softmap.Model(
        [np.ldexp(model.network.unary_of(i), exponent) for i in range(model.n)],
        model.edges,
        [np.ldexp(model.network.table(e), exponent) for e in range(model.m)],
    )
    result = softmap.solve(scaled, threads=1)
    assert result.bound <= result.energy == scaled.energy(result.labels)
    assert softmap.verify(result).holds
    assert np.array_equal(result.labels, softmap.solve(model).labels) or exponent < -1000


@pytest.mark.parametrize(
    "options",
    [{"max_work": 10**6}, {"initial": [0] * 7}, {"on_snapshot": lambda snapshot: True},
     {"warm_start": [0] * 7}, {"memory_limit": 1 << 30}],
    ids=lambda options: next(iter(options)),
)  # fmt: skip
def test_in_a_run_a_forest_is_solved_before_the_relaxation(options):
    model = forest(5, labels=2)
    result = softmap.solve(model, threads=1, **options)
    assert result.energy == softmap.solve(model).energy
    assert result.status in (Status.OPTIMAL, Status.GAP)
    assert [row.stage for row in result.trace] == ["trees"]


def test_hard_constraints_factors_and_cycles_are_left_to_a_run():
    hard = softmap.Model(np.zeros((2, 2)), [[0, 1]], [np.array([[np.inf, 1.0], [2.0, 3.0]])])
    factor = softmap.Model.from_factors([2, 2, 2], [((0, 1, 2), np.arange(8.0).reshape(2, 2, 2))])
    for model, least in ((hard, 1.0), (factor, 0.0)):
        result = softmap.solve(model, threads=1)
        assert result.energy == least
        assert result.trace[-1].stage != "trees"


def test_the_result_is_saved_shown_and_continued(tmp_path):
    model = forest(9)
    result = softmap.solve(model)
    result.save(tmp_path / "result.npz")
    assert softmap.load_result(tmp_path / "result.npz").bound == result.bound
    assert "trees" in result.report(tmp_path / "page.html").read_text()
    again = softmap.solve(model, warm_start=result, max_work=0)
    assert again.energy == result.energy


def test_an_answer_that_fails_is_left_to_a_run(monkeypatch):
    def fails(*given):
        raise ValueError("broken")

    model = forest(2)
    monkeypatch.setattr("softmap.core.tree_optimum", fails)
    with pytest.warns(softmap.StageWarning, match="trees.*broken"):
        result = softmap.solve(model, threads=1)
    assert result.bound <= result.energy < np.inf
    assert result.failures[0].stage == "trees"

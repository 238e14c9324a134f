"""Time limits: set-up that does not fit is left out, and time that is left is used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import softmap
from softmap.labels import cheapest
from softmap.methods.sweeps.anneal import Anneal
from softmap.model import Model
from softmap.relaxation.bounds import dual_bound
from softmap.solving import budget as budgets
from softmap.solving.best import Best
from softmap.solving.budget import Budget, Share, Task
from softmap.solving.options import Options
from softmap.solving.problem import Problem
from softmap.solving.relax import Relaxation
from softmap.solving.trace import Status


@pytest.fixture
def dear(monkeypatch: pytest.MonkeyPatch) -> list[Model]:
    """Set-up is expected to take hours; the models that are set up all the same."""
    seen: list[Model] = []
    monkeypatch.setattr(budgets, "GUESS", replace(budgets.GUESS, ordering=100.0))
    begin = Anneal.init

    def noted(self: Anneal, model: Model, *rest: object) -> object:
        seen.append(model)
        return begin(self, model, *rest)

    monkeypatch.setattr(Anneal, "init", noted)
    return seen


@pytest.mark.parametrize("goal", ["map", "lp", "labels"])
@pytest.mark.parametrize("limit", [0.0, 0.3])
def test_set_up_that_does_not_fit_is_left_out(dear: list, limit: float, goal: str) -> None:
    model = softmap.generators.potts_grid(12, 12, 3, seed=1)
    result = softmap.solve(model, time_limit=limit, goal=goal)
    assert not dear
    assert result.status is Status.TIME_LIMIT
    assert result.sweeps == 0
    assert result.bound == dual_bound(model, np.zeros(model.half_size))
    assert result.energy == model.energy(result.labels)
    assert softmap.verify(result).holds


def test_time_that_set_up_leaves_goes_to_labels(dear: list) -> None:
    model = softmap.generators.potts_grid(12, 12, 3, seed=1)
    result = softmap.solve(model, time_limit=0.5)
    assert not dear
    assert result.energy < model.energy(cheapest(model, model.unary))


def test_a_warm_start_whose_method_does_not_begin_keeps_what_it_knows(dear: list) -> None:
    model = softmap.generators.potts_grid(12, 12, 3, seed=1)
    known = softmap.solve(model, goal="lp", max_work=20_000)
    dear.clear()
    result = softmap.solve(model, goal="lp", time_limit=0.0, warm_start=known)
    assert not dear
    assert result.lp_bound >= known.lp_bound
    assert result.energy <= known.energy
    assert np.array_equal(result.messages, known.messages)
    assert softmap.verify(result).holds


def test_a_run_that_is_stored_can_go_on_though_its_method_did_not_begin(
    dear: list, tmp_path: Path
) -> None:
    model, path = softmap.generators.potts_grid(8, 8, 3, seed=1), tmp_path / "run.npz"
    softmap.solve(model, goal="lp", time_limit=0.0, checkpoint=path)
    resumed = softmap.resume(path, model)
    whole = softmap.solve(model, goal="lp")
    assert resumed.bound == whole.bound
    assert np.array_equal(resumed.labels, whole.labels)


def test_passes_fill_the_time_that_a_thorough_check_would_take() -> None:
    model = softmap.generators.potts_grid(12, 12, 3, seed=1)
    budget, problem = Budget(time_limit=1000.0), Problem.of(model)
    relaxation = Relaxation(problem, Options(time_limit=1000.0), Best(problem), budget)
    relaxation.set_up()
    budget.resume(700.0, 0)
    for task, seconds in {Task.STEP: 50.0, Task.CHECK: 300.0, Task.LABELS: 20.0}.items():
        budget.note(task, seconds)
    assert relaxation.advance(Share(budget)) is Status.TIME_LIMIT
    assert relaxation.at.done == 0
    assert relaxation.hurry()
    relaxation.advance(Share(budget))
    assert relaxation.at.done > 0

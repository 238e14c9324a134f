"""Time limits: they are kept by looking at the deadline, and time that is left is used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import softmap
from softmap.labels import cheapest
from softmap.labels.energies import energy_of
from softmap.methods.sweeps.anneal import Anneal
from softmap.model.graph import Graph
from softmap.model.layout import layout
from softmap.relaxation.bounds import dual_bound
from softmap.run.budget import Budget
from softmap.run.trace import Status
from softmap.subsolvers.passes.passes import Passes


@pytest.fixture
def unfinished(monkeypatch: pytest.MonkeyPatch) -> None:
    """The set-up of the method does not end in time."""
    monkeypatch.setattr(Passes, "set_up", lambda self, *_: False)


@pytest.mark.parametrize("goal", ["map", "lp", "labels"])
@pytest.mark.usefixtures("unfinished")
def test_a_run_whose_set_up_does_not_end_has_an_answer(goal: str) -> None:
    model = softmap.generators.potts_grid(12, 12, 3, seed=1)
    result = softmap.solve(model, time_limit=0.3, goal=goal)
    assert result.status is Status.TIME_LIMIT
    assert result.sweeps == 0
    assert result.bound >= dual_bound(model.network, np.zeros(model.network.half_size))
    assert result.energy == model.energy(result.labels)
    assert softmap.verify(result).holds


def test_a_limit_of_zero_leaves_the_bound_of_zero_and_labels() -> None:
    model = softmap.generators.potts_grid(12, 12, 3, seed=1)
    result = softmap.solve(model, time_limit=0.0)
    assert result.status is Status.TIME_LIMIT
    assert result.bound == dual_bound(model.network, np.zeros(model.network.half_size))
    assert softmap.verify(result).holds


def test_a_warm_start_without_time_keeps_what_it_knows() -> None:
    model = softmap.generators.potts_grid(12, 12, 3, seed=1)
    known = softmap.solve(model, goal="lp", max_work=20_000)
    result = softmap.solve(model, goal="lp", time_limit=0.0, warm_start=known)
    assert result.lp_bound >= known.lp_bound
    assert result.energy <= known.energy
    assert softmap.verify(result).holds


def test_a_run_that_is_stored_can_go_on_though_it_had_no_time(tmp_path: Path) -> None:
    model, path = softmap.generators.potts_grid(8, 8, 3, seed=1), tmp_path / "run.npz"
    softmap.solve(model, goal="lp", time_limit=0.0, checkpoint=path)
    resumed = softmap.resume(path, model)
    whole = softmap.solve(model, goal="lp")
    assert resumed.bound == whole.bound
    assert np.array_equal(resumed.labels, whole.labels)


def test_the_time_to_close_a_run_is_kept_back() -> None:
    budget = Budget(time_limit=10.0)
    assert budget.closing == 0.0
    budget.time_of_answer(0.125, 0.0625)
    assert budget.closing == 2.0 * 0.125  # a pass takes about as long
    budget.time_of_pass(0.5)
    assert budget.closing == 0.125 + 0.5
    budget.time_of_pass(9.0)  # noise only makes timings longer
    assert budget.closing == 0.125 + 0.5
    assert budget.left < 9.5
    budget.time_of_pass(0.25)
    assert budget.closing == 0.125 + 0.25


def test_the_time_to_close_a_run_on_a_gpu_has_no_bound_of_the_cpu_in_it() -> None:
    budget = Budget(time_limit=100.0, checked_apart=True)
    budget.time_of_answer(7.0, 1.0)
    assert budget.closing == 2.0
    budget.time_of_pass(0.25)
    for seconds in (2.0, 1.0, 4.0):  # noise only makes timings longer
        budget.time_of_check(seconds)
    assert budget.closing == 3.5


def test_slices_end_before_the_run_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes that take most of the limit: the last one is stopped, and its bound is kept."""
    model = softmap.generators.potts_grid(20, 20, 3, seed=1)
    steps, plain = [], Anneal.step

    def slow(self: Anneal, state: object, count: int, *rest: object, **named: object) -> object:
        steps.append(count)
        return plain(self, state, count, *rest, **named)

    monkeypatch.setattr(Anneal, "step", slow)
    result = softmap.solve(model, goal="lp", time_limit=0.05, lp_gap=0.0)
    assert result.status in (Status.TIME_LIMIT, Status.OPTIMAL, Status.GAP)
    assert result.bound >= dual_bound(model.network, np.zeros(model.network.half_size))
    assert steps or result.sweeps == 0


@pytest.mark.parametrize("kind", ["tables", "Potts"])
def test_the_first_answer_does_not_sort_the_graph(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half-edges of nodes take longer to sort than the first bound and labels to compute."""
    make = softmap.generators
    sorts, plain = [], Graph.from_edges.__func__  # type: ignore[attr-defined]

    def counted(*given: object) -> Graph:
        sorts.append(given)
        found: Graph = plain(*given)
        return found

    monkeypatch.setattr(Graph, "from_edges", classmethod(counted))
    model = make.erdos_renyi(80, seed=1) if kind == "tables" else make.potts_grid(50, 50, seed=1)
    result = softmap.solve(model, time_limit=0.0)
    assert not sorts
    assert result.energy == pytest.approx(model.energy(result.labels))
    assert softmap.solve(model, max_work=1).energy <= result.energy
    assert sorts


def test_energies_without_the_graph_are_those_with_it() -> None:
    for seed in range(5):
        model = softmap.generators.random_grid(7, 9, seed=seed)
        labels = np.random.default_rng(seed).integers(0, model.num_labels.min(), model.n)
        alone, first = energy_of(model.network, labels), cheapest(model.network, model.unary)
        assert "graph" not in vars(model.network)
        layout(model.network)
        assert "graph" in vars(model.network)
        assert energy_of(model.network, labels) == alone
        assert np.array_equal(cheapest(model.network, model.unary), first)

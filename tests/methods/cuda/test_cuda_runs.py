"""Whole runs with `backend="cuda"`: the promise of every run, on the host and on a device."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest
from typer.testing import CliRunner

import softmap
from softmap import tuning
from softmap.errors import InfeasibleModel, MissingExtra, OptionError
from softmap.labels import LabelSearch
from softmap.methods.cuda import DeviceEngine, describe
from softmap.methods.cuda.anneal import CudaAnneal, DeviceNumbers
from softmap.methods.cuda.arena import Arena
from softmap.relaxation import lp
from support.deadlines import stopping
from support.small_models import random_model
from support.strategies import FAMILIES

GRIDS = {
    "potts": lambda: softmap.generators.potts_grid(9, 10, 3, seed=1),
    "tables": lambda: softmap.generators.random_grid(7, 8, 3, seed=1),
    "stereo": lambda: softmap.generators.stereo_grid(6, 7, 5, seed=1),
    "random": lambda: softmap.generators.erdos_renyi(40, 3, seed=2),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", GRIDS)
def test_the_lp_is_solved_as_on_the_processor(name, dtype, place):
    model = GRIDS[name]()
    result = softmap.solve(model, backend="cuda", goal="lp", lp_gap=1e-4, gap=0.0, dtype=dtype)
    assert result.status.name in ("LP_GAP", "OPTIMAL")
    value = lp.solve(model).value
    assert result.bound <= value + 1e-9 <= result.primal + 2e-9
    assert result.primal - result.bound <= 1.01e-4 * abs(result.bound)
    report = softmap.verify(result)
    assert report, str(report)
    assert [row.bound for row in result.trace] == sorted(row.bound for row in result.trace)


def test_passes_stop_at_a_deadline_between_launches(place):
    model = GRIDS["potts"]()
    method, other = CudaAnneal(), CudaAnneal()
    state, whole = method.init(model.network, None, 0), other.init(model.network, None, 0)
    deadline = stopping(4)  # the fourth look of `step`, before a pass
    method.step(state, 1000, deadline)
    assert 0 < state.passes < 1000
    assert state.work == 2 * model.m * state.passes
    other.step(whole, state.passes)
    assert method.propose(state).lam == pytest.approx(other.propose(whole).lam)
    method.step(state, 5, deadline)
    assert state.passes == whole.passes


@pytest.mark.parametrize("eta", [1.0, 1e-200, 1e200])
@pytest.mark.parametrize("scale", [1e-40, 1e-200, 1e200])
def test_any_eta_fits_single_precision(scale, eta, place):
    rng = np.random.default_rng(0)
    edges = np.array([(i, i + 1) for i in range(24)])
    costs = softmap.TruncatedLinear(scale * rng.random(24), np.full(24, 2.0))
    model = softmap.Model(scale * rng.random((25, 5)), edges, costs)
    result = softmap.paper.solve(model, backend="cuda", eta=eta, max_work=500)
    assert result.energy == model.energy(result.labels)
    assert softmap.verify(result).holds


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", [0, 1])
def test_results_of_every_family_hold_what_they_say(family, seed, place):
    model = random_model(family, seed)
    try:
        result = softmap.solve(model, backend="cuda")
    except InfeasibleModel:
        with pytest.raises(InfeasibleModel):
            softmap.solve(model)
        return
    assert softmap.verify(result).holds
    assert result.energy == pytest.approx(softmap.solve(model).energy, abs=1e-9)


@pytest.mark.parametrize("name", GRIDS)
def test_labels_are_searched_for_while_passes_go_on(name, place, monkeypatch):
    model, searches = GRIDS[name](), []
    search = LabelSearch.look

    def look(*given):
        searches.append(threading.current_thread() is threading.main_thread())
        return search(*given)

    monkeypatch.setattr(LabelSearch, "look", look)
    result = softmap.solve(model, backend="cuda", time_limit=30.0, threads=2)
    assert searches
    assert not any(searches)
    assert softmap.verify(result).holds
    assert result.energy == pytest.approx(softmap.solve(model).energy, abs=1e-9)


def test_checks_of_a_large_model_leave_its_arrays_on_the_device(place, monkeypatch):
    """λ of a large model takes longer to fetch than all passes between two checks."""
    monkeypatch.setitem(tuning._DEFAULTS, DeviceNumbers, DeviceNumbers(frugal_states=0))
    fetched = []
    for name in ("lam", "by_node"):
        whole = getattr(Arena, name)
        monkeypatch.setattr(
            Arena, name, lambda *given, whole=whole: fetched.append(1) or whole(*given)
        )
    snapshots = softmap.iterate(GRIDS["random"](), backend="cuda", goal="lp", lp_gap=1e-4, gap=0.0)
    rows = []
    for snapshot in snapshots:
        rows.append(snapshot.sweeps)
        assert not fetched
    assert len(rows) > 3


def test_the_same_run_twice_gives_the_same_numbers(place):
    model = GRIDS["random"]()
    one, other = (
        softmap.solve(model, backend="cuda", goal="lp", lp_gap=1e-3, gap=0.0) for _ in range(2)
    )
    assert one.bound == other.bound
    assert one.primal == other.primal
    assert np.array_equal(one.lam, other.lam)


def test_a_resumed_run_goes_on_as_if_never_stopped(place, tmp_path):
    model, path = GRIDS["random"](), tmp_path / "run.npz"
    options = {"goal": "lp", "lp_gap": 1e-5, "gap": 0.0, "backend": "cuda"}
    whole = softmap.solve(model, max_work=2 * model.m * 120, **options)
    softmap.solve(model, max_work=2 * model.m * 43, checkpoint=path, **options)
    resumed = softmap.resume(path, model, max_work=2 * model.m * 120)
    assert resumed.bound == whole.bound
    assert resumed.primal == whole.primal
    assert np.array_equal(resumed.messages, whole.messages)
    assert [row.sweeps for row in resumed.trace] == [row.sweeps for row in whole.trace]


def test_a_warm_start_saves_passes(place):
    model = GRIDS["tables"]()
    options = {"backend": "cuda", "goal": "lp", "lp_gap": 1e-3, "gap": 0.0}
    cold = softmap.solve(model, **options)
    warm = softmap.paper.solve(model, warm_start=cold, eta=cold.eta, **options)
    assert warm.sweeps <= cold.sweeps
    assert warm.status is cold.status


def test_limits_and_callbacks_stop_a_run(place):
    model = GRIDS["random"]()
    stopped = softmap.solve(model, backend="cuda", max_work=2 * model.m * 7, goal="lp", gap=0.0)
    assert stopped.status.name == "WORK_LIMIT"
    assert stopped.sweeps == 7
    assert softmap.verify(stopped).holds
    asked = softmap.solve(model, backend="cuda", on_snapshot=lambda _: False, goal="lp", gap=0.0)
    assert asked.status.name == "CALLBACK"


def test_a_large_model_gets_its_labels_at_the_end(place, monkeypatch):
    monkeypatch.setitem(tuning._DEFAULTS, DeviceNumbers, DeviceNumbers(frugal_states=100))
    model = GRIDS["potts"]()
    seen = []
    result = softmap.solve(
        model, backend="cuda", goal="lp", lp_gap=1e-3, gap=0.0,
        on_snapshot=lambda s: seen.append(s.energy),
    )  # fmt: skip
    assert len(set(seen[:-1])) <= 1  # labels of least node cost
    assert result.energy < seen[0]
    assert result.energy == model.energy(result.labels)
    assert softmap.verify(result).holds


def test_only_the_annealed_method_runs_there():
    with pytest.raises(OptionError, match="runs method 'anneal' only"):
        softmap.solve(GRIDS["potts"](), backend="cuda", method="trws")
    with pytest.raises(OptionError, match="'cpu' or 'cuda'"):
        softmap.solve(GRIDS["potts"](), backend="opencl")


def test_a_missing_cupy_is_said_before_anything_else(monkeypatch):
    monkeypatch.delenv("SOFTMAP_CUDA", raising=False)
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(MissingExtra, match=r"'cuda13'"):
        softmap.solve(GRIDS["potts"](), backend="cuda")
    assert "pip install '.[cuda13]'" in describe()


def test_a_model_that_does_not_fit_says_how_many_bytes_it_needs(host, monkeypatch):
    monkeypatch.setattr(host, "room", lambda: 1000)
    with pytest.raises(OptionError, match=r"needs [\d,]+ bytes on the device, and 1,000 are free"):
        DeviceEngine(GRIDS["potts"]().network, host)


def test_the_command_line_takes_a_backend(place, tmp_path):
    from softmap.app.cli.app import app

    path = tmp_path / "model.uai"
    softmap.write(GRIDS["potts"](), path)
    run = CliRunner().invoke(app, ["solve", str(path), "--backend", "cuda", "--no-progress"])
    assert run.exit_code == 0, run.output
    assert "cuda" in CliRunner().invoke(app, ["doctor"]).output

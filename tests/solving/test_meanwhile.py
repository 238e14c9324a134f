"""Passes beside checks: kept or dropped, a run is the same to the bit."""

from __future__ import annotations

import math
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap import Status, generators, iterate, solve
from softmap.algorithms.pace import Pace
from softmap.solving import meanwhile
from softmap.solving.checking import NEARLY, passes_to_next
from softmap.solving.meanwhile import Meanwhile

EDGES = np.argwhere(np.triu(np.ones((14, 14)), 1))  # so many cycles that no relaxation is tight


def dense(labels, potential):
    """A complete graph."""
    rng = np.random.default_rng(3)
    costs = [rng.random(count) for count in np.broadcast_to(labels, 14)]
    return softmap.Model(costs, EDGES, potential(rng))


def tables(rng, labels):
    """Random tables, as lists of shapes that need not agree."""
    counts = np.broadcast_to(labels, 14)
    return softmap.Tables([rng.normal(size=(counts[i], counts[j])) for i, j in EDGES])


UNEVEN = np.arange(14) % 3 + 2
MODELS = {
    "random graph": generators.erdos_renyi(60, 3, seed=2),
    "Potts": dense(4, lambda rng: softmap.Potts(rng.normal(size=len(EDGES)))),
    "linear": dense(6, lambda rng: softmap.TruncatedLinear(-rng.random(len(EDGES)), 2.5)),
    "tables": dense(3, lambda rng: tables(rng, 3)),
    "uneven": dense(UNEVEN, lambda rng: tables(rng, UNEVEN)),
}


class Patient(Meanwhile):
    """Makes all passes that it may, however short the check is; counts what is kept of them."""

    kept: list[int]

    def end(self):
        self._thread.join()
        super().end()

    def join(self, run, most):
        self.kept.append(super().join(run, most))
        return self.kept[-1]


@pytest.fixture
def beside(monkeypatch):
    """Every check leaves a core idle; what was kept of the passes beside each."""
    kept: list[int] = []
    monkeypatch.setattr(Patient, "kept", kept, raising=False)
    monkeypatch.setattr(meanwhile, "Meanwhile", Patient)
    monkeypatch.setattr(meanwhile, "LONG", 0.0)
    monkeypatch.setattr(Pace, "prefers_one", property(lambda pace: len(pace._choices) > 1))
    return kept


def rows(result):
    """All of a trace but the seconds."""
    return [(r.work, r.eta, r.bound, r.primal, r.energy, r.stage) for r in result.trace.rows]


def same(one, other):
    assert rows(one) == rows(other)
    assert (one.status, one.bound, one.primal) == (other.status, other.bound, other.primal)
    for name in ("labels", "lam", "messages"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.threads
@pytest.mark.parametrize("goal", ["lp", "labels"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", MODELS)
def test_a_run_is_the_same_to_the_bit(name, dtype, goal, beside):
    model = MODELS[name]
    options = {"goal": goal, "dtype": dtype, "lp_gap": 1e-7, "gap": 1e-7}
    options["max_work"] = 2 * model.m * 203
    alone = solve(model, threads=1, **options)
    assert not beside
    together = solve(model, threads=2, **options)
    assert beside
    same(alone, together)


@pytest.mark.threads
def test_some_passes_are_kept_and_some_are_dropped(beside):
    model = MODELS["random graph"]
    found = solve(model, threads=2, goal="lp", lp_gap=1e-7, max_work=2 * model.m * 300)
    assert 0 < sum(beside) < found.sweeps
    assert 0 in beside  # where η was raised


@pytest.mark.threads
@pytest.mark.parametrize("passes", [21, 23, 40, 43])
def test_a_limit_of_work_is_kept(passes, beside):
    model = MODELS["random graph"]
    found = solve(model, threads=2, goal="lp", lp_gap=0, gap=0, max_work=2 * model.m * passes)
    assert found.status is Status.WORK_LIMIT
    assert found.work == 2 * model.m * passes


@pytest.mark.threads
def test_a_stored_run_goes_on_the_same_way(beside, tmp_path, monkeypatch):
    model, path = MODELS["random graph"], tmp_path / "run.npz"
    options = {"goal": "lp", "lp_gap": 0.0, "gap": 0.0, "threads": 2}
    whole = solve(model, **options, max_work=2 * model.m * 120)
    monkeypatch.setattr("softmap.solving.solve.EVERY", 0.0)
    stopped = iterate(model, **options, checkpoint=path, max_work=2 * model.m * 120)
    for snapshot in stopped:
        if snapshot.sweeps >= 60:
            break
    stopped.close()
    again = softmap.resume(path, model, threads=2, max_work=2 * model.m * 120)
    same(whole, again)


@pytest.mark.threads
def test_a_check_that_fails_leaves_no_thread(beside, monkeypatch):
    def fail(*_):
        raise ArithmeticError

    monkeypatch.setattr("softmap.solving.judge.Judge.look", fail)
    model = MODELS["random graph"]
    with pytest.raises(ArithmeticError):
        list(iterate(model, threads=2, goal="labels"))
    assert not [t for t in threading.enumerate() if t.name == "softmap-meanwhile"]


class Steps:
    """Counts steps, and fails when it is told to."""

    def __init__(self, fails: bool = False):
        self.made, self.fails, self.begun = 0, fails, threading.Event()

    def step(self, count):
        self.begun.set()
        if self.fails:
            raise MemoryError
        self.made += count

    def join(self, state):
        return state


class Stub:
    """A run that would, or would not, have made the same steps."""

    def __init__(self, state):
        self.state = state


def test_no_more_steps_are_made_than_were_asked_for():
    steps = Steps()
    begun = Meanwhile(steps, 7, 3)
    begun._thread.join()
    begun.end()
    assert steps.made == begun.made == 7
    assert begun.join(Stub(True), 7) == 7
    assert begun.join(Stub(True), 6) == 0
    assert begun.join(Stub(False), 7) == 0


def test_steps_end_with_the_check():
    steps = Steps()
    begun = Meanwhile(steps, 10**9, 1)
    steps.begun.wait()
    begun.end()
    assert 0 < begun.made == steps.made < 10**9


def test_without_memory_there_are_no_steps():
    begun = Meanwhile(Steps(fails=True), 7, 3)
    begun.end()
    assert begun.join(Stub(True), 7) == 0


@given(st.integers(0, 10_000), st.floats(0.0, 1e12) | st.just(math.inf))
def test_no_check_comes_sooner_than_the_soonest(done, ratio):
    soonest = min(passes_to_next(done, each) for each in (0.0, NEARLY))
    assert 1 <= soonest <= passes_to_next(done, ratio)

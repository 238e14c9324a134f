"""What checks ask, and when."""

import math
import time

import numpy as np
import pytest

from softmap import METHODS, Model, Status, Tables, generators, iterate, solve
from softmap.algorithms.sweeps.anneal import Anneal
from softmap.relaxation.consistency import tighten
from softmap.solving.judge import Judge
from softmap.solving.pace import BRIEF, CHECK, END, Pace


@pytest.fixture
def begun():
    model = tighten(generators.random_grid(6, 6, 3, seed=1))
    method = Anneal()
    state = method.init(model, None, 0)
    method.step(state, 30)
    return model, method, state


def test_a_sketch_shows_less_of_the_same_point(begun):
    model, method, state = begun
    smooth = state.messages.msg.copy()
    whole, messages = method.propose(state), state.messages.msg.copy()
    state.messages.msg[:] = smooth  # both overwrite what the next pass makes anew
    state.messages.overwritten = False
    sketch = method.sketch(state)
    np.testing.assert_array_equal(sketch.nodes[0], whole.nodes[0])
    np.testing.assert_array_equal(sketch.coupling, whole.coupling)
    assert (len(sketch.nodes), len(whole.nodes)) == (1, 2)
    back = len(state.messages.prev)  # what the next pass begins from
    np.testing.assert_array_equal(state.messages.msg[:back], messages[:back])
    polished, plain = (Judge(model, 1).look(p) for p in (whole, sketch))
    assert plain.bound <= polished.bound + 1e-9
    assert plain.primals == polished.primals[:1]


def test_a_glimpse_gives_the_bound_of_a_sketch(begun):
    _, method, state = begun
    smooth = state.messages.msg.copy()
    glimpse = method.glimpse(state)
    state.messages.msg[:] = smooth
    state.messages.overwritten = False
    sketch = method.sketch(state)
    np.testing.assert_array_equal(glimpse.lam, sketch.lam)
    np.testing.assert_array_equal(glimpse.nodes[0], sketch.nodes[0])


def test_a_run_for_the_lp_asks_for_labels_only_where_they_may_help(monkeypatch):
    from softmap.labels import LabelSearch

    looks = []
    plain = LabelSearch.look
    monkeypatch.setattr(
        LabelSearch, "look", lambda self, *a, **k: (looks.append(k["work"]), plain(self, *a, **k))
    )
    model = generators.erdos_renyi(60, 3, seed=0)  # far from tight
    found = solve(model, goal="lp", lp_gap=1e-3, threads=1)
    assert found.relative_gap(found.lp_gap) <= 1e-3
    assert found.energy == model.energy(found.labels)
    assert 1 <= len(looks) <= 2
    assert set(looks) == {0}


def test_no_point_is_judged_twice(monkeypatch):
    seen = []
    plain = Judge.look
    monkeypatch.setattr(
        Judge, "look", lambda self, p: (seen.append(p.nodes[0].tobytes()), plain(self, p))[1]
    )
    for goal in ("lp", "map"):
        seen.clear()
        model = generators.random_grid(8, 8, 3, seed=2)
        solve(model, goal=goal, max_work=2 * model.m * 45, threads=1)
        assert len(seen) == len(set(seen))


def test_a_step_is_made_where_it_and_a_brief_check_fit():
    pace = Pace()
    pace._each = {"step": 1.0, "check": 9.0, "labels": 9.0, "brief": 3.6, "end": 0.2}
    assert not pace.in_time(4.0, "step", *pace.after(4.0, 4.0))
    assert pace.after(5.0, 5.0) == ("brief", "end")
    assert pace.in_time(5.0, "step", *pace.after(5.0, 5.0))
    assert pace.after(60.0, 60.0) == ("check", "labels", "end")


def test_what_was_not_done_yet_is_guessed_from_passes_as_they_are():
    pace = Pace()
    pace.begin(lambda: time.sleep(0.03), 10.0, 1.0)
    assert pace.known("step")
    assert pace.expected("brief") == pytest.approx(10 * BRIEF * pace.expected("step"))
    pace.note("step", 0.001)  # made for the first time, and faster than was guessed
    assert pace.expected("brief") == pytest.approx(10 * BRIEF * 0.001)
    assert pace.expected("check", "end") == pytest.approx(0.01 * (BRIEF + CHECK + END))
    pace.begin(lambda: time.sleep(0.03), 10.0, 1.0)
    guess = pace.expected("step")
    pace.note("step", 5.0)  # the first one also has to find its memory
    assert pace.expected("step") == guess
    pace.note("step", 5.0)
    assert pace.expected("step") == 5.0
    pace.note("brief", 0.5)
    assert pace.expected("brief") == 0.5
    assert pace.expected("unheard of") == 0.0


def test_a_run_that_is_cut_short_has_the_bound_of_its_passes(monkeypatch):
    """Near the limit it was that of λ before chains are cut, which may be worse than that of 0."""
    monkeypatch.setattr(Pace, "in_time", lambda self, left, *kinds: kinds[0] != "check")
    model = generators.stereo_grid(40, 40, 16, weight=1.0, truncation=3.0, seed=1)
    short, whole = (
        solve(model, goal="lp", lp_gap=0.0, max_work=2 * model.m * 5, threads=1, time_limit=limit)
        for limit in (1e3, None)
    )
    assert short.sweeps == whole.sweeps == 5
    assert math.isclose(short.bound, whole.bound, rel_tol=1e-3)
    assert short.bound > 1.02 * model.unary.reshape(model.n, -1).min(axis=1).sum()


def test_labels_that_solve_the_relaxation_are_proved_by_more_passes():
    model = generators.potts_grid(12, 12, 3, seed=4)
    rows = [s.row for s in iterate(model, goal="labels", lp_gap=3e-3, threads=1)]
    assert [row.stage.name for row in rows] == ["RELAX", "RELAX"]
    solved, proved = rows
    assert 1e-4 < (solved.primal - solved.bound) / solved.bound <= 3e-3
    assert solved.energy == solved.primal
    assert proved.bound == pytest.approx(proved.energy, rel=1e-12)
    assert proved.sweeps <= 2 * solved.sweeps
    alone = solve(model, goal="lp", lp_gap=3e-3, threads=1)
    assert alone.sweeps == solved.sweeps


@pytest.mark.parametrize("kind", ["check", "brief"])
@pytest.mark.parametrize("method", METHODS)
def test_every_kind_of_check_has_labels_to_show(method, kind, monkeypatch):
    """A run on a busy machine lost its labels where a method proposes λ alone (trial 5039445)."""
    monkeypatch.setattr(Pace, "kind_of_check", lambda self, left: kind)
    model = generators.erdos_renyi(10, 3, seed=1)
    eta = None if METHODS[method].sweeping else 20.0
    found = solve(model, method=method, eta=eta, goal="lp", max_work=480, time_limit=50.0)
    assert found.energy == model.energy(found.labels)


@pytest.mark.parametrize("goal", ["lp", "map"])
def test_labels_that_break_constraints_are_not_swapped_for_others(goal):
    """Labels of energy +inf were those a run begins with, which obey them here (trial 40022220)."""
    forbidden = np.array([[1.0, np.inf], [np.inf, np.inf]])
    model = Model([[1.0, 0.0], [1.0, 0.0]], [[0, 1]], Tables(forbidden[None]))
    found = solve(model, goal=goal, max_work=0)
    assert found.energy == model.energy(found.labels)
    snapshots = list(iterate(model, goal=goal, max_work=0))
    assert all(s.energy == model.energy(s.labels) for s in snapshots)


def test_where_set_up_took_all_the_time_nothing_is_timed(monkeypatch):
    """One look at λ = 0 is what remains to be done: a bound, and labels of least cost."""
    monkeypatch.setattr(Pace, "begin", lambda *_: pytest.fail("steps are timed"))
    model = generators.potts_grid(8, 8, 3, seed=1)
    found = solve(model, time_limit=1e-9)
    assert found.status is Status.TIME_LIMIT
    assert -math.inf < found.bound <= found.energy == model.energy(found.labels)

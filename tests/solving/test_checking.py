"""What checks ask, and when."""

import math
import time

import numpy as np
import pytest

from softmap import METHODS, Model, Status, Tables, generators, iterate, solve
from softmap.methods.policy import Ask
from softmap.methods.sweeps.anneal import Anneal
from softmap.relaxation.consistency import tighten
from softmap.solving.budget import GUESS, Budget, Task
from softmap.solving.judge import Judge


@pytest.fixture
def begun():
    model = tighten(generators.random_grid(6, 6, 3, seed=1))
    method = Anneal()
    state = method.init(model, None, 0)
    method.step(state, 30)
    return model, method, state


def test_a_check_of_the_point_shows_less_of_the_same_point(begun):
    model, method, state = begun
    smooth = state.messages.msg.copy()
    whole = method.propose(state)
    method.settle(state)
    messages = state.messages.msg.copy()
    state.messages.msg[:] = smooth  # both overwrite what the next pass makes anew
    state.messages.overwritten = False
    plain = method.answer(state, Ask.POINT)
    np.testing.assert_array_equal(plain.nodes[0], whole.nodes[0])
    np.testing.assert_array_equal(plain.coupling, whole.coupling)
    method.settle(state)
    assert (len(plain.nodes), len(whole.nodes)) == (1, 2)
    back = len(state.messages.drift)  # what the next pass begins from
    np.testing.assert_array_equal(state.messages.msg[:back], messages[:back])
    polished, other = (Judge.of(model).look(p) for p in (whole, plain))
    assert other.bound <= polished.bound + 1e-9
    assert other.primals == polished.primals[:1]


def test_a_check_of_the_bound_has_that_of_the_point(begun):
    _, method, state = begun
    smooth = state.messages.msg.copy()
    brief = method.answer(state, Ask.BOUND)
    method.settle(state)
    state.messages.msg[:] = smooth
    state.messages.overwritten = False
    plain = method.answer(state, Ask.POINT)
    np.testing.assert_array_equal(brief.lam, plain.lam)
    np.testing.assert_array_equal(brief.nodes[0], plain.nodes[0])


def test_a_run_for_the_lp_asks_for_labels_only_where_they_may_help(monkeypatch):
    from softmap.labels import LabelSearch

    looks = []
    plain = LabelSearch.look
    monkeypatch.setattr(
        LabelSearch, "look", lambda self, *a: (looks.append(a[-1]), plain(self, *a))[1]
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


def timed(budget: Budget, **seconds: float) -> Budget:
    for name, value in seconds.items():
        budget.note(Task[name], value)
    return budget


def test_a_step_is_made_where_it_and_a_brief_check_fit():
    seconds = {"STEP": 1.0, "CHECK": 9.0, "LABELS": 9.0, "BRIEF": 3.6, "FINISH": 0.2}
    short, longer, long = (timed(Budget(time_limit=t), **seconds) for t in (4.0, 5.0, 60.0))
    assert not short.fits(Task.STEP, *short.closing())
    assert longer.closing() == (Task.BRIEF, Task.FINISH)
    assert longer.fits(Task.STEP, *longer.closing())
    assert long.closing() == (Task.CHECK, Task.LABELS, Task.FINISH)


def test_more_threads_lengthen_the_assembly_of_the_result_alone():
    """In passes; a search for labels is as parallel as a pass."""
    one, many = Budget(), Budget()
    for budget, threads in ((one, 1), (many, 16)):
        budget.guess(lambda: time.sleep(0.03), 10.0, 1.0, threads)
        budget.note(Task.STEP, 0.001)
    assert (
        many.expected(Task.LABELS)
        == one.expected(Task.LABELS)
        == pytest.approx(0.01 * GUESS.labels)
    )
    assert many.expected(Task.FINISH) > one.expected(Task.FINISH)


def test_what_was_not_done_yet_is_guessed_from_passes_as_they_are():
    budget = Budget()
    budget.guess(lambda: time.sleep(0.03), 10.0, 1.0)
    assert budget.known(Task.STEP)
    step = budget.expected(Task.STEP)
    assert budget.expected(Task.BRIEF) == pytest.approx(10 * GUESS.brief * step)
    budget.note(Task.STEP, 0.001)  # made for the first time, and faster than was guessed
    assert budget.expected(Task.BRIEF) == pytest.approx(10 * GUESS.brief * 0.001)
    both = 0.01 * (GUESS.brief + GUESS.check + GUESS.finish)
    assert budget.expected(Task.CHECK, Task.FINISH) == pytest.approx(both)
    budget.guess(lambda: time.sleep(0.03), 10.0, 1.0)
    guess = budget.expected(Task.STEP)
    budget.note(Task.STEP, 5.0)  # the first one also has to find its memory
    assert budget.expected(Task.STEP) == guess
    budget.note(Task.STEP, 5.0)
    assert budget.expected(Task.STEP) == 5.0
    budget.note(Task.BRIEF, 0.5)
    assert budget.expected(Task.BRIEF) == 0.5


def test_a_run_that_is_cut_short_has_the_bound_of_its_passes(monkeypatch):
    """Near the limit it was that of λ before chains are cut, which may be worse than that of 0."""
    monkeypatch.setattr(Budget, "fits", lambda self, *tasks: tasks[0] is not Task.CHECK)
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


@pytest.mark.parametrize("thorough", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_every_kind_of_check_has_labels_to_show(method, thorough, monkeypatch):
    """A run on a busy machine lost its labels where a method proposes λ alone (trial 5039445)."""
    monkeypatch.setattr(Budget, "fits", lambda self, *tasks: thorough or tasks[0] is not Task.CHECK)
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
    monkeypatch.setattr(Budget, "guess", lambda *_: pytest.fail("steps are timed"))
    model = generators.potts_grid(8, 8, 3, seed=1)
    found = solve(model, time_limit=1e-9)
    assert found.status is Status.TIME_LIMIT
    assert -math.inf < found.bound <= found.energy == model.energy(found.labels)

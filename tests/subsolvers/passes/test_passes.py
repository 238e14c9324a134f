"""What checks ask, and when."""

import math
import time

import numpy as np
import pytest

from softmap import METHODS, Model, Status, Tables, core, generators, iterate, lp, paper, solve
from softmap.methods.policy import Ask
from softmap.methods.sweeps.anneal import Anneal
from softmap.relaxation.bounds import dual_bound
from softmap.relaxation.consistency import tighten
from softmap.run.best import Best
from softmap.run.budget import Budget
from softmap.run.judge import Judge
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.subsolver import Share
from softmap.subsolvers.passes.decode import Decode
from softmap.subsolvers.passes.pass_numbers import PassNumbers
from softmap.subsolvers.passes.passes import Passes


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
    method.undo_proposal(state)
    messages = state.messages.msg.copy()
    state.messages.msg[:] = smooth  # both overwrite what the next pass makes anew
    state.messages.overwritten = False
    plain = method.answer(state, Ask.POINT)
    np.testing.assert_array_equal(plain.nodes[0], whole.nodes[0])
    np.testing.assert_array_equal(plain.coupling, whole.coupling)
    method.undo_proposal(state)
    assert (len(plain.nodes), len(whole.nodes)) == (1, 2)
    back = len(state.messages.drift)  # what the next pass begins from
    np.testing.assert_array_equal(state.messages.msg[:back], messages[:back])
    polished, other = (Judge.of(model).look(p) for p in (whole, plain))
    assert other.bound <= polished.bound + 1e-9
    assert other.primals == polished.primals[:1]


def test_a_check_of_the_bound_has_that_of_the_point(begun):
    _, method, state = begun
    smooth = state.messages.msg.copy()
    bound_only = method.answer(state, Ask.BOUND)
    method.undo_proposal(state)
    state.messages.msg[:] = smooth
    state.messages.overwritten = False
    plain = method.answer(state, Ask.POINT)
    np.testing.assert_array_equal(bound_only.lam, plain.lam)
    np.testing.assert_array_equal(bound_only.nodes[0], plain.nodes[0])


def test_a_run_for_the_lp_asks_for_labels_only_where_they_may_help(monkeypatch):
    from softmap.labels import LabelSearch

    looks = []
    plain = LabelSearch.look
    monkeypatch.setattr(
        LabelSearch, "look", lambda self, *a: (looks.append(a[5]), plain(self, *a))[1]
    )
    model = generators.erdos_renyi(60, 3, seed=0)  # far from tight
    found = solve(model, goal="lp", lp_gap=1e-3, threads=1)
    assert found.relative_gap(found.lp_gap) <= 1e-3
    assert found.energy == model.energy(found.labels)
    assert 1 <= len(looks) <= 2
    assert set(looks) == {0}


def test_a_run_for_the_lp_checks_after_the_same_passes_with_a_limit():
    model = generators.random_grid(12, 12, 4, seed=5)
    free = solve(model, method="anneal", goal="lp", lp_gap=1e-5, gap=0.0)
    limited = solve(model, method="anneal", goal="lp", lp_gap=1e-5, gap=0.0, time_limit=600.0)
    assert free.status is Status.LP_GAP
    np.testing.assert_array_equal(limited.trace.columns()["work"], free.trace.columns()["work"])
    np.testing.assert_array_equal(limited.trace.columns()["bound"], free.trace.columns()["bound"])


def test_labels_are_improved_after_the_first_checks_of_a_run_for_the_lp(monkeypatch):
    passes = []
    look = Decode._find

    def find(self, best, share, seen):
        before = self._decoded_at
        look(self, best, share, seen)
        passes.append((seen.done, self._decoded_at > before, best.found))

    monkeypatch.setattr(Decode, "_find", find)
    solve(generators.random_grid(8, 8, 3, seed=1), method="anneal", goal="lp", lp_gap=1e-6)
    early = [done < PassNumbers().urgent for done, *_ in passes]
    assert early[0]
    assert [improved for _, improved, _ in passes] == [not one for one in early]
    assert all(found for *_, found in passes)


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


def test_labels_that_solve_the_relaxation_are_proved_by_more_passes():
    model = generators.potts_grid(12, 12, 3, seed=4)
    rows = [s.row for s in iterate(model, goal="labels", lp_gap=3e-3, threads=1)]
    assert [row.stage for row in rows] == ["relaxation", "relaxation"]
    solved, proved = rows
    assert 1e-4 < (solved.primal - solved.bound) / solved.bound <= 3e-3
    assert solved.energy == solved.primal
    assert proved.bound == pytest.approx(proved.energy, rel=1e-12)
    assert proved.sweeps <= 2 * solved.sweeps
    alone = solve(model, goal="lp", lp_gap=3e-3, threads=1)
    assert alone.sweeps == solved.sweeps


@pytest.mark.parametrize("limit", [50.0, 0.0])
@pytest.mark.parametrize("method", METHODS)
def test_every_kind_of_check_has_labels_to_show(method, limit):
    """A run on a busy machine lost its labels where a method proposes λ alone (trial 5039445)."""
    model = generators.erdos_renyi(10, 3, seed=1)
    eta = None if METHODS[method].sweeping else 20.0
    found = paper.solve(model, method=method, eta=eta, goal="lp", max_work=480, time_limit=limit)
    assert found.energy == model.energy(found.labels)
    assert -math.inf < found.bound <= found.energy


@pytest.mark.parametrize("goal", ["lp", "map"])
def test_labels_that_break_constraints_are_not_swapped_for_others(goal):
    """Labels of energy +inf were those a run begins with, which obey them here (trial 40022220)."""
    forbidden = np.array([[1.0, np.inf], [np.inf, np.inf]])
    model = Model([[1.0, 0.0], [1.0, 0.0]], [[0, 1]], Tables(forbidden[None]))
    found = solve(model, goal=goal, max_work=0)
    assert found.energy == model.energy(found.labels)
    snapshots = list(iterate(model, goal=goal, max_work=0))
    assert all(s.energy == model.energy(s.labels) for s in snapshots)


def test_a_limit_that_has_passed_leaves_a_bound_and_labels():
    model = generators.potts_grid(8, 8, 3, seed=1)
    found = solve(model, time_limit=1e-9)
    assert found.status is Status.TIME_LIMIT
    assert -math.inf < found.bound <= found.energy == model.energy(found.labels)


class Late(Budget):
    """A budget whose time is up after a number of questions."""

    looks: int = 3

    @property
    def left(self) -> float:
        self.looks -= 1
        return 1.0 if self.looks > 0 else 0.0


@pytest.mark.parametrize("looks", range(1, 9))
def test_passes_that_are_cut_short_prove_what_they_have(looks):
    model = tighten(generators.stereo_grid(10, 10, 6, weight=1.0, truncation=3.0, seed=1))
    problem, options = Problem.plain(model), Options(goal="lp", time_limit=1.0)
    best, budget = Best(problem), Late(time_limit=1.0)
    passes = Passes(problem, options)
    passes.begin(best, Share(budget), alone=False)
    budget.looks = looks
    outcome = passes(best, Share(budget, 1e9))
    assert outcome.ended is Status.TIME_LIMIT or outcome.active
    seen = passes.seen()
    assert not seen.done or best.lp_bound >= dual_bound(model, seen.lam()) - 1e-9
    value = lp.solve(model).value
    assert best.lp_bound <= value + 1e-9 * abs(value)


def stopped_run(monkeypatch, limit):
    """A run whose first pass is stopped after it has changed messages."""
    model, plain, step = generators.random_grid(12, 12, 4, seed=1), Anneal.last_bound, Anneal.step
    end = core.Deadline(0.0)
    monkeypatch.setattr(Passes, "_end_of_passes", lambda *_: end)
    monkeypatch.setattr(Anneal, "step", lambda self, state, count, _: step(self, state, count))
    monkeypatch.setattr(Anneal, "last_bound", lambda self, state, _: plain(self, state, limit))
    return model, solve(model, goal="lp", time_limit=1000.0, threads=1)


def test_a_run_closes_with_the_bound_of_its_stopped_first_pass(monkeypatch):
    model, found = stopped_run(monkeypatch, core.Deadline())
    assert found.status is Status.TIME_LIMIT
    assert found.bound > dual_bound(model, np.zeros(model.network.half_size)) + 0.1
    assert found.bound <= lp.solve(model).value + 1e-7
    assert found.bound == pytest.approx(dual_bound(model, found.lam), abs=1e-9)


def test_a_last_bound_that_is_stopped_leaves_the_one_before(monkeypatch):
    model, found = stopped_run(monkeypatch, core.Deadline(0.0))
    assert found.status is Status.TIME_LIMIT
    assert found.bound == pytest.approx(
        dual_bound(model, np.zeros(model.network.half_size)), abs=1e-9
    )
    assert found.energy == model.energy(found.labels)
    assert math.isfinite(found.energy)


def test_the_first_pass_ends_early_enough_for_its_bound(monkeypatch):
    ends, step = [], Anneal.step

    def noting(self, state, count, deadline):
        ends.append(deadline.end - time.perf_counter())
        step(self, state, count, deadline)

    monkeypatch.setattr(Anneal, "step", noting)
    solve(generators.random_grid(12, 12, 4, seed=1), goal="lp", time_limit=1000.0, threads=1)
    assert 0.0 < ends[0] <= 600.0
    assert ends[1] > 600.0

"""Processes that help with a batch: the same results, and nothing is lost with them."""

import logging
import os
import signal
import threading
import time

import numpy as np
import pytest

import softmap
from softmap import InfeasibleModel, Model, Potts, generators, solve_batch
from softmap.solving import helpers
from softmap.solving.helpers import Helper, Helpers

pytestmark = pytest.mark.skipif(os.name != "posix", reason="helpers need POSIX")
GOAL = {"goal": "lp", "lp_gap": 1e-3}


def graphs(count: int) -> list[Model]:
    return [generators.erdos_renyi(30, 3, seed=seed) for seed in range(count)]


@pytest.fixture
def asked(monkeypatch):
    """Helpers that are worth it at once, and waited for; the answers they gave."""
    answers = []

    def ready(self: Helper) -> bool:
        while not known(self) and not self._lost:
            time.sleep(0.01)
        return known(self)

    def solved(self: Helper, *arguments: object) -> object:
        answers.append(once(self, *arguments))
        return answers[-1]

    known, once = Helper.ready, Helper.solve
    monkeypatch.setattr(helpers, "WORTHWHILE", 0.0)
    monkeypatch.setattr(Helper, "ready", ready)
    monkeypatch.setattr(Helper, "solve", solved)
    return answers


def same(found, expected) -> bool:
    """Equal in all but the time that it took."""
    names = ("energy", "bound", "primal", "status", "work", "labels", "lam", "messages")
    point = np.array_equal(found.node_marginals, expected.node_marginals)
    return point and all(np.array_equal(getattr(found, n), getattr(expected, n)) for n in names)


@pytest.fixture
def started(monkeypatch):
    """The processes of all helpers."""
    processes = []

    def begun(self: Helper) -> None:
        once(self)
        processes.append(self._process)

    once = Helper.__init__
    monkeypatch.setattr(Helper, "__init__", begun)
    return processes


def test_a_helper_gives_the_results_of_this_process():
    listed = graphs(4)
    far = [p.scaled(1e-9) for p in listed[0].potentials]  # in units that are far from 1
    listed.append(listed[0].replace(unary=listed[0].unary * 1e-9, potentials=far))
    listed.append(listed[1].condition({0: 1}))
    helper = Helper()
    try:
        while not helper.ready():
            time.sleep(0.01)
        for model in listed:
            result = helper.solve(model, GOAL)
            assert result.model is model
            assert same(result, softmap.solve(model, threads=1, **GOAL))
            assert softmap.verify(result)
    finally:
        helper.close()


def test_a_batch_with_helpers_is_one_without(asked):
    found = solve_batch(graphs(30), threads=3, **GOAL)
    assert any(answer is not None for answer in asked)
    expected = solve_batch(graphs(30), threads=3, processes=False, **GOAL)
    assert all(map(same, found, expected))


def test_errors_are_those_of_this_process(asked):
    bad = Model([[0.0, np.inf], [np.inf, 0.0]], [[0, 1]], np.array([[[0.0, np.inf]] * 2]))
    listed = [*graphs(8), bad, *graphs(8)]
    found = solve_batch(listed, threads=2, errors="return", **GOAL)
    assert [k for k, answer in enumerate(found) if isinstance(answer, Exception)] == [8]
    with pytest.raises(InfeasibleModel):
        solve_batch(listed, threads=2, **GOAL)
    assert asked


def test_what_cannot_travel_is_solved_here(asked):
    class Own(Potts):
        """Of a class that no other process can find."""

    rng = np.random.default_rng(0)
    listed = [Model(rng.normal(size=(5, 2)), [[0, 1], [1, 2]], Own([0.3, 0.4])) for _ in range(12)]
    found = solve_batch(listed, threads=2, **GOAL)
    assert asked
    assert not any(asked)
    assert all(same(r, softmap.solve(r.model, threads=1, **GOAL)) for r in found)


def test_a_helper_that_is_killed_costs_no_result(asked, monkeypatch):
    once = Helper.solve

    def killed(self: Helper, *arguments: object) -> object:
        self.kill()
        return once(self, *arguments)

    monkeypatch.setattr(Helper, "solve", killed)
    found = solve_batch(graphs(12), threads=2, **GOAL)
    assert asked
    assert not any(asked)
    assert len(asked) <= 2  # it is not asked again
    assert [r.energy for r in found] == [r.energy for r in solve_batch(graphs(12), **GOAL)]


def test_a_helper_that_does_not_start_is_not_waited_for(asked, monkeypatch):
    monkeypatch.setattr(helpers, "get_executable", lambda: "/bin/false")
    assert len(solve_batch(graphs(6), threads=2, **GOAL)) == 6
    monkeypatch.setattr(helpers, "get_executable", lambda: "/no/such/program")
    assert len(solve_batch(graphs(6), threads=2, **GOAL)) == 6
    assert not asked


def test_no_helper_is_left_behind(asked, started):
    solve_batch(graphs(12), threads=3, **GOAL)
    assert asked
    assert started
    assert all(process.returncode is not None for process in started)


def test_ctrl_c_ends_helpers(asked, started):
    hard = generators.erdos_renyi(400, 4, seed=1)
    quick = generators.random_tree(5)
    threading.Timer(3.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        solve_batch([quick, quick, *[hard] * 6], threads=2, lp_gap=0.0, gap=0.0, goal="lp")
    assert time.perf_counter() - began < 60
    assert started
    assert all(process.returncode is not None for process in started)


@pytest.mark.parametrize("options", [{"processes": False}, {"verbose": True}])
def test_there_are_none_where_they_are_not_wanted(asked, options, capsys):
    solve_batch(graphs(6), threads=2, **options, **GOAL)
    assert not asked


def test_there_are_none_where_somebody_listens(asked, caplog):
    with caplog.at_level(logging.INFO, logger="softmap"):
        solve_batch(graphs(6), threads=2, **GOAL)
    assert not asked
    assert sum("solving" in line for line in caplog.messages) == 6


def test_they_are_started_where_much_is_left_to_do():
    models = graphs(10)
    with Helpers(models, [{}] * 10, 2, allowed=True) as few:
        few.note(models[0], time.perf_counter() - 0.1)
        few.solve(models[1], GOAL)  # as the first thread, which never has one
        other = threading.Thread(target=few.solve, args=(models[2], GOAL))
        other.start()
        other.join()
        assert not few._started
        few.note(models[2], time.perf_counter() - 1.0)
        other = threading.Thread(target=few.solve, args=(models[3], GOAL))
        other.start()
        other.join()
        assert len(few._started) == 1

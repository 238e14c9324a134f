"""Processes that solve models of a batch: the same results, and nothing is lost with them."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import softmap
from softmap import InfeasibleModel, Model, Potts, generators, solve_batch
from softmap.tasks import workers
from softmap.tasks.workers import WorkerRules, Workers, attached

pytestmark = pytest.mark.skipif(os.name != "posix", reason="processes need POSIX signals")
GOAL = {"goal": "lp", "lp_gap": 1e-3}


def graphs(count: int) -> list[Model]:
    return [generators.erdos_renyi(30, 3, seed=seed) for seed in range(count)]


@pytest.fixture
def asked(monkeypatch):
    """Processes that are worth it at once, and waited for; the answers they gave."""
    answers = []

    def has_worker(self: Workers) -> bool:
        end = time.monotonic() + 60
        while not (found := known(self)) and self._pool and not self._ended:
            if self._home == threading.get_ident() or all(map(ended, self._context.started)):
                break
            assert time.monotonic() < end
            time.sleep(0.01)
        return found

    def solved(self: Workers, *arguments: object) -> object:
        used = self._has_worker()
        answer = once(self, *arguments)
        if used:
            answers.append(answer)
        return answer

    known, once = Workers._has_worker, Workers.solve
    monkeypatch.setattr(Workers, "rules", WorkerRules(worthwhile=0.0))
    monkeypatch.setattr(Workers, "_has_worker", has_worker)
    monkeypatch.setattr(Workers, "solve", solved)
    return answers


@pytest.fixture
def started(monkeypatch):
    """All processes of pools."""
    processes = []

    def begun(self: workers._Process) -> None:
        once(self)
        processes.append(self)

    once = workers._Process.start
    monkeypatch.setattr(workers._Process, "start", begun)
    return processes


def ended(process: workers._Process) -> bool:
    try:
        return not process.is_alive()
    except ValueError:  # closed
        return True


def same(found, expected) -> bool:
    """Equal in all but the time that it took."""
    names = ("energy", "bound", "primal", "status", "work", "labels", "lam", "messages")
    point = np.array_equal(found.node_marginals, expected.node_marginals)
    return point and all(np.array_equal(getattr(found, n), getattr(expected, n)) for n in names)


def test_a_result_travels_without_its_model():
    listed = graphs(2)
    far = [p.scaled(1e-9) for p in listed[0].potentials]  # in units that are far from 1
    listed.append(listed[0].replace(unary=listed[0].unary * 1e-9, potentials=far))
    listed.append(listed[1].condition({0: 1}))
    for model in listed:
        result = attached(workers._solved(workers.pickle.dumps((model, GOAL))), model)
        assert result.model is model
        assert same(result, softmap.solve(model, threads=1, **GOAL))
        assert softmap.verify(result).holds


def test_a_batch_with_processes_is_one_without(asked, started):
    found = solve_batch(graphs(14), threads=3, **GOAL)
    assert any(answer is not None for answer in asked)
    expected = solve_batch(graphs(14), threads=1, processes=False, **GOAL)
    assert all(map(same, found, expected))
    assert started
    assert all(map(ended, started))


def test_errors_are_those_of_this_process(asked):
    bad = Model([[0.0, np.inf], [np.inf, 0.0]], [[0, 1]], np.array([[[0.0, np.inf]] * 2]))
    listed = [*graphs(4), bad, *graphs(4)]
    found = solve_batch(listed, threads=2, errors="return", **GOAL)
    assert [k for k, answer in enumerate(found) if isinstance(answer, Exception)] == [4]
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


def test_a_process_that_is_killed_costs_no_result(asked, monkeypatch):
    start = workers._Process.start

    def killed(self: workers._Process) -> None:
        start(self)
        self.kill()

    monkeypatch.setattr(workers._Process, "start", killed)
    found = solve_batch(graphs(12), threads=2, **GOAL)
    assert not any(asked)
    assert len(asked) <= 2  # none is asked again
    assert [r.energy for r in found] == [r.energy for r in solve_batch(graphs(12), **GOAL)]


def test_a_process_that_ends_at_once_costs_no_result(asked, monkeypatch):
    command = [sys.executable, "-c", "raise SystemExit(1)"]
    monkeypatch.setattr("multiprocessing.spawn.get_command_line", lambda **_: command)
    assert len(solve_batch(graphs(6), threads=2, **GOAL)) == 6
    assert not any(asked)


def test_a_process_that_cannot_be_started_costs_no_result(asked, monkeypatch):
    def refused(self: workers._Process) -> None:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(workers._Process, "start", refused)
    assert len(solve_batch(graphs(6), threads=2, **GOAL)) == 6
    assert not asked


def test_ctrl_c_ends_processes(asked, started, monkeypatch):
    press = threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT))

    def has_worker(self: Workers) -> bool:
        if (found := known(self)) and press.ident is None:
            press.start()  # once a process is about to be given a model
        return found

    known = Workers._has_worker
    monkeypatch.setattr(Workers, "_has_worker", has_worker)
    hard = generators.erdos_renyi(400, 4, seed=1)
    quick = generators.random_tree(5)
    with pytest.raises(KeyboardInterrupt):
        solve_batch([quick, quick, *[hard] * 6], threads=2, lp_gap=0.0, gap=0.0, goal="lp")
    assert press.ident is not None
    assert started
    assert all(map(ended, started))


@pytest.mark.parametrize("options", [{"processes": False}, {"verbose": True}])
def test_there_are_none_where_they_are_not_wanted(asked, options, capsys):
    solve_batch(graphs(6), threads=2, **options, **GOAL)
    assert not asked


def test_there_are_none_where_somebody_listens(asked, caplog):
    with caplog.at_level(logging.INFO, logger="softmap"):
        solve_batch(graphs(6), threads=2, **GOAL)
    assert not asked
    assert sum("solving" in line for line in caplog.messages) == 6


def test_they_are_started_where_much_is_left_to_do(started):
    models = graphs(10)

    def other(model: Model) -> None:
        thread = threading.Thread(target=pool.solve, args=(model, GOAL))
        thread.start()
        thread.join()

    with Workers(models, [{}] * 10, 2, allowed=True) as pool:
        pool.note(models[0], time.perf_counter() - 0.1)
        pool.solve(models[1], GOAL)  # as the first thread, which never has one
        other(models[2])
        assert not started
        pool.note(models[2], time.perf_counter() - 1.0)
        other(models[3])
        assert len(started) == 1
    assert ended(started[0])


def test_a_program_needs_no_guard(tmp_path):
    """A process imports softmap, not the program that calls it."""
    program = tmp_path / "program.py"
    program.write_text(
        "print('once')\n"
        "from softmap import generators, solve_batch\n"
        "from softmap.tasks.workers import WorkerRules, Workers\n"
        "Workers.rules = WorkerRules(worthwhile=0.0)\n"
        "models = [generators.erdos_renyi(60, 3, seed=k) for k in range(30)]\n"
        "print(len(solve_batch(models, threads=2, goal='lp', lp_gap=1e-3)))\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["once", "30"]
    assert not done.stderr

"""Threads of the search within a run: memory, Ctrl-C, and the answer of one thread."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest

from softmap import Status, core, generators, solve
from softmap.labels.exact import ExactSearch
from softmap.run.budget import Budget
from softmap.run.interrupts import Interrupts
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.subsolver import Board, Seen, Share
from softmap.subsolvers.search.search import Search, search_threads
from softmap.subsolvers.search.search_numbers import SearchNumbers
from support.stage_runs import begun, planned

pytestmark = pytest.mark.threads


def _endless():
    """A model whose search takes hours."""
    return generators.erdos_renyi(200, 6, seed=1)


def _seen(done: int) -> Board:
    """A check of the passes after as many steps."""
    return Board(Seen(done, done, float(done), 1.0, lambda: np.zeros(0)))


def _press(after: float) -> threading.Timer:
    timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


def test_ctrl_c_ends_a_long_slice_of_the_search():
    model = _endless()
    best = begun(model, np.zeros(model.network.half_size), np.zeros(model.n, int))
    problem = Problem.plain(model.network, threads=4)
    with Interrupts() as interrupts:
        budget = Budget(time_limit=100.0, interrupts=interrupts)
        began, timer = time.perf_counter(), _press(1.0)
        search = Search(problem, Options(time_limit=100.0))
        search(best, Share(budget, began + 90.0))
        timer.join()
        assert budget.stop() is Status.INTERRUPTED
        assert time.perf_counter() - began < 20.0  # 1.05 s on a machine that is not busy
    assert best.bound <= best.energy


def test_an_exception_of_a_signal_handler_leaves_a_search_that_goes_on():
    search = ExactSearch(_endless().network, dp_limit=0.0, threads=4, split_work=0)
    before = search.run(backtrack_limit=200)
    timer = _press(0.5)
    with pytest.raises(KeyboardInterrupt):
        search.run(deadline=core.Deadline(90.0))
    timer.join()
    after = search.run(backtrack_limit=200)
    assert before.lower_bound <= after.lower_bound <= after.energy
    assert after.nodes > before.nodes


def test_memory_limits_the_number_of_threads():
    model, numbers = _endless(), SearchNumbers()
    assert search_threads(model.network, 8, 1e12, numbers)[0] == 8
    assert search_threads(model.network, 8, 0.0, numbers) == (1, 0.0)
    threads, memory = search_threads(model.network, 8, 3e6, numbers)
    assert 1 < threads < 8
    assert 0 < memory <= 3e6


def test_runs_with_one_and_several_threads_prove_the_same_optimum():
    model = generators.erdos_renyi(45, 4, seed=3)
    found = [solve(model, goal="optimal", threads=k, time_limit=60.0) for k in (1, 4)]
    assert all(r.status is Status.OPTIMAL for r in found)
    assert found[1].energy == pytest.approx(found[0].energy, rel=1e-9)
    assert max(r.bound for r in found) <= min(r.energy for r in found) + 1e-9


@pytest.mark.parametrize("seconds", [None, 60.0])
def test_with_a_time_limit_the_first_search_follows_the_first_check(seconds):
    """From λ of more passes it takes fewer nodes, but it ends many runs before these passes."""
    model, numbers = _endless(), SearchNumbers()
    best = begun(model, np.zeros(model.network.half_size), np.zeros(model.n, int))
    search = Search(Problem.plain(model.network), Options(time_limit=seconds))
    assert not search.narrow  # else it comes early in any case
    urgent = [done for done in range(1, 40) if planned(search, best, _seen(done)).urgent]
    assert urgent[0] == (numbers.first_counted if seconds is None else numbers.first_timed)
    search(best, Share(Budget(), work=1, early=True, board=_seen(urgent[0])))
    assert not planned(search, best, _seen(4 * urgent[0] - 1)).urgent
    assert planned(search, best, _seen(4 * urgent[0])).urgent

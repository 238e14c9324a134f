"""Runs beside other threads, across a fork, from a read-only installation, on many threads."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import softmap
from softmap import Model, core, generators, solve
from softmap.later import unmade
from softmap.run.memory import MemoryEstimate
from softmap.tuning import Tuning

PASSES = ["anneal", "anneal-star", "trws", "mplp", "diffusion", "nesterov"]


def model_of(seed: int) -> Model:
    """Wide enough that a second thread is used."""
    return generators.random_grid(70, 70, 3, seed=seed)


def answer(model: Model, **options) -> tuple[float, float, float, bytes, bytes]:
    """All that a run finds, in 15 passes."""
    found = solve(model, max_work=2 * model.m * 15, lp_gap=0.0, gap=0.0, **options)
    return found.bound, found.primal, found.energy, found.labels.tobytes(), found.lam.tobytes()


@pytest.mark.threads
@pytest.mark.parametrize("method", PASSES)
def test_the_number_of_threads_changes_nothing(method):
    model = model_of(1)
    alone = answer(model, method=method, threads=1)
    for threads in (2, 7):
        assert answer(model, method=method, threads=threads) == alone


@pytest.mark.threads
def test_python_threads_may_solve_at_once():
    models = [model_of(seed) for seed in range(3)]
    expected = [answer(model, threads=2) for model in models]
    found: list[object] = [None] * 6

    def work(k: int) -> None:
        found[k] = answer(models[k % 3], threads=2)  # two threads share each model

    workers = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == expected * 2


FORKED = """
import os, sys
import softmap

model = softmap.generators.random_grid(50, 50, 3, seed=2)  # wide enough for two threads
options = dict(threads=2, max_work=2 * model.m * 25, lp_gap=0.0, gap=0.0)
same = softmap.solve(model, **options)
run = softmap.iterate(model, **options)
next(run)
child = os.fork()
*_, last = run
assert (last.bound, last.primal, last.energy) == (same.bound, same.primal, same.energy)
if child:
    _, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status))
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_forked_in_the_middle_of_a_run_goes_on_and_so_does_its_parent():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


def protect(folder: Path, writable: bool) -> None:
    """Take the right to write away from everybody, or give it back to the owner."""
    for path in [folder, *folder.rglob("*")]:
        mode = path.stat().st_mode
        path.chmod(mode | stat.S_IWUSR if writable else mode & ~0o222)


SOLVE = """
import sys
sys.meta_path = [f for f in sys.meta_path if "editable" not in type(f).__module__]
import softmap
print(softmap.__file__, softmap.solve(softmap.generators.potts_grid(6, 6, 3)).gap)
"""


def test_a_read_only_installation_without_a_home_solves(tmp_path):
    site = tmp_path / "site"
    shutil.copytree(Path(softmap.__file__).parent, site / "softmap")
    for built in Path(core.native.__file__ or "").parent.glob("_*"):  # may lie elsewhere
        if built.is_file():
            shutil.copy(built, site / "softmap" / "core")
    names = set(site.rglob("*"))
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("HOME", "XDG_"))}
    environment |= {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    protect(site, writable=False)
    try:
        done = subprocess.run(
            [sys.executable, "-c", SOLVE], cwd=site, env=environment, capture_output=True, text=True
        )
    finally:
        protect(site, writable=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(site))
    assert set(site.rglob("*")) == names


@pytest.mark.threads
def test_lambda_is_made_for_whichever_thread_asks():
    model, options = model_of(5), {"threads": 2, "goal": "lp", "lp_gap": 0.0}
    options["max_work"] = 2 * model.m * 25
    made = solve(model, **options)
    found = solve(model, tuning=Tuning(MemoryEstimate(lazy_entries=0)), **options)
    makers = [unmade(found, "lam"), unmade(found, "messages")]
    assert all(map(callable, makers))
    with ThreadPoolExecutor(4) as pool:
        arrays = list(pool.map(lambda k: makers[k % 2](), range(24)))
    for k, array in enumerate(arrays):
        np.testing.assert_array_equal(array, (made.lam, made.messages)[k % 2])


def answer_of(seed: int) -> tuple[float, float, float, bytes, bytes]:
    """What a process of a pool finds."""
    return answer(model_of(seed), threads=2)


@pytest.fixture(scope="module")
def answers():
    """What this process finds."""
    return [answer_of(seed) for seed in range(2)]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("start", multiprocessing.get_all_start_methods())
def test_processes_of_a_pool_find_the_same(start, answers):
    with ProcessPoolExecutor(2, multiprocessing.get_context(start)) as pool:
        assert list(pool.map(answer_of, range(2), timeout=200)) == answers


def test_a_callback_may_solve():
    tree, found = generators.random_tree(20, seed=1), []
    expected = solve(tree, threads=1).energy
    outer = answer(
        model_of(2), threads=2, on_snapshot=lambda _: found.append(solve(tree, threads=1).energy)
    )
    assert outer == answer(model_of(2), threads=2)
    assert len(found) > 1
    assert set(found) == {expected}


def test_runs_in_other_threads_leave_signals_alone():
    usual, seen = signal.getsignal(signal.SIGINT), set()
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(answer, model_of(1), threads=1)
        while not run.done():
            seen.add(signal.getsignal(signal.SIGINT))
            time.sleep(0.001)
    assert run.result() == answer(model_of(1), threads=1)
    assert seen == {usual}


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted by Linux")
def test_results_keep_no_threads():
    before = len(os.listdir("/proc/self/task"))
    kept = [solve(model_of(seed), max_work=100_000, threads=4) for seed in range(3)]
    assert len(os.listdir("/proc/self/task")) <= before
    assert all(result.threads == 4 for result in kept)

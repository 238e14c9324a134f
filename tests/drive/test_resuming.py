"""Runs that are stopped or killed, and gone on with."""

from __future__ import annotations

import functools
import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from softmap import Status, generators, resume
from softmap.errors import CheckpointError
from softmap.methods.base import METHODS
from softmap.methods.sweeps.chains import ChainNumbers
from softmap.tuning import TUNING
from support.other_numbers import large_models
from support.relaxed_runs import NEVER, PROVED, TINY, options_of, promised, same_result, solve


@pytest.fixture(scope="module")
def never_stopped(problem):
    """Runs that are not stopped: one for each method, and each memory that is to spare."""
    model, _ = problem

    @functools.cache
    def run(method, spare):
        assert spare == TUNING.of(ChainNumbers).spare
        return solve(model, **options_of(method, max_work=90 * 2 * model.m, **NEVER))

    return run


@pytest.mark.parametrize("sweeps", [0, 7, 20, 51])
@pytest.mark.parametrize("method", METHODS)
def test_resume_goes_on_as_if_never_stopped(method, sweeps, problem, never_stopped, tmp_path):
    model, relaxed = problem
    path, half = tmp_path / "run.npz", 2 * model.m
    whole = never_stopped(method, TUNING.of(ChainNumbers).spare)
    part = solve(model, **options_of(method, max_work=sweeps * half, checkpoint=path, **NEVER))
    promised(part, model, relaxed)
    assert part.work < whole.work
    again = resume(path, model, threads=1, max_work=90 * half)
    continued(again, whole, part)
    promised(again, model, relaxed)


def continued(again, whole, part):
    """As if never stopped; a value that the stopped run had found is kept if it is better."""
    better = part.bound > whole.bound or part.primal < whole.primal or part.energy < whole.energy
    if not better:
        same_result(again, whole)
        return
    assert again.bound == max(whole.bound, part.bound)
    assert again.primal == min(whole.primal, part.primal)
    assert again.energy == min(whole.energy, part.energy)
    assert (again.work, again.sweeps, again.eta) == (whole.work, whole.sweeps, whole.eta)
    np.testing.assert_array_equal(again.messages, whole.messages)
    left, right = again.trace.columns(), whole.trace.columns()
    for name in left:
        if name != "seconds":  # the last row has the values that were kept
            np.testing.assert_array_equal(left[name][: len(right[name]) - 1], right[name][:-1])


@pytest.mark.parametrize("sweeps", [7, 20, 51])
@pytest.mark.parametrize("method", ["anneal", "trws"])
def test_resume_where_the_best_bound_has_taken_the_memory_of_momentum(
    method, sweeps, problem, never_stopped, tmp_path
):
    with large_models():
        test_resume_goes_on_as_if_never_stopped(method, sweeps, problem, never_stopped, tmp_path)


def test_resume_after_other_stops(problem, tmp_path):
    model, _ = problem
    path, most = tmp_path / "run.npz", 2 * model.m * 60
    whole = solve(model, threads=1, max_work=most, **NEVER)

    def interrupt(snapshot):
        if snapshot.sweeps > 25:
            raise KeyboardInterrupt

    solve(model, threads=1, checkpoint=path, on_snapshot=interrupt, **NEVER)
    same_result(resume(path, model, threads=1, max_work=most), whole)
    solve(model, threads=1, checkpoint=path, on_snapshot=lambda s: s.sweeps < 25, **NEVER)
    same_result(resume(path, model, threads=1, max_work=most), whole)
    solve(model, threads=1, checkpoint=path, time_limit=0, **NEVER)
    same_result(resume(path, model, threads=1, max_work=most), whole)


def test_resume_of_a_finished_run_is_the_same_result(tmp_path):
    model, path = generators.potts_grid(6, 6, 3, seed=1), tmp_path / "run.npz"
    first = solve(model, checkpoint=path, threads=1)
    assert first.status in (*PROVED, Status.LP_GAP)
    again = resume(path, model, threads=1)
    same_result(again, first)


def test_a_checkpoint_that_does_not_fit_is_refused(problem, tmp_path):
    model, path = problem[0], tmp_path / "run.npz"
    solve(model, checkpoint=path, max_work=1000, threads=1)
    other = model.replace(unary=model.unary + 1e-12)
    with pytest.raises(CheckpointError, match="another model"):
        resume(path, other)
    with pytest.raises(TypeError, match="method"):
        resume(path, model, method="trws")
    with np.load(path) as file:
        arrays = dict(file)
    old = json.loads(arrays["header"].tobytes()) | {"version": 1}
    arrays["header"] = np.frombuffer(json.dumps(old).encode(), np.uint8)
    np.savez(tmp_path / "old.npz", **arrays)
    with pytest.raises(CheckpointError, match="a checkpoint of format 1, but this version"):
        resume(tmp_path / "old.npz", model)
    with pytest.raises(CheckpointError, match="no such"):
        resume(tmp_path / "missing.npz", model)
    whole = path.read_bytes()
    for damaged in (b"", b"nonsense", whole[: len(whole) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="not a softmap checkpoint"):
            resume(path, model)


RUN = """
import sys, softmap
from softmap.drive.record import Checkpoints
Checkpoints.interval = 0.0
model = softmap.generators.erdos_renyi(40, 3, seed=9)
show = lambda s: print(s.row.sweeps, flush=True)
result = softmap.solve(model, goal="lp", lp_gap=0.0, gap=0.0, checkpoint=sys.argv[1],
                       on_snapshot=show, method=sys.argv[2], threads=2, max_work=10**9)
print(result.status.name, result.energy == model.energy(result.labels), result.bound)
"""


@pytest.mark.parametrize(
    ("number", "method"), [(signal.SIGINT, "anneal"), (signal.SIGKILL, "mplp")]
)
def test_a_signal_loses_nothing(number, method, problem, tmp_path):
    model, relaxed = problem
    path = tmp_path / "run.npz"
    command = [sys.executable, "-c", "import softmap.drive.solve\n" + RUN, str(path), method]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        while float(child.stdout.readline()) < 41:  # the check before this one is stored
            pass
        time.sleep(0.01)
        child.send_signal(number)
        rest = child.stdout.read().split("\n")
    if number == signal.SIGINT:
        name, same, bound = rest[-2].split()
        assert (name, same) == ("INTERRUPTED", "True")
        assert float(bound) <= relaxed + TINY
        assert child.returncode == 0
    stored = resume(path, model, threads=2, max_work=0)
    assert stored.sweeps >= 40
    promised(stored, model, relaxed)
    goal = int(stored.work) + 2 * model.m * 30
    again = resume(path, model, threads=2, max_work=goal)
    whole = solve(model, method=method, threads=2, max_work=goal, **NEVER)
    same_result(again, whole)
    assert not list(tmp_path.glob("*.tmp")) or number == signal.SIGKILL

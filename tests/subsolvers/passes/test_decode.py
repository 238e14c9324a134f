"""Labels searched for beside the passes: the same whenever that happens, waited for or not."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest

import softmap
from softmap import generators, iterate, solve
from softmap.drive import checkpoint
from softmap.errors import CheckpointError
from softmap.io import store
from softmap.methods.policy import Checks
from softmap.subsolvers.passes.decode import Background, Decode
from softmap.subsolvers.passes.pass_numbers import PassNumbers
from softmap.subsolvers.search.search_numbers import SearchNumbers
from softmap.tuning import Tuning


@pytest.mark.parametrize("threaded", [False, True])
def test_what_is_found_is_handed_out_once_it_is_there(threaded):
    search = Background(lambda: 6 * 7, threaded=threaded)
    assert search.found() == 42
    assert search.found(0.0) == 42


@pytest.mark.parametrize("threaded", [False, True])
def test_an_error_is_raised_where_somebody_asks(threaded):
    search = Background(lambda: 1 // 0, threaded=threaded)
    with pytest.raises(ZeroDivisionError):
        search.found()


def test_nobody_waits_longer_than_was_said():
    go_on = threading.Event()
    search = Background(go_on.wait, threaded=True)
    assert search.found(0.01) is None
    go_on.set()
    assert search.found() is True


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_finds_it_by_itself():
    parent, go_on = os.getpid(), threading.Event()
    search = Background(lambda: go_on.wait() if os.getpid() == parent else True, threaded=True)
    child = os.fork()
    if not child:
        os._exit(0 if search.found() is True else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    go_on.set()
    assert search.found() is True


# --- in a run -------------------------------------------------------------------------------------

MODEL = generators.erdos_renyi(300, 3, seed=2)  # far from tight: labels cannot end the relaxation
OPTIONS = {"max_work": 2 * MODEL.m * 100, "goal": "labels"}


def watched(monkeypatch) -> list[int]:
    """After how many passes labels were searched for beside others."""
    begun: list[int] = []
    plain = Decode._start

    def start(self, done, *rest):
        plain(self, done, *rest)
        begun.append(done)

    monkeypatch.setattr(Decode, "_start", start)
    return begun


def numbers(rows):
    """All of a trace but the seconds."""
    return [(r.work, r.bound, r.primal, r.energy, r.stage) for r in rows]


@pytest.mark.threads
def test_labels_are_searched_for_beside_the_passes_and_taken_at_the_next_check(monkeypatch):
    begun = watched(monkeypatch)
    one, two = (solve(MODEL, threads=threads, **OPTIONS) for threads in (1, 2))
    assert begun == [20, 80] * 2
    assert numbers(one.trace.rows) == numbers(two.trace.rows)
    rows = [row for row in one.trace.rows if row.stage == "relaxation"]
    at = next(k for k, row in enumerate(rows) if row.sweeps == 80)
    assert rows[at + 1].energy < rows[at].energy


def test_what_is_awaited_is_part_of_a_checkpoint(monkeypatch, tmp_path):
    begun = watched(monkeypatch)
    path = tmp_path / "run.ckpt"
    whole = solve(MODEL, threads=1, **OPTIONS)
    stopped = iterate(MODEL, threads=2, checkpoint=path, **OPTIONS)
    monkeypatch.setattr("softmap.drive.record.Checkpoints.interval", 0.0)
    for snapshot in stopped:
        if begun[-1:] == [80] and snapshot.sweeps >= 80:
            break
    next(stopped)  # which stores it after the check at 80 passes
    stopped.close()
    _, arrays = store.read_archive(path, "checkpoint", checkpoint.VERSION, CheckpointError)
    assert "subsolver/Decode/pending" in arrays
    resumed = softmap.resume(path, MODEL, threads=2, max_work=OPTIONS["max_work"])
    assert numbers(resumed.trace.rows) == numbers(whole.trace.rows)
    np.testing.assert_array_equal(resumed.labels, whole.labels)


def test_a_time_limit_comes_before_labels(monkeypatch):
    go_on = threading.Event()
    plain = softmap.labels.LabelSearch.look

    def look(self, *args, **named):
        if threading.current_thread() is not threading.main_thread():
            go_on.wait()
        return plain(self, *args, **named)

    monkeypatch.setattr("softmap.labels.LabelSearch.look", look)
    began = time.perf_counter()
    found = solve(MODEL, threads=2, goal="labels", time_limit=1.0)
    try:
        assert time.perf_counter() - began < 30.0  # nobody waits for what never comes
        assert found.energy == MODEL.energy(found.labels)
    finally:
        go_on.set()


def test_a_run_that_is_stopped_has_what_was_found_beside(monkeypatch):
    begun = watched(monkeypatch)
    found = solve(MODEL, threads=2, on_snapshot=lambda s: begun[-1:] != [80], **OPTIONS)
    assert found.status.name == "CALLBACK"
    assert begun == [20, 80]
    assert found.energy == MODEL.energy(found.labels) == found.trace[-1].energy
    assert found.energy < found.trace[-2].energy
    assert softmap.verify(found).holds


def test_an_exact_search_begins_with_what_was_found_beside(monkeypatch):
    begun = watched(monkeypatch)
    checks = Checks(first=20, second=40, early=80, interval=80, shortest=20)
    late = Tuning(checks, SearchNumbers(first_counted=80), PassNumbers(urgent=80))
    rows = solve(MODEL, threads=2, tuning=late, **OPTIONS | {"goal": "map"}).trace.rows
    assert begun == [80]
    at = [row.sweeps == 80 for row in rows].index(True)
    assert [row.stage for row in rows[at : at + 2]] == ["relaxation", "search"]
    assert rows[at + 1].energy < rows[at].energy

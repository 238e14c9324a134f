"""What a run has reached after its checkpoint is in the file, and a resumed run ends with it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import softmap
from softmap.drive.record import Checkpoints
from softmap.run.best import Best
from softmap.run.evidence import Stated
from softmap.run.problem import Problem
from softmap.run.trace import Status

GRAPH = softmap.generators.erdos_renyi(60, seed=2)
GRID = softmap.generators.potts_grid(10, 10, 4, seed=3)


def not_worse(again, first) -> None:
    assert again.bound >= first.bound
    assert again.lp_bound >= first.lp_bound
    assert again.energy <= first.energy
    assert again.primal <= first.primal
    assert softmap.verify(again).holds


@pytest.mark.parametrize("model", [GRAPH, GRID], ids=["graph", "grid"])
@pytest.mark.parametrize("goal", ["map", "optimal", "labels", "lp"])
@pytest.mark.parametrize("sweeps", [1, 4, 9, 60, 700])
def test_a_resumed_run_with_the_same_limit_is_not_worse(model, goal, sweeps, tmp_path):
    path, most = tmp_path / "run.npz", 2 * model.m * sweeps
    first = softmap.solve(model, goal=goal, threads=1, max_work=most, checkpoint=path)
    not_worse(softmap.resume(path, model, threads=1, max_work=most), first)
    not_worse(softmap.resume(path, model, threads=1, time_limit=0.0), first)


def _searching(snapshot):
    """Stop once a search has raised the bound above that of the relaxation."""
    return not snapshot.bound > snapshot.lp_bound


def test_what_a_search_had_found_is_not_lost(tmp_path):
    path = tmp_path / "run.npz"
    first = softmap.solve(GRAPH, threads=1, checkpoint=path, on_snapshot=_searching)
    assert first.bound > first.lp_bound
    again = softmap.resume(path, GRAPH, threads=1, max_work=1)
    not_worse(again, first)
    assert again.proof.kind == first.proof.kind


def test_it_is_kept_by_runs_that_do_not_come_as_far(tmp_path):
    """A resumed run that stores itself passes on what an earlier part had reached."""
    path = tmp_path / "run.npz"
    first = softmap.solve(GRAPH, threads=1, checkpoint=path, on_snapshot=_searching)
    for _ in range(2):
        between = softmap.resume(path, GRAPH, threads=1, max_work=1, checkpoint=path)
        not_worse(between, first)
    not_worse(softmap.resume(path, GRAPH, threads=1, time_limit=0.0), first)


def test_a_run_that_was_proved_is_proved_when_resumed(tmp_path):
    path = tmp_path / "run.npz"
    first = softmap.solve(GRAPH, threads=1, checkpoint=path, goal="optimal")
    assert first.status is Status.OPTIMAL
    again = softmap.resume(path, GRAPH, threads=1, time_limit=0.0)
    assert (again.status, again.energy, again.bound) == (first.status, first.energy, first.bound)


def test_a_checkpoint_that_vanished_does_not_cost_the_result(tmp_path):
    path, most = tmp_path / "run.npz", 2 * GRID.m * 9

    def vanish(_):
        path.unlink(missing_ok=True)  # written before the last check, whose snapshot this is

    with pytest.warns(softmap.CheckpointWarning, match="no such checkpoint"):
        found = softmap.solve(
            GRID, goal="lp", threads=1, checkpoint=path, max_work=most, on_snapshot=vanish
        )
    assert found.status is Status.WORK_LIMIT
    assert not path.exists()


def test_another_file_at_the_path_is_left_alone(tmp_path):
    """Only a file that this run has written, or was resumed from, is added to."""
    path, other = tmp_path / "run.npz", tmp_path / "other.npz"
    softmap.solve(GRAPH, threads=1, checkpoint=path, on_snapshot=_searching)
    other.write_bytes(b"mine")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoints, "save", lambda self: None)
        softmap.resume(path, GRAPH, threads=1, time_limit=0.0, checkpoint=other)
    assert other.read_bytes() == b"mine"


def test_values_set_aside_are_taken_once_and_only_if_better():
    best, other = Best(Problem.plain(GRID.network)), Best(Problem.plain(GRID.network))
    labels = np.zeros(GRID.n, dtype=np.int64)
    other.offer_zero()
    other.offer_labels(labels)
    other.offer_bound(Stated(value=other.bound + 1.0, nodes=3))
    best.set_aside(other.snapshot())
    assert not best.found
    assert best.bound == -math.inf
    assert best.take_aside()
    assert (best.bound, best.energy) == (other.bound, other.energy)
    assert best.evidence.nodes == 3
    assert not best.take_aside()


def test_a_stated_bound_is_proved_again_where_a_proof_is_recorded():
    best, other = Best(Problem.plain(GRID.network)), Best(Problem.plain(GRID.network))
    other.offer_zero()
    other.offer_bound(Stated(value=other.bound + 1.0, nodes=3))
    best.set_aside(other.snapshot(), recorded=True)
    best.take_aside()
    assert best.bound == other.lp_bound
    assert best.take_unrecorded()
    assert best.bound == other.bound

"""Nothing is lost: Ctrl-C, full disks, callbacks that raise, damaged files, killed processes."""

from __future__ import annotations

import errno
import os
import random
import signal

import numpy as np
import pytest

import softmap
from adversary.kills import killed_and_resumed
from softmap import Model, Tables, generators, resume, solve
from softmap.drive import checkpoint as storage
from softmap.errors import CheckpointError, CheckpointWarning, FormatError
from softmap.io import store
from softmap.run.interrupts import Interrupts
from softmap.run.judge import Judge
from softmap.run.trace import Status
from softmap.tasks import mbest, parts, summed

NEVER = {"lp_gap": 0.0, "gap": 0.0, "goal": "lp", "threads": 1}


@pytest.fixture
def model() -> Model:
    return generators.erdos_renyi(30, 3, seed=9)


def press(monkeypatch, owner, name: str, times: int = 1, number: int = signal.SIGINT) -> None:
    """Press Ctrl-C within a function, each time it is called; once if it writes files."""
    usual, left = getattr(owner, name), [1 if name.startswith("write") else 1 << 30]

    def pressing(*given, **named):
        if left[0]:
            left[0] -= 1
            for _ in range(times):
                signal.raise_signal(number)
        return usual(*given, **named)

    monkeypatch.setattr(owner, name, pressing)


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize(
    ("owner", "name"), [(softmap.drive.record, "assembled"), (storage, "write_archive")]
)
def test_ctrl_c_at_the_end_and_while_saving_keeps_the_result(
    model, monkeypatch, tmp_path, owner, name, times
):
    path, most = tmp_path / "run.npz", 2 * model.m * 30
    with monkeypatch.context() as patch:
        press(patch, owner, name, times)
        if times == 1:
            found = solve(model, checkpoint=path, max_work=most, **NEVER)
        else:
            with pytest.raises(KeyboardInterrupt) as left:
                solve(model, checkpoint=path, max_work=most, **NEVER)
            found = left.value.result
    assert found.energy == model.energy(found.labels)
    assert resume(path, model, max_work=most, threads=1).bound == found.bound
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def pressed(times: float, number: int = signal.SIGINT):
    """A callback that presses Ctrl-C at the first checks."""
    left = [times]

    def pressing(snapshot):
        if left[0] > 0:
            left[0] -= 1
            signal.raise_signal(number)

    return pressing


@pytest.mark.parametrize("within", [True, False])
def test_the_signal_of_termination_ends_a_run_as_ctrl_c_does(model, monkeypatch, within):
    if within:
        press(monkeypatch, Judge, "look", number=signal.SIGTERM)
    found = solve(model, on_snapshot=pressed(not within, signal.SIGTERM), **NEVER)
    assert found.status is Status.INTERRUPTED
    assert found.energy == model.energy(found.labels)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_handler_of_the_program_for_termination_is_left_in_place(model):
    seen = []
    before = signal.signal(signal.SIGTERM, lambda *_: seen.append(1))
    try:
        solve(model, on_snapshot=lambda _: signal.raise_signal(signal.SIGTERM), max_work=2000)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen


@pytest.mark.parametrize("early", [True, False])
def test_the_outer_of_two_interruptible_blocks_knows_of_a_signal(early):
    with Interrupts() as outer:
        if early:  # it ends what begins later, too
            signal.raise_signal(signal.SIGTERM)
        with Interrupts() as inner:
            if not early:
                signal.raise_signal(signal.SIGTERM)
            assert inner.noted
            assert inner.within(1e9).passed
        assert outer.noted
        assert outer.within(1e9).passed
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("files", [True, False])
def test_an_interrupted_search_for_labellings_returns_those_found(
    model, monkeypatch, tmp_path, number, files
):
    proof = {"proof": tmp_path / "proof"} if files else {}
    with monkeypatch.context() as patch:
        patch.setattr(mbest, "_by_elimination", lambda *_: None)
        press(patch, parts.Partition, "_changed", number=number)
        patch.setattr(Interrupts, "soon", -1.0)  # each is the first
        patch.setattr(Interrupts, "_note", lambda self, *_: self._noted())
        found = softmap.solve_mbest(model, 3, threads=1, **proof)
    assert len(found) == 3
    least = solve(model, goal="optimal", threads=1).energy
    for entry in found:
        assert entry.energy == model.energy(entry.labels)
        assert entry.bound <= entry.energy
    assert found[0].energy == pytest.approx(least)
    assert not found[2].proved
    if files:
        assert softmap.verify(model, proof=tmp_path / "proof").holds
    assert signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)


def test_an_interrupted_marginal_map_returns_its_bounds(monkeypatch):
    grid = generators.potts_grid(6, 6, 3, seed=1)
    press(monkeypatch, summed._MaxSearch, "_step", number=signal.SIGTERM)
    monkeypatch.setattr(Interrupts, "_note", lambda self, *_: self._noted())
    found = softmap.marginal_map(grid, sum_over=range(0, 36, 2), table=4)
    assert found.status is Status.INTERRUPTED
    assert found.bound <= found.energy
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_ctrl_c_once_in_each_run_of_a_loop_ends_each_run(model):
    for _ in range(3):
        Interrupts.last = -np.inf  # as if a second had passed
        assert solve(model, on_snapshot=pressed(1), **NEVER).status is Status.INTERRUPTED


def test_a_second_ctrl_c_within_a_second_leaves_the_loop(model):
    first = solve(model, on_snapshot=pressed(1), **NEVER)
    assert first.status is Status.INTERRUPTED
    with pytest.raises(KeyboardInterrupt) as left:
        solve(model, on_snapshot=pressed(1), **NEVER)
    assert left.value.result.status is Status.INTERRUPTED
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_two_presses_in_one_step_leave_the_loop(model, monkeypatch):
    press(monkeypatch, Judge, "look", 2)
    with pytest.raises(KeyboardInterrupt) as left:
        solve(model, **NEVER)
    found = left.value.result
    assert found.energy == model.energy(found.labels)


def test_a_second_ctrl_c_much_later_returns_the_result(model, monkeypatch):
    def forget(self):
        Interrupts.last = -np.inf

    monkeypatch.setattr(Interrupts, "press", forget)
    press(monkeypatch, Judge, "look", 2)
    assert solve(model, **NEVER).status is Status.INTERRUPTED


def test_ctrl_c_during_set_up_returns_the_first_result(model, monkeypatch):
    press(monkeypatch, softmap.run.problem, "scaled")
    found = solve(model, **NEVER)
    assert found.status is Status.INTERRUPTED
    assert found.bound <= found.energy == model.energy(found.labels)


def test_ctrl_c_of_a_program_with_its_own_handler_is_not_hidden_by_zipfile(tmp_path, monkeypatch):
    def pressed(file, arrays):
        try:
            raise KeyboardInterrupt
        finally:
            raise ValueError("Can't close the ZIP file")

    monkeypatch.setattr(store, "write_arrays", pressed)
    with pytest.raises(KeyboardInterrupt):
        store.write_archive(tmp_path / "run.npz", {}, {})
    assert not list(tmp_path.iterdir())


def test_a_full_disk_costs_only_the_checkpoint(model, monkeypatch, tmp_path):
    path, most = tmp_path / "run.npz", 2 * model.m * 60
    solve(model, checkpoint=path, max_work=2 * model.m * 10, **NEVER)
    good = path.read_bytes()

    def full(file, arrays):
        file.write(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(store, "write_arrays", full)
        with pytest.warns(CheckpointWarning, match="No space left"):
            found = solve(model, checkpoint=path, max_work=most, **NEVER)
    assert found.bound == solve(model, max_work=most, **NEVER).bound
    assert [p.name for p in tmp_path.iterdir()] == ["run.npz"]
    assert path.read_bytes() == good


def test_a_folder_that_vanishes_costs_only_the_checkpoint(model, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()

    def vanish(snapshot):
        if folder.exists():
            folder.rmdir()

    with pytest.warns(CheckpointWarning):
        found = solve(
            model, checkpoint=folder / "run.npz", on_snapshot=vanish, max_work=9999, **NEVER
        )
    assert found.status is Status.WORK_LIMIT


def test_an_exception_of_a_callback_carries_the_result(model, tmp_path):
    path, most = tmp_path / "run.npz", 2 * model.m * 60

    def fail(snapshot):
        if snapshot.sweeps > 15:
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        solve(model, checkpoint=path, on_snapshot=fail, **NEVER)
    found = caught.value.result
    assert found.energy == model.energy(found.labels)
    assert any("result" in note for note in caught.value.__notes__)
    again = resume(path, model, max_work=most, threads=1)
    assert again.bound == solve(model, max_work=most, **NEVER).bound


def test_labels_of_snapshots_cannot_be_written_to(model):
    def spoil(snapshot):
        with pytest.raises(ValueError, match="read-only"):
            snapshot.labels[:] = 0
        snapshot.labels.flags.writeable = True
        snapshot.labels[:] = 2

    found = solve(model, on_snapshot=spoil, max_work=9999, **NEVER)
    assert found.energy == model.energy(found.labels)


def test_false_of_numpy_stops(model):
    found = solve(model, on_snapshot=lambda s: np.bool_(s.sweeps < 10), **NEVER)
    assert found.status is Status.CALLBACK


def test_a_stalled_run_does_nothing_more_when_resumed(model, tmp_path):
    path = tmp_path / "run.npz"
    first = solve(model, method="mplp", checkpoint=path, **NEVER)
    again = resume(path, model, threads=1)
    assert first.status is again.status is Status.STALLED
    assert (first.work, len(first.trace)) == (again.work, len(again.trace))


def test_randomised_methods_stop_when_they_stall():
    model = generators.random_tree(6, seed=1)
    assert softmap.paper.solve(model, method="emp", eta=1.0, **NEVER).status is Status.STALLED


def damages(whole: bytes, count: int):
    """Truncated files, flipped bits, bytes cut out."""
    rng = random.Random(5)
    for k in range(count):
        at = rng.randrange(len(whole))
        if k % 3 == 0:
            yield whole[:at]
        elif k % 3 == 1:
            yield whole[:at] + bytes([whole[at] ^ (1 << rng.randrange(8))]) + whole[at + 1 :]
        else:
            yield whole[:at] + whole[at + rng.randrange(1, 50) :]


def test_damaged_files_raise_one_kind_of_error(tmp_path):
    model = generators.random_grid(3, 3, 2, seed=1)
    path, other = tmp_path / "run.npz", tmp_path / "result.npz"
    found = solve(model, checkpoint=path, max_work=2 * model.m * 20, **NEVER)
    found.save(other)
    for damaged in damages(path.read_bytes(), 99):
        path.write_bytes(damaged)
        try:
            again = resume(path, model, threads=1, max_work=2 * model.m * 20)
        except CheckpointError:
            continue
        assert again.bound == found.bound  # bytes that zip files do not use
    for damaged in damages(other.read_bytes(), 99):
        other.write_bytes(damaged)
        try:
            assert softmap.load_result(other) == found
        except FormatError:
            continue


def changed_archive(path, target, change) -> None:
    """Write an archive whose members `change` has changed, with the digest that belongs to it."""
    header, arrays = store.read_archive(path, "checkpoint", storage.VERSION, CheckpointError)
    header.pop("digest")
    change(header, arrays)
    whole = header | {"digest": store.digest(header, arrays)}
    store.write_archive(target, whole, arrays)


@pytest.mark.parametrize(
    "change",
    [
        lambda h, a: a.pop("lam"),
        lambda h, a: a.pop("trace"),
        lambda h, a: a.pop("subsolver/Passes/done"),
        lambda h, a: a.update({"subsolver/Passes/done": np.array(-5)}),
        lambda h, a: h.update(seconds="long"),
        lambda h, a: a.update({"subsolver/Passes/best_gap": np.array([1.0])}),
        lambda h, a: a.update({"subsolver/Decode/decoded_at": np.array(-1)}),
        lambda h, a: h.update(stages=["relaxation", 3]),
        lambda h, a: h.update(stages=[]),
        lambda h, a: a.update(lam=a["lam"][:-1]),
        lambda h, a: a.update(lam=a["lam"].astype(np.float32)),
        lambda h, a: a.update(labels=a["labels"] + 100),
        lambda h, a: a.update(labels=a["labels"].reshape(1, -1)),
        lambda h, a: a.update(trace=a["trace"][:, :3]),
        lambda h, a: h.update(settings=None),
        lambda h, a: h.update(settings={"method": "none"}),
    ],
)
def test_checkpoints_with_other_members_are_refused(model, tmp_path, change):
    path = tmp_path / "run.npz"
    solve(model, checkpoint=path, max_work=2 * model.m * 20, **NEVER)
    changed_archive(path, path, change)
    with pytest.raises(CheckpointError):
        resume(path, model)


def test_time_runs_out_with_a_valid_bound():
    model = generators.stereo_grid(24, 24, 10, seed=1)
    for limit in (0.0, 0.001, 0.01, 0.05):
        found = solve(model, time_limit=limit)
        assert found.bound <= found.energy == model.energy(found.labels)
        assert softmap.verify(found).holds


def infeasible_looking() -> Model:
    """All different over few colours: hard constraints that local consistency cannot refute."""
    pairs = [(i, j) for i in range(8) for j in range(i)]
    table = np.where(np.eye(7, dtype=bool), np.inf, 0.0)
    return Model(np.zeros((8, 7)), pairs, Tables(np.stack([table] * len(pairs))))


def test_nothing_found_is_said():
    from softmap.app.cli.summary import exit_code
    from softmap.views.words import certificate_sentences

    found = solve(infeasible_looking(), goal="lp", max_work=100, threads=1)
    assert not found.found
    assert exit_code(found) == 3
    assert "No labelling that satisfies" in certificate_sentences(found)[0]


def test_killed_runs_end_as_if_never_killed(tmp_path):
    assert killed_and_resumed(tmp_path, times=3, seed=1, work=500_000) > 0

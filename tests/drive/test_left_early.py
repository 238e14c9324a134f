"""Whatever ends a run early, its checkpoint and its proof are written."""

import gc
import os
import signal

import pytest

import softmap
from softmap.run.options import Options
from softmap.verification.proof import check_proof


@pytest.fixture(scope="module")
def model():
    return softmap.generators.potts_grid(12, 12, 4, seed=1)


OPTIONS = {"goal": "optimal", "threads": 1}


def holds(model, folder):
    """The checkpoint and the proof of a run are there, and true."""
    proved = check_proof(folder / "proof", model.network)
    again = softmap.resume(folder / "run.npz", model, max_work=1, threads=1)
    assert proved.bound <= again.energy
    return again


def files(folder):
    return {"checkpoint": folder / "run.npz", "proof": folder / "proof"}


def test_a_loop_over_snapshots_may_be_left(model, tmp_path):
    for count, snapshot in enumerate(softmap.iterate(model, **OPTIONS, **files(tmp_path))):  # noqa: B007
        if count == 2:
            break
    gc.collect()
    again = holds(model, tmp_path)
    assert again.bound >= snapshot.bound
    assert again.energy <= snapshot.energy


def test_a_generator_that_is_closed_stores_nothing_that_was_not_asked_for(model, tmp_path):
    steps = softmap.iterate(model, **OPTIONS)
    next(steps)
    steps.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", [SystemExit, RuntimeError, KeyboardInterrupt])
def test_what_a_callback_raises_loses_nothing(kind, model, tmp_path):
    def raising(snapshot):
        raise kind("enough")

    options = OPTIONS | files(tmp_path)
    if kind is KeyboardInterrupt:  # it ends the run as Ctrl-C does
        result = softmap.solve(model, on_snapshot=raising, **options)
        assert result.status is softmap.Status.INTERRUPTED
    else:
        with pytest.raises(kind, match="enough") as raised:
            softmap.solve(model, on_snapshot=raising, **options)
        result = raised.value.result
    assert softmap.verify(result).holds
    assert holds(model, tmp_path).energy <= result.energy


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="this system has no SIGHUP")
def test_a_terminal_that_hangs_up_ends_a_run_as_ctrl_c_does(model, tmp_path):
    options = OPTIONS | files(tmp_path)
    hang_up = lambda snapshot: signal.raise_signal(signal.SIGHUP)  # noqa: E731
    result = softmap.solve(model, on_snapshot=hang_up, **options)
    assert result.status is softmap.Status.INTERRUPTED
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
    holds(model, tmp_path)


def test_two_files_of_a_run_are_two_files(model, tmp_path):
    path = tmp_path / "one"
    with pytest.raises(softmap.OptionError, match="checkpoint names the same file"):
        softmap.solve(model, checkpoint=path, proof=path)
    path.touch()
    os.symlink(path, tmp_path / "link")
    with pytest.raises(softmap.OptionError, match="checkpoint names the same file"):
        softmap.solve(model, checkpoint=path, proof=tmp_path / "link")
    Options(checkpoint=os.devnull, proof=os.devnull)  # devices are no files
    softmap.solve(model, checkpoint=path, max_work=1)
    with pytest.raises(softmap.OptionError, match="path names the same file"):
        softmap.resume(path, model, proof=path)


def test_the_command_prints_and_writes_what_an_exception_carries(
    model, tmp_path, monkeypatch, capsys
):
    from softmap.app.cli.app import main
    from softmap.drive.loop import Run

    def failing(self, *arguments):
        raise RuntimeError("lost")

    source, labels = tmp_path / "model.npz", tmp_path / "x.MPE"
    softmap.write(model, source)
    monkeypatch.setattr(Run, "_next_turn", failing)
    saved = tmp_path / "result.npz"
    words = ["solve", str(source), "--output", str(labels), "--save", str(saved), "--no-progress"]
    assert main(words) == 1
    out, err = capsys.readouterr()
    assert "energy" in out
    assert "RuntimeError: lost" in err
    assert labels.exists()
    assert softmap.verify(softmap.load_result(saved, model)).holds

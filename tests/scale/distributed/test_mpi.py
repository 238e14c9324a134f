"""Real processes: the number of them changes nothing, and none of them is waited for when dead."""

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import softmap
from softmap import distributed, generators
from softmap.app.cli.app import main
from support.whole_runs import check, labels_of, lam_of, numbers

pytest.importorskip("mpi4py")
DRIVER = Path(__file__).parents[2] / "support" / "distributed_driver.py"
FOLDERS = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
PROGRAM = shutil.which("mpiexec", path=FOLDERS)
if PROGRAM is None:
    pytest.skip("no mpiexec", allow_module_level=True)
    raise AssertionError

from support.distributed_driver import CASES, OPTIONS, PARTS, PASSES  # noqa: E402
from support.killing import go_on, killed, mpiexec  # noqa: E402


def finished(process: subprocess.Popen) -> str:
    text, _ = process.communicate(timeout=100)
    assert process.returncode == 0, text
    return text


def test_the_number_of_processes_changes_nothing(tmp_path):
    """Groups of 1, 2, 4 and 8 processes find, to the bit, what one finds without MPI."""
    expected = {}
    for name, make in CASES.items():
        model = make()
        distributed.write_parts(model, tmp_path / name, PARTS)
        result = distributed.solve(tmp_path / name, max_passes=PASSES, **OPTIONS)
        check(model, result)
        assert result.bound <= softmap.solve(model).energy
        labels, lam = labels_of(model, [result.labels]), lam_of(model, [result.lam])
        expected[name] = model, numbers(result), labels, lam
    finished(mpiexec(8, DRIVER, "cases", tmp_path))
    for processes in (1, 2, 4, 8):
        found = json.loads((tmp_path / f"found-{processes}.json").read_text())
        assert 0 <= found["infeasible"] < 20
        for name, (model, figures, labels, lam) in expected.items():
            their_figures, their_labels, their_lam, sent = found[name]
            assert tuple(their_figures) == figures, (name, processes)
            assert np.array_equal(their_labels, labels), (name, processes)
            assert np.array_equal(their_lam, lam), (name, processes)
            assert sent <= 2 * 8 * int(model.num_labels.max()) * model.m


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_a_killed_process_ends_the_others_and_the_run_goes_on(tmp_path):
    model = generators.random_grid(12, 12, 3, seed=1)
    distributed.write_parts(model, tmp_path / "model", 8)
    seconds = killed(tmp_path / "model", tmp_path / "out", 2, random.Random(1), within=0.5)
    assert seconds < 20  # not a measure of speed: they would wait for ever
    go_on(model, tmp_path / "model", tmp_path / "out")


def test_the_command_alone_and_under_mpiexec(tmp_path, capsys):
    model = generators.potts_grid(10, 10, 3, seed=3)
    softmap.write(model, tmp_path / "grid.npz")
    options = ["--parts", "4", "--threads", "1", "--no-progress"]
    words = ["solve-large", str(tmp_path / "grid.npz"), *options]
    proof = str(tmp_path / "grid.proof")
    finished(mpiexec(2, "-m", "softmap", *words, "--out", tmp_path / "two", "--proof", proof))
    missing = mpiexec(2, "-m", "softmap", "solve-large", tmp_path / "no.npz", "--out", tmp_path)
    expected = distributed.solve(model, parts=4, threads=1)
    facts = json.loads((tmp_path / "two" / "result.json").read_text())
    assert (facts["bound"], facts["energy"]) == (expected.bound, expected.energy)
    assert facts["processes"] == 2
    assert main(["verify", str(tmp_path / "grid.npz"), "--proof", proof]) == 0
    assert f"{expected.energy!r} found" in capsys.readouterr().out
    labels = softmap.io.read_labels(tmp_path / "two" / "labels.MPE")
    assert model.energy(labels) == pytest.approx(expected.energy)
    pieces = [np.load(tmp_path / "two" / f"labels-{k:05d}.npz") for k in range(4)]
    for piece in pieces:
        assert np.array_equal(labels[piece["variables"]], piece["labels"])
    said = missing.communicate(timeout=100)[0]
    assert missing.returncode == 2
    assert "process 0 of 2: " in said
    assert "no.npz" in said
    assert main([*words, "--out", str(tmp_path / "two"), "--resume"]) == 0
    assert "lp_gap" in capsys.readouterr().out

"""Failures on purpose, a sample of them; tests/faults/files.py and memory.py try all of them."""

from __future__ import annotations

import errno
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import softmap
from softmap import core
from softmap.io import store as archive
from softmap.model.layout import _arrays

HERE = Path(__file__).resolve().parent
needs_compiler = pytest.mark.skipif(
    not sys.platform.startswith("linux")
    or shutil.which("cc") is None
    or shutil.which("c++") is None,
    reason="needs Linux and a compiler",
)


def ran(program: str, *words: str) -> str:
    command = [sys.executable, str(HERE / program), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_compiler
@pytest.mark.timeout(900)  # many processes, perhaps on a busy machine
def test_calls_of_the_operating_system_that_fail():
    some = ["json", "verify-proof", "many-proofs", "large", "convert-lp", "programs"]
    said = ran("files.py", "--only", *some, "--every", "20")
    assert int(re.search(r"(\d+) runs, 0 wrong", said.splitlines()[-1])[1]) > 20


@needs_compiler
@pytest.mark.timeout(900)  # many processes, perhaps on a busy machine
def test_allocations_that_fail():
    said = ran("memory.py", "--only", "cut", "decoding", "--seeds", "1", "--every", "11")
    counts = [int(line.split()[1]) for line in said.splitlines()[:-1]]
    assert len(counts) == 2
    assert min(counts) > 1


@pytest.mark.timeout(900)  # many runs, perhaps on a busy machine
def test_calls_of_stages_that_fail():
    said = ran("stages.py", "--only", "spins", "relaxed", "--seeds", "1", "--every", "60")
    assert int(re.search(r"(\d+) failed calls, 0 wrong", said.splitlines()[-1])[1]) > 8


def test_an_archive_that_cannot_be_read_says_why(tmp_path, monkeypatch):
    path = tmp_path / "result.npz"
    softmap.solve(softmap.generators.random_tree(5, seed=1)).save(path)

    class Broken(io.FileIO):
        def readinto(self, room):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(archive, "_open", lambda path: io.BufferedReader(Broken(path)))
    with pytest.raises(softmap.SoftmapError, match=r"cannot be read: Input/output error"):
        softmap.load_result(path)


@pytest.mark.parametrize("name", ["kind", "half"])
def test_arrays_that_are_refused_are_released(name):
    model = softmap.generators.random_tree(5, seed=1)
    whole = _arrays(model.network) | {
        "start": model.network.graph.start,
        "half": model.network.graph.half,
    }
    arrays = {k: np.ascontiguousarray(a) for k, a in whole.items()}
    arrays[name] = arrays[name][:-1].copy()
    before = sys.getrefcount(arrays["unary"])
    for _ in range(3):
        with pytest.raises(ValueError, match=name):
            core.Layout(arrays)
    after = sys.getrefcount(arrays["unary"])
    assert after == before

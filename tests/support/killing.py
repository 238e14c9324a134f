"""Runs under mpiexec whose processes are killed at random moments.

python tests/killing.py 20      kill so many runs, go on from each, and say what was seen
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from softmap import CheckpointError, Model, distributed, generators
from softmap.scale.distributed.storage import read_manifest
from support.distributed_driver import OPTIONS
from support.whole_runs import check, numbers

DRIVER = Path(__file__).parent / "distributed_driver.py"
MORE = 40  # passes after a checkpoint
ENVIRONMENT = os.environ | {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",  # there are more processes than cores
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "PYTHONWARNINGS": "ignore",
}


def mpiexec(processes: int, *words: object) -> subprocess.Popen[str]:
    folders = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    program = shutil.which("mpiexec", path=folders) or "mpiexec"
    command = [program, "-n", str(processes), sys.executable, *map(str, words)]
    return subprocess.Popen(
        command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def killed(
    folder: Path, out: Path, processes: int, rng: random.Random, within: float = 2.0
) -> float:
    """Start a run, kill one of its processes at a random moment; seconds until all had ended.

    The moment is `within` so many seconds of the first checkpoint, or of the start.
    """
    shutil.rmtree(out, ignore_errors=True)
    run = mpiexec(processes, DRIVER, "folder", folder, out)
    names = [out / f"pid-{rank}" for rank in range(processes)]
    end = time.monotonic() + 300
    while not all(name.exists() and name.read_text() for name in names):
        assert run.poll() is None, run.communicate()[0]
        assert time.monotonic() < end
        time.sleep(0.01)
    pids = [int(name.read_text()) for name in names]
    late = rng.random() < 0.8  # else perhaps before there is any checkpoint
    while late and not (out / "run" / "checkpoint.json").exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    time.sleep(rng.uniform(0.0, within))
    began = time.monotonic()
    with contextlib.suppress(ProcessLookupError):
        os.kill(rng.choice(pids), signal.SIGKILL)
    words = run.communicate(timeout=300)[0]
    assert run.returncode != 0, "it was done before"
    assert "signal 9" in words or "killed" in words.lower(), words
    while any(map(_alive, pids)):
        assert time.monotonic() - began < 60
        time.sleep(0.02)
    return time.monotonic() - began


def _alive(pid: int) -> bool:
    try:
        return "(zombie)" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def go_on(model: Model, folder: Path, out: Path) -> int:
    """Resume on one process what several had begun: nothing false, and nothing lost.

    Returns the passes of the checkpoint, 0 where there was none yet.
    """
    try:
        passes = read_manifest(out / "run")["progress"]["passes"]
    except CheckpointError:
        return 0
    again = distributed.resume(out / "run", folder, max_passes=passes + MORE, **OPTIONS)
    check(model, again)
    never = distributed.solve(folder, max_passes=passes + MORE, **OPTIONS)
    assert numbers(again) == numbers(never)
    return int(passes)


if __name__ == "__main__":
    grid = generators.random_grid(12, 12, 3, seed=1)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        distributed.write_parts(grid, place / "model", 8)
        for k in range(int(sys.argv[1])):
            took = killed(place / "model", place / "out", 4, random.Random(k))
            stored = go_on(grid, place / "model", place / "out")
            print(f"{k}: all ended after {took:.2f} s; went on from pass {stored}", flush=True)

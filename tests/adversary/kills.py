"""kill -9 at random moments of a run that stores itself: python -m adversary.kills [TIMES] [SEED].

Every restart goes on from the last checkpoint, and the end is that of a run that was never killed.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

__all__ = ["killed_and_resumed"]

CHILD = """
import sys
from pathlib import Path
import softmap
from softmap.solving.record import Checkpoints
Checkpoints.interval = 0.0
path, most = Path(sys.argv[1]), {"max_work": 2_000_000, "threads": 1, "checkpoint": sys.argv[1]}
model = softmap.generators.erdos_renyi(40, 3, seed=9)
print("begun", flush=True)
if path.exists():
    found = softmap.resume(path, model, **most)
else:
    found = softmap.solve(model, lp_gap=0.0, gap=0.0, goal="lp", **most)
found.save(sys.argv[2])
"""


def _child(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CHILD, str(folder / "run.npz"), str(folder / "result.npz")]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _finish(folder: Path) -> tuple[object, ...]:
    """Let a run end, and read its result."""
    import softmap

    with _child(folder) as child:
        child.communicate()
    assert child.returncode == 0
    found = softmap.load_result(folder / "result.npz")
    numbers = (found.bound, found.primal, found.energy, found.work, found.status)
    return *numbers, found.labels.tobytes(), found.lam.tobytes(), len(found.trace)


def killed_and_resumed(folder: Path, *, times: int, seed: int) -> int:
    """Kill a run again and again, at moments of its own; the number of kills that hit it alive."""
    rng, hits = random.Random(seed), 0
    whole, other = folder / "whole", folder / "killed"
    whole.mkdir()
    other.mkdir()
    began = time.perf_counter()
    expected = _finish(whole)
    length = time.perf_counter() - began
    for _ in range(times):
        with _child(other) as child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(rng.uniform(0.0, 0.5 * length))
            hits += child.poll() is None
            child.kill()
        if rng.random() < 0.3:
            assert _finish(other) == expected
            for path in other.iterdir():
                path.unlink()
    assert _finish(other) == expected
    return hits


def main() -> None:
    """Run as a program."""
    times, seed = (int(word) for word in [*sys.argv[1:], "200", "0"][:2])
    with tempfile.TemporaryDirectory() as folder:
        hits = killed_and_resumed(Path(folder), times=times, seed=seed)
    print(f"{times} kills, {hits} of them of a living run; every restart ended as it should")


if __name__ == "__main__":
    main()

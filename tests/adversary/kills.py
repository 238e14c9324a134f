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
from softmap.drive.record import Checkpoints
Checkpoints.interval = 0.0
path = Path(sys.argv[1])
most = {"max_work": int(sys.argv[3]), "threads": 1, "checkpoint": sys.argv[1]}
model = softmap.generators.erdos_renyi(40, 3, seed=9)
print("begun", flush=True)
if path.exists():
    found = softmap.resume(path, model, **most)
else:
    found = softmap.solve(model, lp_gap=0.0, gap=0.0, goal="lp", **most)
found.save(sys.argv[2])
"""


def _child(folder: Path, work: int) -> subprocess.Popen[str]:
    paths = [str(folder / "run.npz"), str(folder / "result.npz")]
    command = [sys.executable, "-c", CHILD, *paths, str(work)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _finish(folder: Path, work: int) -> tuple[tuple[object, ...], float]:
    """Let a run end, and read its result; the seconds that it took once it had begun."""
    import softmap

    with _child(folder, work) as child:
        assert child.stdout is not None
        child.stdout.readline()
        began = time.perf_counter()
        child.communicate()
    length = time.perf_counter() - began
    assert child.returncode == 0
    found = softmap.load_result(folder / "result.npz")
    numbers = (found.bound, found.primal, found.energy, found.work, found.status)
    answer = (*numbers, found.labels.tobytes(), found.lam.tobytes(), len(found.trace))
    return answer, length


def killed_and_resumed(folder: Path, *, times: int, seed: int, work: int = 2_000_000) -> int:
    """Kill a run again and again, at moments of its own; the number of kills that hit it alive."""
    rng, hits = random.Random(seed), 0
    whole, other = folder / "whole", folder / "killed"
    whole.mkdir()
    other.mkdir()
    expected, length = _finish(whole, work)
    for _ in range(times):
        with _child(other, work) as child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(rng.uniform(0.0, 0.5 * length))
            hits += child.poll() is None
            child.kill()
        if rng.random() < 0.3:
            assert _finish(other, work)[0] == expected
            for path in other.iterdir():
                path.unlink()
    assert _finish(other, work)[0] == expected
    return hits


def main() -> None:
    """Run as a program."""
    times, seed = (int(word) for word in [*sys.argv[1:], "200", "0"][:2])
    with tempfile.TemporaryDirectory() as folder:
        hits = killed_and_resumed(Path(folder), times=times, seed=seed)
    print(f"{times} kills, {hits} of them of a living run; every restart ended as it should")


if __name__ == "__main__":
    main()

"""The campaign: random models against enumeration and HiGHS, for as long as wanted.

python tests/adversary/run.py --seconds 600 [--first SEED] [--workers 2]
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import sys
import threading
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from adversary.making import trial
from adversary.promises import broken
from adversary.shrinking import shrunk

SHARE = 50  # trials handed to a worker at a time


def work(first: int) -> list[tuple[int, str]]:
    """The trials of one share that break a promise."""
    warnings.simplefilter("error")
    found = ((seed, broken(trial(seed))) for seed in range(first, first + SHARE))
    return [(seed, problem) for seed, problem in found if problem is not None]


def report(seed: int, problem: str) -> None:
    """Print the smallest model that shows a problem."""
    small = shrunk(trial(seed), problem)
    print(f"\n# trial {seed}: {problem}\n{small.spec.code()}")
    print(f"softmap.solve(model, **{small.options!r})  # stop after {small.stop_at} snapshots")
    sys.stdout.flush()


def main() -> int:
    """Run for the given time; 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--first", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=multiprocessing.cpu_count())
    arguments = parser.parse_args()
    end, count, problems = time.monotonic() + arguments.seconds, 0, 0
    seen: dict[str, int] = {}
    shares = itertools.takewhile(
        lambda _: time.monotonic() < end, itertools.count(arguments.first, SHARE)
    )
    with multiprocessing.get_context("spawn").Pool(arguments.workers) as pool:
        for found in pool.imap_unordered(work, _paced(shares, arguments.workers)):
            _done.release()
            count += SHARE
            for seed, problem in found:
                problems += 1
                kind = problem.split(":")[0] + problem[-30:]
                seen[kind] = seen.get(kind, 0) + 1
                if seen[kind] <= 2:
                    report(seed, problem)
    print(f"{count:,} models, {problems} broken promises")
    return 1 if problems else 0


_done = threading.Semaphore(0)


def _paced(shares, workers: int):
    """Hand out a share when one has come back, so that the clock decides when to end."""
    for k, share in enumerate(shares):
        if k >= 2 * workers:
            _done.acquire()
        yield share


if __name__ == "__main__":
    sys.exit(main())

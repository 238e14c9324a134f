"""The campaign: random models against enumeration and HiGHS, for as long as wanted.

python tests/adversary/run.py --seconds 600 [--first SEED] [--workers 2]
python tests/adversary/run.py --kinds chains files: these kinds of trials only (see kinds.py)
python tests/adversary/run.py --backend cuda: the same runs on a device, larger shares in batches
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import sys
import threading
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from adversary.kinds import KINDS, tried
from adversary.making import Trial, on_device, picture, trial
from adversary.promises import broken, broken_together
from adversary.shrinking import shrunk

SHARE = 10  # trials handed to a worker at a time
TOGETHER = 60  # models of a share on a device, which are also solved as a batch
MODELS = "models"  # the kind that is told to the device, and made smaller when it is found
OFTEN = {
    MODELS: SHARE, "chains": 5, "warm starts": 5, "offsets": 2, "files": 2, "proofs": 2, "codes": 2,
    "cuts": 2, "elimination": 2, "permutations": 2, "infeasible": 2, "cutoffs": 2,
    "saved results": 1, "terminated": 1,
}  # per share  # fmt: skip
PACE = 20.0  # seconds between lines that say how many are done


def few_shapes() -> None:
    """Kernels for any label count and family only: to compile them all takes longer than a run."""
    from softmap.methods.cuda.cupy_device import CupyDevice

    CupyDevice.general = 64  # type: ignore[attr-defined]
    CupyDevice.offers = lambda self, shape: False  # type: ignore[method-assign]


def made(seed: int, backend: str) -> Trial:
    """Trial number `seed` for a backend: one in five a picture, one in two as if it were large."""
    given = picture(seed) if seed % 5 == 0 else replace(trial(seed), large=seed % 2 == 0)
    return on_device(given) if backend == "cuda" else given


def work(share: tuple[int, str, tuple[str, ...]]) -> tuple[dict[str, int], list[tuple[int, str]]]:
    """How many trials of each kind one share has made, and those that break a promise."""
    first, backend, kinds = share
    warnings.simplefilter("error")
    count: dict[str, int] = {}
    found: list[tuple[int, str | None]] = []
    if MODELS in kinds:
        count[MODELS] = SHARE
        found += [(seed, broken(made(seed, backend))) for seed in range(first, first + SHARE)]
    if backend == "cuda":
        count[MODELS] = TOGETHER
        found.append((first, broken_together([trial(first + k).spec for k in range(TOGETHER)])))
        kinds = ()
    for kind in kinds:
        if kind != MODELS:
            count[kind] = OFTEN[kind]
            found += [(first + k, tried(kind, first + k)) for k in range(OFTEN[kind])]
    return count, [(seed, problem) for seed, problem in found if problem is not None]


def report(seed: int, problem: str, backend: str) -> None:
    """Print the smallest model that shows a problem."""
    if problem.startswith("in a batch"):
        print(f"\n# trials {seed} to {seed + TOGETHER - 1} {problem}", flush=True)
        return
    kind = problem.partition(":")[0]
    if kind in KINDS:
        print(f"\n# tried({kind!r}, {seed}): {problem}", flush=True)
        return
    print(f"\n# trial {seed}: {problem}", flush=True)
    small = shrunk(made(seed, backend), problem, tries=400 if backend == "cpu" else 40)
    print(f"\n# trial {seed}: {problem}\n{small.spec.code()}")
    large = ", as if large" if small.large else ""
    print(
        f"softmap.solve(model, **{small.options!r})  # stop after {small.stop_at} snapshots{large}"
    )
    sys.stdout.flush()


def main() -> int:
    """Run for the given time; 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--first", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--backend", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--kinds", nargs="+", choices=[*OFTEN], default=[*OFTEN])
    parser.add_argument("--few-shapes", action="store_true", help=few_shapes.__doc__)
    arguments = parser.parse_args()
    if arguments.backend == "cuda":
        _compile(arguments.first - TOGETHER, arguments.few_shapes)
    pool = multiprocessing.get_context("spawn").Pool(
        arguments.workers, few_shapes if arguments.few_shapes else None
    )
    with pool:
        try:
            count, problems = _campaign(pool, arguments)
        finally:
            _over.set()  # or else the thread that hands out shares would wait for ever
            _done.release()
    told = ", ".join(f"{number:,} {kind}" for kind, number in count.items())
    print(f"{sum(count.values()):,} trials ({told}), {problems} broken promises")
    return 1 if problems else 0


def _compile(first: int, few: bool) -> None:
    """Compile the kernels of a device once, before many ask for them."""
    if few:
        few_shapes()
    began = time.monotonic()
    for seed, problem in work((first, "cuda", (MODELS,)))[1]:
        print(f"# before all others, trial {seed}: {problem}", flush=True)
    print(f"# kernels were ready after {time.monotonic() - began:.0f} s", flush=True)


def _campaign(pool: Any, arguments: argparse.Namespace) -> tuple[dict[str, int], int]:
    """Hand out shares until the time is over; trials of each kind, and broken promises."""
    started = said = time.monotonic()
    end, problems = started + arguments.seconds, 0
    count: dict[str, int] = {}
    seen: dict[str, int] = {}
    kinds = tuple(arguments.kinds)
    size = TOGETHER if arguments.backend == "cuda" else SHARE
    shares = itertools.takewhile(
        lambda _: time.monotonic() < end,
        ((first, arguments.backend, kinds) for first in itertools.count(arguments.first, size)),
    )
    for tries, found in pool.imap_unordered(work, _paced(shares, arguments.workers)):
        _done.release()
        for kind, number in tries.items():
            count[kind] = count.get(kind, 0) + number
        if time.monotonic() - said > PACE:
            said = time.monotonic()
            print(f"# {sum(count.values()):,} trials after {said - started:.0f} s", flush=True)
        for seed, problem in found:
            problems += 1
            kind = problem.split(":")[0] + problem[-30:]
            seen[kind] = seen.get(kind, 0) + 1
            if seen[kind] <= 2:
                report(seed, problem, arguments.backend)
    return count, problems


_done, _over = threading.Semaphore(0), threading.Event()


def _paced(shares, workers: int):
    """Hand out a share when one has come back, so that the clock decides when to end."""
    for k, share in enumerate(shares):
        if k >= 2 * workers:
            _done.acquire()
        if _over.is_set():
            return
        yield share


if __name__ == "__main__":
    sys.exit(main())

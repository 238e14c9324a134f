"""The campaign: random models against enumeration and HiGHS, for as long as wanted.

python tests/adversary/run.py --seconds 600 [--first SEED] [--workers 2]
python tests/adversary/run.py --count 500000 --seconds 580: whichever comes first
python tests/adversary/run.py --kinds chains files: these kinds of trials only (see kinds.py)
python tests/adversary/run.py --backend cuda: the same runs on a device, larger shares in batches
"""

from __future__ import annotations

import argparse
import itertools
import math
import multiprocessing
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from adversary.fault_kinds import FAULT_KINDS, loaded, with_faults
from adversary.kinds import KINDS, tried
from adversary.making import Trial, on_device, picture, trial
from adversary.promises import broken, broken_together
from adversary.shrinking import shrunk
from support.spreading import Lost, interruptible, spread

SHARE = 10  # trials handed to a worker at a time
TOGETHER = 60  # models of a share on a device, which are also solved as a batch
MODELS = "models"  # the kind that is told to the device, and made smaller when it is found
OFTEN = {
    MODELS: SHARE, "chains": 5, "warm starts": 5, "offsets": 2, "files": 2, "proofs": 2, "codes": 4,
    "cuts": 4, "elimination": 4, "permutations": 2, "infeasible": 4, "cutoffs": 4,
    "saved results": 1, "terminated": 1, "transport": 4, "sums": 4, "proof files": 2,
    "round trips": 4, "products": 3, "forged products": 3, "file faults": 2,
    "memory faults": 2, "mid-sized": 1, "hostile files": 1, "environments": 1,
    "throwing stages": 1, "runs that are left": 1,
}  # per share  # fmt: skip
RARELY = {"mid-sized": 5, "hostile files": 3}  # in one share of so many: they take long
PATIENCE = 600.0  # seconds after which a share is ended
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
        if kind != MODELS and first // SHARE % RARELY.get(kind, 1) == 0:
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
    parser.add_argument("--count", type=float, default=math.inf, help="trials, at least")
    parser.add_argument("--first", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--backend", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--kinds", nargs="+", choices=[*OFTEN], default=[*OFTEN])
    parser.add_argument("--few-shapes", action="store_true", help=few_shapes.__doc__)
    arguments = parser.parse_args()
    if not FAULT_KINDS.keys().isdisjoint(arguments.kinds) and not loaded():
        if (code := with_faults()) is not None:
            return code
        if not loaded():
            print(f"# {' and '.join(FAULT_KINDS)} are skipped: they need Linux and a compiler")
            arguments.kinds = [kind for kind in arguments.kinds if kind not in FAULT_KINDS]
    if arguments.backend == "cuda":
        _compile(arguments.first - TOGETHER, arguments.few_shapes)
    campaign = Campaign(arguments.backend)
    with interruptible():
        campaign.run(arguments)
    told = ", ".join(f"{number:,} {kind}" for kind, number in campaign.count.items())
    print(f"{campaign.trials:,} trials ({told}), {campaign.problems} broken promises")
    return 1 if campaign.problems else 0


def _compile(first: int, few: bool) -> None:
    """Compile the kernels of a device once, before many ask for them."""
    if few:
        few_shapes()
    began = time.monotonic()
    for seed, problem in work((first, "cuda", (MODELS,)))[1]:
        print(f"# before all others, trial {seed}: {problem}", flush=True)
    print(f"# kernels were ready after {time.monotonic() - began:.0f} s", flush=True)


class Campaign:
    """Trials of each kind so far, and broken promises, of which the first two alike are printed."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.count: dict[str, int] = {}
        self.problems = 0
        self._seen: dict[str, int] = {}

    @property
    def trials(self) -> int:
        """The number of trials."""
        return sum(self.count.values())

    def run(self, arguments: argparse.Namespace) -> None:
        """Try shares in several processes until the time is over or the count is reached."""
        started = said = time.monotonic()
        end = started + arguments.seconds
        size = TOGETHER if self.backend == "cuda" else SHARE
        shares = itertools.takewhile(
            lambda _: time.monotonic() < end and self.trials < arguments.count,
            (
                (first, self.backend, tuple(arguments.kinds))
                for first in itertools.count(arguments.first, size)
            ),
        )
        begin = few_shapes if arguments.few_shapes else None
        method = "spawn" if self.backend == "cuda" else "fork"
        for found in spread(
            shares, arguments.workers, work, method=method, begin=begin, limit=PATIENCE
        ):
            self.add(found)
            if time.monotonic() - said > PACE:
                said = time.monotonic()
                print(f"# {self.trials:,} trials after {said - started:.0f} s", flush=True)

    def add(self, found: Any) -> None:
        """Add what a share has found."""
        if isinstance(found, Lost):
            self.problems += 1
            print(f"\n# work({found.task!r}): {found.how}", flush=True)
            return
        tries, problems = found
        for kind, number in tries.items():
            self.count[kind] = self.count.get(kind, 0) + number
        for seed, problem in problems:
            self.problems += 1
            alike = problem.split(":")[0] + problem[-30:]
            self._seen[alike] = self._seen.get(alike, 0) + 1
            if self._seen[alike] <= 2:
                forked(lambda seed=seed, problem=problem: report(seed, problem, self.backend))


def forked(action: Callable[[], object]) -> None:
    """Run in a process of its own: this one must not start threads, since it forks."""
    for _ in spread([0], 1, lambda _: action()):
        pass


if __name__ == "__main__":
    sys.exit(main())

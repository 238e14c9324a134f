"""Repeat parallel runs many times: the answers have to be the same, whatever the threads do.

    python tests/faults/repeats.py --times 10000 [--threads 4] [--only search]

Searches of an exact optimum, passes, cuts and searches for labels of small models are repeated on
several threads. An exact search may return another labelling of the same energy; its energy and its
bound are those of one thread. Passes give the same bits with any number of threads.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

import softmap
from softmap.labels.cuts import Expansions, Fusion
from softmap.labels.exact import ExactSearch

Answer = tuple[object, ...]


def search(seed: int, threads: int) -> Answer:
    model = softmap.generators.erdos_renyi(26, 3, seed=seed)
    found = ExactSearch(model.network, threads=threads, split_work=0, dp_limit=0.0).run()
    energy = float(model.energy(found.labels))
    assert found.complete
    return round(energy, 9), round(found.lower_bound, 6)


def elimination(seed: int, threads: int) -> Answer:
    model = softmap.generators.potts_grid(4, 6, 3, seed=seed)
    options = {"presolve": False, "ascent": False, "search_first": 0.0}
    found = ExactSearch(model.network, threads=threads, **options).run()
    return float(model.energy(found.labels)), found.lower_bound


def passes(seed: int, threads: int) -> Answer:
    model = softmap.generators.potts_grid(12, 12, 4, seed=seed)
    work = 2 * model.m * 20
    found = softmap.solve(model, goal="lp", threads=threads, max_work=work)
    return found.lp_bound, found.lam.tobytes()


def cuts(seed: int, threads: int) -> Answer:
    model = softmap.generators.potts_grid(10, 10, 3, seed=seed)
    labels, fusion = np.zeros(100, dtype=np.int64), Fusion(model.network, threads=threads)
    Expansions(fusion).run(labels)
    fusion.release()
    return (float(model.energy(labels)),)


KINDS: dict[str, Callable[[int, int], Answer]] = {
    "search": search, "elimination": elimination, "passes": passes, "cuts": cuts,
}  # fmt: skip


def repeated(kind: str, times: int, threads: int) -> int:
    """Repeat runs of ten models; return how often the answer was another one than with a thread."""
    expected = [KINDS[kind](seed, 1) for seed in range(10)]
    wrong = 0
    for k in range(times):
        found = KINDS[kind](k % 10, threads)
        if found != expected[k % 10]:
            wrong += 1
            print(f"{kind}, seed {k % 10}, repeat {k}: {expected[k % 10]}, then {found}"[:300])
    return wrong


def main() -> int:
    """Repeat all kinds; 1 if an answer differs."""
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    reader.add_argument("--times", type=int, default=10_000)
    reader.add_argument("--threads", type=int, default=4)
    reader.add_argument("--only", nargs="*", default=list(KINDS))
    said = reader.parse_args()
    wrong = 0
    for kind in said.only:
        began = time.monotonic()
        more = repeated(kind, said.times, said.threads)
        took = time.monotonic() - began
        print(
            f"{kind}: {said.times} repeats on {said.threads} threads, {more} differ, {took:.0f} s"
        )
        sys.stdout.flush()
        wrong += more
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())

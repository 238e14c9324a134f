"""Exact search on several threads: `python -m benchmarks.search_threads [--threads 1,2,4,8]`.

For each model, λ and labels of the relaxation are computed first and not timed. Then the branch and
bound alone proves the optimum, without dynamic programming, once for each number of threads. Six
models need 8 to 25 s each on one thread. With eight free cores or more, all figures take up to
200 s:

    python -m benchmarks.search_threads --threads 1,2,4,8

On a busy machine, wall times say little. Then compare processor times and nodes: `--small` runs
smaller models (2 to 5 s each) on one and two threads (with `--limit 200`).
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

import softmap
from softmap import core
from softmap.labels.exact import ExactSearch
from softmap.model import Model
from softmap.relaxation.flat import flat_lam


class Run(NamedTuple):
    """Seconds, processor seconds and nodes of one search, and the energy that it proves optimal."""

    seconds: float
    busy: float
    nodes: int
    energy: float


def _pairs(rng: np.random.Generator, n: int, edges: int) -> np.ndarray:
    every = np.array(list(itertools.combinations(range(n), 2)))
    return every[np.sort(rng.choice(len(every), edges, replace=False))]


def normal_tables(n: int, labels: int, edges: int, seed: int) -> Model:
    """A random graph with normal costs."""
    rng = np.random.default_rng(seed)
    pairs = _pairs(rng, n, edges)
    tables = rng.normal(size=(edges, labels, labels))
    return Model(rng.normal(size=(n, labels)), pairs, softmap.Tables(tables))


def spin_glass(n: int, edges: int, seed: int) -> Model:
    """A random graph with two labels and couplings from -5 to 5: many optimal labellings."""
    rng = np.random.default_rng(seed)
    pairs = _pairs(rng, n, edges)
    weights = rng.integers(-5, 6, edges)
    tables = weights[:, None, None] * np.array([[1.0, -1.0], [-1.0, 1.0]])
    return Model(np.zeros((n, 2)), pairs, softmap.Tables(tables))


def constraints(n: int, labels: int, edges: int, seed: int) -> Model:
    """Weighted constraints: a share of the pairs of labels costs 1 to 10."""
    rng = np.random.default_rng(seed)
    pairs = _pairs(rng, n, edges)
    shape = edges, labels, labels
    tables = np.where(rng.random(shape) < 0.4, rng.integers(1, 11, shape), 0).astype(float)
    return Model(np.zeros((n, labels)), pairs, softmap.Tables(tables))


LARGE: dict[str, Callable[[], Model]] = {
    "normal-30x5": partial(normal_tables, 30, 5, 170, 1),
    "normal-22x8": partial(normal_tables, 22, 8, 122, 0),
    "spins-78": partial(spin_glass, 78, 380, 0),
    "spins-75": partial(spin_glass, 75, 365, 1),
    "constraints-22x8": partial(constraints, 22, 8, 150, 0),
    "constraints-20x10": partial(constraints, 20, 10, 135, 1),
}
SMALL: dict[str, Callable[[], Model]] = {
    "normal-20x8": partial(normal_tables, 20, 8, 100, 0),
    "spins-60": partial(spin_glass, 60, 300, 0),
}


def search(model: Model, threads: int, limit: float) -> Callable[[], Run | None]:
    """Return a function that searches the model from λ and labels of its relaxation.

    The function returns None if the search takes more than `limit` seconds.
    """
    relaxed = softmap.solve(model, goal="lp", threads=1)
    exact = ExactSearch(
        model,
        incumbent=relaxed.labels,
        lam=flat_lam(model, relaxed.lam),
        dp_limit=0.0,
        threads=threads,
    )

    def run() -> Run | None:
        began, busy = time.perf_counter(), time.process_time()
        found = exact.run(deadline=core.Deadline(limit))
        seconds, busy = time.perf_counter() - began, time.process_time() - busy
        return Run(seconds, busy, found.nodes, found.energy) if found.complete else None

    return run


def _mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def _rows(name: str, model: Model, counts: list[int], limit: float) -> list[Run]:
    """Print a row for each number of threads; return the runs, or [] if one took too long."""
    runs: list[Run] = []
    for k in counts:
        r = search(model, k, limit)()
        if r is None:
            print(f"| {name} | {k} | > {limit:g} | | |", flush=True)
            return []
        print(f"| {name} | {k} | {r.seconds:.2f} | {r.busy:.2f} | {r.nodes:,} |", flush=True)
        runs.append(r)
        assert abs(r.energy - runs[0].energy) <= 1e-8 * abs(runs[0].energy)
    return runs


def main() -> None:
    """Print a row per model and number of threads, then geometric means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", default="1,2,4,8", help="numbers of threads, beginning with 1")
    parser.add_argument("--small", action="store_true", help="smaller models, 1 and 2 threads")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of one search")
    given = parser.parse_args()
    counts = [1, 2] if given.small else [int(k) for k in given.threads.split(",")]
    print("| model | threads | seconds | processor seconds | nodes |")
    print("| --- | ---: | ---: | ---: | ---: |")
    models = SMALL if given.small else LARGE
    every = [_rows(name, build(), counts, given.limit) for name, build in models.items()]
    done = [runs for runs in every if runs]
    for place, k in enumerate(counts if done else []):
        faster = _mean([runs[0].seconds / runs[place].seconds for runs in done])
        busy = _mean([runs[place].busy / runs[0].busy for runs in done])
        nodes = _mean([runs[place].nodes / runs[0].nodes for runs in done])
        print(
            f"{k} threads: {faster:.2f} times as fast, {busy:.3f} times the processor time, "
            f"{nodes:.3f} times the nodes (geometric means of {len(done)} models)"
        )


if __name__ == "__main__":
    main()

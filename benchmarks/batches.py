"""Batches to the optimum: `python -m benchmarks.batches [--count 1000] [--threads 1] [--peer]`.

Random graphs of the paper (100 variables, 3 labels) with `goal="map"`: wall-clock and processor
seconds, the number of labellings proved optimal, and the slowest models. On 16 free cores:

    python -m benchmarks.batches --threads 16
    python -m benchmarks.batches --threads 1

`--peer` solves the same models one by one, on one core, with this package and with toulbar2, and
compares the energies. On a busy machine, compare processor seconds.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import numpy as np

import softmap
from softmap.model import Model


def _busy() -> float:
    """Processor seconds of this process and of its worker processes that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def batch(models: list[Model], threads: int) -> None:
    """Print the figures of one call of `solve_batch`."""
    began, busy = time.perf_counter(), _busy()
    results = softmap.solve_batch(models, goal="map", threads=threads)
    seconds, busy = time.perf_counter() - began, _busy() - busy
    proved = sum(result.status is softmap.Status.OPTIMAL for result in results)
    slowest = sorted((result.seconds for result in results), reverse=True)[:5]
    print(
        f"{len(models)} models, {threads} threads: {seconds:.1f} s, {busy:.1f} processor s "
        f"({1e3 * busy / len(models):.0f} ms a model), {proved} proved optimal, "
        f"slowest {', '.join(f'{each:.2f}' for each in slowest)} s"
    )


def _timed(call: Callable[[], float]) -> tuple[float, float]:
    """Processor seconds and the energy that the call returns."""
    busy = time.process_time()
    energy = call()
    return time.process_time() - busy, energy


def _ours(model: Model) -> float:
    return softmap.solve(model, goal="map", threads=1).energy


def _toulbar2(model: Model, limit: int) -> Callable[[], float]:
    """Return a function that solves the model with toulbar2; the problem is built before."""
    import pytoulbar2

    labels = int(model.num_labels[0])
    problem = pytoulbar2.CFN(1e6, 8)
    for i in range(model.n):
        problem.AddVariable(f"x{i}", range(labels))
    for i, costs in enumerate(model.unary.reshape(model.n, labels)):
        problem.AddFunction([i], costs.tolist())
    for (i, j), table in zip(model.edges.tolist(), model.potentials[0].tables, strict=True):
        problem.AddFunction([i, j], table.ravel().tolist())

    def solve() -> float:
        found = problem.Solve(timeLimit=limit)
        return float(found[1]) if found else float("inf")

    return solve


def beside_toulbar2(models: list[Model], limit: int) -> None:
    """Print processor seconds per model of both programs: mean, median and the slowest."""
    ours = np.array([_timed(lambda model=model: _ours(model)) for model in models])
    theirs = np.array([_timed(_toulbar2(model, limit)) for model in models])
    for name, seconds in (("softmap", ours[:, 0]), ("toulbar2", theirs[:, 0])):
        tail = ", ".join(f"{each:.2f}" for each in np.sort(seconds)[:-6:-1])
        print(
            f"{name}: {seconds.mean():.3f} s a model, median {np.median(seconds):.3f}, "
            f"90 % below {np.quantile(seconds, 0.9):.3f}, slowest {tail}"
        )
    print(f"largest difference of the energies: {np.abs(ours[:, 1] - theirs[:, 1]).max():.1e}")


def main() -> None:
    """Print the figures of a batch, or of both programs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="number of models")
    parser.add_argument("--threads", type=int, default=1, help="models at the same time")
    parser.add_argument("--peer", action="store_true", help="one by one, beside toulbar2")
    parser.add_argument("--limit", type=int, default=60, help="seconds of toulbar2 per model")
    given = parser.parse_args()
    models = [softmap.generators.erdos_renyi(100, 3, seed=seed) for seed in range(given.count)]
    if given.peer:
        beside_toulbar2(models, given.limit)
    else:
        batch(models, given.threads)


if __name__ == "__main__":
    main()

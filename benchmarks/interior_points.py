"""The bound of interior points and of messages against CPU time, on the paper's law.

    python -m benchmarks.interior_points FOLDER      writes FOLDER/interior.csv

The error is the LP optimum, to 1e-9 by the simplex method, minus the bound that λ proves. The
paper's methods run at its η = 1000, One thread; seconds are those of
the thread, without checks.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import softmap
from softmap import generators
from softmap.methods.base import make
from softmap.model import Model
from softmap.relaxation.bounds import dual_bound
from softmap.subsolvers.passes.interior import interior_point

COLUMNS = ("graph", "method", "steps", "seconds", "error")
GRAPHS = 3
STEPS = 40  # of the interior-point method, at most
METHODS = {"smp": 400_000, "accel-smp": 400_000, "accel-sweeps": 3_000}


def interior(model: Model, optimum: float) -> Iterator[tuple[int, float, float]]:
    """Yield step, seconds and error of the interior-point method."""
    began = time.thread_time()
    method = interior_point(model)
    for step in range(1, STEPS + 1):
        if not method.step(softmap.core.Deadline(60.0)):
            return
        seconds = time.thread_time() - began
        yield step, seconds, optimum - dual_bound(model, np.asarray(method.lam()))
        began = time.thread_time() - seconds


def messages(
    model: Model, name: str, last: int, optimum: float
) -> Iterator[tuple[int, float, float]]:
    """Yield updates or sweeps, seconds and the least error so far of a method at η = 1000."""
    algorithm = make(name, eta=1000.0)
    state = algorithm.init(model, None, 0)
    done, seconds, least = 0, 0.0, np.inf
    for count in sorted({round(k) for k in np.geomspace(max(last / 1e4, 1), last, 30)}):
        began = time.thread_time()
        algorithm.step(state, count - done)
        lam = algorithm.propose(state).lam
        seconds += time.thread_time() - began
        done = count
        least = min(least, optimum - dual_bound(model, lam))
        yield done, seconds, least


def rows() -> Iterator[tuple[object, ...]]:
    """Yield the rows of the table."""
    for graph in range(GRAPHS):
        model = generators.erdos_renyi(100, seed=graph)
        optimum = softmap.lp.solve(model, "simplex", tolerance=1e-9, threads=1).value
        runs = {"interior": interior(model, optimum)}
        runs |= {k: messages(model, k, last, optimum) for k, last in METHODS.items()}
        for name, looks in runs.items():
            for steps, seconds, error in looks:
                yield graph, name, steps, seconds, error


def main(folder: str) -> None:
    """Write the table."""
    with Path(folder, "interior.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(rows())


if __name__ == "__main__":
    main(sys.argv[1])

"""Accelerated sweeps beside the paper's methods, and greedy beside random choice of blocks.

    python -m benchmarks.beyond sweeps FOLDER      writes FOLDER/beyond-sweeps.csv
    python -m benchmarks.beyond greedy FOLDER FILE...      writes FOLDER/beyond-greedy.csv

The first repeats Figures 1 and 2 of the paper with `accel-sweeps`, on five graphs of each size.
Its points are whole sweeps, and every other method gets at least as many messages as were sent
until then, those of the safeguard and of the proposal included. The second follows methods on the
paper's law, on a grid, and on the models in the given files.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import softmap
from softmap import generators
from softmap.app.experiments.problems import Graph, optimum
from softmap.app.experiments.trials import trial_seed
from softmap.methods.base import make
from softmap.model import Model
from softmap.paper.accel_sweeps import AccelSweeps
from softmap.paper.methods import StandardState
from softmap.relaxation.bounds import dual_bound, projected_cost
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import SmoothedDual
from softmap.relaxation.gaps import cost_scale

__all__ = ["greedy_rows", "main", "sweep_rows"]

ETA = 1000.0  # the paper's; over the scale of the costs for other models
UPDATES = 100_000  # star updates of Figures 1 and 2
SIZES, GRAPHS, TRIALS = (9, 36, 81, 100), 5, 5
GREEDY = ("emp", "sampled-emp", "greedy-emp", "smp", "sampled-smp", "greedy-smp", "accel-smp",
          "accel-greedy-smp")  # fmt: skip
SWEEPS = 300  # sweeps' worth of messages of a run of the second table
SWEEP_COLUMNS = ("n", "graph", "method", "trial", "sweeps", "work", "gap", "best", "bound_gap")
GREEDY_COLUMNS = ("model", "n", "m", "method", "trial", "updates", "work", "seconds", "gap",
                  "bound_gap", "value")  # fmt: skip


def points_until(last: int, count: int = 40) -> list[int]:
    """Return integers from 1 to `last`, evenly spaced in the logarithm."""
    return sorted({round(k) for k in np.geomspace(1, last, count)})


class Follower:
    """A run of one method that is looked at after some work, with the best point so far."""

    def __init__(self, dual: SmoothedDual, name: str, seed: int) -> None:
        self.dual, self.algorithm = dual, make(name, eta=dual.eta, threads=1)
        self.state = self.algorithm.init(dual.model, None, seed)
        self.seconds, self.best = 0.0, float("inf")

    def until(self, work: int) -> None:
        """Update blocks until at least `work` messages were sent."""
        largest = int(self.dual.model.network.graph.degree.max())
        began = time.thread_time()
        while self.state.work < work:
            self.algorithm.step(self.state, max(1, (work - self.state.work) // (3 * largest)))
        self.seconds += time.thread_time() - began

    def look(self) -> tuple[float, float, float]:
        """Return the primal value of the current iterate, the best one, and the current bound."""
        now = isinstance(self.state, StandardState)
        lam = self.state.current() if now else self.algorithm.propose(self.state).lam
        primal = projected_cost(self.dual, lam, self.dual.node_marginals(lam))
        self.best = min(self.best, primal)
        return primal, self.best, dual_bound(self.dual.model, lam)


class SweepFollower(Follower):
    """The same for `accel-sweeps`; the sweeps of a proposal count as work."""

    algorithm: AccelSweeps

    def sweep(self, count: int) -> int:
        """Sweep until `count` sweeps were made; return the messages, those to propose included."""
        self.algorithm.step(self.state, count - self.state.sweeps)
        messages: int = self.state.work
        return messages + 2 * self.dual.model.m * self.algorithm.settling(self.state)


def sweep_rows() -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the first table."""
    for n in SIZES:
        for graph in range(GRAPHS):
            model = Graph(n, 3, graph).model()
            dual = SmoothedDual(model, ETA)
            least = optimum(model)
            ours = SweepFollower(dual, "accel-sweeps", 0)
            others = [
                (name, trial, Follower(dual, name, trial_seed(graph, trial)))
                for name in ("smp", "emp")
                for trial in range(TRIALS)
            ]
            for count in points_until(UPDATES // n):
                work = ours.sweep(count)
                yield _sweep_row((n, graph, "accel-sweeps", 0, count, work), ours, least)
                for name, trial, run in others:
                    run.until(work)
                    key = (n, graph, name, trial, count, run.state.work)
                    yield _sweep_row(key, run, least)


def _sweep_row(key: tuple[Any, ...], run: Follower, optimum: float) -> tuple[Any, ...]:
    primal, best, bound = run.look()
    return (
        *key,
        *(f"{value:.8g}" for value in (primal - optimum, best - optimum, optimum - bound)),
    )


def greedy_rows(files: list[Path]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the second table."""
    named: list[tuple[str, Model]] = [
        ("paper's law, n = 100", generators.erdos_renyi(100, 3, seed=0)),
        ("paper's law, n = 1000", generators.erdos_renyi(1000, 3, seed=0)),
        ("Potts grid 40 × 40, 4 labels", generators.potts_grid(40, 40, 4, seed=0)),
        *((path.name.split(".uai")[0], softmap.read(path)) for path in files),
    ]
    for name, model in named:
        dual = SmoothedDual(tighten(model), ETA / cost_scale(model))
        optimum = softmap.solve(model, goal="lp", lp_gap=1e-5, time_limit=20).lp_bound
        for method in GREEDY:
            for trial in range(1 if method.startswith("greedy") else 3):
                yield from _followed(name, dual, method, trial, optimum)


def _followed(
    name: str, dual: SmoothedDual, method: str, trial: int, optimum: float
) -> Iterator[tuple[Any, ...]]:
    run, m = Follower(dual, method, trial), dual.model.m
    for sweeps in points_until(SWEEPS, 16):
        run.until(2 * m * sweeps)
        primal, _, bound = run.look()
        lam = run.state.current() if isinstance(run.state, StandardState) else None
        value = dual.value(run.algorithm.propose(run.state).lam if lam is None else lam)
        numbers = (run.seconds, primal - optimum, optimum - bound, value)
        key = (name, dual.model.n, m, method, trial, run.state.updates, run.state.work)
        yield (*key, *(f"{number:.8g}" for number in numbers))


def write(path: Path, columns: tuple[str, ...], rows: Iterator[tuple[Any, ...]]) -> None:
    """Write a table."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def main(what: str, folder: str, *files: str) -> None:
    """Make one of the two tables."""
    if what == "sweeps":
        write(Path(folder) / "beyond-sweeps.csv", SWEEP_COLUMNS, sweep_rows())
    else:
        rows = greedy_rows([Path(file) for file in files])
        write(Path(folder) / "beyond-greedy.csv", GREEDY_COLUMNS, rows)


if __name__ == "__main__":
    main(*sys.argv[1:])

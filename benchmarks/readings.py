"""Under which reading of the paper do its figures appear? All of them, one small curve each.

A reading says what λ is off the block that is updated (kept, or y), how large the step of v is,
where θ starts, and which iterate is measured. Each is run beside the plain method on the same
graphs with the same random numbers; a curve is the mean of log(gap of the plain method / gap of the
accelerated one) over the graphs. Run by `python -m benchmarks.readings FOLDER`.
"""

from __future__ import annotations

import csv
import itertools
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import generators
from softmap.app.experiments.plan import spaced
from softmap.app.experiments.trials import trial_seed
from softmap.methods.base import Algorithm, Proposal
from softmap.model import Model
from softmap.paper import methods as paper
from softmap.paper.methods import Blocks, gain
from softmap.relaxation import lp
from softmap.solving.judge import Judge

__all__ = ["GRAPHS", "ITERATES", "Reading", "curves", "readings", "run", "write"]

ETA = 1000.0  # the paper's
FAMILIES = ("emp", "smp")
KEPT = ("λ", "y")  # off the block
STEPS = {"printed": 1.0, "printed × 0.3": 0.3, "printed × 0.1": 0.1, "printed × 0.03": 0.03,
         "lemma": 1.0, "sharp": 1.0}  # fmt: skip
STARTS = ("1", "p")  # θ before the first update: 1, or the least chance of a block
ITERATES = ("last", "least slack", "average")
GRAPHS = ("random", "grid")
FLOOR = 1e-12  # gaps below it count as this: the LP is solved that well

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Reading:
    """One way to read Algorithms 2 and 3."""

    family: str
    off: str
    step: str
    start: str

    @property
    def blocks(self) -> Blocks:
        """Edges or stars."""
        return Blocks.STARS if self.family == "smp" else Blocks.EDGES

    def begin(self, model: Model, seed: int) -> tuple[Algorithm, Any]:
        """The method and its state, with this reading's step and θ."""
        names = {("emp", "λ"): paper.AccelEMPPrinted, ("emp", "y"): paper.AccelEMP,
                 ("smp", "λ"): paper.AccelSMPPrinted, ("smp", "y"): paper.AccelSMP}  # fmt: skip
        method = names[self.family, self.off](ETA)
        state = method.init(model, None, seed)
        state.gain = STEPS[self.step] * gain(self.step.split()[0], model, self.blocks, ETA)
        if self.start == "p":
            size = model.graph.degree.min() if self.blocks is Blocks.STARS else 1
            state.theta = max(1, int(size)) / max(2 * model.m, 1)
        return method, state


def readings() -> list[Reading]:
    """Every combination."""
    return [Reading(*parts) for parts in itertools.product(FAMILIES, KEPT, STEPS, STARTS)]


def run(
    method: Algorithm, state: Any, model: Model, checks: tuple[int, ...]
) -> dict[str, list[float]]:
    """Primal values at the checks, of the last iterate, that of least slack, and the average."""
    found: dict[str, list[float]] = {name: [] for name in ITERATES}
    done, least, best, total = 0, math.inf, math.inf, np.zeros(int(model.half_offset[-1]))
    for count, check in enumerate(checks, 1):
        method.step(state, check - done)
        done = check
        lam = state.current() if isinstance(state, paper.StandardState) else _lam(method, state)
        total += lam
        verdict = Judge.of(model).look(Proposal(lam, ETA))
        if verdict.slack < least:
            least, best = verdict.slack, verdict.primals[0]
        found["last"].append(verdict.primals[0])
        found["least slack"].append(best)
        mean = Judge.of(model).look(Proposal(total / count, ETA))
        found["average"].append(mean.primals[0])
    return found


def _lam(method: Algorithm, state: Any) -> Floats:
    return method.propose(state).lam


def problems(graph: str, size: int, seeds: int) -> Iterator[tuple[Model, float, int]]:
    """Graphs of the paper's costs with the optimum of their LP."""
    for seed in range(seeds):
        model = generators.erdos_renyi(size, 3, seed=seed)
        if graph == "grid":
            side = math.isqrt(size)
            edges = generators.grid_edges(side, side)
            rng = np.random.default_rng(seed)
            tables = rng.choice([-1.0, 1.0], size=(len(edges), 3, 3))
            model = Model(rng.uniform(-0.01, 0.01, (side * side, 3)), edges, tables)
        yield model, lp.solve(model, "simplex", tolerance=1e-9, threads=1).value, seed


def curves(
    *, size: int = 100, seeds: int = 3, updates: int = 30_000, points: int = 40
) -> Iterator[tuple[str, Reading, str, tuple[int, ...], Floats]]:
    """(graph, reading, iterate, updates, log ratios) of every reading."""
    checks = spaced(updates, points)
    for graph in GRAPHS:
        given = list(problems(graph, size, seeds))
        plain = {}
        for family, (model, _, seed) in itertools.product(FAMILIES, given):
            method = paper.SMP(ETA) if family == "smp" else paper.EMP(ETA)
            plain[family, seed] = run(
                method, method.init(model, None, trial_seed(0, seed)), model, checks
            )
        for reading in readings():
            ratios = {name: np.zeros((len(given), len(checks))) for name in ITERATES}
            for k, (model, optimum, seed) in enumerate(given):
                ours = run(*reading.begin(model, trial_seed(0, seed)), model, checks)
                for name in ITERATES:
                    base = _gaps(plain[reading.family, seed][name], optimum)
                    ratios[name][k] = np.log(base / _gaps(ours[name], optimum))
            for name in ITERATES:
                yield graph, reading, name, checks, ratios[name].mean(axis=0)


def _gaps(primals: list[float], optimum: float) -> Floats:
    gaps = np.asarray(primals) - optimum
    return np.maximum(np.nan_to_num(gaps, posinf=1e12), FLOOR)


def write(folder: Path, **sizes: int) -> Path:
    """All curves as one table."""
    path = folder / "readings.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("graph", "family", "off", "step", "start", "iterate", "updates", "ratio"))
        for graph, reading, iterate, checks, ratios in curves(**sizes):
            parts = (graph, reading.family, reading.off, reading.step, reading.start, iterate)
            for check, ratio in zip(checks, ratios.tolist(), strict=True):
                writer.writerow((*parts, check, f"{ratio:.3f}"))
    return path


if __name__ == "__main__":
    print(write(Path(sys.argv[1])))

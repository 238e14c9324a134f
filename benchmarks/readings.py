"""Under which reading of the paper do its figures appear? All of them, one small curve each.

A reading says what λ is off the block that is updated (kept, or y), how large the step of v is,
where θ starts, and which iterate is measured. Each is run beside the plain method on the same
graphs with the same random numbers; a curve is the mean over the graphs of log(gap of the plain
method / gap of the accelerated one). A step of 0 is the control: v stays 0, there is no momentum,
and only y = (1 - θ) λ differs from the plain method.

    python -m benchmarks.readings FOLDER

writes FOLDER/readings.npz, the costs of all projected points.
"""

from __future__ import annotations

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
from softmap.app.experiments.evaluation import Evaluator
from softmap.app.experiments.plan import spaced
from softmap.app.experiments.problems import optimum
from softmap.app.experiments.trials import current, trial_seed
from softmap.io.atomic import replacing
from softmap.methods.base import Algorithm
from softmap.model import Model
from softmap.paper import methods as paper
from softmap.paper.methods import Blocks, gain

__all__ = [
    "GRAPHS", "ITERATES", "KINDS", "POINTS", "UPDATES", "Reading", "collected", "model_of",
    "piece", "plain", "readings", "run", "write",
]  # fmt: skip

ETA = 1000.0  # the paper's
SIZE, GRAPHS, UPDATES, POINTS = 100, 20, 30_000, 20
FAMILIES = ("emp", "smp")
KEPT = ("λ", "y")  # off the block
CONTROL = "none (v = 0)"
STEPS = {"printed": 1.0, "printed × 0.3": 0.3, "printed × 0.1": 0.1, "printed × 0.03": 0.03,
         "lemma": 1.0, "sharp": 1.0, CONTROL: 0.0}  # fmt: skip
STARTS = ("1", "p")  # θ before the first update: 1, or the least chance of a block
ITERATES = ("last", "least slack", "average")
KINDS = ("random", "grid")

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
        state = method.init(model.network, None, seed)
        constants = "printed" if self.step == CONTROL else self.step.split()[0]
        state.gain = STEPS[self.step] * gain(constants, model.network, self.blocks, ETA)
        if self.start == "p":
            size = model.network.graph.degree.min() if self.blocks is Blocks.STARS else 1
            state.theta = max(1, int(size)) / max(2 * model.m, 1)
        return method, state


def readings() -> list[Reading]:
    """Every combination."""
    return [Reading(*parts) for parts in itertools.product(FAMILIES, KEPT, STEPS, STARTS)]


def plain(family: str) -> Algorithm:
    """The method without acceleration."""
    return paper.SMP(ETA) if family == "smp" else paper.EMP(ETA)


def run(
    method: Algorithm, state: Any, evaluator: Evaluator, checks: tuple[int, ...]
) -> list[tuple[float, float, float]]:
    """Costs at the checks, of the last iterate, that of least slack, and the average."""
    rows = []
    done, least, best, total = 0, math.inf, math.inf, np.zeros(evaluator.model.network.half_size)
    for count, check in enumerate(checks, 1):
        method.step(state, check - done)
        done = check
        lam = current(method, state)
        with np.errstate(over="ignore", invalid="ignore"):  # readings that diverge
            total += lam
        last, slack = evaluator.projected(lam, ETA), evaluator.exchanged(lam, ETA).slack
        if slack < least:
            least, best = slack, last
        rows.append((last, best, evaluator.projected(total / count, ETA)))
    return rows


def model_of(kind: str, size: int, seed: int) -> Model:
    """A graph with the paper's costs."""
    if kind == "random":
        return generators.erdos_renyi(size, 3, seed=seed)
    side = math.isqrt(size)
    edges = generators.grid_edges(side, side)
    rng = np.random.default_rng(seed)
    tables = rng.choice([-1.0, 1.0], size=(len(edges), 3, 3))
    return Model(rng.uniform(-0.01, 0.01, (side * side, 3)), edges, tables)


def piece(kind: str, size: int, seed: int, checks: tuple[int, ...]) -> Floats:
    """Costs on one graph: the two plain methods, then all readings, by iterate and check."""
    model = model_of(kind, size, seed)
    evaluator = Evaluator(model.network)
    rows = []
    for family in FAMILIES:
        method = plain(family)
        rows.append(
            run(method, method.init(model.network, None, trial_seed(0, seed)), evaluator, checks)
        )
    for reading in readings():
        rows.append(run(*reading.begin(model, trial_seed(0, seed)), evaluator, checks))
    return np.array(rows).transpose(0, 2, 1)


def pieces(folder: Path, which: slice, size: int, graphs: int, checks: tuple[int, ...]) -> None:
    """Make some of the pieces, one file each; those that exist are kept."""
    for kind, seed in list(itertools.product(KINDS, range(graphs)))[which]:
        path = folder / f"{kind}-{seed}.npy"
        if not path.exists():
            with replacing(path) as file:
                np.save(file, piece(kind, size, seed, checks))


def collected(folder: Path, path: Path, size: int, graphs: int, checks: tuple[int, ...]) -> None:
    """Write all pieces as one file: costs by kind, graph, method, iterate and check."""
    costs = np.stack(
        [np.stack([np.load(folder / f"{kind}-{k}.npy") for k in range(graphs)]) for kind in KINDS]
    )
    with replacing(path) as file:
        np.savez_compressed(file, costs=costs, checks=np.array(checks), size=np.array(size))


def write(
    folder: Path, *, size: int = SIZE, graphs: int = GRAPHS, updates: int = UPDATES,
    points: int = POINTS,
) -> Path:  # fmt: skip
    """All costs, and the optima of the LPs."""
    checks, path = spaced(updates, points), folder / "readings.npz"
    parts = folder / "readings"
    parts.mkdir(parents=True, exist_ok=True)
    pieces(parts, slice(None), size, graphs, checks)
    collected(parts, path, size, graphs, checks)
    return path


def optima(size: int, graphs: int) -> Iterator[tuple[str, int, float]]:
    """The LP optimum of every graph: kind, seed, value."""
    for kind, seed in itertools.product(KINDS, range(graphs)):
        yield kind, seed, optimum(model_of(kind, size, seed))


if __name__ == "__main__":
    print(write(Path(sys.argv[1])))

"""Energy and bound against time, for a dozen models of different kinds, limits and goals.

`python -m benchmarks.schedule [--only TEXT] [--limits 1,2,4,8,16] [--goals map,labels] [--again N]
[--clock wall|cpu] [--out FOLDER]`. A run with a doubled limit must have neither a worse energy nor
a worse gap, and no goal may be behind another one; the tables list where that fails. A regression
counts only if it also occurs in the best of N further runs: other processes slow down single runs.
With `--clock cpu`, limits are processor time of this process, which other processes hardly change.
One JSON line per run goes to FOLDER/schedule.jsonl, the figure to FOLDER/schedule.svg.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

import softmap
from benchmarks.instances import data_folder
from benchmarks.summary import markdown
from softmap import generators
from softmap.views.plotting import figure

TOLERANCE = 1e-3  # relative difference of energies or bounds that is tolerated


def spin_glass(side: int = 10, seed: int = 0) -> softmap.Model:
    """±1 couplings on a cube of side³ spins with periodic boundaries."""
    rng, cells = np.random.default_rng(seed), np.arange(side**3).reshape(side, side, side)
    pairs = [np.stack([cells, np.roll(cells, 1, axis)], -1).reshape(-1, 2) for axis in range(3)]
    edges = np.concatenate(pairs)
    return _spins(side**3, edges, rng.choice([-1.0, 1.0], len(edges)))


def _spins(n: int, edges: np.ndarray, couplings: np.ndarray) -> softmap.Model:
    """Energy `sum J_ij s_i s_j` over spins ±1, as costs of two labels."""
    tables = couplings[:, None, None] * np.array([[1.0, -1.0], [-1.0, 1.0]])
    return softmap.Model(np.zeros((n, 2)), edges, softmap.Tables(list(tables)))


def couplings_file(path: Path) -> softmap.Model:
    """Spins from a file of lines `i j J`; other lines are skipped."""
    rows = [line.split() for line in path.read_text().splitlines()]
    numbers = np.array([list(map(float, row)) for row in rows if len(row) == 3 and row[0] != "#"])
    ends = numbers[:, :2].astype(np.int64)
    names, at = np.unique(ends, return_inverse=True)
    edges, which = np.unique(np.sort(at.reshape(ends.shape), axis=1), axis=0, return_inverse=True)
    weights = np.bincount(which.ravel(), numbers[:, 2])
    own = edges[:, 0] == edges[:, 1]  # J s s = J: a constant
    return _spins(len(names), edges[~own], weights[~own])


def qubo(n: int = 150, density: float = 0.5, seed: int = 0) -> softmap.Model:
    """A quadratic function of n bits with integer coefficients of -100 to 100."""
    rng = np.random.default_rng(seed)
    edges = generators.random_edges(n, density, rng)
    costs = rng.integers(-100, 101, len(edges)).astype(float)
    tables = np.zeros((len(edges), 2, 2))
    tables[:, 1, 1] = costs
    unary = np.stack([np.zeros(n), rng.integers(-100, 101, n)], 1).astype(float)
    return softmap.Model(unary, edges, softmap.Tables(list(tables)))


def links(n: int = 120, labels: int = 20, seed: int = 0) -> softmap.Model:
    """Radio links: frequencies near each other cost much on interfering pairs of links."""
    rng = np.random.default_rng(seed)
    places = rng.random((n, 2))
    near = np.linalg.norm(places[:, None] - places[None], axis=2) < 0.17
    edges = np.argwhere(np.triu(near, 1))
    apart = np.abs(np.subtract.outer(np.arange(labels), np.arange(labels)))
    tables = [rng.choice([1.0, 10.0, 100.0]) * (apart < rng.integers(1, 8)) for _ in edges]
    return softmap.Model(np.zeros((n, labels)), edges, softmap.Tables(tables))


def colouring(side: int = 7, colours: int = 8) -> softmap.Model:
    """The queens graph of a board with hard constraints; colour k costs k on each field."""
    fields = [(i, j) for i in range(side) for j in range(side)]
    edges = [
        (a, b)
        for a, (i, j) in enumerate(fields)
        for b, (k, m) in enumerate(fields[:a])
        if i == k or j == m or abs(i - k) == abs(j - m)
    ]
    hard = np.where(np.eye(colours, dtype=bool), np.inf, 0.0)
    unary = np.tile(np.arange(colours) / colours, (len(fields), 1))
    return softmap.Model(unary, edges, softmap.SharedTables([hard], np.zeros(len(edges), int)))


def assignment(n: int = 12, seed: int = 0) -> softmap.Model:
    """A quadratic assignment: flows times distances, and all places different."""
    rng = np.random.default_rng(seed)
    flows = np.triu(rng.integers(0, 10, (n, n)) * (rng.random((n, n)) < 0.4), 1)
    spots = rng.integers(0, 10, (n, 2))
    far = np.abs(spots[:, None] - spots[None]).sum(2).astype(float)
    edges = np.argwhere(np.triu(np.ones((n, n)), 1))
    tables = [np.where(np.eye(n, dtype=bool), np.inf, far * flows[i, j]) for i, j in edges]
    return softmap.Model(np.zeros((n, n)), edges, softmap.Tables(tables))


def protein(n: int = 90, labels: int = 24, seed: int = 0) -> softmap.Model:
    """Side chains: ragged label counts, dense contacts, a few very large clashes."""
    rng = np.random.default_rng(seed)
    places, counts = rng.random((n, 3)), rng.integers(2, labels, n)
    distance = np.linalg.norm(places[:, None] - places[None], axis=2)
    edges = np.argwhere(np.triu(distance < 0.32, 1))
    tables = []
    for i, j in edges:
        table = rng.normal(0, 1, (counts[i], counts[j]))
        tables.append(np.where(rng.random(table.shape) < 0.08, 50.0, table))
    unary = [rng.exponential(2.0, k) for k in counts]
    return softmap.Model(unary, edges, softmap.Tables(tables))


GENERATED: dict[str, Callable[[], softmap.Model]] = {
    "spin glass 10³": spin_glass,
    "Potts image 128²": partial(generators.potts_grid, 128, 128, 8, seed=0),
    "stereo image 160²": partial(
        generators.stereo_grid, 160, 160, 16, seed=0, weight=0.2, truncation=4.0
    ),
    "random graph 1000": partial(generators.erdos_renyi, 1000, 3, seed=0),
    "QUBO 150": qubo,
    "radio links 120": links,
    "colouring queen7": colouring,
    "assignment 12": assignment,
    "protein 90": protein,
}
FILES: dict[str, str] = {  # name: file below the data folder
    "Chimera 2048": "more/ising-chimera/chimera2048_spinglass_power-002.coo",
    "grid 80² f10": "uai-grid/grid80x80.f10.uai.xz",
    "barley": "more/bif/barley.bif.gz",
    "bqp250": "more/maxcut-bqp/bqp250-5.mc",
    "G11": "more/maxcut-gset/G11.mc",
    "chr18a": "qaplib/chr18a.dat",
    "CELAR6SUB1": "cfn/CELAR6SUB1.cfn.gz",
    "1bv1": "more/uai-protein/1bv1.uai.xz",
}


def models(only: str) -> Iterator[tuple[str, softmap.Model]]:
    """Yield the models whose names contain one of the texts in `only`, separated by commas."""
    wanted = only.split(",")
    folder = data_folder()
    for name, build in GENERATED.items():
        if any(text in name for text in wanted):
            yield name, build()
    for name, file in FILES.items():
        path = None if folder is None else folder / file
        if path is not None and path.exists() and any(text in name for text in wanted):
            by_hand = path.suffix in (".coo", ".mc")
            yield name, couplings_file(path) if by_hand else softmap.read(path)


@dataclass(frozen=True)
class Run:
    """One run of one model."""

    model: str
    goal: str
    limit: float
    energy: float
    bound: float
    status: str
    wall: float
    cpu: float
    curve: list[tuple[float, float, float]] = field(default_factory=list)

    @property
    def gap(self) -> float:
        """The relative gap."""
        return (self.energy - self.bound) / max(abs(self.bound), 1e-12)


def solve(name: str, model: softmap.Model, goal: str, limit: float) -> Run:
    """Run once on one thread."""
    wall, cpu = time.monotonic(), time.process_time()
    found = softmap.solve(model, goal=goal, time_limit=limit, threads=1)  # type: ignore[arg-type]
    wall, cpu = time.monotonic() - wall, time.process_time() - cpu
    setup = found.setup_seconds
    curve = [(setup + row.seconds, row.energy, row.bound) for row in found.trace]
    return Run(name, goal, limit, found.energy, found.bound, found.status.name, wall, cpu, curve)


def warm_up() -> None:
    """Import what single stages import late, outside the clock."""
    softmap.solve(spin_glass(4), time_limit=1.0, threads=1)


def worse(run: Run, than: Run) -> str:
    """What is worse in a run than in another one by more than the tolerance; empty if nothing."""
    found = []
    for name, mine, its in (
        ("energy", run.energy, than.energy),
        ("bound", -run.bound, -than.bound),
    ):
        if mine > its + TOLERANCE * max(abs(its), 1e-12):
            found.append(f"{name} by {(mine - its) / max(abs(its), 1e-12):.2%}")
    return ", ".join(found)


def best_of(runs: list[Run]) -> Run:
    """The run of the smallest gap."""
    return min(runs, key=lambda run: (run.energy - run.bound, run.energy))


Key = tuple[str, str, float]


def regressions(runs: dict[Key, Run], again: Callable[[Key], Run]) -> list[list[str]]:
    """Rows of what a longer limit or another goal has made worse, also in further runs."""
    rows = []
    for (model, goal, limit), run in list(runs.items()):
        others = [(model, goal, each) for _, _, each in runs if each < limit]
        others += [(model, other, limit) for _, other, _ in runs if other != goal]
        for other in dict.fromkeys(others):
            than = runs.get(other)
            if than is None or not worse(run, than):
                continue
            run = again((model, goal, limit))
            if lost := worse(run, than):
                rows.append([model, f"{goal}, {limit:g} s", f"{other[1]}, {other[2]:g} s", lost])
    return rows


def table(runs: dict[Key, Run], goal: str, limits: list[float]) -> str:
    """Energy, bound and relative gap of each model under each limit."""
    rows = []
    for model in dict.fromkeys(name for name, *_ in runs):
        cells = []
        for limit in limits:
            run = runs[model, goal, limit]
            cells.append(f"{run.energy:.7g} ≥ {run.bound:.7g} ({run.gap:.2%})")
        rows.append([model, *cells])
    return markdown([f"goal {goal!r}", *(f"{limit:g} s" for limit in limits)], rows)


def draw(runs: dict[Key, Run], goal: str, path: Path) -> None:
    """One panel per model: energy and bound against time, one pair of curves per limit."""
    names = list(dict.fromkeys(name for name, *_ in runs))
    with figure(path, 2.8 * len(names), 2.6, panels=len(names)) as panels:
        for axis, name in zip(panels, names, strict=True):
            mine = [run for run in runs.values() if run.model == name and run.goal == goal]
            for k, run in enumerate(mine):
                seconds, energy, bound = np.array(run.curve, dtype=float).T
                axis.step(seconds, energy, f"C{k}-", where="post", label=f"{run.limit:g} s")
                axis.step(seconds, bound, f"C{k}--", where="post")
            ends = [value for run in mine for value in (run.energy, run.bound)]
            low, high = min(ends), max(ends)
            margin = 0.3 * (high - low) + 1e-6 * abs(high)
            axis.set(xscale="log", title=name, xlabel="seconds", ylim=(low - margin, high + margin))
        panels[0].legend(fontsize=7)


def main() -> None:
    """Run all models, print the tables, write runs and figure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="texts in names of models, by commas")
    parser.add_argument("--limits", default="1,2,4,8,16")
    parser.add_argument("--goals", default="map,labels")
    parser.add_argument("--again", type=int, default=1, help="further runs of a regression")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--out", type=Path, default=Path("schedule"))
    asked = parser.parse_args()
    if asked.clock == "cpu":
        time.perf_counter = time.process_time
    limits, goals = [float(x) for x in asked.limits.split(",")], asked.goals.split(",")
    asked.out.mkdir(parents=True, exist_ok=True)
    warm_up()
    built, runs = dict(models(asked.only)), {}
    with (asked.out / "schedule.jsonl").open("w", encoding="utf-8") as file:

        def once(key: Key) -> Run:
            run = solve(key[0], built[key[0]], *key[1:])
            file.write(json.dumps(asdict(run)) + "\n")
            return run

        for name in built:
            for goal in goals:
                for limit in limits:
                    runs[name, goal, limit] = once((name, goal, limit))
        rows = regressions(runs, lambda key: best_of([once(key) for _ in range(asked.again)]))
    for goal in goals:
        print(table(runs, goal, limits), "\n")
    print(markdown(["model", "run", "is worse than", "in"], rows) if rows else "no regressions")
    draw(runs, goals[0], asked.out / "schedule.svg")


if __name__ == "__main__":
    main()

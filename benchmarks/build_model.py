"""What it costs to import softmap, to build large models, and to order their graphs.

`python -m benchmarks.build_model` prints a line per figure: measured, allowed, whether it holds.
Times are wall seconds, best of a few; memory is what the allocator handed out (tracemalloc).
"""

from __future__ import annotations

import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from softmap.model.network.graph import Graph

from softmap.generators import grid_edges, random_edges
from softmap.model import Model
from softmap.model.potentials import Potts


class Figure(NamedTuple):
    """One measurement and its limit."""

    what: str
    measured: float
    limit: float
    unit: str

    def __str__(self) -> str:
        verdict = "ok" if self.measured <= self.limit else "TOO MUCH"
        return f"{self.what:<70}{self.measured:>9.3f}{self.limit:>9.3g} {self.unit:<8}{verdict}"


def best_seconds(task: Callable[[], object], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return min(times)


def import_figures(repeats: int = 5) -> list[Figure]:
    code = "import time, numpy; s = time.perf_counter(); {}; print(time.perf_counter() - s)"

    def seconds(statements: str) -> float:
        command = [sys.executable, "-c", code.format(statements)]
        runs = [subprocess.run(command, check=True, capture_output=True) for _ in range(repeats)]
        return min(float(run.stdout) for run in runs)

    return [
        Figure("import softmap, beyond numpy", seconds("import softmap"), 0.5, "s"),
        Figure("... and softmap.Model", seconds("import softmap; softmap.Model"), 0.5, "s"),
    ]


def grid_figures(rows: int, cols: int, d: int) -> list[Figure]:
    """Building from arrays that exist; then their memory and all that building adds to it."""
    edges = grid_edges(rows, cols)
    unary = np.random.default_rng(0).uniform(size=(rows * cols, d))
    weights = np.full(len(edges), 0.3)

    def build() -> Model:
        return Model(unary, edges, Potts(weights))

    seconds = best_seconds(build)
    tracemalloc.start()
    model = build()
    peak = unary.nbytes + edges.nbytes + weights.nbytes + tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    name = f"{rows} x {cols} Potts grid, {d} labels"
    return [
        Figure(f"{name}: build", seconds, 2.0, "s"),
        Figure(
            f"{name}: peak / its arrays, inputs included", peak / model.network.nbytes, 2.0, "x"
        ),
    ]


def graph_figures(m: int = 10**6) -> list[Figure]:
    """Incidence and colouring of a random graph with about `m` edges, compiled beforehand."""
    n = m // 4
    edges = random_edges(n, 2 * m / (n * (n - 1)), np.random.default_rng(0)).astype(np.int32)
    graph = Graph.from_edges(edges, n)
    first = best_seconds(graph.colouring, repeats=1)
    name = f"random graph, {len(edges):,} edges"
    return [
        Figure(
            f"{name}: half-edge rows", best_seconds(lambda: Graph.from_edges(edges, n)), 2.0, "s"
        ),
        Figure(f"{name}: colouring", best_seconds(graph.colouring), 2.0, "s"),
        Figure(f"{name}: first colouring (kernel loaded)", first, 5.0, "s"),
    ]


def factor_figure(m: int = 10**5) -> Figure:
    rng = np.random.default_rng(0)
    n = m // 2
    scopes = random_edges(n, 2 * m / (n * (n - 1)), rng).tolist()
    factors = list(zip(scopes, rng.normal(size=(len(scopes), 3, 3)), strict=True))
    counts = np.full(n, 3)
    seconds = best_seconds(lambda: Model.from_factors(counts, factors), repeats=1)
    return Figure(f"from_factors, {len(factors):,} pairs", seconds, 5.0, "s")


def main() -> int:
    figures = import_figures()
    for d in (2, 8):
        figures += grid_figures(1000, 1000, d)
    figures += [*graph_figures(), factor_figure()]
    for figure in figures:
        print(figure)
    return int(any(figure.measured > figure.limit for figure in figures))


if __name__ == "__main__":
    sys.exit(main())

"""`softmap.solve` on submodular models of two labels beside PyMaxflow, in one run, one thread.

`python -m benchmarks.cuts [--sides 512 1024]`; PyMaxflow has to be installed. PyMaxflow builds its
graph from arrays and solves it; softmap solves a model that no run has seen before, and proves the
labels: the gap is printed. Times are CPU times, the smallest of three.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import softmap


def noisy_squares(side: int, seed: int = 0) -> np.ndarray:
    """Costs of two labels at the pixels of a noisy chequered image."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:side, :side]
    image = ((x // (side // 8)) + (y // (side // 8))) % 2
    noise = rng.normal(size=(2, side, side))
    return np.stack([(image + noise[0]) ** 2, (image - 1 + noise[1]) ** 2], axis=-1)


def models(sides: list[int]) -> dict[str, softmap.Model]:
    """Grids with two strengths of smoothing, and random graphs."""
    found = {}
    for side in sides:
        unary, edges = noisy_squares(side), softmap.generators.grid_edges(side, side)
        for weight in (0.5, 1.5):
            name = f"grid {side}², weight {weight}"
            found[name] = softmap.Model(unary.reshape(-1, 2), edges, softmap.Potts(weight))
    for nodes, edges in ((30_000, 100_000), (300_000, 900_000)):
        rng = np.random.default_rng(1)
        ends = rng.integers(0, nodes, size=(edges, 2))
        ends = ends[ends[:, 0] != ends[:, 1]]
        weights = softmap.Potts(rng.random(len(ends)))
        name = f"random graph, {edges:,} edges"
        found[name] = softmap.Model(rng.normal(size=(nodes, 2)), ends, weights)
    return found


def peer(maxflow: Any, model: softmap.Model) -> float:
    """The least energy by PyMaxflow."""
    unary = model.unary.reshape(-1, 2)
    potential = next(iter(model.network.groups()))[2]
    weights = np.broadcast_to(potential.weights, model.m).astype(float)
    graph = maxflow.GraphFloat(model.n, model.m)
    nodes = graph.add_grid_nodes(model.n)
    graph.add_edges(model.edges[:, 0], model.edges[:, 1], weights, weights)
    rest = unary - unary.min(axis=1, keepdims=True)
    graph.add_grid_tedges(nodes, rest[:, 1], rest[:, 0])
    return float(graph.maxflow() + unary.min(axis=1).sum())


def fresh(model: softmap.Model) -> softmap.Model:
    """A copy of the model without anything computed before."""
    potential = softmap.Potts(next(iter(model.network.groups()))[2].weights.copy())
    return softmap.Model(model.unary.reshape(-1, 2).copy(), model.edges.copy(), potential)


def timed(work: Any, *args: Any, **options: Any) -> tuple[float, Any]:
    """The CPU time of a call, and its outcome."""
    began = time.process_time()
    found = work(*args, **options)
    return time.process_time() - began, found


def main() -> None:
    """Print one line per model: both times, their ratio, and the relative gap of ours."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sides", type=int, nargs="*", default=[512, 1024])
    sides = parser.parse_args().sides
    import maxflow

    softmap.solve(next(iter(models([8]).values())))  # loads what is imported late
    for name, model in models(sides).items():
        theirs, ours = [], []
        while len(ours) < 3 and sum(ours) < 5:
            seconds, expected = timed(peer, maxflow, model)
            theirs.append(seconds)
            seconds, result = timed(softmap.solve, fresh(model), threads=1)
            ours.append(seconds)
        assert result.status is softmap.Status.OPTIMAL
        assert abs(result.energy - expected) <= 1e-9 * abs(expected)
        gap = (result.energy - result.bound) / abs(result.energy)
        print(f"{name:30} PyMaxflow {min(theirs):6.2f} s, softmap {min(ours):6.2f} s, "
              f"ratio {min(ours) / min(theirs):4.2f}, gap {gap:.1e}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()

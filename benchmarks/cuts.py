"""Minimum cuts and expansion moves beside PyMaxflow, in one run, one thread.

`python -m benchmarks.cuts [--sides 512 1024]`; PyMaxflow has to be installed. Times include what
each needs to set its graph up from arrays. Every cut of ours is proved: the gap is printed.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import softmap
from softmap.labels.cuts import solve_binary
from softmap.relaxation.bounds import dual_bound


def noisy_squares(side: int, seed: int = 0) -> np.ndarray:
    """Costs of two labels at the pixels of a noisy chequered image."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:side, :side]
    image = ((x // (side // 8)) + (y // (side // 8))) % 2
    noise = rng.normal(size=(2, side, side))
    return np.stack([(image + noise[0]) ** 2, (image - 1 + noise[1]) ** 2], axis=-1)


def models(sides: list[int]) -> dict[str, softmap.Model]:
    """Grids with two strengths of smoothing, and a random graph of 900,000 edges."""
    found = {}
    for side in sides:
        unary, edges = noisy_squares(side), softmap.generators.grid_edges(side, side)
        for weight in (0.5, 1.5):
            name = f"grid {side}², weight {weight}"
            found[name] = softmap.Model(unary.reshape(-1, 2), edges, softmap.Potts(weight))
    rng = np.random.default_rng(1)
    ends = rng.integers(0, 300_000, size=(900_000, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    weights = softmap.Potts(rng.random(len(ends)))
    found["random graph"] = softmap.Model(rng.normal(size=(300_000, 2)), ends, weights)
    return found


def peer(maxflow: Any, model: softmap.Model) -> float:
    """The least energy by PyMaxflow."""
    unary = model.unary.reshape(-1, 2)
    potential = next(iter(model.groups()))[2]
    weights = np.broadcast_to(potential.weights, model.m).astype(float)
    graph = maxflow.GraphFloat(model.n, model.m)
    nodes = graph.add_grid_nodes(model.n)
    graph.add_edges(model.edges[:, 0], model.edges[:, 1], weights, weights)
    rest = unary - unary.min(axis=1, keepdims=True)
    graph.add_grid_tedges(nodes, rest[:, 1], rest[:, 0])
    return float(graph.maxflow() + unary.min(axis=1).sum())


def main() -> None:
    """Print one line per model: both times, their ratio, and the relative gap of ours."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sides", type=int, nargs="*", default=[512, 1024])
    sides = parser.parse_args().sides
    import maxflow

    for name, model in models(sides).items():
        times = {"peer": [], "ours": []}
        for _ in range(3):
            began = time.perf_counter()
            expected = peer(maxflow, model)
            times["peer"].append(time.perf_counter() - began)
            began = time.perf_counter()
            found = solve_binary(model)
            times["ours"].append(time.perf_counter() - began)
        assert found is not None
        energy, bound = float(model.energy(found[0])), dual_bound(model, found[1])
        assert abs(energy - expected) <= 1e-9 * abs(expected)
        theirs, ours = min(times["peer"]), min(times["ours"])
        gap = (energy - bound) / abs(energy)
        print(f"{name:26} PyMaxflow {theirs:6.2f} s, softmap {ours:6.2f} s, "
              f"ratio {ours / theirs:4.2f}, gap {gap:.1e}")  # fmt: skip


if __name__ == "__main__":
    main()

"""Energy over time of `softmap.solve` and of α-expansion on PyMaxflow, on models of images.

`python -m benchmarks.expansion [--limits 1 2 4 8] [--data FOLDER] [--plot FILE]`; PyMaxflow has to
be installed. Both use one thread. Each line has the energies at one time: α-expansion from the
labels of lowest unary cost, after its last whole expansion by then, and `softmap.solve` with this
time limit, with its bound. Real stereo pairs are read if a folder of them is given.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import softmap
from softmap.app.vision.depth import stereo_model
from softmap.app.vision.source import Source
from softmap.labels import cheapest

Steps = list[tuple[float, float]]  # (seconds, energy)


def potts_regions(side: int, labels: int, seed: int = 0) -> softmap.Model:
    """A noisy image of regions with Potts smoothing."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:side, :side]
    centres = rng.uniform(0, side, size=(3 * labels, 2))
    far = np.stack([(y - a) ** 2 + (x - b) ** 2 for a, b in centres])
    scene = (far.argmin(axis=0) % labels).reshape(-1, 1)
    unary = np.where(np.arange(labels) == scene, 0.0, 1.0)
    unary = unary + rng.normal(scale=1.0, size=unary.shape)
    unary -= unary.min(axis=1, keepdims=True)
    edges = softmap.generators.grid_edges(side, side)
    return softmap.Model(unary, edges, softmap.Potts(np.full(len(edges), 0.8)))


def synthetic() -> Iterator[tuple[str, softmap.Model]]:
    """Yield models of 256² to 512² pixels with 16 to 64 labels."""
    stereo = softmap.generators.stereo_grid
    yield "Potts 256², 16 labels", potts_regions(256, 16)
    yield "Potts 512², 16 labels", potts_regions(512, 16)
    yield "truncated linear 256², 32 labels", stereo(256, 256, 32, seed=1)
    yield "truncated linear 400², 32 labels", stereo(400, 400, 32, seed=1)
    yield "truncated linear 400², 64 labels", stereo(400, 400, 64, seed=1)


def pairs(folder: Path) -> Iterator[tuple[str, softmap.Model]]:
    """Yield models of the stereo pairs in the subfolders of a folder, with 32 and 64 labels."""
    for inside in sorted(path for path in folder.iterdir() if path.is_dir()):
        images = sorted(p for p in inside.iterdir() if p.suffix in (".ppm", ".png", ".pgm"))
        views = [p for p in images if "im" in p.stem or "scene" in p.stem][:2]
        if len(views) < 2:
            continue
        left, right = (Source.of(p) for p in views)
        for labels in (32, 64):
            model = stereo_model(left, right, labels, 6.0)
            yield f"{inside.name}, {labels} labels", model


class Expansion:
    """α-expansion of a model of metric pairwise costs, one maximum flow of PyMaxflow per move."""

    def __init__(self, maxflow: Any, model: softmap.Model) -> None:
        self.maxflow, self.model = maxflow, model
        self.unary = model.unary.reshape(model.n, -1)
        self.labels = cheapest(model, model.unary)
        self.every = np.arange(model.n)
        self.potential = next(iter(model.network.groups()))[2]
        self.edge = np.arange(model.m)

    def expand(self, alpha: int) -> int:
        """Expand one label; return the number of changes."""
        model, labels = self.model, self.labels
        i, j = model.edges.T
        first, second = labels[i], labels[j]
        same = np.full(model.m, alpha)
        stay = self.potential.value(self.edge, first, second)
        head = self.potential.value(self.edge, first, same)
        tail = self.potential.value(self.edge, same, second)
        capacity = head + tail - stay  # the cost of (α, α) is 0
        rise = self.unary[:, alpha] - self.unary[self.every, labels]
        np.add.at(rise, i, tail - stay)
        rise -= np.bincount(j, weights=tail, minlength=model.n)
        graph = self.maxflow.GraphFloat(model.n, model.m)
        nodes = graph.add_grid_nodes(model.n)
        graph.add_edges(i, j, np.maximum(capacity, 0.0), np.zeros(model.m))
        # the sink side takes α
        graph.add_grid_tedges(nodes, np.maximum(rise, 0.0), np.maximum(-rise, 0.0))
        graph.maxflow()
        taken = graph.get_grid_segments(nodes) & (labels != alpha)
        labels[taken] = alpha
        return int(taken.sum())

    def run(self, seconds: float) -> Steps:
        """Expand all labels in turn; return times and energies."""
        steps = [(0.0, float(self.model.energy(self.labels)))]
        count, spent, idle, alpha = self.unary.shape[1], 0.0, 0, 0
        while spent < seconds and idle < count:
            began = time.perf_counter()
            changed = self.expand(alpha)
            spent += time.perf_counter() - began
            idle = 0 if changed else idle + 1
            alpha = (alpha + 1) % count
            steps.append((spent, float(self.model.energy(self.labels))))
        return steps


def plot(curves: dict[str, tuple[Steps, Steps]], path: str) -> None:
    """Draw the energies of both over time, one panel per model."""
    import matplotlib.pyplot as plt

    rows = (len(curves) + 2) // 3
    figure, axes = plt.subplots(rows, 3, figsize=(12, 3.2 * rows), squeeze=False)
    for (name, (theirs, ours)), axis in zip(curves.items(), axes.flat, strict=False):
        axis.step(*zip(*theirs[1:], strict=True), where="post", label="α-expansion (PyMaxflow)")
        axis.plot(*zip(*ours, strict=True), "o", label="softmap.solve(time_limit=…)")
        axis.set(title=name, xlabel="seconds", ylabel="energy", xscale="log")
    axes[0][0].legend()
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    """Print the energies of both at each time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limits", type=float, nargs="*", default=[1.0, 2.0, 4.0, 8.0])
    parser.add_argument("--data", type=Path, help="folder of folders of stereo pairs")
    parser.add_argument("--only", nargs="*", default=[""], help="parts of the names of models")
    parser.add_argument("--plot", help="draw the energies into this file")
    given = parser.parse_args()
    import maxflow

    softmap.solve(potts_regions(48, 3), time_limit=1.0)  # loads what is imported late
    models = [*synthetic(), *(pairs(given.data) if given.data else ())]
    curves: dict[str, tuple[Steps, Steps]] = {}
    for name, model in models:
        if not any(part in name for part in given.only):
            continue
        theirs, ours = Expansion(maxflow, model).run(max(given.limits)), []
        for limit in given.limits:
            peer = min(energy for at, energy in theirs if at <= limit)
            began = time.perf_counter()
            result = softmap.solve(model, time_limit=limit, threads=1)
            clock = time.perf_counter() - began
            ours.append((limit, result.energy))
            above = (result.energy - peer) / abs(peer)
            print(f"{name:34} {limit:4g} s: α-expansion {peer:10.7g}, softmap "
                  f"{result.energy:10.7g} ({above:+.3%}), bound {result.bound:10.7g}, "
                  f"{clock:.1f} s", flush=True)  # fmt: skip
        curves[name] = theirs, ours
    if given.plot:
        plot(curves, given.plot)


if __name__ == "__main__":
    main()

"""Time per update of the paper's methods: does it depend on the size, and what is numpy's time?

    python -m benchmarks.paper_updates

Two figures. (1) Every method on random 6-regular graphs with 3 labels, n = 100 and n = 10,000: an
update touches only its block, so the ratio should be near 1 (caches aside), and at most 3. (2) EMP
on the paper's problem against the same method written in vectorised numpy, in the same run: with
the return rule of Algorithm 1 followed literally, and without it. CPU seconds, best of a few runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from softmap import generators
from softmap.methods.base import METHODS, make
from softmap.model import Model
from softmap.relaxation.dual import SmoothedDual

ETA = 1000.0


def regular_model(n: int, d: int = 3, cycles: int = 3, seed: int = 0) -> Model:
    """The paper's costs on a graph of `cycles` random Hamiltonian cycles: degree 2 · cycles."""
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(n) for _ in range(cycles)]
    edges = np.concatenate([np.stack([o, np.roll(o, -1)], axis=1) for o in orders])
    unary = rng.uniform(-0.01, 0.01, size=(n, d))
    return Model(unary, edges, rng.choice([-1.0, 1.0], size=(len(edges), d, d)))


def cpu_seconds(run: Callable[[], object], repeats: int) -> float:
    """Least CPU time of many short runs: the others were disturbed."""
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        run()
        times.append(time.process_time() - begin)
    return min(times)


def per_update(method: str, model: Model, updates: int = 10_000, repeats: int = 30) -> float:
    """CPU seconds of one update, compiled and warmed up."""
    algorithm = make(method, eta=ETA)
    state = algorithm.init(model, None, 0)
    algorithm.step(state, updates)
    return cpu_seconds(lambda: algorithm.step(state, updates), repeats) / updates


class NumpyEMP:
    """Algorithm 1 with edge updates, vectorised over labels (and edges, for the return rule)."""

    def __init__(self, model: Model, eta: float, *, follow_best: bool) -> None:
        d = int(model.num_labels[0])
        self.eta, self.follow_best = eta, follow_best
        self.unary = np.array(model.unary).reshape(model.n, d)
        self.tables = np.stack(list(model.network.tables()))
        self.edges, self.m = np.array(model.edges), model.m
        self.incident = [np.argwhere(self.edges == i) for i in range(model.n)]
        self.lam = np.zeros((model.m, 2, d))
        self.best, self.least = self.lam.copy(), np.inf
        self.rng = np.random.default_rng(0)

    def slack(self) -> np.ndarray:
        """ν of all half-edges, (m, 2, d)."""
        total = np.zeros_like(self.unary)
        np.add.at(total, self.edges, self.lam)
        mu = softmax(self.eta * (total - self.unary), 1)
        reduced = self.tables + self.lam[:, 0, :, None] + self.lam[:, 1, None, :]
        pairs = softmax(-self.eta * reduced, (1, 2))
        return np.stack([pairs.sum(axis=2), pairs.sum(axis=1)], axis=1) - mu[self.edges]

    def step(self) -> None:
        e, side = divmod(int(self.rng.integers(2 * self.m)), 2)
        i = self.edges[e, side]
        near = self.incident[i]
        belief = self.eta * (self.lam[near[:, 0], near[:, 1]].sum(axis=0) - self.unary[i])
        log_mu = belief - log_sum_exp(belief, 0)
        reduced = -self.eta * (self.tables[e] + self.lam[e, 0, :, None] + self.lam[e, 1, None, :])
        log_s = log_sum_exp(reduced, 1 - side) - log_sum_exp(reduced, (0, 1))
        self.lam[e, side] += (log_s - log_mu) / (2 * self.eta)
        if self.follow_best:
            total = (np.abs(self.slack()).sum(axis=2) ** 2).sum()
            if total < self.least:
                self.best, self.least = self.lam.copy(), total


def log_sum_exp(a: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
    top = a.max(axis=axis, keepdims=True)
    return np.squeeze(top, axis) + np.log(np.exp(a - top).sum(axis=axis))


def softmax(a: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
    weight = np.exp(a - a.max(axis=axis, keepdims=True))
    return weight / weight.sum(axis=axis, keepdims=True)


def numpy_seconds(model: Model, *, follow_best: bool, updates: int) -> float:
    method = NumpyEMP(model, ETA, follow_best=follow_best)

    def run() -> None:
        for _ in range(updates):
            method.step()

    return cpu_seconds(run, 10) / updates


def check_numpy(model: Model) -> None:
    """The opponent computes the same slack."""
    method = NumpyEMP(model, ETA, follow_best=False)
    for _ in range(200):
        method.step()
    expected = SmoothedDual(model, ETA).slack(method.lam.reshape(-1))
    assert np.allclose(method.slack().reshape(-1), expected, atol=1e-9)


def main() -> dict[str, dict[str, float]]:
    small, large = regular_model(100), regular_model(10_000)
    figures: dict[str, dict[str, float]] = {}
    print(f"{'method':20s} {'n = 100':>10s} {'n = 10,000':>11s} {'ratio':>6s}   µs per update")
    for method in (name for name, kind in METHODS.items() if not kind.sweeping):
        a, b = (1e6 * per_update(method, m) for m in (small, large))
        figures[method] = {"n=100": a, "n=10000": b, "ratio": b / a}
        print(f"{method:20s} {a:10.3f} {b:11.3f} {b / a:6.2f}")
    paper = generators.erdos_renyi(100)
    check_numpy(paper)
    ours = 1e6 * per_update("emp", paper)
    full = 1e6 * numpy_seconds(paper, follow_best=True, updates=50)
    bare = 1e6 * numpy_seconds(paper, follow_best=False, updates=200)
    figures["emp against numpy"] = {"ours": ours, "numpy": full, "numpy, no return rule": bare}
    print(f"\nEMP on the paper's problem ({paper.n} variables, {paper.m} edges), µs per update:")
    print(f"  compiled, best iterate followed   {ours:9.3f}")
    print(f"  numpy, best iterate followed      {full:9.3f}   {full / ours:7.0f} times")
    print(f"  numpy, best iterate not followed  {bare:9.3f}   {bare / ours:7.0f} times")
    return figures


if __name__ == "__main__":
    main()

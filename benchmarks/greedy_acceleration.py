"""Greedy, semi-greedy and random acceleration over stars, and the condition for the greedy form.

    python -m benchmarks.greedy_acceleration FOLDER FILE...      writes FOLDER/greedy.csv

Models that the table has already are not run again.

All three forms are Algorithm 3 as proved. The greedy form takes, for λ and for v, the star that
lowers the guaranteed bound on L the most; it computes the slack of every star for each update. Its
rate is proved under a condition that is a sum over the run (`docs/theory/rates.md`), which is
recorded. L* and λ* are those of L-BFGS.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp

import softmap
from softmap import generators
from softmap.model import Model
from softmap.relaxation.gaps import cost_scale

COLUMNS = ("model", "n", "m", "form", "trial", "updates", "error", "start", "condition")
FORMS = ("random", "semi-greedy", "greedy")
SEMI = 3  # stars compared by the semi-greedy form, as in `accel-greedy-smp`
ETA = 100.0  # over the scale of the costs
ROUNDS = 120  # updates of a run, times the number of nodes
TRIALS = 2

Floats = NDArray[np.float64]


class Stars:
    """L, ν and the stars of a model whose variables have equal label counts.

    λ is an array [2m, d].
    """

    def __init__(self, model: Model, eta: float) -> None:
        self.model, self.eta = model, eta
        labels = int(model.num_labels[0])
        self.unary = model.unary.reshape(-1, labels)
        self.tables = np.array([model.network.table(e) for e in range(model.m)])
        self.node = model.edges.reshape(-1)
        self.halves = [np.flatnonzero(self.node == i) for i in range(model.n)]
        degree = model.network.graph.degree.astype(np.float64)
        self.order = np.argsort(self.node, kind="stable")
        self.starts = np.flatnonzero(np.diff(self.node[self.order], prepend=-1))
        self.chance = degree / (2 * model.m)
        self.curvature = eta * (degree + 1) / 2
        # the weight of the norm in which the distance to λ* counts
        self.weight = (self.curvature[self.node] / self.chance[self.node] ** 2)[:, None]

    def _exponents(self, lam: Floats) -> tuple[Floats, Floats]:
        """Return -η times the costs of the nodes and of the edges at λ."""
        sums = np.zeros_like(self.unary)
        sums[self.node[self.order[self.starts]]] = np.add.reduceat(lam[self.order], self.starts)
        pairs = self.tables + lam[0::2, :, None] + lam[1::2, None, :]
        return self.eta * (sums - self.unary), -self.eta * pairs

    def value(self, lam: Floats) -> float:
        """Return L(λ)."""
        nodes, edges = self._exponents(lam)
        total = logsumexp(nodes, axis=1).sum() + logsumexp(edges, axis=(1, 2)).sum()
        return float(total / self.eta)

    def slack(self, lam: Floats) -> Floats:
        """Return ν."""
        nodes, edges = self._exponents(lam)
        nodes = np.exp(nodes - nodes.max(axis=1, keepdims=True))
        nodes /= nodes.sum(axis=1, keepdims=True)
        edges = np.exp(edges - edges.max(axis=(1, 2), keepdims=True))
        edges /= edges.sum(axis=(1, 2), keepdims=True)
        sums = np.empty_like(lam)
        sums[0::2], sums[1::2] = edges.sum(axis=2), edges.sum(axis=1)
        return np.asarray(sums - nodes[self.node])

    def decreases(self, slack: Floats) -> Floats:
        """Return ‖ν_b‖² / 2 L_b of every star, the decrease of L that is proved."""
        squares = np.bincount(self.node, (slack**2).sum(axis=1), self.model.n)
        return np.asarray(squares / (2 * self.curvature))


def run(
    stars: Stars, form: str, best: Floats, trial: int, looks: list[int]
) -> Iterator[tuple[int, float, float]]:
    """Yield updates, L(λ) and the sum of the condition at each of `looks`."""
    rng = np.random.default_rng(trial)
    lam, v, theta, total = np.zeros_like(best), np.zeros_like(best), 1.0, 0.0
    draws = rng.choice(stars.model.n, size=(looks[-1], SEMI), p=stars.chance)
    for k in range(looks[-1]):
        theta = 2 * theta / (theta + np.sqrt(theta**2 + 4))
        y = theta * v + (1 - theta) * lam
        slack = stars.slack(y)
        gains = stars.decreases(slack)
        moved = drawn = int(draws[k, 0])
        if form == "semi-greedy":
            moved = int(draws[k][np.argmax(gains[draws[k]])])
        if form == "greedy":
            moved = drawn = int(np.argmax(gains))
        block = stars.halves[drawn]
        far = best - v
        products = (slack * far).sum(axis=1)
        total += (products.sum() - products[block].sum() / stars.chance[drawn]) / theta
        v = v.copy()
        v[block] += stars.chance[drawn] / (stars.curvature[drawn] * theta) * slack[block]
        lam = y
        lam[stars.halves[moved]] += slack[stars.halves[moved]] / stars.curvature[moved]
        if k + 1 in looks:
            yield k + 1, stars.value(lam), total


def optimum(stars: Stars) -> tuple[float, Floats]:
    """Return L* and λ*, by L-BFGS."""
    shape = (2 * stars.model.m, stars.unary.shape[1])
    end = minimize(
        lambda lam: stars.value(lam.reshape(shape)),
        np.zeros(shape).reshape(-1),
        jac=lambda lam: -stars.slack(lam.reshape(shape)).reshape(-1),
        method="L-BFGS-B",
        options={"maxiter": 4000, "maxfun": 5000, "ftol": 1e-15, "gtol": 1e-8, "maxcor": 50},
    )
    return float(end.fun), np.asarray(end.x).reshape(shape)


def cases(files: list[str]) -> Iterator[tuple[str, Model]]:
    """Yield the paper's law, a Potts grid and the models of the files (with finite costs)."""
    yield "law", generators.erdos_renyi(100, seed=0)
    yield "grid", generators.potts_grid(10, 10, 4, seed=0)
    for file in files:
        yield Path(file).name.split(".")[0], softmap.read(file)


def rows(files: list[str], measured: set[str]) -> Iterator[tuple[object, ...]]:
    """Yield the rows of the models that were not measured."""
    for name, model in cases(files):
        if name in measured:
            continue
        stars = Stars(model, ETA / cost_scale(model))
        least, best = optimum(stars)
        distance = float((stars.weight * best**2).sum()) / 2
        start = stars.value(np.zeros_like(best)) - least + distance
        last = ROUNDS * model.n
        looks = sorted({round(k) for k in np.geomspace(model.n, last, 25)})
        for form in FORMS:
            for trial in range(1 if form == "greedy" else TRIALS):
                for k, value, total in run(stars, form, best, trial, looks):
                    yield name, model.n, model.m, form, trial, k, value - least, start, total


def main(folder: str, *files: str) -> None:
    """Add the missing models to the table; each row as it is measured."""
    path, measured = Path(folder, "greedy.csv"), set()
    if path.is_file():
        with path.open(newline="") as file:
            measured = {row["model"] for row in csv.DictReader(file)}
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not measured:
            writer.writerow(COLUMNS)
        for row in rows(list(files), measured):
            writer.writerow(row)
            file.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])

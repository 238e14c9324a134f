"""Random models and runs that try to break a promise."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np

from adversary.specs import Edge, Spec
from softmap import METHODS
from softmap.model import chains

FAMILIES = ("tables", "shared", "potts", "linear", "quadratic", "projection")
LABELLINGS = 1500  # at most so many, for enumeration


@dataclass(frozen=True)
class Trial:
    """A model, the options of a run on it, and what else to look at."""

    spec: Spec
    options: dict[str, Any]
    stop_at: int | None = None  # snapshots after which the callback stops the run
    exponent: int | None = None  # run once more with all costs times 2**exponent
    relaxed: bool = False  # compare with the exact LP, too
    large: bool = False  # take the ways of large models


class Costs:
    """Numbers of one model: their distribution, scale, and what is mixed in."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.kind = str(rng.choice(["normal", "whole", "equal", "zero", "binary"], p=P_KIND))
        self.hard = float(rng.choice([0.0, 0.05, 0.3, 0.7], p=[0.55, 0.2, 0.15, 0.1]))
        self.big = 10.0 ** rng.uniform(6, 18) if rng.random() < 0.2 else 0.0
        self.scale = 1.0
        if rng.random() < 0.3:
            self.scale = 10.0 ** rng.uniform(-300, 285)
        elif rng.random() < 0.1:
            self.scale = 5e-324 * 2.0 ** int(rng.integers(0, 40))
        self.offset = 1e12 * self.scale if rng.random() < 0.08 and self.scale < 1e280 else 0.0

    def one(self, hard: bool = True) -> float:
        rng = self.rng
        if hard and rng.random() < self.hard:
            return math.inf
        if self.big and rng.random() < 0.35:
            return min(self.big * self.scale, 1e300)
        if self.kind == "normal":
            return float(rng.normal()) * self.scale
        if self.kind == "equal":
            return 1.5 * self.scale
        if self.kind == "zero":
            return float(rng.choice([0.0, -0.0]))
        top = 2 if self.kind == "binary" else 4
        return float(rng.integers(0 if self.kind == "binary" else -3, top)) * self.scale

    def table(self, rows: int, cols: int) -> list[list[float]]:
        return [[self.one() for _ in range(cols)] for _ in range(rows)]


P_KIND = [0.5, 0.25, 0.07, 0.03, 0.15]


def _counts(rng: np.random.Generator) -> list[int]:
    n = int(rng.integers(1, 7))
    if rng.random() < 0.5:
        counts = [int(rng.integers(1, 5))] * n
    else:
        counts = [int(d) for d in rng.integers(1, 6, n)]
    if rng.random() < 0.1:
        counts[int(rng.integers(n))] = int(rng.integers(6, 41))
    while math.prod(counts) > LABELLINGS:
        counts.pop()
    return counts


def _edge(costs: Costs, family: str, ends: tuple[int, int], rows: int, cols: int) -> Edge:
    rng = costs.rng
    if family == "tables":
        return Edge(ends, family, costs.table(rows, cols))
    if family == "shared":
        table = costs.table(rows, cols)
        weight = float(rng.choice([1.0, 0.3, 2.0, 0.7]))
        largest = max((abs(v) for row in table for v in row if math.isfinite(v)), default=0.0)
        return Edge(ends, family, table, weight=min(weight, 1e300 / max(largest, 1e-300)))
    if family == "projection":
        return Edge(ends, family, maps=tuple(int(y) for y in rng.integers(0, cols, rows)))
    weight = costs.one(hard=family == "potts")
    if rng.random() < 0.6:
        weight = abs(weight)
    if family == "potts":
        return Edge(ends, family, weight=weight)
    cut = float(rng.choice([0.0, 0.5, 1.0, 2.0, 3.5, math.inf]))
    farthest = float(max(rows, cols) - 1) ** (2 if family == "quadratic" else 1)
    most = 1e300 / max(min(cut, farthest), 1.0)  # costs are within ±1e300
    weight = min(max(weight, -most), most)
    return Edge(ends, family, weight=weight, truncation=cut)


def spec(rng: np.random.Generator) -> Spec:
    """A model of a few variables."""
    costs, counts = Costs(rng), _counts(rng)
    n = len(counts)
    families = rng.choice(FAMILIES, int(rng.integers(1, 4)), p=[0.3, 0.14, 0.18, 0.14, 0.14, 0.1])
    edges = []
    for _ in range(int(rng.integers(0, 2 * n + 1)) if n > 1 else 0):
        i, j = (int(v) for v in rng.permutation(n)[:2])
        edges.append(_edge(costs, str(rng.choice(families)), (i, j), counts[i], counts[j]))
    unary = [[costs.one() + costs.offset for _ in range(d)] for d in counts]
    constant = 0.0
    if rng.random() < 0.3:
        constant = costs.scale * float(rng.choice([1.0, -3.7, 1e12, -1e12]))
    return Spec(unary, edges, constant if math.isfinite(constant) else 0.0)


def trial(seed: int) -> Trial:
    """Trial number `seed`."""
    rng = np.random.default_rng(seed)
    made = spec(rng)
    method = str(rng.choice(list(METHODS))) if rng.random() < 0.6 else "anneal"
    work = int(rng.choice([1, 5, 20, 60, 150])) * 2 * max(1, len(made.edges))
    options: dict[str, Any] = {"method": method, "threads": int(rng.choice([1, 1, 2]))}
    options["max_work"] = work
    typical = np.median(np.abs([v for v in made.numbers() if v] or [1.0]))
    if METHODS[method].fixed_eta:
        options["eta"] = float(10.0 ** rng.uniform(0, 3) / max(typical, 1e-290))
    stop_at = None
    way = rng.choice(["gap", "lp_gap", "time_limit", "callback", "updates", "loose"])
    if way == "gap":
        options |= {"gap": 1e-9, "lp_gap": 0.0}
    elif way == "lp_gap":
        options |= {"lp_gap": float(10.0 ** rng.uniform(-6, -1)), "gap": 0.0}
    elif way == "time_limit":
        options["time_limit"] = 0.02
    elif way == "callback":
        stop_at = int(rng.integers(1, 4))
    elif way == "updates" and not METHODS[method].sweeping:
        options["updates"] = int(rng.integers(0, 200))
    again = int(rng.integers(-60, 60)) if way != "time_limit" and rng.random() < 0.15 else None
    return Trial(made, options, stop_at, again, bool(rng.random() < 0.1))


def picture(seed: int) -> Trial:
    """The run of trial number `seed` on a small picture, whose neighbours are tied."""
    given, rng = trial(seed), np.random.default_rng([seed, 1])
    costs = Costs(rng)
    costs.hard, costs.offset = 0.0, 0.0
    rows, cols, labels = ((3, 3, 2), (2, 5, 2), (4, 2, 2), (3, 2, 3), (2, 2, 6))[rng.integers(5)]
    unary = [[costs.one() for _ in range(labels)] for _ in range(rows * cols)]
    family = str(rng.choice(["potts", "linear", "quadratic"]))
    first = _edge(costs, family, (0, 1), labels, labels)
    number = np.arange(rows * cols).reshape(rows, cols)
    right, down = (number[:, :-1], number[:, 1:]), (number[:-1], number[1:])
    edges = [
        replace(first, ends=(int(i), int(j)), weight=abs(first.weight) * int(rng.integers(4)) / 4)
        for near, far in (right, down)
        for i, j in zip(near.ravel(), far.ravel(), strict=True)
    ]
    return replace(given, spec=Spec(unary, edges, 0.0), large=True)


def on_device(given: Trial) -> Trial:
    """The trial with `backend="cuda"`: the annealed method, and no limit that belongs to others."""
    kept = {k: v for k, v in given.options.items() if k not in ("eta", "updates", "threads")}
    dtype = "float64" if len(given.spec.edges) % 2 else "float32"
    return replace(given, options=kept | {"method": "anneal", "backend": "cuda", "dtype": dtype})


@contextlib.contextmanager
def written_out(rng: np.random.Generator) -> Iterator[None]:
    """Small factors become chains, or are counted in digits, as large ones are."""
    small = replace(
        chains.SIZES, dense=int(rng.choice([1, 8, 64])), states=int(rng.choice([2, 64])),
        convex_states=int(rng.choice([2, 12])), base=int(rng.integers(2, 5)),
        few_labels=int(rng.choice([1, 3])),
    )  # fmt: skip
    with mock.patch.object(chains, "SIZES", small):
        yield

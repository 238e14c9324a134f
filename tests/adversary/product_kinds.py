"""Trials of models with weights from 1e-300 to 1e300: honest proofs of their runs, and forged ones.

Each is a function of random numbers that says which promise was broken, as in kinds.py; None if
none was. A product of a weight and a table entry is rounded to nearest in energies and down in
bounds, so that a bound is at most the optimum of rounded costs and that of costs in real numbers.
"""

from __future__ import annotations

import itertools
import math
import tempfile
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

import softmap
from adversary.specs import Edge, Spec
from softmap.errors import FormatError
from softmap.verification.conclusion import What
from softmap.verification.proof import Checked, check_proof
from support.proof_files import Record, packed, write_proof

__all__ = ["PRODUCT_KINDS"]

LARGEST = 1e299  # of a cost, so that sums stay within the range of a model
CLASSES = {"linear": softmap.TruncatedLinear, "quadratic": softmap.TruncatedQuadratic}


def weighted(rng: np.random.Generator) -> Spec:
    """A model of up to five variables; most of its costs are products of any size."""
    counts = rng.integers(1 if rng.random() < 0.1 else 2, 4, int(rng.integers(2, 6))).tolist()
    scale = float(10.0 ** rng.uniform(-320, 295))  # of most products
    pairs = [p for p in itertools.combinations(range(len(counts)), 2) if rng.random() < 0.7]
    edges = [_edge(rng, p, counts, scale) for p in pairs or [(0, 1)]]
    edges += [_edge(rng, edges[0].ends, counts, scale)] if rng.random() < 0.1 else []
    unary = [_costs(rng, d, scale) for d in counts]
    spec = Spec(unary, edges)
    if rng.random() < 0.5:  # costs that nearly cancel
        labels = [int(rng.integers(d)) for d in counts]
        constant = -math.fsum(c for c in spec.terms(labels) if abs(c) < math.inf)
        return replace(spec, constant=max(min(constant, LARGEST), -LARGEST))
    return spec


def _costs(rng: np.random.Generator, count: int, scale: float) -> list[float]:
    """Numbers of one size, or of any size below it."""
    size = scale if rng.random() < 0.7 else scale * 10.0 ** rng.uniform(-30, 0)
    return [float(x) for x in np.clip(rng.normal(size=count) * size, -LARGEST, LARGEST)]


def _edge(rng: np.random.Generator, ends: tuple[int, int], counts: list[int], scale: float) -> Edge:
    family = str(rng.choice(["shared", "shared", "linear", "quadratic", "tables", "potts"]))
    rows, cols = (counts[i] for i in ends)
    if family == "tables":
        return Edge(ends, family, [_costs(rng, cols, scale) for _ in range(rows)])
    if family in CLASSES or family == "potts":
        truncation = float(rng.choice([math.inf, 0.7, 1.5, 3.0]))
        weight = abs(_costs(rng, 1, scale)[0]) / (1.0 if family == "potts" else 4.0)
        return Edge(ends, family, weight=weight, truncation=truncation)
    weight = float(10.0 ** rng.uniform(-300, 300))
    size = min(scale / weight, LARGEST) if weight > 1e-8 * scale else 1e8
    hard = 0.15 if rng.random() < 0.2 else 0.0
    table = [
        [math.inf if rng.random() < hard else float(x) for x in row]
        for row in np.clip(rng.normal(size=(rows, cols)) * size, -LARGEST, LARGEST)
    ]
    table[0][0] = table[0][0] if math.isfinite(table[0][0]) else 0.0
    largest = max(abs(x) for row in table for x in row if math.isfinite(x))
    return Edge(ends, family, table, weight=min(weight, LARGEST / max(largest, 1.0)))


def least_costs(spec: Spec) -> Fraction | None:
    """The smaller one of the optima of rounded products and of products in real numbers."""
    rounded, real = spec.all_costs().least, spec.real_costs().least
    return None if rounded is None or real is None else min(rounded, real)


# --- honest runs ----------------------------------------------------------------------------------


def _solved(rng: np.random.Generator) -> str | None:
    """A run with a proof, whose result, model and proof may be read from files before the check."""
    spec = weighted(rng)
    best, options = least_costs(spec), {"threads": 1, "max_work": int(rng.choice([200, 20_000]))}
    options["goal"] = str(rng.choice(["map", "optimal", "lp"]))
    with tempfile.TemporaryDirectory() as name:
        folder, model = Path(name), spec.model()
        try:
            result = softmap.solve(model, proof=folder / "proof", **options)
        except softmap.ModelError:  # a weight that cannot be scaled is refused by name
            return None
        except softmap.InfeasibleModel:
            return None if best is None else "a feasible model called infeasible"
        if best is None:
            return "an infeasible model has a result"
        if result.bound > best:
            return f"the bound {result.bound!r} is above the optimum {float(best)!r}"
        if rng.random() < 0.5:
            softmap.write(model, folder / "model.npz")
            result.save(folder / "result.npz")
            model = softmap.read(folder / "model.npz")
            result = softmap.load_result(folder / "result.npz", model)
        reports = softmap.verify(result), softmap.verify(result, proof=folder / "proof")
        alone = softmap.verify(model, proof=folder / "proof")
        for report in (*reports, alone):
            if not report.holds:
                return f"an honest run is called false: {report!r}, {report}"
    return None


# --- forged proofs --------------------------------------------------------------------------------


def bits(values: object) -> list[int]:
    """Floats as the integers of a record."""
    return np.atleast_1d(np.asarray(values, dtype=np.float64)).view(np.int64).tolist()


def lam_near_the_optimum(rng: np.random.Generator, model: softmap.Model) -> np.ndarray:
    """λ of a run, or random ones, with some entries moved by a few units in the last place."""
    try:
        lam = softmap.solve(model, goal="lp", threads=1, max_work=500).lam.copy()
    except (softmap.InfeasibleModel, softmap.ModelError):
        lam = np.zeros(model.network.half_size)
    if rng.random() < 0.2:
        size = 10.0 ** rng.uniform(-300, 290)
        lam = rng.normal(size=lam.shape) * size
    moved = rng.random(lam.shape) < rng.choice([0.0, 0.3])
    return lam + np.where(moved, rng.integers(-3, 4, lam.shape) * np.spacing(lam), 0.0)


def claims(rng: np.random.Generator, spec: Spec, model: softmap.Model) -> list[Record]:
    """Records of a conclusion that is true or nearly so."""
    labels = list(min(spec.labellings(), key=lambda x: math.fsum(spec.terms(x))))
    if rng.random() < 0.3:
        labels = [int(rng.integers(d)) for d in model.num_labels]
    energy = model.energy(labels)
    steps = int(rng.integers(-4, 5)) * int(rng.choice([1, 8, 1 << 20]))
    if not math.isfinite(energy) or rng.random() < 0.3:
        number = energy + steps * math.ulp(energy) if math.isfinite(energy) else 0.0
        return [("CONCLUDE", [[0], bits(number)])]
    unit = math.ulp(max(map(abs, (c for c in spec.numbers())), default=1.0))
    gap = 0.0 if rng.random() < 0.6 else abs(steps) * unit
    return [("LABELS", [labels]), ("CONCLUDE", [[1], bits(gap)])]


def forged(rng: np.random.Generator, spec: Spec, model: softmap.Model) -> list[Record]:
    """Records of λ with a conclusion, or with ranks, that may claim a little too much."""
    dual: Record = ("DUAL", [[], [], bits(lam_near_the_optimum(rng, model))])
    if rng.random() < 0.7:
        return [dual, *(claims(rng, spec, model) if rng.random() < 0.8 else [])]
    labels = [int(rng.integers(d)) for d in model.num_labels]
    energy = model.energy(labels)
    energy = energy if math.isfinite(energy) else 0.0
    near = [energy + int(rng.integers(-2, 3)) * math.ulp(energy) for _ in range(2)]
    return [("EXCEPT", [list(range(model.n)), labels]), dual, ("RANKS", [bits(near)])]


def false_statement(found: Checked, spec: Spec, best: Fraction | None) -> str | None:
    """What is false of what the checker has accepted."""
    if best is None:
        return None
    last = found.conclusion
    if last is not None and last.what is What.INFEASIBLE:
        return "a feasible model is proved infeasible"
    if last is not None and last.needed > best:
        return f"{last}: accepted, the optimum is {float(best)!r}"
    if found.bound > best and not found.ranks:  # ranks have energies, of rounded products
        return f"the bound {float(found.bound)!r} is accepted, the optimum is {float(best)!r}"
    ranked = sorted(cost for _, cost in spec.all_costs().each())
    for k, rank in enumerate(found.ranks):
        if rank.bound > ranked[k]:
            return f"rank {k + 1}: {rank.bound} is accepted, {float(ranked[k])!r} is true"
    return None


def _forged(rng: np.random.Generator) -> str | None:
    """Proofs by λ, most of which claim a few units in the last place too much."""
    spec = weighted(rng)
    best, model = least_costs(spec), spec.model()
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "proof"
        for _ in range(3):
            write_proof(path, model, packed(forged(rng, spec, model)))
            try:
                found = check_proof(path, model.network)
            except FormatError:
                continue
            if problem := false_statement(found, spec, best):
                return problem
    return None


PRODUCT_KINDS: dict[str, Callable[[np.random.Generator], str | None]] = {
    "products": _solved,
    "forged products": _forged,
}

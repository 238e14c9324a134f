"""More kinds of trials: larger factors, warm starts, offsets, and files of the command line.

Each is a function of a seed that says in a few words which promise was broken; None if none was.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import softmap
from adversary.exact_kinds import EXACT_KINDS
from adversary.fault_kinds import FAULT_KINDS
from adversary.file_kinds import FILE_KINDS
from adversary.making import spec as random_spec
from adversary.making import written_out
from adversary.product_kinds import PRODUCT_KINDS
from adversary.promises import numbers_broken, optimum
from adversary.run_kinds import RUN_KINDS
from adversary.size_kinds import SIZE_KINDS
from adversary.specs import Spec
from adversary.sum_kinds import SUM_KINDS
from softmap.app.cli.app import main
from softmap.model import many
from support.exact_sums import AllCosts
from support.factor_costs import cost_of

__all__ = ["KINDS", "tried"]

GOALS = ("map", "lp", "labels", "optimal")


def tried(kind: str, seed: int) -> str | None:
    """The first promise that a trial of a kind breaks; an exception breaks one."""
    try:
        problem = KINDS[kind](np.random.default_rng([seed, len(kind)]))
    except Exception as error:
        problem = f"raised: {type(error).__name__}: {str(error)[:120]}"
    return None if problem is None else f"{kind}: {problem}"


def _limits(rng: np.random.Generator) -> dict[str, Any]:
    """A limit of any kind, or none."""
    some: list[dict[str, Any]] = [
        {"time_limit": float(rng.choice([0.0, 0.005, 0.05]))},
        {"max_work": int(10 ** rng.uniform(0, 4.5))},
        {"on_snapshot": lambda _: False},
        {"gap": 0.0, "lp_gap": 0.0, "max_work": 20_000},
        {"max_work": 20_000, "memory_limit": 1 << 25},
        {"max_work": 20_000},
    ]
    chosen = some[rng.integers(len(some))]
    return {"goal": str(rng.choice(GOALS)), "threads": int(rng.integers(1, 3)), **chosen}


# --- factors over many variables ------------------------------------------------------------------


Tabled = Callable[[np.ndarray], np.ndarray]  # labels, one row per variable, to costs


def _factor(
    rng: np.random.Generator, scope: list[int], sizes: list[int]
) -> tuple[many.Many, np.ndarray]:
    """A factor of some family, hard or with a penalty, and its table from the family's meaning."""
    k = len(scope)
    penalty = float(rng.choice([math.inf, 1.5]))
    costs = np.where(rng.random(k + 1) < 0.3, math.inf, rng.integers(0, 5, k + 1).astype(float))
    if rng.random() < 0.5:
        costs = (np.arange(k + 1) - rng.uniform(0, k)) ** 2
    label = int(rng.integers(0, 2))

    def counted(cost: Callable[[np.ndarray], np.ndarray]) -> Tabled:
        return lambda x: cost((x == label).sum(axis=0))

    def unless(holds: Callable[[np.ndarray], np.ndarray]) -> Tabled:
        return lambda x: np.where(holds(x), 0.0, penalty)

    def among() -> tuple[many.Many, Tabled]:
        sets = [rng.integers(0, d, 2).tolist() for d in sizes]
        inside = [np.isin(np.arange(d), own) for d, own in zip(sizes, sets, strict=True)]

        def cost(x: np.ndarray) -> np.ndarray:
            return costs[np.sum([own[y] for own, y in zip(inside, x, strict=True)], axis=0)]

        return many.Among(scope, sets, costs), cost

    def largest() -> tuple[many.Many, Tabled]:
        own = rng.normal(size=max(sizes))
        return many.Max(scope, own), lambda x: own[x.max(axis=0)]

    def parity() -> tuple[many.Many, Tabled]:
        odd = bool(rng.integers(2))
        return many.Parity(scope, odd, penalty=penalty), unless(lambda x: x.sum(axis=0) % 2 == odd)

    def linear() -> tuple[many.Many, Tabled]:
        weights = rng.integers(-2, 4, k).tolist()
        low, high = float(rng.integers(-2, 3)), float(rng.integers(2, 6))

        def within(x: np.ndarray) -> np.ndarray:
            total = np.tensordot(weights, x, 1)
            return (low <= total) & (total <= high)

        return many.Linear(scope, weights, low=low, high=high, penalty=penalty), unless(within)

    def penal(kind: Any, holds: Callable[[np.ndarray], np.ndarray]) -> tuple[many.Many, Tabled]:
        found = kind(scope, label, penalty)
        return found, counted(lambda count: np.where(holds(count), 0.0, penalty))

    def distinct(x: np.ndarray) -> np.ndarray:
        ranked = np.sort(x, axis=0)
        return np.where((ranked[1:] == ranked[:-1]).any(axis=0), math.inf, 0.0)

    made: list[Callable[[], tuple[many.Many, Tabled]]] = [
        lambda: (many.Cardinality(scope, label, costs), counted(lambda count: costs[count])),
        among,
        lambda: penal(many.AtMostOne, lambda count: count <= 1),
        lambda: penal(many.ExactlyOne, lambda count: count == 1),
        lambda: penal(many.Or, lambda count: count >= 1),
        parity,
        largest,
        linear,
        lambda: (many.AllDifferent(scope), distinct),
    ]
    factor, cost = made[rng.integers(len(made))]()
    return factor, cost(np.indices(sizes))


def _chained(rng: np.random.Generator) -> str | None:
    """Factors over many variables kept as chains, with evidence, under every limit."""
    n = int(rng.integers(2, 8))
    sizes = rng.integers(2, 4, n).tolist()
    unary = [
        np.where(rng.random(d) < 0.1, math.inf, rng.normal(size=d) * 10.0 ** rng.integers(-2, 3))
        for d in sizes
    ]
    factors, tables = list[many.Many](), list[tuple[list[int], np.ndarray]]()
    for _ in range(int(rng.integers(1, 3))):
        scope = rng.permutation(n)[: int(rng.integers(2, n + 1))].tolist()
        factor, table = _factor(rng, scope, [sizes[i] for i in scope])
        factors.append(factor)
        tables.append((scope, table))
    evidence = {int(i): int(rng.integers(sizes[i])) for i in rng.permutation(n)[: rng.integers(3)]}
    every = np.indices(sizes)
    costs = np.sum([u[every[i]] for i, u in enumerate(unary)], axis=0)
    costs += np.sum([table[tuple(every[scope])] for scope, table in tables], axis=0)
    left = tuple(
        slice(evidence[i], evidence[i] + 1) if i in evidence else slice(None) for i in range(n)
    )
    least, possible = float(costs[left].min()), bool(costs.min() < math.inf)

    def cost(labels: tuple[int, ...]) -> float:
        paid = [float(u[x]) for u, x in zip(unary, labels, strict=True)]
        paid += [float(table[tuple(labels[i] for i in scope)]) for scope, table in tables]
        return math.inf if math.inf in paid else math.fsum(paid)

    try:
        with written_out(rng):
            parts = [((i,), u) for i, u in enumerate(unary)]
            model = softmap.Model.from_factors(sizes, [*parts, *factors])
    except softmap.InfeasibleModel:
        return "a feasible model called infeasible" if possible else None
    model = model.condition(evidence)
    try:
        result = softmap.solve(model, **_limits(rng))
    except softmap.InfeasibleModel:
        return None if least == math.inf else "a feasible model called infeasible"
    labels = tuple(result.labels.tolist())
    if any(labels[i] != x for i, x in evidence.items()) and result.found:
        return "labels are not those of the evidence"
    slack = 1e-9 * (1.0 + abs(least)) if math.isfinite(least) else 0.0
    if result.energy != model.energy(result.labels):
        return "the energy is not that of the labels"
    obeyed = all(labels[i] == x for i, x in evidence.items())
    paid = cost(labels) if obeyed else math.inf
    if result.energy != paid and not math.isclose(
        result.energy, paid, rel_tol=1e-12, abs_tol=1e-12
    ):
        return "the energy is not the sum of the costs"
    if result.bound > least + slack or result.lp_bound > result.bound:
        return "the bound is above the optimum"
    if result.primal > result.energy:
        return "the primal is above the energy"
    for factor, (scope, table) in zip(factors, tables, strict=True):
        own = tuple(labels[i] for i in scope)
        if cost_of(factor, own, table.shape) != table[own]:
            return f"{factor} does not cost what its family means"
    return None if softmap.verify(result).holds else "verify rejects"


# --- warm starts ----------------------------------------------------------------------------------


def _known(rng: np.random.Generator, model: softmap.Model) -> softmap.Result:
    """A result with a proof of some kind, on its way over a file now and then."""
    some: list[dict[str, Any]] = [
        {"goal": "lp", "max_work": 2_000},
        {"goal": "labels", "max_work": 100_000, "gap": 0.0, "lp_gap": 1e-2},
        {"goal": "optimal", "max_work": 50_000},
        {"time_limit": 0.0},
        {"goal": "map", "max_work": 1},
        {"goal": "map", "max_work": 30_000, "gap": 0.0, "lp_gap": 0.0},
    ]
    found = softmap.solve(model, threads=1, **some[rng.integers(len(some))])
    if rng.random() < 0.3:
        with tempfile.TemporaryDirectory() as folder:
            found.save(Path(folder) / "known.npz")
            found = softmap.load_result(Path(folder) / "known.npz")
    return found


def _warmed(rng: np.random.Generator) -> str | None:
    """Runs that begin with results of every kind of proof, of this model or one near it."""
    first = random_spec(rng)
    second = first
    if rng.random() < 0.7:
        size = float(np.median(np.abs([v for v in first.numbers() if v] or [1.0])))
        unary = [
            [c + size * float(rng.normal()) * 0.1 if abs(c) < 1e299 else c for c in u]
            for u in first.unary
        ]
        constant = first.constant if rng.random() < 0.5 else 1e6 / 3 * size
        second = Spec(unary, first.edges, constant if abs(constant) < 1e299 else 0.0)
    best, exact = optimum(second)
    try:
        known = _known(rng, first.model())
        result = softmap.solve(second.model(), warm_start=known, **_limits(rng))
        if rng.random() < 0.3:
            result = softmap.solve(second.model(), warm_start=result, **_limits(rng))
    except softmap.InfeasibleModel:
        infeasible = math.inf in (best, optimum(first)[0])
        return None if infeasible else "a feasible model called infeasible"
    problem = numbers_broken(second, result, best, exact)
    report = softmap.verify(result)
    wrong = [one.name for one in report.statements if one.verdict.value == "false"]
    return problem or (None if report.holds else f"verify rejects: {', '.join(wrong)}")


# --- offsets --------------------------------------------------------------------------------------


def _log_partition(costs: AllCosts, eta: float) -> float:
    """Log of the sum of exp(-η (energy - least energy))."""
    return math.log(math.fsum(np.exp(-eta * costs.above_least()).ravel().tolist()))


def _marginals(costs: AllCosts, eta: float) -> np.ndarray:
    """Node marginals of the Gibbs distribution, by enumeration."""
    weights = np.exp(-eta * costs.above_least())
    weights /= weights.sum()
    axes = range(weights.ndim)
    return np.concatenate([weights.sum(axis=tuple(k for k in axes if k != i)) for i in axes])


def _offset(rng: np.random.Generator) -> str | None:
    """Every public function, where all costs of a variable or the constant are near 1e12–1e15."""
    n = int(rng.integers(2, 5))
    counts = rng.integers(2, 4, n).tolist()
    shift = float(rng.choice([-1.0, 1.0])) * 10.0 ** rng.uniform(12, 15)
    unary = [
        (rng.normal(size=d) + (shift if i % 2 else 0.0)).tolist() for i, d in enumerate(counts)
    ]
    pairs = [p for p in itertools.combinations(range(n), 2) if rng.random() < 0.8]
    base = Spec(unary, [], float(rng.choice([0.0, shift, -shift])))
    edges = [_table(rng, (i, j), counts, shift if rng.random() < 0.2 else 0.0) for i, j in pairs]
    spec = replace(base, edges=edges)
    model = spec.model()
    best, exact = optimum(spec)
    assert exact is not None
    result = softmap.solve(model, **_limits(rng))
    problem = numbers_broken(spec, result, best, exact)
    if problem or not softmap.verify(result).holds:
        return problem or "verify rejects"
    return _others(rng, spec, model, result, exact)


def _table(rng: np.random.Generator, ends: tuple[int, int], counts: list[int], shift: float) -> Any:
    from adversary.specs import Edge

    i, j = ends
    return Edge(ends, "tables", (rng.normal(size=(counts[i], counts[j])) + shift).tolist())


def _others(
    rng: np.random.Generator, spec: Spec, model: softmap.Model, known: softmap.Result, exact: Any
) -> str | None:
    """The functions beside `solve`."""
    lam = rng.normal(size=model.network.half_size)
    eta = float(10.0 ** rng.uniform(-1, 2))
    found = softmap.certificate(model, lam, eta, exact=bool(rng.integers(2)))
    if Fraction(found.bound) > exact or found.energy != model.energy(found.labels):
        return "certificate: a bound above the optimum, or an energy that is not the labels'"
    if not softmap.arc_consistency(model).all():
        return "arc_consistency: a state that nothing forbids"
    costs = spec.real_costs()
    rest = _log_partition(costs, eta)
    for entries in (1 << 20, 1):
        low, high = softmap.log_partition_bounds(model, eta, entries=entries, rounds=5)
        true = rest - Fraction(eta) * exact
        if Fraction(low) > true + Fraction(1e-9) or Fraction(high) < true - Fraction(1e-9):
            return f"log_partition_bounds (entries={entries}): {low!r} {high!r} {float(true)!r}"
    if np.abs(softmap.exact_marginals(model, eta).nodes - _marginals(costs, eta)).max() > 1e-6:
        return "exact_marginals: other marginals"
    ranked = sorted(cost for _, cost in costs.each())
    for place, entry in enumerate(softmap.solve_mbest(model, 3, threads=1)):
        if Fraction(entry.bound) > ranked[place] or entry.energy != model.energy(entry.labels):
            return f"solve_mbest: a false bound, or energy, at place {place}"
    together = softmap.solve_batch([model, model], threads=1, goal="lp", max_work=2000)
    for one in together:
        if Fraction(one.bound) > exact or one.energy != model.energy(one.labels):
            return "solve_batch: a false bound, or energy"
    parts = softmap.distributed.solve(model, parts=2, max_passes=10, threads=1)
    labels = np.zeros(model.network.num_variables, dtype=np.int64)
    for variables, own in parts.labels.values():
        labels[variables] = own
    if Fraction(parts.bound) > exact or parts.energy != model.energy(labels):
        return "distributed.solve: a false bound, or energy"
    optimum_of_lp = softmap.lp.solve(model, threads=1)
    if optimum_of_lp.value > float(exact) + 1e-6 * max(abs(v) for v in spec.numbers()):
        return "lp.solve: above the optimum"
    buffer = io.BytesIO()
    softmap.write(model, buffer, format="npz")
    buffer.seek(0)
    if softmap.read(buffer).energy(known.labels) != known.energy:
        return "write and read: another energy"
    return None


# --- files of the command line --------------------------------------------------------------------


def _aliased(rng: np.random.Generator) -> str | None:
    """Targets that are inputs, or each other, by whatever name: no input is ever changed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = random_spec(rng).model()
        softmap.write(model, folder / "m.npz")
        softmap.write(softmap.generators.random_tree(5, seed=1), folder / "other.npz")
        (folder / "e.evid").write_text("0\n")
        os.link(folder / "m.npz", folder / "hard.npz")
        (folder / "soft.npz").symlink_to("m.npz")
        (folder / "loop.npz").symlink_to("soft.npz")
        (folder / "sub").mkdir()
        (folder / "sub" / "up").symlink_to("..")
        inputs = [folder / "m.npz"]
        names = [
            "m.npz", "./m.npz", "sub/../m.npz", "sub/up/m.npz", "hard.npz", "soft.npz", "loop.npz",
            "e.evid", "sub/up/e.evid", "new.npz", "./new.npz", "other.npz", "sub", "missing/x",
        ]  # fmt: skip
        options = ["--output", "--save", "--trace", "--report", "--checkpoint"]
        words = ["solve", str(folder / "m.npz"), "--no-progress", "--time-limit", "0.02"]
        if rng.random() < 0.4:
            words += ["--evidence", str(folder / "e.evid")]
            inputs.append(folder / "e.evid")
        before = {path: path.read_bytes() for path in inputs}
        for option in options:
            if rng.random() < 0.5:
                words += [option, str(folder / str(rng.choice(names)))]
        text = io.StringIO()
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
            code = main(words)
        said = " ".join(w.removeprefix(name) for w in words[2:])
        for path, content in before.items():
            if path.read_bytes() != content:
                return f"an input was changed by {said}"
        if "inside softmap" in text.getvalue():
            return f"an error inside softmap by {said}: {text.getvalue()[-200:]}"
        if code == 0:
            for option, target in itertools.pairwise(words):
                if option in options and option != "--output" and not Path(target).is_file():
                    return f"{option} was not written by {said}"
    return None


KINDS: dict[str, Callable[[np.random.Generator], str | None]] = {
    "chains": _chained,
    "warm starts": _warmed,
    "offsets": _offset,
    "files": _aliased,
    **EXACT_KINDS,
    **SUM_KINDS,
    **PRODUCT_KINDS,
    **FILE_KINDS,
    **RUN_KINDS,
    **SIZE_KINDS,
    **FAULT_KINDS,
}

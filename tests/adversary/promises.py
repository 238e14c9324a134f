"""What is true of a model, by enumeration and by HiGHS; and whether a run has kept its promises."""

from __future__ import annotations

import math
from contextlib import nullcontext
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

import softmap
from adversary.large import as_if_large
from adversary.making import Trial
from adversary.specs import Spec
from softmap import Status

FEASIBLE = 1e-9


def optimum(spec: Spec) -> tuple[float, Fraction | None]:
    """The least energy of float costs, rounded once, and the least one in real numbers."""
    least = spec.all_costs().least
    return (math.inf, None) if least is None else (float(least), spec.real_costs().least)


def relaxation(spec: Spec) -> float | None:
    """The LP optimum by HiGHS; None where costs are spread too widely for its tolerances."""
    sizes = [abs(v) for v in spec.numbers() if v]
    unit = max(sizes, default=1.0)
    if sizes and (min(sizes) < 1e-5 * unit or not 1e-280 < unit < 1e280):
        return None
    starts = np.cumsum([0, *map(len, spec.unary)])
    cost = [c for u in spec.unary for c in u]
    rows, rhs = [], []
    for i, u in enumerate(spec.unary):
        rows.append({int(starts[i]) + x: 1.0 for x in range(len(u))})
        rhs.append(1.0)
    for e in spec.edges:
        i, j = e.ends
        d_i, d_j, at = len(spec.unary[i]), len(spec.unary[j]), len(cost)
        cost += [e.cost(x, y) for x in range(d_i) for y in range(d_j)]
        sums = [
            {at + x * d_j + y: 1.0 for y in range(d_j)} | {int(starts[i]) + x: -1.0}
            for x in range(d_i)
        ]
        sums += [
            {at + x * d_j + y: 1.0 for x in range(d_i)} | {int(starts[j]) + y: -1.0}
            for y in range(d_j)
        ]
        rows += sums
        rhs += [0.0] * len(sums)
    matrix = np.zeros((len(rows), len(cost)))
    for k, row in enumerate(rows):
        matrix[k, list(row)] = list(row.values())
    finite = np.isfinite(cost)
    scaled = np.where(finite, cost, 0.0) / unit
    bounds = [(0.0, None if ok else 0.0) for ok in finite]
    answer = linprog(scaled, A_eq=matrix, b_eq=rhs, bounds=bounds, method="highs")
    if answer.status == 2:
        return math.inf
    return float(answer.fun) * unit + spec.constant if answer.status == 0 else None


def solve(spec: Spec, trial: Trial) -> softmap.Result:
    """The run of a trial on a model."""
    options, seen = dict(trial.options), []
    if trial.stop_at is not None:
        options["on_snapshot"] = lambda snapshot: len(seen.append(1) or seen) < trial.stop_at
    return softmap.paper.solve(spec.model(), **options)


def broken(trial: Trial) -> str | None:
    """The first promise that a trial breaks, in a few words; None if it keeps them all."""
    try:
        with as_if_large() if trial.large else nullcontext():
            return _broken(trial)
    except softmap.SoftmapError as error:
        return f"refused: {type(error).__name__}: {error}"
    except Exception as error:
        return f"raised: {type(error).__name__}: {str(error)[:80]}"


def broken_together(specs: list[Spec]) -> str | None:
    """The first promise that `solve_batch` breaks on a device; None if it keeps them all."""
    options = {"backend": "cuda", "goal": "lp", "lp_gap": 1e-4, "gap": 0.0}
    try:
        models = [spec.model() for spec in specs]
        found = softmap.solve_batch(models, errors="return", threads=1, **options)
    except Exception as error:
        return f"in a batch: raised: {type(error).__name__}: {str(error)[:80]}"
    for spec, result in zip(specs, found, strict=True):
        best, exact = optimum(spec)
        if isinstance(result, softmap.InfeasibleModel):
            problem = None if best == math.inf else "a feasible model called infeasible"
        elif isinstance(result, Exception):
            problem = f"raised: {type(result).__name__}: {str(result)[:80]}"
        else:
            problem = numbers_broken(spec, result, best, exact) or _said(
                Trial(spec, options), result
            )
            problem = problem or _relaxed(spec, result)
        if problem is not None:
            return f"in a batch: {problem}"
    return None


def _broken(trial: Trial) -> str | None:
    spec = trial.spec
    best, exact = optimum(spec)
    try:
        result = solve(spec, trial)
    except softmap.InfeasibleModel:
        return None if best == math.inf else "a feasible model called infeasible"
    problem = numbers_broken(spec, result, best, exact) or _said(trial, result)
    if problem is None and trial.relaxed:
        problem = _relaxed(spec, result)
    if problem is None and trial.exponent is not None:
        problem = _scaled(trial, result)
    return problem


def numbers_broken(
    spec: Spec, result: softmap.Result, best: float, exact: Fraction | None
) -> str | None:
    if any(map(math.isnan, (result.bound, result.energy, result.primal))):
        return "NaN"
    if exact is not None and result.bound == math.inf:
        return "an infinite bound of a feasible model"
    if exact is not None and result.bound > -math.inf and Fraction(result.bound) > exact:
        return "the bound is above the optimum"
    labels = result.labels.tolist()
    terms = spec.terms(labels)
    energy = math.inf if math.inf in terms else math.fsum(terms)
    if result.energy != result.model.energy(result.labels):
        return "the energy is not that of the labels"
    if energy != result.energy and not abs(energy - result.energy) <= math.ulp(energy):
        return "the energy is not the sum of the costs"
    if result.energy < best and abs(result.energy - best) > math.ulp(best):
        return "the energy is below the optimum"
    if result.lp_bound > result.bound:
        return "the bound of the relaxation is above the bound"
    size = math.fsum(abs(t) for t in (*terms, result.lp_bound) if math.isfinite(t))
    if result.primal < result.lp_bound - 1e-11 * size - len(terms) * 5e-324:  # mass may be missing
        return "the primal is below the bound of the relaxation"
    if result.primal > result.energy:
        return "the primal is above the energy"
    return None


def _said(trial: Trial, result: softmap.Result) -> str | None:
    status, options = result.status, trial.options
    if status is Status.TIME_LIMIT and "time_limit" not in options:
        return "a time limit that was not set"
    if status is Status.CALLBACK and trial.stop_at is None:
        return "a callback that was not given"
    if status is Status.UPDATES and "updates" not in options:
        return "updates that were not asked for"
    if result.energy == math.inf and status is Status.GAP:
        return "proved optimal without a labelling"
    report = softmap.verify(result)
    if not report.holds:
        wrong = [one.name for one in report.statements if one.verdict.value == "false"]
        return f"verify rejects: {', '.join(wrong)}"
    if result.primal < math.inf:
        nodes = result.node_marginals
        sums = np.add.reduceat(nodes, result.model.network.node_offset[:-1])
        if np.abs(sums - 1).max() > FEASIBLE or nodes.min() < -FEASIBLE:
            return "node marginals are not distributions"
    return None


def _relaxed(spec: Spec, result: softmap.Result) -> str | None:
    value = relaxation(spec)
    if value is None:
        return None
    unit = 1e-6 * max([abs(v) for v in spec.numbers()], default=0.0) + 4 * math.ulp(spec.constant)
    if value < math.inf and result.lp_bound > value + unit:
        return "the bound of the relaxation is above the LP optimum"
    if result.primal < value - unit:
        return "the primal is below the LP optimum"
    return None


def _kept(lam: np.ndarray, exponent: int) -> bool:
    """Whether λ times a power of two is exact: entries near the least numbers may lose digits."""
    return bool(np.array_equal(np.ldexp(np.ldexp(lam, exponent), -exponent), lam))


def _scaled(trial: Trial, result: softmap.Result) -> str | None:
    """Powers of two change nothing, unless numbers leave the range in which they are exact."""
    terms = [c for u in trial.spec.unary for c in u] + [
        e.cost(x, y)
        for e in trial.spec.edges
        for x in range(len(trial.spec.unary[e.ends[0]]))
        for y in range(len(trial.spec.unary[e.ends[1]]))
    ]
    sizes = [abs(v) for v in (*terms, trial.spec.constant) if v and math.isfinite(v)]
    sizes += [trial.options["eta"]] if "eta" in trial.options else []
    # costs that are all 0 have no units
    if (
        not any(map(math.isfinite, filter(None, terms)))
        or min(sizes) < 1e-270
        or max(sizes) > 1e270
    ):
        return None
    options = dict(trial.options)
    if "eta" in options:
        options["eta"] = math.ldexp(options["eta"], -trial.exponent)
    other = Trial(trial.spec, options, trial.stop_at)
    again = solve(trial.spec.times(trial.exponent), other)
    same = again.labels.tolist() == result.labels.tolist() and again.status is result.status
    same = same and again.sweeps == result.sweeps
    bound = math.ldexp(result.bound, trial.exponent)
    if _kept(result.lam, trial.exponent) and _kept(again.lam, -trial.exponent):
        same = same and again.bound == bound
    else:  # λ was rounded, and the bound is that of what is left of it
        same = same and abs(again.bound - bound) <= 4 * math.ulp(bound)
    same = same and again.primal == math.ldexp(result.primal, trial.exponent)
    return None if same else "other units give another result"

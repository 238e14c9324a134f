"""Each stage by itself against enumeration: python -m adversary.stages [COUNT] [FIRST].

Exact search with and without presolve, dynamic programming and ascent; the loose part alone;
tightening alone; whole runs. No bound above the optimum, no energy below it.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

import softmap
from adversary.making import trial
from adversary.promises import optimum
from softmap.labels.exact import solve_exact
from softmap.model.model import raised
from softmap.relaxation.flat import flat_lam
from softmap.relaxation.gaps import scaled
from softmap.run.problem import Problem
from support.stage_runs import tightened

__all__ = ["false_claims"]


def false_claims(seed: int) -> list[str]:
    """What stages say of the model of one trial that is not true."""
    spec = trial(seed).spec
    best, exact = optimum(spec)
    if exact is None:
        return []
    model, problem = spec.model(), Problem.of(spec.model())
    found = []
    for name, bound, labels in _claims(problem, seed):
        value = problem.bound_back(bound)
        if value == math.inf or (value > -math.inf and Fraction(value) > exact):
            found.append(f"{name}: bound {value!r} above {best!r}")
        if labels is not None:
            energy = float(model.energy(labels))
            if energy < best and abs(energy - best) > math.ulp(best):
                found.append(f"{name}: energy {energy!r} below {best!r}")
    return found


def _claims(problem: Problem, seed: int) -> Iterator[tuple[str, float, np.ndarray | None]]:
    """Bounds in the units of a run, and labels, by each stage."""
    model, rng = problem.model, np.random.default_rng(seed)
    for presolve in (True, False):
        options = {"presolve": presolve, "ascent": bool(seed % 2), "dp_limit": seed % 3 * 5e8}
        r = solve_exact(model, backtrack_limit=200, **options)
        yield f"search {options}", r.lower_bound, r.labels
        if r.complete and r.infeasible:
            yield "a search that proves a feasible model infeasible", math.inf, None
    first = softmap.solve(
        raised(problem.scaled), goal="lp", max_work=40 * max(1, model.m), threads=1
    )
    lam = first.lam if seed % 2 else rng.normal(size=len(first.lam)) * scaled(model).scale
    r = solve_exact(model, lam=flat_lam(model, lam), backtrack_limit=50, dp_limit=0.0)
    yield "search from λ", r.lower_bound, r.labels
    if not first.found or not model.m:
        return
    tight, _ = tightened(model, first.lam, first.labels, max_work=3_000)
    yield "tightening", tight.bound, tight.labels


def main() -> int:
    """Check so many models; 1 if anything false was said."""
    warnings.simplefilter("error")
    given = [int(word) for word in sys.argv[1:]]
    count, first = [*given, *(10_000, 0)[len(given) :]]
    wrong = 0
    for seed in range(first, first + count):
        for claim in false_claims(seed):
            wrong += 1
            print(f"{seed}: {claim}", flush=True)
    print(f"{count:,} models, {wrong} false claims")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""The result of a run, from its best values: in the user's units, and claiming what is proved."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

from softmap import core
from softmap.labels.energies import Labelled
from softmap.later import made, unmade
from softmap.model.layout import layout
from softmap.relaxation.gaps import PROVED, relative_gap
from softmap.relaxation.polytope import PrimalPoint
from softmap.run.best import Best
from softmap.run.evidence import Relaxation
from softmap.run.failures import StageFailure
from softmap.run.memory import MemoryEstimate
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.result import Result
from softmap.run.trace import Status, Trace
from softmap.run.values import Penalty

__all__ = ["Spent", "assembled", "by_relaxation", "cautious", "claims", "primal_back"]


NEGLIGIBLE = 1e-3
"""Fraction of the relaxation's gap below which the gain of a search is not mentioned."""


class Spent(NamedTuple):
    """What a run took: half-edge messages, passes over all edges, seconds of loop and set-up."""

    work: int
    sweeps: float
    seconds: float
    setup_seconds: float


def assembled(
    options: Options, best: Best, priced: Labelled, trace: Trace, spent: Spent,
    messages: Any, status: Status, failures: tuple[StageFailure, ...] = (),
) -> Result:  # fmt: skip
    """Return the best values of a run as a result in the user's units.

    Parameters
    ----------
    options : Options
        The options of the run.
    best : Best
        The best values.
    priced : (int64 array, float)
        The best labels, and their energy in the user's units.
    trace : Trace
        The rows, in the user's units.
    spent : Spent
        What the run took.
    messages : float64 array or function
        The current λ of the method, or a function that returns it.
    status : Status
        Why the run has ended.
    failures : tuple of StageFailure, optional
        The subsolvers that have failed.
    """
    problem, (labels, energy) = best.problem, priced
    point = best.point or PrimalPoint(problem.model, labels=labels)
    lam: Any = unmade(best, "lam")
    most = options.tuning.of(MemoryEstimate).lazy_entries
    if problem.model.half_size <= most:  # otherwise lazily computed
        lam, messages = best.lam, messages() if callable(messages) else messages
        made(point, "coupling")
    return Result(
        model=problem.posed,
        method=options.method,
        status=status,
        labels=labels[: problem.posed.num_visible],
        energy=energy,
        primal=primal_back(problem, best.primal, best.energy, energy),
        lam=problem.lam_back(lam),
        messages=problem.lam_back(messages),
        eta=trace[-1].eta,
        trace=trace,
        threads=problem.threads,
        point=point,
        tolerances=(options.lp_gap, options.gap),
        upper_bound=math.inf if options.upper_bound is None else options.upper_bound,
        penalty=None if best.penalty is None else _penalty_back(problem, best.penalty),
        failures=failures,
        **_bounds_back(problem, best),
        **spent._asdict(),
    )


def primal_back(problem: Problem, primal: float, energy: float, energy_back: float) -> float:
    """Convert a primal value to the user's units; it is never above the energy."""
    return energy_back if primal >= energy else min(problem.cost_back(primal), energy_back)


def by_relaxation(result: Result) -> Result:
    """Return the result with the relaxation's bound if a search has improved it by very little.

    The relaxation's bound can be checked from λ. It replaces the search's bound only if it proves
    the gap that the status claims.
    """
    if not result.proof.stated or not result.found:
        return result
    gained = result.bound - result.lp_bound
    if not gained <= NEGLIGIBLE * (result.energy - result.lp_bound):
        known = {Status.OPTIMAL: PROVED, Status.GAP: result.tolerances[1]}
        if result.status not in known:
            return result
    large = {name: unmade(result, name) for name in ("lam", "messages")}
    relaxation = Relaxation(value=result.lp_bound)
    plain = replace(result, bound=result.lp_bound, proof=relaxation, **large)
    most = claims(plain).get(result.status, math.inf)
    return plain if plain.relative_gap(plain.claimed_gap) <= most else result


def _penalty_back(problem: Problem, penalty: Penalty) -> Penalty:
    """The penalty in the user's units."""
    return replace(penalty, cost=math.ldexp(penalty.cost, -problem.exponent))


def _bounds_back(problem: Problem, best: Best) -> dict[str, Any]:
    """Return bounds and evidence in the user's units.

    They are recomputed from λ and the user's costs if scaling was not exact.
    """
    if problem.given is problem.scaled:
        return {"bound": best.bound, "lp_bound": best.lp_bound, "proof": best.evidence.plain}
    exact = problem.costs_survive_scaling() or not math.isfinite(best.bound)
    if exact and (not problem.exponent or problem.survives_scaling(best.lam)):
        lower = problem.bound_back(best.lp_bound)
    else:
        outer, lam = problem.without_unsupported(), problem.lam_back(best.lam)
        lower = float(core.dual_bound(layout(outer), lam, outer.constant, problem.threads))
    evidence = best.evidence.back(problem) if exact else None
    if evidence is None or evidence.value <= lower:
        return {"bound": lower, "lp_bound": lower, "proof": Relaxation(value=lower)}
    return {"bound": evidence.value, "lp_bound": lower, "proof": evidence}


def claims(result: Result) -> dict[Status, float]:
    """The tolerance that each status claims for its relative gap."""
    lp_gap, gap = result.tolerances
    return {
        Status.LP_GAP: lp_gap, Status.GAP: gap, Status.NONE_BELOW: gap, Status.OPTIMAL: PROVED,
    }  # fmt: skip


def cautious(result: Result) -> Result:
    """Return the result with a trace and status that claim no more than its bounds prove."""
    rows = [
        replace(
            row,
            bound=min(row.bound, result.bound),
            lp_bound=min(row.lp_bound, result.lp_bound),
            primal=max(row.primal, result.primal),
            energy=max(row.energy, result.energy),
        )
        for row in result.trace
    ]
    # λ may prove more in the user's units than in those of the run, where costs were rounded
    rows[-1:] = [replace(rows[-1], bound=result.bound, lp_bound=result.lp_bound)]
    most, gap = claims(result).get(result.status, math.inf), result.claimed_gap
    if math.isfinite(result.bound):
        gap -= 4 * math.ulp(result.bound)  # rounding errors of adding the constant
    held = relative_gap(gap, result.gap_unit) <= most
    large = {name: unmade(result, name) for name in ("lam", "messages")}
    status = result.status if held else Status.EXHAUSTED
    return replace(result, trace=Trace(rows), status=status, **large)

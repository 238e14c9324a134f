"""The result of a run: the best that was found, in the user's units, and no more than is proved."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from softmap import core
from softmap.later import made, unmade
from softmap.model.layout import layout
from softmap.relaxation.gaps import relative_gap
from softmap.relaxation.point import PrimalPoint
from softmap.solving.best import Best
from softmap.solving.problem import Problem
from softmap.solving.proof import Proof, ProofKind
from softmap.solving.record import Record, primal_back
from softmap.solving.relax import TUNING, Relaxation
from softmap.solving.result import Result
from softmap.solving.trace import PROVED, StageName, Status, Trace

__all__ = ["cautious", "finished"]


def finished(relaxation: Relaxation, record: Record, status: Status) -> Result:
    """Assemble the result of a run."""
    best, budget, problem = relaxation.best, relaxation.budget, relaxation.problem
    _last_labels(relaxation, record, status)
    point = best.point or PrimalPoint(problem.model, labels=best.labels)
    lam: Any = best.unmade_lam()
    messages: Any = relaxation.restart_point
    if problem.model.half_size <= TUNING.lazy:  # else they are made when somebody asks for them
        lam, messages = best.lam, relaxation.restart_point()
        made(point, "coupling")
    energy = record.energy(best.labels, best.energy)
    result = Result(
        model=problem.given,
        method=relaxation.algorithm.name,
        status=status,
        labels=best.labels[: problem.given.num_visible],
        energy=energy,
        primal=primal_back(problem, best.primal, best.energy, energy),
        lam=_lam_back(problem, lam),
        messages=_lam_back(problem, messages),
        eta=record.trace[-1].eta,
        trace=record.trace,
        work=budget.work,
        sweeps=relaxation.sweeps,
        seconds=budget.seconds,
        setup_seconds=budget.setup_seconds,
        threads=problem.threads,
        point=point,
        tolerances=(relaxation.options.lp_gap, relaxation.options.gap),
        **_bounds_back(problem, best),
    )
    return result if problem.given is problem.scaled else cautious(result)


def _last_labels(relaxation: Relaxation, record: Record, status: Status) -> None:
    """Labels that the background search or a device still has."""
    if relaxation.take_labels(wait=status is not Status.INTERRUPTED):
        record.note(relaxation, StageName.LABELS)
    rounded = relaxation.algorithm.rounded(relaxation.state)
    if rounded is not None and not relaxation.best.found:
        relaxation.best.offer_labels(rounded)
        record.note(relaxation, StageName.LABELS)


def _lam_back(problem: Problem, lam: Any) -> Any:
    """λ in the user's units; where these are the problem's, it may still have to be made."""
    if not problem.exponent:
        return lam
    return problem.lam_back(lam() if callable(lam) else lam)


def _bounds_back(problem: Problem, best: Best) -> dict[str, Any]:
    """Bounds and proof; from λ and the user's costs alone where scaling has rounded either."""
    if problem.given is problem.scaled:
        return {"bound": best.bound, "lp_bound": best.lp_bound, "proof": best.proof}
    exact = problem.costs_survive_scaling() or not math.isfinite(best.bound)
    if exact and (not problem.exponent or problem.survives_scaling(best.lam)):
        lower = problem.bound_back(best.lp_bound)
    else:
        outer, lam = problem.without_unsupported(), problem.lam_back(best.lam)
        lower = float(core.dual_bound(layout(outer), lam, outer.constant, problem.threads))
    proof, bound = best.proof, problem.bound_back(best.bound)
    if not exact or not problem.survives_scaling(proof.lam) or bound <= lower:
        proof = Proof()
    if proof.kind is ProofKind.RELAXATION:
        return {"bound": lower, "lp_bound": lower, "proof": proof}
    if proof.lam is not None:
        beliefs = problem.beliefs_back(proof.beliefs)
        proof = replace(proof, lam=problem.lam_back(proof.lam), beliefs=beliefs)
    return {"bound": bound, "lp_bound": lower, "proof": proof}


def cautious(result: Result) -> Result:
    """A result whose trace and status say no more than its bounds prove."""
    rows = [replace(row, bound=min(row.bound, result.bound)) for row in result.trace]
    tolerances = dict(zip((Status.LP_GAP, Status.GAP), result.tolerances, strict=True))
    most = (tolerances | {Status.OPTIMAL: PROVED}).get(result.status, math.inf)
    gap = result.lp_gap if result.status is Status.LP_GAP else result.gap
    if math.isfinite(result.bound):
        gap -= 4 * math.ulp(result.bound)  # the constant was added, which may have rounded
    held = relative_gap(gap, result.unit) <= most
    large = {name: unmade(result, name) for name in ("lam", "messages")}
    status = result.status if held else Status.EXHAUSTED
    return replace(result, trace=Trace(rows), status=status, **large)

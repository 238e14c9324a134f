"""The record of a run: its trace, log and checkpoints, and at the end its result.

The result holds the best values in the user's units, and claims no more than is proved.
"""

from __future__ import annotations

import logging
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from softmap import core
from softmap.errors import CheckpointWarning
from softmap.labels.pricing import energy_of
from softmap.later import made, unmade
from softmap.model import Model
from softmap.model.layout import layout
from softmap.relaxation.gaps import relative_gap
from softmap.relaxation.polytope import PrimalPoint
from softmap.solving.best import Best
from softmap.solving.budget import Budget
from softmap.solving.options import Options
from softmap.solving.problem import Problem
from softmap.solving.proof import Penalty, Proof, ProofKind
from softmap.solving.result import Result
from softmap.solving.stage import Seen
from softmap.solving.trace import PROVED, Row, Snapshot, StageName, Status, Trace

__all__ = [
    "LOG", "Checkpoints", "Record", "Watcher", "by_relaxation", "cautious", "claims", "finished",
    "watcher",
]  # fmt: skip


@dataclass(frozen=True)
class Credit:
    """The rule by which a bound is attributed to a search."""

    negligible: float = 1e-3
    """Fraction of the relaxation's gap below which the gain of a search is not mentioned."""


CREDIT = Credit()

LOG = logging.getLogger("softmap")
LOG.addHandler(logging.NullHandler())


class Record:
    """Writes the trace: one row per check of the relaxation and per slice of another stage.

    Parameters
    ----------
    problem : Problem
        The problem.
    best : Best
        The best values so far.
    budget : Budget
        The budget of the run.
    trace : Trace
        The rows of an earlier part of the run, or none.

    Attributes
    ----------
    problem : Problem
        The problem.
    trace : Trace
        The rows, in the user's units.
    labels : int64 array
        The labelling of lowest energy in the user's units. It may differ from the run's best
        labelling if costs are tiny, because conversion to the user's units rounds them.
    energy : float
        The energy of `labels` in the user's units.
    """

    def __init__(self, problem: Problem, best: Best, budget: Budget, trace: Trace) -> None:
        self.trace = trace
        self.labels, self.energy = best.labels, math.inf
        self.problem, self._best, self._budget = problem, best, budget
        self._priced: Any = None

    def note(self, stage: StageName, seen: Seen, *, check: bool = False) -> Snapshot:
        """Add a row with the current values; return it as a snapshot.

        Parameters
        ----------
        stage : StageName
            The stage that has run.
        seen : Seen
            The relaxation as it stands.
        check : bool, default False
            Whether the row is that of a check of the relaxation.
        """
        problem, best = self.problem, self._best
        self.price()
        energy = self.energy
        primal = primal_back(problem, best.primal, best.energy, energy)
        if len(self.trace):  # conversion to the user's units may have rounded an earlier row
            primal = min(primal, self.trace[-1].primal)
        smoothed = math.nan
        if check and seen.smoothed is not None:
            smoothed = problem.cost_back(seen.smoothed)
        row = Row(
            work=self._budget.work,
            sweeps=seen.sweeps,
            seconds=self._budget.seconds,
            eta=problem.eta_back(seen.eta),
            bound=problem.bound_back(best.bound),
            smoothed=smoothed,
            primal=primal,
            energy=energy,
            slack=seen.slack if check else math.nan,
            stage=stage,
            lp_bound=problem.bound_back(best.lp_bound),
        )
        self.trace.rows.append(row)
        LOG.debug("%s", row)
        lam = lambda: problem.lam_back(seen.lam()).copy()  # noqa: E731
        return Snapshot(problem.given, row, self.labels, lam, seen.done)

    def result(self, options: Options, seen: Seen, status: Status) -> Result:
        """Return the best values as a result, as they are."""
        best, problem, budget = self._best, self.problem, self._budget
        self.price()
        labels, energy = self.labels, self.energy
        point = best.point or PrimalPoint(problem.model, labels=labels)
        lam: Any = best.unmade_lam()
        messages: Any = seen.lam
        if problem.model.half_size <= options.tuning.lazy_entries:  # otherwise made when asked for
            lam, messages = best.lam, seen.lam()
            made(point, "coupling")
        return Result(
            model=problem.given,
            method=options.method,
            status=status,
            labels=labels[: problem.given.num_visible],
            energy=energy,
            primal=primal_back(problem, best.primal, best.energy, energy),
            lam=_lam_back(problem, lam),
            messages=_lam_back(problem, messages),
            eta=self.trace[-1].eta,
            trace=self.trace,
            work=budget.work,
            sweeps=seen.sweeps,
            seconds=budget.seconds,
            setup_seconds=budget.setup_seconds,
            threads=problem.threads,
            point=point,
            tolerances=(options.lp_gap, options.gap),
            upper_bound=math.inf if options.upper_bound is None else options.upper_bound,
            penalty=_penalty_back(problem, best.penalty),
            **_bounds_back(problem, best),
        )

    def price(self) -> None:
        """Compute the energy of the best labels in the user's units if the labels have changed."""
        best, given = self._best, self.problem.given
        if best.labels is self._priced:
            return
        self._priced = best.labels
        same = given is self.problem.scaled or not best.found
        energy = best.energy if same else energy_of(given, best.labels, self.problem.threads)
        if energy <= self.energy or not math.isfinite(self.energy):
            self.labels, self.energy = best.labels, energy


def primal_back(problem: Problem, primal: float, energy: float, energy_back: float) -> float:
    """Convert a primal value to the user's units; it is never above the energy."""
    return energy_back if primal >= energy else min(problem.cost_back(primal), energy_back)


class Checkpoints:
    """Stores a run at intervals, at its end and when it is interrupted.

    Parameters
    ----------
    path : str, Path or None
        The file; None stores nothing.
    write : function
        Writes the run to a path.
    """

    interval: ClassVar[float] = 30.0  # seconds between two checkpoints

    def __init__(self, path: str | Path | None, write: Callable[[Path], object]) -> None:
        self._path = None if path is None else Path(path)
        self._write = write
        self._saved, self._whole = time.perf_counter(), True

    def suspend(self) -> None:
        """Disable checkpoints: a resumed run could not continue from this point."""
        self._whole = False

    def allow(self) -> None:
        """Enable checkpoints again."""
        self._whole = True

    def save_if_due(self, *, at_end: bool) -> None:
        """Store the run if checkpoints are enabled, and it has ended or the interval has passed."""
        if self._whole and (at_end or time.perf_counter() - self._saved > self.interval):
            self.save()

    def save(self) -> None:
        """Store the run. If that fails, the last checkpoint remains and the run continues."""
        if self._path is None:
            return
        try:
            self._write(self._path)
        except (OSError, MemoryError) as error:
            reason = getattr(error, "reason", None) or str(error) or "out of memory"
            warnings.warn(
                f"{self._path}: the checkpoint cannot be written ({reason}); the run continues, "
                "and an earlier checkpoint is unchanged",
                CheckpointWarning,
                stacklevel=2,
            )
        self._saved = time.perf_counter()


class Watcher:
    """Callbacks that display a run: one for each snapshot, one for the result."""

    def __init__(
        self,
        show: Callable[[Snapshot], Any],
        end: Callable[[Result], Any],
        close: Callable[[], Any],
    ) -> None:
        self.show, self.end, self.close = show, end, close


def watcher(model: Model, options: Options) -> Watcher:
    """Log the start of a run; return its display: a progress bar, lines, or nothing."""
    LOG.info("solving %r by %s, goal %s", model, options.method, options.goal)
    if not options.verbose and not options.progress:
        return Watcher(lambda snapshot: None, _log_end, lambda: None)
    from softmap.views.progress import Watching

    limits = {"time_limit": options.time_limit, "gap": options.gap}
    watching = Watching(verbose=options.verbose, progress=options.progress, limits=limits)

    def end(result: Result) -> None:
        _log_end(result)
        watching.end(result)

    return Watcher(watching, end, watching.close)


def _log_end(result: Result) -> None:
    LOG.info("%r after %.3g s: %s", result, result.seconds, result.status)


def finished(options: Options, record: Record, seen: Seen, status: Status) -> Result:
    """Return the result of a run.

    Parameters
    ----------
    options : Options
        The options of the run.
    record : Record
        Its trace, best values and budget.
    seen : Seen
        The relaxation as it stands at the end.
    status : Status
        Why the run has ended.
    """
    result = record.result(options, seen, status)
    plain = by_relaxation(result)
    problem = record.problem
    return result if plain is result and problem.given is problem.scaled else cautious(plain)


def by_relaxation(result: Result) -> Result:
    """Return the result with the relaxation's bound if a search has improved it by very little.

    The relaxation's bound can be checked from λ. It replaces the search's bound only if it proves
    the gap that the status claims.
    """
    if not result.proof.stated or not result.found:
        return result
    gained = result.bound - result.lp_bound
    if not gained <= CREDIT.negligible * (result.energy - result.lp_bound):
        known = {Status.OPTIMAL: PROVED, Status.GAP: result.tolerances[1]}
        if result.status not in known:
            return result
    large = {name: unmade(result, name) for name in ("lam", "messages")}
    plain = replace(result, bound=result.lp_bound, proof=Proof(), **large)
    most = claims(plain).get(result.status, math.inf)
    return plain if plain.relative_gap(plain.claimed_gap) <= most else result


def _penalty_back(problem: Problem, penalty: Penalty | None) -> Penalty | None:
    """The penalty in the user's units."""
    if penalty is None:
        return None
    return replace(penalty, cost=math.ldexp(penalty.cost, -problem.exponent))


def _lam_back(problem: Problem, lam: Any) -> Any:
    """Convert λ to the user's units; it stays lazy if the units are the same."""
    if not problem.exponent:
        return lam
    return problem.lam_back(lam() if callable(lam) else lam)


def _bounds_back(problem: Problem, best: Best) -> dict[str, Any]:
    """Return bounds and proof in the user's units.

    They are recomputed from λ and the user's costs if scaling was not exact.
    """
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
    if (given := proof.multipliers) is not None:
        given = given.scaled(-problem.exponent, problem.bound_back(given.bound))
        proof = replace(proof, multipliers=given)
    return {"bound": bound, "lp_bound": lower, "proof": proof}


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
        )
        for row in result.trace
    ]
    most, gap = claims(result).get(result.status, math.inf), result.claimed_gap
    if math.isfinite(result.bound):
        gap -= 4 * math.ulp(result.bound)  # rounding errors of adding the constant
    held = relative_gap(gap, result.gap_unit) <= most
    large = {name: unmade(result, name) for name in ("lam", "messages")}
    status = result.status if held else Status.EXHAUSTED
    return replace(result, trace=Trace(rows), status=status, **large)

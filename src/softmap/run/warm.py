"""Warm starts: what an earlier result knows, in the units of a new run; or a labelling.

λ, η, labels, the primal point and the clusters of the proof are carried over, and each is judged
by the costs of the new run: labels are priced, a bound is worked out from λ, the point is made and
priced again. No number that the earlier result claims is taken over, not even for the very same
model: what an exact search has proved is searched again. So a bad start, or a result that was
tampered with, costs time and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from softmap.errors import ModelError, OptionError
from softmap.labels import LabelSearch
from softmap.methods.base import Floats, Proposal, find
from softmap.model import Network
from softmap.model.potentials.base import Ints, plain
from softmap.relaxation.dual import check_eta, check_lam
from softmap.relaxation.gaps import PROVED, scaled
from softmap.relaxation.polytope import checked_marginals
from softmap.run.best import Best
from softmap.run.evidence import Evidence
from softmap.run.judge import Judge
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.result import Result
from softmap.run.trace import Status
from softmap.tuning import Tuning

__all__ = ["WarmStart", "start_labels", "warm_start"]

GIVEN_UP = (Status.EFFORT, Status.EXHAUSTED, Status.MEMORY_LIMIT, Status.STALLED)


@dataclass(frozen=True, eq=False)
class WarmStart:
    """The warm start of a run, in its units.

    Attributes
    ----------
    lam : float64 array
        Initial λ.
    result : Result or None
        The earlier result; None if only λ was given.
    same : bool
        Whether it is a result of the same model.
    evidence : Evidence or None
        The evidence of the earlier result for the costs of this run, if it needs no search.
    """

    lam: Floats
    problem: Problem
    result: Result | None = None
    same: bool = False
    evidence: Evidence | None = None

    def eta(self, method: str) -> float | None:
        """Return the initial η, if the earlier run used the same annealed method, else None."""
        known = self.result
        if known is None or known.method != method or find(method).fixed_eta:
            return None
        return self.problem.eta(known.eta)

    @property
    def reached(self) -> float:
        """The final relative MAP gap of the earlier run; 0 if unknown."""
        known = self.result
        return 0.0 if known is None else known.relative_gap(known.gap)

    def enough(self, best: Best) -> bool:
        """Whether the MAP gap is at most the one at which the earlier run gave up."""
        known = self.result
        if known is None or known.status not in GIVEN_UP:
            return False  # it stopped for another reason: goal="lp", a limit, a wider tolerance
        return best.gaps().map <= self.reached

    @property
    def searched(self) -> bool:
        """Whether an exact search has proved the optimum of the earlier model."""
        known = self.result
        if known is None or self.reached > PROVED:
            return False
        return known.proof.stated

    def ended(self, best: Best, options: Options) -> Status | None:
        """Return a status if the relaxation need not be solved: the earlier gap is reached.

        For the same model, the earlier run either gave up there, as this one would, or ended by an
        exact search, which is repeated.
        """
        known = self.result
        if known is None or options.goal == "lp":
            return None
        if self.same and self.searched:
            return Status.RELAXED
        if not options.ends or known.status not in GIVEN_UP:
            return None
        if not self.enough(best):
            return None
        if self.same:
            return known.status
        return Status.RELAXED if options.gap >= known.tolerances[1] else None

    def recall(self, judge: Judge, labels: LabelSearch, seed: int) -> None:
        """Evaluate the earlier result with the costs of this problem."""
        known, best = self.result, judge.best
        if known is None:
            return
        best.offer_labels(self.problem.given.lowered(np.ravel(known.labels)))
        self._recall_point(judge, known)
        if not self.same:
            priced = best.labels, best.energy
            best.offer_labels(*labels.improve(priced, best.lp_bound, seed))
        if (evidence := self.evidence) is not None:
            best.offer_bound(evidence)

    def _recall_point(self, judge: Judge, known: Result) -> None:
        """Offer the bound of λ and the primal point, with edge marginals for the new costs."""
        problem, point, best = self.problem, known.point, judge.best
        lam = problem.lam(known.lam)
        if point.nodes is None:
            best.offer_lam(lam)
            return
        nodes = _allowed(problem.model, checked_marginals(problem.model, point.node_marginals()))
        if math.isinf(point.eta):
            best.offer_lam(lam)
            if self.same:  # optimal transport plans of all edges take long
                judge.solution(lam, nodes)
            return
        exponent = scaled(known.model.network).exponent
        with np.errstate(over="ignore", under="ignore"):
            eta = problem.eta(float(np.ldexp(point.eta, exponent)))
            coupling = lam  # a placeholder: the point does not depend on it
            if point.coupling is not None:
                coupling = problem.lam(np.ldexp(point.coupling, -exponent))
        assert eta is not None
        judge.look(Proposal(lam, eta, coupling=coupling, nodes=(nodes,)))


def _allowed(model: Network, nodes: Floats) -> Floats:
    """Return normalised node marginals without states that are forbidden now."""
    begin, counts = model.node_offset[:-1], model.num_labels
    free = ~np.isposinf(model.unary)
    left = np.where(free, nodes, 0.0)
    mass = np.repeat(np.add.reduceat(left, begin), counts)
    even = free / np.repeat(np.add.reduceat(free.astype(float), begin), counts)
    return np.where(mass > 0, left / np.where(mass > 0, mass, 1.0), even)


def start_labels(model: Network, initial: Any, warm: Any) -> Ints | None:
    """The labelling that `initial=` or `warm_start=` of a run stands for, of all variables."""
    name = "warm_start" if initial is None else "initial"
    given = warm if initial is None else initial
    if initial is None and not _is_labelling(model, warm):
        return None
    try:
        found = model.complete(given)
    except Exception as error:  # of any type: the value may bring its own conversion
        raise OptionError(f"{name}: expected a labelling of this model ({error})") from error
    if found.ndim != 1:
        raise OptionError(f"{name}: expected one labelling, not an array of shape {found.shape}")
    return found


def _is_labelling(model: Network, given: Any) -> bool:
    """Whether a warm start is labels: λ are real numbers, and as many as half-edge states."""
    if isinstance(given, Mapping):
        return True
    if given is None or isinstance(given, Result):
        return False
    try:
        array = np.asarray(plain(given))
    except Exception:  # of any type: said to be no λ in a moment
        return False
    return array.dtype.kind in "iu" and model.is_labelling(array.size)


def warm_start(problem: Problem, given: Any, tuning: Tuning) -> WarmStart | None:
    """Return the warm start for the option `warm_start`: None, λ, or an earlier result."""
    if given is None:
        return None
    result = given if isinstance(given, Result) else None
    lam = given if result is None else result.messages
    try:
        flat = problem.lam(check_lam(problem.given, lam).copy())
    except (OptionError, ValueError, TypeError) as error:
        raise OptionError(
            "warm_start: expected a Result, a labelling, or λ of this model as a flat array "
            f"({error})"
        ) from error
    if result is None or not _fits(problem, result):
        return WarmStart(flat, problem)
    _check(problem, result)
    same = _same(problem.given, result.model.network)
    return WarmStart(flat, problem, result, same, result.proof.renewed(problem, tuning))


def _same(ours: Network, theirs: Network) -> bool:
    """Whether two models are equal; different costs are found without a full digest."""
    if ours is theirs:
        return True
    return np.array_equal(ours.unary, theirs.unary) and ours.fingerprint() == theirs.fingerprint()


def _fits(problem: Problem, result: Result) -> bool:
    """Whether an earlier result has the variables and edges of this model."""
    return problem.given.has_graph_of(result.model.network)


def _check(problem: Problem, result: Result) -> None:
    """Raise `OptionError` for labels, λ or marginals that do not fit the model."""
    model, point = problem.given, result.point
    try:
        check_lam(model, result.lam)
        model.complete(np.ravel(result.labels))  # a model may have a shape that the other has not
        check_eta(result.eta)
        if point.coupling is not None:
            check_lam(model, point.coupling)
        if not math.isinf(point.eta):
            check_eta(point.eta)
        if point.nodes is not None:
            checked_marginals(model, point.node_marginals())
    except (ModelError, OptionError) as error:
        raise OptionError(f"warm_start: this result is damaged ({error})") from error

"""Warm starts: what an earlier result knows, in the units of a new run.

λ, η, labels, the primal point and the clusters of the proof are carried over. A bound is taken as
it is only for the very same model; otherwise what is carried is judged anew for the new costs, so
that a bad start costs time and nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from softmap.algorithms.base import Floats, Proposal
from softmap.algorithms.registry import find
from softmap.errors import OptionError
from softmap.relaxation.bounds import dual_bound
from softmap.relaxation.dual import check_lam
from softmap.relaxation.point import PrimalPoint
from softmap.relaxation.scaling import scaled
from softmap.solving.proof import Proof, ProofKind
from softmap.solving.result import Result
from softmap.solving.trace import PROVED, Status
from softmap.solving.units import Units

if TYPE_CHECKING:
    from softmap.solving.run import Run
    from softmap.tightening.stage import Stage

__all__ = ["WarmStart", "warm_start"]

KEPT = 30.0  # times that the LP gap may have grown by the change of costs before η is lowered
GIVEN_UP = (Status.EFFORT, Status.EXHAUSTED, Status.STALLED)


@dataclass(frozen=True, eq=False)
class WarmStart:
    """What a run begins with, in its own units.

    Attributes
    ----------
    lam
        λ that passes begin from.
    result
        The earlier result, if one was given and not only λ.
    same
        Whether it is a result of the very same model.
    """

    lam: Floats
    units: Units
    result: Result | None = None
    same: bool = False

    def eta(self, method: str) -> float | None:
        """η to begin with, where the earlier run has annealed as this one will."""
        known = self.result
        if known is None or known.method != method or find(method).fixed_eta:
            return None
        return self.units.eta(known.eta)

    @property
    def reached(self) -> float:
        """The relative MAP gap that the earlier run ended with; 0 if it is not known."""
        known = self.result
        return 0.0 if known is None else known.relative_gap(known.gap)

    def enough(self, run: Run) -> bool:
        """Whether the MAP gap is no larger than the one that the earlier run ended with."""
        return run.gaps()[1] <= self.reached

    @property
    def searched(self) -> bool:
        """Whether an exact search has proved the optimum of the earlier model."""
        known = self.result
        if known is None or self.reached > PROVED:
            return False
        return known.proof.kind is ProofKind.SEARCH

    def adopt(self, stage: Stage) -> None:
        """Let a tightening stage begin with the clusters of the earlier proof."""
        known = self.clusters
        if known is not None and known.lam is not None:
            stage.adopt(known.clusters, known.lam)

    @property
    def clusters(self) -> Proof | None:
        """The clusters of the earlier proof with λ for them, if it had any."""
        known = self.result
        if known is None or known.proof.kind is not ProofKind.TIGHTENED:
            return None
        lam = known.proof.lam
        return None if lam is None else replace(known.proof, lam=self._into(lam))

    def ended(self, run: Run) -> Status | None:
        """Why the relaxation need not be solved: nothing is asked for beyond the earlier gap.

        Of the same model, because the earlier run gave up and this one would do the same again.
        """
        known, options = self.result, run.options
        limited = options.time_limit is not None or options.max_work is not None
        if known is None or limited or options.goal not in ("map", "labels"):
            return None
        if self.same and known.status in GIVEN_UP:
            return known.status
        given_up = known.status in GIVEN_UP and options.gap >= known.tolerances[1]
        return Status.RELAXED if given_up and self.enough(run) else None

    def recall(self, run: Run) -> None:
        """Judge what the earlier result knows by the costs of this run."""
        known = self.result
        if known is None:
            return
        run.keep_labels(known.labels.reshape(-1))
        self._point(run, known)
        if self.same:
            bound = self._bound(known.bound)
            lam = None if known.proof.lam is None else self._into(known.proof.lam)
            run.keep_bound(bound, replace(known.proof, lam=lam))
            return
        run.search.improve(run.judge.bound, run.options.seed)
        run.judge.credit(run.search.labels, run.search.energy)
        self._warm_up(run, known)
        proof = self.clusters
        if proof is not None and proof.lam is not None:
            from softmap.tightening.regions import build  # many runs need none

            tight = build(run.model, list(proof.clusters))
            run.keep_bound(dual_bound(tight.model, proof.lam), proof)

    def _warm_up(self, run: Run, known: Result) -> None:
        """Lower η where costs have changed so much that λ has a long way to go."""
        before = max(known.relative_gap(known.lp_gap), known.tolerances[0], 1e-12)
        grown = run.gaps()[0] / (KEPT * before)
        if grown > 1.0 and math.isfinite(grown):
            run.algorithm.heat(run.state, grown)

    def _point(self, run: Run, known: Result) -> None:
        """The bound of λ and the price of the primal point; edges are coupled for the new costs."""
        lam = self.units.warm(known.lam)
        point, shift = known.point, self.units.exponent - scaled(known.model).exponent
        if point.nodes is None or point.coupling is None or math.isinf(point.eta):
            run.judge.glance(lam)
            if point.nodes is not None and self.same:
                run.judge.accept(lam, point.nodes)
            return
        proposal = Proposal(
            lam,
            float(np.ldexp(point.eta, -shift)),
            coupling=np.ldexp(point.coupling, shift),
            nodes=(_allowed(run, point),),
        )
        run.judge.look(proposal)

    def _into(self, lam: Floats) -> Floats:
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(lam, self.units.exponent)

    def _bound(self, bound: float) -> float:
        """A bound of the user's model in the run's units, rounded down."""
        with np.errstate(over="ignore", under="ignore"):
            inside = float(np.ldexp(bound - self.units.given.constant, self.units.exponent))
        while self.units.bound(inside) > bound:
            inside = math.nextafter(inside, -math.inf)
        return inside


def _allowed(run: Run, point: PrimalPoint) -> Floats:
    """Node marginals without states that are forbidden now, where others are left."""
    nodes, model = point.node_marginals(), run.model
    barred = np.isposinf(model.unary)
    if not (barred & (nodes > 0)).any():
        return nodes
    left = np.where(barred, 0.0, nodes)
    mass = np.add.reduceat(left, model.node_offset[:-1])
    free = (~barred) / np.repeat(
        np.add.reduceat((~barred).astype(float), model.node_offset[:-1]), model.num_labels
    )
    spread = np.repeat(np.where(mass > 0, mass, 1.0), model.num_labels)
    return np.where(np.repeat(mass > 0, model.num_labels), left / spread, free)


def warm_start(units: Units, given: Any) -> WarmStart | None:
    """What `warm_start=` of a run stands for: None, λ, or an earlier result."""
    if given is None:
        return None
    result = given if isinstance(given, Result) else None
    lam = given if result is None else result.messages
    try:
        flat = units.warm(check_lam(units.given, lam).copy())
    except (OptionError, ValueError, TypeError) as error:
        raise OptionError(
            f"warm_start: expected a Result, or λ of this model as a flat array ({error})"
        ) from error
    if result is None or not _fits(units, result):
        return WarmStart(flat, units)
    same = result.model is units.given or (result.model.fingerprint() == units.given.fingerprint())
    return WarmStart(flat, units, result, same)


def _fits(units: Units, result: Result) -> bool:
    """Whether an earlier result has the variables and edges of this model."""
    ours, theirs = units.given, result.model
    return (
        ours.num_variables == theirs.num_variables
        and np.array_equal(ours.num_labels, theirs.num_labels)
        and np.array_equal(ours.edges, theirs.edges)
    )

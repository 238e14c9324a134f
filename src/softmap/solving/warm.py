"""Warm starts: what an earlier result knows, in the units of a new run.

λ, η, labels, the primal point and the clusters of the proof are carried over, and each is judged
by the costs of the new run: labels are priced, a bound is worked out from λ, the point is made and
priced again. No number that the earlier result claims is taken over, not even for the very same
model: what an exact search has proved is searched again. So a bad start, or a result that was
tampered with, costs time and nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from softmap.algorithms.base import Floats, Proposal
from softmap.algorithms.registry import find
from softmap.errors import ModelError, OptionError
from softmap.model import Model
from softmap.relaxation.bounds import dual_bound
from softmap.relaxation.dual import check_eta, check_lam
from softmap.relaxation.point import Beliefs
from softmap.relaxation.polytope import checked_marginals
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
        """Whether the MAP gap is no larger than the one at which the earlier run gave up."""
        known = self.result
        if known is None or known.status not in GIVEN_UP:
            return False  # it had other ends: the relaxation alone, a limit, a wider gap
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
        if (known := self.clusters) is not None:
            stage.adopt(known.clusters, known.lam, known.beliefs)

    @cached_property
    def clusters(self) -> Clusters | None:
        """The clusters of the earlier proof with λ for them, if it had any that can be built."""
        proof = None if self.result is None else self.result.proof
        if proof is None or proof.lam is None or not proof.clusters:
            return None
        from softmap.tightening.selection import Limits  # many runs need none

        labels = self.units.given.num_labels
        if any(not 0 <= i < len(labels) for scope in proof.clusters for i in scope):
            raise OptionError("warm_start: this result is damaged (a cluster is out of range)")
        states = sum(math.prod(labels[list(scope)].tolist()) for scope in proof.clusters)
        if states > Limits().states:
            return None
        return Clusters(proof.clusters, self._into(proof.lam), self._beliefs(proof.beliefs))

    def _beliefs(self, given: Beliefs | None) -> Beliefs | None:
        if given is None:
            return None
        eta = self.units.eta(given.eta)
        assert eta is not None
        return replace(given, coupling=self._into(given.coupling), eta=eta)

    def ended(self, run: Run) -> Status | None:
        """Why the relaxation need not be solved: nothing is asked for beyond the earlier gap.

        Of the same model, because the earlier run gave up there and this one would do the same
        again, or because a search has ended it, which begins again.
        """
        known, options = self.result, run.options
        if known is None or options.goal == "lp":
            return None
        if self.same and self.searched:
            return Status.RELAXED
        limited = options.time_limit is not None or options.max_work is not None
        if limited or options.goal == "optimal" or known.status not in GIVEN_UP:
            return None
        if not self.enough(run):
            return None
        if self.same:
            return known.status
        return Status.RELAXED if options.gap >= known.tolerances[1] else None

    def recall(self, run: Run) -> None:
        """Judge what the earlier result knows by the costs of this run."""
        known = self.result
        if known is None:
            return
        run.keep_labels(run.given.with_running(known.labels))
        self._point(run, known)
        if not self.same:
            run.search.improve(run.judge.bound, run.options.seed)
            run.judge.credit(run.search.labels, run.search.energy)
            self._warm_up(run, known)
        if (clusters := self.clusters) is not None:
            run.keep_bound(*clusters.proved(run.model))

    def _warm_up(self, run: Run, known: Result) -> None:
        """Lower η where costs have changed so much that λ has a long way to go."""
        before = max(known.relative_gap(known.lp_gap), known.tolerances[0], 1e-12)
        grown = run.gaps()[0] / (KEPT * before)
        if grown > 1.0 and math.isfinite(grown):
            run.algorithm.heat(run.state, grown)

    def _point(self, run: Run, known: Result) -> None:
        """The bound of λ and the price of the primal point; edges are coupled for the new costs."""
        lam, point = self.units.warm(known.lam), known.point
        if point.nodes is None:
            run.judge.glance(lam)
            return
        nodes = _allowed(run, checked_marginals(run.model, point.nodes))
        if math.isinf(point.eta):
            run.judge.glance(lam)
            if self.same:  # the cheapest transport on every edge takes long
                run.judge.accept(lam, nodes)
            return
        exponent = scaled(known.model).exponent
        with np.errstate(over="ignore", under="ignore"):
            eta = self.units.eta(float(np.ldexp(point.eta, exponent)))
            coupling = lam  # where the point does not depend on it
            if point.coupling is not None:
                coupling = self.units.warm(np.ldexp(point.coupling, -exponent))
        assert eta is not None
        run.judge.look(Proposal(lam, eta, coupling=coupling, nodes=(nodes,)))

    def _into(self, lam: Floats) -> Floats:
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(lam, self.units.exponent)


@dataclass(frozen=True, eq=False)
class Clusters:
    """Clusters of variables, and λ and beliefs of the model that is tightened by them."""

    clusters: tuple[tuple[int, ...], ...]
    lam: Floats
    beliefs: Beliefs | None = None

    def proved(self, model: Model) -> tuple[float, Proof]:
        """The bound that they prove for a model, worked out from λ."""
        from softmap.tightening.regions import build  # many runs need none

        try:
            tight = build(model, self.clusters)
            bound = dual_bound(tight.model, self.lam)
            beliefs = self._checked(tight.model)
        except (ModelError, OptionError) as error:
            raise OptionError(f"warm_start: this result is damaged ({error})") from error
        return bound, Proof(ProofKind.TIGHTENED, self.clusters, self.lam, beliefs=beliefs)

    def _checked(self, model: Model) -> Beliefs | None:
        """The beliefs, made to be marginals of the tightened model."""
        if self.beliefs is None:
            return None
        return replace(
            self.beliefs,
            nodes=checked_marginals(model, self.beliefs.nodes),
            coupling=check_lam(model, self.beliefs.coupling),
            eta=check_eta(self.beliefs.eta),
        )


def _allowed(run: Run, nodes: Floats) -> Floats:
    """Node marginals that add up to 1, without states that are forbidden now."""
    model = run.model
    begin, counts = model.node_offset[:-1], model.num_labels
    free = ~np.isposinf(model.unary)
    left = np.where(free, nodes, 0.0)
    mass = np.repeat(np.add.reduceat(left, begin), counts)
    even = free / np.repeat(np.add.reduceat(free.astype(float), begin), counts)
    return np.where(mass > 0, left / np.where(mass > 0, mass, 1.0), even)


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
    _check(units, result)
    return WarmStart(flat, units, result, _same(units.given, result.model))


def _same(ours: Model, theirs: Model) -> bool:
    """Whether two models are equal; costs that differ are seen without a digest of everything."""
    if ours is theirs:
        return True
    return np.array_equal(ours.unary, theirs.unary) and ours.fingerprint() == theirs.fingerprint()


def _fits(units: Units, result: Result) -> bool:
    """Whether an earlier result has the variables and edges of this model."""
    ours, theirs = units.given, result.model
    return (
        ours.num_variables == theirs.num_variables
        and ours.num_visible == theirs.num_visible
        and np.array_equal(ours.num_labels, theirs.num_labels)
        and np.array_equal(ours.edges, theirs.edges)
    )


def _check(units: Units, result: Result) -> None:
    """Refuse what no run gives: labels, λ or marginals that are none of such a model's."""
    model, point = units.given, result.point
    try:
        check_lam(model, result.lam)
        model.complete(result.labels)
        check_eta(result.eta)
        if point.coupling is not None:
            check_lam(model, point.coupling)
        if not math.isinf(point.eta):
            check_eta(point.eta)
        if point.nodes is not None:
            checked_marginals(model, point.nodes)
    except (ModelError, OptionError) as error:
        raise OptionError(f"warm_start: this result is damaged ({error})") from error

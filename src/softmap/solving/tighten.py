"""The tightening stage: add clusters, run annealed passes, decode labels, add more."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

from softmap import core
from softmap import labels as decoding
from softmap.methods.base import Proposal
from softmap.methods.policy import Annealing
from softmap.methods.sweeps.anneal import Anneal, AnnealState
from softmap.model.layout import layout
from softmap.model.potentials.base import Ints
from softmap.proof.tightening.clusters import Limits, belief_costs, select, unions
from softmap.proof.tightening.labels import candidates, load, polished
from softmap.proof.tightening.regions import Scope, Tightened, arrange, build, carry
from softmap.relaxation.bounds import dual_bound
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import Floats, check_lam, cost_scale
from softmap.relaxation.polytope import Beliefs, normalised
from softmap.solving.best import Best
from softmap.solving.problem import Problem
from softmap.solving.proof import Proof, ProofKind
from softmap.solving.warm import Clusters

__all__ = ["TightenTuning", "Tightening", "TurnClock"]


@dataclass(frozen=True, eq=False)
class TightenTuning:
    """Tuning numbers of the tightening stage.

    Attributes
    ----------
    again : float
        η is divided by this when clusters are added.
    coarse : float
        η rises twice as fast while smoothing lowers the bound by more than this many MAP gaps.
    beliefs : float
        Smallest η of the marginals that select clusters, in units of 1 / scale of the costs.
    warm : int
        Number of passes at that η.
    least, faint : float
        Smallest gain of a cycle: `least` times the scale of the costs, or `faint` / η if that is
        smaller.
    passes : int
        Number of passes between two checks.
    ripe : float
        Clusters are added when smoothing lowers the bound by less than this fraction of the MAP
        gap.
    stalled : int
        The stage ends after this many checks without gain if no clusters are left to add.
    last : int
        The stage ends after this many checks without gain in any case.
    after : float
        Time of a bound and labels, in passes.
    choosing : float
        Time to find and score cycles, in passes.
    used : float
        Number of passes for which there should be time after clusters are added.
    building : float
        Seconds per state to build a tightened model, until that was timed.
    unions : int
        Unions of two clusters are added, all at once, if there are at most this many per cluster.
    forests : int
        Number of tree moves for new labels, and per pass for annealing the best labels.
    heat : float
        Initial temperature of annealing, in units of √(scale of the costs · gap per variable).
    batch : int
        Smallest number of cycles that are added together.
    share : float
        Number of cycles that are added together, per existing cluster.
    first : int
        Number of cycles in the first batch.
    repaid : float
        Time for passes after clusters are added, even beyond the end of the time slice, relative to
        the time to choose and build them: a slice that ends before proves nothing.
    gain : float
        A check counts as progress if it raises the bound by this fraction of the MAP gap.
    """

    again: float = 4.0
    coarse: float = 4.0
    beliefs: float = 200.0
    warm: int = 20
    least: float = 1e-4
    faint: float = 0.05
    passes: int = 10
    ripe: float = 0.1
    stalled: int = 8
    last: int = 100
    after: float = 6.0
    choosing: float = 100.0
    used: float = 100.0
    building: float = 2e-6
    unions: int = 4
    forests: int = 4
    heat: float = 3.0
    batch: int = 200
    share: float = 0.5
    first: int = 10_000
    repaid: float = 1.0
    gain: float = 1e-3


TUNING = TightenTuning()
RULE = Annealing(first=30.0, growth=2.0, settled=0.1)


@dataclass(frozen=True)
class TurnClock:
    """Times of `time.perf_counter`: the end of the time slice, and the end of the run."""

    turn: float
    end: float

    @property
    def half(self) -> float:
        """The time at which half of the remaining time has passed."""
        now = time.perf_counter()
        return now + 0.5 * (self.end - now)


@dataclass(frozen=True)
class _Pace:
    """The pace of adding clusters.

    Attributes
    ----------
    building : float
        Time to build a tightened model, per node state, in seconds.
    repaid : float
        Time until which passes use the last clusters.
    """

    building: float
    repaid: float = -math.inf


@dataclass
class _Standing:
    """The state of the passes over one tightened model.

    Attributes
    ----------
    bound : float
        Best bound of this model.
    previous : float
        Smoothed dual of the check before.
    settled : bool
        Whether the smoothed dual has converged: it gained little at the last check.
    idle : int
        Number of consecutive checks without progress.
    states : int64 array
        Index of each node state of the tightened model in the order of its passes.
    """

    states: Ints
    bound: float = -math.inf
    previous: float = -math.inf
    settled: bool = False
    idle: int = 0


class Tightening:
    """A tightened model, the passes over it, and the rule for adding clusters.

    Parameters
    ----------
    problem : Problem
    best : Best
        Initial λ and labels; bounds and labels are offered to it.
    limits : Limits, optional
        Limits on the size of clusters.

    Attributes
    ----------
    tight : Tightened
        The model with the clusters so far.
    work : int
        Number of half-edge messages so far.
    seconds : float
        Estimated time of a pass, in seconds.
    """

    def __init__(self, problem: Problem, best: Best, limits: Limits | None = None) -> None:
        self.problem, self.best = problem, best
        self.limits = limits or Limits()
        self.work, self.seconds = 0, 0.0
        self._proved = best.lp_bound  # the best bound of this stage
        self._pace = _Pace(TUNING.building)
        self._left_to_try = ["cycles", "unions"]
        self._enter(build(problem.model, []), best.lam, RULE.first_eta(self._scale))

    @property
    def _scale(self) -> float:
        return cost_scale(self.problem.model)

    @property
    def _gap(self) -> float:
        """The gap between the best energy and the best bound of this stage."""
        return max(0.0, self.best.energy - self._proved)

    def adopt(self, known: Clusters) -> None:
        """Start from clusters of an earlier run; λ and beliefs belong to the model with them."""
        tight = build(self.problem.model, list(known.clusters))
        flat = check_lam(tight.model, known.lam)
        self._offer(dual_bound(tight.model, flat), tight, flat, known.beliefs)
        self._enter(tight, flat, TUNING.beliefs / self._scale)

    def go_on(self, clock: TurnClock, work: float, gap: float) -> bool:
        """Run until a time or an amount of work; return False if no more progress is expected."""
        if not self.tight.clusters and not self._closed(gap) and not self.grow(clock):
            return self._late(clock)
        while not self._closed(gap):
            over = time.perf_counter() >= max(clock.turn, self._pace.repaid)
            if self.work >= work or over or self._late(clock):
                return True
            self.check(clock)
            if not self._late(clock) and self._spent(clock):
                return False
        return False

    def check(self, clock: TurnClock) -> None:
        """Do some passes, then compute bound and labels, and raise η if due."""
        self._pass(TUNING.passes, clock)
        proposal = self.algorithm.propose(self.state)
        model = self.algorithm.engine.model
        bound = core.dual_bound(layout(model), proposal.lam, model.constant, self.problem.threads)
        before = self._proved
        assert proposal.coupling is not None
        beliefs = Beliefs(self._nodes(proposal), proposal.coupling, proposal.eta)
        self._offer(bound, self.tight, proposal.lam, beliefs)
        self._decode(beliefs.nodes)
        self._cool(bound, before)

    def _nodes(self, proposal: Proposal) -> Floats:
        """The node marginals of a proposal, of the nodes that the tightened model has now."""
        return normalised(self.algorithm.engine.model, proposal.nodes[0])[self._at.states]

    def grow(self, clock: TurnClock) -> bool:
        """Add clusters that raise the bound; return False if there are none."""
        if not self._left_to_try:
            return False
        have = len(self.tight.clusters)
        self.state.eta = max(
            self.state.eta / TUNING.again if have else 0.0, TUNING.beliefs / self._scale
        )
        started = time.perf_counter()
        load()
        passed = self._pass(TUNING.warm if have else 2 * TUNING.warm, clock)
        if not passed or not self._time_to_choose(clock):
            return False
        fresh = self._chosen(clock)
        if self._late(clock):
            return False
        if not fresh or not self._time_to_build(fresh, clock):
            self._left_to_try = []
            return False
        began, eta = time.perf_counter(), self.state.eta
        new = build(self.problem.model, [*self.tight.clusters, *fresh])
        lam = carry(self.tight, self.algorithm.restart_point(self.state), new)
        self.seconds *= new.model.unary.size / self.tight.model.unary.size  # until a pass is timed
        self._enter(new, lam, eta if have else RULE.first_eta(self._scale))
        now = time.perf_counter()
        each = (now - began) / new.model.unary.size
        self._pace = _Pace(each, now + TUNING.repaid * (now - started))
        return True

    def _chosen(self, clock: TurnClock) -> tuple[Scope, ...]:
        """Return cycles that raise the bound; if there are none, once, unions of clusters."""
        have, eta = len(self.tight.clusters), self.state.eta
        proposal = self.algorithm.propose(self.state)
        assert proposal.coupling is not None
        nodes = self._nodes(proposal)
        costs = belief_costs(self.tight, nodes, proposal.coupling, eta, self.limits.labels)
        batch = max(TUNING.batch, int(TUNING.share * have)) if have else TUNING.first
        least, limits = min(TUNING.least * self._scale, TUNING.faint / eta), self._affordable(clock)
        fresh = select(
            self.tight, costs, limits, least, batch, deadline=clock.half,
            threads=self.problem.threads,
        )  # fmt: skip
        if not fresh and "unions" in self._left_to_try and not self._late(clock):
            fresh = unions(self.tight, limits, TUNING.unions * have)
            self._left_to_try.remove("unions")
        return fresh

    def _closed(self, gap: float) -> bool:
        return self.best.gaps().map <= gap

    def _late(self, clock: TurnClock) -> bool:
        """Whether one more pass, and the closing tasks, would end too late."""
        return time.perf_counter() + TUNING.after * self.seconds >= clock.end

    def _spent(self, clock: TurnClock) -> bool:
        """Whether no more progress is expected: passes gain little, and no clusters are left."""
        at = self._at
        ripe = at.bound - self.state.smoothed < TUNING.ripe * self._gap and at.settled
        if ripe and not self.grow(clock):
            return self._at.idle >= TUNING.stalled
        return self._at.idle >= TUNING.last

    def _time_to_choose(self, clock: TurnClock) -> bool:
        """Whether there is time to choose clusters; if not, none are added any more."""
        if time.perf_counter() + TUNING.choosing * self.seconds < clock.end:
            return True
        self._left_to_try = []
        return False

    def _time_to_build(self, fresh: tuple[Scope, ...], clock: TurnClock) -> bool:
        """Whether a model with these clusters can be built in half of the remaining time."""
        labels = self.problem.model.num_labels
        states = sum(int(labels[list(scope)].prod()) for scope in fresh)
        size = self.tight.model.unary.size + 2 * states
        return time.perf_counter() + self._pace.building * size < clock.half

    def _pass(self, count: int, clock: TurnClock) -> bool:
        """Do up to `count` passes, as time allows; return whether all were done."""
        for _ in range(count):
            if self._late(clock):
                return False
            began = time.perf_counter()
            self.algorithm.step(self.state, 1)
            self.seconds = max(0.8 * self.seconds, time.perf_counter() - began)
            self.work += 2 * self.tight.model.m
        return True

    def _affordable(self, clock: TurnClock) -> Limits:
        """Return the limits, with no more states than there is time for."""
        if math.isinf(clock.end) or not self.seconds:
            return self.limits
        passes = (clock.end - time.perf_counter()) / self.seconds
        sized = int(self.tight.model.unary.size * passes / TUNING.used)
        return replace(self.limits, states=min(self.limits.states, sized))

    def _enter(self, tight: Tightened, lam: Floats, eta: float) -> None:
        """Switch to another tightened model."""
        self.tight = tight
        model, states = arrange(tight)
        # Clusters are chosen by edge marginals: proposals need couplings and no averages.
        self.algorithm = Anneal(
            threads=self.problem.threads, eta=eta, averaging=False, couplings=True
        )
        self.state: AnnealState = self.algorithm.init(tighten(model), lam, 0)
        self._at = _Standing(states)

    def _offer(self, bound: float, tight: Tightened, lam: Floats, beliefs: Beliefs | None) -> None:
        """Offer a bound of a tightened model; without clusters it is the plain LP bound."""
        self._proved = max(self._proved, bound)
        if len(tight.clusters):
            scopes = tuple(tight.clusters)
            proof = Proof(ProofKind.TIGHTENED, scopes, lam, beliefs=beliefs)
            self.best.offer_bound(bound, proof)

    def _cool(self, bound: float, before: float) -> None:
        """Raise η once the smoothed dual has converged."""
        at, smoothed = self._at, self.state.smoothed
        at.bound = max(at.bound, bound)
        at.settled = bool(
            RULE.due(
                self.state.eta, bound=bound, smoothed=smoothed, previous=at.previous,
                primal=math.inf, gap=math.inf, entropy=0.0,
            )
        )  # fmt: skip
        gained = self._proved - before > TUNING.gain * self._gap
        at.idle = 0 if gained else at.idle + 1
        at.previous = smoothed
        if bound - smoothed > TUNING.coarse * self._gap:
            self.state.raise_by(RULE.growth**2)
        elif at.settled:
            self.state.raise_by(RULE.growth)

    def _decode(self, nodes: Floats) -> None:
        best, model, seed = self.best, self.problem.model, self.work
        best.offer_labels(*polished(model, candidates(self.tight, nodes), TUNING.forests, seed))
        if 0.0 < best.gap < math.inf:
            heat = TUNING.heat * math.sqrt(self._scale * best.gap / model.num_variables)
            rounds = TUNING.forests * TUNING.passes
            best.offer_labels(decoding.forests(model, best.labels, rounds, heat, seed + 1))

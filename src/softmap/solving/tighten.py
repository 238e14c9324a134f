"""The tightening stage: add clusters, run annealed passes, decode labels, add more."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeVar

from softmap import core
from softmap.labels.improving import improved_by_forests
from softmap.methods.base import Proposal
from softmap.methods.policy import Annealing
from softmap.methods.sweeps.anneal import Anneal, AnnealState
from softmap.model.layout import layout
from softmap.model.potentials.base import Ints
from softmap.proof.tightening.clusters import (
    Limits,
    belief_costs,
    messages_of,
    select,
    unions,
)
from softmap.proof.tightening.labels import candidates, polished
from softmap.proof.tightening.regions import Scope, Tightened, arrange, build, building, carry
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
    coarse : float
        η rises twice as fast while smoothing lowers the bound by more than this many MAP gaps.
    beliefs : float
        η of the marginals that select clusters, and of the first passes over these clusters, in
        units of 1 / scale of the costs.
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
        Time of a bound and labels, in passes, until that was timed.
    used : float
        Clusters are added only if there is time for this many passes over them.
    building : float
        Seconds per message entry to choose clusters and to build a tightened model, until that was
        timed.
    unions : int
        Unions of two clusters are added, all at once, if there are at most this many per cluster.
    forests : int
        Number of tree moves for new labels, and per pass for annealing the best labels.
    rarely : int
        Largest number of checks without labels between two checks with labels.
    heat : float
        Initial temperature of annealing, in units of √(scale of the costs · gap per variable).
    gain : float
        A check counts as progress if it raises the bound by this fraction of the MAP gap.
    """

    coarse: float = 4.0
    beliefs: float = 200.0
    warm: int = 20
    least: float = 1e-4
    faint: float = 0.05
    passes: int = 10
    ripe: float = 0.2
    stalled: int = 8
    last: int = 100
    after: float = 6.0
    used: float = 30.0
    building: float = 1e-6
    unions: int = 4
    forests: int = 4
    rarely: int = 10
    heat: float = 3.0
    gain: float = 1e-3


TUNING = TightenTuning()
T = TypeVar("T")
RULE = Annealing(first=30.0, growth=2.0, settled=0.1)


@dataclass(frozen=True)
class TurnClock:
    """The end of a time slice.

    Attributes
    ----------
    turn, end : float
        Times of `time.perf_counter`: the end of the time slice, and the end of the run.
    stopped : function
        Whether the run is to end at once, for example by Ctrl-C.
    """

    turn: float = math.inf
    end: float = math.inf
    stopped: Callable[[], object] = bool


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
    rising : bool
        Whether the last check raised the bound of this model.
    states : int64 array
        Index of each node state of the tightened model in the order of its passes.
    """

    states: Ints
    bound: float = -math.inf
    previous: float = -math.inf
    settled: bool = False
    idle: int = 0
    rising: bool = True


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
    grown : float
        Time of adding clusters, in seconds, until passes over them have reached the bound that was
        known before: this time cannot raise it.
    """

    def __init__(self, problem: Problem, best: Best, limits: Limits | None = None) -> None:
        self.problem, self.best = problem, best
        self.limits = limits or Limits()
        self.work, self.seconds, self.grown = 0, 0.0, 0.0
        self._proved = best.lp_bound  # the best bound of this stage
        self._each = TUNING.building
        self._checking: float | None = None  # time of the last bound and labels, in seconds
        self._left_to_try = ["cycles", "unions"]
        self._checks = self._next_labels = self._in_vain = 0
        self._clock = TurnClock()
        self._steps = self.rounds()
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
        """Run until a time or an amount of work; return False if no more progress is expected.

        The steps and their order do not depend on the time: it only ends them.
        """
        self._clock = clock
        while not self._closed(gap):
            over = time.perf_counter() >= clock.turn or clock.stopped()
            if self.work >= work or over or self._late():
                return True
            if next(self._steps, True):
                return False
        return False

    def rounds(self) -> Generator[None, None, None]:
        """Add clusters, do passes over them until these gain little, add more. Yields often."""
        if not self.tight.clusters and not (yield from self.grow()):
            return
        while True:
            yield from self._timed(self.check()) if self._behind else self.check()
            ripe = self._at.bound - self.state.smoothed < TUNING.ripe * self._gap
            few = ripe and self._at.settled and not (yield from self.grow())
            if self._at.idle >= (TUNING.stalled if few else TUNING.last):
                return

    def check(self) -> Generator[None, None, None]:
        """Do some passes, then compute bound and labels, and raise η if due."""
        yield from self._pass(TUNING.passes)
        began = time.perf_counter()
        proposal = self.algorithm.propose(self.state)
        model = self.algorithm.engine.model
        bound = core.dual_bound(layout(model), proposal.lam, model.constant, self.problem.threads)
        before = self._proved
        assert proposal.coupling is not None
        beliefs = Beliefs(self._nodes(proposal), proposal.coupling, proposal.eta)
        self._offer(bound, self.tight, proposal.lam, beliefs)
        self._cool(bound, before)
        self._checking = time.perf_counter() - began
        yield
        self._checks += 1
        if self._checks >= self._next_labels:
            yield from self._decode(beliefs.nodes)

    def _nodes(self, proposal: Proposal) -> Floats:
        """The node marginals of a proposal, of the nodes that the tightened model has now."""
        return normalised(self.algorithm.engine.model, proposal.nodes[0])[self._at.states]

    def grow(self) -> Generator[None, None, bool]:
        """Add clusters that raise the bound; return False if there are none."""
        if not self._left_to_try or not self._time_to_grow():
            return False
        have = len(self.tight.clusters)
        self.state.eta = TUNING.beliefs / self._scale
        yield from self._timed(self._pass(TUNING.warm if have else 2 * TUNING.warm))
        passed = self.grown
        fresh = yield from self._timed(self._chosen())
        if not fresh or not self._time_to_use(messages_of(self.problem.model, fresh)):
            self._left_to_try = []
            return False
        old = self.tight
        yield from self._timed(self._add(fresh))
        self._each = (self.grown - passed) / self.tight.model.half_size
        self.seconds *= self.tight.model.half_size / old.model.half_size  # until a pass is timed
        self._checking = None
        return True

    def _timed(self, steps: Generator[None, None, T]) -> Generator[None, None, T]:
        """Add the time of the steps, without that between them, to `grown`."""
        while True:
            began = time.perf_counter()
            try:
                next(steps)
            except StopIteration as end:
                found: T = end.value
                return found
            finally:
                self.grown += time.perf_counter() - began
            yield

    def _add(self, fresh: tuple[Scope, ...]) -> Generator[None, None, None]:
        """Switch to the model with further clusters; λ is carried over."""
        new = yield from building(self.problem.model, [*self.tight.clusters, *fresh])
        lam = carry(self.tight, self.algorithm.restart_point(self.state), new)
        yield
        self._enter(new, lam, TUNING.beliefs / self._scale)

    def _chosen(self) -> Generator[None, None, tuple[Scope, ...]]:
        """Return cycles that raise the bound; if there are none, once, unions of clusters."""
        eta, limits = self.state.eta, self.limits
        proposal = self.algorithm.propose(self.state)
        assert proposal.coupling is not None
        nodes = self._nodes(proposal)
        yield
        costs = belief_costs(self.tight, nodes, proposal.coupling, eta, limits.labels)
        yield
        least = min(TUNING.least * self._scale, TUNING.faint / eta)
        fresh = yield from select(self.tight, costs, limits, least, threads=self.problem.threads)
        if not fresh and "unions" in self._left_to_try:
            fresh = unions(self.tight, limits, TUNING.unions * len(self.tight.clusters))
            self._left_to_try.remove("unions")
        yield
        return fresh

    def _closed(self, gap: float) -> bool:
        return self.best.gaps().map <= gap

    @property
    def _behind(self) -> bool:
        """Whether passes over new clusters approach the best bound, but have not reached it."""
        return self._at.bound < self.best.bound and self._at.rising

    def _late(self) -> bool:
        """Whether one more pass, with a bound and labels, would end too late."""
        after = TUNING.after * self.seconds if self._checking is None else self._checking
        return time.perf_counter() + self.seconds + after >= self._clock.end

    def _time_to_grow(self) -> bool:
        """Whether there is time to add the largest number of clusters, and to use them."""
        size = self.tight.model.half_size
        return self._time_to_use(max(self.limits.messages, self.limits.growth * size))

    def _time_to_use(self, messages: float) -> bool:
        """Whether there is time to add clusters with this many message entries, and to use them."""
        more = messages / self.tight.model.half_size
        passes = TUNING.warm + TUNING.used * (1.0 + more)
        needed = self._each * messages + passes * self.seconds
        return time.perf_counter() + needed < self._clock.end

    def _pass(self, count: int) -> Generator[None, None, None]:
        """Do `count` passes."""
        for _ in range(count):
            began = time.perf_counter()
            self.algorithm.step(self.state, 1)
            self.seconds = max(0.8 * self.seconds, time.perf_counter() - began)
            self.work += 2 * self.tight.model.m
            yield

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
        at.rising = bound - at.bound > TUNING.gain * self._gap
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

    def _decode(self, nodes: Floats) -> Generator[None, None, None]:
        """Decode and improve labels; less and less often while that finds no better ones."""
        best, model, seed = self.best, self.problem.model, self.work
        before, threads = best.energy, self.problem.threads
        found = candidates(self.tight, nodes)
        yield
        best.offer_labels(*polished(model, found, TUNING.forests, seed, threads))
        yield
        if 0.0 < best.gap < math.inf:
            heat = TUNING.heat * math.sqrt(self._scale * best.gap / model.num_variables)
            rounds, known = TUNING.forests * TUNING.passes, (best.labels, best.energy)
            moved = improved_by_forests(model, known, rounds, heat, seed + 1, threads)
            best.offer_labels(*moved)
        self._in_vain = 0 if best.energy < before else min(self._in_vain + 1, TUNING.rarely)
        self._next_labels = self._checks + 1 + self._in_vain
        yield

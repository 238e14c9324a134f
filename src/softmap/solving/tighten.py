"""The tightening stage: add clusters, run annealed passes, decode labels, add more."""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from dataclasses import dataclass

from softmap.labels.improving import improved_by_forests
from softmap.proof.tightening.clusters import (
    Limits,
    belief_costs,
    messages_of,
    select,
    unions,
)
from softmap.proof.tightening.labels import candidates, polished
from softmap.proof.tightening.regions import Tightened, build, building, carry
from softmap.proof.tightening.scopes import Scopes
from softmap.relaxation.bounds import dual_bound
from softmap.relaxation.dual import Floats, check_lam, cost_scale
from softmap.relaxation.polytope import Beliefs
from softmap.solving.best import Best
from softmap.solving.clustered import RULE, Clustered
from softmap.solving.problem import Problem
from softmap.solving.proof import Proof, ProofKind
from softmap.solving.times import Times, TurnClock
from softmap.solving.warm import Clusters

__all__ = ["TightenTuning", "Tightening"]


@dataclass(frozen=True, eq=False)
class TightenTuning:
    """Tuning numbers of the tightening stage.

    Attributes
    ----------
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
    overripe : float
        As `ripe`, for unions of clusters, which are added once no cycle raises the bound: passes
        over them take several times as long.
    stalled : int
        The stage ends after this many checks without gain if no clusters are left to add.
    last : int
        The stage ends after this many checks without gain in any case.
    used : float
        Clusters are added only if there is time for this many passes over them.
    unions : int
        Unions of two clusters are added, all at once, if there are at most this many per cluster.
    forests : int
        Number of tree moves for new labels, and per pass for annealing the best labels.
    rarely : int
        Largest number of checks without labels between two checks with labels.
    heat : float
        Initial temperature of annealing, in units of √(scale of the costs · gap per variable).
    """

    beliefs: float = 200.0
    warm: int = 20
    least: float = 1e-4
    faint: float = 0.05
    passes: int = 10
    ripe: float = 0.2
    overripe: float = 0.02
    stalled: int = 8
    last: int = 100
    used: float = 30.0
    unions: int = 4
    forests: int = 4
    rarely: int = 10
    heat: float = 3.0


TUNING = TightenTuning()


@dataclass
class _Decoding:
    """When to decode labels: less and less often while that finds no better ones.

    Attributes
    ----------
    vain : int
        Number of times that no better labels were found, at most `TightenTuning.rarely`.
    wait : int
        Number of checks without labels to come.
    """

    vain: int = 0
    wait: int = 0

    def due(self) -> bool:
        """Whether labels are to be decoded at this check."""
        self.wait -= 1
        return self.wait < 0

    def note(self, *, better: bool) -> None:
        """Note whether better labels were found."""
        self.vain = self.wait = 0 if better else min(self.vain + 1, TUNING.rarely)


class Tightening:
    """The rounds of the stage: clusters are added, then passes are done over the model with them.

    Parameters
    ----------
    problem : Problem
    best : Best
        Initial λ and labels; bounds and labels are offered to it.
    limits : Limits, optional
        Limits on the size of clusters.

    Attributes
    ----------
    at : Clustered
        The passes over the model with the clusters so far.
    times : Times
        The time of the parts of the stage.
    work : int
        Number of half-edge messages so far.
    """

    def __init__(self, problem: Problem, best: Best, limits: Limits | None = None) -> None:
        self.problem, self.best, self.limits = problem, best, limits or Limits()
        self.work, self.times = 0, Times()
        self._proved = best.lp_bound  # the best bound of this stage
        self._left_to_try = ["cycles", "unions"]
        self._decoding = _Decoding()
        self._steps = self.rounds()
        self._enter(build(problem.model, []), best.lam, RULE.first_eta(self._scale))

    @property
    def tight(self) -> Tightened:
        """The model with the clusters so far."""
        return self.at.tight

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

        This is also so if no pass ends before the run does. The steps and their order do not depend
        on the time: it only ends them.
        """
        self.times.clock = clock
        while self.best.gaps().map > gap and not self.times.late:
            if self.work >= work or clock.over:
                return True
            if next(self._steps, True):
                return False
        return False

    def rounds(self) -> Generator[None, None, None]:
        """Add clusters, do passes over them until these gain little, add more. Yields often."""
        if not len(self.tight.scopes) and not (yield from self.grow()):
            return
        while True:
            yield from self.times.preparing(self.check()) if self._behind else self.check()
            few = self._ripe and self.at.settled and not (yield from self.grow())
            if self.at.idle >= (TUNING.stalled if few else TUNING.last):
                return

    @property
    def _ripe(self) -> bool:
        """Whether passes over the clusters so far can gain little more."""
        least = TUNING.ripe if "cycles" in self._left_to_try else TUNING.overripe
        return self.at.smoothing < least * self._gap

    @property
    def _behind(self) -> bool:
        """Whether passes over new clusters approach the best bound, but have not reached it."""
        return self.at.bound < self.best.bound and self.at.rising

    def check(self) -> Generator[None, None, None]:
        """Do some passes, then compute bound and labels, and raise η if due."""
        yield from self._pass(TUNING.passes)
        began, before = time.perf_counter(), self._proved
        found = self.at.propose()
        bound = found.bound
        assert bound is not None
        if bound > self.best.bound:  # otherwise λ is not needed
            bound, lam, beliefs = self.at.proof(found)
            self._offer(bound, self.tight, lam, beliefs)
        self._proved = max(self._proved, bound)
        self.at.observe(bound, self._proved - before, self._gap)
        self.times.checked(time.perf_counter() - began)
        yield
        if self._decoding.due():
            yield from self._decode(self.at.nodes(found))

    def grow(self) -> Generator[None, None, bool]:
        """Add clusters that raise the bound; return False if there are none."""
        size, times = self.tight.model.half_size, self.times
        largest = max(self.limits.messages, self.limits.growth * size)
        if not self._left_to_try or not self._time_to_use(largest):
            return False
        self.at.restart(TUNING.beliefs / self._scale)
        yield from times.preparing(
            self._pass(TUNING.warm if len(self.tight.scopes) else 2 * TUNING.warm)
        )
        passed = times.prepared
        fresh = yield from times.preparing(self._chosen())
        if not len(fresh):
            return False
        if not self._time_to_use(messages_of(self.problem.model, fresh)):
            self._left_to_try = []
            return False
        yield from times.preparing(self._add(fresh))
        times.grew(times.prepared - passed, size, self.tight.model.half_size)
        return True

    def _time_to_use(self, messages: float) -> bool:
        """Whether there is time to add clusters with this many message entries, and to use them."""
        more = messages / self.tight.model.half_size
        return self.times.fits(messages, TUNING.warm + TUNING.used * (1.0 + more))

    def _add(self, fresh: Scopes) -> Generator[None, None, None]:
        """Switch to the model with further clusters; λ is carried over."""
        new = yield from building(self.problem.model, self.tight.scopes.joined(fresh))
        lam = carry(self.tight, self.at.lam, new, threads=self.problem.threads)
        yield
        self._enter(new, lam, TUNING.beliefs / self._scale)

    def _chosen(self) -> Generator[None, None, Scopes]:
        """Return cycles that raise the bound; once there are none, unions of clusters."""
        limits, tight = self.limits, self.tight
        if self._left_to_try == ["unions"]:
            self._left_to_try = ["cycles"]
            return unions(tight, limits, TUNING.unions * len(tight.scopes))
        found = self.at.propose()
        assert found.coupling is not None
        yield
        costs = belief_costs(tight, self.at.nodes(found), found.coupling, found.eta, limits.labels)
        yield
        least = min(TUNING.least * self._scale, TUNING.faint / found.eta)
        fresh = yield from select(tight, costs, limits, least, threads=self.problem.threads)
        if not len(fresh):
            self._left_to_try.remove("cycles")
        yield
        return fresh

    def _pass(self, count: int) -> Generator[None, None, None]:
        """Do `count` passes."""
        for _ in range(count):
            began = time.perf_counter()
            self.at.step()
            self.times.stepped(time.perf_counter() - began)
            self.work += 2 * self.tight.model.m
            yield

    def _enter(self, tight: Tightened, lam: Floats, eta: float) -> None:
        """Switch to another tightened model."""
        self.at = Clustered(tight, lam, eta, self.problem.threads)

    def _offer(self, bound: float, tight: Tightened, lam: Floats, beliefs: Beliefs | None) -> None:
        """Offer a bound of a tightened model; without clusters it is the plain LP bound."""
        self._proved = max(self._proved, bound)
        if len(tight.scopes):
            proof = Proof(ProofKind.TIGHTENED, tight.clusters, lam, beliefs=beliefs)
            self.best.offer_bound(bound, proof)

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
        self._decoding.note(better=best.energy < before)
        yield

"""The loop of tightening: add clusters, run annealed passes, decode labels, add more."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar

from softmap import core
from softmap.labels.improving import best_labelling
from softmap.methods.base import Proposal
from softmap.relaxation.bounds import dual_bound
from softmap.relaxation.dual import Floats, check_lam
from softmap.relaxation.gaps import cost_scale
from softmap.relaxation.polytope import ClusterBeliefs
from softmap.run.best import Best
from softmap.run.problem import Problem
from softmap.run.subsolver import Share
from softmap.subsolvers.clusters.cluster_evidence import ClusterEvidence
from softmap.subsolvers.clusters.cluster_labels import candidates
from softmap.subsolvers.clusters.cluster_numbers import ClusterSizes, TightenNumbers
from softmap.subsolvers.clusters.clustered import Clustered
from softmap.subsolvers.clusters.clusters import belief_costs, select, unions
from softmap.subsolvers.clusters.regions import Tightened, build, building, carry
from softmap.subsolvers.clusters.scopes import Scopes
from softmap.tuning import Tuning

__all__ = ["Tightening"]

T = TypeVar("T")


@dataclass
class _DecodingTimes:
    """When to decode labels: less and less often while that finds no better ones.

    Attributes
    ----------
    missed : int
        Number of times in a row that no better labels were found.
    wait : int
        Number of checks without labels to come.
    """

    missed: int = 0
    wait: int = 0

    def due(self) -> bool:
        """Whether labels are to be decoded at this check."""
        self.wait -= 1
        return self.wait < 0

    def note(self, *, better: bool) -> None:
        """Note whether better labels were found."""
        self.missed = self.wait = 0 if better else self.missed + 1


class Tightening:
    """The rounds of tightening: clusters are added, then passes are done over the model with them.

    Parameters
    ----------
    problem : Problem
        The problem.
    best : Best
        Initial λ and labels; bounds and labels are offered to it.
    tuning : Tuning
        The numbers of the run.
    limits : ClusterSizes, optional
        Limits on the size of clusters.
    end : Deadline, optional
        The end of the run. Set-up that does not end before raises `core.OutOfTime`.

    Attributes
    ----------
    at : Clustered
        The passes over the model with the clusters so far.
    work : int
        Number of half-edge messages so far.
    prepared : float
        Time of adding clusters, in seconds, until passes over them have reached the bound that was
        known before: this time cannot raise it. Not counted if the bound of another is ahead
        by more than the gap that it leaves.
    """

    def __init__(
        self,
        problem: Problem,
        best: Best,
        tuning: Tuning,
        limits: ClusterSizes | None = None,
        end: core.Deadline | None = None,
    ) -> None:
        self.problem, self.best, self.limits = problem, best, limits or tuning.of(ClusterSizes)
        self.tuning, self.work, self.prepared = tuning, 0, 0.0
        self._numbers = numbers = tuning.of(TightenNumbers)
        self._end, self._scale = end or core.Deadline(), cost_scale(problem.model)
        self._eta = numbers.eta / self._scale
        self._closing = 0.0  # time of a bound, in seconds: measured, or that of some passes
        self._unproved = 0  # passes since the last bound
        self._proved = best.lp_bound  # the best bound of this subsolver
        self._left_to_try = ["cycles", "unions"]
        self._decoding = _DecodingTimes()
        self._steps = self.rounds()
        self._enter(build(problem.model, []), best.lam, self._eta)

    @property
    def tight(self) -> Tightened:
        """The model with the clusters so far."""
        return self.at.tight

    @property
    def _gap(self) -> float:
        """The gap between the best energy and the best bound of this subsolver."""
        return max(0.0, self.best.energy - self._proved)

    def adopt(self, known: ClusterEvidence) -> None:
        """Start from clusters of an earlier run; λ and beliefs belong to the model with them."""
        tight = build(self.problem.model, list(known.clusters))
        assert known.lam is not None
        flat = check_lam(tight.model, known.lam)
        self._offer(dual_bound(tight.model, flat), tight, flat, known.beliefs)
        self._enter(tight, flat, self._eta)

    def run(self, share: Share, work: float, gap: float) -> bool:
        """Run until a slice ends, or an amount of work; return False if nothing more is expected.

        The steps and their order do not depend on the time: it only ends them. What passes have
        gained since the last bound is proved by one more before the run ends.
        """
        self._end = share.run_end
        while self.best.gaps().map > gap:
            try:
                if share.run_left <= self._closing:
                    if self._unproved:
                        self._prove()
                    return False
                if self.work >= work or share.over():
                    return True
                ended = next(self._steps, True)
            except core.OutOfTime:  # the run ends while clusters are added, or a bound is computed
                return False
            if ended:
                return False
        return False

    def rounds(self) -> Generator[None, None, None]:
        """Add clusters, do passes over them until these gain little, add more. Yields often."""
        if not len(self.tight.scopes) and not (yield from self.grow()):
            return
        while True:
            yield from self._preparing(self.check()) if self._behind else self.check()
            few = self._converged and self.at.settled and not (yield from self.grow())
            if few and self.at.idle >= self._numbers.stalled:
                return

    @property
    def _converged(self) -> bool:
        """Whether passes over the clusters so far can gain little more."""
        return self.at.smoothing < self._numbers.smoothing * self._gap

    @property
    def _behind(self) -> bool:
        """Whether passes over new clusters approach the best bound, but have not reached it."""
        return self.at.bound < self.best.bound and self.at.rising

    @property
    def _far_behind(self) -> bool:
        """Whether the bound of another is ahead by more than the gap that it leaves."""
        return self.best.bound - self._proved > self.best.energy - self.best.bound

    def check(self) -> Generator[None, None, None]:
        """Do some passes, then compute bound and labels, and raise η if due."""
        yield from self._pass(self._numbers.passes)
        found = self._prove()
        yield
        if self._decoding.due():
            yield from self._decode(self.at.nodes(found))

    def _prove(self) -> Proposal:
        """Offer the bound of the current messages, and let η rise.

        Raises `core.OutOfTime` if the run ends before.
        """
        began, before = time.perf_counter(), self._proved
        found = self.at.propose(self._end)
        bound = found.bound
        assert bound is not None
        if bound > self.best.bound:  # otherwise λ is not needed
            bound, lam, beliefs = self.at.proof(found, self._end)
            self._offer(bound, self.tight, lam, beliefs)
        self._proved = max(self._proved, bound)
        self.at.observe(bound, self._proved - before, self._gap)
        self._closing, self._unproved = time.perf_counter() - began, 0
        return found

    def grow(self) -> Generator[None, None, bool]:
        """Add clusters that raise the bound; return False if there are none."""
        if not self._left_to_try:
            return False
        numbers, first = self._numbers, not len(self.tight.scopes)
        self.at.restart(self._eta)
        warm = numbers.first_passes if first else numbers.later_passes
        yield from self._preparing(self._pass(warm))
        fresh = yield from self._preparing(self._chosen())
        if not len(fresh):
            return False
        yield from self._preparing(self._add(fresh))
        return True

    def _preparing(self, steps: Generator[None, None, T]) -> Generator[None, None, T]:
        """Add the time of the steps, without that between them, to `prepared`."""
        while True:
            began = time.perf_counter()
            try:
                next(steps)
            except StopIteration as end:
                found: T = end.value
                return found
            finally:
                self.prepared += 0.0 if self._far_behind else time.perf_counter() - began
            yield

    def _add(self, fresh: Scopes) -> Generator[None, None, None]:
        """Switch to the model with further clusters; λ is carried over."""
        new = yield from building(self.problem.model, self.tight.scopes.joined(fresh))
        lam = carry(self.tight, self.at.lam, new, threads=self.problem.threads)
        yield
        self._enter(new, lam, self._eta)

    def _chosen(self) -> Generator[None, None, Scopes]:
        """Return cycles that raise the bound; once there are none, unions of clusters."""
        limits, tight = self.limits, self.tight
        if self._left_to_try == ["unions"]:
            self._left_to_try = ["cycles"]
            return unions(tight, limits)
        found = self.at.propose(self._end)
        assert found.coupling is not None
        yield
        costs = belief_costs(tight, self.at.nodes(found), found.coupling, found.eta, limits.labels)
        yield
        least = self._numbers.gain * self._scale
        fresh = yield from select(
            tight, costs, limits, least, threads=self.problem.threads, deadline=self._end
        )
        if not len(fresh):
            self._left_to_try.remove("cycles")
        yield
        return fresh

    def _pass(self, count: int) -> Generator[None, None, None]:
        """Do `count` passes."""
        for _ in range(count):
            self._end.require()
            began = time.perf_counter()
            self.at.step()
            self._unproved += 1
            # until a bound is measured; on G22 the first one takes 4 to 7 passes
            self._closing = self._closing or 8.0 * (time.perf_counter() - began)
            self.work += 2 * self.tight.model.m
            yield

    def _enter(self, tight: Tightened, lam: Floats, eta: float) -> None:
        """Switch to another tightened model."""
        before = self.tight.model.half_size if self._closing else 0
        self.at = Clustered(tight, lam, eta, self.problem.threads, self.tuning, self._end)
        self._closing *= tight.model.half_size / before if before else 1.0

    def _offer(
        self, bound: float, tight: Tightened, lam: Floats, beliefs: ClusterBeliefs | None
    ) -> None:
        """Offer a bound of a tightened model; without clusters it is the plain LP bound."""
        self._proved = max(self._proved, bound)
        if len(tight.scopes):
            clusters = tight.clusters
            proof = ClusterEvidence(value=bound, clusters=clusters, lam=lam, beliefs=beliefs)
            self.best.offer_bound(proof)

    def _decode(self, nodes: Floats) -> Generator[None, None, None]:
        """Decode labels; less and less often while that finds no better ones."""
        best, before = self.best, self.best.energy
        found = candidates(self.tight, nodes)
        yield
        model, threads = self.problem.model, self.problem.threads
        best.offer_labels(*best_labelling(model, found, threads=threads))
        self._decoding.note(better=best.energy < before)
        yield

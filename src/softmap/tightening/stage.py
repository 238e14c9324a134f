"""The loop that tightens: add clusters, run annealed passes, decode labels, add more."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from softmap import core
from softmap import labels as decoding
from softmap.algorithms.sweeps.anneal import Anneal, AnnealState
from softmap.model import Model
from softmap.model.layout import layout
from softmap.model.potentials.base import Ints
from softmap.relaxation.bounds import dual_bound
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import Floats, check_lam, cost_scale, reduced_unary
from softmap.relaxation.point import Beliefs
from softmap.tightening.carry import carry
from softmap.tightening.clusters import belief_costs
from softmap.tightening.labels import candidates, load, polished
from softmap.tightening.order import arrange
from softmap.tightening.regions import Scope, Tightened, build
from softmap.tightening.selection import Limits, select, unions

__all__ = ["Row", "Stage", "Tightening", "run"]

FIRST_ETA = 30.0  # over the scale of the costs
AGAIN = 4.0  # η is divided by this when clusters are added
GROWTH = 2.0
BELIEFS = 200.0  # least η of the beliefs that clusters are chosen by, over the scale of the costs
WARM = 20  # passes at that η
LEAST = 1e-4  # gain of a cycle that counts, in scales of the costs
FAINT = 0.05  # or in units of the temperature 1/η, if that is less
SETTLED = (
    0.1  # η grows when the smoothed dual gains less than this part of its distance to the bound
)
COARSE = 4.0  # no waiting while smoothing costs the bound so many MAP gaps
PASSES = 10  # between checks
DONE = 0.1  # clusters are added when smoothing costs the bound less than this part of the MAP gap
STALL = 8  # checks without progress after which nothing more is expected
LAST = 100  # and in any case, as where the gap is down to rounding
AFTER = 6.0  # passes that a bound and labels take
CHOOSING = 100.0  # passes that finding and pricing cycles takes
USED = 100.0  # passes for which there should be time after clusters were added
BUILDING = 2e-6
UNIONS = 4  # unions of two clusters per cluster up to which they are tried, all at once
FORESTS = 4  # for new labels; and per pass, to anneal the best ones
HEAT = 3.0  # see `judge.HEAT`
BATCH = 200  # cycles in a batch at least
SHARE = 0.5  # and per cluster there is
FIRST = 10_000  # cycles in the first batch


@dataclass(frozen=True)
class Row:
    """One check: best bound and energy so far, and where the run stood."""

    work: int
    seconds: float
    eta: float
    bound: float
    smoothed: float
    energy: float
    clusters: int


@dataclass(frozen=True, eq=False)
class Tightening:
    """What a stage found; `dual_bound(tightened.model, lam)` proves `bound` for the base."""

    bound: float
    labels: Ints
    energy: float
    tightened: Tightened
    lam: Floats
    trace: tuple[Row, ...]
    status: str

    def reduced_costs(self) -> Floats:
        """By how much at least the bound rises when a variable takes a label, flat by node state.

        For nodes of the base. A label for which `bound` plus this exceeds the energy of a known
        labelling is in no better one.
        """
        model, base = self.tightened.model, self.tightened.base
        reduced = reduced_unary(model, self.lam)[: base.unary.size]
        least = np.minimum.reduceat(reduced, base.node_offset[:-1])
        return np.asarray(reduced - np.repeat(least, base.num_labels))


def run(model: Model, lam: ArrayLike, labels: ArrayLike, **options: float | None) -> Tightening:
    """Tighten a model until its MAP gap is closed, a limit is reached, or nothing is gained.

    Parameters
    ----------
    model : Model
    lam : flat half-edge array
        From which to start: that of the LP run.
    labels : the best labelling known
    seconds, max_work : optional limits
    gap : relative MAP gap at which to stop, 1e-6
    """
    names = ("seconds", "max_work", "gap")
    limits = {name: options.pop(name, None) for name in names}
    stage = Stage(model, lam, labels, **options)  # type: ignore[arg-type]
    return stage.exhaust(
        seconds=limits["seconds"], max_work=limits["max_work"], gap=limits["gap"] or 1e-6
    )


class Stage:
    """The state of a tightening run: the tightened model, passes over it, and the best so far."""

    def __init__(
        self, model: Model, lam: ArrayLike, labels: ArrayLike, *, threads: int = 1,
        limits: Limits | None = None,
    ) -> None:  # fmt: skip
        self.began = time.perf_counter()
        self.base, self.threads = tighten(model), threads
        self.limits = limits or Limits()
        self.scale = cost_scale(self.base)
        self.best = _Best(self.base, np.asarray(labels, dtype=np.int64))
        self.work, self.exhausted, self.united = 0, False, False
        self.end = math.inf  # moment of `time.perf_counter` at which everything stops
        self.pace = 0.0  # seconds of a pass, of late
        self.building = BUILDING  # seconds per state to build a tightened model, at first a guess
        self.trace: list[Row] = []
        self.tight = build(self.base, [])
        flat = check_lam(self.base, lam)
        self.best.prove(dual_bound(self.base, lam), self.tight, flat, None)
        self._enter(self.tight, flat, FIRST_ETA / self.scale)

    def adopt(
        self, clusters: Iterable[tuple[int, ...]], lam: ArrayLike, beliefs: Beliefs | None
    ) -> None:
        """Begin with clusters of an earlier run; λ and beliefs are of the model with them."""
        tight = build(self.base, list(clusters))
        flat = check_lam(tight.model, lam)
        self.best.prove(dual_bound(tight.model, flat), tight, flat, beliefs)
        self._enter(tight, flat, BELIEFS / self.scale)

    def exhaust(self, *, seconds: float | None, max_work: float | None, gap: float) -> Tightening:
        """Go on until something stops the run."""
        status = "closed" if self.closed(gap) else "" if self.grow() else "no cluster helps"
        while not status:
            self.check()
            if self.closed(gap):
                status = "closed"
            elif seconds is not None and time.perf_counter() - self.began >= seconds:
                status = "time limit"
            elif max_work is not None and self.work >= max_work:
                status = "work limit"
            elif self.spent():
                status = "no cluster helps"
        best = self.best
        return Tightening(
            best.bound, best.labels, best.energy, best.tight, best.lam, tuple(self.trace), status
        )

    def go_on(self, *, turn: float, end: float, work: float, gap: float) -> bool:
        """Go on for a turn: until a moment (of `time.perf_counter`) or an amount of work.

        At the moment `end` everything stops, be it in the middle. Returns False when nothing more
        is expected.
        """
        self.end = end
        if not self.tight.clusters and not self.closed(gap) and not self.grow():
            return self.late
        while not self.closed(gap):
            if self.work >= work or time.perf_counter() >= turn or self.late:
                return True
            self.check()
            if not self.late and self.spent():
                return False
        return False

    @property
    def late(self) -> bool:
        """Whether one more pass would end too late, with what is to follow it."""
        return time.perf_counter() + AFTER * self.pace >= self.end

    def closed(self, gap: float) -> bool:
        """Whether the MAP gap is small enough."""
        return self.best.gap <= gap * max(abs(self.best.bound), 1e-300)

    def check(self) -> None:
        """Some passes, then: bound, labels, η."""
        self._pass(PASSES)
        proposal = self.algorithm.propose(self.state)
        bound = core.dual_bound(self._layout, proposal.lam, self._constant, self.threads)
        before = self.best.bound
        assert proposal.coupling is not None
        beliefs = Beliefs(proposal.nodes[0][self.states], proposal.coupling, proposal.eta)
        self.best.prove(bound, self.tight, proposal.lam, beliefs)
        self._decode(beliefs.nodes)
        self._heed(bound, before)
        self.trace.append(self._row())

    def ripe(self) -> bool:
        """Whether more passes could close only a small part of the gap."""
        smoothing = self.bound - self.state.smoothed
        return smoothing < DONE * self.best.gap and self.settled

    def spent(self) -> bool:
        """Whether nothing more is expected: passes gain little, and there are no more clusters."""
        if self.ripe() and not self.grow():
            return self.idle >= STALL
        return self.idle >= LAST

    def grow(self) -> bool:
        """Add clusters that raise the bound; False where there are none."""
        if self.exhausted:
            return False
        have = len(self.tight.clusters)
        lower = self.state.eta / AGAIN if have else 0.0
        self.state.eta = max(lower, BELIEFS / self.scale)
        load()
        if not self._pass(WARM if have else 2 * WARM) or not self._time_to_choose():
            return False
        proposal = self.algorithm.propose(self.state)
        nodes, eta = proposal.nodes[0][self.states], self.state.eta
        assert proposal.coupling is not None
        costs = belief_costs(self.tight, nodes, proposal.coupling, eta, self.limits.labels)
        batch = max(BATCH, int(SHARE * have)) if have else FIRST
        least = min(LEAST * self.scale, FAINT / eta)
        fresh = select(
            self.tight, costs, self._limits(), least, batch, deadline=self._half(),
            threads=self.threads,
        )  # fmt: skip
        if self.late:
            return False
        if not fresh and not self.united:
            fresh = unions(self.tight, self._limits(), UNIONS * have)
            self.united = True
        if not fresh or not self._time_to_build(fresh):
            self.exhausted = True
            return False
        began = time.perf_counter()
        new = build(self.base, [*self.tight.clusters, *fresh])
        lam = carry(self.tight, self.algorithm.restart_point(self.state), new)
        self.pace *= new.model.unary.size / self.tight.model.unary.size  # until a pass is timed
        self._enter(new, lam, eta if have else FIRST_ETA / self.scale)
        self.building = (time.perf_counter() - began) / new.model.unary.size
        return True

    def _time_to_choose(self) -> bool:
        """Whether clusters could be chosen before the end; if not, that is too late."""
        if time.perf_counter() + CHOOSING * self.pace < self.end:
            return True
        self.exhausted = True
        return False

    def _time_to_build(self, fresh: tuple[Scope, ...]) -> bool:
        """Whether a model with these clusters, too, could be built in half of the time left."""
        labels = self.base.num_labels
        states = sum(int(labels[list(scope)].prod()) for scope in fresh)
        size = self.tight.model.unary.size + 2 * states
        return time.perf_counter() + self.building * size < self._half()

    def _pass(self, count: int) -> bool:
        """Passes, as many as there is time for; whether those were all."""
        for _ in range(count):
            if self.late:
                return False
            began = time.perf_counter()
            self.algorithm.step(self.state, 1)
            self.pace = max(0.8 * self.pace, time.perf_counter() - began)
            self.work += 2 * self.tight.model.m
        return True

    def _half(self) -> float:
        """The moment at which half of the time left has gone."""
        now = time.perf_counter()
        return now + 0.5 * (self.end - now)

    def _limits(self) -> Limits:
        """The limits, with no more states than there is time to use."""
        if math.isinf(self.end) or not self.pace:
            return self.limits
        passes = (self.end - time.perf_counter()) / self.pace
        sized = int(self.tight.model.unary.size * passes / USED)
        return replace(self.limits, states=min(self.limits.states, sized))

    def _enter(self, tight: Tightened, lam: Floats, eta: float) -> None:
        """Go on with another tightened model."""
        self.tight = tight
        model, self.states = arrange(tight)
        model = tighten(model)
        self.algorithm = Anneal(threads=self.threads, eta=eta)
        self.state: AnnealState = self.algorithm.init(model, lam, 0)
        self.algorithm.averaging = False
        self.algorithm.engine.keeps_coupling = True  # clusters are looked for by edge marginals
        self._layout, self._constant = layout(model), model.constant
        self.bound, self.previous = -math.inf, -math.inf
        self.settled, self.idle = False, 0

    def _heed(self, bound: float, before: float) -> None:
        """Raise η once the smoothed dual has settled."""
        self.bound = max(self.bound, bound)
        smoothed = self.state.smoothed
        self.settled = smoothed - self.previous <= SETTLED * (bound - smoothed)
        gained = self.best.bound - before > 1e-3 * self.best.gap
        self.idle = 0 if gained else self.idle + 1
        self.previous = smoothed
        if bound - smoothed > COARSE * self.best.gap:
            self.state.eta *= GROWTH**2
        elif self.settled:
            self.state.eta *= GROWTH

    def _decode(self, nodes: Floats) -> None:
        seed = self.work
        found = polished(self.base, candidates(self.tight, nodes), FORESTS, seed)
        self.best.keep(*found)
        if 0.0 < self.best.gap < math.inf:
            heat = HEAT * math.sqrt(self.scale * self.best.gap / self.base.num_variables)
            rounds = FORESTS * PASSES
            other = decoding.forests(self.base, self.best.labels, rounds, heat, seed + 1)
            self.best.keep(other, float(self.base.energy(other)))

    def _row(self) -> Row:
        return Row(
            self.work, time.perf_counter() - self.began, self.state.eta, self.best.bound,
            self.state.smoothed, self.best.energy, len(self.tight.clusters),
        )  # fmt: skip


@dataclass
class _Best:
    """The best bound with its proof, and the best labelling."""

    base: Model
    labels: Ints
    bound: float = -math.inf
    tight: Tightened = field(init=False)
    lam: Floats = field(init=False)
    beliefs: Beliefs | None = None
    energy: float = field(init=False)

    def __post_init__(self) -> None:
        self.energy = float(self.base.energy(self.labels))

    @property
    def gap(self) -> float:
        return max(0.0, self.energy - self.bound)

    def prove(self, bound: float, tight: Tightened, lam: Floats, beliefs: Beliefs | None) -> None:
        if bound > self.bound:
            self.bound, self.tight, self.lam, self.beliefs = bound, tight, lam, beliefs

    def keep(self, labels: Ints, energy: float) -> None:
        if energy < self.energy:
            self.labels, self.energy = labels, energy

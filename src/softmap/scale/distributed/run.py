"""A distributed run: annealed passes and checks until a limit.

`softmap.methods.policy` decides when to raise η, when to check and what a check computes. Every
decision depends on numbers that are equal in all processes.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.methods.policy import Annealing, Ask, Checks, Cooling, Schedule
from softmap.methods.sweeps.chains import polish
from softmap.methods.sweeps.messages import AVERAGING
from softmap.relaxation.gaps import gap_unit, relative_gap, stated_primal
from softmap.scale.distributed.judge import Judgement, bound_of, judge, survey, tightened
from softmap.scale.distributed.labels import LabelsByParts
from softmap.scale.distributed.parts import Part, Whole
from softmap.scale.distributed.passes import Passes
from softmap.scale.distributed.team import Team
from softmap.solving.best import RelativeGaps, Tolerances
from softmap.solving.trace import Row, Status, Trace


@dataclass(frozen=True)
class PartsLimits:
    """Limits of a run: relative gaps, seconds, passes."""

    lp_gap: float = 1e-4
    gap: float = 1e-6
    time_limit: float | None = None
    max_passes: int | None = None


@dataclass
class PartsProgress:
    """The state of a run except its arrays; equal in all processes.

    Attributes
    ----------
    cooling, schedule
        The state of the policy.
    passes, samples : int
        Number of passes, and of samples in the average of marginals.
    bound, primal : float
        The best bound and the lowest cost of a point so far.
    seconds : float
        Time up to the last check, in seconds.
    trace : Trace
        One row per check.
    """

    cooling: Cooling
    schedule: Schedule = field(default_factory=Schedule)
    passes: int = 0
    samples: int = 0
    bound: float = -math.inf
    primal: float = math.inf
    seconds: float = 0.0
    trace: Trace = field(default_factory=Trace)


class PartsRun:
    """The parts of this process, their messages, and the best bound, point and labels.

    Attributes
    ----------
    lam : dict from int to float64 array
        λ that proves the bound, by part, valid at own nodes and own edges.
    """

    annealing = Annealing()
    checks = Checks()

    def __init__(
        self, team: Team, whole: Whole, parts: list[Part], eta: float | None, threads: int
    ) -> None:
        self.team, self.whole = team, whole
        tight = tightened(team, parts)
        self.survey = survey(team, tight)
        self.passes = Passes(team, whole, tight, threads)
        self.labels = LabelsByParts(self.passes)
        cooling = Cooling(eta=eta or self.annealing.first_eta(self.survey.scale))
        self.progress = PartsProgress(cooling)
        self.progress.schedule.next_check = self.checks.passes_to_next(0, math.inf)
        self.lam = {
            number: np.zeros(int(chains.part.model.half_offset[-1]))
            for number, chains in self.passes.chains.items()
        }
        self.start_clock()

    def start_clock(self) -> None:
        """Start the clock at the time of the stored run."""
        self._began = time.perf_counter() - self.progress.seconds

    @property
    def seconds(self) -> float:
        """Seconds since the run began, on this process; only process 0 decides by it."""
        return time.perf_counter() - self._began

    # --- passes ---

    def advance(self, limits: PartsLimits) -> Status | None:
        """Do the passes up to the next check, or to a limit; return the status of the limit."""
        state = self.progress
        target = state.schedule.next_check
        if limits.max_passes is not None:
            target = min(target, limits.max_passes)
        while state.passes < target:
            count = min(target - state.passes, AVERAGING.every - state.passes % AVERAGING.every)
            self.passes.run(count, state.cooling.eta)
            state.passes += count
            if state.passes % AVERAGING.every == 0:
                self._sample()
            if self._late(limits):
                return Status.TIME_LIMIT
        done = limits.max_passes is not None and state.passes >= limits.max_passes
        return Status.WORK_LIMIT if done else None

    def _late(self, limits: PartsLimits) -> bool:
        """Whether the time limit is reached, by the clock of process 0."""
        if limits.time_limit is None:
            return False
        return bool(self.team.together(self.seconds >= limits.time_limit))

    def _sample(self) -> None:
        state, eta = self.progress, self.progress.cooling.eta
        self.passes.shorten_memory(self.annealing.longest_momentum(eta, self.survey.scale))
        if self.survey.averaging:
            state.samples += 1
            weight = (AVERAGING.recent + 1.0) / (state.samples + AVERAGING.recent)
            for chains in self.passes.chains.values():
                chains.sample(eta, weight)

    # --- checks ---

    def check(self, limits: PartsLimits, *, last: bool) -> Status | None:
        """Check the messages; search for labels and raise η if due; return a status or None."""
        state, eta = self.progress, self.progress.cooling.eta
        self.passes.settle()
        ask = self._ask(limits, last)
        averaged = state.samples > 1
        found = judge(self.passes, eta, ask, averaged, polish(state.passes))
        if found.bound > state.bound:
            state.bound, self.lam = found.bound, found.lam
        state.primal = min(state.primal, *found.primals, self.labels.energy)
        if ask is Ask.BOUND:
            self._read_labels(found, limits)
        else:
            self._find_labels(found, limits, last)
        closed = self._closed(limits)
        self._note(found, eta)
        if ask is not Ask.BOUND:
            state.cooling.smoothed = found.smoothed
            entropy = found.edge_entropy - found.node_entropy
            state.cooling.observe(
                self.annealing, bound=found.bound, primals=found.primals, entropy=entropy,
                averaged=averaged,
            )  # fmt: skip
        ratio = self._lp_ratio(limits)
        state.schedule.next_check = state.passes + self.checks.passes_to_next(state.passes, ratio)
        return closed or self._stalled()

    def _lp_ratio(self, limits: PartsLimits) -> float:
        """The LP gap divided by its tolerance."""
        return self.gaps()[0] / max(limits.lp_gap, 1e-12)

    def _ask(self, limits: PartsLimits, last: bool) -> Ask:
        state = self.progress
        if state.passes <= self.checks.hasty and not last:
            return Ask.BOUND  # labels give a primal value in less time than a point
        tight = self.labels.energy <= state.primal < math.inf
        return state.schedule.ask(
            self.checks, state.passes, lp_ratio=self._lp_ratio(limits), tight=tight, last=last
        )

    def _read_labels(self, found: Judgement, limits: PartsLimits) -> None:
        """Round the marginals; decode labels from λ unless rounding closes the gap."""
        self.labels.round(found.nodes)
        self._offer_labels()
        if not self._closed(limits):
            self.labels.read_off(found.lam, found.nodes)
            self._offer_labels()

    def _find_labels(self, found: Judgement, limits: PartsLimits, last: bool) -> None:
        """Search for labels if due.

        A search is due at growing intervals while labels may be the best point, at the end of the
        run, and until labels satisfy the hard constraints.
        """
        state, energy = self.progress, self.labels.energy
        gap = state.primal - state.bound
        schedule = state.schedule
        rivals = not energy - state.bound > self.checks.rivals * gap
        wanted = rivals or not schedule.decoded_at
        due = schedule.labels_due(state.passes, factor=4, wanted=wanted, last=last)
        if due or not math.isfinite(energy):
            self._search(found)
        if not due and self._closed(limits) and self.gaps()[1] > limits.lp_gap:
            self._search(found)

    def _search(self, found: Judgement) -> None:
        self.labels.search(found.lam, found.nodes, self.progress.passes)
        self._offer_labels()

    def _offer_labels(self) -> None:
        self.progress.primal = min(self.progress.primal, self.labels.energy)

    def _note(self, found: Judgement, eta: float) -> None:
        state = self.progress
        state.seconds = self.team.together(self.seconds)
        work = 2 * self.whole.edges * state.passes
        row = Row(
            work, float(state.passes), state.seconds, eta, state.bound, found.smoothed,
            self.primal, self.labels.energy, found.slack,
        )  # fmt: skip
        state.trace.rows.append(row)

    # --- gaps ---

    @property
    def primal(self) -> float:
        """The cost of the best point."""
        state = self.progress
        return stated_primal(state.primal, state.bound, self.labels.energy)

    def gaps(self) -> RelativeGaps:
        """Relative LP gap and relative MAP gap."""
        state = self.progress
        unit = gap_unit(state.bound, self.whole.constant, self.survey.step)
        return RelativeGaps(
            relative_gap(state.primal - state.bound, unit),
            relative_gap(self.labels.energy - state.bound, unit),
        )

    def ended(self, limits: PartsLimits) -> Status | None:
        """Return the status if a resumed run has nothing left to do, else None."""
        return (self._closed(limits) or self._stalled()) if len(self.progress.trace) else None

    def _closed(self, limits: PartsLimits) -> Status | None:
        return Tolerances(limits.lp_gap, limits.gap).met(self.gaps())

    def _stalled(self) -> Status | None:
        state = self.progress
        stalled = state.schedule.stalled(self.checks, state.passes, *self.gaps())
        return Status.STALLED if stalled else None

    # --- checkpoints ---

    def arrays(self, number: int) -> dict[str, NDArray[Any]]:
        """The arrays of a part that a checkpoint stores, by name."""
        stored = self.passes.chains[number].stored()
        return stored | {"lam": self.lam[number], "labels": self.labels.labels[number]}

    def put(self, number: int, arrays: dict[str, NDArray[Any]]) -> None:
        """Copy stored arrays of the same shapes back."""
        for name, place in self.arrays(number).items():
            place[...] = arrays[name]

    def go_on(self, progress: PartsProgress, clock: NDArray[np.float64]) -> None:
        """Resume a stored run after its arrays were restored; collective call of all processes.

        The bound and the energy are recomputed from λ and the labels.
        """
        self.progress, self.passes.clock = progress, clock
        progress.bound = bound_of(self.passes, self.lam)
        self.labels.price_again()
        self.start_clock()

    def release_lam(self, number: int) -> NDArray[np.float64]:
        """Remove λ of a part from the run, and return it."""
        return self.lam.pop(number)

"""A distributed run: annealed passes and checks until a limit.

`softmap.methods.policy` decides when to raise η, when to check and what a check computes. Every
decision depends on numbers that are equal in all processes. A bound is a sum of terms rounded down,
and the sum is rounded down as well. It does not depend on which process owns which part. No process
reads messages of other parts beyond its halo.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.arguments import count
from softmap.errors import InfeasibleModel, ModelError
from softmap.methods.policy import (
    AnnealingRule,
    Ask,
    Checks,
    CheckTimes,
    Cooling,
    longest_momentum,
    passes_to_next,
)
from softmap.methods.sweeps.anneal import AnnealNumbers, easily_coupled
from softmap.methods.sweeps.chains import ChainNumbers, polish
from softmap.methods.sweeps.loops import SAMPLED
from softmap.model.layout import layout
from softmap.parts.cut import ModelPart, Whole
from softmap.parts.labels import Arrays, LabelsByParts
from softmap.parts.passes import PartsPasses
from softmap.parts.team import Boundary, Team
from softmap.relaxation.gaps import cost_steps, gap_unit
from softmap.run.interrupts import Interrupts
from softmap.run.memory import MemoryEstimate, memory_needed
from softmap.run.trace import RELAXATION, Row, Status, Trace
from softmap.run.values import BestValues, Tolerances
from softmap.tuning import TUNING

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Survey:
    """Statistics of the costs of the whole model.

    Attributes
    ----------
    scale : float
        Mean range of costs within one table; see `softmap.relaxation.dual.cost_scale`.
    step : float
        A typical difference between costs; see `softmap.relaxation.gaps.cost_step`.
    averaging : bool
        Whether averaged marginals are evaluated.
    """

    scale: float
    step: float
    averaging: bool


def survey(team: Team, parts: list[ModelPart]) -> Survey:
    """Compute the statistics of the costs of all parts."""
    table = team.table([_row(part) for part in parts], 7)
    widths, count, largest = table[:, 0].sum(), table[:, 1].sum(), table[:, 2].max()
    inverse, steps = table[:, 3].sum(), table[:, 4].sum()
    scale = float(widths / count) if count else float(largest) or 1.0
    # only `softmap.solve` rescales costs of extreme magnitude
    if not 2.0**-40 < scale < 2.0**40 or largest > 2.0**600:
        raise ModelError(
            f"costs of a typical range of {scale:.3g} and up to {largest:.3g}: multiply all costs "
            "by a number that brings them near 1 before the model is cut into parts"
        )
    easy = bool((table[:, 5] <= table[:, 6]).all() and (table[:, 6] > 0).any())
    return Survey(scale, float(steps / inverse) if inverse else 0.0, easy)


def _row(part: ModelPart) -> list[float]:
    """Ranges and steps of the tables of own nodes and edges, and whether edges are easy."""
    model = part.model
    mine = np.concatenate([np.arange(model.n) < part.own, part.counted])
    (low, high), step = model.extremes(), cost_steps(model)[mine]
    width, size = (high - low)[mine], np.maximum(np.abs(low), np.abs(high))[mine]
    width, step = width[width > 0], step[(step > 0) & np.isfinite(step)]
    edges = float(model.m > 0)
    return [
        float(width.sum()), float(len(width)), float(size.max()),
        float((1 / step).sum()), float(len(step)), edges, edges * easily_coupled(model),
    ]  # fmt: skip


def tightened(team: Team, parts: list[ModelPart]) -> list[ModelPart]:
    """Return the parts with cost +inf on every state that arc consistency removes.

    Every part removes states of its own nodes and exchanges its halo, until no part changes.
    """
    if not team.table([[part.model.has_forbidden] for part in parts], 1).any():
        return parts
    boundary = Boundary(team, parts)
    allowed = {part.number: np.isfinite(part.model.unary) for part in parts}
    changed = True
    while changed:
        rows = []
        for part in parts:
            kept = np.logical_or.reduceat(allowed[part.number], part.model.node_offset[:-1])
            empty = int(np.argmin(kept))
            if kept[empty]:
                empty = core.arc_consistency(layout(part.model), allowed[part.number], 1)
            rows.append([int(part.nodes[empty]) if empty >= 0 else -1])
        if (stuck := int(team.table(rows, 1).max())) >= 0:
            raise InfeasibleModel(
                "no labelling has finite cost: hard constraints leave variable "
                f"{stuck} without a state; look at the +inf costs around it",
                stuck,
            )
        masks = {number: mask.astype(np.float64) for number, mask in allowed.items()}
        boundary.states(masks)
        news = [[bool((allowed[n] & (mask == 0)).any())] for n, mask in masks.items()]
        for number, mask in masks.items():
            allowed[number] &= mask > 0
        changed = bool(team.table(news, 1).any())
    return [
        replace(p, model=p.model.replace(unary=np.where(allowed[p.number], p.model.unary, np.inf)))
        for p in parts
    ]


@dataclass(frozen=True, eq=False)
class Judgement:
    """The values that a check computes from the messages, for the whole model.

    Attributes
    ----------
    bound : float
        The lower bound that `lam` proves.
    smoothed : float
        The value of the regularised dual.
    primals : list of float
        Cost of the point over the current node marginals, and over their average if there is one;
        empty if no point was requested.
    edge_entropy, node_entropy, slack : float
        Values at the current marginals; see `softmap.methods.base.Assessment`.
    lam : dict from int to float64 array
        λ by part, valid at own nodes and own edges.
    nodes : dict from int to float64 array
        Node marginals by part.
    """

    bound: float
    primals: tuple[float, ...]
    edge_entropy: float
    slack: float
    smoothed: float
    node_entropy: float
    lam: Arrays
    nodes: Arrays


def judge(passes: PartsPasses, eta: float, ask: Ask, averaged: bool, hard: int) -> Judgement:
    """Check the bound, and the point if requested; collective call of all processes.

    Parameters
    ----------
    passes : PartsPasses
        The messages of this process's parts.
    eta : float
        The inverse temperature η.
    ask : Ask
        What to compute.
    averaged : bool
        Whether there is an average of marginals; a full check evaluates its cost.
    hard : int
        Number of hard passes before the bound in a full check.
    """
    averaged = averaged and ask is Ask.EVERYTHING
    if ask is Ask.BOUND:
        rows = {number: [np.nan] * 6 for number in passes.chains}
        nodes = {number: each.nodes(eta) for number, each in passes.chains.items()}
    else:
        rows, nodes = _points(passes, eta, averaged)
    lam, messages = {}, passes.hard(hard if ask is Ask.EVERYTHING else 0)
    for number, chains in passes.chains.items():
        lam[number] = chains.lam(messages.pop(number))
        rows[number].append(chains.bound(lam[number]))
    priced = (ask > Ask.BOUND) + averaged
    return _summed(passes, rows, lam, nodes, priced)


def _points(
    passes: PartsPasses, eta: float, averaged: bool
) -> tuple[dict[int, list[float]], Arrays]:
    """Cost terms of the points, by part, and node marginals."""
    shares = {number: each.shares(each.msg) for number, each in passes.chains.items()}
    passes.boundary.states(shares)
    means: Arrays = {}
    if averaged:
        for number, chains in passes.chains.items():
            means[number] = np.zeros(chains.part.model.unary.size)
            means[number][: chains.part.own_states] = chains.mean
        passes.boundary.states(means)
    rows, nodes = {}, {}
    for number, chains in passes.chains.items():
        share = shares.pop(number)
        nodes[number], entropy, minima = chains.loops.soft(share, eta)
        coupling = chains.loops.couplings(chains.msg, share)
        del share
        row = chains.point_terms(coupling, eta, nodes[number])
        row.append(chains.point_terms(coupling, eta, means.pop(number))[0] if averaged else np.nan)
        rows[number] = [*row, chains.smoothed(minima), chains.node_entropy(entropy)]
    return rows, nodes


def _summed(
    passes: PartsPasses, rows: dict[int, list[float]], lam: Arrays, nodes: Arrays, priced: int
) -> Judgement:
    constant = passes.whole.constant
    table = passes.team.table(list(rows.values()), 7)

    def total(column: int, extra: float = 0.0) -> float:
        return float(core.careful_sum(np.append(table[:, column], extra)))

    return Judgement(
        bound=float(core.lower_sum(np.append(table[:, 6], constant))),
        primals=tuple(total(column, constant) for column in (0, 3)[:priced]),
        edge_entropy=total(1),
        slack=total(2),
        smoothed=total(4, constant),
        node_entropy=total(5),
        lam=lam,
        nodes=nodes,
    )


def bound_of(passes: PartsPasses, lam: Arrays) -> float:
    """The lower bound that λ proves; collective call of all processes."""
    rows = [[chains.bound(lam[number])] for number, chains in passes.chains.items()]
    terms = np.append(passes.team.table(rows, 1)[:, 0], passes.whole.constant)
    return float(core.lower_sum(terms))


@dataclass(frozen=True)
class PartsLimits:
    """Limits of a run: relative gaps, seconds, passes."""

    tolerances: Tolerances
    time_limit: float = math.inf
    max_passes: float = math.inf


@dataclass
class PartsProgress:
    """The state of a run except its arrays; equal in all processes.

    Attributes
    ----------
    cooling, schedule
        The state of the policy.
    passes, samples : int
        Number of passes, and of samples in the average of marginals.
    seconds : float
        Time up to the last check, in seconds.
    trace : Trace
        One row per check.
    """

    cooling: Cooling
    schedule: CheckTimes = field(default_factory=CheckTimes)
    passes: int = 0
    samples: int = 0
    seconds: float = 0.0
    trace: Trace = field(default_factory=Trace)

    def facts(self) -> dict[str, Any]:
        """Return the state as numbers and lists, for a checkpoint."""
        return {
            "progress": _numbers(PartsProgress, vars(self)),
            "cooling": asdict(self.cooling),
            "schedule": asdict(self.schedule),
            "trace": self.trace.array().tolist(),
        }

    @staticmethod
    def of_facts(facts: dict[str, Any]) -> PartsProgress:
        """Return the state of the facts of `facts`."""
        return PartsProgress(
            cooling=Cooling(**_numbers(Cooling, facts["cooling"])),
            schedule=CheckTimes(**_numbers(CheckTimes, facts["schedule"])),
            trace=Trace.from_array(np.array(facts["trace"], dtype=np.float64), (RELAXATION,)),
            **_numbers(PartsProgress, facts["progress"]),
        )


def _numbers(kind: Any, facts: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the fields of a dataclass that are numbers, as numbers of its types."""
    return {
        f.name: count(f.name, facts[f.name]) if f.type == "int" else float(facts[f.name])
        for f in fields(kind)
        if f.type in ("int", "float")
    }


def memory_of_run(parts: list[ModelPart]) -> int:
    """Return the estimated memory of a process that owns the parts, in bytes."""
    return TUNING.of(MemoryEstimate).small + sum(memory_needed(part.model) for part in parts)


class PartsRun:
    """The parts of this process, their messages, and the best bound, point and labels.

    Attributes
    ----------
    best : BestValues
        The best values of the whole model. λ and labels are arrays by part; λ is valid at own nodes
        and own edges, labels are those of own nodes and of the halo.
    interrupts : Interrupts
        The signals to this process; one to any process ends the run of all.
    """

    annealing = TUNING.of(AnnealingRule)
    checks = TUNING.of(Checks)
    chains = TUNING.of(ChainNumbers)
    recent = TUNING.of(AnnealNumbers).recent

    def __init__(
        self, team: Team, whole: Whole, parts: list[ModelPart], eta: float | None, threads: int
    ) -> None:
        self.team, self.whole = team, whole
        tight = tightened(team, parts)
        self.survey = survey(team, tight)
        self.passes = PartsPasses(team, whole, tight, threads)
        models = {number: chains.part.model for number, chains in self.passes.chains.items()}
        self.best = BestValues(
            lambda bound: gap_unit(bound, whole.constant, self.survey.step),
            {number: np.zeros(model.half_size) for number, model in models.items()},
            {number: np.zeros(model.n, dtype=np.int64) for number, model in models.items()},
        )
        self.labels = LabelsByParts(self.passes, self.best)
        self.interrupts = Interrupts()
        cooling = Cooling(eta=eta or self.annealing.first / self.survey.scale)
        self.progress = PartsProgress(cooling)
        self.progress.schedule.next_check = passes_to_next(self.checks, 0, math.inf)
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
        target = int(min(state.schedule.next_check, limits.max_passes))
        while state.passes < target:
            count = min(target - state.passes, SAMPLED - state.passes % SAMPLED)
            self.passes.run(count, state.cooling.eta)
            state.passes += count
            if state.passes % SAMPLED == 0:
                self._sample()
            own = self.seconds >= limits.time_limit, self.interrupts.noted
            late, signalled = zip(*self.team.comm.allgather(own), strict=True)
            if any(signalled):
                return Status.INTERRUPTED
            if late[0]:  # by the clock of process 0
                return Status.TIME_LIMIT
        return Status.WORK_LIMIT if state.passes >= limits.max_passes else None

    def _sample(self) -> None:
        state, eta = self.progress, self.progress.cooling.eta
        self.passes.shorten_memory(longest_momentum(self.annealing, eta, self.survey.scale))
        if self.survey.averaging:
            state.samples += 1
            weight = (self.recent + 1.0) / (state.samples + self.recent)
            for chains in self.passes.chains.values():
                chains.sample(eta, weight)

    # --- checks ---

    def check(self, limits: PartsLimits, *, last: bool) -> Status | None:
        """Check the messages; search for labels and raise η if due; return a status or None."""
        state, best, eta = self.progress, self.best, self.progress.cooling.eta
        self.passes.wait_for_product()
        ask = self._ask(limits, last)
        averaged = state.samples > 1
        hard = polish(state.passes, self.chains)
        found = judge(self.passes, eta, ask, averaged, hard)
        best.offer_lp_bound(found.bound, found.lam)
        for cost in found.primals:
            best.offer_point(cost, None)
        if ask is Ask.BOUND:
            self._read_labels(found, limits)
        else:
            self._find_labels(found, limits, last)
        closed = best.met(limits.tolerances)
        self._note(found.smoothed, found.slack)
        if ask is not Ask.BOUND:
            state.cooling.smoothed = found.smoothed
            entropy = found.edge_entropy - found.node_entropy
            state.cooling.observe(
                self.annealing, bound=found.bound, primals=found.primals, entropy=entropy,
                averaged=averaged,
            )  # fmt: skip
        ratio = self._lp_ratio(limits)
        state.schedule.next_check = state.passes + passes_to_next(self.checks, state.passes, ratio)
        return closed or self._stalled()

    def _lp_ratio(self, limits: PartsLimits) -> float:
        """The LP gap divided by its tolerance."""
        return self.best.gaps().lp / max(limits.tolerances.lp_gap, 1e-12)

    def _ask(self, limits: PartsLimits, last: bool) -> Ask:
        state, ratio = self.progress, self._lp_ratio(limits)
        if state.passes <= self.checks.second and not last:
            return Ask.BOUND  # labels give a primal value in less time than a point
        return state.schedule.ask(
            self.checks, state.passes, lp_ratio=ratio, tight=self.best.tight, last=last
        )

    def _read_labels(self, found: Judgement, limits: PartsLimits) -> None:
        """Round the marginals; decode labels from λ unless rounding closes the gap."""
        self.labels.round(found.nodes)
        if not self.best.met(limits.tolerances):
            self.labels.read_off(found.lam, found.nodes)

    def _find_labels(self, found: Judgement, limits: PartsLimits, last: bool) -> None:
        """Search for labels if due.

        A search is due at growing intervals while labels may be the best point, at the end of the
        run, and until labels satisfy the hard constraints.
        """
        best, passes, schedule = self.best, self.progress.passes, self.progress.schedule
        wanted = best.may_be_best() or not schedule.decoded_at
        due = schedule.labels_due(passes, factor=4, wanted=wanted, last=last)
        if due or not best.found:
            self.labels.search(found.lam, found.nodes, passes)
        solved = not due and best.met(limits.tolerances)
        if solved and best.gaps().map > limits.tolerances.lp_gap:
            self.labels.search(found.lam, found.nodes, passes)

    def _note(self, smoothed: float, slack: float) -> None:
        state, best = self.progress, self.best
        state.seconds = self.team.together(self.seconds)
        work = 2 * self.whole.edges * state.passes
        row = Row(
            work, float(state.passes), state.seconds, state.cooling.eta, best.bound, smoothed,
            best.primal, best.energy, slack, RELAXATION, best.lp_bound,
        )  # fmt: skip
        state.trace.rows.append(row)

    def ended(self, limits: PartsLimits) -> Status | None:
        """Return the status if a resumed run has nothing left to do, else None."""
        if not len(self.progress.trace):
            return None
        return self.best.met(limits.tolerances) or self._stalled()

    def _stalled(self) -> Status | None:
        state = self.progress
        stalled = state.schedule.has_stalled(self.checks, state.passes, *self.best.gaps())
        return Status.STALLED if stalled else None

    # --- checkpoints ---

    def arrays(self, number: int) -> dict[str, NDArray[Any]]:
        """The arrays of a part that a checkpoint stores, by name."""
        kept = {"lam": self.best.lam[number], "labels": self.best.labels[number]}
        return self._messages(number) | kept

    def put(self, number: int, arrays: dict[str, NDArray[Any]]) -> None:
        """Copy stored messages of the same shapes back."""
        for name, place in self._messages(number).items():
            place[...] = arrays[name]

    def _messages(self, number: int) -> dict[str, NDArray[Any]]:
        chains = self.passes.chains[number]
        return {name: getattr(chains, name) for name in ("msg", "drift", "mean", "shift")}

    def restore(
        self, progress: PartsProgress, clock: Floats, primal: float, lam: Arrays,
        labels: dict[int, Ints],
    ) -> None:  # fmt: skip
        """Resume a stored run after its messages were restored; collective call of all processes.

        The bound and the energy are recomputed from λ and the labels.

        Parameters
        ----------
        progress : PartsProgress
            The state of the policy, and the trace.
        clock : float64[3]
            The clock of the passes.
        primal : float
            Cost of the best point.
        lam, labels : dict from int to array
            λ of the best bound and the best labels, by part.
        """
        self.progress, self.passes.clock = progress, clock
        self.best.offer_lp_bound(bound_of(self.passes, lam), lam)
        self.best.offer_point(primal, None)
        self.labels.offer(labels)
        self.start_clock()

"""One trial of one method: the smallest piece of a reproduction, run and stored as a whole."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from softmap.algorithms.base import Algorithm, Floats, Proposal
from softmap.algorithms.paper.methods import StandardState
from softmap.experiments.methods import Method
from softmap.experiments.truth import Problem
from softmap.labels import LabelSearch
from softmap.solving.judge import Judge

__all__ = ["Point", "Unit", "follow", "passes_until", "star_size", "trial_seed"]


class Point(NamedTuple):
    """What is seen of a run after some updates (or passes).

    `primal` and `bound` belong to the current iterate; `returned` is the primal value of what the
    method would give back: the iterate of least slack (Algorithm 1), the best so far (our solvers),
    the current one (the accelerated methods). `seconds` are those of the method on one core.
    """

    updates: int
    work: int
    seconds: float
    primal: float
    returned: float
    bound: float


@dataclass(frozen=True)
class Unit:
    """A trial: which figure it is for, on which graph, by which method, looked at when."""

    figure: str
    n: int
    labels: int
    seed: int
    method: Method
    eta: float
    trial: int
    checks: tuple[int, ...]

    @property
    def cost(self) -> float:
        """A guess of its seconds, for progress bars: nanoseconds per update that were measured."""
        if self.method.sweeping:
            return self.checks[-1] * 2.5e-4 + len(self.checks) * 2e-3
        return self.checks[-1] * (6e-6 if self.method.stars else 1.5e-6) + len(self.checks) * 2e-3

    def key(self, code: str) -> str:
        """A name for its result that depends on everything the result depends on."""
        facts = json.dumps({**asdict(self), "code": code}, sort_keys=True)
        return hashlib.sha256(facts.encode()).hexdigest()[:24]


def trial_seed(seed: int, trial: int) -> int:
    """Seed of a trial; all methods share it, so that trials are compared in pairs."""
    return int(np.random.SeedSequence([seed, trial]).generate_state(1)[0])


def star_size(degree: Any) -> float:
    """Messages per star update on average, when vertices are drawn by degree."""
    return float((degree**2).sum() / degree.sum())


def passes_until(last: int) -> tuple[int, ...]:
    """When methods that pass over the whole graph are looked at; η moves only every tenth pass."""
    regular = [*range(10, 101, 10), *range(120, last + 1, 20)]
    return (*(k for k in [1, 2, 3, 5, *regular] if k < last), last)


def follow(unit: Unit, given: Problem) -> list[Point]:
    """Run a trial; the clock stands still while it is judged, unless the method heeds the judge."""
    algorithm = unit.method.make(unit.eta)
    judge = Judge.of(given.model)
    search = LabelSearch(given.model, algorithm.decode_order(given.model))
    state = algorithm.init(given.model, None, trial_seed(unit.seed, unit.trial))
    done, seconds, points = 0, 0.0, []
    for check in unit.checks:
        began = time.thread_time()
        algorithm.step(state, check - done)
        done = check
        if not unit.method.steered:
            seconds += time.thread_time() - began
        primal, returned, bound = _look(algorithm, state, (judge, search), unit.method, check)
        if unit.method.steered:
            seconds += time.thread_time() - began
        points.append(Point(done, state.work, seconds, primal, returned, bound))
    return points


def _look(
    algorithm: Algorithm,
    state: Any,
    lookers: tuple[Judge, LabelSearch],
    method: Method,
    check: int,
) -> tuple[float, float, float]:
    """Primal of the current iterate and of the one returned, bound of the current one."""
    judge, search = lookers
    proposal = algorithm.propose(state)
    if isinstance(state, StandardState):
        now = judge.look(Proposal(current(state), proposal.eta))
        return now.primals[0], judge.look(proposal).primals[0], now.bound
    verdict = judge.look(proposal)
    primal = min(verdict.primals)
    if method.steered and check % 10 == 0:
        algorithm.observe(state, verdict)
    if not method.sweeping:
        return primal, primal, verdict.bound
    best = judge.best
    known = best.labels, best.energy
    best.offer_labels(
        *search.look(known, proposal.lam, verdict.nodes[0], best.lp_bound, best.point_cost, 0)
    )
    return primal, best.point_cost, verdict.bound


def current(state: StandardState) -> Floats:
    """λ^(k), where `propose` gives the iterate of least slack."""
    return state.current()

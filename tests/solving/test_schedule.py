"""The schedule: what gains gets the time, everything runs, and limits and goals weaken nothing."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap import generators
from softmap.solving.best import Best
from softmap.solving.budget import Budget, Share
from softmap.solving.options import Options
from softmap.solving.problem import Problem
from softmap.solving.proof import Proof, ProofKind
from softmap.solving.relax import Relaxation
from softmap.solving.schedule import TUNING, Schedule, _gained
from softmap.solving.stage import Stage
from softmap.solving.stages import Tighten
from softmap.solving.tighten import Tightening
from softmap.solving.times import TurnClock
from softmap.solving.trace import StageName, Status
from support.stage_runs import begun


def spins(side: int, seed: int = 0) -> softmap.Model:
    """±1 couplings on a cube: a wide gap, which clusters close and passes do not."""
    rng, cells = np.random.default_rng(seed), np.arange(side**3).reshape(side, side, side)
    pairs = [np.stack([cells, np.roll(cells, 1, axis)], -1).reshape(-1, 2) for axis in range(3)]
    edges = np.unique(np.sort(np.concatenate(pairs), axis=1), axis=0)
    signs = rng.choice([-1.0, 1.0], len(edges))
    tables = signs[:, None, None] * np.array([[1.0, -1.0], [-1.0, 1.0]])
    return softmap.Model(np.zeros((side**3, 2)), edges, softmap.Tables(list(tables)))


class Clock:
    """A clock that only moves when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Fake(Stage):
    """A stage that takes all of its slice and closes a fraction of the gap per second."""

    name = StageName.SEARCH

    def __init__(self, problem: Problem, clock: Clock, rate: Callable[[float], float]) -> None:
        self._clock, self._rate, self.slices, self.seconds = clock, rate, 0, 0.0
        super().__init__(problem, Options())

    def applies(self) -> bool:
        return True

    def delay(self, budget: Budget) -> float:
        return 0.0

    def __call__(self, best: Best, share: Share) -> None:
        length = max(share.left, 1e-3)
        self._clock.now += length
        self.slices, self.seconds = self.slices + 1, self.seconds + length
        gain = 1 - math.exp(-length * self._rate(self.seconds))
        best.offer_bound(best.bound + gain * best.gap, Proof(ProofKind.SEARCH))


def simulated(
    monkeypatch: pytest.MonkeyPatch, limit: float, rates: list[Callable[[float], float]]
) -> tuple[list[Fake], Best, Status | None]:
    """Run a schedule of stages with given rates on a clock of its own."""
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", clock)
    problem, options = Problem.of(generators.erdos_renyi(30, seed=1)), Options(time_limit=limit)
    best, budget = Best(problem), Budget(time_limit=limit)
    best.offer_lam(best.lam)
    best.offer_labels(np.zeros(30, dtype=np.int64))
    relaxation = Relaxation(problem, options, best, budget)
    schedule = Schedule(relaxation, None, None, store=lambda: None, resumed=False)
    schedule._opening = []
    schedule.passes.end(Status.LP_GAP)
    stages = [Fake(problem, clock, rate) for rate in rates]
    schedule.__dict__ |= {"stages": stages, "_search": None}
    while (turn := schedule.next()) is not None:
        schedule.take(turn)
    return stages, best, schedule.status


def test_what_gains_gets_the_time_and_everything_gets_some(monkeypatch):
    steady, dead, slow = (lambda _: 0.2), (lambda _: 0.0), (lambda _: 0.01)
    stages, _, status = simulated(monkeypatch, 20.0, [dead, steady, slow])
    assert status is Status.TIME_LIMIT
    assert stages[1].seconds > 0.6 * 20.0
    for stage in (stages[0], stages[2]):
        assert 0.3 * TUNING.proofs_share * 20.0 <= stage.seconds <= 5.0


def test_a_stage_that_succeeds_late_is_not_given_up(monkeypatch):
    """A search proves nothing for long, then everything."""
    late = lambda seconds: 0.0 if seconds < 2.0 else 20.0  # noqa: E731
    stages, _, status = simulated(monkeypatch, 30.0, [late, lambda _: 0.1])
    assert status in (Status.OPTIMAL, Status.GAP)
    assert stages[0].seconds < 4.0


@given(st.floats(1.0, 10.0), st.lists(st.floats(0.0, 0.5), min_size=2, max_size=4))
def test_a_doubled_limit_never_ends_with_less(limit, rates):
    """The order of slices does not depend on the limit, up to its end."""
    with pytest.MonkeyPatch.context() as patch:
        known = [lambda _, rate=rate: rate for rate in rates]
        _, short, _ = simulated(patch, limit, known)
        _, long, _ = simulated(patch, 2 * limit, known)
    assert long.gap <= short.gap * (1 + 1e-9)


def test_the_fraction_of_the_gap_that_is_closed():
    best = Best(Problem.plain(generators.erdos_renyi(20, seed=1)))
    assert _gained((-math.inf, math.inf), best) == 0.0
    best.offer_lam(best.lam)
    assert _gained((-math.inf, math.inf), best) == 1.0
    bound = best.bound
    best.offer_labels(np.zeros(20, dtype=np.int64))
    assert _gained((bound, math.inf), best) == 1.0
    before = bound, best.energy
    assert _gained(before, best) == 0.0
    best.offer_bound(bound + 0.25 * (best.energy - bound), Proof(ProofKind.SEARCH))
    assert _gained(before, best) == pytest.approx(0.25)


def test_tightening_that_is_cut_off_goes_on_in_its_next_slice():
    """Slices end while clusters are chosen, while they are built, and between passes."""
    model = spins(5)
    relaxed = softmap.solve(model, goal="lp", threads=1)
    best = begun(model, relaxed.lam, relaxed.labels)
    run, wanted = Tightening(best.problem, best), 0.3 * (relaxed.energy - relaxed.bound)
    slices = 0
    while best.bound <= relaxed.bound + wanted:
        slices, now = slices + 1, time.perf_counter()
        assert run.go_on(TurnClock(now + 1e-3, now + 60.0), math.inf, 1e-6)
        assert slices < 10_000
    assert slices > 3
    assert run.tight.clusters
    assert best.proof.kind is ProofKind.TIGHTENED


def test_a_time_limit_gives_both_goals_the_same_stages():
    problem = Problem.of(spins(3))

    def kinds(**given: object) -> list[type]:
        options = Options(**given)
        budget = Budget(time_limit=options.time_limit)
        relaxation = Relaxation(problem, options, Best(problem), budget)
        made = Schedule(relaxation, None, None, store=lambda: None, resumed=False)
        return [type(stage) for stage in made.stages]

    timed = [kinds(goal=goal, time_limit=1.0) for goal in ("map", "labels", "optimal")]
    assert timed[0] == timed[1] == timed[2]
    assert Tighten in timed[0]
    assert len(kinds(goal="labels")) < len(kinds(goal="map"))
    assert kinds(goal="lp", time_limit=1.0) == []


@pytest.mark.parametrize("goal", ["map", "labels"])
def test_every_stage_runs_within_the_limit(goal):
    found = softmap.solve(spins(7), goal=goal, time_limit=3.0, threads=1)
    names = {row.stage for row in found.trace}
    assert {StageName.RELAX, StageName.SEARCH, StageName.TIGHTEN, StageName.LABELS} <= names
    assert softmap.verify(found).holds

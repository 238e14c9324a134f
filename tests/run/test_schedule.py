"""Which stage is next: a pure function of what the stages have done, tested without solving."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap import generators
from softmap.drive.loop import _gained
from softmap.drive.schedule import ByTime, ByWork, Candidate, Clock, History, ScheduleNumbers, Turn
from softmap.run.best import Best
from softmap.run.budget import Budget
from softmap.run.evidence import Stated
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.subsolver import Share
from softmap.run.trace import Status
from softmap.subsolvers.clusters.tightening import Tightening
from softmap.tuning import TUNING, Tuning
from support.stage_runs import begun

NUMBERS = ScheduleNumbers()


def simulated(limit, rates, schedule=None):
    """The seconds of stages that close a fraction of the gap per second, and the gap at the end."""
    schedule, now, gap = schedule or ByTime(NUMBERS), 0.0, 1.0
    histories = [History()] * len(rates)
    while gap > 1e-9:
        candidates = [Candidate(k, history=history) for k, history in enumerate(histories)]
        turn = schedule.choose(candidates, Clock(now, limit - now))
        if isinstance(turn, Status) or now >= limit:
            break
        length = max(turn.seconds, 1e-3)
        now += length
        history = histories[turn.key]
        gain = 1 - math.exp(-length * rates[turn.key](history.seconds + length))
        gap *= 1 - gain
        histories[turn.key] = history.after(NUMBERS, turn, length, 0.0, gain, fell=False)
    return [history.seconds for history in histories], gap


def test_what_gains_gets_the_time_and_everything_gets_some():
    seconds, _ = simulated(20.0, [lambda _: 0.0, lambda _: 0.2, lambda _: 0.01])
    assert seconds[1] > 0.6 * 20.0
    for each in (seconds[0], seconds[2]):
        assert 0.3 * NUMBERS.share * 20.0 <= each <= 5.0


def test_a_stage_that_succeeds_late_is_not_given_up():
    """A search proves nothing for long, then everything."""
    late = lambda seconds: 0.0 if seconds < 2.0 else 20.0  # noqa: E731
    seconds, gap = simulated(30.0, [late, lambda _: 0.1])
    assert gap <= 1e-9
    assert seconds[0] < 4.0


@given(st.floats(1.0, 10.0), st.lists(st.floats(0.0, 0.5), min_size=2, max_size=4))
def test_a_doubled_limit_never_ends_with_less(limit, rates):
    """The order of slices does not depend on the limit, up to its end."""
    known = [lambda _, rate=rate: rate for rate in rates]
    short, long = (simulated(each, known)[1] for each in (limit, 2 * limit))
    assert long <= short * (1 + 1e-9)


candidates = st.lists(
    st.builds(
        Candidate, st.just(0), st.booleans(), st.booleans(), st.booleans(), st.booleans(),
        st.floats(0.0, 10.0),
        st.builds(
            History, st.integers(0, 9), st.integers(0, 9), st.floats(0.0, 50.0),
            st.floats(0.0, 50.0), st.floats(0.0, 50.0), st.floats(0.0, 1.0),
        ),
    ),
    max_size=6,
).map(lambda found: [each._replace(key=k) for k, each in enumerate(found)])  # fmt: skip


@given(candidates, st.floats(0.0, 100.0), st.floats(1e-3, 100.0))
def test_a_turn_is_that_of_a_candidate_and_fits_into_the_time(found, spent, left):
    turn = ByTime(NUMBERS).choose(found, Clock(spent, left))
    able = [c.key for c in found if c.urgent or not (c.whole or c.begin > left)]
    if not able:
        assert turn is Status.EXHAUSTED
        return
    assert turn.key in able
    assert turn.seconds <= left
    urgent = [c.key for c in found if c.urgent]
    assert not urgent or turn.key == urgent[0]


@given(candidates, st.booleans(), st.integers(1, 10**9))
def test_without_a_clock_the_relaxation_leads_and_rounds_follow(found, ends, work):
    turn = ByWork(NUMBERS, ends).choose(found, Clock(work=work))
    if isinstance(turn, Status):
        assert not any(c.urgent or c.leads for c in found)
        return
    chosen, leading = found[turn.key], any(c.leads for c in found)
    assert turn.seconds == math.inf
    assert turn.early == leading
    assert chosen.leads or chosen.whole or turn.work <= work
    if not any(c.urgent for c in found):
        rounds = [c.history.rounds for c in found if not c.whole]
        assert chosen.leads if leading else chosen.history.rounds == min(rounds)


def test_a_stage_is_tried_once_its_set_up_is_short_beside_the_run_so_far():
    slow = Candidate(0, begin=1.0)
    known = Candidate(1, history=History(slices=5, seconds=0.5, rate=100.0))
    schedule = ByTime(NUMBERS)
    assert schedule.choose([slow, known], Clock(0.9 / NUMBERS.entry, 60.0)).key == 1
    assert schedule.choose([slow, known], Clock(1.1 / NUMBERS.entry, 60.0)).key == 0
    assert schedule.choose([slow], Clock(9.0, 0.5)) is Status.EXHAUSTED


def test_once_the_time_is_up_only_the_relaxation_has_a_turn():
    once, passes = Candidate(0, urgent=True), Candidate(1, urgent=True, leads=True)
    up = Clock(1.0, 0.0)
    assert ByTime(NUMBERS).choose([once, passes], Clock(0.5, 0.5)).key == 0
    assert ByTime(NUMBERS).choose([once, passes], up).key == 1
    assert ByTime(NUMBERS).choose([once], up) is Status.TIME_LIMIT


def test_labels_that_fall_get_more_of_the_time_and_less_once_they_stall():
    proving = Candidate(0, history=History(slices=9, seconds=8.0, rate=1.0))

    def chosen(seconds: float, fruitless: float) -> int:
        history = History(slices=9, seconds=seconds, idle=1.0, fruitless=fruitless)
        labels = Candidate(1, proves=False, history=history)
        return ByTime(NUMBERS).choose([proving, labels], Clock(10.0, 60.0)).key

    share = 10.0 * NUMBERS.share
    assert chosen(1.1 * share, 0.1) == 1
    assert chosen(NUMBERS.falling * share, 0.1) == 0
    assert chosen(0.4 * share, 0.3 * share) == 1
    assert chosen(0.6 * share, 0.5 * share) == 0


def test_time_before_new_clusters_gain_does_not_count_as_idle():
    turn = Turn(0, 1.0)
    history = History().after(NUMBERS, turn, 1.0, 1.0, 0.0, fell=False)
    assert history.idle == history.fruitless == 0.0
    history = history.after(NUMBERS, turn, 1.0, 0.25, 0.0, fell=False)
    assert history.idle == history.fruitless == 0.75


def test_the_default_effort_is_a_number_of_rounds():
    schedule, stage = ByWork(NUMBERS), Candidate(0)
    done = stage._replace(history=History(rounds=NUMBERS.rounds))
    assert schedule.choose([stage], Clock()).work == NUMBERS.first_work
    assert schedule.choose([done], Clock()) is Status.EFFORT
    assert ByWork(NUMBERS, ends=False).choose([done], Clock()).key == 0
    labels = replace_all([done], proves=False)
    assert ByWork(NUMBERS, ends=False).choose(labels, Clock()) is Status.EXHAUSTED


def replace_all(found, **changes):
    return [each._replace(**changes) for each in found]


def test_the_fraction_of_the_gap_that_is_closed():
    best = Best(Problem.plain(generators.erdos_renyi(20, seed=1).network))
    assert _gained((-math.inf, math.inf), best) == 0.0
    best.offer_lam(best.lam)
    assert _gained((-math.inf, math.inf), best) == 1.0
    bound = best.bound
    best.offer_labels(np.zeros(20, dtype=np.int64))
    assert _gained((bound, math.inf), best) == 1.0
    before = bound, best.energy
    assert _gained(before, best) == 0.0
    best.offer_bound(Stated(value=bound + 0.25 * (best.energy - bound)))
    assert _gained(before, best) == pytest.approx(0.25)


# --- whole runs -----------------------------------------------------------------------------------


def spins(side: int, seed: int = 0) -> softmap.Model:
    """±1 couplings on a cube: a wide gap, which clusters close and passes do not."""
    rng, cells = np.random.default_rng(seed), np.arange(side**3).reshape(side, side, side)
    pairs = [np.stack([cells, np.roll(cells, 1, axis)], -1).reshape(-1, 2) for axis in range(3)]
    edges = np.unique(np.sort(np.concatenate(pairs), axis=1), axis=0)
    signs = rng.choice([-1.0, 1.0], len(edges))
    tables = signs[:, None, None] * np.array([[1.0, -1.0], [-1.0, 1.0]])
    return softmap.Model(np.zeros((side**3, 2)), edges, softmap.Tables(list(tables)))


def test_tightening_that_is_cut_off_goes_on_in_its_next_slice():
    """Slices end while clusters are chosen, while they are built, and between passes."""
    model = spins(5)
    relaxed = softmap.solve(model, goal="lp", threads=1)
    best = begun(model, relaxed.lam, relaxed.labels)
    run = Tightening(best.problem, best, TUNING)
    wanted, slices, budget = 0.3 * (relaxed.energy - relaxed.bound), 0, Budget(time_limit=600.0)
    while best.bound <= relaxed.bound + wanted:
        slices += 1
        assert run.run(Share(budget, time.perf_counter() + 1e-3), math.inf, 1e-6)
        assert slices < 10_000
    assert slices > 3
    assert run.tight.clusters
    assert best.evidence.kind == "tightened"


@pytest.mark.parametrize("goal", ["map", "labels"])
def test_every_stage_runs_within_the_limit(goal):
    names = set()

    def goes_on(snapshot):
        names.add(snapshot.stage)
        return len(names) < 4

    found = softmap.solve(spins(7), goal=goal, time_limit=60.0, threads=1, on_snapshot=goes_on)
    assert names == {"relaxation", "search", "tightening", "labels"}
    assert softmap.verify(found).holds


def test_other_numbers_are_handed_to_a_run():
    model = spins(3)
    few = Tuning(ScheduleNumbers(rounds=1, label_rounds=0))
    short, long = (softmap.solve(model, tuning=t, threads=1) for t in (few, TUNING))
    assert short.work <= long.work
    with pytest.raises(softmap.OptionError, match="tuning"):
        softmap.solve(model, tuning=0.5)


@given(st.integers(1, 64), st.floats(0.0, 1e3), st.floats(0.0, 1e3))
def test_without_a_clock_nothing_depends_on_timing(threads, had, spent):
    assert Options().racing(threads) == 1
    assert Options().either(timed=had, counted=spent) == spent

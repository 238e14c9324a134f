"""Which stage comes when: passes as long as they may prove labels, searches that can afford it."""

from __future__ import annotations

import threading
import time
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmap import Status, generators, solve
from softmap.run.best import Best
from softmap.run.budget import Budget
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.subsolver import Share
from softmap.subsolvers.labels.improve import Improve, _TimeParts
from softmap.subsolvers.labels.label_numbers import ImproveNumbers
from softmap.subsolvers.search.search_numbers import SearchNumbers
from softmap.tuning import Tuning


@pytest.mark.parametrize("goal", ["map", "labels"])
@pytest.mark.parametrize(("side", "seed"), [(32, 1), (64, 3)])
def test_labels_that_solve_the_lp_are_proved_by_passes(side, seed, goal):
    """A few passes solve the LP to what was asked for, a few more prove the labels.

    Clusters and large neighbourhoods did not do that in half a minute.
    """
    late = Tuning(SearchNumbers(early_edges=0))
    model = generators.stereo_grid(side, side, 16, seed=seed, weight=0.2, truncation=4.0)
    found = solve(model, goal=goal, threads=1, tuning=late)
    assert found.status in (Status.OPTIMAL, Status.GAP)
    first = found.trace.rows[0].stage  # large models begin with labels by expansion moves
    assert {row.stage for row in found.trace.rows} - {first} <= {"relaxation"}
    assert first in ("relaxation", "labels")
    alone = solve(model, goal="lp", threads=1)
    assert alone.status is Status.LP_GAP
    assert alone.sweeps < found.sweeps <= 100


def test_passes_end_where_the_lp_is_not_tight():
    """Labels that are worse than a point of the LP are left to other stages."""
    model = generators.erdos_renyi(300, 3, seed=2)
    options = {"threads": 1, "lp_gap": 1e-3, "max_work": 2 * model.m * 300}
    found, alone = (solve(model, goal=goal, **options) for goal in ("labels", "lp"))
    assert found.energy > alone.primal
    passes = [row.sweeps for row in found.trace.rows if row.stage == "relaxation"]
    assert max(passes) == alone.sweeps


@pytest.mark.parametrize("early", [0, SearchNumbers().early_edges])
def test_a_large_model_is_not_searched_before_its_relaxation_is_solved(early):
    other = Tuning(SearchNumbers(early_edges=early))
    model = generators.erdos_renyi(300, 3, seed=2)
    found = solve(model, threads=1, max_work=2 * model.m * 40, tuning=other)
    names = [row.stage for row in found.trace.rows]
    assert ("search" in names[:3]) == (early > 0)
    assert names[-1] == "relaxation"


gains = st.lists(st.lists(st.floats(0.0, 1e6), min_size=3, max_size=3), max_size=20)


@given(gains)
def test_searches_for_labels_share_the_time_and_none_is_without(rounds):
    parts_of_three = _TimeParts(3, ImproveNumbers().least_part)
    for gained in rounds:
        parts_of_three.note(np.array(gained))
        if not any(gained):
            assert np.ptp(parts_of_three.parts) <= 1e-12
        assert parts_of_three.parts.sum() == pytest.approx(1.0)
        assert (parts_of_three.parts >= ImproveNumbers().least_part - 1e-12).all()


def test_the_first_search_has_most_of_the_first_slice():
    least = ImproveNumbers().least_part
    np.testing.assert_allclose(_TimeParts(3, least).parts, [1 - 2 * least, least, least])
    np.testing.assert_allclose(_TimeParts(1, least).parts, [1.0])


def test_the_search_that_gains_most_per_second_gets_most_of_the_time():
    parts_of_three = _TimeParts(3, ImproveNumbers().least_part)
    for _ in range(20):
        parts_of_three.note(parts_of_three.parts * np.array([3.0, 1.0, 0.0]))
    first, second, third = parts_of_three.parts
    assert first > second > third
    assert third == pytest.approx(ImproveNumbers().least_part, abs=1e-3)
    for _ in range(20):
        parts_of_three.note(np.zeros(3))
    np.testing.assert_allclose(parts_of_three.parts, 1 / 3, atol=1e-3)


def test_labels_are_improved_before_tightening_begins():
    model = generators.erdos_renyi(300, 3, seed=2)
    found = solve(model, threads=1, time_limit=1.5, on_snapshot=lambda s: s.stage != "labels")
    names = [row.stage for row in found.trace.rows]
    assert "labels" in names
    assert "TIGHTEN" not in names[: names.index("labels")]


@pytest.mark.parametrize("seed", [0, 3])
def test_labels_without_a_time_limit_can_be_repeated(seed):
    model = generators.erdos_renyi(60, 3, seed=1)
    found = [
        solve(model, goal="labels", threads=1, seed=seed, max_work=8_000_000) for _ in range(2)
    ]
    np.testing.assert_array_equal(found[0].labels, found[1].labels)
    assert found[0].work == found[1].work


@pytest.mark.parametrize(
    ("threads", "limit", "together"), [(3, 60.0, True), (2, 60.0, False), (3, None, False)]
)
def test_searches_for_labels_run_side_by_side_if_each_has_a_thread(threads, limit, together):
    """And only if the run has a time limit: the others are deterministic."""
    model = generators.random_grid(6, 6, 3, seed=1)
    start, optimum = np.zeros(36, dtype=np.int64), solve(model).labels
    meeting = threading.Barrier(2, timeout=10.0 if together else 0.05)
    begun = []

    def search(outcome, labels, *, deadline, work):
        begun.append(labels)
        assert not deadline.passed
        meeting.wait()  # breaks unless the other search runs at the same time
        return outcome

    problem = Problem.of(model, threads=threads)
    best = Best(problem)
    best.offer_labels(start)
    stage = Improve(problem, Options(time_limit=limit))
    stage._searches = [partial(search, start), partial(search, optimum)]
    share = Share(Budget(time_limit=60.0), time.perf_counter() + 5.0)
    if not together:
        with pytest.raises(threading.BrokenBarrierError):
            stage(best, share)
        return
    stage(best, share)
    np.testing.assert_array_equal(begun, [start, start])
    assert best.energy == pytest.approx(model.energy(optimum))

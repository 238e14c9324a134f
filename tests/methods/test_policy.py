"""The policy of annealed runs: laws of the η rule, of check intervals and of giving up."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from softmap.methods.policy import (
    AnnealingRule,
    Ask,
    Checks,
    CheckTimes,
    Cooling,
    eta_rises,
    passes_to_next,
)

RULE = Checks()
COSTS = st.floats(-100.0, 100.0)


@given(st.integers(0, 10_000), st.floats(0.0, 1e12))
def test_checks_come_at_growing_intervals(done, ratio):
    steps = passes_to_next(RULE, done, ratio)
    assert 1 <= steps <= max(RULE.early, done // 4)
    if done >= RULE.early and not 1.0 < ratio < 2.0:
        assert steps >= 20
        assert passes_to_next(RULE, done + 1, ratio) >= steps


@given(st.integers(RULE.early, 10_000), st.floats(1.0, 2.0))
def test_a_check_comes_soon_where_little_is_missing(done, ratio):
    usual, steps = passes_to_next(RULE, done, 1.0), passes_to_next(RULE, done, ratio)
    assert max(RULE.first, done // 16) <= steps <= usual
    assert steps == usual or done * (ratio - 1.0) < steps <= (usual + 1) / 2
    assert passes_to_next(RULE, done, 1.0 + 1e-9) <= (usual + 1) / 2


def test_the_first_check_is_early_and_ones_that_come_too_early_are_left_out():
    assert passes_to_next(RULE, 0, math.inf) == passes_to_next(RULE, 0, math.nan) == RULE.first
    assert passes_to_next(RULE, RULE.first, 1.0) == RULE.second - RULE.first
    assert passes_to_next(RULE, RULE.first, 1e4) == RULE.early - RULE.first
    assert passes_to_next(RULE, 1000, 2 * RULE.near) == 250
    assert passes_to_next(RULE, 1000, RULE.near / 2) == 125


@given(st.lists(st.tuples(COSTS, COSTS, COSTS, COSTS, COSTS, st.floats(0.1, 10.0)), min_size=1))
def test_a_batch_is_told_what_each_model_would_be_told(rows):
    names = ("bound", "smoothed", "previous", "primal", "gap")
    columns = np.array(rows).T
    columns[4] = np.where(columns[4] < -50.0, np.inf, np.abs(columns[4]))  # some have no point
    given = dict(zip(names, columns, strict=False))
    together = eta_rises(AnnealingRule(), columns[5], entropy=columns[5], **given)
    for k, answer in enumerate(together):
        alone = {name: column[k] for name, column in given.items()}
        assert eta_rises(AnnealingRule(), columns[5, k], entropy=columns[5, k], **alone) == answer


def test_eta_rises_when_the_entropy_makes_most_of_the_gap():
    rule, cooling = AnnealingRule(), Cooling(eta=2.0, smoothed=-1.0)
    # the regularised gap is 1.0 - 2.0 / 2.0 + 1.0 = 1.0
    assert not cooling.observe(rule, bound=0.0, primals=(1.0,), entropy=2.0, averaged=False)
    assert (cooling.eta, cooling.previous) == (2.0, -1.0)
    # and then 0.5, below 0.65 of the LP gap
    assert cooling.observe(rule, bound=0.0, primals=(1.0,), entropy=3.0, averaged=False)
    assert (cooling.eta, cooling.previous) == (2.0 * rule.growth, -math.inf)


def test_without_a_point_eta_rises_when_the_smoothed_dual_has_settled():
    rule, cooling = AnnealingRule(), Cooling(eta=1.0, smoothed=-1.0)
    nothing = {"bound": 0.0, "primals": (math.inf,), "entropy": 0.0, "averaged": False}
    assert not cooling.observe(rule, **nothing)  # there is nothing to compare with yet
    cooling.smoothed = -0.5  # gained half of what smoothing costs
    assert not cooling.observe(rule, **nothing)
    cooling.smoothed = -0.45
    assert cooling.observe(rule, **nothing)


def test_a_gap_without_the_average_is_what_the_average_left_of_it_before():
    rule = AnnealingRule()
    cooling = Cooling(eta=1.0, smoothed=0.0)
    cooling.observe(rule, bound=0.0, primals=(4.0, 1.0), entropy=0.0, averaged=True)
    assert cooling.gain == 0.25
    # 4.0 - 3.7 = 0.3 is below 0.65 of the LP gap 4.0 · 0.25
    assert cooling.observe(rule, bound=0.0, primals=(4.0,), entropy=3.7, averaged=True)


def test_everything_is_asked_where_it_may_end_the_run_now_and_then_and_at_the_end():
    schedule = CheckTimes(refined_at=20)
    far = {"lp_ratio": 100.0, "tight": False, "last": False}
    assert schedule.ask(RULE, 30, **far) is Ask.POINT
    assert schedule.ask(RULE, 40, **far) is Ask.EVERYTHING
    assert schedule.refined_at == 40
    for change in ({"lp_ratio": 2.0}, {"tight": True}, {"last": True}):
        assert schedule.ask(RULE, 41, **far | change) is Ask.EVERYTHING


def test_labels_are_searched_for_at_growing_intervals_and_at_the_end():
    schedule = CheckTimes()
    asked = [
        done
        for done in range(10, 500, 10)
        if schedule.labels_due(done, factor=2, wanted=True, last=False)
    ]
    assert asked == [10, 20, 40, 80, 160, 320]
    assert not schedule.labels_due(10_000, factor=2, wanted=False, last=False)
    assert schedule.labels_due(330, factor=2, wanted=False, last=True)


def test_a_run_stalls_when_neither_gap_improves():
    schedule = CheckTimes()
    assert not schedule.has_stalled(RULE, 100, 0.5, 0.5)
    assert not schedule.has_stalled(RULE, 100 + RULE.patience, 0.5, 0.4)  # one of them did
    assert schedule.improved_at == 100 + RULE.patience
    assert not schedule.has_stalled(RULE, 2 * schedule.improved_at, 0.5, 0.4)
    assert schedule.has_stalled(RULE, 2 * schedule.improved_at + 2, 0.4999, 0.3999)

"""A slice of a run: what limits it, and how a stage shortens it."""

import math
import time

from hypothesis import given
from hypothesis import strategies as st

from softmap.solving.budget import Budget
from softmap.solving.stage import UNLIMITED, Share

WORK = st.integers(1, 1 << 50)


@given(WORK, WORK)
def test_a_slice_of_work_has_its_own_and_no_end(work, most):
    share = Share(Budget(), work=work)
    assert share.by_work
    assert share.work_or(most) == work
    assert share.within(0.0).end == math.inf


@given(WORK)
def test_a_slice_of_time_has_no_limit_on_work(most):
    share = Share(Budget(time_limit=60.0), time.perf_counter() + 30.0)
    assert not share.by_work
    assert share.work_or(most) == UNLIMITED
    assert share.within(1.0).left <= 1.0 < share.left
    assert share.within(1e6).end == share.end


@given(WORK)
def test_a_slice_without_limits_has_what_the_stage_allows(most):
    share = Share(Budget())
    assert not share.by_work
    assert share.work_or(most) == most

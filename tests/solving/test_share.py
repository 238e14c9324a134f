"""A slice of a run: what limits it, and how a stage shortens it."""

import math
import time

from hypothesis import given
from hypothesis import strategies as st

from softmap.solving.budget import Budget
from softmap.solving.options import Options
from softmap.solving.schedule import UNLIMITED
from softmap.solving.stage import Share

WORK = st.integers(1, 1 << 50)


@given(WORK, st.floats(0.0, 1e6))
def test_without_a_time_limit_a_stage_cuts_its_slice_by_work_alone(work, seconds):
    assert Options().schedule.limits(seconds, work) == (math.inf, work)
    assert Share(Budget()).within(math.inf).end == math.inf


@given(WORK, st.floats(0.0, 1e6))
def test_with_a_time_limit_a_stage_cuts_its_slice_by_time_alone(work, seconds):
    assert Options(time_limit=60.0).schedule.limits(seconds, work) == (seconds, UNLIMITED)


def test_a_slice_can_only_be_shortened():
    share = Share(Budget(time_limit=60.0), time.perf_counter() + 30.0)
    assert share.within(1.0).left <= 1.0 < share.left
    assert share.within(1e6).end == share.end

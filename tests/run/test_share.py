"""A slice of a run: what limits it, and how a stage shortens it."""

import math
import time

from hypothesis import given
from hypothesis import strategies as st

from softmap.run.budget import Budget
from softmap.run.options import Options
from softmap.run.subsolver import Share

WORK = st.integers(1, 1 << 50)


@given(WORK, WORK)
def test_what_differs_with_a_time_limit_is_asked_of_the_options(timed, counted):
    assert Options().either(timed=timed, counted=counted) == counted
    assert Options(time_limit=60.0).either(timed=timed, counted=counted) == timed
    assert Share(Budget()).within(math.inf).end == math.inf


def test_a_slice_can_only_be_shortened():
    share = Share(Budget(time_limit=60.0), time.perf_counter() + 30.0)
    assert share.within(1.0).left <= 1.0 < share.left
    assert share.within(1e6).end == share.end

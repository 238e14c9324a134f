"""Who runs a pass: all threads or one, whichever is faster."""

import numpy as np
import pytest

from softmap.algorithms import team as module
from softmap.algorithms.team import RETRY, WORTHWHILE, Paced, Team
from softmap.errors import OptionError


class FakeTeam:
    """Takes as long as it is told to, by a clock of its own making."""

    def __init__(self, clock: list[float], seconds: float) -> None:
        self.clock, self.seconds, self.calls = clock, seconds, 0

    def run(self, kernel, *args) -> None:
        self.calls += 1
        self.clock[0] += self.seconds


def paced(monkeypatch, many: float, one: float) -> tuple[Paced, FakeTeam, FakeTeam]:
    clock = [0.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: clock[0])
    made = Paced(Team(2))
    teams = FakeTeam(clock, many), FakeTeam(clock, one)
    made._teams = teams
    return made, *teams


@pytest.mark.parametrize(("many", "one"), [(1.0, 2.0), (2.0, 1.0)])
def test_the_faster_way_is_taken_and_the_other_one_tried_again(monkeypatch, many, one):
    made, all_threads, single = paced(monkeypatch, many, one)
    for _ in range(10 * RETRY):
        made.run(1, None)
    fast, slow = (all_threads, single) if many < one else (single, all_threads)
    assert fast.calls + slow.calls == 10 * RETRY
    assert 10 <= slow.calls <= 12


def test_one_slow_moment_changes_nothing(monkeypatch):
    made, all_threads, single = paced(monkeypatch, 2.0, 1.0)
    for _ in range(5):
        made.run(1, None)
    before, single.seconds = all_threads.calls, 50.0
    made.run(1, None)
    single.seconds = 1.0
    for _ in range(5):
        made.run(1, None)
    assert all_threads.calls == before


def test_a_machine_that_changes_is_followed(monkeypatch):
    made, all_threads, single = paced(monkeypatch, 2.0, 1.0)
    for _ in range(5):
        made.run(1, None)
    single.seconds, before = 10.0, all_threads.calls
    for _ in range(40):
        made.run(1, None)
    assert all_threads.calls - before > 20


def test_split_covers_every_item_once():
    for count in (0, 1, WORTHWHILE - 1, WORTHWHILE, 3 * WORTHWHILE + 1):
        seen = np.zeros(count, dtype=int)

        def mark(array, first, last):
            array[first:last] += 1

        Team(2).split(mark, count, seen)
        assert (seen == 1).all()


def test_bad_numbers_of_threads():
    with pytest.raises(OptionError, match="at least 1"):
        Team(0)

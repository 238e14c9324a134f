"""On how many threads a pass runs: all of them or one, whichever is faster."""

import pytest

from softmap import machine as module
from softmap.machine import TRIALS, ThreadChoice


class Machine:
    """Work that takes as long as it is told to, by a clock of its own making."""

    def __init__(self, monkeypatch, many: float, one: float, cores: float = 1.0) -> None:
        self.now, self.seconds, self.calls = 0.0, {2: many, 1: one}, {2: 0, 1: 0}
        monkeypatch.setattr(module.time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(module.time, "process_time", lambda: cores * self.now)

    def work(self, threads: int) -> int:
        self.calls[threads] += 1
        self.now += self.seconds[threads]
        return 1


@pytest.mark.parametrize(("many", "one"), [(1.0, 2.0), (2.0, 1.0), (1.0, 1.2), (1.0, 8.0)])
def test_the_faster_way_is_taken_and_the_other_one_tried_again(monkeypatch, many, one):
    machine, choice = Machine(monkeypatch, many, one), ThreadChoice(2)
    for _ in range(10 * TRIALS.retry):
        choice.run(1, machine.work)
    slow, ratio = (2, many / one) if many > one else (1, one / many)
    assert sum(machine.calls.values()) == 10 * TRIALS.retry
    assert machine.calls[slow] == 1 + 10 * TRIALS.retry // (1 + int(TRIALS.retry * ratio**2))


def test_one_thread_is_not_tried_first_where_all_cores_were_used(monkeypatch):
    for cores, seconds, tried in [(2.0, 1.0, 0), (1.0, 1.0, 1), (2.0, 0.001, 1)]:
        machine, choice = Machine(monkeypatch, seconds, 2 * seconds, cores), ThreadChoice(2)
        for _ in range(TRIALS.retry):
            choice.run(1, machine.work)
        assert machine.calls[1] == tried


def test_where_all_cores_were_used_one_thread_is_tried_later(monkeypatch):
    machine, choice = Machine(monkeypatch, 1.0, 0.5, 2.0), ThreadChoice(2)
    for _ in range(10 * TRIALS.retry):
        choice.run(1, machine.work)
    assert machine.calls[1] > 5 * TRIALS.retry


def test_one_slow_moment_changes_nothing(monkeypatch):
    machine, choice = Machine(monkeypatch, 2.0, 1.0), ThreadChoice(2)
    for _ in range(5):
        choice.run(1, machine.work)
    before, machine.seconds[1] = machine.calls[2], 50.0
    choice.run(1, machine.work)
    machine.seconds[1] = 1.0
    for _ in range(5):
        choice.run(1, machine.work)
    assert machine.calls[2] == before


def test_a_machine_that_changes_is_followed(monkeypatch):
    machine, choice = Machine(monkeypatch, 2.0, 1.0), ThreadChoice(2)
    for _ in range(5):
        choice.run(1, machine.work)
    machine.seconds[1], before = 10.0, machine.calls[2]
    for _ in range(40):
        choice.run(1, machine.work)
    assert machine.calls[2] - before > 20


def test_a_call_that_may_be_slow_is_announced(monkeypatch):
    machine, choice = Machine(monkeypatch, 1.0, 2.0), ThreadChoice(2)
    announced, slow = [], []
    for _ in range(10 * TRIALS.retry):
        before = machine.calls[1]
        announced.append(choice.trying)
        choice.run(1, machine.work)
        slow.append(machine.calls[1] > before)
    assert sum(slow) > 1
    assert announced == [True, *slow[1:]]  # nothing is known of the first call


@pytest.mark.parametrize(("many", "one"), [(1.0, 2.0), (2.0, 1.0)])
def test_other_loops_follow_the_faster_way(monkeypatch, many, one):
    machine, choice = Machine(monkeypatch, many, one), ThreadChoice(2)
    assert choice.threads == 2
    choice.run(1, machine.work)
    assert choice.threads == 2  # one thread has not been timed
    for _ in range(2 * TRIALS.retry):
        choice.run(1, machine.work)
        assert choice.threads == (2 if many < one else 1)


def test_one_thread_leaves_no_choice():
    seen = []
    for _ in range(2 * TRIALS.retry):
        ThreadChoice(1).run(1, lambda threads: seen.append(threads) or 1)
    assert set(seen) == {1}

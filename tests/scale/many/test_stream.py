"""What becomes of batches on the way: a client that does what the worst of clusters does."""

from __future__ import annotations

import pytest

import softmap.scale.many.solve as many
from softmap import SoftmapError, generators
from softmap.scale.many.items import listed
from softmap.scale.many.work import ModelOutcome, Settings

distributed = pytest.importorskip("distributed")


class Future:
    def __init__(self, key, status, value=None):
        self.key, self.status, self.value = key, status, value

    def add_done_callback(self, function):
        function(self)

    def result(self):
        if isinstance(self.value, Exception):
            raise self.value
        return self.value

    def exception(self):
        return self.value


class Fake:
    """A connection whose client ends each batch as the script says; then all goes well."""

    def __init__(self, script):
        self.script, self.client, self.ready = list(script), self, True
        self.handed: list[list[str]] = []
        self.restorations = self.threads = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def workers(self):
        if self.script and self.script[0] == "away":
            self.script.pop(0)
            self.ready = False
            raise OSError("the scheduler is gone")
        return {"one": 1}

    def restored(self):
        self.ready, self.restorations = True, self.restorations + 1

    def cancel(self, futures, force):
        self.cancelled = len(futures)

    def submit(self, function, batch, settings, key, pure):
        self.handed.append([item.name for item in batch])
        done = [ModelOutcome(item.name, value=item.name) for item in batch]
        step = self.script.pop(0) if self.script else "finished"
        if step == "killed":
            error = distributed.KilledWorker(key, None, 4)
            return Future(key, "error", error)
        if step == "unfetched":
            return Future(key, "finished", OSError("the worker is gone"))
        if step == "silent":
            future = Future(key, "pending")
            future.add_done_callback = lambda function: None
            return future
        return Future(key, step, done)


def run(monkeypatch, script, count=8):
    monkeypatch.setattr(many._Stream, "flow", many.Flow(tick=0.01))
    items = listed([generators.random_tree(4, seed=seed) for seed in range(count)])
    fake = Fake(script)
    found = list(many.outcomes(items, Settings(), fake))
    assert sorted(outcome.name for outcome in found) == [str(k) for k in range(count)]
    return fake, {outcome.name: outcome for outcome in found}


@pytest.mark.parametrize("script", [["cancelled"], ["lost", "lost"], ["unfetched"] * 3])
def test_what_is_lost_is_handed_over_again(monkeypatch, script):
    fake, found = run(monkeypatch, script)
    assert all(outcome.error is None for outcome in found.values())
    assert len(fake.handed) == 4 + len(script)


def test_a_batch_that_workers_die_of_is_tried_one_by_one(monkeypatch):
    fake, found = run(monkeypatch, ["killed", "finished", "finished", "finished", "killed"])
    failed = [name for name, outcome in found.items() if outcome.error is not None]
    assert len(failed) == 1
    assert isinstance(found[failed[0]].error, SoftmapError)
    assert "every worker" in str(found[failed[0]].error)
    assert [len(batch) for batch in fake.handed] == [2, 2, 2, 2, 1, 1]


def test_a_scheduler_that_went_away_is_told_all_again(monkeypatch):
    fake, found = run(monkeypatch, ["silent", "silent", "silent", "away"])
    assert fake.restorations == 1
    assert all(outcome.error is None for outcome in found.values())


def test_whoever_stops_listening_leaves_nothing_running(monkeypatch):
    items = listed([generators.random_tree(4, seed=seed) for seed in range(8)])
    fake = Fake(["finished", "silent", "silent"])
    stream = many.outcomes(items, Settings(), fake)
    next(stream)
    stream.close()
    assert fake.cancelled >= 1

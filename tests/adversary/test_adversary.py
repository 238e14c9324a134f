"""A slice of the campaign, and models it once found."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest

import softmap
from adversary import run, size_kinds
from adversary.fault_kinds import FAULT_KINDS
from adversary.kinds import KINDS, tried
from adversary.large import as_if_large
from adversary.making import on_device, picture, trial
from adversary.promises import broken, broken_together
from adversary.shrinking import shrunk
from adversary.size_kinds import SIZE_KINDS, _within
from adversary.stages import false_claims
from faults.processes import can_preload
from softmap.methods.sweeps import anneal
from softmap.methods.sweeps.anneal import coarser

SLICE = 300
FOUND = (
    20261338116,
    224528,
    231641,
    8306973,
    40022220,
    50028974,
    80015165,
    90051206,
    100047751,
    600019868,
    600032958,
    600038459,
)  # trials that broke a promise once
FOUND_IN_CAMPAIGNS = (711137856, 711054568, 777031682)  # and as the campaign makes them
FOUND_TOGETHER = (  # and in a batch
    30073782, 30083715, 30125733, 70032146, 130008914, 130014690, 150031472,
)  # fmt: skip

FOUND_ON_DEVICE = (150008763,)  # and in a run on a device


@pytest.mark.parametrize("part", range(10))
def test_no_promise_is_broken(part):
    seeds = range(part * SLICE // 10, (part + 1) * SLICE // 10)
    problems = {seed: problem for seed in seeds if (problem := broken(trial(seed)))}
    assert not problems


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in FAULT_KINDS])
def test_no_promise_is_broken_by_other_kinds(kind):
    assert not [problem for seed in range(12) if (problem := tried(kind, seed))]


def test_the_campaign_tries_every_kind(monkeypatch):
    """Stages that throw and runs that are left were kinds that no campaign tried."""
    assert {*KINDS} == {*run.OFTEN} - {run.MODELS}
    assert {*run.RARELY} <= {*run.OFTEN}
    monkeypatch.setattr(run, "tried", lambda kind, seed: None)
    counts = sum(
        (Counter(run.work((k, "cpu", (*KINDS,)))[0]) for k in range(0, 150, 10)), Counter()
    )
    for kind in KINDS:
        assert counts[kind] == 15 // run.RARELY.get(kind, 1) * run.OFTEN[kind]


@pytest.mark.parametrize("kind", SIZE_KINDS)
def test_kinds_of_sizes_can_fail(kind, monkeypatch):
    """Each finds a promise that is broken on purpose."""
    times = itertools.count()
    changes = {
        "mid-sized": (size_kinds, "integer_optimum", lambda *_: -1e6),
        "hostile files": (size_kinds, "SECONDS", -1.0),
        "environments": (size_kinds, "_answer", lambda _: next(times)),
    }
    monkeypatch.setattr(*changes[kind])
    assert all(tried(kind, seed) for seed in range(2))


def test_costly_files_that_take_memory_are_found():
    assert _within("one", lambda: bytes(size_kinds.MEMORY + 1)).endswith(" 256 MB")
    assert _within("one", lambda: bytes(1 << 20)) is None


@pytest.mark.skipif(not can_preload(), reason="needs Linux and a compiler")
def test_no_promise_is_broken_when_files_or_memory_fail():
    command = [sys.executable, run.__file__, "--count", "40", "--workers", "1", "--first", "0"]
    done = subprocess.run(
        [*command, "--kinds", *FAULT_KINDS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = r"(\d+) trials \((\d+) file faults, (\d+) memory faults\), 0 broken promises"
    counts = re.match(said, done.stdout.splitlines()[-1])
    assert min(map(int, counts.groups())) >= 20


def test_no_promise_is_broken_by_the_ways_of_large_models():
    trials = [picture(seed) for seed in range(40)]
    trials += [replace(trial(seed), large=True) for seed in range(300, 360)]
    problems = {k: problem for k, one in enumerate(trials) if (problem := broken(one))}
    assert not problems


def test_pictures_begin_with_their_blocks(monkeypatch):
    blocks = []
    monkeypatch.setattr(
        anneal, "coarser", lambda *given: blocks.append(coarser(*given)) or blocks[-1]
    )
    for seed in range(40):  # a minimum cut solves some without passes
        with as_if_large():
            softmap.solve(picture(seed).spec.model(), max_work=200)
    assert sum(each is not None for each in blocks) > 5


@pytest.mark.parametrize("seed", FOUND)
def test_what_was_found_is_mended(seed):
    assert broken(trial(seed)) is None


@pytest.mark.parametrize("seed", FOUND_IN_CAMPAIGNS)
def test_what_campaigns_found_is_mended(seed):
    assert broken(run.made(seed, "cpu")) is None


@pytest.mark.parametrize("seed", FOUND_TOGETHER)
def test_what_was_found_in_batches_is_mended(seed, monkeypatch):
    monkeypatch.setenv("SOFTMAP_CUDA", "host")
    assert broken_together([trial(seed).spec]) is None


@pytest.mark.parametrize("seed", FOUND_ON_DEVICE)
def test_what_was_found_on_a_device_is_mended(seed, monkeypatch):
    monkeypatch.setenv("SOFTMAP_CUDA", "host")
    assert broken(on_device(trial(seed))) is None


def test_no_promise_is_broken_by_the_kernels_of_a_device(monkeypatch):
    monkeypatch.setenv("SOFTMAP_CUDA", "host")
    trials = [on_device(trial(seed)) for seed in range(500, 530)]
    problems = {k: problem for k, one in enumerate(trials) if (problem := broken(one))}
    assert not problems
    assert broken_together([one.spec for one in trials]) is None


def test_what_is_found_is_made_smaller(monkeypatch):
    """A promise that every model with a negative cost breaks is shown by a model of one cost."""

    def complains(candidate):
        return "negative" if min(candidate.spec.numbers()) < 0 else None

    monkeypatch.setattr("adversary.shrinking.broken", complains)
    first = next(t for t in map(trial, range(100)) if complains(t) and len(t.spec.edges) > 3)
    small = shrunk(first, "negative", tries=5000)
    assert len(small.spec.edges) <= 1
    assert sum(map(len, small.spec.unary)) <= 3
    names: dict = {}
    exec(small.spec.code(), names)
    assert names["model"].fingerprint() == small.spec.model().fingerprint()


@pytest.mark.parametrize("part", range(4))
def test_no_stage_says_anything_false(part):
    assert not [claim for seed in range(30 * part, 30 * part + 30) for claim in false_claims(seed)]

"""Parts put together again for an exact search: the model, λ, and what the search proves."""

import math
import os
import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap import InfeasibleModel, Model, NotEnoughMemory, OptionError, distributed, generators
from softmap.model.partition import partition
from softmap.relaxation.flat import flat_lam, flatten
from softmap.scale import whole
from softmap.scale.parts import cut_model
from softmap.scale.processes import Alone
from softmap.solving.trace import StageName, Status
from support.oracles import brute_force
from support.ranks import together
from support.strategies import models
from support.whole_runs import labels_of, lam_of

HARD = generators.erdos_renyi(40, 3, c=2.5, seed=3)  # its relaxation proves nothing


@given(models(), st.integers(1, 4), st.integers(1, 3), st.integers(0, 9))
def test_pieces_of_all_processes_are_the_model(model, parts, size, seed):
    if len(model.auxiliaries):
        return
    rng = np.random.default_rng(seed)
    lam, labels = rng.normal(size=int(model.half_offset[-1])), rng.integers(0, model.num_labels)
    part = partition(model, min(parts, model.n), "own")
    _, cut = cut_model(model, part)

    def one(comm):
        mine = [p for p in cut if p.number % size == comm.rank]
        pieces = [whole.own_piece(p, local_lam(model, p, lam), labels[p.nodes]) for p in mine]
        return whole.assembled(comm, pieces, model.constant)

    expected = flatten(model)
    for found in together(size, one):
        for name in ("num_labels", "unary", "scope_start", "scope", "tables"):
            assert np.array_equal(getattr(found.model, name), getattr(expected, name)), name
        assert found.model.constant == expected.constant
        assert np.array_equal(found.lam, flat_lam(model, lam))
        assert np.array_equal(found.labels, labels)
    assert sum(map(whole.entries, cut)) == expected.unary.size + expected.tables.size


def local_lam(model, part, lam):
    """λ of the half-edges of a part; NaN at edges that belong to others."""
    blocks = np.split(lam, model.half_offset[1:-1])
    halves = [[blocks[2 * e], blocks[2 * e + 1]] for e in part.edges.tolist()]
    masked = [
        np.concatenate(pair) if own else np.full(sum(map(len, pair)), np.nan)
        for pair, own in zip(halves, part.counted, strict=True)
    ]
    return np.concatenate([*masked, np.zeros(0)])


@given(models(), st.integers(1, 4))
def test_the_optimum_is_that_of_brute_force(model, parts):
    if len(model.auxiliaries):
        return
    options = {"goal": "map", "parts": parts, "partition": "own", "max_passes": 3, "threads": 1}
    least = brute_force(model)[0]
    if not math.isfinite(least):
        with pytest.raises(InfeasibleModel):
            distributed.solve(model, **options)
        return
    found = distributed.solve(model, **options)
    assert found.status is Status.OPTIMAL or found.relative_gap <= 1e-6
    assert found.energy == model.energy(labels_of(model, [found.labels]))
    assert found.energy == pytest.approx(least, rel=1e-6, abs=1e-9)
    assert found.bound <= least + 1e-9 * (1 + abs(least))


def test_the_search_says_what_it_proves():
    expected = softmap.solve(HARD)
    assert expected.status is Status.OPTIMAL
    rows = []
    found = distributed.solve(HARD, goal="map", parts=3, threads=1, on_check=rows.append)
    relaxed = distributed.solve(HARD, parts=3, threads=1)
    assert found.status is Status.OPTIMAL
    assert found.energy == pytest.approx(expected.energy, rel=1e-9)
    assert found.nodes > 0 == relaxed.nodes
    assert found.lp_bound == relaxed.bound == relaxed.lp_bound < found.bound <= found.energy
    assert found.relative_lp_gap == relaxed.relative_lp_gap
    assert found.relative_gap <= 1e-9
    proved = softmap.certificate(HARD, lam_of(HARD, [found.lam]), 1.0).bound
    assert found.lp_bound == pytest.approx(proved, rel=1e-9)
    last = rows[-1]
    assert last is found.trace[-1]
    assert (last.stage, last.bound, last.lp_bound) == (
        StageName.SEARCH, found.bound, found.lp_bound,
    )  # fmt: skip


def test_a_time_limit_is_kept_and_its_bound_holds():
    model = generators.erdos_renyi(300, 4, c=4.0, seed=1)
    began = time.perf_counter()
    found = distributed.solve(model, goal="map", lp_gap=1e-1, time_limit=3.0, threads=1)
    assert time.perf_counter() - began < 6.0  # not a measure of speed: the search takes hours
    assert found.status is Status.TIME_LIMIT
    assert found.lp_bound <= found.bound <= found.energy
    assert found.energy == model.energy(labels_of(model, [found.labels]))


@pytest.mark.skipif(os.name == "nt", reason="Ctrl-C is no signal to send there")
def test_ctrl_c_ends_the_search_with_what_was_found(monkeypatch):
    class Interrupted(whole.SharedSearch):
        def run(self, time_limit):
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            return super().run(time_limit)

    monkeypatch.setattr(whole, "SharedSearch", Interrupted)
    model = generators.erdos_renyi(300, 4, c=4.0, seed=1)
    began = time.perf_counter()
    found = distributed.solve(model, goal="map", max_passes=20, time_limit=60.0, threads=1)
    assert time.perf_counter() - began < 30
    assert found.status is Status.INTERRUPTED
    assert found.lp_bound <= found.bound <= found.energy
    assert found.energy == model.energy(labels_of(model, [found.labels]))


def test_constraints_that_only_a_search_contradicts():
    """Three variables that must all differ, two labels: arc consistency sees no contradiction."""
    differ = np.where(np.eye(2), np.inf, [[0.0, 0.3], [0.1, 0.0]])
    model = Model(np.zeros((3, 2)), [(0, 1), (1, 2), (0, 2)], [differ] * 3)
    with pytest.raises(InfeasibleModel, match="exact search"):
        distributed.solve(model, goal="map", parts=2, max_passes=3, threads=1)


def test_a_checkpoint_of_the_relaxation_is_searched(tmp_path):
    distributed.solve(HARD, parts=3, threads=1, checkpoint=tmp_path / "run")
    found = distributed.resume(tmp_path / "run", HARD, goal="map", threads=1)
    assert found.status is Status.OPTIMAL
    assert found.nodes > 0


def test_models_that_no_process_can_hold_are_refused(monkeypatch):
    with pytest.raises(OptionError, match="goal"):
        distributed.solve(HARD, goal="optimal")
    with pytest.raises(OptionError, match="at most 60,000,000 table entries"):
        whole.require_room(Alone(), 60_000_001, 1)
    assert 0 < whole.require_room(Alone(), 1000, 1) < 0.1
    monkeypatch.setattr(whole, "available_memory", lambda: 1000)
    with pytest.raises(NotEnoughMemory, match="fewer processes"):
        distributed.solve(HARD, goal="map", threads=1)

"""The deadline that compiled loops look at: its laws, and labels that a stopped loop leaves."""

import math
import os
import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmap import core, generators
from softmap.arguments import seeded
from softmap.errors import InfeasibleModel
from softmap.labels import cheapest, decide, decode, first_labels
from softmap.labels.annealing import LabelAnnealing
from softmap.labels.cuts import Fusion
from softmap.labels.energies import energy_of
from softmap.labels.improving import (
    Neighbourhoods,
    best_labelling,
    improved_by_forests,
    strides,
)
from softmap.model.layout import layout
from softmap.relaxation.consistency import arc_consistency
from softmap.relaxation.flat import flatten
from support.deadlines import stopping
from support.strategies import models, seeds

LOOKS = st.integers(1, 400)


def test_the_clock_is_that_of_perf_counter():
    before = time.perf_counter()
    end = core.Deadline(5.0).end
    assert before + 4.999 < end < time.perf_counter() + 5.001
    assert core.Deadline().end == math.inf
    assert core.Deadline().left == math.inf
    assert not core.Deadline().passed


@given(st.floats(-10.0, 10.0), st.floats(-10.0, 10.0))
def test_a_child_ends_no_later(own, earlier):
    parent = core.Deadline(own)
    child = parent.at(parent.end + earlier)
    assert child.end == pytest.approx(min(parent.end, parent.end + earlier), abs=1e-6)
    assert parent.within(earlier).end <= parent.end
    for deadline in (parent, child):
        assert deadline.passed == (deadline.end <= time.perf_counter())
        assert 0.0 <= deadline.left <= max(0.0, own)


@pytest.mark.parametrize("who", ["parent", "child"])
def test_all_of_a_family_stop_together(who):
    parent = core.Deadline()
    family = {"parent": parent, "child": parent.within(100.0), "other": parent.at(math.inf)}
    assert not any(deadline.passed or deadline.stopped for deadline in family.values())
    family[who].stop()
    assert all(deadline.passed and deadline.stopped for deadline in family.values())
    assert all(deadline.left == 0.0 for deadline in family.values())
    assert not core.Deadline().stopped


def test_the_end_may_be_set_later():
    deadline = core.Deadline()
    deadline.end = time.perf_counter() - 1.0
    assert deadline.passed
    deadline.end = math.inf
    assert not deadline.passed


def test_looks_are_counted():
    deadline = stopping(3)
    assert [deadline.passed for _ in range(5)] == [False, False, True, True, True]


def endless():
    """An annealing that only a deadline ends."""
    return LabelAnnealing(flatten(generators.random_grid(20, 20, 3, seed=1).network))


def test_another_thread_stops_a_loop():
    deadline = core.Deadline()
    timer = threading.Timer(0.05, deadline.stop)
    timer.start()
    endless().improve(np.zeros(400, dtype=np.int64), deadline=deadline)
    timer.join()
    assert deadline.stopped


def test_a_handler_of_signals_stops_a_loop():
    deadline = core.Deadline()
    before = signal.signal(signal.SIGINT, lambda *_: deadline.stop())
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        endless().improve(np.zeros(400, dtype=np.int64), deadline=deadline)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert deadline.stopped


def test_what_a_handler_raises_is_raised_after_the_loop():
    deadline = core.Deadline()
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        endless().improve(np.zeros(400, dtype=np.int64), deadline=deadline)
    timer.join()
    assert deadline.stopped


def valid(model, labels):
    """Whether these are labels of the variables."""
    return bool(((labels >= 0) & (labels < model.network.num_labels[: len(labels)])).all())


@given(models(max_n=8), LOOKS, seeds)
def test_labels_of_a_stopped_decoder_are_labels(model, looks, seed):
    rng = np.random.default_rng(seed)
    network = model.network
    lam, mu = rng.normal(size=network.half_size), rng.random(network.unary.size)
    assert valid(model, decode(model.network, lam, deadline=stopping(looks)))
    assert valid(model, decide(model.network, mu, stopping(looks)))
    np.testing.assert_array_equal(
        decode(model.network, lam, deadline=core.Deadline()), decode(model.network, lam)
    )
    if not len(model.network.auxiliaries):
        assert valid(model, first_labels(model.network, deadline=stopping(looks)))
        np.testing.assert_array_equal(
            first_labels(model.network, deadline=core.Deadline()), first_labels(model.network)
        )


@given(models(max_n=8), LOOKS, seeds)
def test_a_stopped_search_raises_no_energy(model, looks, seed):
    rng = np.random.default_rng(seed)
    start = rng.integers(0, model.network.num_labels[: model.network.num_variables])
    known = start, energy_of(model.network, start)
    found = [best_labelling(model.network, [start], deadline=stopping(looks))[0]]
    found.append(improved_by_forests(model.network, known, 9, 1.0, seed, 1, stopping(looks))[0])
    found.append(
        LabelAnnealing(flatten(model.network), seed).improve(start, deadline=stopping(looks))
    )
    if np.isfinite(known[1]) and model.m:
        found.append(
            Neighbourhoods(model.network, seed=seed).improve(start, deadline=stopping(looks))
        )
    for labels in found:
        assert valid(model, labels)
        assert energy_of(model.network, labels) <= known[1]


@given(st.integers(1, 3000), seeds, st.integers(1, 2))
def test_stopped_moves_of_large_models_raise_no_energy(looks, seed, threads):
    model = generators.potts_grid(100, 100, 3, seed=seed % 7)
    start = cheapest(model.network, model.unary)
    energy = model.energy(start)
    moved = start.copy()
    core.independent_modes(layout(model.network), moved, 50, threads, stopping(looks))
    assert model.energy(moved) <= energy + 1e-9
    moved = start.copy()
    core.forest_rounds(layout(model.network), moved, seeded(seed), 3, 0.0, threads, stopping(looks))
    assert model.energy(moved) <= energy + 1e-9
    moved = start.copy()
    changed = Fusion(model.network, threads=threads).fuse(
        moved, np.ones(model.n), deadline=stopping(20 * looks)
    )
    assert (changed < 0) == np.array_equal(moved, start) or changed == 0
    assert model.energy(moved) <= energy + 1e-9


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("looks", [1, 40, 20_000, 60_000])
def test_stopped_forests_of_random_graphs_raise_no_energy(threads, looks):
    model = generators.erdos_renyi(20_000, 2, c=0.5, seed=1)
    labels = cheapest(model.network, model.unary)
    energy = model.energy(labels)
    core.forest_rounds(layout(model.network), labels, seeded(1), 2, 0.0, threads, stopping(looks))
    assert model.energy(labels) <= energy + 1e-6


def test_a_search_goes_on_where_it_was_stopped():
    grid = generators.random_grid(12, 12, 3, seed=1)
    arguments = layout(grid.network), strides(grid.network), 144, seeded(7)
    often, once = (core.Neighbourhoods(*arguments, heat=1.0) for _ in range(2))
    start = np.zeros(144, dtype=np.int64)
    parts, whole, looks = start.copy(), start.copy(), 1
    while often.improve(parts, 1 << 62, deadline=stopping(looks))[1] < 10:
        looks = looks % 97 + 5
    done = 0
    while done < 10:
        _, done, _ = once.improve(whole, 1)
    np.testing.assert_array_equal(parts, whole)


@given(models(max_n=8, hard=True), LOOKS)
def test_stopped_arc_consistency_removes_no_state_too_many(model, looks):
    try:
        whole = arc_consistency(model)
    except InfeasibleModel:
        return
    some = arc_consistency(model, deadline=stopping(looks))
    assert (some >= whole).all()
    np.testing.assert_array_equal(arc_consistency(model, deadline=core.Deadline()), whole)

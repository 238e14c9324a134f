"""Memory is said beforehand, and a run that would need more than there is does not begin."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import softmap
from softmap import machine
from softmap.drive import record
from softmap.drive.loop import Run
from softmap.later import unmade
from softmap.methods.sweeps import chains, planning
from softmap.run import memory
from softmap.run.memory import MemoryEstimate, memory_needed
from softmap.tuning import Tuning
from support.oracles import violation


def test_a_run_that_does_not_fit_says_how_much_it_needs(monkeypatch):
    model = softmap.generators.potts_grid(150, 150, 8, seed=0)
    monkeypatch.setattr(memory, "available_memory", lambda: 1_000_000)
    with pytest.raises(softmap.NotEnoughMemory, match="bytes of memory; 1,000,000 are") as caught:
        softmap.solve(model, max_work=1)
    assert isinstance(caught.value, MemoryError)
    assert caught.value.needed == memory_needed(model.network) - model.network.nbytes
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.needed, again.available) == (caught.value.needed, 1_000_000)
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    assert softmap.solve(model, max_work=1).bound <= softmap.solve(model, max_work=1).energy


def test_a_limit_is_kept_by_refusing_what_does_not_fit():
    model = softmap.generators.potts_grid(60, 60, 16, seed=0)
    needed, always = memory_needed(model.network), MemoryEstimate().small
    with pytest.raises(softmap.NotEnoughMemory, match=r"about 1,[78]\d\d of its 3,600") as caught:
        softmap.solve(model, memory_limit=needed // 2 + always)
    assert caught.value.needed == needed + always
    with pytest.raises(softmap.NotEnoughMemory, match="a run of any model takes"):
        softmap.solve(model, memory_limit=0)
    assert softmap.solve(model, max_work=1, memory_limit=needed + always).energy < np.inf


PEAK = """
import gc, sys
import softmap
from softmap.run import memory
from softmap.drive import record
def words(path, name):
    return next(int(line.split()[1]) << 10 for line in open(path) if line.startswith(name))
options = {"goal": "map", "lp_gap": 0.0, "gap": 0.0, "threads": 1}
small = softmap.generators.random_grid(6, 6, 3, seed=1)
softmap.solve(small, **options, time_limit=0.2)  # imports what there is to import
made = softmap.generators.random_grid(*map(int, sys.argv[1:4]), seed=0)
gc.collect()
before = words("/proc/self/status", "VmRSS") - made.network.nbytes
for factor, seconds in ((1.0, 0.6), (30.0, 1.2)):
    limit = int(factor * memory.memory_needed(made.network)) + memory.MemoryEstimate().small
    softmap.solve(made, memory_limit=limit, time_limit=seconds, **options)
    print(words("/proc/self/status", "VmHWM") - before, limit)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
@pytest.mark.parametrize("shape", [(60, 60, 12), (150, 150, 3)])
def test_a_limit_is_kept_in_all_stages(shape):
    """By the peaks of a process of its own; with more room, more stages take part."""
    command = [sys.executable, "-c", PEAK, *map(str, shape)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    tight, roomy = (tuple(map(int, line.split())) for line in said.splitlines())
    assert tight[0] <= tight[1]
    assert roomy[0] <= roomy[1]


def test_more_pixels_need_more():
    small, large = (softmap.generators.potts_grid(n, n, 4, seed=0) for n in (40, 80))
    assert 3.9 < memory_needed(large.network) / memory_needed(small.network) < 4.3


def _complete(nodes: int, labels: int) -> softmap.Model:
    rng, edges = np.random.default_rng(0), np.argwhere(np.triu(np.ones((nodes, nodes)), 1))
    costs = softmap.Potts(rng.random(len(edges)) / nodes)
    return softmap.Model(rng.random((nodes, labels)), edges, costs)


@pytest.fixture
def traced(monkeypatch):
    """No array is mapped: `tracemalloc` does not see those."""
    monkeypatch.setattr(planning, "PLANNING", replace(planning.PLANNING, mapped=1 << 62))


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("spare", [0, 1 << 23])
def test_a_large_model_has_no_copy_of_messages_but_the_best(spare):
    """Both directions, one direction for momentum, one of the best bound; few nodes, many edges.

    The last two are in single precision; a small model has two bounds, in double precision.
    """
    copies = (2 * 8 + 4 + (2 * 8 if spare else 4)) / 8
    model, peaks = _complete(40, 192), []
    numbers = Tuning(chains.ChainNumbers(spare=spare))
    options = {"goal": "lp", "lp_gap": 0, "gap": 0, "tuning": numbers}
    softmap.solve(_complete(4, 3), **options, max_work=1000)  # imports what there is to import

    def look(_):
        peaks.append(tracemalloc.get_traced_memory()[1])

    tracemalloc.start()
    try:
        softmap.solve(model, **options, max_work=2 * model.m * 25, on_snapshot=look)
    finally:
        tracemalloc.stop()
    one_direction = model.m * 192 * 8
    assert copies < max(peaks) / one_direction < copies + 0.9


def test_what_the_machine_says(monkeypatch, tmp_path):
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:   77 kB\n")
    monkeypatch.setattr(machine, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(machine, "GROUP", tmp_path)
    assert machine.available_memory() == 77 * 1024
    (tmp_path / "memory.max").write_text("9000\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert machine.available_memory() == 8000
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.available_memory() == 77 * 1024
    monkeypatch.setattr(machine, "MEMINFO", tmp_path / "none")
    assert machine.available_memory() is None


def _made(name: str) -> softmap.Model:
    """Grids that take some megabytes, whose other costs are not what counts."""
    rng, generators = np.random.default_rng(0), softmap.generators
    if name == "potts":
        return generators.potts_grid(72, 72, 24, seed=0)
    if name == "linear":
        return generators.stereo_grid(96, 96, 24, seed=0)
    if name == "tables":
        return generators.random_grid(96, 96, 6, seed=0)
    edges = generators.grid_edges(72, 72)
    return softmap.Model(rng.random((72 * 72, 24)), edges, softmap.TruncatedQuadratic(0.1, 9.0))


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("name", ["potts", "linear", "quadratic", "tables"])
def test_what_is_said_is_what_it_takes(name):
    model, options = _made(name), {"goal": "lp", "lp_gap": 0, "gap": 0}
    softmap.solve(_complete(4, 3), **options, max_work=1000)  # imports what there is to import
    tracemalloc.start()
    try:
        softmap.solve(model, **options, max_work=2 * model.m * 25)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    said = memory_needed(model.network) - model.network.nbytes
    assert 0.75 < peak / said < 1.2


def test_the_point_of_a_potts_model_is_the_same_without_messages():
    model = softmap.generators.potts_grid(12, 12, 5, seed=1)
    found = softmap.solve(model, goal="lp", lp_gap=1e-3)
    assert found.point.coupling is None
    made = found.point.make()
    assert made.cost == pytest.approx(found.primal, rel=1e-12)
    assert violation(model, made.nodes, made.edges).max < 1e-12
    assert np.array_equal(made.edges, found.edge_marginals)


def test_a_point_is_the_same_whenever_its_messages_are_made():
    """At once, when somebody asks, on its way to another process, and in a thread."""
    edges, rng = softmap.generators.grid_edges(7, 8), np.random.default_rng(1)
    costs = softmap.Tables(rng.normal(size=(len(edges), 7, 7)))
    model = softmap.Model(rng.random((56, 7)), edges, costs)
    options = {"goal": "lp", "lp_gap": 1e-3}
    at_once = softmap.solve(model, **options)
    options["tuning"] = Tuning(MemoryEstimate(lazy_entries=0))
    asked, sent, beside = (softmap.solve(model, **options) for _ in range(3))
    assert callable(unmade(asked.point, "coupling"))
    others = [asked.point, pickle.loads(pickle.dumps(sent)).point]
    with ThreadPoolExecutor(2) as threads:
        others += threads.map(lambda _: copy.copy(beside.point), range(2))
    for point in others:
        np.testing.assert_array_equal(point.coupling, at_once.point.coupling)
    assert asked.point.make().cost == pytest.approx(at_once.primal, rel=1e-12)
    assert softmap.verify(asked, model).holds


def test_labels_are_priced_again_after_memory_has_ended(monkeypatch):
    """The result of the exception has the best labels with their energy."""
    model = softmap.generators.erdos_renyi(8, 3, seed=1)
    model = model.replace(constant=5.0)  # the run solves another model, without it
    price, failures = record.energy_of, iter([MemoryError("std::bad_alloc")])

    def failing(*args):
        for error in failures:
            raise error
        return price(*args)

    monkeypatch.setattr(record, "energy_of", failing)
    with pytest.raises(MemoryError) as caught:
        softmap.solve(model, threads=1)
    result = caught.value.result
    assert result.found
    assert result.energy == model.energy(result.labels)
    assert softmap.verify(result).holds


def test_a_run_that_cannot_start_leaves_no_temporary_folder(monkeypatch, tmp_path):
    def failing(run):
        raise MemoryError("std::bad_alloc")

    monkeypatch.setattr(Run, "_first_answer", failing)
    model = softmap.generators.random_tree(5, seed=1)
    with pytest.raises(MemoryError):
        softmap.solve(model, proof=tmp_path / "proof")
    assert not list(tmp_path.iterdir())


def test_a_run_says_that_the_memory_limit_ends_it():
    model = softmap.generators.random_grid(9, 9, 8, seed=2)
    least = memory_needed(model.network) + MemoryEstimate().small
    limited = softmap.solve(model, memory_limit=least)
    assert limited.status is softmap.Status.MEMORY_LIMIT
    assert "memory limit" in str(limited.status)
    assert softmap.verify(limited).holds

"""The tightening stage: valid bounds, certificates that hold, proofs where clusters suffice."""

import os
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

import softmap
from softmap import lp
from softmap.errors import InfeasibleModel
from softmap.proof.tightening.clusters import Adjacency, short_cycles
from softmap.proof.tightening.labels import tree_labels
from softmap.proof.tightening.regions import build
from softmap.relaxation.bounds import dual_bound
from softmap.relaxation.consistency import tighten
from softmap.solving.budget import Budget, Share, Task
from softmap.solving.options import Options
from softmap.solving.proof import ProofKind
from softmap.solving.schedule import _History
from softmap.solving.stages import TUNING as STAGES
from softmap.solving.stages import Tighten
from softmap.solving.tighten import TUNING, Tightening
from softmap.solving.times import TurnClock
from support.oracles import brute_force
from support.small_models import cases, random_labels, random_model
from support.stage_runs import begun, finish, tightened, tightening


def start(model):
    return np.zeros(int(model.half_offset[-1])), np.zeros(model.num_variables, dtype=np.int64)


@pytest.mark.parametrize(("family", "seed"), cases()[::4])
def test_bounds_and_labels_against_brute_force(family, seed):
    model = random_model(family, seed)
    lam = np.zeros(int(model.half_offset[-1]))
    found, _ = tightened(tighten(model), lam, random_labels(model, seed), max_work=20_000)
    optimum = brute_force(model)[0]
    assert found.bound <= optimum + 1e-9 <= found.energy + 2e-9
    assert found.energy == model.energy(found.labels)
    if found.proof.kind is ProofKind.TIGHTENED:
        tight = build(model, found.proof.clusters)
        assert dual_bound(tight.model, found.proof.lam) == pytest.approx(found.bound, abs=1e-9)
    assert dual_bound(model, lam) <= found.bound


def test_a_loose_grid_is_proved_optimal():
    rng = np.random.default_rng(5)
    edges = softmap.generators.grid_edges(5, 5)
    coupling = rng.normal(size=(len(edges), 1, 1)) * np.array([[1.0, -1.0], [-1.0, 1.0]])
    model = softmap.Model(rng.normal(size=(25, 2)) * 0.1, edges, softmap.Tables(coupling))
    loose = lp.solve(model).value
    found, _ = tightened(model, *start(model), max_work=5_000_000)
    assert found.energy - found.bound <= 1e-6 * abs(found.bound)
    assert found.bound > loose + 0.1


def test_unions_wait_until_passes_over_cycles_gain_nothing(monkeypatch):
    seen, grow = [], Tightening.grow

    def noted(run):
        seen.append((tuple(run._left_to_try), run.at.smoothing / run._gap))
        return (yield from grow(run))

    monkeypatch.setattr(Tightening, "grow", noted)
    rng, edges = np.random.default_rng(2), softmap.generators.grid_edges(10, 10)
    unary = 0.1 * rng.normal(size=(100, 2))
    coupling = rng.normal(size=(len(edges), 1, 1)) * np.array([[1.0, -1.0], [-1.0, 1.0]])
    model = softmap.Model(unary, edges, softmap.Tables(coupling))
    found, _ = tightened(model, *start(model), max_work=3_000_000)
    assert [left for left, _ in seen[1:]] == [("cycles", "unions"), ("unions",)]
    assert TUNING.overripe < seen[1][1] < TUNING.ripe
    assert seen[2][1] < TUNING.overripe
    assert max(map(len, found.proof.clusters)) > 4  # unions of faces
    assert found.energy - found.bound <= 1e-6 * abs(found.bound)


def test_the_first_slice_is_expected_to_take_its_set_up():
    """The time of a bound may be much too short an estimate: a limit of 20 s took 32 s."""
    model = softmap.generators.erdos_renyi(30, seed=2)
    best = begun(model, *start(model))
    stage, budget = Tighten(best.problem, Options()), Budget(time_limit=60.0)
    budget.note(Task.BOUND, 1e-9)
    assert stage.least(budget) == STAGES.clustering_seconds * model.half_size
    stage(best, Share(budget, time.perf_counter() + 0.01))
    assert stage.least(budget) < 1e-6


def test_what_is_proved_never_falls_back():
    model = softmap.generators.erdos_renyi(30, seed=2)
    run, bounds, energies = tightening(model, *start(model)), [], []
    assert finish(run.grow())
    for _ in range(10):
        finish(run.check())
        bounds.append(run.best.bound)
        energies.append(run.best.energy)
    assert bounds == sorted(bounds)
    assert energies == sorted(energies, reverse=True)
    assert bounds[0] < bounds[-1]


def test_same_work_same_result():
    model = softmap.generators.erdos_renyi(30, seed=3)
    a, b = (tightened(model, *start(model), max_work=200_000)[0] for _ in range(2))
    assert a.bound == b.bound
    assert np.array_equal(a.labels, b.labels)


def test_trees_have_nothing_to_add():
    model = softmap.generators.random_tree(20, 3, seed=1)
    found, stage = tightened(model, *start(model), max_work=100_000)
    assert not stage.active
    assert found.proof.kind is ProofKind.RELAXATION


def test_a_triangle_that_cannot_be_coloured_is_infeasible():
    unequal = softmap.Tables(np.array([[[np.inf, 0.0], [0.0, np.inf]]] * 3))
    model = softmap.Model(np.zeros((3, 2)), [[0, 1], [1, 2], [0, 2]], unequal)
    run = tightening(model, *start(model))
    with pytest.raises(InfeasibleModel):
        finish(run.grow())


def test_the_tree_of_pairs_turns_domains_over():
    # two variables that must differ, each undecided by itself
    edges = [[0, 1], [1, 2], [0, 2]]
    model = softmap.Model(np.zeros((3, 2)), edges, softmap.Potts([-1.0, -1.0, 1.0]))
    tight = build(model, [(0, 1, 2)])
    nodes = np.full(tight.model.unary.size, 0.5)
    joint = np.zeros((2, 2, 2))
    joint[0, 1, 0] = joint[1, 0, 1] = 0.5
    for p, (i, j) in enumerate(tight.pairs.tolist()):
        other = ({0, 1, 2} - {i, j}).pop()
        nodes[tight.model.node_slice(tight.first_pair + p)] = joint.sum(axis=other).ravel()
    labels = tree_labels(tight, nodes, np.zeros(3, dtype=np.int64))
    assert model.energy(labels) == -2.0


def test_passes_are_expected_to_take_longer_once_clusters_were_added(monkeypatch):
    model = softmap.generators.potts_grid(6, 6, 3, weight=0.5, seed=4)
    run = tightening(model, *start(model))
    finish(run._pass(20))
    monkeypatch.setattr(run, "_pass", lambda count: iter(()))
    seconds, size = run.times.step, run.tight.model.half_size
    assert finish(run.grow())
    assert run.tight.model.half_size > size
    assert run.times.step == pytest.approx(seconds * run.tight.model.half_size / size)


def stopped_run(model, clock, *, threads=1, work=300_000):
    """The stage after an amount of work, in slices that `clock` ends."""
    best = begun(model, *start(model))
    run = Tightening(replace(best.problem, threads=threads), best)
    for _ in range(100_000):
        if run.work >= work or not run.go_on(clock(), work, 0.0):
            return run
    raise AssertionError("the stage does not progress")


def same(a, b):
    lams = [run.best.proof.lam for run in (a, b)]
    return a.tight.clusters == b.tight.clusters and np.array_equal(*lams)


def test_slices_and_limits_do_not_change_the_steps():
    model = softmap.generators.erdos_renyi(40, seed=3)
    whole = stopped_run(model, TurnClock)
    assert len(whole.tight.clusters) > 0
    now = time.perf_counter()
    slices = stopped_run(model, lambda: TurnClock(time.perf_counter() + 1e-4, now + 1e6))
    assert same(whole, slices)


def test_any_number_of_threads_takes_the_same_steps():
    model = softmap.generators.erdos_renyi(300, seed=3)
    one, three = (stopped_run(model, TurnClock, threads=t, work=2_000_000) for t in (1, 3))
    assert len(one.tight.clusters) > 1000
    assert same(one, three)
    assert np.array_equal(one.best.labels, three.best.labels)


def test_an_interrupt_ends_a_slice_before_the_next_step():
    model = softmap.generators.erdos_renyi(40, seed=3)
    asked = []

    def stopped():
        asked.append(run.work)
        return len(asked) > 3

    best = begun(model, *start(model))
    run = Tightening(best.problem, best)
    assert run.go_on(TurnClock(stopped=stopped), np.inf, 0.0)
    assert len(asked) == 4
    assert run.work <= 3 * 2 * model.m


def test_a_run_that_is_nearly_over_adds_no_clusters():
    model = softmap.generators.erdos_renyi(40, seed=3)
    run = tightening(model, *start(model))
    run.times.clock, run.times.step = TurnClock(end=time.perf_counter() + 1.0), 0.1
    assert not finish(run.grow())
    assert not run.tight.clusters


def test_a_stage_that_cannot_do_another_pass_before_the_end_is_over():
    model = softmap.generators.erdos_renyi(200, seed=3)
    best = begun(model, *start(model))
    stage = Tighten(best.problem, Options())
    stage(best, Share(Budget(), work=1_000_000))
    assert stage.active
    assert best.proof.clusters
    before = best.bound
    stage(best, Share(Budget(time_limit=1e-6), time.perf_counter() + 0.05))
    assert not stage.active  # otherwise it gets slices that it cannot use, again and again
    assert best.bound == before


def test_the_search_for_cycles_is_done_in_steps():
    """Twenty variables with an edge to all others: 14 million paths of two edges."""
    hubs, n = 20, 820
    edges = [(i, j) for i in range(hubs) for j in range(hubs, n)]
    pairs = np.array(edges, dtype=np.int64)
    steps = short_cycles(Adjacency.of(pairs, n), 4)
    assert len(list(steps)) > 5


def test_time_before_the_new_clusters_gain_is_no_time_in_vain():
    history = _History()
    history.note(1.0, 1.0, 1.0, 0.0, fell=False)
    assert history.idle == history.vain == 0.0
    history.note(1.0, 1.0, 0.25, 0.0, fell=False)
    assert history.idle == history.vain == 0.75


def test_no_slice_begins_with_a_long_import():
    code = """
import sys, numpy as np, softmap
from support.stage_runs import tightened
model = softmap.generators.erdos_renyi(60, seed=1)
lam, labels = np.zeros(int(model.half_offset[-1])), np.zeros(60, dtype=np.int64)
assert tightened(model, lam, labels, max_work=300_000)[0].proof.clusters
assert "scipy" not in sys.modules
"""
    path = os.pathsep.join(sys.path)
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"PYTHONPATH": path})

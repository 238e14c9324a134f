"""The tightening stage: valid bounds, certificates that hold, proofs where clusters suffice."""

import itertools
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
from softmap.relaxation.bounds import dual_bound
from softmap.relaxation.consistency import tighten
from softmap.run.budget import Budget
from softmap.run.evidence import Stated
from softmap.run.options import Options
from softmap.run.subsolver import Share
from softmap.subsolvers.clusters.cluster_labels import tree_labels
from softmap.subsolvers.clusters.cluster_numbers import ClusterSizes, TightenNumbers
from softmap.subsolvers.clusters.clusters import Adjacency, short_cycles
from softmap.subsolvers.clusters.regions import build
from softmap.subsolvers.clusters.tighten import Tighten
from softmap.subsolvers.clusters.tightening import Tightening
from softmap.tuning import TUNING
from support.oracles import brute_force
from support.small_models import cases, random_labels, random_model
from support.stage_runs import begun, finish, tightened, tightening


def start(model):
    return np.zeros(int(model.network.half_offset[-1])), np.zeros(
        model.network.num_variables, dtype=np.int64
    )


@pytest.mark.parametrize(("family", "seed"), cases()[::4])
def test_bounds_and_labels_against_brute_force(family, seed):
    model = random_model(family, seed)
    lam = np.zeros(int(model.network.half_offset[-1]))
    found, _ = tightened(tighten(model), lam, random_labels(model, seed), max_work=20_000)
    optimum = brute_force(model)[0]
    assert found.bound <= optimum + 1e-9 <= found.energy + 2e-9
    assert found.energy == model.energy(found.labels)
    if found.evidence.kind == "tightened":
        tight = build(model.network, found.evidence.clusters)
        assert dual_bound(tight.model, found.evidence.lam) == pytest.approx(found.bound, abs=1e-9)
    assert dual_bound(model.network, lam) <= found.bound


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
    assert all(smoothing < TightenNumbers().smoothing for _, smoothing in seen[1:])
    assert max(map(len, found.evidence.clusters)) > 4  # unions of faces
    assert found.energy - found.bound <= 1e-6 * abs(found.bound)


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
    found, active = tightened(model, *start(model), max_work=100_000)
    assert not active
    assert found.evidence.kind == "relaxation"


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
    tight = build(model.network, [(0, 1, 2)])
    nodes = np.full(tight.model.unary.size, 0.5)
    joint = np.zeros((2, 2, 2))
    joint[0, 1, 0] = joint[1, 0, 1] = 0.5
    for p, (i, j) in enumerate(tight.pairs.tolist()):
        other = ({0, 1, 2} - {i, j}).pop()
        nodes[tight.model.node_slice(tight.first_pair + p)] = joint.sum(axis=other).ravel()
    labels = tree_labels(tight, nodes, np.zeros(3, dtype=np.int64))
    assert model.energy(labels) == -2.0


def stopped_run(model, *, seconds=np.inf, threads=1, work=300_000):
    """The stage after an amount of work, in slices of some seconds."""
    best, whole = begun(model, *start(model)), Share(Budget())
    run = Tightening(replace(best.problem, threads=threads), best, TUNING)
    for _ in range(100_000):
        if run.work >= work or not run.run(whole.within(seconds), work, 0.0):
            return run
    raise AssertionError("the stage does not progress")


def same(a, b):
    lams = [run.best.evidence.lam for run in (a, b)]
    return a.tight.clusters == b.tight.clusters and np.array_equal(*lams)


def test_slices_and_limits_do_not_change_the_steps():
    model = softmap.generators.erdos_renyi(40, seed=3)
    whole = stopped_run(model)
    assert len(whole.tight.clusters) > 0
    slices = stopped_run(model, seconds=1e-4)
    assert same(whole, slices)


def test_any_number_of_threads_takes_the_same_steps():
    model = softmap.generators.erdos_renyi(300, seed=3)
    one, three = (stopped_run(model, threads=t, work=2_000_000) for t in (1, 3))
    assert len(one.tight.clusters) > 1000
    assert same(one, three)
    assert np.array_equal(one.best.labels, three.best.labels)


def test_an_interrupt_ends_a_slice_before_the_next_step():
    model = softmap.generators.erdos_renyi(40, seed=3)
    best, budget = begun(model, *start(model)), Budget()
    run = Tightening(best.problem, best, TUNING)
    budget.interrupts.noted = True
    assert run.run(Share(budget), np.inf, 0.0)
    assert run.work == 0


@pytest.mark.parametrize(("ahead", "counts"), [(0.3, True), (0.7, False)])
def test_set_up_counts_as_idle_if_another_bound_is_far_ahead(ahead, counts):
    """By more than the gap that it leaves."""
    model = softmap.generators.erdos_renyi(200, seed=3)
    best = begun(model, *start(model))
    run = Tightening(best.problem, best, TUNING)
    bound = best.bound + ahead * (best.energy - best.bound)
    best.offer_bound(Stated(value=bound, nodes=1))
    run.run(Share(Budget()), 100_000, 0.0)
    assert (run.prepared > 0.0) == counts


def test_a_stage_whose_run_ends_proves_what_it_has():
    model = softmap.generators.erdos_renyi(200, seed=3)
    best = begun(model, *start(model))
    stage = Tighten(best.problem, Options())
    assert stage(best, Share(Budget(), work=1_000_000)).active
    assert best.evidence.clusters
    before = best.bound
    ended = stage(best, Share(Budget(time_limit=1e-6), time.perf_counter() + 0.05))
    assert not ended.active  # otherwise it gets slices that it cannot use, again and again
    assert best.bound >= before


def test_the_search_for_cycles_is_done_in_steps():
    """Twenty variables with an edge to all others: 14 million paths of two edges."""
    hubs, n = 20, 820
    edges = [(i, j) for i in range(hubs) for j in range(hubs, n)]
    pairs = np.array(edges, dtype=np.int64)
    steps = short_cycles(Adjacency.of(pairs, n), 4, limits=ClusterSizes())
    assert len(list(steps)) > 5


def test_no_slice_begins_with_a_long_import():
    code = """
import sys, numpy as np, softmap
from support.stage_runs import tightened
model = softmap.generators.erdos_renyi(60, seed=1).network
lam, labels = np.zeros(int(model.half_offset[-1])), np.zeros(60, dtype=np.int64)
assert tightened(model, lam, labels, max_work=300_000)[0].evidence.clusters
assert "scipy" not in sys.modules
"""
    path = os.pathsep.join(sys.path)
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"PYTHONPATH": path})


@pytest.mark.parametrize("seed", range(12))
def test_a_gap_of_rounding_errors_alone_ends_the_run(seed):
    """A constant cancels the costs: no stage can close what rounding leaves."""
    rng = np.random.default_rng(seed)
    edges = list(itertools.combinations(range(6), 2))
    unary, tables = rng.normal(size=(6, 1)), softmap.Tables(rng.normal(size=(15, 1, 1)))
    energy = softmap.Model(unary, edges, tables).energy([0] * 6)
    model = softmap.Model(unary, edges, tables, constant=-energy)
    checks = itertools.count()
    found = softmap.solve(model, goal="optimal", on_snapshot=lambda _: next(checks) < 30)
    assert found.status is not softmap.Status.CALLBACK
    assert found.bound <= found.energy <= 1e-14

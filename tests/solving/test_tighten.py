"""The tightening stage: valid bounds, certificates that hold, proofs where clusters suffice."""

import numpy as np
import pytest

import softmap
from softmap import lp
from softmap.errors import InfeasibleModel
from softmap.proof.tightening.labels import tree_labels
from softmap.proof.tightening.regions import build
from softmap.relaxation.bounds import dual_bound
from softmap.relaxation.consistency import tighten
from softmap.solving.proof import ProofKind
from support.oracles import brute_force
from support.small_models import cases, random_labels, random_model
from support.stage_runs import finish, tightened, tightening


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
    seconds, size = run.seconds, run.tight.model.half_size
    assert finish(run.grow())
    assert run.tight.model.half_size > size
    assert run.seconds == pytest.approx(seconds * run.tight.model.half_size / size)

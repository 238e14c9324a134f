"""Points of tightened relaxations: they agree along all ties, and no point is too cheap."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softmap
from softmap import core, lp
from softmap.relaxation import polytope
from softmap.relaxation.gaps import cost_scale
from softmap.relaxation.polytope import ClusterBeliefs
from softmap.subsolvers.clusters.regions import build
from softmap.subsolvers.clusters.tightened_point import _Links, agreeing, tightened_point
from support.oracles import violation
from support.stage_runs import finish, tightened, tightening

FREE = core.Deadline()
SCOPES = [(0, 1, 2), (1, 2, 3), (0, 2, 3, 4)]


def small_model(seed, labels=(2, 3, 2, 2, 3)):
    """Five variables, most pairs of them with a table; factors of three for odd seeds."""
    rng = np.random.default_rng(seed)
    pairs = [(i, j) for i in range(5) for j in range(i + 1, 5) if rng.random() < 0.8]
    scopes = [(i,) for i in range(5)] + pairs + ([(1, 3, 4)] if seed % 2 else [])
    factors = [(s, rng.normal(size=[labels[i] for i in s])) for s in scopes]
    return softmap.Model.from_factors(labels, factors)


def random_beliefs(model, seed, sharpness=1.0):
    rng = np.random.default_rng(seed)
    weight = np.exp(sharpness * rng.normal(size=model.unary.size))
    total = np.add.reduceat(weight, model.network.node_offset[:-1])
    return weight / np.repeat(total, model.num_labels)


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.floats(0.0, 30.0))
def test_any_beliefs_lead_to_a_point_of_the_tightened_polytope(seed, sharpness):
    tight = build(small_model(seed).network, SCOPES)
    nodes = agreeing(tight, random_beliefs(tight.model, seed, sharpness))
    edges = polytope.transport(tight.model, nodes)
    assert violation(tight.model, nodes, edges).max < 1e-9
    # every tie leaves one coupling only: what is above, summed up, is what is below
    links = _Links(tight)
    assert abs(links.members.missing(nodes)).max() < 1e-12
    assert abs(links.pairs.missing(nodes)).max() < 1e-12
    value = lp.solve(tight.model).value
    assert polytope.cost(tight.model, nodes, edges) >= value - 1e-7


@given(st.integers(0, 10_000))
def test_what_agrees_already_stays_as_it_is(seed):
    model = small_model(2 * seed)
    tight = build(model.network, SCOPES)
    variables = random_beliefs(model, seed)
    nodes = _Links(tight).product(variables)
    assert agreeing(tight, nodes) == pytest.approx(nodes, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_the_point_closes_the_gap_of_the_tightened_relaxation(seed):
    model = softmap.generators.erdos_renyi(12, seed=seed)
    zeros, labels = np.zeros(int(model.network.half_offset[-1])), np.zeros(12, dtype=np.int64)
    run = tightening(model, zeros, labels)
    assert finish(run.grow())
    run.at.restart(500.0 / cost_scale(model.network))
    for _ in range(1000):
        run.at.step()
    (_, _, beliefs), clusters = run.at.proof(run.at.propose(FREE), FREE), run.tight.clusters
    optimum = lp.solve(run.tight.model).value
    primal, nodes = tightened_point(model.network, clusters, beliefs, None)
    assert optimum - 1e-7 <= primal <= optimum + 0.01 * abs(optimum)
    assert np.add.reduceat(nodes, model.network.node_offset[:-1]) == pytest.approx(1.0)
    with_labels, _ = tightened_point(model.network, clusters, beliefs, labels)
    assert with_labels == pytest.approx(min(primal, model.energy(labels)))


def test_results_offer_the_point_of_the_relaxation_that_proved_them():
    model = softmap.generators.erdos_renyi(12, seed=3)
    result = softmap.solve(model, goal="lp")
    assert result.tightened is None
    zeros = np.zeros(int(model.network.half_offset[-1]))
    best, _ = tightened(model, zeros, result.labels, max_work=100_000)
    proof = replace(best.evidence, beliefs=None)
    assert proof.kind == "tightened"
    nodes = random_beliefs(build(model.network, proof.clusters).model, 1)
    for scale in (1.0, 1e-200, 1e200):
        there = replace(
            result,
            model=softmap.Model(
                model.unary.reshape(12, -1) * scale,
                model.edges,
                softmap.Tables(np.stack([model.network.table(e) for e in range(model.m)]) * scale),
                constant=5.0 * scale,
            ),
            bound=(best.bound + 5.0) * scale,
            proof=replace(
                proof,
                value=(best.bound + 5.0) * scale,
                lam=proof.lam * scale,
                beliefs=ClusterBeliefs(nodes, proof.lam * scale, 100.0 / scale),
            ),
        )
        point = there.tightened
        assert point.clusters == proof.clusters
        assert best.bound - 1e-6 <= point.primal / scale - 5.0 <= best.energy + 1e-6
        assert point.gap == pytest.approx(point.primal - there.bound)


def test_next_to_hard_constraints_the_point_is_the_labelling():
    model = small_model(2).replace()
    unary = np.split(model.unary.copy(), model.network.node_offset[1:-1])
    unary[0][0] = np.inf
    hard = model.replace(unary=np.concatenate(unary))
    labels = np.array([1, 0, 0, 0, 0])
    tight = build(hard.network, SCOPES)
    lam = np.zeros(int(tight.model.half_offset[-1]))
    beliefs = ClusterBeliefs(random_beliefs(tight.model, 1), lam, 1.0)
    assert agreeing(tight, beliefs.nodes) is None
    primal, nodes = tightened_point(hard.network, tuple(SCOPES), beliefs, labels)
    assert primal == hard.energy(labels)
    assert np.array_equal(nodes, polytope.integral_nodes(hard.network, labels))
    assert np.isinf(tightened_point(hard.network, tuple(SCOPES), beliefs, None)[0])

"""What the README promises of a result, where it once was not so."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import softmap
from softmap.labels.exact import ExactSearch
from softmap.relaxation.flat import flatten
from softmap.run.best import Best
from softmap.run.problem import Problem
from softmap.subsolvers.clusters.cluster_evidence import ClusterEvidence
from support.oracles import brute_force, dense_lp

# --- the energy is that of the labels -------------------------------------------------------------


def counted(n: int, seed: int = 0) -> softmap.Model:
    """Random costs of binary variables, and a cost of how many of them are 1: kept as a chain."""
    rng = np.random.default_rng(seed)
    factors: list = [((i,), rng.normal(size=2)) for i in range(n)]
    factors.append(softmap.Cardinality(range(n), 1, (np.arange(n + 1) - n / 3) ** 2 / n))
    return softmap.Model.from_factors([2] * n, factors)


@pytest.mark.parametrize("limit", [0.0, 0.05, 0.1])
def test_labels_of_a_chain_have_the_energy_that_is_stated_under_a_time_limit(limit: float) -> None:
    model = counted(500)
    result = softmap.solve(model, time_limit=limit)
    assert result.energy == model.energy(result.labels) < math.inf
    assert softmap.verify(result).holds


def test_every_way_to_read_labels_off_completes_running_variables() -> None:
    model = counted(40)
    assert len(model.network.running)
    rng = np.random.default_rng(1)
    for read in (softmap.labels.round_nodes, softmap.labels.cheapest):
        labels = read(model.network, rng.random(model.network.unary.size))
        assert model.energy(labels) == model.energy(labels[: model.network.num_visible]) < math.inf


def test_labels_that_are_kept_have_the_cost_of_the_visible_ones() -> None:
    model = counted(40)
    best = Best(Problem.plain(model.network))
    labels = np.zeros(model.network.num_variables, dtype=np.int64)
    labels[: model.network.num_visible] = 1  # all counts are wrong
    assert model.energy(labels) == math.inf
    assert best.offer_labels(labels)
    assert best.energy == model.energy(best.labels[: model.network.num_visible]) < math.inf


# --- the primal value is the cost of the marginals ------------------------------------------------


def weighted(rng: np.random.Generator) -> softmap.Model:
    """One table of few integers, times a weight: many ties, but for rounding."""
    n = int(rng.integers(12, 81))
    edges = np.array([rng.choice(n, 2, replace=False) for _ in range(2 * n)])
    table = rng.integers(0, 10, (1, 6, 6)).astype(float)
    weights = rng.random(2 * n) + 0.1
    shared = softmap.SharedTables(table, np.zeros(2 * n, int), weights)
    return softmap.Model(rng.integers(0, 10, (n, 6)).astype(float), edges, shared)


def exact_cost(result: softmap.Result) -> Fraction:
    """⟨C, μ⟩ of the marginals that are handed out, in rational numbers."""
    model, edges = result.model, result.edge_marginals
    pairs = list(zip(model.unary.tolist(), result.node_marginals.tolist(), strict=True))
    for e in range(model.m):
        own = edges[model.network.edge_offset[e] : model.network.edge_offset[e + 1]]
        pairs += zip(model.network.table(e).ravel().tolist(), own.tolist(), strict=True)
    return Fraction(model.constant) + sum(
        (Fraction(c) * Fraction(mu) for c, mu in pairs if mu), Fraction(0)
    )


def test_primal_is_the_cost_of_the_marginals_with_weights_and_ties() -> None:
    rng = np.random.default_rng(2)
    for _ in range(12):
        model = weighted(rng)
        result = softmap.solve(model, goal="lp", max_work=40 * model.m)
        size = float(sum(np.abs(model.network.table(e)).max() for e in range(model.m)))
        assert float(exact_cost(result)) == pytest.approx(result.primal, abs=1e-12 * size)
        assert softmap.verify(result).holds


# --- a proof is that of the bound -----------------------------------------------------------------


def frustrated(seed: int) -> softmap.Model:
    rng = np.random.default_rng(seed)
    n = 12
    edges = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.5]
    tables = rng.normal(size=(len(edges), 3, 3))
    return softmap.Model(rng.normal(size=(n, 3)), edges, tables)


@pytest.mark.parametrize("constant", [0.0, 1e6 / 3])
@pytest.mark.parametrize("seed", [8, 10])
def test_a_bound_that_overtakes_that_of_clusters_has_a_proof_of_its_own(
    seed: int, constant: float
) -> None:
    model = frustrated(seed)
    known = softmap.solve(model, goal="labels", max_work=400_000)
    assert known.proof.kind == "tightened"
    rng = np.random.default_rng(seed)
    other = model.replace(unary=model.unary + rng.normal(size=model.unary.size), constant=constant)
    result = softmap.solve(other, warm_start=known, goal="lp")
    assert result.proof.kind == "relaxation"
    assert result.bound == result.lp_bound
    assert softmap.verify(result).holds


# --- numbers at the ends of their range -----------------------------------------------------------


def test_turns_stop_growing_before_they_leave_the_range_of_numbers() -> None:
    rng = np.random.default_rng(0)
    edges = [(i, j) for i in range(12) for j in range(i)]
    tables = rng.normal(size=(12, 1)), edges, rng.normal(size=(len(edges), 1, 1))
    model = softmap.Model(*tables)  # one labelling, whose bound misses an ulp
    result = softmap.solve(model, gap=0.0, lp_gap=0.0, time_limit=1.0)
    assert result.bound <= result.energy == model.energy(np.zeros(12, int))


@pytest.mark.parametrize("clusters", [((0, 1, 999),), ((-999, 0, 1),)])
def test_a_warm_start_with_a_cluster_out_of_range_is_refused(clusters: tuple) -> None:
    result = softmap.solve(frustrated(8), max_work=1000)
    proof = ClusterEvidence(clusters=clusters, lam=np.zeros(3))
    with pytest.raises(softmap.OptionError, match="damaged"):
        softmap.solve(result.model, warm_start=replace(result, proof=proof))


# --- variables and factors of many states ---------------------------------------------------------


def test_labels_of_a_factor_with_many_joint_states_are_improved() -> None:
    rng = np.random.default_rng(0)
    costs = rng.random((2,) * 17)
    model = softmap.Model.from_factors([2] * 17, [(tuple(range(17)), costs)])
    start = np.zeros(17, dtype=np.int64)
    found = softmap.labels.neighbourhoods(model.network, start, work=100_000)
    assert model.energy(found) <= model.energy(start)
    result = softmap.solve(model)
    assert result.energy == model.energy(result.labels) == costs.min()


def test_an_exact_search_tells_many_labels_apart() -> None:
    rng = np.random.default_rng(0)
    unary = [rng.random(70_000), rng.random(3)]
    table = rng.random((70_000, 3))
    table[66_000, 1] = -5.0
    model = softmap.Model(unary, [[0, 1]], [table])
    found = ExactSearch(flatten(model.network)).run()
    assert found.labels is not None
    assert found.labels.tolist() == [66_000, 1]


# --- the trace ends with the result ---------------------------------------------------------------


def test_a_bound_that_is_better_in_the_units_of_the_user_ends_the_trace() -> None:
    edges = [((2, 1), softmap.TruncatedLinear([-5e-118], [0.5]))]
    edges.append(((1, 0), softmap.Projection([[0, 0, 0]], [1])))
    edges.append(((1, 0), softmap.TruncatedLinear([-5e-118], [0.1])))
    unary = [np.array([1e-307]), np.array([2.5e299, 2.5e299, 5e-118]), np.array([-2e-231])]
    model = softmap.Model(unary, None, [([ends], potential) for ends, potential in edges])
    result = softmap.solve(model)
    assert result.trace[-1].bound == result.bound > 0.0  # small costs are 0 in those of the run
    assert softmap.verify(result).holds


# --- the guarantee of the README ------------------------------------------------------------------


@pytest.mark.parametrize("goal", ["map", "lp", "labels", "optimal"])
@pytest.mark.parametrize("family", ["tables", "potts", "factors"])
def test_the_guarantee_holds(family: str, goal: str) -> None:
    """lp_bound ≤ LP optimum ≤ MAP optimum, and lp_bound ≤ bound ≤ MAP optimum ≤ energy."""
    for seed in range(6):
        model, relaxed, optimum = known(family, seed)
        result = softmap.solve(model, goal=goal, max_work=5000)
        slack = 1e-9 * (1.0 + abs(optimum))  # of the oracles
        assert relaxed <= optimum + slack
        assert result.lp_bound <= relaxed + slack
        assert result.lp_bound <= result.bound <= optimum + slack
        assert optimum - slack <= result.energy == model.energy(result.labels)
        assert relaxed - slack <= result.primal <= result.energy
        assert result.lp_gap == max(0.0, result.primal - result.lp_bound)
        assert result.gap == max(0.0, result.energy - result.bound)


@functools.cache
def known(family: str, seed: int) -> tuple[softmap.Model, float, float]:
    """A small model, the optimum of its relaxation and the least energy."""
    model = small(family, seed)
    return model, dense_lp(model), brute_force(model)[0]


def small(family: str, seed: int) -> softmap.Model:
    """Five variables, frustrated enough that LP and MAP differ now and then."""
    rng = np.random.default_rng([seed, len(family)])
    edges = [(i, j) for i in range(5) for j in range(i + 1, 5)]
    if family == "factors":
        factors: list = [(edge, rng.normal(size=(2, 2))) for edge in edges]
        factors.append(((0, 1, 2), rng.normal(size=(2, 2, 2))))
        return softmap.Model.from_factors([2] * 5, factors, constant=float(rng.normal()))
    weights = rng.normal(size=10)
    costs = rng.normal(size=(10, 3, 3)) if family == "tables" else softmap.Potts(weights)
    return softmap.Model(rng.normal(size=(5, 3)), edges, costs, constant=float(rng.normal()))

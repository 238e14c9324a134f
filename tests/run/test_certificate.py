"""What a certificate promises: bound ≤ LP ≤ MAP ≤ energy, a feasible point, and its laws."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap import lp
from softmap.errors import InfeasibleModel, OptionError
from softmap.relaxation import polytope
from softmap.relaxation.bounds import dual_bound
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import SmoothedDual
from softmap.relaxation.gaps import cost_step, model_unit, relative_gap
from softmap.run.best import Best
from softmap.run.certificate import certificate
from softmap.run.problem import Problem
from support.oracles import brute_force, dense_lp, tree_optimum, violation
from support.strategies import dense, etas, models, random_lam, reparametrised, seeds


@given(models(), seeds, etas)
def test_bound_lp_map_energy_in_this_order(model, seed, eta):
    proof = certificate(model, random_lam(model, seed), eta)
    best, (optimum, _) = dense_lp(model), brute_force(model)
    assert proof.bound <= best + 1e-8
    assert best <= optimum + 1e-8
    assert optimum <= proof.energy + 1e-9
    assert best <= proof.primal + 1e-8
    assert proof.energy == model.energy(proof.labels)
    assert proof.gap == max(0.0, proof.energy - proof.bound)
    assert proof.lp_gap == max(0.0, proof.primal - proof.bound)


@given(models(), seeds, etas, st.booleans())
def test_the_point_is_feasible_and_costs_what_it_says(model, seed, eta, exact):
    proof = certificate(model, random_lam(model, seed), eta, exact=exact)
    if not math.isfinite(proof.primal):
        assert not proof.projected
        assert math.isinf(proof.energy)
        return
    point = proof.node_marginals, proof.edge_marginals
    assert violation(proof.model, *point).max <= 1e-9
    assert polytope.cost(proof.model.network, *point) == pytest.approx(proof.primal, abs=1e-9)
    assert proof.projected or proof.primal == proof.energy


@given(models(hard=False), seeds, etas)
def test_finite_costs_always_project(model, seed, eta):
    assert certificate(model, random_lam(model, seed), eta).projected


@given(models(), seeds, st.sampled_from([1.0, 1e4]))
def test_bound_is_right_up_to_its_rounding(model, seed, scale):
    """Against exact rational arithmetic."""
    tight = tighten(model)
    lam = random_lam(tight, seed, scale)
    exact = Fraction(tight.constant)
    for i in range(tight.n):
        halves = [h for h, j in enumerate(tight.edges.reshape(-1)) if j == i]
        blocks = [lam[tight.half_slice(h)] for h in halves]
        exact += min(
            Fraction(c) - sum(Fraction(b[x]) for b in blocks)
            for x, c in enumerate(tight.unary_of(i))
            if math.isfinite(c)
        )
    for e, (i, j) in enumerate(tight.edges):
        ends = [lam[tight.half_slice(2 * e + side)] for side in (0, 1)]
        table = tight.table(e)
        exact += min(
            Fraction(table[x, y]) + Fraction(ends[0][x]) + Fraction(ends[1][y])
            for x, y in np.argwhere(np.isfinite(table))
            if math.isfinite(tight.unary_of(i)[x]) and math.isfinite(tight.unary_of(j)[y])
        )
    size = (
        np.abs(lam).sum() + np.abs(tight.unary[np.isfinite(tight.unary)]).sum() + abs(float(exact))
    )
    assert 0 <= exact - Fraction(dual_bound(model.network, lam)) <= Fraction(1e-14 * (1 + size))


@given(models(), seeds)
def test_bound_of_the_lp_multipliers_is_the_lp(model, seed):
    best = lp.solve(model)
    assert dual_bound(model.network, best.lam) == pytest.approx(best.value, abs=1e-6)
    proof = certificate(model, best.lam, 1e3)
    assert proof.bound == pytest.approx(best.value, abs=1e-6)


@given(models(graphs=("tree",), families=("tables", "shared", "potts", "mix")))
def test_trees_are_tight(model):
    best = lp.solve(model)
    optimum = tree_optimum(model)
    assert best.value == pytest.approx(optimum, abs=1e-7)
    assert brute_force(model)[0] == pytest.approx(optimum, abs=1e-9)


def test_a_tree_is_proved_optimal_from_its_multipliers():
    model = softmap.generators.random_tree(30, 4, seed=5)
    best = lp.solve(model, "simplex")
    nodes = np.round(best.node_marginals)  # a vertex, and on trees all vertices are integral
    assert np.allclose(nodes, best.node_marginals)
    proof = certificate(model, best.lam, 1e6, node_marginals=nodes)
    assert proof.energy == pytest.approx(tree_optimum(model), abs=1e-9)
    assert proof.gap <= 1e-6
    assert proof.lp_gap <= 1e-6
    assert proof.relative_gap(proof.gap) <= 1e-6


@given(models(), seeds, st.sampled_from([0.5, 3.0, 50.0]))
def test_families_equal_their_tables(model, seed, eta):
    lam = random_lam(model, seed)
    one, other = certificate(model, lam, eta), certificate(dense(model), lam, eta)
    assert one.bound == pytest.approx(other.bound, abs=1e-9)
    assert one.projected == other.projected
    assert one.primal == pytest.approx(other.primal, abs=1e-9)
    assert one.energy == pytest.approx(other.energy, abs=1e-9)


@given(models(hard=False), seeds)
def test_the_bound_is_that_of_the_reparametrised_model(model, seed):
    lam = random_lam(model, seed)
    moved = reparametrised(model, lam)
    assert dual_bound(moved.network, np.zeros_like(lam)) == pytest.approx(
        dual_bound(model.network, lam), abs=1e-9
    )


@given(models(), seeds, st.sampled_from([0.5, 50.0]), st.sampled_from([1e-3, 1e3]))
def test_scale_and_shift(model, seed, eta, factor):
    lam = random_lam(model, seed)
    scaled = model.replace(
        unary=(model.unary + 2.0) * factor,
        potentials=[p.scaled(factor) for p in model.potentials],
        constant=model.constant * factor,
    )
    one, other = certificate(model, lam, eta), certificate(scaled, lam * factor, eta / factor)
    shift = 2.0 * model.n
    assert other.bound == pytest.approx((one.bound + shift) * factor, rel=1e-9, abs=1e-9)
    assert other.primal == pytest.approx((one.primal + shift) * factor, rel=1e-9, abs=1e-9)
    assert other.projected == one.projected


def test_exact_transport_improves_the_primal():
    model = softmap.generators.random_grid(6, 6, 4, seed=1)
    lam = random_lam(model, 0, 0.3)
    near, best = certificate(model, lam, 5.0), certificate(model, lam, 5.0, exact=True)
    assert best.primal < near.primal
    assert best.bound == near.bound


def test_given_node_marginals_are_used():
    model = softmap.generators.random_grid(3, 3, 3, seed=1)
    best = lp.solve(model, "simplex")
    nodes = np.maximum(best.node_marginals, 0)
    nodes /= np.repeat(np.add.reduceat(nodes, model.network.node_offset[:-1]), model.num_labels)
    proof = certificate(model, best.lam, 1.0, node_marginals=nodes, exact=True)
    assert np.array_equal(proof.node_marginals, nodes)
    assert proof.lp_gap <= 1e-6


@pytest.mark.parametrize("factor", [1e-300, 0.1, 10.0])
def test_given_node_marginals_are_made_to_add_up_to_1(factor):
    model = softmap.generators.random_grid(3, 3, 3, seed=1)
    best = lp.solve(model, "simplex")
    nodes = factor * np.maximum(best.node_marginals, 0)
    proof = certificate(model, best.lam, 1.0, node_marginals=nodes, exact=True)
    assert proof.primal == pytest.approx(best.value, rel=1e-9)


def test_an_equality_constraint_falls_back_on_the_labelling():
    model = softmap.Model([[0.0, 1.0], [1.0, 0.4]], [[0, 1]], softmap.Potts([np.inf]))
    proof = certificate(model, np.zeros(4), 1.0)
    assert not proof.projected
    assert proof.labels.tolist() == [0, 0]
    assert proof.primal == proof.energy == 1.0
    assert proof.edge_marginals.tolist() == [1, 0, 0, 0]


def test_a_certificate_cannot_be_changed():
    proof = certificate(softmap.generators.random_tree(3), np.zeros(20), 1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        proof.bound = 0.0


def test_relative_gaps_divide_by_the_bound_or_a_step_of_the_costs():
    model = softmap.Model([[0.0, 0.25], [7.0, 7.0]], [[0, 1]], softmap.Potts([0.25]), constant=1e9)
    assert cost_step(model.network) == 0.25
    assert model_unit(model.network, 1e9 + 50.0) == 50.0
    assert model_unit(model.network, 1e9) == model_unit(model.network, 1e-9) == 0.25
    assert relative_gap(1.0, 50.0) == 0.02
    assert relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(1e-300, 0.0) == math.inf


def test_large_finite_costs_do_not_raise_the_step():
    tables = np.array([[[0.0, 1.0, 1e15], [1e15, 2.0, 1e15], [1.0, 1e15, 1e15]]])
    model = softmap.Model([[0.0, 1e15, 1.0]] * 2, [[0, 1]], softmap.Tables(tables))
    assert cost_step(model.network) == 1.0
    constant = softmap.Model([[3.0, 3.0]], np.zeros((0, 2), int), softmap.Potts([]))
    assert cost_step(constant.network) == 0.0


def test_models_without_edges():
    model = softmap.Model([[3.0, 1.0], [np.inf, 2.0]], np.zeros((0, 2), int), softmap.Potts([]))
    proof = certificate(model, np.zeros(0), 10.0)
    assert proof.bound == proof.energy == 3.0
    assert proof.edge_marginals.shape == (0,)
    assert SmoothedDual(model, 10.0).gradient(np.zeros(0)).shape == (0,)


def test_bad_input():
    model = softmap.generators.random_tree(3, 2)
    with pytest.raises(OptionError, match="lam must be a flat array of 8 numbers"):
        certificate(model, np.zeros(7), 1.0)
    with pytest.raises(OptionError, match=r"lam\[0\] is inf"):
        dual_bound(model.network, np.full(8, np.inf))
    with pytest.raises(OptionError, match="node_marginals must be"):
        certificate(model, np.zeros(8), 1.0, node_marginals=np.ones(5))
    clash = softmap.Model([[0.0, np.inf], [np.inf, 0.0]], [[0, 1]], softmap.Potts([np.inf]))
    with pytest.raises(InfeasibleModel):
        certificate(clash, np.zeros(4), 1.0)


@given(models(hard=True), st.floats(0.1, 10.0))
def test_the_bound_without_lam_is_that_of_zeros(model, factor):
    potentials = [
        p.scaled(factor) for p in model.network.potentials
    ]  # so that products are rounded
    problem = Problem.of(model.replace(potentials=potentials))
    best = Best(problem)
    best.offer_zero()
    bound = dual_bound(problem.model, np.zeros(problem.model.half_size))
    assert best.lp_bound <= bound
    assert best.lp_bound == pytest.approx(bound, rel=1e-12, abs=1e-12)
    assert not best.lam.any()

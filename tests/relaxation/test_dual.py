"""The smoothed dual against its definition and derivative, and the laws of shift and scale."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap.errors import OptionError
from softmap.relaxation.dual import SmoothedDual, edge_batches, half_states, reduced_unary
from softmap.relaxation.lp import solve as solve_lp
from support.oracles import naive_objective
from support.strategies import dense, etas, models, random_lam, reparametrised, seeds

moderate = st.sampled_from([0.1, 1.0, 5.0])


@given(models(), seeds, moderate)
def test_value_is_the_definition(model, seed, eta):
    dual = SmoothedDual(model, eta)
    lam = random_lam(model, seed)
    assert dual.value(lam) == pytest.approx(naive_objective(dual.model, lam, eta), abs=1e-9)


@given(models(max_n=4, max_d=3), seeds, moderate)
def test_gradient_is_minus_the_slack(model, seed, eta):
    dual = SmoothedDual(model, eta)
    lam = random_lam(model, seed)
    gradient, step = dual.gradient(lam), 1e-5
    assert np.array_equal(gradient, -dual.slack(lam))
    for k in range(len(lam)):
        ahead, behind = lam.copy(), lam.copy()
        ahead[k] += step
        behind[k] -= step
        slope = (dual.value(ahead) - dual.value(behind)) / (2 * step)
        assert gradient[k] == pytest.approx(slope, abs=1e-7)


@given(models(), seeds, etas)
def test_marginals_are_distributions_and_spare_forbidden_states(model, seed, eta):
    dual = SmoothedDual(model, eta)
    lam = random_lam(model, seed)
    nodes, pairs, ends = dual.node_marginals(lam), dual.edge_marginals(lam), dual.S(lam)
    model = dual.model
    excluded = np.isposinf(model.unary)
    assert (nodes >= 0).all()
    assert (pairs >= 0).all()
    assert np.allclose(np.add.reduceat(nodes, model.network.node_offset[:-1]), 1)
    assert not nodes[excluded].any()
    assert not ends[excluded[half_states(model.network)]].any()
    for e in range(model.m):
        table = model.network.table(e)
        mu = pairs[model.network.edge_offset[e] : model.network.edge_offset[e + 1]].reshape(
            table.shape
        )
        assert mu.sum() == pytest.approx(1)
        assert not mu[np.isposinf(table)].any()
        assert np.allclose(mu.sum(axis=1), ends[model.network.half_slice(2 * e)])
        assert np.allclose(mu.sum(axis=0), ends[model.network.half_slice(2 * e + 1)])


@given(models(), seeds, etas, st.sampled_from([1e-6, 1.0, 1e6]))
def test_nothing_is_ever_nan(model, seed, eta, scale):
    model = model.replace(
        unary=model.unary * scale, potentials=[p.scaled(scale) for p in model.potentials]
    )
    dual = SmoothedDual(model, eta)
    lam = random_lam(model, seed, scale)
    assert np.isfinite(dual.value(lam))
    for array in (dual.node_marginals(lam), dual.edge_marginals(lam), dual.slack(lam)):
        assert np.isfinite(array).all()


@given(models(), seeds, moderate)
def test_every_family_is_its_table(model, seed, eta):
    lam = random_lam(model, seed)
    one, other = SmoothedDual(model, eta), SmoothedDual(dense(model), eta)
    assert one.value(lam) == pytest.approx(other.value(lam), abs=1e-10)
    assert np.allclose(one.slack(lam), other.slack(lam), atol=1e-12)
    assert np.allclose(one.edge_marginals(lam), other.edge_marginals(lam), atol=1e-12)


@given(models(hard=False), seeds, moderate)
def test_lam_is_a_reparametrisation(model, seed, eta):
    lam = random_lam(model, seed)
    moved = SmoothedDual(reparametrised(model, lam), eta)
    zero = np.zeros_like(lam)
    dual = SmoothedDual(model, eta)
    assert moved.value(zero) == pytest.approx(dual.value(lam), abs=1e-9)
    assert np.allclose(moved.slack(zero), dual.slack(lam), atol=1e-9)


@given(models(), seeds, moderate, st.sampled_from([1e-3, 1000.0]))
def test_scaling_costs_scales_everything(model, seed, eta, factor):
    lam = random_lam(model, seed)
    scaled = model.replace(
        unary=model.unary * factor,
        potentials=[p.scaled(factor) for p in model.potentials],
        constant=model.constant * factor,
    )
    one, other = SmoothedDual(model, eta), SmoothedDual(scaled, eta / factor)
    assert other.value(lam * factor) == pytest.approx(one.value(lam) * factor, rel=1e-9)
    assert np.allclose(other.slack(lam * factor), one.slack(lam), atol=1e-9)


@given(models(), seeds, moderate)
def test_shifting_costs_shifts_the_value_alone(model, seed, eta):
    lam = random_lam(model, seed)
    shifted = model.network.replace(unary=model.network.unary + 3.0, constant=model.constant - 1.0)
    one, other = SmoothedDual(model, eta), SmoothedDual(shifted, eta)
    assert other.value(lam) == pytest.approx(one.value(lam) - 3.0 * model.network.n + 1.0, abs=1e-9)
    assert np.allclose(other.slack(lam), one.slack(lam), atol=1e-9)


@given(models(), seeds, moderate)
def test_weak_duality_of_the_regularised_pair(model, seed, eta):
    dual = SmoothedDual(model, eta)
    best = solve_lp(model)
    entropy = -sum(
        float((mu * np.log(mu, where=mu > 0, out=np.zeros_like(mu))).sum())
        for mu in (np.maximum(best.node_marginals, 0), np.maximum(best.edge_marginals, 0))
    )
    assert -dual.value(random_lam(model, seed)) <= best.value - entropy / eta + 1e-6


def test_batches_cover_every_edge_once_whatever_their_size():
    model = softmap.generators.ragged_constrained(12, seed=3)
    for limit in (1, 10, 10**6):
        batches = list(edge_batches(model.network, limit))
        edges = np.concatenate([b.edges for b in batches])
        assert sorted(edges) == list(range(model.m))
        for batch in batches:
            for e, cost in zip(batch.edges, batch.cost, strict=True):
                i, j = model.edges[e]
                excluded = np.isposinf(model.network.unary_of(i))[:, None] | np.isposinf(
                    model.network.unary_of(j)
                )
                assert np.array_equal(cost, np.where(excluded, np.inf, model.network.table(int(e))))


def test_reduced_unary_subtracts_the_messages():
    model = softmap.Model(
        [[1.0, 2.0], [0.0, 5.0], [7.0, 7.0]], [[0, 1], [1, 2]], softmap.Potts([1, 1])
    )
    lam = np.arange(8.0)
    assert reduced_unary(model.network, lam).tolist() == [1, 1, -6, -3, 1, 0]


@pytest.mark.parametrize("eta", [0.0, -1.0, np.nan, np.inf])
def test_eta_must_be_positive(eta):
    model = softmap.generators.random_tree(3)
    with pytest.raises(OptionError, match="expected a positive number"):
        SmoothedDual(model, eta)


def test_lam_must_fit_and_be_finite():
    model = softmap.Model(np.zeros((2, 2)), [[0, 1]], softmap.Potts([1.0]))
    dual = SmoothedDual(model, 1.0)
    with pytest.raises(OptionError, match="flat array of 4 numbers"):
        dual.value(np.zeros(3))
    with pytest.raises(OptionError, match=r"lam\[2\] is nan"):
        dual.slack([0.0, 0.0, np.nan, 0.0])

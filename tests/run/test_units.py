"""Whatever the units of the costs, and wherever in the float range they lie."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

import softmap
from softmap import generators, solve
from softmap.run import problem
from softmap.run.problem import Problem
from softmap.views.words import certificate_sentences

MODELS = {
    "random": lambda: generators.erdos_renyi(12, 3, seed=9),
    "potts": lambda: generators.potts_grid(4, 4, 3, seed=2),
    "hard": lambda: generators.ragged_constrained(10, seed=5),
}


def times(model: softmap.Model, exponent: int) -> softmap.Model:
    for part in (exponent // 2, exponent - exponent // 2):
        model = model.replace(
            unary=model.unary * 2.0**part,
            potentials=[p.scaled(2.0**part) for p in model.potentials],
            constant=model.constant * 2.0**part,
        )
    return model


@functools.cache
def solved(name: str) -> softmap.Result:
    return solve(MODELS[name](), threads=1)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("exponent", [-980, -665, -41, -40, -7, 40, 41, 665, 980])
def test_powers_of_two_change_nothing(exponent, name):
    one = solved(name)
    other = solve(times(MODELS[name](), exponent), threads=1)
    np.testing.assert_array_equal(one.labels, other.labels)
    assert (one.status, one.sweeps) == (other.status, other.sweeps)
    for value in ("energy", "bound", "primal"):
        assert getattr(other, value) == math.ldexp(getattr(one, value), exponent)
    assert other.relative_gap(other.gap) == one.relative_gap(one.gap)
    np.testing.assert_array_equal(one.edge_marginals, other.edge_marginals)
    assert certificate_sentences(one)[2].split()[:4] == certificate_sentences(other)[2].split()[:4]
    assert softmap.verify(other).holds


@pytest.mark.parametrize("name", MODELS)
def test_denormal_costs(name):
    result = solve(times(MODELS[name](), -1060), threads=1)
    assert softmap.verify(result).holds, str(softmap.verify(result))
    assert result.bound <= result.energy


def test_a_large_constant_hides_no_gap():
    model = MODELS["random"]()
    one, other = solve(model, threads=1), solve(model.replace(constant=1e12), threads=1)
    np.testing.assert_array_equal(one.labels, other.labels)
    assert (one.status, one.sweeps) == (other.status, other.sweeps)
    assert other.bound <= 1e12 + one.bound + 1e-3
    assert other.relative_gap(other.gap) == pytest.approx(one.relative_gap(one.gap), rel=0.01)


def test_costs_whose_sums_overflow_are_refused_by_name():
    with pytest.raises(softmap.ModelError, match=r"variable 0, label 1, is 1.5e\+308"):
        softmap.Model([[0.0, 1.5e308], [1.0, 1.6e308]], [[0, 1]], softmap.Potts([1.0]))


def test_products_that_overflow_are_refused_by_name():
    with pytest.raises(softmap.ModelError, match=r"table 0 has 1e\+308"):
        softmap.Model(
            [[0.0, 1.0]] * 2, [[0, 1]], softmap.SharedTables([np.eye(2) * 1e308], [0], [1e10])
        )
    with pytest.raises(softmap.ModelError, match=r"1e\+308"):
        softmap.Model([[0.0] * 3] * 2, [[0, 1]], softmap.TruncatedLinear([1e308]))


def test_costs_too_far_apart_for_single_precision_are_refused():
    model = softmap.Model([[0.0, 1.0], [1e200]], [[0, 1]], softmap.Tables([[[0.0], [1.0]]]))
    with pytest.raises(softmap.OptionError, match="1e\\+200"):
        Problem.of(model, precision="float32")
    assert softmap.verify(solve(model)).holds


@pytest.mark.parametrize("size", [1e16, 1e300])
def test_an_absurd_warm_start_is_mended(size):
    model = MODELS["random"]()
    plain = solve(model, threads=1)
    lam = size * np.random.default_rng(0).normal(size=int(model.network.half_offset[-1]))
    warm = solve(model, threads=1, warm_start=lam)
    assert softmap.verify(warm).holds
    assert warm.bound == pytest.approx(plain.bound, rel=1e-3)


@pytest.mark.parametrize("exponent", range(6, 19, 2))
@pytest.mark.parametrize("method", ["anneal", "trws", "mplp", "diffusion"])
def test_large_finite_costs_leave_the_bound_below_the_optimum(method, exponent):
    rng = np.random.default_rng(exponent)
    made = [np.where(rng.random(s) < 0.35, 10.0**exponent, rng.uniform(0, 3, s).round(1))
            for s in ((6, 3), (9, 3, 3))]  # fmt: skip
    ends = np.array([rng.permutation(6)[:2] for _ in range(9)])
    model = softmap.Model(made[0], ends, softmap.Tables(made[1]))
    best = min(model.energy(np.array(list(np.ndindex(*[3] * 6)))))
    result = solve(model, method=method, threads=1, max_work=2 * model.m * 300)
    assert result.bound <= best <= result.energy
    assert softmap.verify(result).holds


def test_the_step_of_the_costs_is_not_computed_for_a_model_that_a_cut_solves(monkeypatch):
    """It would be the unit of gaps to the bound of λ = 0, which nobody asks for."""
    asked, real = [], problem.cost_step
    monkeypatch.setattr(problem, "cost_step", lambda model: asked.append(model) or real(model))
    unary = np.random.default_rng(0).random((25, 2))
    unary -= unary.min(axis=1, keepdims=True)
    result = solve(softmap.Model(unary, generators.grid_edges(5, 5), softmap.Potts(0.3)))
    assert result.status is softmap.Status.OPTIMAL
    assert not asked

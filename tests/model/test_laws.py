"""Laws that tie the model, its families and the kernels together, on random models of all kinds."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmap import core
from softmap.model.layout import layout
from softmap.model.potentials import Tables
from support.numpy_twins import hard_message, soft_message
from support.oracles import energy_by_hand
from support.strategies import (
    FAMILIES,
    _Maker,
    build,
    models,
    random_lam,
    recipes,
    reparametrised,
    seeds,
)


def all_labellings(model):
    return np.array(
        list(
            itertools.product(*map(range, model.network.num_labels[: model.network.num_variables]))
        )
    )


@given(models())
def test_energy_is_the_sum_of_its_entries(model):
    labellings = all_labellings(model)
    energies = model.energy(labellings)
    for labels, energy in zip(labellings[:50], energies, strict=False):
        assert energy == pytest.approx(energy_by_hand(model, model.network.complete(labels)))
        assert energy == pytest.approx(model.energy(labels))


@given(models(), seeds)
def test_a_reparametrisation_changes_no_energy(model, seed):
    moved = reparametrised(model, random_lam(model, seed))
    labellings = all_labellings(model)
    assert np.allclose(moved.energy(labellings), model.energy(labellings))


@given(recipes(families=("factors",)))
def test_factors_keep_their_energies_for_arities_0_to_4(recipe):
    model, maker = build(recipe), _Maker(recipe)
    pairs = recipe.edges[:2]
    weights = maker.costs(len(pairs)) if pairs else ()
    factors = maker.factors()
    for labels in all_labellings(model)[:100]:
        expected = sum(costs[tuple(labels[list(scope)])] for scope, costs in factors)
        expected += sum(
            w * (labels[i] != labels[j]) for (i, j), w in zip(pairs, weights, strict=True)
        )
        assert model.energy(labels) == pytest.approx(float(expected))


@given(models(families=FAMILIES), seeds, st.sampled_from([0.1, 2.0, 30.0, 1e5]))
def test_messages_are_those_of_the_table(model, seed, eta):
    """numpy verbs and kernels, soft and hard, against the same edge as a dense table."""
    rng, lay = np.random.default_rng(seed), layout(model.network)
    for first, last, potential in model.network.groups():
        for e, side in itertools.product(range(first, last), (0, 1)):
            table = model.network.table(e)
            plain = Tables([table])
            d_out, d_in = table.shape if side == 0 else table.shape[::-1]
            a = np.where(rng.random(d_in) < 0.2, np.inf, rng.normal(size=d_in))
            soft = soft_message(plain, 0, side, a, eta, d_out)
            hard = hard_message(plain, 0, side, a, d_out)
            k, out = e - first, np.empty(d_out)
            assert np.allclose(soft_message(potential, k, side, a, eta, d_out), soft, atol=1e-9)
            assert np.allclose(hard_message(potential, k, side, a, d_out), hard, atol=1e-12)
            core.message(lay, 2 * e + side, a, out, eta)
            assert np.allclose(out, soft, atol=1e-9)
            core.message(lay, 2 * e + side, a, out, np.inf)
            assert np.allclose(out, hard, atol=1e-12)


@given(models(), st.sampled_from([0.5, 1000.0]))
def test_scaled_potentials_scale_energies(model, factor):
    scaled = model.replace(
        unary=model.network.unary * factor,
        potentials=[p.scaled(factor) for p in model.network.potentials],
        constant=model.constant * factor,
    )
    labellings = all_labellings(model)
    assert np.allclose(scaled.energy(labellings), model.energy(labellings) * factor)

"""Every compiled message equals its numpy twin, for every family, η, shape and forbidden state."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from families import FAMILIES
from softmap.kernels import fastmath, messages
from softmap.model import Model
from softmap.model.layout import layout

ETAS = (1e-3, 1.0, 100.0, 1e5, 1e8)


def _random_case(name, seed):
    rng = np.random.default_rng(seed)
    rows, cols = rng.integers(1, 9, 2)
    if rng.random() < 0.4:
        cols = rows
    potential = FAMILIES[name](rng, int(rows), int(cols), bool(rng.random() < 0.5))
    model = Model([np.zeros(rows), np.zeros(cols)], [[0, 1]], potential)
    side = int(rng.integers(2))
    a = rng.normal(size=model.num_labels[1 - side]) * rng.choice([1.0, 100.0])
    if rng.random() < 0.3:
        a[rng.random(len(a)) < 0.4] = np.inf
    return model, potential, side, a


@pytest.mark.parametrize("name", FAMILIES)
@given(seed=st.integers(0, 2**32 - 1))
def test_soft_message_equals_numpy(name, seed):
    model, potential, side, a = _random_case(name, seed)
    out = np.empty(model.num_labels[side])
    scale = 1.0 + np.abs(a[np.isfinite(a)]).max(initial=0.0)
    for eta in ETAS:
        messages.soft_message(layout(model), side, a, out, eta)
        expected = potential.soft_message(0, side, a, eta, len(out))
        np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-11 * (scale + 1 / eta))


@pytest.mark.parametrize("name", FAMILIES)
@given(seed=st.integers(0, 2**32 - 1))
def test_hard_message_equals_numpy(name, seed):
    model, potential, side, a = _random_case(name, seed)
    out = np.empty(model.num_labels[side])
    messages.hard_message(layout(model), side, a, out)
    np.testing.assert_allclose(out, potential.hard_message(0, side, a, len(out)), atol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
@given(seed=st.integers(0, 2**32 - 1))
def test_edge_costs_are_the_table(name, seed):
    model, _, _, _ = _random_case(name, seed)
    table = model.table(0)
    out = np.empty(table.size)
    messages.edge_costs(layout(model), 0, out)
    np.testing.assert_array_equal(out.reshape(table.shape), table)
    x, y = (int(s) - 1 for s in table.shape)
    assert messages.pair_cost(layout(model), 0, x, y) == table[x, y]


def test_exp_and_log_are_accurate():
    rng = np.random.default_rng(0)
    x = -np.concatenate([rng.exponential(50.0, 10_000), [0.0, 1e-300]])
    x = x[x > -700]
    out = np.empty_like(x)
    fastmath.exp_array(x, out)
    np.testing.assert_allclose(out, np.exp(x), rtol=1e-12)
    fastmath.exp_array(np.array([-np.inf, -1e9]), out[:2])
    assert (out[:2] < 1e-300).all()
    x = 10.0 ** rng.uniform(-300, 15, 10_000)
    out = np.empty_like(x)
    fastmath.log_array(x, out)
    np.testing.assert_allclose(out, np.log(x), rtol=1e-14, atol=1e-15)

"""Every compiled message equals its numpy twin, for every family, η, shape and forbidden state."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmap import core
from softmap.errors import ModelError
from softmap.model import Model, Potts, TruncatedQuadratic
from softmap.model.layout import layout
from softmap.model.potentials import KernelData
from support.families import FAMILIES, single
from support.numpy_twins import hard_message, soft_message

ETAS = (1e-3, 1.0, 100.0, 1e5, 1e8)


def _random_case(name, seed):
    rng = np.random.default_rng(seed)
    rows, cols = rng.integers(1, 9, 2)
    if rng.random() < 0.4:
        cols = rows
    potential = single(name, rng, int(rows), int(cols), bool(rng.random() < 0.5))
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
        core.message(layout(model.network), side, a, out, eta)
        expected = soft_message(potential, 0, side, a, eta, len(out))
        np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-11 * (scale + 1 / eta))


@pytest.mark.parametrize("name", FAMILIES)
@given(seed=st.integers(0, 2**32 - 1))
def test_hard_message_equals_numpy(name, seed):
    model, potential, side, a = _random_case(name, seed)
    out = np.empty(model.num_labels[side])
    core.message(layout(model.network), side, a, out, np.inf)
    np.testing.assert_allclose(out, hard_message(potential, 0, side, a, len(out)), atol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
@given(seed=st.integers(0, 2**32 - 1))
def test_entries_are_the_table(name, seed):
    """A far end that allows one label only sends that label's costs, up to a rounding per step."""
    model, _, side, _ = _random_case(name, seed)
    table = model.network.table(0) if side == 0 else model.network.table(0).T
    out = np.empty(model.num_labels[side])
    for x in range(table.shape[1]):
        a = np.full(table.shape[1], np.inf)
        a[x] = 0.0
        core.message(layout(model.network), side, a, out, np.inf)
        np.testing.assert_allclose(out, table[:, x], rtol=1e-15)


def _many_labels(seed):
    """A squared distance of at least 96 labels, and costs of the sender at all scales."""
    rng = np.random.default_rng(seed)
    d, weight = int(rng.integers(96, 300)), 10.0 ** rng.uniform(-6, 3)
    x, top = np.arange(d), weight * d * d
    truncation = rng.choice([1e9, rng.integers(96, d + 1) ** 2 - 0.5, 95.0**2 + 1])
    a = np.array(
        [
            np.zeros(d),
            -weight * (x - rng.uniform(0, d)) ** 2,  # equal for one label of the receiver
            np.maximum(-weight * (x - rng.uniform(0, d)) ** 2, -0.1 * top),
            top * 10.0 ** rng.uniform(-5, 1) * rng.normal(size=d),
            0.1 * top * np.sin(x * rng.uniform(0.01, 0.5)) - weight * rng.uniform(0, 1) * x**2,
            weight * rng.integers(0, 100, d),
        ]
    )[rng.integers(6)]
    if rng.random() < 0.3:
        a[rng.random(d) < rng.uniform(0, 1)] = np.inf
    if rng.random() < 0.3:
        a[: rng.integers(d)] = np.inf
    a += rng.choice([0.0, 1e6 * top])
    model = Model(np.zeros((2, d)), [[0, 1]], TruncatedQuadratic(weight, truncation))
    return model, a, 1e-15 * (top + np.abs(a[np.isfinite(a)]).max(initial=0.0))


@given(seed=st.integers(0, 2**32 - 1), eta=st.floats(-3, 6))
def test_soft_messages_of_many_labels_equal_numpy(seed, eta):
    model, a, error = _many_labels(seed)
    potential, out = model.potentials[0], np.empty(len(a))
    eta = float(10.0**eta / potential.weights[0] / len(a) ** 2 * 50)
    expected = soft_message(potential, 0, 1, a, eta, len(a))
    core.message(layout(model.network), 1, a, out, eta)
    np.testing.assert_allclose(out, expected, rtol=0, atol=3 * error + 1e-11 / eta)


@given(seed=st.integers(0, 2**32 - 1))
def test_hard_messages_of_many_labels_equal_numpy(seed):
    model, a, error = _many_labels(seed)
    out = np.empty(len(a))
    core.message(layout(model.network), 1, a, out, np.inf)
    np.testing.assert_allclose(
        out, hard_message(model.potentials[0], 0, 1, a, len(a)), rtol=0, atol=error
    )


@given(seed=st.integers(0, 2**32 - 1))
def test_bounds_of_many_labels_are_just_below_the_exact_minimum(seed):
    model, a, error = _many_labels(seed)
    rng, a = np.random.default_rng(seed), np.where(np.isfinite(a), a, 0.0)
    hard = hard_message(model.potentials[0], 0, 1, a, len(a))
    lam = np.concatenate([a, -hard + rng.choice([0.0, error]) * rng.normal(size=len(a))])
    found = np.empty(1)
    core.edge_minima(layout(model.network), lam, found, 1)
    table = model.network.table(0) + lam[: len(a), None] + lam[len(a) :]
    near = np.argwhere(table <= table.min() + 10 * error)  # by rounding, one of them is least
    potential = model.potentials[0]
    weight, cut = Fraction(potential.weights[0]), Fraction(potential.truncation[0])
    exact = min(
        weight * min(Fraction(int(x - y) ** 2), cut) + Fraction(lam[x]) + Fraction(lam[len(a) + y])
        for x, y in near
    )
    assert Fraction(found[0]) <= exact
    assert exact - Fraction(found[0]) <= 2 * error


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
@pytest.mark.parametrize("eta", [1.0, np.inf])
def test_messages_of_many_labels_from_what_is_no_number_are_numbers_or_infinite(bad, eta):
    model, costs, _ = _many_labels(0)
    for some in (slice(None), slice(3), slice(50, 60)):
        a, out = costs.copy(), np.full(len(costs), np.nan)
        a[some] = bad
        core.message(layout(model.network), 1, a, out, eta)
        assert not np.isnan(out).any()


def test_an_unknown_kind_is_refused():
    class Strange(Potts):
        def kernel_data(self, rows, cols):
            return KernelData("strange", weight=self.weights)

    model = Model([[0.0, 1.0], [1.0, 0.0]], [[0, 1]], Strange([0.5]))
    with pytest.raises(ModelError, match="no compiled kernel reads potentials of kind 'strange'"):
        layout(model.network)


def test_arrays_of_another_type_or_size_are_refused():
    model = Model([[0.0, 1.0], [1.0, 0.0]], [[0, 1]], Potts([0.5]))
    out = np.empty(2)
    with pytest.raises(TypeError):
        core.message(layout(model.network), 0, np.zeros(2, np.float32), out, 1.0)
    with pytest.raises(TypeError):
        core.message(layout(model.network), 0, np.zeros(4)[::2], out, 1.0)
    with pytest.raises(ValueError, match="a must have 2 entries, not 3"):
        core.message(layout(model.network), 0, np.zeros(3), out, 1.0)

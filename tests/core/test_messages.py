"""Every compiled message equals its numpy twin, for every family, η, shape and forbidden state."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmap import core
from softmap.errors import ModelError
from softmap.model import Model, Potts
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
        core.message(layout(model), side, a, out, eta)
        expected = soft_message(potential, 0, side, a, eta, len(out))
        np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-11 * (scale + 1 / eta))


@pytest.mark.parametrize("name", FAMILIES)
@given(seed=st.integers(0, 2**32 - 1))
def test_hard_message_equals_numpy(name, seed):
    model, potential, side, a = _random_case(name, seed)
    out = np.empty(model.num_labels[side])
    core.message(layout(model), side, a, out, np.inf)
    np.testing.assert_allclose(out, hard_message(potential, 0, side, a, len(out)), atol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
@given(seed=st.integers(0, 2**32 - 1))
def test_entries_are_the_table(name, seed):
    """A far end that allows one label only sends that label's costs, up to a rounding per step."""
    model, _, side, _ = _random_case(name, seed)
    table = model.table(0) if side == 0 else model.table(0).T
    out = np.empty(model.num_labels[side])
    for x in range(table.shape[1]):
        a = np.full(table.shape[1], np.inf)
        a[x] = 0.0
        core.message(layout(model), side, a, out, np.inf)
        np.testing.assert_allclose(out, table[:, x], rtol=1e-15)


def test_an_unknown_kind_is_refused():
    class Strange(Potts):
        def kernel_data(self, rows, cols):
            return KernelData("strange", weight=self.weights)

    model = Model([[0.0, 1.0], [1.0, 0.0]], [[0, 1]], Strange([0.5]))
    with pytest.raises(ModelError, match="no compiled kernel reads potentials of kind 'strange'"):
        layout(model)


def test_arrays_of_another_type_or_size_are_refused():
    model = Model([[0.0, 1.0], [1.0, 0.0]], [[0, 1]], Potts([0.5]))
    out = np.empty(2)
    with pytest.raises(TypeError):
        core.message(layout(model), 0, np.zeros(2, np.float32), out, 1.0)
    with pytest.raises(TypeError):
        core.message(layout(model), 0, np.zeros(4)[::2], out, 1.0)
    with pytest.raises(ValueError, match="a must have 2 entries, not 3"):
        core.message(layout(model), 0, np.zeros(3), out, 1.0)

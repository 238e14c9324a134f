"""Passes made on a copy of a state are those that the state itself would have seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_chains import models_of

from families import FAMILIES
from softmap import core, generators
from softmap.algorithms.pace import Pace
from softmap.algorithms.sweeps import chains
from softmap.algorithms.sweeps.ahead import PassesAhead
from softmap.algorithms.sweeps.anneal import Anneal, AnnealState
from softmap.model import Model
from softmap.relaxation.consistency import tighten


def begun(model: Model, dtype: str, passes: int) -> tuple[Anneal, AnnealState]:
    method = Anneal(dtype=dtype)
    state = method.init(tighten(model), None, 0)
    method.step(state, passes)
    return method, state


def same(one: AnnealState, other: AnnealState) -> None:
    """Both stand at the same place, to the bit."""
    for name in ("passes", "samples", "eta", "work"):
        assert getattr(one, name) == getattr(other, name)
    np.testing.assert_array_equal(one.mean, other.mean)
    for name in ("msg", "prev", "clock", "shift"):
        mine, others = (getattr(state.messages, name) for state in (one, other))
        np.testing.assert_array_equal(mine, others)


@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=5)
@given(
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from(["float64", "float32"]),
    chunks=st.lists(st.integers(1, 4), min_size=1, max_size=4),
)
def test_a_state_that_joins_passes_made_ahead_has_made_them(name, seed, dtype, chunks):
    for model in models_of(name, seed):
        method, state = begun(model, dtype, 7)
        if len(state.good):
            continue  # it may have to go back
        plain, other = begun(model, dtype, 7)
        ahead = PassesAhead(method, method.engine, state)
        for count in chunks:
            ahead.step(count)
        method.propose(state)  # which looks at messages, and overwrites some of them
        plain.propose(other)
        plain.step(other, sum(chunks))
        assert ahead.join(state)
        same(state, other)
        mine, others = method.propose(state), plain.propose(other)
        assert (mine.bound, mine.smoothed) == (others.bound, others.smoothed)
        np.testing.assert_array_equal(mine.lam, others.lam)
        np.testing.assert_array_equal(mine.nodes[0], others.nodes[0])


def test_what_was_proved_before_is_proved_afterwards():
    """λ of a bound, made after the messages of the run have been exchanged for others."""
    method, state = begun(generators.random_grid(6, 6, 3, seed=1), "float64", 30)
    ahead = PassesAhead(method, method.engine, state)
    ahead.step(5)
    proposal = method.propose(state)
    plain, other = begun(generators.random_grid(6, 6, 3, seed=1), "float64", 30)
    expected = plain.propose(other).lam
    assert ahead.join(state)
    np.testing.assert_array_equal(proposal.lam, expected)


@pytest.mark.parametrize("change", ["eta", "memory", "passes"])
def test_passes_at_another_place_are_not_joined(change):
    method, state = begun(generators.random_grid(6, 6, 3, seed=1), "float64", 30)
    ahead = PassesAhead(method, method.engine, state)
    ahead.step(2)
    before = state.messages.msg.copy()
    setattr(state, change, 3 * getattr(state, change))
    assert not ahead.join(state)
    np.testing.assert_array_equal(state.messages.msg, before)


def test_a_core_is_idle_where_one_thread_is_faster_and_messages_are_few(monkeypatch):
    method, state = begun(generators.random_grid(6, 6, 3, seed=1), "float64", 30)
    assert method.ahead(state) is None  # it has one thread only
    method.use(2)
    monkeypatch.setattr(Pace, "prefers_one", False)
    assert method.ahead(state) is None
    monkeypatch.setattr(Pace, "prefers_one", True)
    assert isinstance(method.ahead(state), PassesAhead)
    monkeypatch.setattr(chains, "TWICE", 0)
    assert method.ahead(state) is None


def test_states_that_may_go_back_are_not_copied(monkeypatch):
    monkeypatch.setattr(Pace, "prefers_one", True)
    method, state = begun(generators.random_grid(6, 6, 3, seed=1), "float64", 30)
    assert method.ahead(state) is not None
    state.good = state.messages.msg.copy()
    assert method.ahead(state) is None


def test_a_copy_of_messages_begins_at_cache_lines():
    _, state = begun(generators.random_grid(6, 6, 3, seed=1), "float64", 3)
    copy = state.messages.copy()
    for name in ("msg", "prev", "shift"):
        new, old = getattr(copy, name), getattr(state.messages, name)
        np.testing.assert_array_equal(new, old)
        assert not np.shares_memory(new, old)
        assert new.ctypes.data % (core.LANES * 8) == 0

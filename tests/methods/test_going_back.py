"""Momentum that led downhill on larger factors: the run goes back, and is calmer from then on."""

from __future__ import annotations

import numpy as np

import softmap
from softmap.methods.base import Assessment
from softmap.methods.policy import AnnealingRule
from softmap.methods.sweeps.anneal import Anneal
from softmap.relaxation.consistency import tighten


def _started(model):
    method = Anneal()
    state = method.init(tighten(model), None, 0)
    method.step(state, 5)
    method.propose(state)
    return method, state


VERDICT = Assessment(0.0, (1.0,), 0.0, 0.0)


def test_a_fall_of_the_smoothed_dual_is_taken_back():
    rng = np.random.default_rng(0)
    unary = [((i,), rng.normal(size=2)) for i in range(8)]
    model = softmap.Model.from_factors([2] * 8, [*unary, softmap.Parity(range(8))])
    method, state = _started(model)
    state.previous = state.smoothed - 1.0
    method.observe(state, VERDICT)
    good = state.messages.msg.copy()
    method.step(state, 5)
    state.eta, state.previous, state.smoothed = 1.0, 5.0, 4.0
    method.observe(state, VERDICT)
    assert np.array_equal(state.messages.msg, good)
    assert state.calm == 1 / AnnealingRule().calmer
    assert state.eta == 1.0
    state.smoothed = np.nan  # so is what is no number
    method.step(state, 5)
    method.observe(state, VERDICT)
    assert np.array_equal(state.messages.msg, good)


def test_pairwise_models_hold_no_copy():
    method, state = _started(softmap.generators.potts_grid(4, 4, 3, seed=0))
    state.previous = state.smoothed + 1.0
    before = state.messages.msg.copy()
    method.observe(state, VERDICT)
    assert not len(state.good)
    assert np.array_equal(state.messages.msg, before)
    assert state.calm == 1

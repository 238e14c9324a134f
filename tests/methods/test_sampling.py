"""The running average of node marginals, compiled and turn by turn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmap.generators import potts_grid
from softmap.methods.sweeps.anneal import AnnealNumbers
from softmap.methods.sweeps.chains import Chains
from softmap.methods.sweeps.loops import SAMPLED, Messages, Sampling, sampled_by_turns
from softmap.methods.sweeps.stars import Stars
from softmap.relaxation.consistency import tighten
from support.strategies import models

RECENT = AnnealNumbers().recent

COUNTS = st.lists(st.integers(1, 13), min_size=1, max_size=4)


def begun(engine: Chains | Stars, seed: int) -> Messages:
    size = engine.model.network.half_size
    return engine.start(np.random.default_rng(seed).normal(size=size))


@given(
    model=models(hard=True).map(tighten),
    counts=COUNTS,
    eta=st.sampled_from([0.5, 30.0, 1e4]),
    longest=st.sampled_from([1.0, 3.0, np.inf]),
    averaging=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_compiled_samples_are_those_taken_turn_by_turn(
    model, counts, eta, longest, averaging, seed
):
    ways = []
    for sampled in (Chains.sampled_passes, sampled_by_turns):
        engine = Chains(model.network, 1)
        state, passes, samples = begun(engine, seed), 0, 0
        mean = np.zeros(model.unary.size if averaging else 0)
        for count in counts:
            sampling = Sampling(passes, samples, longest, mean, RECENT)
            sampled(engine, state, count, eta, sampling)
            after = sampling.after(count)
            passes, samples = after.passes, after.samples
        ways.append((mean, state.msg, state.drift, state.clock, state.shift, samples))
    assert passes == sum(counts)
    assert samples == (passes // SAMPLED if averaging else 0)
    for compiled, plain in zip(*ways, strict=True):
        np.testing.assert_array_equal(compiled, plain)


@pytest.mark.parametrize("kind", [Chains, Stars])
def test_the_mean_weighs_samples_by_how_late_they_are(kind):
    model, eta, turns = potts_grid(4, 5, 3, seed=1), 5.0, 6
    engine, plain = kind(model.network, 1), kind(model.network, 1)
    state, alike = engine.start(None), plain.start(None)
    mean, nodes, weights = np.zeros(model.unary.size), [], []
    engine.sampled_passes(state, turns * SAMPLED, eta, Sampling(0, 0, np.inf, mean, RECENT))
    for k in range(1, turns + 1):
        plain.passes(alike, SAMPLED, eta, momentum=True)
        nodes.append(plain.nodes(alike.msg, eta))
        newest = (RECENT + 1) / (k + RECENT)
        weights = [w * (1 - newest) for w in weights] + [newest]
    assert sum(weights) == pytest.approx(1.0)
    assert weights == sorted(weights)
    np.testing.assert_allclose(mean, np.average(nodes, axis=0, weights=weights), atol=1e-14)


@given(model=models(), seed=st.integers(0, 2**32 - 1))
def test_threads_do_not_show_in_samples(model, seed):
    means = []
    for threads in (1, 3):
        engine, mean = Chains(model.network, threads), np.zeros(model.network.unary.size)
        engine.sampled_passes(begun(engine, seed), 7, 2.0, Sampling(0, 0, 10.0, mean, RECENT))
        means.append(mean)
    np.testing.assert_array_equal(*means)

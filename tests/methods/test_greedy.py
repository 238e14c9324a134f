"""Greedy methods against plain numpy; what is proved about them holds on runs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmap import generators, paper
from softmap.methods.base import make
from softmap.model import Model
from softmap.paper import rates, theory
from softmap.paper.greedy import AccelGreedySMP, SampledSMP
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import SmoothedDual
from support import numpy_twins as twins
from support.strategies import few, models, random_lam, seeds

GREEDY = ("greedy-emp", "greedy-smp")
NAMES = (*GREEDY, "sampled-emp", "sampled-smp", "accel-greedy-smp")


def ranks(model, lam, eta, stars):
    """Σ_B ‖ν‖₁² / (|B| + 1) of the block of every half-edge, by definition."""
    norms = [np.abs(paper.nu(model.network, lam, eta, [h])).sum() ** 2 for h in range(2 * model.m)]
    if not stars:
        return np.array(norms) / 2
    blocks = [paper.N(model.network, int(i)) for i in model.edges.reshape(-1)]
    return np.array([sum(norms[g] for g in b) / (len(b) + 1) for b in blocks])


def first_of(model, seed):
    excluded = np.isposinf(model.unary)[SmoothedDual(model, 1.0)._half_states]
    return np.where(excluded, 0.0, random_lam(model, seed))


@pytest.mark.parametrize("name", GREEDY)
@few
@given(model=models(max_n=4, max_d=3).map(tighten), seed=seeds, eta=st.sampled_from([1.0, 30.0]))
def test_greedy_updates_are_those_of_largest_slack(name, model, seed, eta):
    if not model.m:
        return
    stars, lam = name == "greedy-smp", first_of(model, seed)
    update = paper.smp if stars else paper.emp
    algorithm = make(name, eta=eta)
    state = algorithm.init(model, lam, seed)
    for _ in range(8):
        found = ranks(model, lam, eta, stars)
        if np.sort(found)[-2 if stars else -1] < 1e-12:
            return  # a tie of rounding errors
        algorithm.step(state, 1)
        now = state.current()
        allowed = np.flatnonzero(found >= found.max() * (1 - 1e-9))
        options = [_updated(model, lam, eta, update, int(h)) for h in allowed]
        distances = [np.abs(now - option).max() for option in options]
        assert min(distances) <= 1e-9 * (1 + np.abs(lam).max())
        lam = now


def _updated(model, lam, eta, update, h):
    """λ after the update of half-edge h, or of its star."""
    block = paper.N(model.network, paper.vertex(model.network, h)) if update is paper.smp else [h]
    out = lam.copy()
    out[paper.entries(model.network, block)] = update(model, lam, eta, block)
    return out


def test_a_sample_of_one_is_the_random_method():
    model = tighten(generators.ragged_constrained(9, seed=2))
    runs = []
    for algorithm in (make("smp", eta=20.0), SampledSMP(20.0, sample=1)):
        state = algorithm.init(model, None, 5)
        algorithm.step(state, 200)
        runs.append((state.current(), state.work))
    np.testing.assert_array_equal(runs[0][0], runs[1][0])
    assert runs[0][1] == runs[1][1]
    runs = []
    for algorithm in (make("accel-smp", eta=20.0), AccelGreedySMP(20.0, 1, restart=False)):
        state = algorithm.init(model, None, 5)
        algorithm.step(state, 200)
        runs.append(algorithm.propose(state).lam)
    np.testing.assert_allclose(runs[0], runs[1], atol=1e-12)


@few
@given(model=models(max_n=4, max_d=3).map(tighten), seed=seeds, sample=st.integers(2, 4))
def test_the_semi_greedy_method_follows_its_numpy_twin(model, seed, sample):
    if not model.m:
        return
    eta, lam = 20.0, first_of(model, seed)
    algorithm = AccelGreedySMP(eta, sample, restart=False)
    state = algorithm.init(model, lam, seed)
    generator, v, theta = twins.Xoshiro.seeded(seed), lam.copy(), 1.0
    gain = paper.gain("sharp", model.network, paper.Blocks.STARS, eta)
    for _ in range(10):
        theta = 2 * theta / (theta + np.sqrt(theta**2 + 4))
        y = theta * v + (1 - theta) * lam
        drawn = [generator.half_edge(model) for _ in range(sample)]
        found = ranks(model, y, eta, stars=True)[drawn]
        if np.unique(found.round(9)).size < np.unique(model.edges.reshape(-1)[drawn]).size:
            return  # a tie
        lam = _updated(model, y, eta, paper.smp, drawn[int(found.argmax())])
        i = paper.vertex(model.network, drawn[0])
        star = paper.N(model.network, i)
        v[paper.entries(model.network, star)] += (
            gain[i] / theta * paper.nu(model.network, y, eta, star)
        )
        algorithm.step(state, 1)
        np.testing.assert_allclose(algorithm.propose(state).lam, lam, atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_chunks_change_nothing_and_work_is_counted(name):
    model = tighten(generators.ragged_constrained(12, seed=4))
    runs = []
    for chunks in ([600], [1, 99, 0, 500]):
        algorithm = make(name, eta=50.0)
        state = algorithm.init(model, None, 7)
        for count in chunks:
            algorithm.step(state, count)
        runs.append((algorithm.propose(state).lam, state.work))
    np.testing.assert_array_equal(runs[0][0], runs[1][0])
    assert runs[0][1] == runs[1][1] >= 600
    alone = make(name, eta=10.0)
    state = alone.init(Model([[0.0, 1.0]] * 3, None, []).network, None, 0)
    alone.step(state, 10)
    assert state.work == 0


@pytest.mark.parametrize("name", ["emp", "smp", *GREEDY])
def test_rates_hold_on_runs(name):
    """Greedy methods are monotone, and L(λ_k) - L* is below its bound at every k."""
    blocks, greedy = "stars" if "smp" in name else "edges", name in GREEDY
    rate = rates.greedy_rate if greedy else rates.random_rate
    for seed in range(2):
        model, eta = generators.erdos_renyi(7, 2, seed=seed), 30.0
        s, dual = theory.sizes(model), SmoothedDual(model, eta)
        least, _ = twins.long_run(model, eta)
        algorithm = make(name, eta=eta)
        state = algorithm.init(model.network, None, seed)
        errors, slacks = [], []
        for _ in range(40):
            algorithm.step(state, 4)
            errors.append(dual.value(state.current()) - least)
            slacks.append(float(state.half[:, 0].sum()))
        assert (np.diff(errors) <= 1e-9).all()
        k = np.arange(4, 161, 4)
        assert (np.array(errors) <= rate(k, s, eta, blocks)).all()
        if not greedy:
            kept = np.minimum.accumulate(slacks)
            assert (kept <= rates.slack_rate(k, s, eta, blocks)).all()


def test_restarts_do_not_raise_L():
    model, eta = generators.erdos_renyi(8, seed=1), 300.0
    algorithm = make("accel-greedy-smp", eta=eta)
    state = algorithm.init(model.network, None, 0)
    values = []
    for _ in range(40):
        algorithm.step(state, 16 * model.n)
        values.append((state.value, state.restarts))
        assert state.value == pytest.approx(
            SmoothedDual(model, eta).value(algorithm.propose(state).lam)
        )
    for (before, count), (after, later) in pairwise(values):
        assert later == count + (after > before)
    assert values[-1][1] > 0
    least, _ = twins.long_run(model, eta)
    assert values[-1][0] <= least + 1e-6

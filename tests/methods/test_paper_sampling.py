"""Where the randomness comes from: exact distributions, and the same bits on every road."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from softmap import generators, paper
from softmap.methods.base import make
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import SmoothedDual
from support import numpy_twins as twins

NORM = 0  # column of StandardState.half
PAPER = tuple(paper.ALGORITHMS)


def _run(model, name, seed, chunks):
    algorithm = make(name, eta=50.0)
    state = algorithm.init(model.network, None, seed)
    for count in chunks:
        algorithm.step(state, count)
    return algorithm.propose(state).lam, state.work


@pytest.mark.parametrize("name", PAPER)
def test_chunks_and_repetition_change_nothing(name):
    model = tighten(generators.ragged_constrained(12, seed=4))
    whole, work = _run(model, name, 7, [300])
    for chunks in ([300], [1] * 300, [100, 0, 199, 1]):
        again, same_work = _run(model, name, 7, chunks)
        np.testing.assert_array_equal(again, whole)
        assert same_work == work
    other, _ = _run(model, name, 8, [300])
    assert not np.array_equal(other, whole)


@pytest.mark.parametrize("name", PAPER)
def test_parallel_trials_equal_serial_ones(name):
    model = generators.erdos_renyi(30, seed=1)
    serial = [_run(model, name, seed, [500, 500]) for seed in range(6)]
    with ThreadPoolExecutor(4) as pool:
        parallel = list(pool.map(lambda seed: _run(model, name, seed, [500, 500]), range(6)))
    for (a, work_a), (b, work_b) in zip(serial, parallel, strict=True):
        np.testing.assert_array_equal(a, b)
        assert work_a == work_b


@pytest.mark.parametrize("name", PAPER)
def test_work_counts_half_edge_messages(name):
    model = generators.erdos_renyi(9, seed=0)
    algorithm = make(name, eta=50.0)
    state = algorithm.init(model.network, None, 3)
    algorithm.step(state, 40)
    twin = twins.Xoshiro.seeded(3)
    drawn = [int(model.edges.reshape(-1)[twin.half_edge(model)]) for _ in range(40)]
    stars = sum(len(paper.N(model.network, i)) for i in drawn)
    assert state.work == (stars if "smp" in name else 40)


# --- the iterate that Algorithm 1 returns -------------------------------------------------------


@pytest.mark.usefixtures("stacked_once")
@pytest.mark.parametrize("name", ["emp", "smp", "bcd"])
@pytest.mark.parametrize("seed", range(4))
def test_the_best_of_all_iterates_is_returned(name, seed):
    model = tighten(generators.ragged_constrained(8, seed=seed))
    eta = 20.0
    rough = 3.0 * np.random.default_rng(seed).normal(size=int(model.half_offset[-1]))
    algorithm = make(name, eta=eta)
    state = algorithm.init(model, rough, seed)
    dual = SmoothedDual(model, eta)
    totals, iterates = [], []
    for _ in range(150):
        nu = dual.slack(state.current())
        norms = np.add.reduceat(np.abs(nu), model.half_offset[:-1]) ** 2
        np.testing.assert_allclose(state.half[:, NORM], norms[model.graph.half], atol=1e-9)
        assert state.total[0] == pytest.approx(norms.sum(), rel=1e-9, abs=1e-12)
        totals.append(state.total[0])
        iterates.append(state.current())
        expected = iterates[int(np.argmin(totals))]
        np.testing.assert_array_equal(algorithm.propose(state).lam, expected)
        algorithm.step(state, 1)
    assert 0 < np.argmin(totals)


def test_the_running_sum_does_not_drift():
    """After many updates the sum still is what its terms add up to, to thirty digits."""
    model = generators.random_tree(12, 3, seed=1)
    algorithm = make("smp", eta=10.0)
    state = algorithm.init(model.network, None, 0)
    start = state.total[0]
    algorithm.step(state, 100_000)
    assert state.total[0] == pytest.approx(math.fsum(state.half[:, NORM]), abs=1e-30 * start)


def test_a_warm_start_is_itself_a_candidate():
    """From a minimiser nothing is better than where one began, whatever rounding does."""
    model = generators.random_tree(6, 3, seed=2)
    _, lam = twins.least_dual(model, 5.0)
    algorithm = make("bcd", eta=5.0)
    state = algorithm.init(model.network, lam, 0)
    algorithm.step(state, 50)
    proposed = algorithm.propose(state).lam
    assert paper.slack(model.network, proposed, 5.0) <= paper.slack(model.network, lam, 5.0) + 1e-15

"""The loops of the paper's methods against numpy twins written from the paper's statements."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmap import core, generators, paper
from softmap.arguments import seeded
from softmap.model.layout import layout
from softmap.paper.runs import gains
from softmap.relaxation.consistency import tighten
from support import numpy_twins as twins
from support.strategies import FAMILIES, Recipe, build, few, models, random_lam

NORM = 0  # column of `half`
STANDARD = ("emp", "smp", "bcd")
seeds = st.integers(0, 2**32 - 1)


def _words(seed):
    return seeded(seed)


def _order(model):
    return core.StarOrder(layout(model.network))


def _star_index(model):
    """Place in λ of every entry in star order."""
    return np.concatenate([np.r_[model.network.half_slice(h)] for h in model.network.graph.half])


def _switches(name):
    return "smp" in name, "bcd" not in name  # stars, exact


@dataclass
class StandardArrays:
    """Arrays of a run of Algorithm 1 from λ in star order."""

    lam: np.ndarray
    incoming: np.ndarray
    S: np.ndarray
    mu: np.ndarray
    half: np.ndarray
    node_level: np.ndarray
    total: np.ndarray
    saved: np.ndarray
    stamp: np.ndarray
    epoch: np.ndarray

    @classmethod
    def at(cls, model, lam):
        halves = 2 * model.m
        return cls(
            lam=lam.copy(),
            incoming=np.full(len(lam), np.nan),
            S=np.full(len(lam), np.nan),
            mu=np.full(model.unary.size, np.nan),
            half=np.full((halves, 2), np.nan),
            node_level=np.full(model.n, np.nan),
            total=np.full(3, np.nan),
            saved=lam.copy(),
            stamp=np.zeros(halves, dtype=np.int64),
            epoch=np.ones(1, dtype=np.int64),
        )

    def run(self, order, **changed):
        return core.StandardRun(order, *(vars(self) | changed).values())


def _native_standard(name, model, eta, lam, words):
    """λ^(1), λ^(2), … of Algorithm 1, in star order."""
    arrays = StandardArrays.at(model, lam)
    run = arrays.run(_order(model))
    run.begin(eta)
    while True:
        run.run(eta, *_switches(name), 1, words)
        yield arrays.lam.copy()


def _native_accelerated(name, model, eta, lam, words):
    """λ^(1), λ^(2), … of Algorithms 2 and 3, in star order."""
    printed, order = name.endswith("printed"), _order(model)
    v, w, theta = lam.copy(), lam.copy() if printed else np.zeros_like(lam), 1.0
    _, order_of, scheme = paper.ALGORITHMS[name]
    gain = gains(model.network, order_of, order_of(model), scheme, eta)
    if order_of is paper.edges:
        gain = np.full(model.n, gain[0])
    run = core.AcceleratedRun(order, v, w, gain)
    while True:
        theta, _ = run.run(eta, *_switches(name), printed, 1, theta, words)
        yield w.copy() if printed else v + theta**2 * w


def _first(model, seed):
    """A random λ, 0 on forbidden states."""
    excluded = [np.isposinf(model.network.unary_of(int(i))) for i in model.edges.reshape(-1)]
    return np.where(np.concatenate(excluded), 0.0, random_lam(model, seed))


def _assert_follows_twin(name, model, eta, seed, updates):
    first, index = _first(model, seed), _star_index(model)
    native = _native_standard if name in STANDARD else _native_accelerated
    found = native(name, model, eta, first[index], _words(seed))
    expected = paper.iterate(model, *paper.ALGORITHMS[name], eta, lam=first, seed=seed)
    next(expected)  # λ^(0)
    for got, lam in itertools.islice(zip(found, expected, strict=False), updates):
        np.testing.assert_allclose(
            got, lam[index], rtol=1e-9, atol=1e-9 * (1 + 1 / eta), err_msg=name
        )


# --- the generator ------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**64), bound=st.integers(1, 2**63 - 1))
def test_the_generator_is_xoshiro(seed, bound):
    words = _words(seed)
    twin = twins.Xoshiro(words)
    assert [core.random_word(words) for _ in range(5)] == [twin.word() for _ in range(5)]
    for limit in (bound, 1, 2, 3, 1 << (bound.bit_length() - 1)):
        assert core.random_below(words, limit) == twin.below(limit)
    assert words.tolist() == twin.s


def test_the_generator_gives_the_published_numbers():
    """First outputs of xoshiro256++ from the state (1, 2, 3, 4)."""
    words = np.array([1, 2, 3, 4], dtype=np.uint64)
    assert [core.random_word(words) for _ in range(3)] == [41943041, 58720359, 3588806011781223]


@pytest.mark.parametrize("stars", [False, True])
def test_blocks_are_drawn_from_the_papers_distributions(stars):
    """Uniform over (e, i); vertices with probability |N_i| / N, exactly."""
    model = generators.erdos_renyi(9, seed=2)
    order, words, halves = _order(model), _words(11), 2 * model.m
    seen = np.zeros(halves)
    for _ in range(20_000):
        first, size = core.draw_block(order, stars, words)
        block = model.network.graph.half[first : first + size]
        node = model.edges.reshape(-1)[block[0]]
        assert sorted(block) == (paper.N(model.network, node) if stars else [block[0]])
        seen[block] += 1
    observed = seen[[paper.N(model.network, i)[0] for i in range(model.n)]] if stars else seen
    p = model.network.graph.degree / halves if stars else np.full(halves, 1 / halves)
    assert observed.sum() == 20_000
    assert twins.chance_of(observed, 20_000 * p) > 1e-3


# --- updates ------------------------------------------------------------------------------------


@few
@given(
    model=models(max_n=4, max_d=4).map(tighten),
    seed=seeds,
    eta=st.sampled_from([0.1, 1.0, 20.0, 1000.0]),
)
def test_methods_follow_their_numpy_twins(model, seed, eta):
    for name in paper.ALGORITHMS if model.m else ():
        _assert_follows_twin(name, model, eta, seed, updates=12)


@pytest.mark.parametrize("name", paper.ALGORITHMS)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("counts", [(11, 11, 11, 11), (9, 2, 17, 3)])
def test_methods_follow_their_numpy_twins_with_many_labels(name, family, counts):
    """More labels than one register holds, for every family."""
    if family == "factors":
        counts = tuple(min(d, 5) for d in counts)  # their joint states multiply
    recipe = Recipe(family, counts, ((0, 1), (2, 1), (2, 3), (0, 3)), True, False, 7)
    _assert_follows_twin(name, tighten(build(recipe)), 30.0, 5, updates=10)


@given(model=models(max_n=5, max_d=4).map(tighten), seed=seeds, eta=st.sampled_from([0.1, 20.0]))
def test_begin_fills_what_follows_from_lam(model, seed, eta):
    if not model.m:
        return
    first, index = _first(model, seed), _star_index(model)
    arrays = StandardArrays.at(model, first[index])
    arrays.run(_order(model)).begin(eta)
    marginals = [
        np.exp(paper.log_S(model.network, first, eta, h)) for h in model.network.graph.half
    ]
    np.testing.assert_allclose(arrays.S, np.concatenate(marginals), atol=1e-11)
    mu = [np.exp(paper.log_mu(model.network, first, eta, i)) for i in range(model.n)]
    np.testing.assert_allclose(arrays.mu, np.concatenate(mu), atol=1e-11)
    norms = [
        np.abs(paper.nu(model.network, first, eta, [h])).sum() ** 2
        for h in model.network.graph.half
    ]
    np.testing.assert_allclose(arrays.half[:, NORM], norms, atol=1e-10)
    assert arrays.total[0] == arrays.total[2] == pytest.approx(math.fsum(norms), abs=1e-10)


@pytest.mark.parametrize("name", STANDARD)
def test_the_running_sum_does_not_drift(name):
    """After many updates the sum still is what its terms add up to, to thirty digits."""
    model = generators.random_tree(12, 3, seed=1)
    arrays = StandardArrays.at(model, np.zeros(int(model.network.half_offset[-1])))
    run, words = arrays.run(_order(model)), _words(0)
    run.begin(10.0)
    start = arrays.total[0]
    run.run(10.0, *_switches(name), 100_000, words)
    assert arrays.total[0] == pytest.approx(math.fsum(arrays.half[:, NORM]), abs=1e-30 * start)


def test_work_counts_messages():
    model = generators.erdos_renyi(9, seed=0)
    order = _order(model)
    for stars in (False, True):
        arrays, words = (
            StandardArrays.at(model, np.zeros(int(model.network.half_offset[-1]))),
            _words(3),
        )
        run, again = arrays.run(order), words.copy()
        run.begin(50.0)
        expected = sum(core.draw_block(order, stars, again)[1] for _ in range(40))
        assert run.run(50.0, stars, True, 40, words) == expected
        np.testing.assert_array_equal(words, again)


# --- refusals -----------------------------------------------------------------------------------


def test_arrays_of_the_wrong_size_are_refused():
    model = generators.erdos_renyi(6, seed=0)
    order = _order(model)
    arrays = StandardArrays.at(model, np.zeros(int(model.network.half_offset[-1])))
    for name, array in vars(arrays).items():
        with pytest.raises(ValueError, match=name):
            arrays.run(order, **{name: array[:-1].copy()})
    v, gain, words = arrays.lam, np.ones(model.n), _words(0)
    good = {"v": v, "w": v.copy(), "gain": gain, "words": words}
    for name, array in good.items():
        changed = good | {name: array[:-1].copy()}
        last = changed.pop("words")
        with pytest.raises(ValueError, match=name):
            core.AcceleratedRun(order, **changed).run(1.0, True, True, True, 1, 1.0, last)


@pytest.mark.parametrize("stars", [False, True])
def test_sums_of_another_number_of_blocks_are_refused(stars):
    model = generators.erdos_renyi(6, seed=0)
    run = StandardArrays.at(model, np.zeros(int(model.network.half_offset[-1]))).run(_order(model))
    run.begin(1.0)
    count = model.n if stars else 2 * model.m
    run.run(1.0, stars, True, 1, _words(0), np.linspace(0.0, 1.0, count))
    with pytest.raises(ValueError, match="sums"):
        run.run(1.0, stars, True, 1, _words(0), np.linspace(0.0, 1.0, count + 1))


def test_arrays_of_another_kind_are_refused():
    """A converted copy would be written in vain."""
    model = generators.erdos_renyi(6, seed=0)
    order = _order(model)
    arrays = StandardArrays.at(model, np.zeros(int(model.network.half_offset[-1])))
    frozen = arrays.lam.copy()
    frozen.flags.writeable = False
    for lam in (arrays.lam.astype(np.float32), np.repeat(arrays.lam, 2)[::2], frozen):
        with pytest.raises(TypeError):
            arrays.run(order, lam=lam)


def test_numbers_without_meaning_are_refused():
    with pytest.raises(ValueError, match="bound must be positive, not 0"):
        core.random_below(_words(0), 0)
    model = generators.erdos_renyi(6, seed=0)
    arrays = StandardArrays.at(model, np.zeros(int(model.network.half_offset[-1])))
    run = arrays.run(_order(model))
    run.begin(1.0)
    with pytest.raises(ValueError, match="count must not be negative, not -1"):
        run.run(1.0, True, True, -1, _words(0))

"""The text of the paper's algorithms: numbers by hand, laws, and independent formulas."""

from __future__ import annotations

import inspect
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmap import generators, paper
from softmap.arguments import seeded
from softmap.errors import OptionError
from softmap.model import Model
from softmap.paper import algorithms
from softmap.relaxation import polytope
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import SmoothedDual
from support.numpy_twins import chance_of, least_dual
from support.strategies import few, models, random_lam, seeds

log = math.log
etas = st.sampled_from([0.1, 1.0, 20.0, 1000.0])


# --- by hand ------------------------------------------------------------------------------------


@pytest.fixture
def pair():
    """Two nodes and an edge; at η = 1 the factors exp(-C) are (1, 1/2), (1, 1), [[1, 1], [1, 5]].

    So μ_0 = (2/3, 1/3) and μ_1 = (1/2, 1/2). The table sums to 8: S_{e,0} = S_{e,1} = (1/4, 3/4).
    """
    return Model([[0.0, log(2)], [0.0, 0.0]], [[0, 1]], [[[0.0, 0.0], [0.0, -log(5)]]])


@pytest.fixture
def double():
    """The pair with a second edge of constant cost, whose S is (1/2, 1/2) at either endpoint."""
    tables = [[[0.0, 0.0], [0.0, -log(5)]], [[0.0, 0.0], [0.0, 0.0]]]
    return Model([[0.0, log(2)], [0.0, 0.0]], [[0, 1], [0, 1]], tables)


def test_marginals_slack_and_L_by_hand(pair):
    zero = np.zeros(4)
    nodes, table = paper.primal(pair.network, zero, 1.0)
    np.testing.assert_allclose(nodes, [2 / 3, 1 / 3, 1 / 2, 1 / 2])
    np.testing.assert_allclose(table, [1 / 8, 1 / 8, 1 / 8, 5 / 8])
    np.testing.assert_allclose(
        paper.nu(pair.network, zero, 1.0, [0]), [1 / 4 - 2 / 3, 3 / 4 - 1 / 3]
    )
    np.testing.assert_allclose(paper.nu(pair.network, zero, 1.0, [1]), [-1 / 4, 1 / 4])
    # ‖ν_{e,0}‖₁ = 5/12 + 5/12, ‖ν_{e,1}‖₁ = 1/4 + 1/4
    assert paper.slack(pair.network, zero, 1.0) == pytest.approx((5 / 6) ** 2 + (1 / 2) ** 2)
    # the sums of the factors are 3/2, 2 and 8
    assert paper.reg_d(pair.network, zero, 1.0) == pytest.approx(log(3 / 2 * 2 * 8))


def test_EMP_by_hand(pair):
    """λ' = (1/2) log(S / μ) = (1/2) (log((1/4) / (2/3)), log((3/4) / (1/3)))."""
    new = paper.emp(pair.network, np.zeros(4), 1.0, [0])
    np.testing.assert_allclose(new, [log(3 / 8) / 2, log(9 / 4) / 2])
    # now μ_0 ∝ (√(3/8), 3/4), and S ∝ (2 / √(3/8), 6 / (3/2)): the same up to a factor of 16/3
    after = np.array([*new, 0.0, 0.0])
    mu = np.array([math.sqrt(3 / 8), 3 / 4])
    np.testing.assert_allclose(np.exp(paper.log_mu(pair.network, after, 1.0, 0)), mu / mu.sum())
    np.testing.assert_allclose(np.exp(paper.log_S(pair.network, after, 1.0, 0)), mu / mu.sum())
    # L falls by -2 log Σ √(μ S) = -2 log(√(1/6) + √(1/4))
    fall = paper.reg_d(pair.network, np.zeros(4), 1.0) - paper.reg_d(pair.network, after, 1.0)
    assert fall == pytest.approx(-2 * log(math.sqrt(1 / 6) + 1 / 2))
    assert fall >= (5 / 6) ** 2 / 4  # Lemma "emp-improvement"


def test_EMP_at_another_eta_by_hand(pair):
    """At η = 2 all factors are squared: μ = (4/5, 1/5), S = (2/28, 26/28), λ' = log(S/μ) / 4."""
    new = paper.emp(pair.network, np.zeros(4), 2.0, [0])
    np.testing.assert_allclose(new, [log(2 / 28 / (4 / 5)) / 4, log(26 / 28 / (1 / 5)) / 4])


def test_SMP_by_hand(pair, double):
    """λ'_e = log S_e - log(μ Π S) / (|N| + 1); with one edge that is EMP."""
    alone = paper.smp(pair.network, np.zeros(4), 1.0, [0])
    np.testing.assert_allclose(alone, [log(3 / 8) / 2, log(9 / 4) / 2])
    # μ S S' = (2/3 · 1/4 · 1/2, 1/3 · 3/4 · 1/2) = (1/12, 1/8), with the cube root of 1/8 = 1/2
    new = paper.smp(double.network, np.zeros(8), 1.0, [0, 2])
    first = [log(1 / 4) + log(12) / 3, log(3 / 4) + log(2)]
    second = [log(1 / 2) + log(12) / 3, log(1 / 2) + log(2)]
    np.testing.assert_allclose(new, first + second, atol=1e-15)


def test_BCD_by_hand(pair):
    """ν / η with μ = (4/5, 1/5) and S = (2/28, 26/28) at η = 2."""
    new = paper.bcd(pair.network, np.zeros(4), 2.0, [0])
    np.testing.assert_allclose(new, [(2 / 28 - 4 / 5) / 2, (26 / 28 - 1 / 5) / 2])


def test_the_first_accelerated_updates_by_hand(pair):
    """θ_0 = (√5 - 1) / 2 is the golden ratio, y^(0) = 0, v = ν / (2mηθ_0) with 2m = 2, η = 1."""
    golden = (math.sqrt(5) - 1) / 2
    blocks, start = [[0]], paper.Point(np.zeros(4), np.zeros(4), 1.0)
    path = algorithms.accelerated(
        pair.network, paper.emp, 1.0, blocks, [0, 0], start, np.array([1 / 2]), printed=True
    )
    lam, v, theta = next(path)
    assert theta == pytest.approx(golden)
    np.testing.assert_allclose(lam, [log(3 / 8) / 2, log(9 / 4) / 2, 0, 0])
    np.testing.assert_allclose(v, np.array([-5 / 12, 5 / 12, 0, 0]) / (2 * golden))
    # θ_1² = (1 - θ_1) θ_0²; EMP at y^(1) = θ_1 v + (1 - θ_1) λ ends at λ' up to a constant, as it
    # minimises over the same block, whose other multipliers are 0
    lam, _, theta = next(path)
    assert theta**2 == pytest.approx((1 - theta) * golden**2)
    assert lam[0] - lam[1] == pytest.approx(log(3 / 8) / 2 - log(9 / 4) / 2)


def test_steps_of_v_by_hand(double):
    """2m = 4 half-edges, |N_i| = 2 at either node: p = 1/4 (edges) and 1/2 (stars); η = 3."""
    edge, star = (np.ones(4), np.full(4, 1 / 4)), (np.full(2, 2.0), np.full(2, 1 / 2))
    gains = {
        paper.printed_gain: (1 / (4 * 3), 2 / (2 * (1 / 2) * 3 * 4)),
        paper.lemma_gain: (1 / (2 * 4 * 3), 2 / (4 * (1 / 2) * 3 * 4**2)),
        paper.proved_gain: (1 / (4 * 3), 2 * 2 / ((2 + 1) * 4 * 3)),
    }
    for gain, (of_edges, of_stars) in gains.items():
        np.testing.assert_allclose(gain(double, paper.edges, 3.0, *edge), np.full(4, of_edges))
        np.testing.assert_allclose(gain(double, paper.stars, 3.0, *star), np.full(2, of_stars))


def test_the_rounding_of_altschuler_by_hand():
    """Rows scale by (1, 1/2), columns do not; the missing mass (1/4, 0), (0, 1/4) is added."""
    F = np.array([[1 / 4, 0.0], [0.0, 1.0]])
    out = algorithms.rounded(F, np.array([1 / 2, 1 / 2]), np.array([1 / 4, 3 / 4]))
    np.testing.assert_allclose(out, [[1 / 4, 1 / 4], [0.0, 1 / 2]])
    exact = np.array([[1 / 4, 1 / 4], [0.0, 1 / 2]])
    np.testing.assert_array_equal(algorithms.rounded(exact, exact.sum(1), exact.sum(0)), exact)


# --- laws ---------------------------------------------------------------------------------------


@few
@given(model=models(max_n=5, max_d=4).map(tighten), seed=seeds, eta=etas)
def test_the_text_agrees_with_the_formulas_of_the_relaxation(model, seed, eta):
    """L, μ, S, ν in one piece here, in batches there."""
    dual = SmoothedDual(model, eta)
    excluded = np.isposinf(model.unary)[dual._half_states]
    lam = np.where(excluded, 0.0, random_lam(model, seed))
    scale = 1 + abs(dual.value(lam))
    assert paper.reg_d(model.network, lam, eta) == pytest.approx(dual.value(lam), abs=1e-11 * scale)
    nodes, pairs = paper.primal(model.network, lam, eta)
    np.testing.assert_allclose(nodes, dual.node_marginals(lam), atol=1e-10)
    np.testing.assert_allclose(pairs, dual.edge_marginals(lam), atol=1e-10)
    if model.m:
        halves = range(2 * model.m)
        np.testing.assert_allclose(
            paper.nu(model.network, lam, eta, halves), dual.slack(lam), atol=1e-10
        )


@few
@given(
    model=models(max_n=4, max_d=3, hard=False, families=("tables", "potts")),
    seed=seeds,
)
def test_proj_is_algorithm_4(model, seed):
    """It moves no node, agrees with the batched `polytope.proj`, and keeps what has its slack."""
    lam = random_lam(model, seed)
    nodes, pairs = paper.primal(model.network, lam, 5.0)
    same, projected = paper.proj(model.network, (nodes, pairs))
    np.testing.assert_array_equal(same, nodes)
    np.testing.assert_allclose(projected, polytope.proj(model.network, nodes, pairs), atol=1e-14)
    if model.m:  # (μ^λ itself lies in the slack polytope of its own ν)
        nu = SmoothedDual(model, 5.0).slack(lam)
        np.testing.assert_allclose(
            paper.proj(model.network, (nodes, pairs), nu)[1], pairs, atol=1e-14
        )


def test_reg_p_and_reg_d_are_dual():
    """(Reg-P) is at least -L* - (n + m) / η on the local polytope, and equal at μ^λ*."""
    model, eta = generators.erdos_renyi(5, 2, seed=1), 4.0
    least, star = least_dual(model, eta)
    lowest = -least - (model.n + model.m) / eta
    rng = np.random.default_rng(0)
    for scale in (0.1, 1.0, 3.0):
        lam = scale * rng.normal(size=len(star))
        assert (
            paper.reg_p(
                model.network, paper.proj(model.network, paper.primal(model.network, lam, eta)), eta
            )
            >= lowest
        )
        assert paper.reg_d(model.network, lam, eta) >= least - 1e-12
    assert paper.reg_p(model.network, paper.primal(model.network, star, eta), eta) == pytest.approx(
        lowest
    )


def test_algorithm_1_returns_the_iterate_of_least_slack():
    model, eta = generators.erdos_renyi(6, 2, seed=4), 60.0
    for rule, order in (
        (paper.emp, paper.edges),
        (paper.smp, paper.stars),
        (paper.bcd, paper.edges),
    ):
        iterates = paper.iterate(model.network, rule, order, paper.STANDARD, eta, seed=2)
        path = list(itertools.islice(iterates, 16))
        slacks = [paper.slack(model.network, lam, eta) for lam in path]
        best = paper.standard_mp(model.network, rule, order, eta, 15, seed=2)
        np.testing.assert_array_equal(best, path[int(np.argmin(slacks))])
        assert min(slacks) < slacks[0]


@pytest.mark.parametrize("scheme", [paper.PRINTED, paper.PROVED, paper.LEMMA])
def test_whole_algorithms_are_the_last_iterate(scheme):
    model, eta = generators.erdos_renyi(6, 2, seed=4), 20.0
    whole = {paper.accel_emp: (paper.emp, paper.edges), paper.accel_smp: (paper.smp, paper.stars),
             paper.accel_bcd: (paper.bcd, paper.edges)}  # fmt: skip
    for algorithm, (rule, order) in whole.items():
        iterates = paper.iterate(model.network, rule, order, scheme, eta, seed=3)
        last = next(itertools.islice(iterates, 30, None))
        np.testing.assert_array_equal(
            algorithm(model.network, eta, 30, scheme=scheme, seed=3), last
        )


# --- P ------------------------------------------------------------------------------------------


def test_blocks_are_drawn_from_P():
    model = generators.erdos_renyi(7, 2, seed=0)
    for order in (paper.edges, paper.stars):
        blocks = order(model.network)
        size = np.array([len(block) for block in blocks])
        uneven = np.random.default_rng(1).dirichlet(np.ones(len(blocks)))
        uneven[1] = 0.0
        for P, expected in (
            (None, size / size.sum()),
            (uneven / uneven.sum(), uneven / uneven.sum()),
        ):
            draws = itertools.islice(paper.sample(blocks, seeded(5), P), 6_000)
            counts = np.bincount(list(draws), minlength=len(blocks))
            drawn = expected > 0
            assert not counts[~drawn].any()
            assert chance_of(counts[drawn], 6_000 * expected[drawn]) > 1e-3


def test_the_rate_of_the_proved_scheme_holds_for_another_P():
    """E L(λ_K) - L* ≤ 4 / (K + 2)² (L(0) - L* + Σ_b (L_b / p_b²) ‖λ*_b‖² / 2)."""
    model, eta, K, trials = generators.erdos_renyi(4, 2, seed=3), 4.0, 30, 8
    least, star = least_dual(model, eta)
    blocks = paper.stars(model.network)
    P = np.array([len(block) + 1.0 for block in blocks])  # neither of the paper's
    P /= P.sum()
    weights = [eta * (len(b) + 1) / 2 / p**2 for b, p in zip(blocks, P, strict=True)]
    squares = [(star[paper.entries(model.network, b)] ** 2).sum() for b in blocks]
    first = paper.reg_d(model.network, np.zeros_like(star), eta) - least
    bound = 4 / (K + 2) ** 2 * (first + np.dot(weights, squares) / 2)
    errors = []
    for seed in range(trials):
        iterates = paper.iterate(
            model.network, paper.smp, paper.stars, paper.PROVED, eta, P=P, seed=seed
        )
        last = next(itertools.islice(iterates, K, None))
        errors.append(SmoothedDual(model, eta).value(last) - least)
    assert np.mean(errors) <= bound < first


@pytest.mark.parametrize(
    ("P", "message"),
    [
        ([0.5, 0.5], "P must be 4 numbers, one per block, not of shape"),
        ([0.5, 0.5, 0.5, -0.5], "P must be non-negative numbers that sum to 1"),
        ([0.5, 0.5, 0.5, 0.0], "P must be non-negative numbers that sum to 1, not to 1.5"),
        ([math.nan, 0.5, 0.5, 0.0], "P must be non-negative"),
        ([0.25, 0.25, 0.25, 0.25], r"P\[3\] is 0.25, but that vertex has no edges; expected 0"),
    ],
)
def test_what_is_no_distribution_is_refused(P, message):
    model = Model([[0.0, 1.0]] * 4, [[0, 1], [1, 2]], np.zeros((2, 2, 2)))
    with pytest.raises(OptionError, match=message):
        next(paper.sample(paper.stars(model.network), seeded(0), P))
    with pytest.raises(OptionError, match=message):
        paper.iterate(model.network, paper.smp, paper.stars, paper.PROVED, 1.0, P=P)


# --- a reader's own rule ------------------------------------------------------------------------


def test_a_rule_of_ones_own_is_called_at_the_drawn_blocks():
    """Half of an EMP step; the blocks are those that `sample` draws."""
    model, eta, calls = generators.erdos_renyi(6, 2, seed=4), 20.0, []

    def half(model, lam, eta, block):
        calls.append(list(block))
        old = lam[paper.entries(model.network, block)]
        return (old + paper.emp(model.network, lam, eta, block)) / 2

    iterates = paper.iterate(model.network, half, paper.edges, paper.STANDARD, eta, seed=8)
    path = list(itertools.islice(iterates, 6))
    blocks = paper.edges(model.network)
    drawn = itertools.islice(paper.sample(blocks, seeded(8)), 5)
    assert calls == [blocks[b] for b in drawn]
    for before, after, block in zip(path, path[1:], calls, strict=False):
        changed = paper.entries(model.network, block)
        np.testing.assert_allclose(after[changed], half(model, before, eta, block))
        assert (np.delete(after - before, changed) == 0).all()


def test_what_a_rule_returns_is_checked():
    model = generators.erdos_renyi(6, 2, seed=4)

    def scalar(model, lam, eta, block):
        return 0.0

    def undefined(model, lam, eta, block):
        return np.full(len(paper.entries(model.network, block)), np.nan)

    for rule, message in (
        (scalar, r"scalar returned an array of shape \(\) for the block \[.*\]: expected a flat"),
        (undefined, r"undefined returned nan for the block \[\d+\]: expected a flat array of 2"),
    ):
        iterates = paper.iterate(model.network, rule, paper.edges, paper.PROVED, 1.0)
        next(iterates)  # λ^(0)
        with pytest.raises(OptionError, match=message):
            next(iterates)
    with pytest.raises(OptionError, match="the order has no blocks"):
        paper.iterate(
            Model([[0.0, 1.0]], None, []).network, paper.emp, paper.edges, paper.STANDARD, 1.0
        )
    with pytest.raises(OptionError, match="lam must be a flat array"):
        paper.iterate(model.network, paper.emp, paper.edges, paper.STANDARD, 1.0, lam=[1.0])


# --- the text -----------------------------------------------------------------------------------


def test_the_text_is_short_and_says_what_it_costs():
    source = inspect.getsource(algorithms)
    assert len(source.splitlines()) <= 250
    for name, function in inspect.getmembers(algorithms, inspect.isfunction):
        if function.__module__ == algorithms.__name__ and not name.startswith("_"):
            formula = name.endswith("_gain") or name in ("log_sum", "bcd")
            assert formula or "O(" in function.__doc__, name

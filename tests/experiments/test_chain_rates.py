"""Passes over chains in the chain dual: Lemma 7, and the rate with a safeguard, by enumeration."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

import softmap
from softmap import lp
from softmap.paper import rates, theory

ROWS, COLS, LABELS = 2, 3, 2
CHAINS = [[0, 1, 2], [3, 4, 5], [0, 3], [1, 4], [2, 5]]
LEVELS = [[0], [1, 3], [2, 4], [5]]


class ChainDual:
    """L_T of a grid of 2 × 3 variables, with all labellings of a chain enumerated.

    Shares are an array [chain, node, label], zero off the chain.
    """

    def __init__(self, model, eta):
        self.model, self.eta = model, eta
        self.unary = model.unary.reshape(-1, LABELS)
        tables = {tuple(e): model.network.table(k) for k, e in enumerate(model.edges.tolist())}
        self.labellings = []
        for chain in CHAINS:
            labels = np.array(list(itertools.product(range(LABELS), repeat=len(chain))))
            pairs = enumerate(itertools.pairwise(chain))
            edges = sum(tables[pair][labels[:, k], labels[:, k + 1]] for k, pair in pairs)
            self.labellings.append((labels, edges))
        self.on = np.zeros((len(CHAINS), model.n, 1))
        for t, chain in enumerate(CHAINS):
            self.on[t, chain] = 1.0
        lengths = self.on.sum(axis=1, keepdims=True)
        self.weight = eta * lengths / 2 * self.on
        self.start = self.on * self.unary / self.on.sum(axis=0)

    def chain(self, shares, t):
        """Costs of all labellings of a chain."""
        nodes, (labellings, edges) = CHAINS[t], self.labellings[t]
        return labellings, shares[t, nodes, labellings].sum(axis=1) + edges

    def value(self, shares):
        terms = (logsumexp(-self.eta * self.chain(shares, t)[1]) for t in range(len(CHAINS)))
        return sum(terms) / self.eta

    def marginals(self, shares):
        out = np.zeros_like(shares)
        for t, nodes in enumerate(CHAINS):
            labellings, costs = self.chain(shares, t)
            mass = np.exp(-self.eta * costs - logsumexp(-self.eta * costs))
            for k, i in enumerate(nodes):
                out[t, i] = np.bincount(labellings[:, k], mass, LABELS)
        return out

    def gradient(self, shares):
        """The gradient in the metric W on U: W⁻¹ of (-p minus its weighted mean)."""
        p = -self.marginals(shares)
        inverse = np.divide(1.0, self.weight, where=self.on > 0, out=np.zeros_like(self.weight))
        mean = (inverse * p).sum(axis=0) / inverse.sum(axis=0)
        return inverse * (p - mean * self.on)

    def half_pass(self, shares):
        """Min-marginals of each node replaced by their mean, level by level."""
        shares = shares.copy()
        for level in LEVELS:
            logs = -np.log(np.maximum(self.marginals(shares), 1e-300)) / self.eta
            for i in level:
                chains = np.flatnonzero(self.on[:, i, 0])
                shares[chains, i] += logs[chains, i].mean(axis=0) - logs[chains, i]
                # the constants of the logarithms must not change the sum of the shares
                excess = shares[:, i].sum(axis=0) - self.unary[i]
                shares[chains, i] -= excess.mean() / len(chains)
        return shares


def grid(seed):
    rng = np.random.default_rng(seed)
    edges = [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]
    return softmap.Model(rng.normal(size=(6, 2)), edges, rng.normal(size=(7, 2, 2)))


def spreads(dual, shares):
    change = (shares - dual.start)[dual.on[..., 0] > 0]
    return change.max(axis=1) - change.min(axis=1)


def norm(dual, change):
    return float((dual.weight * change**2).sum())


def minimised(dual):
    shares = dual.start
    for _ in range(80):
        shares = dual.half_pass(shares)
    return shares


@pytest.mark.parametrize("seed", range(4))
def test_a_half_pass_lowers_the_chain_dual_by_its_gradient(seed):
    model = grid(seed)
    rng = np.random.default_rng(seed + 100)
    dual, c = ChainDual(model, eta=2.0), rates.spread(theory.sizes(model))
    for scale in (0.1, 1.0, 5.0):
        change = rng.normal(size=dual.start.shape) * dual.on * scale
        shares = dual.start + change - dual.on * change.sum(axis=0) / dual.on.sum(axis=0)
        after = dual.half_pass(shares)
        np.testing.assert_allclose(after.sum(axis=0), dual.unary, atol=1e-9)
        decrease = dual.value(shares) - dual.value(after)
        assert decrease >= norm(dual, dual.gradient(shares)) / (2 * len(LEVELS)) > 0
        assert spreads(dual, after).max() <= 4 * c


@pytest.mark.parametrize("eta", [0.5, 3.0])
def test_the_best_smoothed_chain_bound_is_within_the_entropy_of_the_lp(eta):
    model = grid(5)
    s, dual = theory.sizes(model), ChainDual(model, eta)
    best, optimum = minimised(dual), lp.solve(model).value
    lengths = [len(chain) for chain in CHAINS]
    assert optimum - s.log_d * sum(lengths) / eta <= -dual.value(best) + 1e-6 <= optimum + 1e-5
    assert norm(dual, dual.gradient(best)) < 1e-6
    centred = best - dual.start
    centred -= dual.on * centred.mean(axis=2, keepdims=True)
    assert norm(dual, centred) <= rates.pass_distance(s, eta, lengths)


def test_guarded_passes_have_the_rate_of_the_theorem():
    """Steps 1 to 4, without any momentum: the rate, and the growth of A."""
    dual = ChainDual(grid(1), eta=6.0)
    best, levels = minimised(dual), len(LEVELS)
    distance = norm(dual, best - dual.start)
    x, v, total = dual.start, dual.start, 0.0
    for k in range(1, 13):
        least = (1 + np.sqrt(1 + 4 * levels * total)) / (2 * levels)
        y = x + least / (total + least) * (v - x)
        gradient = dual.gradient(y)
        after = min((x, dual.half_pass(y)), key=dual.value)
        square = norm(dual, gradient)
        held = total * (dual.value(x) - dual.value(after))
        gain = dual.value(y) - dual.value(after) + (dual.weight * gradient * (v - y)).sum()
        a = (gain + np.sqrt(gain**2 + 2 * square * held)) / square
        assert a >= least * (1 - 1e-9)
        x, v, total = after, v - a * gradient, total + a
        assert total >= (k + 1) ** 2 / (4 * levels)
        error = dual.value(x) - dual.value(best)
        assert error <= distance / (2 * total) + 1e-9
        assert error <= rates.sweep_rate(k, levels, distance)


def test_the_count_of_guarded_passes_is_of_order_one_over_epsilon():
    s = theory.sizes(grid(0))
    lengths = [len(chain) for chain in CHAINS]
    fine, coarse = (rates.pass_iterations(s, e, lengths, len(LEVELS)) for e in (0.01, 1.0))
    assert fine == pytest.approx(100 * coarse)
    last = 2 * s.log_d * sum(lengths) / 0.01  # η of the last stage
    steps = fine / 2
    error = 2 * len(LEVELS) * rates.pass_distance(s, last, lengths) / steps**2
    assert error == pytest.approx(0.005)

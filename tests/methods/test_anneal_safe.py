"""`anneal-safe`: shares against enumeration, every inequality of its theorem, and its promise."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from scipy.special import logsumexp

from softmap import generators, lp
from softmap.methods.policy import Ask
from softmap.methods.sweeps.anneal import Anneal
from softmap.methods.sweeps.chains import Chains
from softmap.paper import rates, theory
from softmap.paper.anneal_safe import AnnealSafe
from softmap.paper.chain_dual import ChainDual, paths
from softmap.relaxation.bounds import dual_bound, projected_cost
from softmap.relaxation.dual import SmoothedDual
from softmap.run.judge import Judge
from support.strategies import few, models, seeds

finite = models(max_n=5, max_d=3, hard=False).map(lambda model: model.network)
GROWTH = 3.0


def random_change(dual, network, seed, scale=1.0):
    """A change of shares: zero in sum over the copies of a node, mean zero over labels."""
    state = dual._chains.start(np.random.default_rng(seed).normal(size=network.half_size) * scale)
    return dual.change(state)


class Enumerated:
    """L_T with all labellings of every path enumerated; changes as in `ChainDual`."""

    def __init__(self, network, eta):
        self.network, self.eta, self.paths = network, eta, paths(network)
        self.many = np.bincount(self.paths.node, minlength=network.n)
        counts = network.num_labels[self.paths.node]
        self.offset = np.append(0, np.cumsum(counts))

    def chains(self):
        for copy in np.flatnonzero(self.paths.before < 0):
            chain, halves = [int(copy)], []
            while self.paths.after[chain[-1]] >= 0:
                halves.append(int(self.paths.after[chain[-1]]))
                chain.append(int(np.flatnonzero(self.paths.before == (halves[-1] ^ 1))[0]))
            yield chain, halves

    def costs(self, chain, halves, change):
        """All labellings of a path, and their costs with these shares."""
        network, node = self.network, self.paths.node
        shares = [
            network.unary_of(node[k]) / self.many[node[k]]
            + change[self.offset[k] : self.offset[k + 1]]
            for k in chain
        ]
        labels = np.array(list(itertools.product(*map(range, map(len, shares)))))
        total = sum(share[labels[:, k]] for k, share in enumerate(shares))
        for k, half in enumerate(halves):
            table = network.table(half // 2)
            table = table if half % 2 == 0 else table.T
            total = total + table[labels[:, k], labels[:, k + 1]]
        return labels, total

    def value(self, change):
        exponents = (-self.eta * self.costs(*each, change)[1] for each in self.chains())
        return sum(map(logsumexp, exponents)) / self.eta - self.network.constant

    def marginals(self, change):
        out = np.zeros(self.offset[-1])
        for chain, halves in self.chains():
            labels, costs = self.costs(chain, halves, change)
            mass = np.exp(-self.eta * costs - logsumexp(-self.eta * costs))
            for k, copy in enumerate(chain):
                np.add.at(out, self.offset[copy] + labels[:, k], mass)
        return out

    def bound(self, change):
        return sum(self.costs(*each, change)[1].min() for each in self.chains())


@few
@given(network=finite)
def test_paths_are_the_chains_of_a_pass(network):
    found, chains = paths(network), Chains(network, 1)
    many = np.bincount(found.node, minlength=network.n)
    np.testing.assert_array_equal(
        many[chains.plan.nodes], np.abs(chains.plan.chains[: network.n]).clip(1)
    )
    walked = list(Enumerated(network, 1.0).chains())
    assert sorted(k for chain, _ in walked for k in chain) == list(range(len(found.node)))
    assert sorted(h // 2 for _, halves in walked for h in halves) == list(range(network.m))
    for chain, _ in walked:
        assert {int(found.length[k]) for k in chain} == {len(chain)}


@few
@given(network=finite, seed=seeds)
def test_the_dual_of_shares_is_that_of_all_labellings(network, seed):
    """Value, marginals, half pass, gradient and bound, by enumeration."""
    eta = 3.0
    if not network.m:
        return
    dual, exact = ChainDual(Chains(network, 1)), Enumerated(network, eta)
    change = random_change(dual, network, seed)
    value, nodes, messages = dual.marginals(change, eta)
    assert value == pytest.approx(exact.value(change), abs=1e-8)
    np.testing.assert_allclose(nodes, exact.marginals(change), atol=1e-8)
    consensus = dual.consensus(nodes)
    step = dual.step(nodes, consensus, eta)
    square = dual.product(step, step, eta)
    passed = dual.half_pass(messages, eta)
    after = dual.change(messages)
    assert passed == pytest.approx(exact.value(after), abs=1e-8)
    assert value - passed >= square / (2 * dual.levels) - 1e-9 * (1 + abs(value))  # Lemma 7 (b)
    small = 1e-5 * step
    slope = (exact.value(change + small) - exact.value(change - small)) / 2e-5
    assert slope == pytest.approx(square, rel=1e-4, abs=1e-6)
    bound, lam = dual.bounding(after)
    assert bound == pytest.approx(exact.bound(after) + network.constant, abs=1e-8)
    assert dual_bound(network, lam) >= bound - 1e-9 * (1 + abs(bound))
    assert bound >= -passed - 1e-9 * (1 + abs(bound))


def minimised(dual, network, eta):
    """min L_T, by many half passes from the shares C_i / n_i."""
    messages = dual._chains.start(None)
    state = dual._chains.loops
    state.passes(4000, messages, eta, momentum=False)
    return dual.value(messages, eta)


@pytest.mark.parametrize("scrambled", [False, True])
@pytest.mark.parametrize("eta", [2.0, 40.0])
def test_the_rate_holds_whatever_the_momentum_does(eta, scrambled):
    """L_T(x_k) - L_T* ≤ 4 R² / (2 A_k) and A_k ≥ (k + 1)² / 4B, also with random messages."""
    rng = np.random.default_rng(0)
    for model in (generators.random_grid(3, 3, 2, seed=1), generators.erdos_renyi(8, seed=2)):
        network = model.network
        algorithm = AnnealSafe(eta=eta, every=1, first=1)
        state = algorithm.init(network, None, 0)
        algorithm.step(state, 1)
        dual = algorithm.dual
        least = minimised(dual, network, eta)
        distance = 4 * rates.pass_distance(theory.sizes(model), eta, dual.lengths)
        before = state.value
        for k in range(2, 30):
            if scrambled:
                state.messages.msg[:] += rng.normal(size=len(state.messages.msg))
            algorithm.step(state, 1)
            assert state.guards == k
            assert state.total >= (k + 1) ** 2 / (4 * dual.levels) * (1 - 1e-9)
            error = state.value - least
            assert -1e-6 <= error <= distance / (2 * state.total) + 1e-8
            assert state.value <= before + 1e-12 * abs(before)
            before = state.value


def drive(algorithm, network, stages, limit):
    """Run until η has risen so often; yield the state, its former η, bound and λ after each."""
    judge, state = Judge.of(network), algorithm.init(network, None, 0)
    eta = state.eta
    for _ in range(limit):
        algorithm.step(state, 1)
        certain, nodes = algorithm.certain(state), state.consensus.copy()
        proposal = algorithm.answer(state, Ask.POINT)
        algorithm.observe(state, judge.look(proposal))
        if state.eta != eta:
            yield eta, certain, nodes, judge.best.bound, state
            eta, stages = state.eta, stages - 1
        if not stages:
            return
    raise AssertionError("η did not rise")


@pytest.mark.parametrize("seed", range(3))
def test_the_error_after_each_stage_is_what_the_theorem_promises(seed, monkeypatch):
    """η rises by the theorem only: the bound is within 2 S / η, and the consensus within 4.5."""
    monkeypatch.setattr(Anneal, "observe", lambda *_: None)
    model = generators.random_grid(2, 2, 2, seed=seed)
    network, optimum = model.network, lp.solve(model).value
    sizes, algorithm = theory.sizes(model), AnnealSafe(eta=0.3, every=1, first=1)
    passes = 0
    for eta, certain, nodes, bound, state in drive(algorithm, network, 4, 20_000):
        lengths, levels = algorithm.dual.lengths, algorithm.dual.levels
        smoothing = sizes.log_d * lengths.sum() / eta
        assert certain
        assert state.passes - passes <= rates.stage_steps(sizes, eta, lengths, levels)
        passes = state.passes
        assert optimum - 2 * smoothing - 1e-9 <= bound <= optimum + 1e-9
        free = np.zeros(network.half_size)
        cost = projected_cost(SmoothedDual(network, eta), free, nodes, exact=True)
        assert optimum - 1e-9 <= cost <= optimum + 4.5 * smoothing
        epsilon = 2 * smoothing
        assert (
            passes <= rates.safe_iterations(sizes, epsilon, lengths, levels, GROWTH) + state.stages
        )
    assert state.stages == 4


def test_the_promise_holds_at_the_stages_of_an_annealed_run():
    """With the rule of `anneal`, every stage ends with a gap of at most 2 S / η, and so early."""
    model = generators.erdos_renyi(12, seed=3)
    network, optimum = model.network, lp.solve(model).value
    sizes, algorithm = theory.sizes(model), AnnealSafe(every=1, first=1)
    for eta, _, _, bound, state in drive(algorithm, network, 4, 2000):
        smoothing = sizes.log_d * np.bincount(paths(network).node).sum() / eta
        assert optimum - 2 * smoothing - 1e-9 <= bound <= optimum + 1e-9
        assert state.stages == state.held == 0


def test_eta_does_not_rise_while_the_gap_is_large():
    """A verdict for which `anneal` raises η, with a gap beyond 2 S / η: η is held."""
    network = generators.erdos_renyi(12, seed=3).network
    etas = {}
    for kind in (Anneal, AnnealSafe):
        algorithm = kind(eta=1e6)
        state = algorithm.init(network, None, 0)
        algorithm.step(state, 3)
        verdict = Judge.of(network).look(algorithm.answer(state, Ask.POINT))
        far = tuple(cost + 1e3 for cost in verdict.primals)
        algorithm.observe(state, type(verdict)(verdict.bound, far, 1e12, verdict.slack))
        etas[kind] = state.eta
    assert etas == {Anneal: 3e6, AnnealSafe: 1e6}


def test_momentum_restarts_only_if_it_is_far_behind():
    network = generators.random_grid(6, 6, 3, seed=0).network
    algorithm = AnnealSafe(eta=30.0, every=5, first=5)
    state = algorithm.init(network, None, 0)
    algorithm.step(state, 40)
    assert state.restarts == 0
    good = state.value
    state.messages.msg[:] += 1e3 * np.random.default_rng(1).normal(size=len(state.messages.msg))
    algorithm.guard(state)
    assert state.restarts == 1
    assert state.value <= good
    algorithm.step(state, 1)
    assert algorithm.dual.value(state.messages, 30.0) <= good + 1e-9 * abs(good)


@pytest.mark.parametrize("hard", [False, True])
def test_a_run_is_that_of_the_default_method(hard):
    """No bit differs if no momentum restarts; hard constraints have no safeguard steps."""
    small = (
        generators.ragged_constrained(40, seed=1) if hard else generators.erdos_renyi(60, seed=1)
    )
    network, runs = small.network, []
    for kind in (Anneal, AnnealSafe):
        algorithm, judge = kind(), Judge.of(network)
        state, values = algorithm.init(network, None, 0), []
        for count in (5, 5, 10, 20, 60, 300, 700, 300):
            algorithm.step(state, count)
            verdict = judge.look(algorithm.answer(state, Ask.EVERYTHING))
            algorithm.observe(state, verdict)
            values.append((verdict.bound, *verdict.primals, state.eta, state.smoothed))
        runs.append((values, state))
    np.testing.assert_array_equal(runs[0][1].messages.msg, runs[1][1].messages.msg)
    assert runs[0][0] == runs[1][0]
    assert runs[1][1].guards == (0 if hard else 2)
    assert runs[1][1].restarts == runs[1][1].held == 0


def test_the_counts_are_of_order_one_over_epsilon():
    sizes, lengths = theory.Sizes(9, 12, 3, 1.0, 2, 4), [3] * 6
    fine, coarse = (rates.safe_iterations(sizes, e, lengths, 5, GROWTH) for e in (0.01, 1.0))
    assert fine == pytest.approx(100 * coarse)
    entropy = math.log(3) * 18
    steps, total = 0.0, 0.0
    for j in range(12):  # stages that end a quarter of all passes late
        eta = GROWTH**j
        total = 1.25 * (total + eta * rates.stage_steps(sizes, 1e6, lengths, 5) / 1e6)
        assert total <= rates.safe_iterations(sizes, 2 * entropy / eta, lengths, 5, GROWTH)
        steps = rates.stage_steps(sizes, eta, lengths, 5)
        weight = steps**2 / 20
        assert 2 * rates.pass_distance(sizes, eta, lengths) / weight <= entropy / eta * (1 + 1e-9)

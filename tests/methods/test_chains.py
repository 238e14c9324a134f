"""Chain passes: messages follow the plain recursion, bounds are bounds, threads do not matter."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmap import core, generators, lp
from softmap.methods.sweeps.chains import Chains
from softmap.methods.sweeps.planning import chain_schedule
from softmap.model import Model
from softmap.model.layout import layout
from softmap.relaxation.bounds import dual_bound
from softmap.relaxation.consistency import tighten
from support.families import FAMILIES, Ends, Numbers, single
from support.methods import proving_lam
from support.numpy_twins import hard_message, soft_message
from support.strategies import few

ONE = 1


def many_edges(name: str, seed: int) -> Model:
    """A small dense graph of one family, label counts mixed: tiles and single blocks occur."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    chosen = rng.permutation(len(pairs))[: int(rng.integers(1, len(pairs) + 1))]
    edges = [pairs[k] if rng.random() < 0.5 else pairs[k][::-1] for k in chosen]
    labels = np.full(n, rng.integers(1, 6)) if rng.random() < 0.5 else rng.integers(1, 6, n)
    groups = [
        (np.array([e]), single(name, rng, int(labels[e[0]]), int(labels[e[1]]))) for e in edges
    ]
    return tighten(Model([rng.normal(size=d) for d in labels], None, groups))


def higher_order(seed: int) -> Model:
    """Ternary factors: auxiliary nodes and projections, beside pairs."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 8))
    labels = rng.integers(1, 4, n)
    scopes = [rng.permutation(n)[: rng.integers(1, 4)] for _ in range(8)]
    return Model.from_factors(labels, [(s, rng.normal(size=labels[s])) for s in scopes])


def models_of(name: str, seed: int) -> list[Model]:
    """Models with tiles, with single blocks, and with both."""
    if FAMILIES[name].ties:
        return [higher_order(seed)]
    return [many_edges(name, seed), grid_of(name, seed)]


def grid_of(name: str, seed: int) -> Model:
    """A grid of one group: full tiles."""
    rng = np.random.default_rng(seed)
    rows, cols, d = (int(k) for k in rng.integers(2, 9, 3))
    edges = generators.grid_edges(rows, cols)
    group = FAMILIES[name].make(Numbers(rng), Ends([d] * len(edges), [d] * len(edges)))
    return tighten(Model(rng.normal(size=(rows * cols, d)), edges, group))


def plain_half_pass(model: Model, lam: np.ndarray, eta: float, forward: bool) -> np.ndarray:
    """The recursion as it is written, node by node, through the numpy verbs."""
    graph, msg = model.network.graph, -lam
    ahead = graph.node < graph.node[np.arange(2 * model.network.m) ^ 1]
    for i in range(model.network.n) if forward else range(model.network.n - 1, -1, -1):
        halves = graph.half[graph.start[i] : graph.start[i + 1]]
        chains = max(ahead[halves].sum(), (~ahead[halves]).sum(), 1)
        theta = model.network.unary_of(i) + sum(msg[model.network.half_slice(h)] for h in halves)
        for h in halves[ahead[halves] == forward]:
            far = h ^ 1
            g = int(np.searchsorted(model.network.group_start, h >> 1, side="right")) - 1
            k, a = (
                (h >> 1) - model.network.group_start[g],
                theta / chains - msg[model.network.half_slice(h)],
            )
            d = int(model.network.num_labels[graph.node[far]])
            potential = model.network.potentials[g]
            if np.isinf(eta):
                new = hard_message(potential, k, far & 1, a, d)
            else:
                new = soft_message(potential, k, far & 1, a, eta, d)
            new = np.where(np.isfinite(new), new - new.min(), 0.0)
            msg[model.network.half_slice(far)] = new
    return -msg


@pytest.mark.parametrize("name", FAMILIES)
@few
@given(seed=st.integers(0, 2**32 - 1), eta=st.sampled_from([0.5, 30.0, 1e4, np.inf]))
def test_a_pass_is_the_recursion(name, seed, eta):
    for model in models_of(name, seed):
        rng = np.random.default_rng(seed)
        lam = rng.normal(size=int(model.network.half_offset[-1]))
        chains = Chains(model.network, ONE)
        state = chains.start(lam)
        chains.passes(state, 1, eta, momentum=False)
        expected = plain_half_pass(model, lam, eta, forward=True)
        expected = plain_half_pass(model, expected, eta, forward=False)
        np.testing.assert_allclose(chains.loops.lam(state.msg), expected, rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("name", FAMILIES)
@given(seed=st.integers(0, 2**32 - 1))
def test_hard_passes_never_lower_the_bound(name, seed):
    model = models_of(name, seed)[0]
    chains = Chains(model.network, ONE)
    state = chains.start(None)
    bounds = []
    for _ in range(5):
        chains.passes(state, 1, np.inf, momentum=False)
        bounds.append(dual_bound(model.network, proving_lam(chains, state)))
    assert all(b >= a - 1e-9 * (1 + abs(a)) for a, b in pairwise(bounds))


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 40))
def test_hard_passes_are_exact_on_trees(seed, n):
    model = generators.random_tree(n, 3, seed=seed)
    chains = Chains(model.network, ONE)
    state = chains.start(None)
    chains.passes(state, 2 * n, np.inf, momentum=False)
    bound = dual_bound(model.network, proving_lam(chains, state))
    assert bound == pytest.approx(lp.solve(model).value, abs=1e-6)


@given(seed=st.integers(0, 2**32 - 1))
def test_threads_do_not_change_a_bit(seed):
    model = generators.erdos_renyi(60, 3, seed=seed % 1000)
    results = []
    for threads in (1, 2, 3):
        chains = Chains(model.network, threads)
        state = chains.start(None)
        chains.passes(state, 7, 50.0, momentum=True)
        results.append(chains.loops.lam(state.msg))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


@given(seed=st.integers(0, 2**32 - 1), eta=st.sampled_from([1.0, 30.0, 1e4]))
def test_passes_never_lower_the_smoothed_dual_which_stays_below_the_bound(seed, eta):
    model = generators.erdos_renyi(30, 3, seed=seed % 1000)
    chains = Chains(model.network, ONE)
    state = chains.start(None)
    values = []
    for _ in range(4):
        chains.passes(state, 1, eta, momentum=False)
        values.append(chains.marginals(state, eta).smoothed)
        assert values[-1] <= dual_bound(model.network, proving_lam(chains, state)) + 1e-9
    assert all(b >= a - 1e-9 * abs(a) for a, b in pairwise(values))


@pytest.mark.parametrize("name", FAMILIES)
@given(seed=st.integers(0, 2**32 - 1))
def test_costs_lie_by_strip_and_nothing_else_does(name, seed):
    for model in models_of(name, seed):
        plan = chain_schedule(model.network)
        node = np.repeat(np.arange(model.network.n), model.network.num_labels)
        label = np.arange(len(node)) - model.network.node_offset[node]
        at, step = plan.node_places
        place = at[node] + label * step[node]
        np.testing.assert_array_equal(plan.unary[place], model.network.unary)
        assert len(np.unique(place)) == len(place)
        assert not np.delete(plan.unary, place).any()


def test_costs_without_room_are_refused():
    model = generators.random_grid(3, 3, 4, seed=1)
    plan = chain_schedule(model.network)

    def arrange(nodes, rows, size):
        core.by_strip(layout(model.network), nodes, rows.view(np.uint8), np.zeros(size))

    last = len(plan.rows) - 1
    with pytest.raises(ValueError, match=f"row {last} has no room"):
        arrange(plan.nodes, plan.rows, int(plan.node_places[0][8]) + 1)
    with pytest.raises(ValueError, match="nodes"):
        arrange(plan.nodes[:-1], plan.rows, plan.cost_size)
    with pytest.raises(ValueError, match="there is no node 9"):
        arrange(plan.nodes + 1, plan.rows, plan.cost_size)
    for name, wrong in (("first", 9), ("labels", 5), ("place", -1)):
        rows = plan.rows.copy()
        rows[name][0] = wrong
        with pytest.raises(ValueError, match="row 0"):
            arrange(plan.nodes, rows, plan.cost_size)

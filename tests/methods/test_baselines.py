"""Sweeps over stars against plain numpy; bounds that never fall; what the baselines promise."""

from __future__ import annotations

from itertools import pairwise, product
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_chains import models_of

from softmap import generators, lp, solve
from softmap.methods.base import METHODS, MethodName, make
from softmap.methods.sweeps.stars import Rule, Stars
from softmap.model import Model
from softmap.paper.baselines import MPLP, Diffusion, Nesterov, Sweeping
from softmap.relaxation.bounds import dual_bound
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import SmoothedDual, half_states, reduced_unary
from support.families import FAMILIES
from support.numpy_twins import hard_message, soft_message
from support.oracles import dense_lp, tree_optimum
from support.strategies import few, models, random_lam, seeds

ONE = 1
RULES = {"star": Rule.STAR, "diffusion": Rule.DIFFUSION, "gradient": Rule.GRADIENT}
MONOTONE = ("trws", "mplp", "diffusion")


def received(model: Model, h: int, lam: np.ndarray, eta: float) -> np.ndarray:
    """μ_h(x) = softmin_y C(x, y) + λ_{h^1}(y) through the numpy verbs."""
    far, e = h ^ 1, h >> 1
    g = int(np.searchsorted(model.network.group_start, e, side="right")) - 1
    k, potential = e - model.network.group_start[g], model.network.potentials[g]
    node = model.network.edges.reshape(-1)
    a = np.where(
        np.isposinf(model.network.unary_of(node[far])), np.inf, lam[model.network.half_slice(far)]
    )
    d = int(model.network.num_labels[node[h]])
    if np.isinf(eta):
        return hard_message(potential, k, h & 1, a, d)
    return soft_message(potential, k, h & 1, a, eta, d)


def settled(model: Model, i: int, halves, lam, mu, rule: str, eta: float) -> list[np.ndarray]:
    """New λ of the half-edges of node i by one rule, as it is written."""
    cost, old = model.network.unary_of(i), [lam[model.network.half_slice(h)].copy() for h in halves]
    if rule == "star":
        belief = -cost - sum(mu)
        return [-m - belief / (len(halves) + 1) for m in mu]
    if rule == "diffusion":
        new = [part.copy() for part in old]
        for k, m in enumerate(mu):
            new[k] += 0.5 * (cost - sum(new) - (new[k] + m))
        return new
    p = _probabilities(cost - sum(old), eta)
    rate = 1.0 / (eta * (len(halves) / 2 + 1))
    edge = [np.where(np.isfinite(cost), y + m, np.inf) for y, m in zip(old, mu, strict=True)]
    found = [_probabilities(part, eta) for part in edge]
    return [part + rate * (s - p) for part, s in zip(old, found, strict=True)]


def _probabilities(cost: np.ndarray, eta: float) -> np.ndarray:
    weight = np.exp(-eta * (cost - cost.min()))
    return weight / weight.sum()


def plain_sweep(model: Model, lam: np.ndarray, rule: str, eta: float) -> np.ndarray:
    """One sweep, colour by colour, node by node."""
    graph, lam = model.network.graph, lam.copy()
    colour, seen = graph.colouring(), lam.copy()
    for i in np.argsort(colour, kind="stable"):
        halves = graph.half[graph.start[i] : graph.start[i + 1]]
        source = lam if rule == "gradient" else seen
        mu = [received(model, h, source, eta) for h in halves]
        allowed = np.isfinite(model.network.unary_of(i))
        with np.errstate(invalid="ignore"):
            new = settled(model, i, halves, source, mu, rule, eta)
        for h, part in zip(halves, new, strict=True):
            seen[model.network.half_slice(h)] = np.where(allowed, part, 0.0)
    return seen


def centred(model: Model, lam: np.ndarray) -> np.ndarray:
    """λ without the constant of each message, 0 on forbidden states."""
    allowed = np.isfinite(model.unary)[half_states(model.network)]
    which = np.repeat(np.arange(2 * model.m), np.diff(model.network.half_offset))
    count = np.bincount(which, weights=allowed, minlength=2 * model.m)
    mean = np.bincount(which, weights=np.where(allowed, lam, 0.0), minlength=2 * model.m) / count
    return np.where(allowed, lam - mean[which], 0.0)


def check_sweep(model: Model, seed: int, rule: str, eta: float) -> None:
    model = tighten(model)
    allowed = np.isfinite(model.unary)[half_states(model.network)]
    lam = np.where(allowed, random_lam(model, seed), 0.0)
    stars = Stars(model.network, ONE)
    state = stars.start(lam)
    stars.passes(state, 1, eta, momentum=False, rule=RULES[rule])
    expected = plain_sweep(model, lam, rule, eta)
    found = stars.lam(state.msg)
    np.testing.assert_allclose(
        centred(model, found), centred(model, expected), atol=1e-8, err_msg=rule
    )
    assert (found[~allowed] == 0).all()


@pytest.mark.parametrize("name", FAMILIES)
@few
@given(seed=seeds, eta=st.sampled_from([0.5, 30.0, 1e4, np.inf]))
def test_a_sweep_is_the_rule_at_every_node(name, seed, eta):
    for model, rule in product(models_of(name, seed), RULES):
        check_sweep(model, seed, rule, 1e3 if rule == "gradient" and np.isinf(eta) else eta)


@given(model=models(hard=True), seed=seeds, rule=st.sampled_from(list(RULES)))
def test_a_sweep_leaves_forbidden_states_alone(model, seed, rule):
    check_sweep(model, seed, rule, 20.0)


@given(model=models(), seed=seeds, eta=st.sampled_from([0.5, 30.0, 1e4, np.inf]))
def test_value_is_the_smoothed_dual(model, seed, eta):
    model = tighten(model)
    stars = Stars(model.network, ONE)
    lam = stars.lam(stars.start(random_lam(model, seed)).msg)
    plain = (
        dual_bound(model.network, lam) if np.isinf(eta) else -SmoothedDual(model, eta).value(lam)
    )
    state = stars.start(lam)
    before = state.msg.copy()
    assert stars.value(state.msg, eta) == pytest.approx(plain, rel=1e-9, abs=1e-9)
    np.testing.assert_array_equal(state.msg, before)


@given(model=models(), seed=seeds, eta=st.sampled_from([0.5, 30.0, 1e4]))
def test_marginals_are_those_of_the_smoothed_dual(model, seed, eta):
    model = tighten(model)
    stars = Stars(model.network, ONE)
    state = stars.start(random_lam(model, seed))
    found = stars.marginals(state, eta)
    nodes = SmoothedDual(model, eta).node_marginals(stars.lam(state.msg))
    np.testing.assert_allclose(found.nodes, nodes, atol=1e-10)
    np.testing.assert_array_equal(found.coupling, stars.lam(state.msg))
    positive = np.where(nodes > 0, nodes, 1.0)
    entropy = np.add.reduceat(-nodes * np.log(positive), model.network.node_offset[:-1])
    assert found.node_entropy == pytest.approx(-entropy.sum(), abs=1e-8 * model.n)


@given(model=models(), seed=seeds, eta=st.sampled_from([1.0, 30.0, 1e3]))
def test_smooth_sweeps_never_raise_L(model, seed, eta):
    model = tighten(model)
    stars = Stars(model.network, ONE)
    for rule in (Rule.STAR, Rule.GRADIENT):
        state, values = stars.start(random_lam(model, seed)), []
        for _ in range(4):
            stars.passes(state, 1, eta, momentum=False, rule=rule)
            values.append(stars.value(state.msg, eta))
        assert all(b >= a - 1e-9 * (1 + abs(a)) for a, b in pairwise(values))


@given(model=models(), seed=seeds)
def test_hard_sweeps_before_the_bound_never_lower_it(model, seed):
    model = tighten(model)
    stars = Stars(model.network, ONE)
    messages = stars.start(random_lam(model, seed)).msg
    before = dual_bound(model.network, stars.lam(messages))
    assert dual_bound(model.network, stars.bounding(messages)) >= before - 1e-9 * (1 + abs(before))


@given(seed=seeds, eta=st.sampled_from([0.1, 1.0, 10.0, 100.0]))
def test_the_step_of_nesterov_is_within_the_curvature(seed, eta):
    """δᵀ ∇²L δ ≤ η Σ_h (|N_i| / 2 + 1) ‖δ_h‖², by differences of the gradient."""
    model = generators.erdos_renyi(8, 3, seed=seed % 1000)
    lam, direction = random_lam(model, seed), random_lam(model, seed + 1)
    dual, t = SmoothedDual(model, eta), 1e-5 / eta
    change = dual.gradient(lam + t * direction) - dual.gradient(lam - t * direction)
    curvature = float(change @ direction) / (2 * t)
    most = eta * (model.network.graph.degree[model.edges.reshape(-1)] / 2 + 1)
    limit = np.repeat(most, np.diff(model.network.half_offset)) @ direction**2
    assert curvature <= limit * (1 + 1e-6)


def bounds_of(method: str, model: Model, count: int) -> list[float]:
    algorithm = make(method, threads=ONE)
    state = algorithm.init(model.network, None, 0)
    found = [dual_bound(model.network, algorithm.propose(state).lam)]
    for _ in range(count):
        algorithm.step(state, 1)
        found.append(dual_bound(model.network, algorithm.propose(state).lam))
    return found


@pytest.mark.parametrize("name", FAMILIES)
@few
@given(seed=seeds)
def test_bounds_of_hard_sweeps_never_fall(name, seed):
    model = models_of(name, seed)[0]
    for method in MONOTONE:
        found = bounds_of(method, model, 5)
        assert all(b >= a - 1e-9 * (1 + abs(a)) for a, b in pairwise(found)), method


@pytest.mark.parametrize("method", MONOTONE)
@given(model=models())
def test_bounds_never_fall_on_any_model_and_stay_below_the_lp(method, model):
    model = tighten(model)
    found = bounds_of(method, model, 6)
    assert all(b >= a - 1e-9 * (1 + abs(a)) for a, b in pairwise(found))
    best = dense_lp(model)
    assert found[-1] <= best + 1e-7 * (1 + abs(best))


@given(model=models(families=("tables", "potts", "truncated-linear"), graphs=("tree",)))
def test_trws_is_exact_on_trees(model):
    model = tighten(model)
    assert bounds_of("trws", model, 3 * model.n)[-1] == pytest.approx(tree_optimum(model), abs=1e-7)


@pytest.mark.parametrize("rule", [Rule.STAR, Rule.GRADIENT])
def test_threads_do_not_change_a_bit(rule):
    model = generators.erdos_renyi(300, 3, seed=5)
    found = []
    for threads in (1, 2, 3):
        stars = Stars(model.network, threads)
        state = stars.start(None)
        stars.passes(state, 7, 50.0, momentum=True, rule=rule)
        found.append((stars.lam(state.msg), state.clock.copy(), stars.value(state.msg, 50.0)))
    for lam, clock, value in found[1:]:
        np.testing.assert_array_equal(lam, found[0][0])
        np.testing.assert_array_equal(clock, found[0][1])
        assert value == found[0][2]


def test_sweeps_can_be_cut_anywhere():
    """The driver chooses how many sweeps it asks for at a time; the result may not depend on it."""
    model = generators.potts_grid(9, 7, 3, seed=3)
    stars = Stars(model.network, ONE)
    found = []
    for parts in ([9], [1, 3, 5], [4, 4, 1]):
        state = stars.start(None)
        for count in parts:
            stars.passes(state, count, 40.0, momentum=True)
        found.append(state)
    for state in found[1:]:
        np.testing.assert_array_equal(state.msg, found[0].msg)
        np.testing.assert_array_equal(state.drift, found[0].drift)


def test_momentum_makes_smooth_sweeps_faster():
    model = generators.erdos_renyi(100, 3, seed=1)
    stars, found = Stars(model.network, ONE), []
    for momentum in (False, True):
        state = stars.start(None)
        stars.passes(state, 300, 300.0, momentum=momentum)
        found.append(stars.value(state.msg, 300.0))
    best = lp.solve(model).value
    assert best - found[1] < 0.5 * (best - found[0])


def test_hard_star_sweeps_are_the_limit_of_smooth_ones():
    model = generators.potts_grid(6, 6, 3, seed=4)
    stars = Stars(model.network, ONE)
    found = []
    for eta in (1e7, np.inf):
        state = stars.start(None)
        stars.passes(state, 3, eta, momentum=False)
        found.append(centred(model, stars.lam(state.msg)))
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)


@pytest.mark.parametrize("method", [MPLP, Diffusion])
def test_fixed_points_are_arc_consistent(method: type[Sweeping]):
    """Where hard sweeps stop, every least node cost is supported by an edge at its least cost."""
    model = generators.random_grid(5, 5, 3, seed=2)
    algorithm = method(threads=ONE)
    state = algorithm.init(model.network, None, 0)
    algorithm.step(state, 4000)
    lam = algorithm.propose(state).lam
    theta = reduced_unary(model.network, lam)
    for i in range(model.n):
        x = int(np.argmin(theta[model.network.node_slice(i)]))
        for h in model.network.graph.half[
            model.network.graph.start[i] : model.network.graph.start[i + 1]
        ]:
            least = lam[model.network.half_slice(h)] + received(model, h, lam, np.inf)
            assert least[x] <= least.min() + 1e-4


def test_nesterov_reaches_the_optimum_of_L():
    model = generators.erdos_renyi(30, 3, seed=7)
    algorithm = Nesterov(eta=20.0, threads=ONE)
    state = algorithm.init(model.network, None, 0)
    algorithm.step(state, 3000)
    proposal = algorithm.propose(state)
    slack = SmoothedDual(model, 20.0).slack(proposal.lam)
    assert np.abs(slack).max() < 1e-4
    assert proposal.smoothed == pytest.approx(-SmoothedDual(model, 20.0).value(proposal.lam))


def test_annealed_stars_reach_the_lp():
    model = generators.potts_grid(12, 12, 4, seed=6)
    best = lp.solve(model).value
    result = solve(model, method="anneal-star", goal="lp", threads=1)
    assert result.lp_gap <= 1e-4 * abs(best)
    assert result.bound - 1e-9 <= best <= result.primal + 1e-9


def test_the_names_for_type_checkers_are_those_of_the_methods():
    assert get_args(MethodName) == tuple(METHODS)

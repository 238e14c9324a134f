"""The estimate sequences behind the accelerated methods, and the rates they prove."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from softmap import generators
from softmap import paper as reading
from softmap.errors import OptionError
from softmap.methods.base import METHODS, make
from softmap.model import Model
from softmap.paper import methods as paper
from softmap.paper import theory
from softmap.paper.methods import Blocks, UpdateRule, star_order
from softmap.relaxation.dual import SmoothedDual
from support import numpy_twins as twins

pytestmark = pytest.mark.usefixtures("stacked_once")
ETA = 4.0
PROVED = [
    (name, constants)
    for name in ("accel-emp", "accel-smp", "accel-bcd")
    for constants in ("sharp", "lemma")
]


@pytest.fixture(scope="module")
def model():
    """Degrees 1 to 3, two and three labels, and a vertex without edges."""
    rng = np.random.default_rng(5)
    counts = [2, 3, 2, 3, 2, 2]
    edges = [[0, 1], [1, 2], [2, 0], [3, 2]]
    unary = [rng.normal(size=d) for d in counts]
    return Model(unary, edges, [rng.normal(size=(counts[i], counts[j])) for i, j in edges])


@pytest.fixture(scope="module")
def random_graph():
    """A random graph with L* and a minimiser."""
    model = generators.erdos_renyi(4, 2, seed=3)
    return model, *twins.least_dual(model, ETA)


def _blocks(model, order):
    """All blocks as lists of half-edges, with their probabilities."""
    halves = 2 * model.m
    if order is Blocks.EDGES:
        return [([h], 1 / halves) for h in range(halves)]
    stars = [reading.N(model.network, i) for i in range(model.n)]
    return [(star, len(star) / halves) for star in stars if star]


def _curvature(model, algorithm):
    """Γ: the curvature of φ_0 over the entries of λ, 1 / (p_b · gain_b) on block b."""
    gain = paper.gain(algorithm.constants, model.network, algorithm.blocks, algorithm.eta)
    out = np.empty(int(model.network.half_offset[-1]))
    for block, p in _blocks(model.network, algorithm.blocks):
        out[reading.entries(model.network, block)] = 1 / (
            p * gain[model.edges.reshape(-1)[block[0]]]
        )
    return out


# --- constants ----------------------------------------------------------------------------------


def test_steps_of_v_are_those_of_the_statements(model):
    """Lemmas "est-seq" and "est-seq-smp" with γ_{k+1} = γ_0 θ_k²: qθ/γ and θ/(pγ)."""
    s = theory.sizes(model)
    q, degree = s.half_edges, model.network.graph.degree
    used = degree > 0
    edges = paper.gain("lemma", model.network, Blocks.EDGES, ETA)[used]
    np.testing.assert_allclose(edges, q / theory.gamma_0(s, ETA, "edges"))
    stars = paper.gain("lemma", model.network, Blocks.STARS, ETA)[used]
    np.testing.assert_allclose(stars, q / degree[used] / theory.gamma_0(s, ETA, "stars"))
    sharp = paper.gain("sharp", model.network, Blocks.EDGES, ETA)[used]
    np.testing.assert_allclose(sharp, q / theory.gamma_0(s, ETA, "edges", "zero-sum"))
    np.testing.assert_allclose(sharp, paper.gain("printed", model.network, Blocks.EDGES, ETA)[used])
    printed = paper.gain("printed", model.network, Blocks.STARS, ETA)[used]
    np.testing.assert_allclose(printed, s.min_degree / (2 * degree[used] * ETA))


def test_the_block_curvature_bounds_the_hessian(model):
    """L_b = η (|B| + 1) / 2 bounds the largest eigenvalue of the Hessian of L on block b."""
    rng = np.random.default_rng(0)
    dual = SmoothedDual(model, ETA)
    for order in Blocks:
        bound = paper.block_curvature(model.network, order, ETA)
        for block, _ in _blocks(model.network, order):
            at = reading.entries(model.network, block)
            lam = rng.normal(size=int(model.network.half_offset[-1]))
            hessian = np.empty((len(at), len(at)))
            for column, x in enumerate(at):
                move = np.zeros_like(lam)
                move[x] = 1e-5
                change = dual.gradient(lam + move) - dual.gradient(lam - move)
                hessian[:, column] = change[at] / 2e-5
            top = np.linalg.eigvalsh((hessian + hessian.T) / 2)[-1]
            assert top <= bound[model.edges.reshape(-1)[block[0]]] + 1e-6


def test_unknown_constants_and_methods_are_refused(model):
    with pytest.raises(OptionError, match="sharp, lemma, printed"):
        METHODS["accel-emp"](eta=1.0, constants="bold").init(model.network, None, 0)
    with pytest.raises(OptionError, match="unknown method"):
        make("emp-accelerated", eta=1.0)
    with pytest.raises(OptionError, match="choose anneal or trws, or to compare with: emp, smp, "):
        make("?")
    with pytest.raises(OptionError, match="eta"):
        make("emp")
    with pytest.raises(OptionError, match="expected a positive number"):
        make("emp", eta=-1.0)


# --- the sequences ------------------------------------------------------------------------------


def test_theta_and_delta_satisfy_their_recursions(model):
    algorithm = make("accel-smp", eta=ETA)
    state = algorithm.init(model.network, None, 0)
    delta, previous = 1.0, 1.0
    for k in range(500):
        assert delta == pytest.approx(previous**2)
        assert delta <= 4 / (k + 2) ** 2 * (1 + 1e-12)
        algorithm.step(state, 1)
        theta = state.theta
        assert theta == pytest.approx((-(previous**2) + np.sqrt(previous**4 + 4 * previous**2)) / 2)
        assert theta**2 == pytest.approx((1 - theta) * previous**2)
        delta, previous = delta * (1 - theta), theta
    np.testing.assert_allclose(previous, theory.thetas(500)[-1])


@pytest.mark.parametrize(("name", "constants"), PROVED)
def test_phi_keeps_its_quadratic_form(model, name, constants):
    """φ_k built by its definition equals ω_k + γ_k/2 ‖λ - v_k‖², with the compiled v_k."""
    algorithm = METHODS[name](eta=ETA, constants=constants)
    dual, rng = SmoothedDual(model, ETA), np.random.default_rng(1)
    first = rng.normal(size=int(model.network.half_offset[-1]))
    probes = rng.normal(size=(4, len(first))) * 2
    state, twin = algorithm.init(model.network, first, 9), twins.Xoshiro.seeded(9)
    curvature, to_model = _curvature(model, algorithm), star_order(model.network).to_model
    omega = dual.value(first)
    phi = omega + (curvature * (probes - first) ** 2).sum(axis=1) / 2
    for theta in theory.thetas(40):
        h = twin.half_edge(model)
        node = model.edges.reshape(-1)[h]
        block = [h] if algorithm.blocks is Blocks.EDGES else reading.N(model.network, node)
        at, p = reading.entries(model.network, block), len(block) / (2 * model.m)
        v = to_model(state.v)
        y = v + theta**2 * to_model(state.w)
        nu, value = dual.slack(y)[at], dual.value(y)
        algorithm.step(state, 1)
        gamma = theta**2 * curvature[at]  # γ_{k+1}
        phi = (1 - theta) * phi + theta * value - theta / p * (probes[:, at] - y[at]) @ nu
        omega = (1 - theta) * omega + theta * value - theta / p * nu @ (v[at] - y[at])
        omega -= (theta / p) ** 2 * (nu**2 / gamma).sum() / 2
        squares = (theta**2 * curvature * (probes - to_model(state.v)) ** 2).sum(axis=1)
        np.testing.assert_allclose(phi, omega + squares / 2, rtol=1e-9)


def _induction_step(model, algorithm, y):
    """E L(λ_{k+1}) and the lower bound on E ω_{k+1}, over all blocks, at y_k."""
    dual = SmoothedDual(model, algorithm.eta)
    nu, value, curvature = dual.slack(y), dual.value(y), _curvature(model, algorithm)
    mean, bound = 0.0, value
    for block, p in _blocks(model.network, algorithm.blocks):
        at, new = reading.entries(model.network, block), y.copy()
        new[at] = reading.ALGORITHMS[algorithm.name][0](model.network, y, algorithm.eta, block)
        mean += p * dual.value(new)
        bound -= (nu[at] ** 2 / curvature[at]).sum() / (2 * p)
    return mean, bound


@pytest.mark.parametrize(("name", "constants"), PROVED)
def test_the_induction_step_of_the_dual_rate(model, name, constants):
    """E L(λ_{k+1}) ≤ L(y) - E ‖ν_b‖² / (2 p_b² Γ_b) for every y: λ_{k+1} = y off the block."""
    rng = np.random.default_rng(3)
    algorithm = METHODS[name](eta=ETA, constants=constants)
    for scale in (0.01, 0.3, 1.0, 5.0):
        for _ in range(10):
            mean, bound = _induction_step(
                model, algorithm, scale * rng.normal(size=int(model.network.half_offset[-1]))
            )
            assert mean <= bound + 1e-10


def test_the_printed_star_step_is_outside_the_proof():
    """min|N_j| / (2 p_i θ η N), a factor of order N too long, breaks the induction step."""
    rng = np.random.default_rng(0)
    pairs = list(itertools.combinations(range(8), 2))
    model = Model(0.1 * rng.normal(size=(8, 2)), pairs, 0.1 * rng.normal(size=(len(pairs), 2, 2)))
    at_zero = np.zeros(int(model.network.half_offset[-1]))
    mean, bound = _induction_step(
        model, METHODS["accel-smp"](eta=ETA, constants="printed"), at_zero
    )
    assert mean > bound
    mean, bound = _induction_step(model, make("accel-smp", eta=ETA), at_zero)
    assert mean <= bound


# --- rates --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "constants"), PROVED)
def test_the_mean_dual_error_stays_under_the_proved_rate(random_graph, name, constants):
    """Lemmas "acc-dual-conv" and "acc-dual-conv-smp", before and after G(η) replaces ‖λ*‖."""
    model, least, star = random_graph
    algorithm = METHODS[name](eta=ETA, constants=constants)
    dual, checks, trials = SmoothedDual(model, ETA), np.arange(0, 241, 20), 40
    errors = np.zeros(len(checks))
    for seed in range(trials):
        state = algorithm.init(model.network, None, seed)
        for c in range(len(checks)):
            errors[c] += (dual.value(algorithm.propose(state).lam) - least) / trials
            algorithm.step(state, 20)
    gap = dual.value(np.zeros_like(star)) - least
    weighted = (_curvature(model, algorithm) * star**2).sum() / 2
    rate = theory.deltas(int(checks[-1]) + 1)[checks] * (gap + weighted)
    assert (errors <= rate).all()
    assert rate[-1] < gap  # the bound says more than that L fell
    s = theory.sizes(model)
    blocks = "stars" if algorithm.blocks is Blocks.STARS else "edges"
    assert (rate <= theory.growth(s, ETA, blocks) ** 2 / (checks + 2) ** 2).all()


@pytest.mark.parametrize("name", ["emp", "smp"])
def test_the_mean_slack_of_the_returned_iterate(name):
    """Lemmas "standard-slack" (8mη (L(0) - L*) / K), which stars satisfy too (printed: 8Nη)."""
    model = generators.erdos_renyi(5, 2, seed=1)
    least, star = twins.least_dual(model, ETA)
    gap = SmoothedDual(model, ETA).value(np.zeros_like(star)) - least
    counts, trials = (1, 4, 16, 64), 40
    for count in counts:
        total = 0.0
        for seed in range(trials):
            algorithm = make(name, eta=ETA)
            state = algorithm.init(model.network, None, seed)
            algorithm.step(state, count)
            total += state.total[2] / trials
        assert total <= 8 * model.m * ETA * gap / count


@pytest.mark.parametrize("name", ["accel-emp", "accel-smp", "accel-bcd"])
def test_warm_starts_begin_where_they_are_told(model, name):
    first = np.random.default_rng(2).normal(size=int(model.network.half_offset[-1]))
    algorithm = make(name, eta=ETA)
    np.testing.assert_array_equal(
        algorithm.propose(algorithm.init(model.network, first, 0)).lam, first
    )
    printed = METHODS["accel-emp-printed"](eta=ETA)
    np.testing.assert_array_equal(printed.propose(printed.init(model.network, first, 0)).lam, first)
    assert algorithm.rule in UpdateRule

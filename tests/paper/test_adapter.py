"""Methods from a rule in Python: the compiled methods' iterates, runs, checkpoints, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import softmap
from softmap import generators, paper
from softmap.errors import OptionError
from softmap.methods.base import make
from softmap.model import Model
from softmap.relaxation.consistency import tighten


@pytest.fixture
def listed():
    """Lists a method for a test."""
    added = []

    def add(*parts, name, **options):
        added.append(name)
        softmap.METHODS[name] = paper.as_method(*parts, name=name, **options)

    yield add
    for name in added:
        del softmap.METHODS[name]


def _assert_same_run(compiled, written, model):
    """The same blocks, proposals, work and number of updates, in pieces of any length."""
    first = compiled.init(model.network, None, 4)
    second = written.init(model.network, None, 4)
    for count in (1, 0, 13, 26):
        compiled.step(first, count)
        written.step(second, count)
        lam = compiled.propose(first).lam
        np.testing.assert_allclose(written.propose(second).lam, lam, rtol=1e-9, atol=1e-9)
        assert (second.work, second.updates) == (first.work, first.updates)
    if written.parts.scheme is paper.STANDARD:
        np.testing.assert_allclose(second.current(), first.current(), rtol=1e-9, atol=1e-9)
        assert second.least == pytest.approx(first.total[2], rel=1e-9)


@pytest.mark.parametrize("name", paper.ALGORITHMS)
def test_the_text_as_a_method_is_the_compiled_method(name):
    model, eta = tighten(generators.ragged_constrained(7, seed=3)), 30.0
    _assert_same_run(make(name, eta=eta), paper.as_method(*paper.ALGORITHMS[name])(eta), model)


@pytest.mark.parametrize("name", ["emp", "smp", "bcd"])
def test_compiled_methods_draw_from_P_what_the_text_draws(name):
    """A random P with zeros, also at a vertex without edges."""
    model = Model(np.random.default_rng(0).normal(size=(6, 3)), [[0, 2], [2, 3], [3, 5], [0, 5]],
                  np.random.default_rng(1).normal(size=(4, 3, 3)))  # fmt: skip
    rule, order, scheme = paper.ALGORITHMS[name]
    P = np.array([len(block) for block in order(model.network)]) * np.random.default_rng(2).random(
        len(order(model.network))
    )
    P[0] = 0.0
    P /= P.sum()
    compiled = softmap.METHODS[name](30.0, P=P)
    _assert_same_run(compiled, paper.as_method(rule, order, scheme, P=P)(30.0), model)


def test_a_compiled_method_refuses_what_is_no_distribution():
    model = generators.erdos_renyi(6, 2, seed=1)
    for P, message in (([1.0], "P must be 6 numbers"), (np.ones(6), "that sum to 1, not to 6")):
        with pytest.raises(OptionError, match=message):
            paper.SMP(1.0, P=P).init(model.network, None, 0)


def test_a_method_of_ones_own_solves_and_resumes(listed, tmp_path):
    """A run that stops at a checkpoint and goes on ends where a whole run does."""
    listed(paper.smp, paper.stars, paper.PROVED, name="mine")
    model, path = generators.erdos_renyi(6, 2, seed=2), tmp_path / "run.ckpt"
    whole = softmap.paper.solve(model, method="mine", eta=50.0, updates=60, every=30, goal="lp")
    compiled = softmap.paper.solve(
        model, method="accel-smp", eta=50.0, updates=60, every=30, goal="lp"
    )
    assert whole.method == "mine"
    assert whole.bound == pytest.approx(compiled.bound, abs=1e-9)
    assert whole.bound <= softmap.lp.solve(model).value + 1e-9
    softmap.paper.solve(
        model, method="mine", eta=50.0, updates=30, goal="lp", checkpoint=path, every=30
    )
    resumed = softmap.paper.resume(path, model, updates=60)
    np.testing.assert_array_equal(resumed.lam, whole.lam)


def test_a_rule_that_returns_nonsense_ends_its_stage(listed):
    """What is known by then, the bound of λ = 0, is the result; the warning names the block."""
    listed(lambda model, lam, eta, block: [0.0], name="short")
    model = generators.erdos_renyi(9, 3, seed=0)
    with pytest.warns(
        softmap.StageWarning, match=r"returned an array of shape \(1,\) for the block"
    ):
        result = softmap.paper.solve(model, method="short", eta=1.0, updates=5, goal="lp")
    assert result.status is softmap.Status.FAILED
    assert result.bound <= softmap.lp.solve(model).value


def test_a_model_without_edges_has_no_updates():
    alone = Model([[0.0, 1.0]] * 3, None, [])
    method = paper.as_method(paper.emp)(10.0)
    state = method.init(alone.network, None, 0)
    method.step(state, 10)
    assert (state.updates, state.work, method.propose(state).lam.size) == (0, 0, 0)


def test_P_is_that_of_the_run():
    """All weight on one vertex: no other multiplier moves."""
    model = generators.erdos_renyi(8, 2, seed=1)
    P = np.eye(8)[3]
    method = paper.as_method(paper.smp, paper.stars, P=P)(20.0)
    state = method.init(model.network, None, 0)
    method.step(state, 5)
    changed = np.flatnonzero(state.current())
    np.testing.assert_array_equal(
        changed, np.sort(paper.entries(model.network, paper.N(model.network, 3)))
    )

"""Runs that begin from a labelling or an upper bound: what they find, and what they claim."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import softmap
from softmap import Status
from softmap.views.words import certificate_sentences
from support.oracles import brute_force
from support.strategies import models


def hard(seed=0):
    return softmap.generators.erdos_renyi(24, 3, seed=seed)


def loose(seed=3):
    """A complete graph of random costs: its LP relaxation is far from the optimum."""
    rng = np.random.default_rng(seed)
    edges = np.array([(i, j) for j in range(14) for i in range(j)])
    return softmap.Model(rng.normal(size=(14, 3)), edges, rng.normal(size=(len(edges), 3, 3)))


@pytest.mark.parametrize("option", ["initial", "warm_start"])
def test_a_run_begins_with_the_labels_it_is_given(option):
    model = hard()
    best = softmap.solve(model, goal="optimal")
    again = softmap.solve(model, time_limit=0, **{option: best.labels})
    assert again.energy == best.energy
    assert (again.labels == best.labels).all()
    assert again.bound <= again.energy
    assert softmap.verify(again).holds
    worst = softmap.solve(model, **{option: (best.labels + 1) % 3})
    assert worst.energy == pytest.approx(best.energy)


def test_labels_may_be_named_and_have_the_shape_of_a_grid():
    grid = softmap.generators.potts_grid(5, 4, 3, seed=2).with_shape((5, 4))
    labels = np.arange(20).reshape(5, 4) % 3
    seen = softmap.solve(grid, initial=labels, max_work=0)
    assert seen.energy <= grid.energy(labels)
    named = softmap.Model([[0.0, 1.0], [1.0, 0.0]]).with_names({"a": ["no", "yes"], "b": 2})
    for given_labels in ({"a": "yes", "b": 0}, [1, 0]):
        assert softmap.solve(named, initial=given_labels).as_dict() == {"a": "no", "b": 1}


@pytest.mark.parametrize(
    "wrong", [[0, 1], "abc", {"a": 1}, np.full(24, 7), np.zeros((2, 24), int), np.full(24, 0.5)]
)
def test_labels_that_are_none_are_refused(wrong):
    with pytest.raises(softmap.OptionError, match=r"initial: expected"):
        softmap.solve(hard(), initial=wrong)


@given(models(hard=True), st.sampled_from([-0.4, -1e-12, 0.0, 0.3, 5.0]), st.data())
@settings(max_examples=60, deadline=None)
def test_an_upper_bound_leaves_every_claim_true(model, offset, data):
    """The bound is one on all labellings, whatever was said, and the status is true."""
    optimum = brute_force(model)[0]
    assume(np.isfinite(optimum))
    limit = optimum + offset
    goal = data.draw(st.sampled_from(["map", "lp", "optimal", "labels"]))
    result = softmap.solve(model, upper_bound=limit, goal=goal)
    assert result.bound <= optimum + 1e-9 * max(1, abs(optimum))
    assert result.energy >= optimum - 1e-9 * max(1, abs(optimum))
    if result.status is Status.NONE_BELOW:
        assert result.bound >= limit - 2e-6 * max(1.0, result.gap_unit)
        assert result.energy >= limit - 1e-12 * max(1.0, abs(limit))  # up to rounding
    if offset > 1e-3 and goal == "optimal":
        assert result.energy == pytest.approx(optimum, abs=1e-5)
    assert softmap.verify(result).holds


def test_a_search_below_the_optimum_proves_that_there_is_none(tmp_path):
    model = loose()
    optimum = softmap.solve(model, goal="optimal").energy
    lp = softmap.lp.solve(model).value
    assert lp < optimum - 0.1
    limit = optimum - 0.05
    result = softmap.solve(model, goal="optimal", upper_bound=limit)
    assert result.status is Status.NONE_BELOW
    assert limit - 1e-5 <= result.bound <= optimum
    result.save(tmp_path / "r.npz")
    again = softmap.load_result(tmp_path / "r.npz")
    assert again == result
    assert again.upper_bound == limit
    better = softmap.solve(model, goal="optimal", upper_bound=optimum + 0.05)
    assert better.status is Status.OPTIMAL
    assert better.energy == optimum


def test_an_upper_bound_ends_a_run_that_its_relaxation_proves():
    model = softmap.generators.random_tree(30, seed=1)
    optimum = softmap.solve(model).energy
    result = softmap.solve(model, upper_bound=optimum - 1.0)
    assert result.status is Status.NONE_BELOW
    assert result.bound >= optimum - 1.0 - 1e-5


def test_a_resumed_run_keeps_its_upper_bound(tmp_path):
    model = loose()
    optimum = softmap.solve(model, goal="optimal").energy
    path = tmp_path / "c.npz"
    options = {"goal": "optimal", "upper_bound": optimum - 0.05}
    softmap.solve(model, checkpoint=path, max_work=2000, **options)
    assert softmap.resume(path, model).status is Status.NONE_BELOW


def test_the_certificate_speaks_of_the_upper_bound():
    model = loose()
    optimum = softmap.solve(model, goal="optimal").energy
    said = {
        optimum - 0.05: "So no labelling costs less than the upper bound",
        optimum + 0.05: "It costs no more than the upper bound",
    }
    for limit, sentence in said.items():
        result = softmap.solve(model, goal="optimal", upper_bound=limit)
        assert sentence in " ".join(certificate_sentences(result))
    stopped = softmap.solve(model, max_work=0, upper_bound=optimum - 0.05)
    assert "is open" in " ".join(certificate_sentences(stopped))
    plain = softmap.solve(model, goal="optimal")
    assert "upper bound" not in " ".join(certificate_sentences(plain))

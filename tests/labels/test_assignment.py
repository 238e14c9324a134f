"""Linear assignments: labels and bounds against enumeration, and prices against their law."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap import core
from softmap.labels.assignment import assign, solve_assignment
from softmap.model import Model
from softmap.relaxation.bounds import dual_bound


def _costs(seed, n, d, whole):
    rng = np.random.default_rng(seed)
    costs = rng.integers(-9, 10, (n, d)).astype(float) if whole else rng.normal(size=(n, d))
    costs[rng.random((n, d)) < 0.15] = np.inf
    return costs


def _model(costs):
    n, d = costs.shape
    unary = [((i,), row) for i, row in enumerate(costs)]
    return Model.from_factors([d] * n, [*unary, softmap.AllDifferent(list(range(n)))])


def _least(costs):
    """The cost of the best assignment, by enumeration."""
    n, d = costs.shape
    rows = np.arange(n)
    return min(costs[rows, list(chosen)].sum() for chosen in itertools.permutations(range(d), n))


sizes = st.integers(3, 5).flatmap(lambda n: st.tuples(st.just(n), st.integers(max(n, 4), 6)))


@given(st.integers(0, 2**32), sizes, st.booleans())
def test_assignments_are_solved_and_proved(seed, size, whole):
    costs = _costs(seed, *size, whole)
    least = _least(costs)
    try:
        model = _model(costs)
    except softmap.InfeasibleModel:
        assert np.isinf(least)
        return
    if np.isinf(least):
        return
    found = solve_assignment(model.network, model.network)
    if found is None:  # small enough for one table
        assert not len(model.network.running)
        return
    labels, lam = found
    assert model.energy(labels) == pytest.approx(least, abs=1e-9)
    bound = dual_bound(model, lam)
    assert bound <= model.energy(labels)
    assert bound == pytest.approx(least, abs=1e-9)
    result = softmap.solve(model)
    assert result.status is softmap.Status.OPTIMAL
    assert result.energy == pytest.approx(least, abs=1e-9)
    assert softmap.verify(result).holds


@given(st.integers(0, 2**32), sizes, st.booleans())
def test_prices_make_each_label_the_one_of_lowest_cost(seed, size, whole):
    costs = _costs(seed, *size, whole)
    found = assign(costs)
    if found is None:
        assert np.isinf(_least(costs))
        return
    rows, labels, prices = np.arange(len(costs)), found.labels, found.prices
    assert len(set(labels.tolist())) == len(labels)
    assert costs[rows, labels].sum() == pytest.approx(_least(costs), abs=1e-9)
    assert found.bound <= _least(costs) + 1e-12
    assert found.bound == pytest.approx(_least(costs), abs=1e-9)
    assert (prices <= 0).all()
    assert (prices[np.setdiff1d(np.arange(costs.shape[1]), labels)] == 0).all()
    reduced = costs - prices
    assert (reduced[rows, labels][:, None] <= reduced + 1e-9).all()


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 12))
def test_an_assignment_costs_what_scipy_finds(seed, n, d):
    from scipy.optimize import linear_sum_assignment
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    costs = _costs(seed, n, d, whole=True)
    labels, prices = np.empty(n, dtype=np.int64), np.empty(d)
    assert core.linear_assignment(costs, labels, prices)
    matched = maximum_bipartite_matching(csr_array(np.isfinite(costs)), perm_type="column")
    assert (labels >= 0).sum() == (matched >= 0).sum()
    rows = np.flatnonzero(labels >= 0)
    assert np.isfinite(costs[rows, labels[rows]]).all()
    if len(rows) == n:
        assert costs[rows, labels].sum() == costs[linear_sum_assignment(costs)].sum()


def test_an_assignment_ends_at_its_time_limit():
    costs = np.random.default_rng(0).random((40, 40))
    assert assign(costs, core.Deadline(0.0)) is None


@pytest.mark.parametrize("sizes", [[4, 4, 4, 2, 2], [5, 4, 3, 3, 6], [9, 9, 3, 3, 3], [2] * 7])
def test_variables_with_different_numbers_of_labels(sizes):
    """Tables over the same variables become one table, to which λ does not apply."""
    rng = np.random.default_rng(3)
    unary = [((i,), rng.random(d)) for i, d in enumerate(sizes)]
    factors = [*unary, softmap.AllDifferent(range(len(sizes)))]
    states = [x for x in itertools.product(*map(range, sizes)) if len(set(x)) == len(x)]
    if not states:
        with pytest.raises(softmap.InfeasibleModel):
            Model.from_factors(sizes, factors)
        return
    model = Model.from_factors(sizes, factors)
    least = min(sum(c[x] for (_, c), x in zip(unary, chosen, strict=True)) for chosen in states)
    if (found := solve_assignment(model.network, model.network)) is not None:
        assert dual_bound(model.network, found[1]) == pytest.approx(least, abs=1e-9)
    assert softmap.solve(model, goal="optimal").energy == pytest.approx(least, abs=1e-9)


def test_other_costs_are_left_to_other_methods():
    costs = np.random.default_rng(1).random((5, 6))
    unary = [((i,), row) for i, row in enumerate(costs)]
    different = softmap.AllDifferent(list(range(5)))
    pair = ((0, 1), np.random.default_rng(2).random((6, 6)))
    for more in ([pair], [softmap.AllDifferent([0, 1, 2, 3])]):
        model = Model.from_factors([6] * 5, [*unary, different, *more])
        assert solve_assignment(model.network, model.network) is None
    part = Model.from_factors([6] * 5, [*unary, softmap.AllDifferent([0, 1, 2, 3])])
    assert solve_assignment(part.network, part.network) is None
    model = _model(costs)
    assert solve_assignment(model.network, model.network) is not None


def _lazy(n=20, d=25, names=None):
    costs = np.random.default_rng(0).random((n, d))
    different = softmap.AllDifferent(range(n) if names is None else names[::-1])
    unary = [((i,) if names is None else (names[i],), row) for i, row in enumerate(costs)]
    return Model.from_factors([d] * n, [*unary[:3], different, *unary[3:]], names=names)


def test_a_larger_assignment_takes_one_check_and_no_chains():
    model = _lazy()
    result = softmap.solve(model)
    assert result.status is softmap.Status.OPTIMAL
    assert len(result.trace) == 1
    assert "edges" not in vars(model)
    assert model.network.m > 0
    assert result.lam.shape == result.messages.shape == (model.network.half_size,)
    assert result.energy == model.energy(result.labels)
    assert dual_bound(model, result.lam) == pytest.approx(result.bound, abs=1e-12)
    assert softmap.verify(result).holds


def test_the_stages_of_a_run_agree_with_the_shortcut():
    """A work limit makes the run build the chains."""
    lazy, run = softmap.solve(_lazy()), softmap.solve(_lazy(), max_work=10**9)
    assert lazy.energy == run.energy
    assert lazy.bound == pytest.approx(run.bound, abs=1e-12)
    assert np.array_equal(lazy.lam, run.lam)
    assert lazy.status is run.status
    assert np.array_equal(lazy.node_marginals, run.node_marginals)


def test_an_assignment_without_chains_is_a_model_as_any_other(tmp_path):
    model = _lazy(6, 7, list("abcdef"))
    result = softmap.solve(model)
    assert set(result.as_dict()) == set("abcdef")
    for other in (pickle.loads(pickle.dumps(_lazy(6, 7, list("abcdef")))), copy.deepcopy(model)):
        assert other.fingerprint() == model.fingerprint()
        assert softmap.solve(other).energy == result.energy
    result.save(tmp_path / "result.npz", with_model=True)
    assert softmap.load_result(tmp_path / "result.npz") == result
    fixed = softmap.solve(model.condition({"a": 0}))
    assert fixed["a"] == 0
    assert fixed.energy >= result.energy
    assert model.with_shape((2, 3)).shape == (2, 3)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = model.nothing


def test_errors_name_the_factor_of_the_list():
    unary = [((i,), np.zeros(5)) for i in range(4)]
    with pytest.raises(softmap.ModelError, match="factor 5"):
        Model.from_factors([5] * 4, [*unary, softmap.AllDifferent(range(4)), ((0,), np.zeros(4))])
    with pytest.raises(softmap.ModelError, match="factor 4"):
        Model.from_factors([5] * 4, [*unary, softmap.AllDifferent(range(5))])


@pytest.mark.parametrize(("n", "d"), [(2, 3), (3, 3), (3, 4), (4, 4), (4, 5)])
def test_a_small_assignment_has_lambda_too(n, d):
    """The network has a table in place of chains where there are few joint states."""
    costs = np.random.default_rng(n).random((n, d))
    factors = [((i,), row) for i, row in enumerate(costs)]
    model = softmap.Model.from_factors([d] * n, [*factors, softmap.AllDifferent(range(n))])
    result = softmap.solve(model)
    assert softmap.verify(result).holds
    assert result.energy == pytest.approx(sum(costs[i, x] for i, x in enumerate(result.labels)))

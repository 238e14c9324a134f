"""Exact sums of many cases by products of matrices, against sums over all labellings."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import softmap
from softmap.core import Deadline
from softmap.methods.marginals import cases as search
from softmap.methods.marginals.leaves import Leaves
from softmap.methods.marginals.tables import LogTables
from support.strategies import models


def by_case(model, order, depth):
    """log of the sum over all labellings of each case, in the order of the cases."""
    sizes = [range(int(d)) for d in model.num_labels[: model.network.num_variables]]
    sums = {}
    for labels in itertools.product(*sizes):
        key = tuple(labels[v] for v in order[::-1][:depth])
        sums[key] = np.logaddexp(sums.get(key, -np.inf), -model.energy(np.array(labels)))
    return np.array(list(sums)).reshape(len(sums), depth), np.array(list(sums.values()))


@settings(max_examples=20, deadline=None)
@given(models(max_n=5, max_d=3), st.integers(0, 99), st.sampled_from([4, 9, 30]))
def test_a_sum_is_between_its_bounds(model, seed, labellings):
    order = np.random.default_rng(seed).permutation(model.network.num_variables)
    leaves = Leaves(LogTables.of(model.network, 1.0), order, labellings)
    assume(leaves.depth is not None)
    cases, best = by_case(model, order, leaves.depth)
    lower, upper = leaves.sums(cases)
    assert (lower <= best + 1e-9).all()
    assert (best <= upper + 1e-9).all()
    finite = np.isfinite(best)
    np.testing.assert_allclose(upper[finite], lower[finite], atol=1e-9)


def test_underflow_is_no_loss_from_above():
    """The factors of a case have their largest entries where the matrix has its smallest."""
    far = 900.0
    one, other = np.array([[0.0, far], [far, 0.0]]), np.array([[far, 0.0], [0.0, far]])
    model = softmap.Model(np.zeros((3, 2)), [[0, 1], [0, 2], [1, 2]], [one, one, other])
    leaves = Leaves(LogTables.of(model.network, 1.0), np.arange(3), 4)
    cases, best = by_case(model, np.arange(3), 1)
    lower, upper = leaves.sums(cases)
    assert (lower <= best).all()
    assert (best <= upper).all()


def test_a_search_over_leaves_ends_at_log_z(monkeypatch):
    monkeypatch.setattr(search, "CASES", 64)
    rng = np.random.default_rng(4)
    edges = list(itertools.combinations(range(9), 2))
    model = softmap.Model(rng.normal(size=(9, 2)), edges, rng.normal(size=(36, 2, 2)))
    logs = LogTables.of(model.network, 1.0)
    found = search.SumSearch(search.Cases(logs, np.zeros(0, np.int64), 4, Deadline(np.inf)))
    found.leaves = Leaves(logs, found.cases.order, 16)
    exact = softmap.exact_marginals(model).log_partition
    while found.step(Deadline(np.inf)):
        assert found.lower <= exact + 1e-9
        assert exact <= found.upper + 1e-9
    assert found.upper - found.lower < 1e-8
    assert found.lower == pytest.approx(exact, abs=1e-9)

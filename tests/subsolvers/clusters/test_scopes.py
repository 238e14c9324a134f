"""Sets of variables in one array, against tuples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmap.errors import ModelError
from softmap.subsolvers.clusters.scopes import Scopes


def sets(n):
    return st.lists(st.sets(st.integers(0, n - 1), min_size=3, max_size=min(n, 7)), max_size=12)


@st.composite
def two_lists(draw):
    n = draw(st.sampled_from([4, 9, 1500, 3_000_000]))  # one to three integers per set
    return n, draw(sets(n)), draw(sets(n))


@given(two_lists())
def test_sets_are_found_joined_and_taken_once(case):
    n, first, second = case
    a, b = Scopes.of(first, n), Scopes.of(second, n)
    listed = list(dict.fromkeys(tuple(sorted(each)) for each in first))
    wanted = list(dict.fromkeys(tuple(sorted(each)) for each in second))
    assert list(a) == listed
    assert a.arity.tolist() == [len(each) for each in listed]
    assert list(a.joined(b)) == listed + wanted
    assert a.find(b).tolist() == [listed.index(s) if s in listed else -1 for s in wanted]
    assert list(a.fresh(b.joined(b))) == [s for s in wanted if s not in listed]


@given(two_lists())
def test_rows_may_be_in_any_order(case):
    n, first, _ = case
    a = Scopes.of(first, n)
    mixed = np.random.default_rng(0).permuted(a.rows, axis=1)
    assert list(Scopes.ascending(n, mixed)) == list(a)


def test_label_counts_of_no_variable_are_one():
    scopes = Scopes.of([(0, 1, 2, 3), (1, 2, 3)], 4)
    assert scopes.labels(np.array([2, 3, 4, 5])).tolist() == [[2, 3, 4, 5], [3, 4, 5, 1]]


@pytest.mark.parametrize("wrong", [(0, 1), (0, 1, 1), (0, 1, 4), (-1, 0, 1)])
def test_what_is_no_cluster_is_refused(wrong):
    with pytest.raises(ModelError, match="cluster"):
        Scopes.of([wrong], 4)

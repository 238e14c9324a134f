"""QUBO and Ising models from mappings, arrays and sparse arrays, against their definition."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import softmap


def every(values, n):
    return np.array(list(itertools.product(values, repeat=n)), dtype=float)


matrices = st.integers(1, 5).flatmap(
    lambda n: st.lists(
        st.lists(st.integers(-9, 9), min_size=n, max_size=n), min_size=n, max_size=n
    ).map(lambda rows: np.array(rows, dtype=float))
)


@given(matrices)
def test_a_qubo_costs_x_q_x(q):
    n = len(q)
    x = every((0, 1), n)
    expected = np.einsum("ki,ij,kj->k", x, q, x) + 2.5
    names = [f"v{i}" for i in range(n)]
    mapping = {(names[i], names[j]): q[i, j] for i in range(n) for j in range(n)}
    for given_q in (q, sparse.coo_array(q), sparse.csr_matrix(q), mapping):
        model = softmap.Model.from_qubo(given_q, constant=2.5)
        np.testing.assert_allclose(model.energy(x.astype(int)), expected, atol=1e-9)
    assert model.names.variables == tuple(names)


@given(matrices, st.lists(st.integers(-9, 9), min_size=5, max_size=5))
def test_an_ising_model_costs_h_s_and_s_j_s(j, fields):
    n = len(j)
    h = np.array(fields[:n], dtype=float)
    spins = every((-1, 1), n)
    expected = spins @ h + np.einsum("ki,ij,kj->k", spins, j, spins)
    mapping = {(a, b): j[a, b] for a in range(n) for b in range(n)}
    for fields_of, couplings in ((h, j), (h, sparse.coo_array(j)), (dict(enumerate(h)), mapping)):
        model = softmap.Model.from_ising(fields_of, couplings)
        labels = (spins > 0).astype(int)
        np.testing.assert_allclose(model.energy(labels), expected, atol=1e-9)


def test_spins_are_named():
    result = softmap.solve(softmap.Model.from_ising(None, np.array([[0, 1.0], [0, 0]])))
    assert sorted(result.as_dict().values()) == [-1, 1]
    assert result.energy == -1.0


@pytest.mark.parametrize(
    ("h", "j", "words"),
    [
        (None, np.zeros((2, 3)), "square matrix"),
        (None, {}, "at least one variable"),
        (None, {"ab": 1.0, ("a",): 1.0}, "pair of variables"),
        (None, {("a", "b"): np.inf}, "finite"),
        ([1.0], np.zeros((2, 2)), "one entry for each of 2"),
        ([1.0], {("a", "b"): 1.0}, "must be a mapping"),
    ],
)
def test_what_is_no_quadratic_function_is_refused(h, j, words):
    with pytest.raises(softmap.ModelError, match=words):
        softmap.Model.from_ising(h, j)

"""Parity kernels against enumeration and twins, and decoding against brute force and the LP."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import softmap
from softmap import core
from softmap.codes import ParityCode
from support import numpy_twins

SEEDS = st.integers(0, 2**32 - 1)


def words_of(k: int, odd: bool | None = None) -> np.ndarray:
    words = np.array(list(itertools.product((0, 1), repeat=k)))
    return words if odd is None else words[words.sum(axis=1) % 2 == odd]


def rows(seed: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Costs of some parities over k variables, with ties and zeros among them."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(6, k)) * rng.choice([0.3, 1.0, 5.0])
    values[0], values[1] = np.round(values[0]), 0.5
    return values, rng.integers(0, 2, 6).astype(np.uint8)


@given(SEEDS, st.integers(1, 7))
@settings(max_examples=40, deadline=None)
def test_messages_are_those_of_the_table(seed, k):
    values, odd = rows(seed, k)
    out = values.copy()
    core.parity_messages(out, odd)
    for cost, parity, found in zip(values, odd, out, strict=True):
        words = words_of(k, parity)
        for t in range(k):
            energy = words @ cost - words[:, t] * cost[t]
            ends = [energy[words[:, t] == x].min(initial=np.inf) for x in (0, 1)]
            if np.isfinite(ends).all():
                assert found[t] == pytest.approx(ends[1] - ends[0], rel=1e-9, abs=1e-9)
            else:
                assert found[t] == ends[1] - ends[0]


@given(SEEDS, st.integers(1, 7))
@settings(max_examples=40, deadline=None)
def test_minima_are_those_of_the_table_and_never_above(seed, k):
    values, odd = rows(seed, k)
    out = np.empty(len(values))
    core.parity_minima(values, odd, out)
    for cost, parity, found in zip(values, odd, out, strict=True):
        exact = min(sum(map(Fraction, cost[word == 1])) for word in words_of(k, parity))
        assert Fraction(found) <= exact
        assert found == pytest.approx(float(exact), rel=1e-14, abs=1e-14)


@given(SEEDS, st.integers(1, 7))
@settings(max_examples=40, deadline=None)
def test_the_nearest_point_of_the_hull(seed, k):
    values, odd = rows(seed, k)
    values += 0.5
    out = values.copy()
    core.parity_hulls(out, odd)
    for v, parity, p in zip(values, odd, out, strict=True):
        corners, wrong = words_of(k, parity), words_of(k, 1 - parity)
        distance = np.where(wrong == 1, 1 - p, p).sum(axis=1)
        assert (p >= 0).all()
        assert (p <= 1).all()
        assert (distance >= 1 - 1e-12).all()
        assert ((corners - p) @ (v - p) <= 1e-9).all()  # no corner lies on the side of v
        np.testing.assert_allclose(p, numpy_twins.parity_hull(v, bool(parity)), atol=1e-9)


@given(SEEDS, st.integers(2, 7))
@settings(max_examples=40, deadline=None)
def test_the_nearest_costs_at_which_no_even_word_is_below_zero(seed, k):
    values, _ = rows(seed, k)
    out = values.copy()
    core.parity_cones(out)
    rays = np.concatenate([np.eye(k), 1 - 2 * np.eye(k)])
    for v, p in zip(values, out, strict=True):
        assert all(Fraction(a) + Fraction(b) >= 0 for a, b in itertools.combinations(p, 2))
        assert abs((v - p) @ p) < 1e-9
        assert (rays @ (v - p) <= 1e-9).all()
        np.testing.assert_allclose(p, numpy_twins.parity_cone(v), atol=1e-9)


def test_a_check_of_one_bit_leaves_its_cost_alone():
    values = np.array([[-3.0], [2.0]])
    core.parity_cones(values)
    assert values.ravel().tolist() == [-3.0, 2.0]


def random_code(rng: np.random.Generator) -> tuple[ParityCode, np.ndarray]:
    """A code of up to 10 bits, and parities that some word has."""
    n = int(rng.integers(3, 11))
    checks = [
        rng.permutation(n)[: rng.integers(1, min(n, 5) + 1)] for _ in range(rng.integers(1, n))
    ]
    code = ParityCode(checks, n)
    return code, code.syndrome(rng.integers(0, 2, n))


def dual(code: ParityCode, costs: np.ndarray, odd: np.ndarray, lam: np.ndarray) -> Fraction:
    """The bound of λ in exact arithmetic."""
    left = [Fraction(c) for c in costs]
    total, place = Fraction(0), 0
    for row, parity in zip(code.checks, odd, strict=True):
        own = [Fraction(v) for v in lam[place : place + len(row)]]
        place += len(row)
        for bit, value in zip(row, own, strict=True):
            left[bit] -= value
        total += min(
            sum((v for v, x in zip(own, word, strict=True) if x), Fraction(0))
            for word in words_of(len(row), parity).tolist()
        )
    return total + sum(min(Fraction(0), rest) for rest in left)


@given(SEEDS, st.booleans())
@settings(max_examples=60, deadline=None)
def test_what_is_proved_is_so_in_exact_arithmetic(seed, whole):
    rng = np.random.default_rng(seed)
    code, odd = random_code(rng)
    costs = rng.normal(0.5, 1.5, code.num_bits)
    if whole:
        costs = np.round(2 * costs)
    found = code.decode(costs, odd)
    every = words_of(code.num_bits)
    allowed = every[(code.syndrome(every) == odd).all(axis=1)]
    exact = min(sum(map(Fraction, costs[word == 1]), Fraction(0)) for word in allowed)
    assert Fraction(float(found.bounds)) <= exact
    value = dual(code, costs, odd, found.lam)
    assert value <= exact
    assert Fraction(code.bound(costs, found.lam, odd)) <= value
    if found.found:
        assert (code.syndrome(found.words) == odd).all()
        assert found.costs == pytest.approx(costs[found.words == 1].sum(), abs=1e-12)
    if found.proved:
        assert value == exact == sum(map(Fraction, costs[found.words == 1]), Fraction(0))
        assert found.costs - found.bounds <= 2 * np.spacing(abs(found.costs))
    else:
        assert Fraction(float(found.bounds)) <= value


@pytest.mark.parametrize("seed", range(4))
def test_bounds_reach_the_linear_program(seed):
    rng = np.random.default_rng(seed)
    checks = np.concatenate([rng.permutation(24) for _ in range(3)]).reshape(-1, 6)
    checks = [row for row in checks.tolist() if len(set(row)) == 6]
    code, costs = ParityCode(checks, 24), rng.normal(0.3, 1.0, 24)
    value = softmap.lp.solve(code.model(costs)).value
    found = code.decode(costs, sweeps=5000)
    assert found.bounds <= value + 1e-9
    assert found.bounds >= value - 2e-3 * abs(value)
    assert softmap.solve(code.model(costs)).energy >= found.bounds - 1e-12


def test_most_words_of_a_good_channel_are_proved_as_solve_proves_them():
    rng = np.random.default_rng(0)
    checks = np.concatenate([rng.permutation(96) for _ in range(3)]).reshape(-1, 6)
    code = ParityCode(checks[[len(set(row)) == 6 for row in checks]], 96)
    costs = 4.0 * (1.0 + 0.6 * rng.normal(size=(40, 96)))
    found = code.decode(costs, threads=2)
    assert found.proved.sum() >= 35
    for k in np.flatnonzero(found.proved)[:2]:
        result = softmap.solve(code.model(costs[k]), goal="lp")
        assert result.status is softmap.Status.OPTIMAL
        assert (result.labels == found.words[k]).all()
    alone = [code.decode(c) for c in costs]  # the same bits, whatever they are decoded with
    for name in ("words", "costs", "bounds", "proved", "lam", "iterations"):
        np.testing.assert_array_equal(getattr(found, name), [getattr(a, name) for a in alone])


def test_limits_of_zero_still_give_a_bound():
    code = ParityCode([[0, 1], [1, 2]])
    found = code.decode([-2.0, 1.0, 1.5], rounds=0, steps=0, sweeps=0)
    assert not found.found
    assert not found.proved
    assert found.bounds == -2.0 == code.bound([-2.0, 1.0, 1.5], np.zeros(4))


def test_matrices_and_words_of_any_shape():
    matrix = np.array([[1, 1, 0, 1], [0, 1, 1, 0]])
    code = ParityCode.from_matrix(matrix)
    assert code.checks == [(0, 1, 3), (1, 2)]
    assert repr(code) == "ParityCode(4 bits, 2 checks)"
    words = words_of(4)
    np.testing.assert_array_equal(code.syndrome(words), words @ matrix.T % 2)
    free = ParityCode([], 3).decode([-1.0, 2.0, 0.0])
    assert free.words.tolist() == [1, 0, 0]
    assert free.proved
    assert free.bounds == -1.0
    assert len(code.decode(np.zeros((0, 4))).words) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ParityCode([[0, 0]]), "twice"),
        (lambda: ParityCode.from_matrix([[]]), "a column for each bit"),
        (lambda: ParityCode([[-1, 2]]), "numbered from 0"),
        (lambda: ParityCode([[0, 3]], 3), "outside 0..2"),
        (lambda: ParityCode("abc"), "the bits of each check"),
        (lambda: ParityCode.from_matrix([[0, 2]]), "0 and 1"),
        (lambda: ParityCode([[0, 1]]).decode([1.0]), "ratios of 2 bits"),
        (lambda: ParityCode([[0, 1]]).decode([1.0, np.inf]), "within"),
        (lambda: ParityCode([[0, 1]]).decode([1.0, np.nan]), "within"),
        (lambda: ParityCode([[0, 1]]).decode([1.0, 1.0], [2]), "syndrome"),
        (lambda: ParityCode([[], [0, 1]]).model([1.0, 1.0], [1, 0]), "without bits"),
        (lambda: ParityCode([[0, 1]]).decode([1.0, 1.0], rounds=-1), "rounds"),
        (lambda: ParityCode([[0, 1]]).bound([1.0, 1.0], [1.0]), "λ"),
        (lambda: ParityCode([[0, 1]]).syndrome([1]), "words of 2 bits"),
    ],
)
def test_wrong_input_is_refused(call, message):
    with pytest.raises(softmap.SoftmapError, match=message):
        call()


@pytest.mark.parametrize("kind", ["array", "list", "bool", "float", "sparse"])
def test_a_parity_check_matrix_is_taken_as_one(kind):
    matrix = np.array([[1, 1, 1, 0, 0, 1], [0, 0, 1, 1, 1, 0]])
    given = {
        "array": matrix, "list": matrix.tolist(), "bool": matrix.astype(bool),
        "float": matrix.astype(float), "sparse": scipy.sparse.csr_array(matrix),
    }[kind]  # fmt: skip
    code = ParityCode(given)
    assert (code.num_bits, code.checks) == (6, [(0, 1, 2, 5), (2, 3, 4)])
    with pytest.raises(softmap.ModelError, match="matrix of 0 and 1"):
        ParityCode(scipy.sparse.csr_array(2 * matrix))
    assert ParityCode([[0, 1], [1, 0]]).checks == [(0, 1), (1, 0)]


@pytest.mark.parametrize("seed", range(8))
def test_bounds_are_not_above_the_exact_cost_of_the_best_word(seed):
    """The bound of a proved word was its cost to nearest: an ulp too high in a third of words."""
    rng = np.random.default_rng(seed)
    checks = np.concatenate([rng.permutation(96) for _ in range(3)]).reshape(-1, 6)
    code = ParityCode(checks[[len(set(row)) == 6 for row in checks]], 96)
    costs = 4.0 * (1.0 + 0.6 * rng.normal(size=(40, 96)))
    found = code.decode(costs)
    assert found.proved.sum() > 20
    for k in np.flatnonzero(found.found):
        exact = sum(map(Fraction, costs[k][found.words[k] == 1]), Fraction(0))
        assert Fraction(float(found.bounds[k])) <= exact


@pytest.mark.parametrize("columns", [1, 2])
def test_a_narrow_array_of_integers_is_not_taken_for_bits(columns):
    """The matrix [[1, 0], [0, 1]] was read as two checks of the bits 0 and 1."""
    matrix = np.eye(2, columns, dtype=int)
    with pytest.raises(softmap.ModelError, match="from_matrix, or lists"):
        ParityCode(matrix)
    assert ParityCode.from_matrix(matrix).num_bits == columns
    assert ParityCode(matrix.astype(bool)).num_bits == columns
    assert ParityCode([[0, 1]]).checks == [(0, 1)]


def test_zero_rows_and_equal_rows_are_legal():
    matrix = np.array([[1, 1, 0, 1], [0, 0, 0, 0], [0, 1, 1, 0], [1, 1, 0, 1]])
    code, costs = ParityCode(matrix), np.array([-3.0, 1.0, 0.5, 2.5])
    assert code.checks == [(0, 1, 3), (), (1, 2), (0, 1, 3)]
    found = code.decode(
        np.stack([costs] * 4), [[0, 0, 0, 0], [1, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]]
    )
    assert found.found.tolist() == [True, True, False, False]
    assert found.bounds[2:].tolist() == [np.inf, np.inf]
    assert not found.proved[2:].any()
    words = words_of(4)
    for k, parities in enumerate([[0, 0, 0, 0], [1, 0, 0, 1]]):
        allowed = words[(words @ matrix.T % 2 == parities).all(axis=1)]
        assert found.proved[k]
        assert found.costs[k] == (allowed @ costs).min()
        assert code.bound(costs, found.lam[k], parities) <= found.bounds[k]
    np.testing.assert_array_equal(code.syndrome(words), words @ matrix.T % 2)
    assert code.bound(costs, np.zeros(8), [0, 1, 0, 0]) == np.inf

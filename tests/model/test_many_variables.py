"""Factors over many variables: their meaning, their chains, and that the relaxation is the hull."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import softmap
from oracles import brute_force
from softmap import (
    AllDifferent,
    AtMostOne,
    Cardinality,
    ExactlyOne,
    Linear,
    Max,
    Model,
    Or,
    Parity,
    lp,
)
from softmap.model import many

INF = math.inf
KINDS = ["most", "exactly", "or", "count", "parity", "linear", "max", "different"]


@st.composite
def factors(draw):
    """A factor, the label counts of its variables, and its cost in plain words."""
    k = draw(st.integers(1, 6))
    kind = draw(
        st.sampled_from(["most", "exactly", "or", "count", "parity", "linear", "max", "different"])
    )
    sizes = [draw(st.integers(2, 3 if k < 6 else 2)) for _ in range(k)]
    v = list(range(k))
    penalty = draw(st.sampled_from([INF, 1.5]))
    label = [draw(st.integers(0, d - 1)) for d in sizes]
    if kind == "different":
        sizes = [max(d, min(k, 4)) for d in sizes][:4]
        v = v[:4]
        return AllDifferent(v), sizes, lambda x: 0 if len(set(x)) == len(x) else INF
    if kind == "parity":
        odd = draw(st.booleans())
        return Parity(v, odd, penalty), sizes, lambda x: 0 if sum(x) % 2 == odd else penalty
    if kind == "max":
        costs = [draw(st.sampled_from([0.0, 1.0, -2.0])) for _ in range(max(sizes))]
        return Max(v, costs), sizes, lambda x: costs[max(x)]
    if kind == "linear":
        rows = [[draw(st.integers(-3, 3)) for _ in range(d)] for d in sizes]
        low = draw(st.one_of(st.none(), st.integers(-4, 3)))
        high = draw(st.one_of(st.none(), st.integers(-3, 4)))

        def cost(x):
            total = sum(row[y] for row, y in zip(rows, x, strict=True))
            return (
                0 if (low is None or total >= low) and (high is None or total <= high) else penalty
            )

        return Linear(v, rows, low=low, high=high, penalty=penalty), sizes, cost
    costs = [draw(st.sampled_from([0.0, 1.0, -2.0, INF])) for _ in range(k + 1)]
    made = {
        "most": (AtMostOne(v, label, penalty), lambda c: 0 if c <= 1 else penalty),
        "exactly": (ExactlyOne(v, label, penalty), lambda c: 0 if c == 1 else penalty),
        "or": (Or(v, label, penalty), lambda c: 0 if c >= 1 else penalty),
        "count": (Cardinality(v, label, costs), lambda c: costs[c]),
    }
    factor, by_count = made[kind]
    return factor, sizes, lambda x: by_count(sum(map(int.__eq__, x, label)))


@given(factors())
def test_the_table_is_what_the_factor_means(made):
    factor, sizes, cost = made
    table = many.dense(factor, sizes)
    for x in itertools.product(*map(range, sizes)):
        assert table[x] == cost(x) == factor.cost(x, sizes)


@given(factors(), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_the_relaxation_of_the_chain_is_that_of_the_table(made, seed):
    """Equal for all costs of the labels: the chain has the hull of the factor."""
    factor, sizes, _ = made
    rng = np.random.default_rng(seed)
    unary = [((i,), rng.normal(size=d)) for i, d in enumerate(sizes)]
    table = many.dense(factor, sizes)
    assume(np.isfinite(table).any())
    whole = Model.from_factors(sizes, [*unary, (tuple(range(len(sizes))), table)])
    dense, many.DENSE = many.DENSE, 1  # chains also where a table would be small
    try:
        model = Model.from_factors(sizes, [*unary, factor])
        chosen = rng.integers(0, sizes)
        running = many.extended(sizes, [factor], chosen)
    finally:
        many.DENSE = dense
    assert lp.solve(model).value == pytest.approx(lp.solve(whole).value, abs=1e-7)
    assert model.energy(running) == pytest.approx(whole.energy(chosen)) or (
        model.energy(running) == whole.energy(chosen) == INF
    )


CASES = {
    "budget": [Linear(range(8), [3, 5, 2, 7, 4, 4, 1, 6], high=11)],
    "one each": [ExactlyOne(range(4)), ExactlyOne(range(7)), AtMostOne([0, 3, 5, 6, 7])],
    "parities": [Parity([0, 1, 2, 3, 4, 5, 6]), Parity([1, 3, 5, 7, 0, 2, 4], odd=True)],
    "counts": [Cardinality(range(8), 1, [3, 0, 0, 1, 4, 9, INF, INF, INF]), Or(range(7), 0)],
    "soft": [AtMostOne(range(8), 1, 0.7), Max(range(8), [1.0, 0.0])],
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_solve_keeps_its_promises(name, dtype):
    rng = np.random.default_rng(3)
    n = 8
    unary = [((i,), rng.normal(size=2)) for i in range(n)]
    pairs = [((i, i + 1), rng.normal(size=(2, 2))) for i in range(n - 1)]
    model = Model.from_factors([2] * n, [*unary, *pairs, *CASES[name]])
    tables = [(f.variables, many.dense(f, [2] * len(f.variables))) for f in CASES[name]]
    whole = Model.from_factors([2] * n, [*unary, *pairs, *tables])
    best, _ = brute_force(whole)
    result = softmap.solve(model, dtype=dtype)
    assert model.num_variables > n
    assert whole.energy(result.labels[:n]) == pytest.approx(result.energy)
    assert result.bound <= best + 1e-9
    assert result.energy == pytest.approx(best)
    relaxed = lp.solve(model).value
    assert relaxed == pytest.approx(lp.solve(whole).value, abs=1e-6)
    assert softmap.verify(result, model).holds


def test_sizes_grow_with_the_number_of_variables_only():
    sizes = {}
    for k in (100, 1000):
        for factor in (AtMostOne(range(k)), Parity(range(k)), Or(range(k))):
            model = Model.from_factors([2] * k, [factor])
            sizes.setdefault(type(factor).__name__, []).append(len(model.unary) / k)
    for small, large in sizes.values():
        assert large <= 1.1 * small < 20


POWERS = Linear(range(40), [2**i for i in range(40)], low=12345)
BAD = [
    (lambda: AtMostOne([]), "list of variables"),
    (lambda: AtMostOne([0, 0]), "twice"),
    (lambda: AtMostOne([0, 1], -1), "label"),
    (lambda: Cardinality([0, 1], 1, [0.0]), "3 costs"),
    (lambda: Cardinality([0, 1], 1, [0.0, math.nan, 1.0]), "costs"),
    (lambda: Linear([0, 1], [1]), "2 variables"),
    (lambda: Model.from_factors([2, 2], [AtMostOne([0, 5])]), "outside"),
    (lambda: Model.from_factors([3, 3], [Max([0, 1], [0.0])]), "3 costs"),
    (lambda: Model.from_factors([2] * 40, [POWERS]), "entries|sums"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(BAD)))
def test_wrong_arguments(case):
    make, message = BAD[case]
    with pytest.raises(softmap.ModelError, match=message):
        make()

"""Factors over many variables: their meaning, their chains, and that the relaxation is the hull."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import softmap
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
from softmap.model import chains, raised
from softmap.model.factors import Assembly
from softmap.model.model import assembled
from softmap.relaxation.consistency import tighten
from softmap.run.problem import Problem
from support.factor_costs import cost_of
from support.oracles import brute_force, dense

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
    table = dense(factor, sizes)
    for x in itertools.product(*map(range, sizes)):
        assert table[x] == cost(x) == cost_of(factor, x, sizes)


def small(**sizes):
    """Other sizes of chains."""
    return mock.patch.object(chains, "SIZES", dataclasses.replace(chains.SIZES, **sizes))


@given(factors(), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_the_relaxation_of_the_chain_is_that_of_the_table(made, seed):
    """Equal for all costs of the labels: the chain has the hull of the factor."""
    factor, sizes, _ = made
    rng = np.random.default_rng(seed)
    unary = [((i,), rng.normal(size=d)) for i, d in enumerate(sizes)]
    table = dense(factor, sizes)
    assume(np.isfinite(table).any())
    whole = Model.from_factors(sizes, [*unary, (tuple(range(len(sizes))), table)])
    with small(dense=1):  # chains also where a table would be small
        model = Model.from_factors(sizes, [*unary, factor])
    chosen = rng.integers(0, sizes)
    assert lp.solve(model).value == pytest.approx(lp.solve(whole).value, abs=1e-7)
    _same_energy(model, whole, chosen)


def _same_energy(model, whole, chosen):
    """Running variables follow from the labels; in a batch, too."""
    expected = whole.energy(chosen)
    assert model.network.num_visible == len(chosen)
    assert model.energy(chosen) == pytest.approx(expected)
    assert model.energy(np.stack([chosen, chosen])).tolist() == pytest.approx([expected] * 2)
    assert model.energy(model.network.lowered(chosen)) == pytest.approx(expected)


@st.composite
def counted(draw):
    """A count of more variables than there are digits, and whether its costs are convex."""
    k = draw(st.integers(5, 11))
    c = np.arange(k + 1.0)
    kind = draw(st.sampled_from(["square", "budget", "concave", "any"]))
    middle = draw(st.integers(0, k))
    costs = {
        "square": 0.3 * (c - middle) ** 2,
        "budget": np.where(c > middle, INF, -0.2 * c),
        "concave": np.sqrt(c),
        "any": np.array([draw(st.sampled_from([0.0, 1.0, -1.5, INF])) for _ in c]),
    }[kind]
    assume(np.isfinite(costs).any())
    label = [draw(st.integers(0, 1)) for _ in range(k)]
    return Cardinality(range(k), label, costs), kind in ("square", "budget")


@given(counted(), st.integers(2, 5), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_counts_in_digits_cost_the_same_and_lose_nothing_where_costs_are_convex(made, base, seed):
    """The digit relaxation: never above the hull, and the hull itself for convex costs."""
    factor, convex = made
    assert factor.convex or not convex
    k = len(factor.variables)
    rng = np.random.default_rng(seed)
    unary = [((i,), rng.normal(size=2)) for i in range(k)]
    whole = Model.from_factors([2] * k, [*unary, factor])  # a chain: the hull
    with small(base=base, states=1, convex_states=1):
        model = Model.from_factors([2] * k, [*unary, factor])
    _same_energy(model, whole, rng.integers(0, 2, k))
    hull, found = lp.solve(whole).value, lp.solve(model).value
    assert found <= hull + 1e-7
    if factor.convex:
        assert found == pytest.approx(hull, abs=1e-7)


def test_results_do_not_show_running_variables(tmp_path):
    rng = np.random.default_rng(1)
    n = 9
    unary = [((i,), rng.normal(size=2)) for i in range(n)]
    model = Model.from_factors([2] * n, [*unary, Parity(range(n)), AtMostOne(range(1, 9))])
    assert model.network.num_variables > model.network.num_visible == n
    seen = []
    result = softmap.solve(model, on_snapshot=lambda shot: seen.append(shot.labels.shape))
    assert result.labels.shape == (n,)
    assert set(seen) == {(n,)}
    assert model.energy(result.labels) == result.energy == pytest.approx(result.bound)
    result.save(tmp_path / "result.npz")
    assert softmap.load_result(tmp_path / "result.npz") == result
    softmap.io.write(model, tmp_path / "model.npz")
    again = softmap.io.read(tmp_path / "model.npz")
    assert again.fingerprint() == model.fingerprint()
    assert again.network.num_visible == n
    result.report(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 1000
    ranked = softmap.solve_mbest(model, 4)
    every = np.array(list(itertools.product((0, 1), repeat=n)))
    costs = np.sort(model.energy(every))
    assert [entry.energy for entry in ranked] == pytest.approx(costs[:4].tolist())
    assert len({tuple(entry.labels.tolist()) for entry in ranked}) == 4
    apart = softmap.solve_mbest(model, 2, diversity=2)
    far = (every != apart[0].labels).sum(axis=1) >= 2
    assert apart[1].proved
    assert apart[1].energy == pytest.approx(model.energy(every[far]).min())
    with pytest.raises(softmap.ModelError, match="variable"):
        model.condition({n: 0})


CASES = {
    "budget": [Linear(range(8), [3, 5, 2, 7, 4, 4, 1, 6], high=11)],
    "one each": [ExactlyOne(range(4)), ExactlyOne(range(7)), AtMostOne([0, 3, 5, 6, 7])],
    "parities": [Parity([0, 1, 2, 3, 4, 5, 6]), Parity([1, 3, 5, 7, 0, 2, 4], odd=True)],
    "counts": [Cardinality(range(8), 1, [3, 0, 0, 1, 4, 9, INF, INF, INF]), Or(range(7), 0)],
    "soft": [AtMostOne(range(8), 1, 0.7), Max(range(8), [1.0, 0.0])],
}


@pytest.mark.parametrize("name", CASES)
def test_solve_keeps_its_promises(name):
    rng = np.random.default_rng(3)
    n = 8
    unary = [((i,), rng.normal(size=2)) for i in range(n)]
    pairs = [((i, i + 1), rng.normal(size=(2, 2))) for i in range(n - 1)]
    model = Model.from_factors([2] * n, [*unary, *pairs, *CASES[name]])
    tables = [(f.variables, dense(f, [2] * len(f.variables))) for f in CASES[name]]
    whole = Model.from_factors([2] * n, [*unary, *pairs, *tables])
    best, _ = brute_force(whole)
    result = softmap.solve(model)
    assert model.network.num_variables > n == len(result.labels)
    assert whole.energy(result.labels) == pytest.approx(result.energy)
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
            sizes.setdefault(type(factor).__name__, []).append(len(model.network.unary) / k)
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
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(BAD)))
def test_wrong_arguments(case):
    make, message = BAD[case]
    with pytest.raises(softmap.ModelError, match=message):
        make()


def test_variables_may_be_named_where_they_have_names():
    states = {"sun": 2, "rain": 2, "snow": 2}
    named = softmap.Model.from_factors(states, [softmap.ExactlyOne(["rain", "snow", "sun"])])
    plain = softmap.Model.from_factors([2, 2, 2], [softmap.ExactlyOne([1, 2, 0])])
    for labels in itertools.product((0, 1), repeat=3):
        assert named.energy(labels) == plain.energy(labels)
    with pytest.raises(softmap.ModelError, match="no variable 'hail'; the variables are 'sun'"):
        softmap.Model.from_factors(states, [softmap.AtMostOne(["sun", "hail"])])
    with pytest.raises(softmap.ModelError, match="variable numbers, not"):
        softmap.Model.from_factors([2, 2], [softmap.Parity(["a", "b"])])
    with pytest.raises(softmap.ModelError, match="twice"):
        softmap.Model.from_factors(states, [softmap.Or(["sun", 0])])


# --- constraints that no labelling obeys ----------------------------------------------------------


def test_more_variables_than_labels_cannot_differ() -> None:
    with pytest.raises(softmap.InfeasibleModel, match=r"variables 0, 1, 2, 3 .* only 3 allowed"):
        Model.from_factors([3] * 5, [softmap.AllDifferent(range(5))])


def test_a_hall_set_is_named() -> None:
    two = [0.0, 0.0, np.inf, np.inf]
    factors = [softmap.AllDifferent(list("abcd")), *(((name,), two) for name in "abd")]
    with pytest.raises(softmap.InfeasibleModel, match=r"variables a, b, d .* only 2 allowed"):
        Model.from_factors(dict.fromkeys("abcd", 4), factors)


@pytest.mark.parametrize("seed", range(40))
def test_variables_that_must_differ_are_refused_where_no_permutation_is_allowed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, d = 5, 5 + seed % 2
    costs = np.where(rng.random((n, d)) < 0.4, 0.0, np.inf)
    factors = [softmap.AllDifferent(range(n)), *(((i,), costs[i]) for i in range(n))]
    some = any(costs[range(n), x].sum() == 0 for x in itertools.permutations(range(d), n))
    if some:
        Model.from_factors([d] * n, factors)
        return
    with pytest.raises(softmap.InfeasibleModel):
        Model.from_factors([d] * n, factors)


@pytest.mark.parametrize(
    ("factor", "label"),
    [
        (softmap.Cardinality(range(40), 1, np.where(np.arange(41) == 20, 0.0, np.inf)), 0),
        (softmap.ExactlyOne(range(40)), 0),
        (softmap.AtMostOne(range(40)), 1),
        (softmap.Or(range(40)), 0),
        (softmap.Parity(range(40), True), 0),
        (softmap.Linear(range(40), [3] * 40, low=4, high=5), 1),
        (softmap.Linear(range(40), [1] * 40, low=np.inf), 1),
        (softmap.Linear(range(40), [1] * 40, high=-np.inf), 1),
    ],
)
def test_counts_that_unary_costs_rule_out_are_refused_at_once(factor: Any, label: int) -> None:
    fixed = [((i,), np.where(np.arange(2) == label, 0.0, np.inf)) for i in range(40)]
    model = Model.from_factors([2] * 40, [factor, *fixed])
    with pytest.raises(softmap.InfeasibleModel) as refused:
        tighten(model)
    assert 0 <= refused.value.variable < 40  # not one that the factor counts with


@pytest.mark.parametrize("bound", [1e30, np.inf])
def test_a_budget_out_of_reach_costs_its_penalty(bound: float) -> None:
    for sides in ({"low": bound}, {"high": -bound}):
        model = Model.from_factors(
            [2] * 4, [softmap.Linear(range(4), [1] * 4, penalty=2.0, **sides)]
        )
        assert model.energy([0, 1, 0, 1]) == 2.0
    free = Model.from_factors([2] * 4, [softmap.Linear(range(4), [1] * 4, low=-bound, high=bound)])
    assert free.energy([0, 1, 0, 1]) == 0.0


@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 3, 4, 8]), st.sampled_from([INF, 1.5]))
@settings(max_examples=60, deadline=None)
@example(19870, 2, INF)  # two digits of the sum are one variable of the factor
def test_sums_in_digits_cost_the_same_and_relax_no_more_than_the_hull(seed, base, penalty):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 7))
    sizes = rng.integers(1, 4, k).tolist()
    weights = [rng.integers(-9, 30, d).tolist() for d in sizes]
    total = sum(row[rng.integers(len(row))] for row in weights)
    low = total - int(rng.integers(0, 6)) if rng.random() < 0.7 else None
    high = total + int(rng.integers(0, 6)) if rng.random() < 0.7 else None
    factor = Linear(range(k), weights, low=low, high=high, penalty=penalty)
    unary = [((i,), rng.normal(size=d)) for i, d in enumerate(sizes)]
    table = dense(factor, sizes)
    whole = Model.from_factors(sizes, [*unary, (tuple(range(k)), table)])
    with small(base=base, sum_entries=0):
        model = Model.from_factors(sizes, [*unary, factor])
    every = list(itertools.product(*map(range, sizes)))
    assert model.energy(np.array(every)) == pytest.approx(whole.energy(np.array(every)))
    assert all(cost_of(factor, x, sizes) == table[x] for x in every)
    assert lp.solve(model).value <= lp.solve(whole).value + 1e-7


def test_weights_too_large_for_a_chain_are_added_up_in_digits():
    rng = np.random.default_rng(3)
    weights = rng.integers(1, 2**30, 20)
    chosen = rng.integers(0, 2, 20)
    bound = int(weights @ chosen)
    unary = [((i,), [0.0, -1.0]) for i in range(20)]
    model = Model.from_factors([2] * 20, [*unary, Linear(range(20), weights, high=bound)])
    assert model.network.n < 3000
    assert model.energy(chosen) == -chosen.sum()
    fuller = np.maximum(chosen, np.eye(20, dtype=np.int64)[np.argmin(chosen)])
    assert model.energy(fuller) == INF


# --- the same after evidence ----------------------------------------------------------------------


def test_a_hall_set_that_evidence_makes_is_named() -> None:
    three = [0.0, 0.0, 0.0, np.inf, np.inf]
    factors = [softmap.AllDifferent(list("abcde")), *(((name,), three) for name in "abc")]
    model = Model.from_factors(dict.fromkeys("abcde", 5), factors)
    assert softmap.solve(model).found
    with pytest.raises(softmap.InfeasibleModel, match=r"variables a, b, c .* only 2 allowed"):
        softmap.solve(model.condition({"e": 2}))


@pytest.mark.parametrize(("seed", "scale"), [(k, 1e200 if k % 4 == 3 else 1.0) for k in range(40)])
def test_evidence_is_refused_where_no_permutation_is_left(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    n = 6
    costs = np.where(rng.random((n, n)) < 0.6, scale * rng.random((n, n)), np.inf)
    factors = [softmap.AllDifferent(range(n))]
    model = Model.from_factors([n] * n, factors)
    given = model.replace(unary=costs.ravel())
    fixed = int(rng.integers(n))
    own = costs.copy()
    own[0, np.arange(n) != fixed] = np.inf
    some = any(np.isfinite(own[range(n), x]).all() for x in itertools.permutations(range(n)))
    if some:
        assert softmap.solve(given.condition({0: fixed})).found
        return
    with pytest.raises(softmap.InfeasibleModel):
        Problem.of(given.condition({0: fixed}))


@pytest.mark.parametrize(
    ("n", "counts", "ones", "zeros"),
    [(97, (22, 81), 23, 17), (99, (61, 70, 80, 95), 62, 30), (129, (85,), 4, 73)],
)
def test_counts_in_digits_that_evidence_rules_out_are_refused_at_once(
    n: int, counts: tuple, ones: int, zeros: int
) -> None:
    """Each digit by itself can still be had: arc consistency sees nothing."""
    costs = np.where(np.isin(np.arange(n + 1), counts), 0.0, np.inf)
    model = Model.from_factors([2] * n, [softmap.Cardinality(range(n), 1, costs)])
    order = np.random.default_rng(0).permutation(n).tolist()
    evidence = dict.fromkeys(order[:ones], 1) | dict.fromkeys(order[ones : ones + zeros], 0)
    with pytest.raises(softmap.InfeasibleModel, match=f"between {ones} and {n - zeros}"):
        softmap.solve(model.condition(evidence))


def test_a_constraint_that_other_costs_lift_is_not_required_any_more() -> None:
    model = Model.from_factors([3] * 3, [softmap.AllDifferent(range(3))])
    assert model.network.required
    network = model.network
    assert network.replace(unary=network.unary + 1.0).required
    assert model.replace(unary=model.unary + 1.0).network.required
    lifted = raised(network.replace(unary=np.zeros(network.unary.size)))
    assert not lifted.network.required
    assert not network.replace(potentials=network.potentials).required
    assert softmap.solve(lifted.condition({0: 1, 1: 1})).energy == lifted.energy([1, 1, 0])


def test_what_hard_constraints_leave_without_a_state_is_called_by_its_name() -> None:
    states = dict.fromkeys("abcdefgh", 2)
    model = Model.from_factors(states, [softmap.ExactlyOne(list(states))])
    with pytest.raises(softmap.InfeasibleModel, match=r"\[?a, b|variable [a-h]"):
        softmap.solve(model.condition({"c": 1, "f": 1}))


@pytest.mark.parametrize("factor", [
    AtMostOne(range(8)), Or(range(3), [1, 0, 1], 2.5), Parity(range(9), True),
    Linear(range(5), [1, 2, 3, 4, 5], high=7), Cardinality(range(20), 1, np.arange(21.0) ** 0.5),
])  # fmt: skip
def test_copies_are_the_same_as_one_after_the_other(factor):
    rng = np.random.default_rng(0)
    k = len(factor.variables)
    scopes = np.array([rng.permutation(30)[:k] for _ in range(4)])
    models = []
    for bulk in (True, False):
        assembly = Assembly(np.full(30, 2))
        if bulk:
            assembly.add_copies(factor, scopes)
        for row in [] if bulk else scopes.tolist():
            assembly.add_many(factor.over(tuple(row)))
        models.append(assembled(assembly.pieces()))
    labels = rng.integers(0, 2, (200, 30))
    counts = [m.network.num_labels[: m.network.num_variables].tolist() for m in models]
    assert counts[0] == counts[1]
    assert models[0].energy(labels).tolist() == models[1].energy(labels).tolist()
    expected = [sum(cost_of(factor, x[row], [2] * k) for row in scopes) for x in labels]
    assert models[0].energy(labels).tolist() == pytest.approx(expected)

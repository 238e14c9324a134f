"""Permutations: swaps, bounds of assignment problems and search, against enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

import softmap
from softmap import core
from softmap.labels.different import shared_labels
from softmap.labels.permutations import Permutation
from softmap.run.problem import Problem
from support.permutations import (
    labellings,
    least_cost,
    partial_factors,
    permutation_model,
    random_factors,
)


def permutation_of(seed: int, most: int = 5) -> Permutation | None:
    rng = np.random.default_rng(seed)
    n, d, factors = random_factors(rng, most)
    try:
        problem = Problem.of(permutation_model(n, d, factors), threads=1)
    except softmap.InfeasibleModel:
        return None
    assert shared_labels(problem.model, problem.given) == []
    return Permutation.of(problem.model)


def enumerated(costs: Permutation) -> int:
    n, d = costs.unary.shape
    return min(costs.cost(np.array(x)) for x in permutations(range(d), n))


def searched(costs: Permutation, ascent: core.AssignmentAscent, most: int, exchanged: bool):
    symmetry = (costs.transposed() if exchanged else costs).symmetry()
    return core.AssignmentSearch(
        ascent, exchanged, symmetry.maps, symmetry.kind, most, costs.step, costs.barrier
    )


@pytest.mark.parametrize("seed", range(80))
def test_swaps_bounds_and_search_agree_with_enumeration(seed):
    costs = permutation_of(seed)
    if costs is None:
        return
    best, (n, d) = enumerated(costs), costs.unary.shape
    labels = np.empty(n, dtype=np.int64)
    found = core.SwapSearch(costs.native, seed).run(labels, 20_000)
    assert found == costs.cost(labels) == best
    ascent = core.AssignmentAscent(costs.native, seed)
    bounds = [ascent.run(work * costs.pair.size) for work in (1, 3, 30)]
    assert bounds == sorted(bounds)
    assert bounds[-1] <= best
    # from a poor limit, and from one that the optimum does not reach
    for exchanged in (False, True)[: 2 if n == d else 1]:
        search = searched(costs, ascent, costs.barrier, exchanged)
        assert search.run(1 << 40)
        assert search.labels(labels)
        assert costs.cost(np.argsort(labels) if exchanged else labels) == best
        assert best - costs.step < search.bound <= best
        search = searched(costs, ascent, best - costs.step, exchanged)
        assert search.run(1 << 40)
        assert not search.labels(labels)


@pytest.mark.parametrize("seed", range(24))
def test_partial_matchings_agree_with_enumeration(seed):
    rng = np.random.default_rng(seed)
    n, d, factors = partial_factors(rng, 4)
    label = int(rng.integers(d))
    model = permutation_model(n, d, factors, shared=label)
    try:
        problem = Problem.of(model, threads=1)
    except softmap.InfeasibleModel:
        assert least_cost(n, d, factors, label) is None
        return
    assert shared_labels(problem.model, problem.given) == [label]
    costs = Permutation.of(problem.model, [label])
    unit, found = Fraction(2) ** costs.exponent, []
    for x in map(np.array, labellings(n, d, label)):
        inner = costs.inner(x)
        assert len({*inner.tolist()}) == n
        assert costs.outer(inner).tolist() == x.tolist()
        found.append(costs.cost(inner))
        given = problem.model.energy(problem.model.lowered(x)) - problem.model.constant
        if found[-1] < costs.barrier:
            assert np.isclose(given, float((found[-1] + costs.base) * unit))
        else:
            assert given == np.inf
    best, labels = min(found), np.empty(n, dtype=np.int64)
    assert core.SwapSearch(costs.native, seed).run(labels, 40_000) == costs.cost(labels) == best
    ascent = core.AssignmentAscent(costs.native, seed)
    assert ascent.run(10 * costs.pair.size) <= best
    search = searched(costs, ascent, costs.barrier, False)
    assert search.run(1 << 40)
    assert best - costs.step < search.bound <= best


@pytest.mark.parametrize("seed", range(8))
def test_a_search_that_is_stopped_never_bounds_above_the_optimum(seed):
    costs = permutation_of(1000 + seed)
    if costs is None:
        return
    best = enumerated(costs)
    ascent = core.AssignmentAscent(costs.native, seed)
    for looks in (1, 2, 5, 9):
        deadline = core.Deadline()
        deadline.stop_after(looks)
        assert ascent.run(1 << 40, deadline) <= best
    search = searched(costs, ascent, costs.barrier, False)
    ended = False
    while not ended:
        assert search.bound <= best
        ended = search.run(1)


def test_swaps_continue_from_labels_and_reject_others():
    costs = permutation_of(4)
    assert costs is not None
    n = len(costs.unary)
    best = min(permutations(range(costs.unary.shape[1]), n), key=lambda x: costs.cost(np.array(x)))
    swaps = core.SwapSearch(costs.native, 1)
    swaps.offer(np.array(best))
    labels = np.empty(n, dtype=np.int64)
    assert swaps.run(labels, 0) == costs.cost(np.array(best))
    assert costs.cost(labels) == costs.cost(np.array(best))
    for wrong in ([0] * n, [-1, *range(n - 1)], list(range(n + 1))):
        with pytest.raises(ValueError, match="labels"):
            swaps.offer(np.array(wrong))


@pytest.mark.parametrize("seed", range(20))
def test_symmetries_change_no_cost(seed):
    costs = permutation_of(seed)
    if costs is None:
        return
    symmetry = costs.symmetry()
    n, d = costs.unary.shape
    x = np.random.default_rng(seed).permutation(d)[:n]
    assert {costs.cost(one[x]) for one in symmetry.maps} == {costs.cost(x)}
    for i, j in enumerate(symmetry.kind.tolist()):
        y = x.copy()
        y[[i, j]] = x[[j, i]]
        assert costs.cost(y) == costs.cost(x)


def test_the_square_has_its_eight_symmetries():
    grid = np.array([[0, 1, 1, 2], [1, 0, 2, 1], [1, 2, 0, 1], [2, 1, 1, 0]], dtype=float)
    flow = np.zeros((4, 4))
    flow[0, 1] = flow[1, 0] = 1.0
    factors = [((i, j), flow[i, j] * grid) for i in range(4) for j in range(i + 1, 4)]
    costs = Permutation.of(Problem.of(permutation_model(4, 4, factors), threads=1).model)
    symmetry = costs.symmetry()
    assert len(np.unique(symmetry.maps, axis=0)) == 8
    assert symmetry.kind.tolist() == [0, 0, 2, 2]


def test_costs_are_rounded_down_and_exactly_if_they_are_integers():
    rng = np.random.default_rng(3)
    for real in (0.0, 1e-3, 1e9):
        factors = [((i,), rng.integers(0, 9, 4) + real * rng.random(4)) for i in range(4)]
        factors += [((i, j), 2.0 * rng.integers(0, 9, (4, 4))) for i in range(4) for j in range(i)]
        costs = Permutation.of(permutation_model(4, 4, factors).network)
        unit = Fraction(2) ** costs.exponent
        for x in permutations(range(4)):
            given = sum(Fraction(float(t[tuple(x[i] for i in s)])) for s, t in factors)
            units = costs.base + costs.cost(np.array(x))
            assert given - 10 * unit < units * unit <= given
            assert real or units * unit == given


def test_only_permutations_are_recognised():
    def seen(model):
        problem = Problem.of(model, threads=1)
        return shared_labels(problem.model, problem.given)

    n, d, factors = 4, 5, [((i, j), np.ones((5, 5))) for i in range(4) for j in range(i + 1, 4)]
    assert seen(permutation_model(n, d, factors)) == []
    assert seen(permutation_model(n, d, factors[:-1], many=True)) == []
    assert seen(permutation_model(n, d, factors[:-1])) is None
    assert seen(softmap.Model.from_factors([d] * n, factors)) is None
    assert seen(softmap.generators.potts_grid(3, 3, 9, seed=1)) is None
    assert seen(permutation_model(n, d, factors, shared=3)) == [3]
    assert seen(permutation_model(n, d, factors[:-1], shared=3)) is None
    few = [(s, t[:3, :3]) for s, t in factors]  # fewer labels than variables
    assert seen(permutation_model(n, 3, few, shared=0)) == [0]
    apart = np.where(np.eye(5, dtype=bool), np.inf, 1.0)
    tables = [apart.copy() for _ in factors]
    tables[0][2, 2] = tables[3][2, 2] = 1.0
    scopes = [scope for scope, _ in factors]
    assert seen(softmap.Model.from_factors([d] * n, zip(scopes, tables, strict=True))) == [2]
    tables[1][4, 4] = 1.0
    assert seen(softmap.Model.from_factors([d] * n, zip(scopes, tables, strict=True))) is None
    negative = ((0, 1, 2), -np.ones((5, 5, 5)))
    assert seen(permutation_model(n, d, [*factors, negative])) is None
    assert least_cost(n, d, factors) == 6


def _six():
    """The model of six variables with random costs."""
    rng = np.random.default_rng(4)
    factors = [((i, j), 2.0 * rng.integers(0, 9, (6, 6))) for i in range(6) for j in range(i)]
    return Problem.of(permutation_model(6, 6, factors), threads=1).model


def _same(found: Permutation, other: Permutation) -> bool:
    numbers = ("exponent", "step", "base", "barrier")
    return all(
        np.array_equal(getattr(found, name), getattr(other, name))
        for name in ("unary", "pair", "shift", *numbers)
    )


def test_the_set_up_looks_at_its_deadline_before_every_piece(monkeypatch):
    """Wherever the deadline passes, no costs are returned; pieces and looks do not change them."""
    model = _six()
    whole = Permutation.of(model)
    monkeypatch.setattr("softmap.labels.permutations.PIECE", 40)
    looks = 0
    while True:
        end = core.Deadline()
        end.stop_after(looks + 1)
        try:
            found = Permutation.of(model, (), end)
        except core.OutOfTime:
            looks += 1
        else:
            break
    assert looks > 4 * model.m  # of four loops over edges of 36 entries
    assert _same(found, whole)


def test_a_permutation_without_time_for_its_set_up_has_an_answer(monkeypatch):
    def late(*_):
        raise core.OutOfTime

    monkeypatch.setattr(Permutation, "of", late)
    model = permutation_model(6, 6, [((i, j), np.ones((6, 6))) for i in range(6) for j in range(i)])
    result = softmap.solve(model, time_limit=0.2)
    assert softmap.verify(result).holds

"""The exact solver against brute force on small random models of every kind."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import softmap
from softmap.labels.exact import ExactSearch, solve_exact
from softmap.relaxation.flat import flat_lam, flatten
from support.deadlines import stopping
from support.exact_cases import KINDS, Case, random_case


def _options(rng: np.random.Generator, case: Case) -> dict[str, object]:
    """A start, a reparametrisation and stages, each given or not."""
    options: dict[str, object] = {
        "dp_limit": float(rng.choice([0.0, 1e9])),
        "ascent": bool(rng.random() < 0.5),
    }
    feasible = np.flatnonzero(np.isfinite(case.energies))
    if len(feasible) and rng.random() < 0.4:
        options["incumbent"] = case.labellings[rng.choice(feasible)]
    if rng.random() < 0.3:
        finite = case.flat.tables[np.isfinite(case.flat.tables)]
        size = int(case.flat.num_labels[case.flat.scope].sum())
        options["lam"] = rng.normal(size=size) * np.abs(finite).max(initial=1.0)
    return options


@pytest.mark.parametrize("block", range(10))
def test_finds_and_proves_the_optimum(block: int) -> None:
    for seed in range(200 * block, 200 * (block + 1)):
        case = random_case(seed)
        best = case.energies.min()
        r = solve_exact(case.flat, **_options(np.random.default_rng(seed), case))  # type: ignore[arg-type]
        assert r.complete, seed
        if np.isinf(best):
            assert (r.infeasible, r.labels, r.lower_bound) == (True, None, np.inf), seed
            continue
        assert r.labels is not None, seed
        place = np.ravel_multi_index(tuple(r.labels), tuple(case.flat.num_labels))
        tolerance = r.slack + 1.01e-9 * abs(best) + case.scale
        assert abs(case.energies[place] - r.energy) <= case.scale, seed
        assert r.energy <= best + tolerance, seed
        assert best - tolerance <= r.lower_bound <= best + case.scale, seed


def test_a_search_that_is_stopped_in_its_set_up_begins_again() -> None:
    unbuilt = 0
    for seed in range(100):
        case = random_case(seed)
        best = case.energies.min()
        search = ExactSearch(case.flat, **_options(np.random.default_rng(seed), case))  # type: ignore[arg-type]
        for looks in (1, 2, 3):
            r = search.run(deadline=stopping(looks))
            assert r.complete or r.lower_bound <= best + case.scale, seed
            assert not r.infeasible or np.isinf(best), seed
            unbuilt += r.lower_bound == -np.inf
        r = search.run()
        assert r.complete, seed
        tolerance = r.slack + 1.01e-9 * abs(best) + case.scale
        assert np.isinf(best) or best - tolerance <= r.energy <= best + tolerance, seed
    assert unbuilt > 100  # the first look is in the set-up


@pytest.mark.parametrize("block", range(4))
def test_a_stopped_search_says_nothing_false(block: int) -> None:
    for seed in range(10_000 + 200 * block, 10_000 + 200 * (block + 1)):
        case = random_case(seed)
        best = case.energies.min()
        r = solve_exact(case.flat, backtrack_limit=seed % 5, dp_limit=0.0)
        assert r.lower_bound <= best + case.scale or np.isinf(best), seed
        assert r.energy >= best - case.scale, seed
        assert not r.infeasible or np.isinf(best), seed


@pytest.mark.parametrize("block", range(4))
def test_a_search_in_many_short_turns_ends_at_the_optimum(block: int) -> None:
    """Labels found elsewhere arrive between turns; nothing said meanwhile is false."""
    for seed in range(20_000 + 100 * block, 20_000 + 100 * (block + 1)):
        case, rng = random_case(seed), np.random.default_rng(seed)
        best = case.energies.min()
        options = _options(rng, case) | {"dp_limit": 0.0}
        search = ExactSearch(case.flat, **options)  # type: ignore[arg-type]
        feasible = np.flatnonzero(np.isfinite(case.energies))
        for turn in range(400):
            heard = len(feasible) > 0 and turn % 7 == 3
            labels = case.labellings[rng.choice(feasible)] if heard else None
            r = search.run(incumbent=labels, backtrack_limit=int(rng.integers(1, 4)))
            assert r.lower_bound <= best + case.scale or np.isinf(best), seed
            assert r.energy >= best - case.scale, seed
            if r.complete:
                break
        assert r.complete, seed
        assert r.infeasible == np.isinf(best), seed
        if np.isfinite(best):
            tolerance = r.slack + 1.01e-9 * abs(best) + case.scale
            assert r.energy <= best + tolerance, seed
            assert r.lower_bound >= best - tolerance, seed


@pytest.mark.parametrize("rounded", [False, True])
def test_two_labels_are_fixed_by_roof_duality_without_loss(rounded: bool) -> None:
    for seed in range(80):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 9))
        pairs = [p for p in itertools.combinations(range(n), 2) if rng.random() < 0.5]
        tables = rng.normal(size=(len(pairs), 2, 2)) * rng.choice([0.2, 1.0, 3.0])
        unary = rng.normal(size=(n, 2))
        if rounded:
            tables, unary = np.round(4 * tables), np.round(4 * unary)
        model = softmap.Model(unary, np.array(pairs).reshape(-1, 2), softmap.Tables(tables))
        best = min(model.energy(np.array(x)) for x in itertools.product(range(2), repeat=n))
        r = solve_exact(model.network, dp_limit=0.0)
        assert r.complete, seed
        assert r.energy == pytest.approx(best, abs=1e-9), seed
        assert best - 1e-6 <= r.lower_bound <= best + 1e-12, seed


def test_integer_costs_leave_no_slack() -> None:
    for seed in range(0, 700, len(KINDS)):
        case = random_case(seed)
        r = solve_exact(case.flat)
        assert r.slack == 0.0
        assert r.lower_bound == case.energies.min(), seed


def test_the_same_search_twice() -> None:
    model = softmap.generators.random_grid(7, 7, 4, seed=3)
    one, two = (solve_exact(model.network, backtrack_limit=300, dp_limit=0.0) for _ in range(2))
    assert one.labels is not None
    assert two.labels is not None
    assert (one.labels == two.labels).all()
    assert (one.lower_bound, one.nodes) == (two.lower_bound, two.nodes)


def test_larger_factors_keep_their_axes() -> None:
    rng = np.random.default_rng(5)
    factors = [((2, 0, 1), rng.normal(size=(4, 2, 3))), ((3, 1), rng.normal(size=(2, 3)))]
    model = softmap.Model.from_factors([2, 3, 4, 2], factors)
    r = solve_exact(model.network)
    energies = [model.energy(x) for x in itertools.product(range(2), range(3), range(4), range(2))]
    assert r.labels is not None
    assert model.energy(r.labels) == pytest.approx(min(energies), abs=1e-12)
    assert r.lower_bound == pytest.approx(min(energies), abs=1e-8)


def test_lam_of_a_run_keeps_energies() -> None:
    rng = np.random.default_rng(6)
    factors = [((0, 1, 2), rng.normal(size=(2, 3, 2))), ((2, 3), rng.normal(size=(2, 3)))]
    model = softmap.Model.from_factors([2, 3, 2, 3], factors)
    lam = rng.normal(size=int(model.network.half_offset[-1]))
    plain, moved = (
        solve_exact(model.network),
        solve_exact(model.network, lam=flat_lam(model.network, lam), dp_limit=0.0),
    )
    assert moved.energy == pytest.approx(plain.energy, abs=1e-12)
    assert moved.lower_bound == pytest.approx(plain.energy, abs=1e-8)


def test_a_gap_ends_the_search_early() -> None:
    model = softmap.generators.random_grid(8, 8, 3, seed=1)
    exact = solve_exact(model.network)
    loose = solve_exact(model.network, absolute_gap=0.5, dp_limit=0.0)
    assert loose.complete
    assert loose.energy - loose.lower_bound <= 0.5 + 1e-6
    assert loose.lower_bound <= exact.energy <= loose.energy + 1e-12


def test_one_to_one_ties_are_followed() -> None:
    shift = np.full((4, 4), np.inf)
    shift[np.arange(4), (np.arange(4) + 1) % 4] = 0.0
    unary = np.arange(12.0).reshape(3, 4) % 5
    model = softmap.Model(unary, [[0, 1], [1, 2]], np.stack([shift, shift]))
    energies = [model.energy(x) for x in itertools.product(range(4), repeat=3)]
    r = solve_exact(replace(flatten(model.network), constant=0.0))
    assert r.energy == min(energies) == r.lower_bound


@pytest.mark.parametrize("penalty", [1e20, 1e30, 1e60, 1e200])
def test_penalties_of_any_size_forbid(penalty: float) -> None:
    """A penalty may be more than 2^127 units, once a labelling is known: it fits no integer."""
    for seed in range(10):
        rng, n, labels = np.random.default_rng(seed), 10, 3
        pairs = [(i, j) for i in range(n) for j in range(i) if rng.random() < 0.6]
        unary = rng.normal(size=(n, labels)) + 5.0
        tables = rng.normal(size=(len(pairs), labels, labels))
        no, never = rng.random(unary.shape) < 0.25, rng.random(tables.shape) < 0.1
        no[:, 0] = never[:, 0, 0] = False
        found = [
            solve_exact(
                softmap.Model(
                    np.where(no, cost, unary), pairs, np.where(never, cost, tables)
                ).network,
                incumbent=np.zeros(n, int), dp_limit=dp_limit,
            )
            for cost in (penalty, np.inf) for dp_limit in (0.0, 1e9)
        ]  # fmt: skip
        assert all(r.complete for r in found)
        assert len({tuple(r.labels) for r in found if r.labels is not None}) == 1
        assert all(r.lower_bound >= r.energy - 2e-9 * abs(r.energy) for r in found)

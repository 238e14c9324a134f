"""The exact search in several threads: the same optimum and proof, whatever the timing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap import core
from softmap.labels.exact import ExactResult, ExactSearch, solve_exact
from support.exact_cases import Case, frustrated_case, random_case

THREADS = st.sampled_from([1, 2, 4, 8])
SEEDS = st.integers(0, 2**32 - 1)
ALL_SEARCH = {"dp_limit": 0.0, "presolve": False, "ascent": False, "split_work": 0}

pytestmark = pytest.mark.threads


def _random_model(n: int, edges: int, labels: int, seed: int = 0) -> softmap.Model:
    rng = np.random.default_rng(seed)
    pairs = np.array([(i, j) for i in range(n) for j in range(i)])
    pairs = pairs[rng.permutation(len(pairs))[:edges]]
    tables = rng.normal(size=(len(pairs), labels, labels))
    return softmap.Model(rng.normal(size=(n, labels)), pairs, softmap.Tables(tables))


def _endless_model() -> softmap.Model:
    """A model whose search takes hours."""
    return _random_model(60, 600, 8)


def _check_proved(case: Case, r: ExactResult) -> None:
    best = case.energies.min()
    assert r.complete
    if np.isinf(best):
        assert (r.infeasible, r.labels, r.lower_bound) == (True, None, np.inf)
        return
    assert r.labels is not None
    place = np.ravel_multi_index(tuple(r.labels), tuple(case.flat.num_labels))
    # several components: the gap of each is relative to an energy without the costs of the others
    size = abs(best) if r.counts["components"] == 1 else 1e13 * case.scale
    tolerance = r.slack + 1.01e-9 * size + case.scale
    assert abs(case.energies[place] - r.energy) <= case.scale
    assert r.energy <= best + tolerance
    assert best - tolerance <= r.lower_bound <= best + case.scale


def _check_nothing_false(case: Case, r: ExactResult) -> None:
    best = case.energies.min()
    assert r.lower_bound <= best + case.scale or np.isinf(best)
    assert r.energy >= best - case.scale
    assert not r.infeasible or np.isinf(best)


@given(SEEDS, THREADS)
def test_models_of_every_kind_have_the_optimum_of_brute_force(seed: int, threads: int) -> None:
    case = random_case(seed)
    _check_proved(case, solve_exact(case.flat, threads=threads, **ALL_SEARCH))


@given(SEEDS, THREADS)
def test_frustrated_models_have_the_optimum_of_brute_force(seed: int, threads: int) -> None:
    case = frustrated_case(seed, 10)
    r = solve_exact(case.flat, threads=threads, **ALL_SEARCH)
    _check_proved(case, r)
    if r.nodes > 150:  # the first 20 backtracks look for a labelling, in one thread
        assert r.counts["workers"] == threads


@given(SEEDS, THREADS, st.sampled_from([0.0, 200.0, 2000.0]))
def test_little_memory_for_open_nodes_changes_no_answer(
    seed: int, threads: int, open_bytes: float
) -> None:
    case = frustrated_case(seed, 7)
    _check_proved(
        case, solve_exact(case.flat, threads=threads, open_bytes=open_bytes, **ALL_SEARCH)
    )


@given(SEEDS, THREADS)
def test_no_stop_leaves_a_false_bound_and_the_search_goes_on(seed: int, threads: int) -> None:
    """Stops at random times; labels found elsewhere arrive in between."""
    case, rng = frustrated_case(seed, 10), np.random.default_rng(seed)
    search, bound, energy = ExactSearch(case.flat, threads=threads, **ALL_SEARCH), -np.inf, np.inf
    for _ in range(1000):
        labels = case.labellings[rng.integers(len(case.energies))] if rng.random() < 0.2 else None
        r = search.run(incumbent=labels, deadline=core.Deadline(float(rng.exponential(5e-4))))
        _check_nothing_false(case, r)
        assert r.lower_bound >= bound
        assert r.energy <= energy
        bound, energy = r.lower_bound, r.energy
        if r.complete:
            break
    _check_proved(case, search.run())


@given(SEEDS)
def test_slices_with_and_without_threads_alternate(seed: int) -> None:
    """A limit on backtracks makes a slice repeatable: one thread continues what several began."""
    case = frustrated_case(seed, 8)
    search = ExactSearch(case.flat, threads=4, **ALL_SEARCH)
    for turn in range(1000):
        limits = {"backtrack_limit": 5} if turn % 2 else {"deadline": core.Deadline(2e-4)}
        r = search.run(**limits)  # type: ignore[arg-type]
        _check_nothing_false(case, r)
        if r.complete:
            break
    _check_proved(case, search.run())


def test_all_threads_search_at_once() -> None:
    """Every worker of four takes part, and the result counts the nodes of all."""
    model = _random_model(22, 120, 5)
    one = solve_exact(model.network, dp_limit=0.0)
    four = solve_exact(model.network, dp_limit=0.0, threads=4)
    assert (one.counts["workers"], four.counts["workers"]) == (1, 4)
    assert one.complete
    assert four.complete
    assert four.energy == pytest.approx(one.energy, rel=1e-9)
    assert abs(four.lower_bound - one.lower_bound) <= 2e-9 * abs(one.energy)
    # the order of nodes differs, but the tree stays about as large
    assert 0.3 * one.nodes < four.nodes < 3 * one.nodes


def test_an_optimal_incumbent_is_returned_unchanged() -> None:
    """If the known labels are optimal, the labels do not depend on the timing."""
    for seed in range(20):
        case = frustrated_case(seed)
        ties = np.flatnonzero(case.energies == case.energies.min())
        for place in ties[[0, -1]]:
            labels = case.labellings[place]
            r = solve_exact(case.flat, threads=4, incumbent=labels, **ALL_SEARCH)
            assert r.complete
            assert (r.labels == labels).all()


def test_short_searches_start_no_threads() -> None:
    case = frustrated_case(1)
    r = solve_exact(case.flat, threads=8, dp_limit=0.0, presolve=False)
    assert r.nodes > 0
    assert r.counts["workers"] == 1


def test_repeatable_searches_use_one_thread(tmp_path) -> None:  # type: ignore[no-untyped-def]
    model = softmap.generators.random_grid(7, 7, 4, seed=3)
    plain = solve_exact(model.network, backtrack_limit=300, dp_limit=0.0)
    limited = solve_exact(model.network, backtrack_limit=300, dp_limit=0.0, threads=4, split_work=0)
    assert (limited.nodes, limited.lower_bound) == (plain.nodes, plain.lower_bound)
    logged = solve_exact(model.network, dp_limit=0.0, threads=4, split_work=0, log=tmp_path / "log")
    assert limited.counts["workers"] == logged.counts["workers"] == 1


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_a_deadline_ends_the_search_at_the_next_look(threads: int) -> None:
    search = ExactSearch(_endless_model().network, dp_limit=0.0, threads=threads, split_work=0)
    bounds = []
    for looks in (1, 5, 40):
        stop = core.Deadline()
        stop.stop_after(looks)
        r = search.run(deadline=stop)
        assert stop.stopped
        assert not r.complete
        assert r.lower_bound < r.energy
        bounds.append(r.lower_bound)
    assert bounds == sorted(bounds)


def test_infeasible_models_are_proved_infeasible() -> None:
    """Seven variables of six labels, all different: no labelling, and a tree of many nodes."""
    n, labels = 7, 6
    differ = np.where(np.eye(labels) > 0, np.inf, 0.0)
    pairs = [(i, j) for j in range(n) for i in range(j)]
    model = softmap.Model(np.zeros((n, labels)), pairs, softmap.Tables([differ] * len(pairs)))
    for threads in (1, 2, 4, 8):
        r = solve_exact(model.network, threads=threads, **ALL_SEARCH)
        assert (r.infeasible, r.complete, r.labels) == (True, True, None)
        assert r.nodes > 100

"""Searches for labellings against enumeration: exact where they claim it, never worse, feasible."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmap import core, generators
from softmap.arguments import seeded
from softmap.labels.improving import strides
from softmap.model.layout import layout
from support.oracles import brute_force, energy_by_hand, tree_optimum
from support.strategies import models, seeds

NO_LIMIT = 2**60


def _start(model, seed):
    rng = np.random.default_rng(seed)
    return model.network.complete(
        rng.integers(0, model.network.num_labels[: model.network.num_variables])
    )


def _improve(model, labels, *, seed=0, work=50_000, deadline=None, **options):
    search = core.Neighbourhoods(
        layout(model.network),
        strides(model.network),
        model.network.num_variables,
        seeded(seed),
        **options,
    )
    return search.improve(labels, work, deadline=deadline)


def _best_given(model, labels, free):
    """The least energy over all labels of the variables in `free`, the others as they are."""
    least, trial = np.inf, labels[: model.network.num_variables].copy()
    for choice in itertools.product(*(range(int(model.num_labels[i])) for i in free)):
        trial[free] = choice
        least = min(least, energy_by_hand(model, model.network.complete(trial)))
    return least


@given(models(), seeds)
def test_the_widest_neighbourhood_is_the_optimum(model, seed):
    labels = _start(model, seed)
    if np.isinf(energy_by_hand(model, labels)):
        labels = model.network.complete(brute_force(model)[1])
    _improve(model, labels, seed=seed, max_entries=2**16)
    assert energy_by_hand(model, labels) == pytest.approx(brute_force(model)[0], abs=1e-9)


@given(models(max_n=6), seeds, st.lists(st.booleans(), min_size=6, max_size=6))
def test_open_variables_get_their_best_labels_and_others_keep_theirs(model, seed, drawn):
    labels = _start(model, seed)
    before = labels.copy()
    mask = np.array(drawn[: model.network.num_variables])
    expected = _best_given(model, labels, np.flatnonzero(mask))
    _improve(model, labels, seed=seed, max_entries=2**16, open=mask)
    assert (labels[: model.network.num_variables] == before[: model.network.num_variables])[
        ~mask
    ].all()
    np.testing.assert_array_equal(
        labels, model.network.complete(labels[: model.network.num_variables])
    )
    if np.isfinite(energy_by_hand(model, before)):
        assert energy_by_hand(model, labels) == pytest.approx(expected, abs=1e-9)


def test_trees_need_only_tables_of_pairs():
    for seed in range(20):
        tree = generators.random_tree(60, 3, seed=seed)
        labels = _start(tree, seed)
        _improve(tree, labels, seed=seed, work=1, max_entries=9)
        assert tree.energy(labels) == pytest.approx(tree_optimum(tree), abs=1e-9)


@given(models(max_n=6), seeds, st.sampled_from([2, 4, 16, 64]), st.sampled_from([0.0, 0.5, 5.0]))
def test_energy_never_rises(model, seed, max_entries, heat):
    labels = _start(model, seed)
    before = energy_by_hand(model, labels)
    _improve(model, labels, seed=seed, work=3000, max_entries=max_entries, heat=heat)
    assert energy_by_hand(model, labels) <= before + 1e-9


@given(models(max_n=6), seeds)
def test_guided_and_penalised_searches_keep_what_they_have(model, seed):
    labels = _start(model, seed)
    before = energy_by_hand(model, labels)
    guide = np.random.default_rng(seed).normal(size=len(model.unary))
    _improve(model, labels, seed=seed, work=3000, heat=1.0, guide=guide, penalty=50.0)
    assert energy_by_hand(model, labels) <= before + 1e-9


def test_small_grids_are_solved():
    for seed in range(5):
        grid = generators.random_grid(3, 3, 2, seed=seed)
        labels = _start(grid, seed)
        _improve(grid, labels, seed=seed, work=20_000, heat=2.0, max_entries=8)
        assert grid.energy(labels) == pytest.approx(brute_force(grid)[0], abs=1e-9)


def test_equal_seeds_and_work_repeat_to_the_bit():
    grid = generators.random_grid(12, 12, 3, seed=1)
    runs = []
    for _ in range(2):
        labels = _start(grid, 5)
        report = _improve(grid, labels, seed=7, work=400_000, heat=1.0, max_entries=256)
        runs.append((labels.tolist(), report))
    assert runs[0] == runs[1]
    assert runs[0][1][0] >= 400_000


def test_time_that_is_up_changes_nothing():
    grid = generators.random_grid(6, 6, 3, seed=1)
    labels = _start(grid, 0)
    before = labels.copy()
    _improve(grid, labels, work=NO_LIMIT, deadline=core.Deadline(0.0), heat=1.0)
    np.testing.assert_array_equal(labels, before)


@given(models(max_n=6), seeds)
def test_merge_takes_the_best_of_every_part(model, seed):
    one, two = _start(model, seed), _start(model, seed + 1)
    first, second = energy_by_hand(model, one), energy_by_hand(model, two)
    parts = _parts(model.network, one, two)
    expected = _best_mixture(model, one, two, parts)
    core.merge(layout(model.network), one, two, strides(model.network), model.network.num_variables)
    np.testing.assert_array_equal(one, two)
    merged = energy_by_hand(model, one)
    if np.isfinite(first):
        assert merged == pytest.approx(expected, abs=1e-9)
        assert merged <= min(first, second) + 1e-9


def _parts(model, one, two):
    """Connected parts of the variables on which two labellings differ."""
    part = np.arange(model.network.n)
    joint = [(i, j) for i, j in model.network.edges if i < model.network.num_variables]
    for a in range(model.network.num_variables, model.network.n):
        members = [int(j) for i, j in model.network.edges if i == a]
        joint += list(itertools.combinations(members, 2))
    differs = one != two
    for _ in range(model.network.n):
        for i, j in joint:
            if differs[i] and differs[j]:
                part[[i, j]] = min(part[i], part[j])
    variables = np.flatnonzero(differs[: model.network.num_variables])
    return [variables[part[variables] == p] for p in np.unique(part[variables])]


def _best_mixture(model, one, two, parts):
    least = np.inf
    for taken in itertools.product([False, True], repeat=len(parts)):
        trial = one[: model.network.num_variables].copy()
        for part, take in zip(parts, taken, strict=True):
            if take:
                trial[part] = two[part]
        least = min(least, energy_by_hand(model, model.network.complete(trial)))
    return least


def test_wrong_arrays_are_named():
    grid = generators.random_grid(3, 3, 2, seed=0)
    labels = _start(grid, 0)
    labels[4] = 2
    with pytest.raises(ValueError, match="node 4 has no label 2"):
        _improve(grid, labels)
    with pytest.raises(ValueError, match="open must have 9 entries"):
        _improve(grid, _start(grid, 0), open=np.ones(3, dtype=bool))
    with pytest.raises(ValueError, match="max_entries"):
        _improve(grid, _start(grid, 0), max_entries=1)


def test_slices_of_time_do_not_matter():
    grid = generators.random_grid(12, 12, 3, seed=1)
    searches = [
        core.Neighbourhoods(layout(grid.network), strides(grid.network), 144, seeded(7), heat=1.0)
        for _ in range(2)
    ]
    often, once = _start(grid, 5), _start(grid, 5)
    cycles = 0
    while cycles < 20:
        _, cycles, _ = searches[0].improve(often, NO_LIMIT, deadline=core.Deadline(1e-5))
    done = 0
    while done < cycles:
        _, done, _ = searches[1].improve(once, 1)  # one subproblem
    np.testing.assert_array_equal(often, once)


def test_labels_from_elsewhere_are_gone_on_from():
    grid = generators.random_grid(3, 3, 2, seed=2)
    least, best = brute_force(grid)
    search = core.Neighbourhoods(
        layout(grid.network), strides(grid.network), 9, seeded(0), heat=1.0, max_entries=8
    )
    labels = _start(grid, 1)
    search.improve(labels, 1)
    labels = grid.network.complete(best)
    search.improve(labels, 5000)
    assert grid.energy(labels) == pytest.approx(least, abs=1e-9)

"""The search of the loose part against brute force, and against the search of the whole."""

from __future__ import annotations

import numpy as np
import pytest

import softmap
from softmap import core
from softmap.errors import InfeasibleModel
from softmap.model import Model
from softmap.model.layout import layout
from softmap.proof.search.exact import solve_exact
from softmap.proof.search.partial import PartialSearch
from softmap.relaxation.consistency import tighten
from softmap.relaxation.flat import flat_lam
from support.deadlines import stopping
from support.oracles import brute_force
from support.small_models import random_labels, random_model
from support.stage_runs import partly_searched
from support.strategies import FAMILIES

SEEDS = 60


def _lam(model: Model, kind: int, seed: int) -> np.ndarray:
    """λ = 0, random, or that of the relaxation, now and then moved a little."""
    rng = np.random.default_rng(seed)
    size = int(model.half_offset[-1])
    if kind == 0:
        return np.zeros(size)
    if kind == 1:
        return rng.normal(size=size)
    solved = softmap.solve(model, goal="lp", threads=1, time_limit=1.0).lam
    return solved + 1e-3 * (seed % 2) * rng.normal(size=size)


def _case(family: str, seed: int) -> tuple[Model, float] | None:
    model = random_model(family, seed)
    if len(model.auxiliaries):
        return None
    best = brute_force(model)[0]
    return (tighten(model), best) if np.isfinite(best) else None


@pytest.mark.parametrize("family", FAMILIES)
def test_bounds_and_labels_against_brute_force(family: str) -> None:
    """λ of any kind: the bound is true, and without limits the labels are optimal."""
    for seed in range(SEEDS):
        if (case := _case(family, seed)) is None:
            continue
        model, best = case
        lam = _lam(model, seed % 3, seed)
        found = partly_searched(model, lam, random_labels(model, seed))
        scale = 1e-9 * (1.0 + abs(best) + float(np.abs(lam).sum()))
        assert found.bound <= best + scale * 1e-4, (family, seed)
        assert found.energy == pytest.approx(model.energy(found.labels), rel=1e-12)
        assert found.complete, (family, seed)
        assert found.energy <= best + scale, (family, seed)
        assert found.bound >= best - scale, (family, seed)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_stopped_search_says_nothing_false(family: str) -> None:
    for seed in range(SEEDS):
        if (case := _case(family, seed)) is None:
            continue
        model, best = case
        lam = _lam(model, seed % 2, seed)
        labels = random_labels(model, seed)
        late = core.Deadline(0.0)
        limits = ({"backtrack_limit": 0}, {"deadline": late}, {"largest": 2})[seed % 3]
        found = partly_searched(model, lam, labels, **limits)
        scale = 1e-9 * (1.0 + abs(best) + float(np.abs(lam).sum()))
        assert found.bound <= best + 1e-4 * scale, (family, seed)
        assert found.energy >= best - 1e-4 * scale, (family, seed)
        assert not found.complete or found.energy <= best + scale, (family, seed)


def test_set_up_that_is_stopped_at_any_look_ends_there() -> None:
    model = softmap.generators.potts_grid(4, 4, 3, seed=1)
    lam, labels = np.zeros(model.half_size), np.zeros(model.n, dtype=np.int64)
    looks = 0
    while True:
        looks += 1
        try:
            PartialSearch(model, lam, labels, deadline=stopping(looks))
        except core.OutOfTime:
            continue
        break
    assert looks == 4  # before and after each of two loops over the model


def test_wrong_labels_in_a_decided_region_are_left_behind() -> None:
    """The part grows from a wrong start until the optimum is proved."""
    model = softmap.generators.stereo_grid(20, 20, 5, seed=2)
    solved = softmap.solve(model, goal="lp", threads=1)
    wrong = np.where(np.arange(model.n) % 7 == 0, 0, solved.labels.ravel())
    exact, found = solve_exact(model), partly_searched(model, solved.lam, wrong)
    assert found.complete
    assert found.energy == pytest.approx(exact.energy, rel=1e-9)


def _nearly_tight() -> tuple[Model, np.ndarray, np.ndarray]:
    """A large grid whose relaxation leaves a few dozen of its variables open."""
    model = softmap.generators.potts_grid(60, 60, 5, weight=0.2)
    solved = softmap.solve(model, goal="lp", threads=1)
    return model, solved.lam, solved.labels


def test_a_large_model_is_proved_where_the_whole_is_not() -> None:
    """Within the same number of backtracks."""
    model, lam, labels = _nearly_tight()
    limit = 300
    moved = flat_lam(model, lam)
    whole = solve_exact(model, incumbent=labels, lam=moved, backtrack_limit=limit)
    part = partly_searched(model, lam, labels, backtrack_limit=limit)
    assert part.complete
    assert not whole.complete
    assert part.size < model.n // 4
    assert whole.lower_bound <= part.energy + 1e-9


def test_pieces_that_are_solved_stay_solved() -> None:
    """Turns with small limits add up to the answer of one without."""
    model, lam, labels = _nearly_tight()
    search = PartialSearch(model, lam, labels)
    bounds = [search.run(backtrack_limit=3).bound for _ in range(5)]
    assert bounds == sorted(bounds)
    last = search.run()
    assert last.complete
    assert last.energy == pytest.approx(partly_searched(model, lam, labels).energy, rel=1e-9)


def test_a_loose_part_without_any_labelling() -> None:
    """Three variables that must all differ, of two labels each: arc consistent, infeasible."""
    differ = np.where(np.eye(2) > 0, np.inf, 0.0)
    model = Model(np.zeros((4, 2)), [[0, 1], [1, 2], [0, 2], [2, 3]], np.stack([differ] * 4))
    with pytest.raises(InfeasibleModel):
        partly_searched(model, np.zeros(16), [0, 0, 0, 0])


def test_labels_outside_that_leave_a_piece_without_any() -> None:
    """Given labels that break a constraint, the part grows; the model has a labelling."""
    same, differ = np.where(np.eye(3) > 0, 0.0, np.inf), np.where(np.eye(3) > 0, np.inf, 0.0)
    unary = np.zeros((4, 3))
    unary[2:, 2] = np.inf
    edges = [[0, 1], [1, 2], [1, 3], [2, 3]]
    model = Model(unary, edges, np.stack([same, differ, differ, differ]))
    found = partly_searched(model, np.zeros(24), [0, 0, 0, 1])
    assert found.complete
    assert found.energy == 0.0
    assert found.labels[:2].tolist() == [2, 2]


def _above_plainly(
    model: Model, lam: np.ndarray, x: np.ndarray, least: np.ndarray, rounding: float
) -> tuple[np.ndarray, np.ndarray]:
    """The twins of `core.nodes_above` and `core.edges_above`."""
    nodes, edges = np.zeros(model.n, dtype=bool), np.zeros(model.m, dtype=bool)
    reduced = [model.unary_of(i).copy() for i in range(model.n)]
    sizes = [abs(reduced[i][x[i]]) for i in range(model.n)]
    for h, i in enumerate(model.edges.reshape(-1)):
        own = lam[model.half_slice(h)]
        reduced[i] -= own
        sizes[i] += abs(own[x[i]])
    for i in range(model.n):
        own = reduced[i][x[i]]
        nodes[i] = np.isinf(own) or own > reduced[i].min() + rounding * sizes[i]
    for e, (i, j) in enumerate(model.edges):
        first, second = lam[model.half_slice(2 * e)], lam[model.half_slice(2 * e + 1)]
        terms = model.table(e)[x[i], x[j]], first[x[i]], second[x[j]]
        over = sum(terms) - least[e]
        edges[e] = np.isinf(terms[0]) or over > rounding * np.abs(terms).sum()
    return nodes, edges


@pytest.mark.parametrize("family", FAMILIES)
def test_labels_above_the_least_are_those_of_plain_loops(family: str) -> None:
    rounding, some = 1e-12, np.zeros(4)
    for seed in range(SEEDS):
        if (case := _case(family, seed)) is None:
            continue
        model = tighten(case[0])
        if len(model.auxiliaries):
            continue
        lam, x = _lam(model, seed % 2, seed), random_labels(model, seed)
        least = np.empty(model.m)
        core.edge_minima(layout(model), lam, least)
        nodes, edges = np.empty(model.n, dtype=bool), np.empty(model.m, dtype=bool)
        core.nodes_above(layout(model), lam, x, rounding, nodes, 1)
        core.edges_above(layout(model), lam, x, least, rounding, edges, 1)
        wanted = _above_plainly(model, lam, x, least, rounding)
        assert np.array_equal(nodes, wanted[0]), (family, seed)
        assert np.array_equal(edges, wanted[1]), (family, seed)
        some += np.array([nodes.any(), not nodes.all(), edges.any(), not edges.all()])
    assert some.all()


def test_the_loose_part_does_not_depend_on_the_threads() -> None:
    model = softmap.generators.random_grid(110, 110, 3, seed=1)
    lam = np.random.default_rng(0).normal(size=model.half_size)
    labels = np.random.default_rng(1).integers(0, 3, model.n)
    one, four = (PartialSearch(model, lam, labels, threads=threads) for threads in (1, 4))
    assert np.array_equal(one.loose, four.loose)
    assert 0 < one.size <= model.n
    assert one.energy == four.energy

"""Expansion moves before the relaxation, which later stages continue."""

import time

import numpy as np

import softmap
from softmap.labels import cheapest, first_labels
from softmap.labels.cuts import Expansions, Fusion
from softmap.run.best import Best
from softmap.run.budget import Budget
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.subsolver import Board, Share
from softmap.subsolvers.labels.expand import EXPANSIONS, Expand
from softmap.subsolvers.labels.improve import Improve
from support.stage_runs import suits

GRID = softmap.generators.stereo_grid(50, 50, 8, seed=3)


def opened(model, labels=None, **options):
    """What expansions before the passes hand on, whether they ran, and what they found."""
    problem = Problem.of(model)
    best = Best(problem)
    if labels is not None:
        best.offer_labels(labels)
    given = Options(initial=labels, **{"time_limit": 100.0} | options)
    if not suits(Expand, problem, given):
        return None, False, best
    return Expand(problem, given)(best, Share(Budget(), time.perf_counter() + 100.0)), True, best


def test_large_models_begin_with_expansions_of_first_labels():
    outcome, found, best = opened(GRID)
    assert found
    assert best.energy < GRID.energy(first_labels(GRID.network))
    assert outcome.get(EXPANSIONS) is not None
    assert not outcome.active


def test_without_a_time_limit_later_stages_do_not_continue_the_moves():
    assert opened(GRID, time_limit=None)[0].get(EXPANSIONS) is None


def test_given_labels_are_never_lost():
    given = softmap.solve(GRID, threads=1).labels.ravel()
    _, _, best = opened(GRID, given)
    assert best.energy <= GRID.energy(given)


def test_small_models_and_other_methods_have_no_expansions():
    small = softmap.generators.potts_grid(10, 10, 3, seed=1)
    assert not opened(small)[1]
    assert not opened(softmap.generators.random_grid(50, 50, 3, seed=1))[1]  # few submodular terms
    assert not opened(GRID, method="trws")[1]
    assert not opened(GRID, goal="lp")[1]


def test_an_expired_limit_leaves_labels_and_the_bound_of_zero():
    result = softmap.solve(GRID, time_limit=1e-3, threads=1)
    assert np.isfinite(result.bound)
    assert result.energy <= GRID.energy(np.argmin(GRID.unary.reshape(-1, 8), axis=1))


def test_improving_labels_continues_the_expansions():
    problem = Problem.of(GRID)
    best, moves = Best(problem), Expansions(Fusion(problem.model))
    best.offer_labels(first_labels(problem.model))
    improve = Improve(problem, Options())
    before = best.energy
    while not moves.ended(best.labels):
        improve(
            best,
            Share(Budget(), time.perf_counter() + 0.3, board=Board(entries={EXPANSIONS: moves})),
        )
    fusion, labels = Fusion(problem.model), best.labels.copy()
    assert best.energy < before
    assert all(fusion.fuse(labels, np.full(2500, alpha)) == 0 for alpha in range(8))


def test_moves_that_memory_does_not_allow_are_not_handed_on():
    outcome, found, _ = opened(GRID, memory_limit=1)
    assert found
    assert outcome.get(EXPANSIONS) is None


def test_labels_of_lowest_cost_are_expanded_if_memory_allows_no_messages():
    _, found, best = opened(GRID, memory_limit=1)
    assert found
    assert best.energy < GRID.energy(cheapest(GRID.network, GRID.unary))

"""What `solve` promises, for every method, every kind of model and every way to stop."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softmap
from softmap import Status, generators, lp
from softmap.labels import LabelSearch
from softmap.methods.base import METHODS, make
from softmap.methods.policy import Checks
from softmap.model import Model
from softmap.model.potentials import Potts, Tables
from softmap.run.judge import Judge
from softmap.subsolvers.passes.pass_numbers import PassNumbers
from softmap.tuning import Tuning
from support.methods import PASSES
from support.oracles import brute_force
from support.relaxed_runs import (
    NEVER,
    PROVED,
    TINY,
    iterate,
    options_of,
    promised,
    same_result,
    solve,
)
from support.strategies import models

UNEQUAL = np.where(np.eye(2) > 0, np.inf, 0.0)


def ternary() -> Model:
    rng = np.random.default_rng(3)
    scopes = [(0, 1, 2), (2, 3), (1, 3, 4), (4,)]
    counts = np.array([2, 3, 2, 3, 2])
    return Model.from_factors(counts, [(s, rng.normal(size=counts[list(s)])) for s in scopes])


def islands() -> Model:
    """Two isolated variables beside a small component."""
    rng = np.random.default_rng(4)
    return Model(rng.normal(size=(5, 3)), [[1, 3], [3, 4]], Tables(rng.normal(size=(2, 3, 3))))


def parallel() -> Model:
    rng = np.random.default_rng(5)
    edges = [[0, 1], [1, 0], [0, 1], [1, 2]]
    return Model(rng.normal(size=(3, 3)), edges, Tables(rng.normal(size=(4, 3, 3))))


def edgeless() -> Model:
    unary = np.random.default_rng(6).normal(size=(4, 3))
    return Model(unary, np.zeros((0, 2), int), [], constant=1.5)


def frustrated() -> Model:
    """A cycle of three that want to differ, with two labels: the LP lies below every labelling."""
    return Model(np.zeros((3, 2)), [[0, 1], [1, 2], [0, 2]], Potts([-1.0, -1.0, -1.0]))


MODELS = {
    "grid": lambda: generators.potts_grid(2, 3, 3, seed=1),
    "random": lambda: generators.erdos_renyi(7, 3, seed=2),
    "hard": lambda: generators.ragged_constrained(7, max_labels=4, seed=3),
    "ternary": ternary,
    "islands": islands,
    "parallel": parallel,
    "edgeless": edgeless,
    "one": lambda: Model([[0.5, -1.0, 2.0]], np.zeros((0, 2), int), []),
    "one-label": lambda: Model([[1.0], [2.0]], [[0, 1]], Tables(np.full((1, 1, 1), -4.0))),
    "frustrated": frustrated,
}


@functools.cache
def known(name: str) -> tuple[Model, float, float]:
    """A model, its LP optimum and its MAP optimum."""
    model = MODELS[name]()
    return model, lp.solve(model).value, brute_force(model)[0]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("method", METHODS)
def test_promises_hold_for_every_method_and_kind_of_model(method, name):
    model, relaxed, best = known(name)
    result = solve(model, **options_of(method, max_work=2 * model.network.m * 60))
    promised(result, model, relaxed, best)
    assert result.status in (*PROVED, Status.LP_GAP, Status.WORK_LIMIT)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("method", ["anneal", "anneal-star"])
def test_the_annealed_solvers_close_the_gap(method, name):
    model, relaxed, best = known(name)
    result = promised(solve(model, **options_of(method)), model, relaxed, best)
    assert result.status in (*PROVED, Status.LP_GAP)
    scale = result.gap_unit
    assert result.primal - relaxed <= 1e-4 * scale + TINY
    assert relaxed - result.bound <= 1e-4 * scale + TINY
    if result.status in PROVED:
        assert result.energy - best <= 1e-6 * scale + TINY


@settings(max_examples=40)
@given(model=models(), method=st.sampled_from(list(METHODS)))
def test_promises_hold_for_random_models_of_every_family(model, method):
    relaxed, (best, _) = lp.solve(model).value, brute_force(model)
    result = solve(model, **options_of(method, max_work=2 * model.network.m * 40))
    promised(result, model, relaxed, best)


def test_the_judge_lives_with_labels_that_break_constraints():
    """Three variables that must all differ cannot with two labels, but the LP has a point."""
    model = Model(np.zeros((3, 2)), [[0, 1], [1, 2], [0, 2]], Tables([UNEQUAL] * 3))
    algorithm = make("trws", eta=None, threads=1)
    state = algorithm.init(model.network, None, 0)
    judge, search = Judge.of(model.network), LabelSearch(model.network)
    best = judge.best
    for _ in range(2):
        proposal = algorithm.propose(state)
        nodes = judge.look(proposal).nodes[0]
        known, limits = (best.labels, best.energy), (best.lp_bound, best.point_cost)
        best.offer_labels(*search.look(known, proposal.lam, nodes, *limits, 10_000))
    assert (best.bound, best.primal, best.energy) == (0.0, 0.0, np.inf)


# --- every way to stop ----------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_stops_at_a_gap(method, problem):
    model, relaxed = problem
    result = solve(model, **options_of(method, lp_gap=3.0, gap=0.0))
    assert promised(result, model, relaxed).status is Status.LP_GAP
    assert result.relative_gap(result.lp_gap) <= 3.0
    result = solve(model, **options_of(method, lp_gap=0.0, gap=3.0))
    assert promised(result, model, relaxed).status in PROVED
    assert result.relative_gap(result.gap) <= 3.0


@pytest.mark.parametrize("method", METHODS)
def test_stops_after_updates(method, problem):
    model, relaxed = problem
    result = solve(model, **options_of(method, updates=13, **NEVER))
    assert promised(result, model, relaxed).status is Status.UPDATES
    if method in PASSES:
        assert result.sweeps == 13
    assert solve(model, **options_of(method, updates=0, **NEVER)).work == 0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seconds", [0, 0.02])
def test_stops_in_time(method, seconds, problem):
    # else the fastest methods would end before
    patient = Tuning(Checks(patience=10**9), PassNumbers(vertex_after=10**9))
    model, relaxed = problem
    result = solve(model, **options_of(method, time_limit=seconds, tuning=patient, **NEVER))
    assert promised(result, model, relaxed).status is Status.TIME_LIMIT
    assert result.seconds + result.setup_seconds >= 0.5 * seconds
    assert seconds > 0 or result.work == 0


@pytest.mark.parametrize("method", METHODS)
def test_stops_after_work(method, problem):
    model, relaxed = problem
    most = 2 * model.m * 7 + 1
    results = [solve(model, **options_of(method, max_work=most, **NEVER)) for _ in range(2)]
    for result in results:
        assert promised(result, model, relaxed).status is Status.WORK_LIMIT
    step = (
        2 * model.m
        if method in PASSES
        else model.network.graph.degree.max() * METHODS[method].compared
    )
    assert most <= results[0].work < most + step
    same_result(*results)


@pytest.mark.parametrize("method", METHODS)
def test_stops_when_asked_or_interrupted(method, problem):
    model, relaxed = problem
    seen = []

    def stop(snapshot):
        seen.append(snapshot)
        return len(seen) < 3

    def interrupt(snapshot):
        raise KeyboardInterrupt

    result = solve(model, **options_of(method, on_snapshot=stop, **NEVER))
    assert promised(result, model, relaxed).status is Status.CALLBACK
    assert [s.bound for s in seen] == [row.bound for row in result.trace]
    assert len(seen) == 3
    result = solve(model, **options_of(method, on_snapshot=interrupt, **NEVER))
    assert promised(result, model, relaxed).status is Status.INTERRUPTED


@pytest.mark.parametrize("method", ["trws", "mplp"])
def test_stops_when_stalled(method, problem):
    model, relaxed = problem
    result = solve(model, **options_of(method))
    assert promised(result, model, relaxed).status is Status.STALLED
    assert relaxed - result.bound > 1e-3


def test_every_status_has_a_sentence():
    assert all(len(str(status).split()) > 3 for status in Status)
    assert len({str(status) for status in Status}) == len(Status)


def test_iterate_yields_what_solve_sees(problem):
    model, _ = problem
    run = iterate(model, threads=1, max_work=2 * model.m * 30)
    snapshots = list(run)
    result = solve(model, threads=1, max_work=2 * model.m * 30)
    assert [s.bound for s in snapshots] == [row.bound for row in result.trace]
    assert snapshots[-1].gap == result.gap
    assert snapshots[-1].lp_gap == result.lp_gap
    np.testing.assert_array_equal(snapshots[-1].labels, result.labels)


# --- what must not matter -------------------------------------------------------------------------


def scaled(model: Model, factor: float) -> Model:
    return model.replace(
        unary=model.unary * factor,
        potentials=[p.scaled(factor) for p in model.potentials],
        constant=model.constant * factor,
    )


SCALED = {
    "random": lambda: generators.erdos_renyi(40, 3, seed=9),
    "potts": lambda: generators.potts_grid(8, 8, 3, seed=2),
    "hard": lambda: generators.ragged_constrained(20, seed=5),
}


@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("method", PASSES)
def test_the_unit_of_the_costs_does_not_matter(method, name):
    model = SCALED[name]()
    options = {"method": method, "threads": 1, "max_work": 2 * model.m * 150, "lp_gap": 1e-3}
    first = solve(model, **options)
    for factor in (1e6, 1e-6, 1e-200, 1e200):
        run = solve(scaled(model, factor), **options)
        np.testing.assert_array_equal(run.labels, first.labels)
        assert (run.sweeps, run.status) == (first.sweeps, first.status)
        assert run.bound == pytest.approx(factor * first.bound, rel=1e-6)


@pytest.mark.parametrize("method", PASSES)
def test_constants_in_tables_do_not_matter(method):
    """Constants that cancel: the same problem, written differently."""
    model = generators.erdos_renyi(40, 3, seed=9)
    rng = np.random.default_rng(0)
    nodes, edges = 100 * rng.normal(size=model.n), 100 * rng.normal(size=model.m)
    shifted = model.replace(
        unary=model.unary + np.repeat(nodes, model.num_labels),
        potentials=[Tables([t + c for t, c in zip(model.network.tables(), edges, strict=True)])],
        constant=-nodes.sum() - edges.sum(),
    )
    runs = [
        solve(m, method=method, threads=1, lp_gap=1e-3, max_work=2 * model.m * 150)
        for m in (model, shifted)
    ]
    if method in ("anneal", "anneal-star", "nesterov"):
        # hard-min methods stall at ties, where the last bit chooses between labels
        np.testing.assert_array_equal(runs[0].labels, runs[1].labels)
    assert (runs[0].sweeps, runs[0].status) == (runs[1].sweeps, runs[1].status)
    assert runs[0].bound == pytest.approx(runs[1].bound, abs=1e-6)


@pytest.mark.parametrize("method", PASSES)
def test_threads_do_not_matter(method):
    model = generators.random_grid(20, 20, 4, seed=3)
    work = 2 * model.m * 40
    one, two, again, three = (
        solve(model, method=method, threads=t, max_work=work) for t in (1, 2, 2, 3)
    )
    same_result(two, again)
    for other in (one, three):
        np.testing.assert_array_equal(two.labels, other.labels)
        assert two.bound == pytest.approx(other.bound, rel=1e-12)
        assert two.primal == pytest.approx(other.primal, rel=1e-9)


def test_the_seed_matters_only_to_methods_that_draw(problem):
    model, _ = problem
    for method, differs in (("anneal", False), ("emp", True)):
        runs = [solve(model, **options_of(method, max_work=2000, seed=s)) for s in (0, 0, 1)]
        same_result(*runs[:2])
        assert (runs[0].bound != runs[2].bound) is differs


# --- warm starts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_warm_starts_begin_where_the_other_run_ended(method, problem):
    model, relaxed = problem
    first = solve(model, **options_of(method, max_work=2 * model.m * 60, **NEVER))
    for start in (first, first.messages):
        again = solve(model, **options_of(method, warm_start=start, max_work=0, **NEVER))
        promised(again, model, relaxed)
        assert again.bound >= first.trace[-2].bound - 0.05 * abs(relaxed)
    from_bound = solve(model, **options_of("mplp", warm_start=first.lam, max_work=0, **NEVER))
    assert from_bound.bound == pytest.approx(first.bound, abs=1e-9)


def test_a_warm_start_serves_a_model_that_changed_a_little():
    model = generators.potts_grid(16, 16, 4, seed=4)
    rng = np.random.default_rng(1)
    changed = model.replace(unary=model.unary + 1e-3 * rng.normal(size=model.unary.size))
    first = solve(model, threads=1)
    cold, warm = (
        solve(changed, threads=1),
        solve(changed, threads=1, warm_start=first, eta=first.eta),
    )
    assert warm.sweeps < cold.sweeps
    promised(warm, changed, lp.solve(changed).value)


def test_softmap_names_its_methods():
    assert set(softmap.METHODS) == set(METHODS)
    passes = {"anneal", "anneal-safe", "anneal-star", "trws", "mplp", "diffusion", "nesterov"}
    passes |= {"accel-sweeps"}
    assert passes == set(PASSES)


@pytest.mark.parametrize("seconds", [None, 0.0, 5.0])
def test_the_callback_is_called_for_a_model_that_set_up_solves(seconds):
    model, seen = softmap.Model([[0.0, 1.0], [2.0, 1.0]], [], softmap.Potts([])), []
    result = softmap.solve(model, on_snapshot=seen.append, time_limit=seconds)
    assert [snapshot.energy for snapshot in seen] == [1.0] == [result.energy]
    assert [snapshot.bound for snapshot in softmap.iterate(model, time_limit=seconds)] == [1.0]

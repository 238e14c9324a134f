"""Warm starts carry λ, η, labels, the primal point and clusters, and prove all anew."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap import generators, solve, verify
from softmap.relaxation.gaps import PROVED
from softmap.run.trace import Status

MODELS = {
    "grid": lambda: generators.random_grid(8, 8, 3, seed=1),
    "potts": lambda: generators.potts_grid(10, 10, 4, seed=1),
    "graph": lambda: generators.erdos_renyi(40, 3, seed=1),
    "hard": lambda: generators.ragged_constrained(20, seed=3),
}


def nudged(model, size=0.001, seed=0):
    noise = np.random.default_rng(seed).normal(0, size, model.unary.shape)
    return model.replace(unary=model.unary + noise)


@pytest.mark.parametrize("goal", ["lp", "map", "optimal"])
@pytest.mark.parametrize("name", MODELS)
def test_the_same_model_again_stops_at_once(name, goal):
    model = MODELS[name]()
    first = solve(model, goal=goal, threads=1)
    again = solve(model, goal=goal, threads=1, warm_start=first)
    searched = first.proof.kind == "search"
    assert again.sweeps == 0
    assert again.work == 0 or searched
    assert again.energy == first.energy
    assert searched or again.bound == pytest.approx(first.bound, rel=1e-12)  # of the same λ
    assert again.relative_gap(again.gap) <= max(PROVED, first.relative_gap(first.gap))
    assert again.status is first.status
    assert again.proof.kind == first.proof.kind
    assert verify(again, model).holds


@pytest.mark.parametrize("name", MODELS)
def test_a_changed_model_is_proved_anew(name):
    model = MODELS[name]()
    earlier = solve(model, threads=1)
    for seed in range(3):
        changed = nudged(model, seed=seed)
        warm, cold = solve(changed, threads=1, warm_start=earlier), solve(changed, threads=1)
        assert warm.bound <= cold.energy + 1e-9 * abs(cold.energy)
        assert cold.bound <= warm.energy + 1e-9 * abs(warm.energy)
        assert warm.relative_gap(warm.gap) <= max(1e-6, 1.01 * cold.relative_gap(cold.gap))
        assert verify(warm, changed).holds


@given(st.integers(0, 10**6), st.floats(0.0, 3.0))
def test_bounds_hold_whatever_the_start(seed, size):
    model = generators.potts_grid(3, 3, 2, seed=seed % 97)
    changed = nudged(model, size, seed)
    warm = solve(changed, warm_start=solve(model, threads=1), threads=1)
    every = np.array(list(np.ndindex(*(2,) * 9)))
    assert warm.bound <= changed.energy(every).min() + 1e-9
    assert warm.energy == changed.energy(warm.labels)


def test_clusters_are_carried():
    model = generators.erdos_renyi(40, 3, seed=2)
    first = solve(model, threads=1, goal="labels")
    assert first.proof.kind == "tightened"
    seen = []
    changed = nudged(model, 1e-4)
    solve(changed, warm_start=first, threads=1, on_snapshot=seen.append, max_work=1)
    relaxed = solve(changed, threads=1, goal="lp")
    assert seen[0].bound > relaxed.bound


def test_what_a_result_claims_is_not_taken_for_another_model():
    model = generators.potts_grid(6, 6, 3, seed=1)
    lying = dataclasses.replace(solve(model, threads=1), bound=1e6)
    warm = solve(nudged(model), warm_start=lying, threads=1)
    assert warm.bound <= warm.energy


def test_results_of_other_shapes_are_refused_or_judged():
    model = generators.potts_grid(6, 6, 3, seed=1)
    with pytest.raises(softmap.OptionError, match="warm_start: expected a Result"):
        solve(model, warm_start=solve(generators.random_tree(5)))
    for scale in (1e-200, 1e200):
        scaled = model.replace(
            unary=model.unary * scale, potentials=[p.scaled(scale) for p in model.potentials]
        )
        result = solve(scaled, warm_start=solve(model, threads=1), threads=1)
        assert result.status in (Status.OPTIMAL, Status.GAP)


def test_a_result_of_the_same_model_with_another_shape_is_taken():
    model = generators.random_grid(6, 6, 3, seed=2)
    row = model.with_shape([36])
    for ours, theirs in ((model, row), (row, model)):
        again = solve(ours, warm_start=solve(theirs, threads=1), threads=1)
        assert again.sweeps == 0
        assert again.labels.shape == ours.shape


def test_states_that_are_forbidden_now_have_no_weight():
    model = generators.random_grid(5, 5, 3, seed=4)
    first = solve(model, threads=1, goal="lp")
    excluded = model.condition({i: (first[i] + 1) % 3 for i in range(0, 25, 4)})
    result = solve(excluded, warm_start=first, threads=1)
    assert result.found
    assert result.bound <= result.energy
    assert verify(result, excluded).holds


@pytest.mark.parametrize("seed", range(3))
def test_a_start_from_the_relaxation_alone_ends_no_earlier_than_a_cold_run(seed):
    model = softmap.generators.erdos_renyi(20, seed=seed)
    relaxed = softmap.solve(model, goal="lp", lp_gap=1e-3)
    cold, warm = softmap.solve(model), softmap.solve(model, warm_start=relaxed)
    assert warm.status is cold.status
    assert warm.energy <= cold.energy
    assert warm.bound >= cold.bound - 1e-9 * abs(cold.bound)

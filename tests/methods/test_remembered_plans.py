"""Plans of passes are made once for models that share a graph, and change nothing."""

from __future__ import annotations

import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace

import numpy as np
import pytest

import softmap
from softmap.methods.sweeps import planning
from softmap.methods.sweeps.planning import chain_schedule, colour_schedule
from softmap.model import Model


def grid(seed: int, truncation: float = 2.0) -> Model:
    rng = np.random.default_rng(seed)
    potential = softmap.TruncatedLinear(np.full(24, 0.5), np.full(24, truncation))
    return Model.grid(rng.normal(size=(4, 4, 5)), potential)


def alone(model: Model) -> Model:
    """An equal model with a graph of its own."""
    groups = [(model.edges[a:b], p) for a, b, p in model.network.groups()]
    unary = np.split(model.unary, model.network.node_offset[1:-1])
    return Model(unary, None, groups, constant=model.constant)


def other_costs(model: Model, seed: int) -> Model:
    return model.replace(unary=np.random.default_rng(seed).normal(size=model.unary.size))


@pytest.mark.parametrize("make", [chain_schedule, colour_schedule])
def test_a_remembered_plan_gives_the_same_schedule(make):
    first = grid(1)
    make(first.network)
    second = other_costs(first, 2)
    assert second.network.graph is first.network.graph
    found, expected = make(second.network), make(alone(second).network)
    assert found.blocks is make(first.network).blocks
    for field in fields(found):
        np.testing.assert_array_equal(getattr(found, field.name), getattr(expected, field.name))


def test_potentials_that_are_tiled_in_another_way_get_another_plan():
    first = grid(1)
    kept = chain_schedule(first.network)
    second = first.replace(potentials=grid(1, truncation=1.0).potentials)
    third = first.replace(potentials=[softmap.Potts(np.full(24, 0.5))])
    for model in (second, third):
        found, expected = chain_schedule(model.network), chain_schedule(alone(model).network)
        assert found.blocks is not kept.blocks
        np.testing.assert_array_equal(found.blocks, expected.blocks)
        np.testing.assert_array_equal(found.table, expected.table)


def test_runs_have_the_same_bits_with_and_without_it(monkeypatch):
    first = grid(3)
    softmap.solve(first)
    models = [other_costs(first, seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda m: softmap.solve(m, threads=1, goal="lp"), models))
    monkeypatch.setattr(planning, "PLANNING", replace(planning.PLANNING, remembered=-1))
    for model, result in zip(models, found, strict=True):
        again = softmap.solve(alone(model), threads=1, goal="lp")
        np.testing.assert_array_equal(result.lam, again.lam)
        assert (result.bound, result.primal, result.energy) == (
            again.bound, again.primal, again.energy,
        )  # fmt: skip


def test_plans_go_with_their_graph_and_are_not_pickled():
    model = grid(4)
    plain = len(pickle.dumps(model))
    chain_schedule(model.network)
    for seed in range(5):
        chain_schedule(other_costs(model, seed).network)
    assert list(model.network.graph.remembered) == ["chains"]
    copied = pickle.loads(pickle.dumps(model))
    assert not copied.network.graph.remembered
    sizes = [len(pickle.dumps(one)) for one in (copied, model)]
    assert max(sizes) < 3 * plain
    assert abs(sizes[0] - sizes[1]) < 100  # the plans alone would take more
    died = weakref.ref(model.network.graph.remembered["chains"][1])
    del model
    gc.collect()
    assert died() is None


def test_large_graphs_keep_no_plans(monkeypatch):
    monkeypatch.setattr(planning, "PLANNING", replace(planning.PLANNING, remembered=10))
    model = grid(5)
    chain_schedule(model.network)
    assert not model.network.graph.remembered

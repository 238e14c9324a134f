"""Schedules made by the core are those of the plain twin, array by array."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_twin import Plan, leading, planned
from test_chains import models_of

import softmap
from softmap import core, generators
from softmap.methods.sweeps.planning import BLOCK, ROW, _tile_keys, pass_order
from softmap.model import Model
from softmap.model.layout import layout
from support.families import FAMILIES

SEEDS = st.integers(0, 2**32 - 1)


def same(twin: Plan, made: dict) -> None:
    assert (made.pop("cost_size"), made.pop("table_size")) == (twin.cost_size, twin.table_size)
    assert set(made) == set(twin.arrays)
    for name, kind in (("rows", ROW), ("blocks", BLOCK)):
        made[name] = made[name].reshape(-1).view(kind)
    for name, array in made.items():
        assert array.dtype == twin.arrays[name].dtype, name
        assert np.array_equal(array, twin.arrays[name]), name


def compare(model: Model, rank=None, level=None, keys=None) -> None:
    """Chains, and what is kept of them where places of all messages are."""
    natural = pass_order(model.network.graph)
    rank, level = natural[0] if rank is None else rank, natural[1] if level is None else level
    keys = _tile_keys(model.network) if keys is None else keys
    plain, held = planned(model, rank, level, keys), layout(model.network)
    for first_only, expected in ((True, leading(plain)), (False, plain)):
        for threads in (1, 3):
            same(expected, core.plan(held, rank, level, keys, first_only, threads))


@pytest.mark.parametrize("name", FAMILIES)
@settings(max_examples=30)
@given(seed=SEEDS)
def test_plans_of_all_families_are_those_of_the_twin(name, seed):
    for model in models_of(name, seed):
        compare(model)


@pytest.mark.parametrize(
    "model",
    [
        generators.potts_grid(40, 50, 4),
        generators.potts_grid(150, 140, 3),
        generators.erdos_renyi(300, 3),
        generators.random_tree(500, 4),
        generators.ragged_constrained(200),
        generators.random_grid(1, 700, 3),
        Model(np.zeros((600, 2))),
        Model(np.zeros((1, 1))),
    ],
    ids=[
        "picture",
        "large picture",
        "random graph",
        "tree",
        "uneven",
        "chain",
        "no edges",
        "one node",
    ],
)
def test_plans_of_larger_models_are_those_of_the_twin(model):
    compare(model)
    compare(model, np.arange(model.n), model.network.graph.colouring().astype(np.int64))


@given(seed=SEEDS, size=st.sampled_from([1, 3, 2**40, 2**54]))
def test_any_order_and_any_keys_will_do(seed, size):
    """Keys so far apart that they cannot be joined to one number without being numbered first."""
    rng = np.random.default_rng(seed)
    edges = np.argwhere(np.triu(rng.random((25, 25)) < 0.4, 1))
    labels = rng.integers(1, 4, 25)
    model = Model([rng.random(d) for d in labels], edges, softmap.Potts(rng.random(len(edges))))
    rank = rng.permutation(25)
    level = model.network.graph.levels(rank).astype(np.int64) * int(rng.integers(1, 4))
    keys = rng.choice([-1, 0, 1, size // 2, size], len(edges))
    compare(model, rank, level, keys)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=40))
def test_strips_hold_edges_of_one_key(keys):
    """Keys from end to end of what 64 bits hold, on edges that nothing else tells apart."""
    count = len(keys)
    edges = np.column_stack([np.arange(count), np.arange(count) + count])
    model = Model(np.zeros((2 * count, 2)), edges, softmap.Potts(1.0))
    level = np.repeat([0, 1], count)
    made = core.plan(layout(model.network), np.arange(2 * count), level, np.array(keys), True)
    blocks, given_keys = made["blocks"].reshape(-1).view(BLOCK), np.array(keys)
    singles, tiles = blocks[blocks["count"] == 0], blocks[blocks["count"] > 0]
    for block in tiles:
        own = given_keys[made["edge"][block["lane"] : block["lane"] + block["count"]]]
        assert (own == own[0]).all()
        assert min(own[0], 2**31 - 1) == block["reach"] >= 0
    assert len(singles) + tiles["count"].sum() == count
    assert sorted(made["edge"][made["edge"] >= 0]) == list(range(count))


def test_what_is_no_order_is_refused():
    model = generators.random_grid(2, 2, 2, seed=0)
    rank, keys = np.arange(4), np.zeros(4, dtype=np.int64)
    with pytest.raises(ValueError, match="both ends of edge 0 are in one level"):
        core.plan(layout(model.network), rank, np.zeros(4, dtype=np.int64), keys, True)
    with pytest.raises(ValueError, match="node 2 has the level -1"):
        core.plan(layout(model.network), rank, np.array([0, 1, -1, 2]), keys, True)
    with pytest.raises(ValueError, match="key must have 4 entries"):
        core.plan(layout(model.network), rank, np.array([0, 1, 1, 2]), keys[:3], True)

"""The kernels of the CUDA backend, compiled for the host, against plain numpy."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from methods.cuda.conftest import host_built
from methods.cuda.pass_twin import Passes
from softmap import core
from softmap.methods.base import Proposal
from softmap.methods.cuda import DeviceEngine, HostDevice
from softmap.methods.cuda.anneal import judged_on_device
from softmap.methods.cuda.arena import Lam
from softmap.methods.cuda.tiling import LANES, TileLinks, Tiling, TilingLimits, levels_of
from softmap.relaxation.consistency import tighten
from softmap.relaxation.polytope import couple
from softmap.run.judge import Judge
from softmap.verification.dual import exact_bound
from support.small_models import random_model
from support.strategies import FAMILIES, models

DTYPES = {"float32": 2e-4, "float64": 1e-11}
pytestmark = pytest.mark.skipif(
    not host_built(), reason="the device kernels are not compiled for the host here"
)


def level_of(engine):
    tiling = engine.arena.tiling
    return np.searchsorted(tiling.level_start, tiling.place // LANES, side="right") - 1


def run(model, dtype, eta=8.0, passes=7):
    engine = DeviceEngine(model.network, HostDevice(), dtype, averaging=True, keeping=True)
    engine.start()
    engine.clock.set_eta(eta, 10.0)
    engine.passes(passes)
    return engine


@cache
def shaped(name):
    """Models of one family and label count, for which there are kernels of their own."""
    rng = np.random.default_rng(7)
    edges = softmap.generators.grid_edges(6, 7)
    weights = rng.random(len(edges))
    costs, few = rng.normal(size=(42, 5)), rng.normal(size=(42, 3))
    many = rng.normal(size=(42, 32))
    table = rng.normal(size=(2, 3, 3))
    return {
        "potts": lambda: softmap.Model(few, edges, softmap.Potts(weights)),
        "tables": lambda: softmap.generators.random_grid(6, 7, 3, seed=1),
        "linear": lambda: softmap.Model(costs, edges, softmap.TruncatedLinear(weights, 2.0)),
        "wide": lambda: softmap.Model(many, edges, softmap.TruncatedLinear(weights, 3.0)),
        "quadratic": lambda: softmap.Model(costs, edges, softmap.TruncatedQuadratic(weights, 3.0)),
        "shared": lambda: softmap.Model(
            few, edges, softmap.SharedTables(table, rng.integers(0, 2, len(edges)), weights)
        ),
        "random": lambda: softmap.generators.erdos_renyi(40, 3, seed=2),
    }[name]()


SHAPES = ("potts", "tables", "linear", "wide", "quadratic", "shared", "random")


@cache
def lam_of_twin(name, eta, level):
    """What seven passes of the twin find; all engines are held against it."""
    twin = Passes(shaped(name), np.array(level))
    twin.passes(7, eta)
    return twin.lam()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("eta", [8.0, 900.0])
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("spread", [True, False])
def test_passes_of_every_shape_follow_the_twin(name, eta, dtype, spread, monkeypatch):
    """Equal labels side by side, as on large grids, and the labels of each slot."""
    monkeypatch.setattr(
        "softmap.methods.cuda.tiling.LIMITS", TilingLimits(near=0.0 if spread else 0.5)
    )
    model = shaped(name)
    engine = run(model, dtype, eta)
    if spread and dtype == "float32" and name != "random":
        assert engine.arena.shape.kind >= 0
    expected = lam_of_twin(name, eta, tuple(level_of(engine).tolist()))
    assert (
        np.abs(engine.arena.lam(engine.messages.msg, Lam.PLAIN) - expected).max()
        < 10 * DTYPES[dtype]
    )


@cache
def tight(family, seed):
    return tighten(random_model(family, seed))


@cache
def polished_twin(family, seed, level):
    """λ after six passes of the twin, and what is left of it after three hard half-passes."""
    twin = Passes(tight(family, seed), np.array(level))
    twin.passes(6, 8.0)
    lam = twin.lam()
    for forward in (True, False, True):
        twin.half(forward, np.inf)
    return lam, twin.cut()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(4))
def test_passes_of_every_family_follow_the_twin(family, seed, dtype):
    """Ragged label counts, parallel edges; every fourth seed has hard constraints."""
    engine = run(tight(family, seed), dtype, passes=6)
    lam, cut = polished_twin(family, seed, tuple(level_of(engine).tolist()))
    assert np.abs(engine.arena.lam(engine.messages.msg, Lam.PLAIN) - lam).max() < DTYPES[dtype]
    engine._polish()
    assert (
        np.abs(engine.arena.lam(engine.messages.polished, Lam.CUT) - cut).max() < 10 * DTYPES[dtype]
    )


@given(models(max_d=3))
def test_a_bound_of_the_device_is_proved_by_its_lam(given):
    model = tighten(given)
    engine = run(model, "float32", eta=30.0, passes=3)
    bound, lam = engine.look().bound, engine.arena.lam(engine.messages.polished, Lam.CUT)
    proved = exact_bound(model, lam)
    assert bound <= proved
    assert proved - Fraction(bound) <= 1e-12 * (1.0 + np.abs(lam).sum())


@cache
def lp_optimum(name):
    return softmap.lp.solve(shaped(name)).value


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_look_is_what_the_judge_of_the_host_finds(name, dtype):
    model = shaped(name)
    engine = run(model, dtype, passes=10)
    found = engine.look()
    kappa, mu = (
        engine.arena.lam(engine.messages.msg, Lam.COUPLINGS),
        engine.arena.by_node(engine.points.mu),
    )
    priced = couple(model.network, mu, kappa, 8.0)
    size = 1.0 + abs(priced.cost)
    assert found.primals[0] == pytest.approx(priced.cost, abs=1e-12 * size)
    assert found.edge_entropy == pytest.approx(priced.entropy, abs=1e-10 * size)
    assert found.slack == pytest.approx(priced.slack, abs=1e-10 * size)
    mean = couple(model.network, engine.arena.by_node(engine.points.mean_mu), kappa, 8.0)
    assert found.primals[1] == pytest.approx(mean.cost, abs=1e-12 * size)
    judge = Judge.of(model.network)
    judge.look(Proposal(engine.arena.lam(engine.messages.polished, Lam.CUT), 8.0, kappa, (mu,)))
    assert 0 <= judge.best.lp_bound - found.bound < 1e-12 * size
    assert found.energy == pytest.approx(
        model.energy(engine.arena.labels(engine.points.label)), abs=1e-12
    )
    assert found.bound <= lp_optimum(name) <= min(found.primals) + 1e-9


def test_the_value_of_the_smoothed_dual_is_that_of_the_twin():
    model = shaped("tables")
    engine = run(model, "float64", passes=6)
    twin = Passes(model, level_of(engine))
    twin.passes(6, 8.0)
    smoothed = sum(twin.shift[h] for i in range(model.n) for h in twin.halves(i, False))
    for i in range(model.n):
        early, late = len(twin.halves(i, False)), len(twin.halves(i, True))
        share = twin.share(i)
        soft = share.min() - np.log(np.exp(-8.0 * (share - share.min())).sum()) / 8.0
        smoothed += (max(early, late, 1) - early) * soft
    assert engine.look().smoothed == pytest.approx(smoothed, rel=1e-12)


@given(models(max_n=6))
def test_tiles_hold_every_node_and_half_edge_once(model):
    level = levels_of(model.network)
    tiling = Tiling.of(model.network, level)
    assert len(np.unique(tiling.place)) == model.n
    assert len(np.unique(tiling.slot)) == 2 * model.m
    assert (tiling.mate[tiling.slot] == tiling.slot.reshape(-1, 2)[:, ::-1].reshape(-1)).all()
    assert tiling.tiles["used"].sum() == model.n
    of = tiling.group_tile[tiling.slot // LANES]
    assert (of == tiling.place[model.network.graph.node] // LANES).all()
    assert (level[model.edges[:, 0]] != level[model.edges[:, 1]]).all()


@given(models(max_n=6))
def test_half_edges_of_a_node_go_by_direction_level_and_neighbour(model):
    level, graph = levels_of(model.network), model.network.graph
    number, early = (
        np.empty(2 * model.network.m, dtype=np.int32),
        np.empty(model.network.n, dtype=np.int32),
    )
    core.order_halves(graph.node, graph.start, graph.half, level, level, number, early)
    far = graph.node.reshape(-1, 2)[:, ::-1].reshape(-1)
    later = level[far] > level[graph.node]
    order = np.lexsort([far, level[far], later, graph.node])
    expected = np.empty(2 * model.network.m, dtype=np.int64)
    expected[order] = np.arange(2 * model.network.m) - graph.start[graph.node[order]]
    assert (number == expected).all()
    assert (early == np.bincount(graph.node[~later], minlength=model.network.n)).all()


@given(st.lists(st.integers(0, 2**40), max_size=50))
def test_keys_are_ordered_stably(keys):
    order = np.empty(len(keys), dtype=np.int32)
    core.order_by(np.array(keys, dtype=np.int64), order)
    assert (order == np.argsort(keys, kind="stable")).all()


@given(models(max_n=6))
def test_links_hold_every_message_once_and_levels_send_along_all_edges(model):
    level = levels_of(model.network)
    tiling = Tiling.of(model.network, level)
    links = TileLinks.of(tiling, model.network.edges)
    m, node = model.network.m, model.network.graph.node
    where = links.where[tiling.slot].astype(np.int64)
    assert sorted(where.tolist()) == list(range(2 * m))
    assert (links.receiver[where] == tiling.place[node]).all()
    later = level[node] > level[node.reshape(-1, 2)[:, ::-1].reshape(-1)]
    assert ((where < m) == later).all()  # messages to later ends come first
    assert (where.reshape(-1, 2) % max(m, 1) == where.reshape(-1, 2)[:, :1] % max(m, 1)).all()
    for forward in (True, False):
        sent = [links.chunks(k, forward, 4) for k in range(int(level.max()) + 1)]
        every = [e for one in sent for first, last in one.tolist() for e in range(first, last)]
        assert sorted(every) == list(range(m))
        for number, one in enumerate(sent):
            for first, last in one.tolist():
                at = links.receiver[first:last] if not forward else links.receiver[m:][first:last]
                of = np.searchsorted(tiling.level_start, at // LANES, side="right") - 1
                assert last - first <= 4
                assert (of == number).all()


def test_random_graphs_with_tables_have_their_messages_by_edge():
    assert run(shaped("random"), "float32").arena.shape.linked
    assert run(shaped("random"), "float64").arena.shape.linked
    assert not run(shaped("tables"), "float32").arena.shape.linked


def test_grids_go_by_cyclic_diagonals_and_other_graphs_in_order():
    grid = softmap.generators.potts_grid(40, 30, 2)
    assert (
        levels_of(grid.network) == np.add.outer(np.arange(40), np.arange(30)).ravel() % 16
    ).all()
    tree = softmap.generators.random_tree(200, seed=1)
    assert (levels_of(tree.network) == tree.network.graph.levels(np.arange(200))).all()
    path = np.stack([np.arange(1999), np.arange(1, 2000)], axis=1)
    chain = softmap.Model(np.zeros((2000, 2)), path, softmap.Potts(np.ones(1999)))
    assert levels_of(chain.network).max() == 1
    cyclic = softmap.generators.erdos_renyi(400, 2, seed=1)
    assert (levels_of(cyclic.network) == cyclic.network.graph.colouring()).all()


def test_what_the_device_cannot_price_is_left_to_the_host():
    assert judged_on_device(shaped("potts").network)
    assert not judged_on_device(softmap.generators.ragged_constrained(12, seed=1).network)


def decoded_by_levels(model, lam, level):
    """The labels of least cost given later levels, and messages -λ from earlier ones."""
    labels = np.full(model.n, -1)
    for i in sorted(range(model.n), key=lambda i: -level[i]):
        cost = model.unary[model.network.node_offset[i] : model.network.node_offset[i + 1]].copy()
        for e, ends in enumerate(model.edges):
            for side in (0, 1):
                if ends[side] != i:
                    continue
                other, h = ends[1 - side], 2 * e + side
                if level[other] < level[i]:
                    cost -= lam[model.network.half_offset[h] : model.network.half_offset[h + 1]]
                else:
                    table = model.network.table(e)
                    cost += (table.T if side else table)[:, labels[other]]
        labels[i] = np.flatnonzero(cost <= cost.min() + 1e-5 * np.abs(lam).max())[0]
    return labels


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SHAPES)
def test_labels_are_decoded_level_by_level(name, dtype):
    engine = run(shaped(name), dtype, eta=20.0)
    engine.look()
    lam = engine.arena.lam(engine.messages.polished, Lam.PLAIN)
    assert np.array_equal(engine.decode(), decoded_by_levels(engine.model, lam, level_of(engine)))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_labels_of_every_family_are_decoded(family, seed):
    """Ragged label counts and parallel edges."""
    model = tight(family, seed)
    if not judged_on_device(model):
        pytest.skip("labels of such models are decoded on the host")
    engine = run(model, "float64", eta=20.0)
    engine.look()
    lam = engine.arena.lam(engine.messages.polished, Lam.PLAIN)
    assert np.array_equal(engine.decode(), decoded_by_levels(model, lam, level_of(engine)))

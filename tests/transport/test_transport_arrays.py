"""Transport over whole arrays (`backend="cuda"`) by numpy: against compiled passes, and HiGHS."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_transport import FAMILIES, assert_promises, optimum, problem

import softmap
from softmap import transport
from softmap.transport import stacks
from softmap.transport.arrays import ArrayNetwork
from softmap.transport.problem import TransportProblem


@pytest.fixture
def on_host(monkeypatch):
    monkeypatch.setenv("SOFTMAP_CUDA", "host")


@pytest.mark.parametrize("room", [None, 0])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), cycle=st.booleans(), momentum=st.booleans())
def test_the_verbs_are_those_of_the_compiled_network(room, seed, cycle, momentum):
    marginals, edges, tables = problem(seed, cycle)
    flipped = [edge[::-1] if k % 2 else edge for k, edge in enumerate(edges)]
    turned = [table.T if k % 2 else table for k, table in enumerate(tables)]
    checked = TransportProblem.of(marginals, flipped, turned, None)
    compiled, over = checked.compiled(), ArrayNetwork(checked, np, room)
    for eta in (2.0, 6.0):
        losses = [n.passes(3, eta, momentum, checked.ranges) for n in (compiled, over)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-6, abs=1e-9)
        for verb in ("messages", "sides", "multipliers"):
            out = np.zeros((2, len(checked.owner)))
            for network, row in zip((compiled, over), out, strict=True):
                getattr(network, verb)(*([] if verb == "messages" else [eta]), row)
            np.testing.assert_allclose(out[0], out[1], atol=1e-8)
        parts = checked.split(checked.averaged(out[0] * 0 + 1))
        for e, (i, j) in enumerate(flipped):
            costs = [n.coupled(e, eta, parts[i], parts[j]) for n in (compiled, over)]
            assert costs[0] == pytest.approx(costs[1], abs=1e-7)


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_a_run_keeps_its_promises(seed, cycle):
    marginals, edges, tables = problem(seed, cycle)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOFTMAP_CUDA", "host")
        patch.setattr(stacks, "BLOCK", 7)
        found = transport.multimarginal(marginals, edges, tables, backend="cuda")
        assert_promises(found, edges, tables, optimum(marginals, edges, tables))
    assert found.relative_gap <= 1e-3


@pytest.mark.parametrize("name", ["Potts", "truncated quadratic"])
def test_a_family_is_a_table(name, on_host):
    masses = np.random.default_rng(3).dirichlet(np.full(6, 0.5), size=3)
    edges, family = [[0, 3], [1, 3], [2, 3]], FAMILIES[name]
    tables = [family.as_table(0, 6, 6)] * 3
    for costs in (family, tables[0]):
        found = transport.multimarginal([*masses, 6], edges, costs, backend="cuda")
        assert_promises(found, edges, tables, optimum([*masses, 6], edges, tables))
        assert found.relative_gap <= 1e-3


def test_batches_and_gradients(on_host):
    rng = np.random.default_rng(0)
    a, b, cost = rng.dirichlet(np.ones(5), size=3), rng.dirichlet(np.ones(5)), rng.random((5, 5))
    here = transport.sinkhorn(a, b, cost, gap=1e-5)
    there = transport.sinkhorn(a, b, cost, gap=1e-5, backend="cuda")
    move = np.array([1e-3, -1e-3, 0.0, 0.0, 0.0])
    for one, other in zip(here, there, strict=True):
        assert one.cost == pytest.approx(other.cost, rel=2e-5)
        assert one.potentials[0] @ move == pytest.approx(other.potentials[0] @ move, abs=1e-6)
        np.testing.assert_allclose(other.plan(), one.plan(), atol=1e-3)


def test_costs_by_distance_take_no_memory_for_pairs():
    for family in FAMILIES.values():
        for rows, cols in ((4, 7), (7, 4), (5, 5)):
            near = np.stack([family.value(0, 0, np.arange(7)), np.arange(7.0)])
            view = stacks.distance_tables(np, near, rows, cols)
            np.testing.assert_array_equal(view[0], family.as_table(0, rows, cols))
            np.testing.assert_array_equal(view[1], abs(np.arange(rows)[:, None] - np.arange(cols)))
            assert view.strides[1] == -view.strides[2]


def test_a_batch_is_one_run_and_every_member_reaches_its_gap(on_host):
    rng = np.random.default_rng(4)
    a, b = rng.dirichlet(np.ones(5), size=3), rng.dirichlet(np.ones(4), size=3)
    costs = rng.random((3, 5, 4)) * np.array([1.0, 30.0, 0.1])[:, None, None]
    for one in (costs, costs[0], softmap.TruncatedLinear(0.3, 2.0)):
        found = transport.sinkhorn(a, b, one, gap=1e-4, backend="cuda")
        table = one if isinstance(one, np.ndarray) else one.as_table(0, 5, 4)
        tables = table if table.ndim == 3 else [table] * 3
        for k, (member, table) in enumerate(zip(found, tables, strict=True)):
            assert_promises(member, [[0, 1]], [table], optimum([a[k], b[k]], [[0, 1]], [table]))
            assert member.relative_gap <= 1e-4
            assert member.trace[-1].bound == member.bound
        assert len({member.trace[-1].passes for member in found}) == 1


def test_a_deadline_stops_a_run(on_host):
    rng = np.random.default_rng(1)
    a, b, cost = rng.dirichlet(np.ones(9)), rng.dirichlet(np.ones(9)), rng.random((9, 9))
    found = transport.sinkhorn(a, b, cost, gap=0.0, time_limit=0.0, backend="cuda")
    assert found.bound <= optimum([a, b], [[0, 1]], [cost]) <= found.cost + 1e-12


def test_an_unknown_backend_is_named():
    with pytest.raises(softmap.OptionError, match="backend"):
        transport.sinkhorn([1.0], [1.0], [[0.0]], backend="abacus")

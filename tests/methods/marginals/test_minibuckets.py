"""Bounds of mini-buckets, blocks and searches, against sums over all labellings."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings

import softmap
from softmap import core
from softmap.methods.marginals.blocks import BlockMeanField
from softmap.methods.marginals.cases import Cases, SumSearch
from softmap.methods.marginals.minibuckets import MiniBuckets
from softmap.methods.marginals.tables import LogTables
from support.strategies import models

NONE = np.zeros(0, np.int64)


def sums(model, kept):
    """The labels of some variables, and log of the sum of exp(-energy) over the others."""
    ranges = [range(int(d)) for d in model.network.num_labels[: model.network.num_visible]]
    out = {}
    for x in itertools.product(*ranges):
        key = tuple(x[v] for v in kept)
        out[key] = np.logaddexp(out.get(key, -math.inf), -model.energy(np.array(x)))
    return out


def slack(value):
    """Rounding errors of the oracle itself."""
    return 1e-11 * (1 + abs(value)) if math.isfinite(value) else 0.0


@settings(max_examples=10)
@given(models(max_n=5, max_d=3))
def test_mini_buckets_and_search_bound_the_sum(model):
    log_z = sums(model, ())[()]
    logs = LogTables.of(model.network, 1.0)
    search = SumSearch(Cases(logs, NONE, 4, core.Deadline()))
    for _ in range(3):
        assert search.lower <= log_z + slack(log_z)
        assert log_z <= search.upper + slack(log_z)
        search.step(core.Deadline())
    while search.step(core.Deadline()):
        pass
    assert search.lower <= log_z + slack(log_z)
    assert search.lower == pytest.approx(search.upper, abs=1e-8)
    assert BlockMeanField(logs, 4, core.Deadline()).lower(5) <= log_z + slack(log_z)


@settings(max_examples=10)
@given(models(max_n=5, max_d=3))
def test_marginal_map_is_enumeration(model):
    over = range(0, model.network.num_visible, 2)
    kept = tuple(range(1, model.network.num_visible, 2))
    by_labels = sums(model, kept)
    best = max(by_labels.values())
    for options in ({}, {"table": 2, "entries": 1}, {"table": 2, "time_limit": 0.0}):
        found = softmap.marginal_map(model, over, **options)
        assert found.variables.tolist() == list(kept)
        assert found.bound <= -best + slack(best)
        own = by_labels[tuple(found.labels.tolist())]
        assert not found.found or found.energy >= -own - slack(own)
    found = softmap.marginal_map(model, sum_over=over)
    assert found.status in (softmap.Status.OPTIMAL, softmap.Status.GAP)
    assert found.energy == pytest.approx(-best, abs=1e-5 * (1 + abs(best)))


def test_cases_are_the_conditioned_model():
    """The bound of a case with nothing split is log Z of the tables with these labels."""
    model = softmap.generators.random_grid(3, 3, 3, seed=2)
    logs = LogTables.of(model.network, 1.0)
    order = np.arange(9)
    cases = np.array([[0, 1], [2, 2], [1, 0]])
    found = MiniBuckets(logs, order, 0, 10**6, core.Deadline(), cases)
    assert found.exact
    for (last, before), upper in zip(cases.tolist(), found.upper, strict=True):
        fixed = softmap.exact_marginals(model.condition({8: last, 7: before})).log_partition
        assert upper == pytest.approx(fixed, abs=1e-9)
        given_ = MiniBuckets(
            logs.given([8, 7], [last, before]), range(7), 0, 10**6, core.Deadline()
        )
        assert given_.upper[0] == pytest.approx(fixed, abs=1e-9)


def test_matching_and_larger_tables_help():
    grid = softmap.generators.random_grid(7, 7, 2, seed=1)
    exact = softmap.exact_marginals(grid).log_partition
    small, large = (softmap.log_partition_bounds(grid, entries=1, table=t) for t in (8, 64))
    assert exact <= large.upper < small.upper
    assert small.lower < exact
    assert small.lower <= large.lower <= exact


def test_tables_are_freed_on_the_way():
    """log Z needs the memory of the tables at one time only, and an end of time is kept."""
    from softmap.methods.marginals.exact import exact_log_partition
    from softmap.relaxation.flat import elimination_order, live_entries

    logs = LogTables.of(softmap.generators.random_grid(8, 8, 2, seed=1).network, 1.0)
    order = elimination_order(logs.flat, 1e9)
    assert live_entries(logs.flat, order) < order.stored / 2
    assert exact_log_partition(logs, 1e9, core.Deadline(0.0)) is None
    native = core.LogSums(logs.flat.native, order.variables, 1, keep=False)
    assert native.up()
    with pytest.raises(ValueError, match="not kept"):
        native.down()


def test_marginal_map_refuses_what_it_cannot_do():
    model = softmap.generators.potts_grid(3, 3, 2, seed=1)
    for wrong in ("ab", 3, [9], [-1], ["x"]):
        with pytest.raises(softmap.OptionError, match="sum_over"):
            softmap.marginal_map(model, sum_over=wrong)
    with pytest.raises(softmap.OptionError, match="either sum_over"):
        softmap.marginal_map(model)
    with pytest.raises(softmap.OptionError, match="either sum_over"):
        softmap.marginal_map(model, [0], query=[1])
    with pytest.raises(softmap.OptionError, match="query"):
        softmap.marginal_map(model, query=[9])
    odd = np.where(np.eye(2), np.inf, 0.0)
    ring = softmap.Model(np.zeros((3, 2)), [[0, 1], [1, 2], [2, 0]], [odd] * 3)
    with pytest.raises(softmap.InfeasibleModel):
        softmap.marginal_map(ring, [0])


def test_the_query_is_what_is_not_summed_over():
    model = softmap.generators.potts_grid(3, 3, 2, seed=1)
    summed = softmap.marginal_map(model, sum_over=[0, 2, 4, 6, 8])
    asked = softmap.marginal_map(model, query=[7, 5, 3, 1])
    assert asked.variables.tolist() == summed.variables.tolist() == [1, 3, 5, 7]
    assert (asked.energy, asked.bound) == (summed.energy, summed.bound)


def test_sums_by_solve_are_deprecated_and_still_made():
    model = softmap.generators.potts_grid(3, 3, 2, seed=1)
    with pytest.deprecated_call(match="marginal_map"):
        old = softmap.solve(model, sum_over=[0, 1], gap=1e-3)
    assert old.energy == softmap.marginal_map(model, [0, 1], gap=1e-3).energy


def test_mini_buckets_look_at_the_deadline_before_every_table():
    """Buckets of a dense model have many parts, and every pair of them is matched."""
    n, d = 9, 3
    rng = np.random.default_rng(1)
    edges = [[i, j] for i in range(n) for j in range(i)]
    model = softmap.Model(rng.normal(size=(n, d)), edges, rng.normal(size=(len(edges), d, d)))
    logs, order = LogTables.of(model.network, 1.0), list(range(n))
    whole = MiniBuckets(logs, order, 0, d * d, core.Deadline())
    looks = 0
    while True:
        end = core.Deadline()
        end.stop_after(looks + 1)
        try:
            found = MiniBuckets(logs, order, 0, d * d, end)
        except core.OutOfTime:
            looks += 1
        else:
            break
    parts = range(1, n - 1)  # the first bucket has n - 1 tables, each of them a part
    assert looks >= len(edges) + n + sum(parts)
    assert np.array_equal(found.upper, whole.upper)

"""Exact marginals and bounds on log Z, against sums over all labellings."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings

import softmap
from support.strategies import models


def all_labellings(model):
    ranges = [range(int(d)) for d in model.network.num_labels[: model.network.num_variables]]
    return np.array(list(itertools.product(*ranges)))


def by_enumeration(model, eta):
    """log Z, and the marginals of nodes and edges, from every labelling."""
    states = np.array([model.network.complete(x) for x in all_labellings(model)])
    logs = np.array([-eta * model.energy(x) for x in all_labellings(model)])
    log_z = np.logaddexp.reduce(logs)
    p = np.exp(logs - log_z)
    nodes = [np.bincount(states[:, i], p, d) for i, d in enumerate(model.network.num_labels)]
    edges = [
        np.bincount(states[:, i] * model.network.num_labels[j] + states[:, j], p, t.size)
        for (i, j), t in zip(model.network.edges, model.network.tables(), strict=True)
    ]
    return log_z, np.concatenate(nodes), np.concatenate([*edges, np.zeros(0)])


@settings(max_examples=25)
@given(models(max_n=5, max_d=3))
def test_elimination_is_enumeration(model):
    exact = softmap.exact_marginals(model, 0.7)
    log_z, nodes, edges = by_enumeration(model, 0.7)
    assert exact.log_partition == pytest.approx(log_z, abs=1e-9)
    assert np.abs(exact.nodes - nodes).max() < 1e-9
    assert np.abs(exact.edges - edges).max(initial=0) < 1e-9


def test_products_with_eta_that_overflow_are_refused():
    model = softmap.Model([[0.0, 1e300], [1e300, 2e299]], [[0, 1]], softmap.Potts([1.0]))
    for sums in (softmap.log_partition_bounds, softmap.exact_marginals):
        with pytest.raises(softmap.OptionError, match="eta=1e"):  # it was called infeasible
            sums(model, 1e10)
    assert softmap.log_partition_bounds(model, 1e6).upper < 0.0


@pytest.mark.parametrize("offset", [1e12, 1e14, -1e15])
def test_marginals_keep_their_digits_beside_large_costs(offset):
    rng = np.random.default_rng(0)
    whole = rng.integers(-8, 9, (3, 3)) / 8.0  # added to an offset, none of them is rounded
    tables = rng.integers(-8, 9, (3, 3, 3)) / 8.0
    edges = [[0, 1], [1, 2], [0, 2]]
    plain = softmap.exact_marginals(softmap.Model(whole, edges, tables), 2.0)
    moved, other = whole.copy(), tables.copy()
    moved[1] += offset
    other[0] += offset
    model = softmap.Model(moved, edges, other, constant=offset)
    exact = softmap.exact_marginals(model, 2.0)
    assert np.abs(exact.nodes - plain.nodes).max() < 1e-12
    assert np.abs(exact.edges - plain.edges).max() < 1e-12
    assert exact.log_partition == pytest.approx(plain.log_partition - 6.0 * offset, rel=1e-15)


@settings(max_examples=25)
@given(models(max_n=5, max_d=3))
def test_bounds_hold(model):
    log_z = by_enumeration(model, 1.3)[0]
    lower, upper = softmap.log_partition_bounds(model, 1.3, entries=1, rounds=5)
    assert lower <= log_z <= upper
    labels = min(all_labellings(model), key=model.energy)
    with_labels = softmap.log_partition_bounds(model, 1.3, entries=1, rounds=5, labels=labels)
    assert -1.3 * model.energy(labels) - 1e-9 <= with_labels.lower <= log_z
    narrow = softmap.log_partition_bounds(model, 1.3)
    assert narrow.lower <= log_z + 1e-12 * abs(log_z)
    assert narrow.upper - narrow.lower <= 1e-8 * (1 + abs(log_z))


def test_mini_buckets_are_exact_on_trees_and_rounds_help_mean_field():
    tree = softmap.generators.random_tree(30, 3, seed=1)
    exact = softmap.exact_marginals(tree).log_partition
    assert softmap.log_partition_bounds(tree, entries=1).upper == pytest.approx(exact, abs=1e-8)
    grid = softmap.generators.random_grid(6, 6, 3, seed=1)
    none = softmap.log_partition_bounds(grid, entries=1, table=9, rounds=0)
    some = softmap.log_partition_bounds(grid, entries=1, table=9, rounds=20)
    exact = softmap.exact_marginals(grid).log_partition
    assert exact < some.upper
    assert none.lower < some.lower <= exact


def test_mean_field_obeys_hard_constraints_between_blocks():
    grid = softmap.generators.random_grid(5, 5, 3, seed=2)
    tables = np.stack(list(grid.network.tables()))
    tables[np.random.default_rng(1).uniform(size=tables.shape) < 0.05] = np.inf
    model = softmap.Model(grid.unary.reshape(-1, 3), grid.edges, tables)
    exact = softmap.exact_marginals(model).log_partition
    labels = softmap.solve(model).labels
    found = softmap.log_partition_bounds(model, entries=1, table=1)
    known = softmap.log_partition_bounds(model, entries=1, table=1, labels=labels)
    assert -np.inf < found.lower <= exact
    assert -model.energy(labels) < known.lower <= exact


def test_what_is_too_wide_or_impossible_is_refused():
    with pytest.raises(softmap.OptionError, match="more table entries"):
        softmap.exact_marginals(softmap.generators.random_grid(5, 5, 3), entries=100)
    odd = np.where(np.eye(2), np.inf, 0.0)
    ring = softmap.Model(np.zeros((3, 2)), [[0, 1], [1, 2], [2, 0]], [odd] * 3)
    with pytest.raises(softmap.InfeasibleModel):
        softmap.exact_marginals(ring)


@pytest.mark.parametrize("entries", [1, 1 << 20])
@pytest.mark.parametrize("size", [2.0**40, 2.0**47, 2.0**50])
def test_bounds_hold_beside_large_costs(size, entries):
    """Offsets of all labels of a variable, or a constant, move log Z by as much, exactly."""
    rng = np.random.default_rng(0)
    edges = [(i, j) for i in range(4) for j in range(i)]
    # multiples of 1/4 stay what they are when such numbers are added
    unary, tables = (rng.integers(-8, 8, s) / 4 for s in ((4, 3), (6, 3, 3)))
    log_z = by_enumeration(softmap.Model(unary, edges, tables), 1.0)[0]
    moved = {
        -4 * size: softmap.Model(unary + size, edges, tables),
        -size: softmap.Model(unary, edges, tables, constant=size),
        size: softmap.Model(unary, edges, tables, constant=-size),
        0.0: softmap.Model(unary + 3 * size, edges, tables - 2 * size),
    }
    for shift, model in moved.items():
        found = softmap.log_partition_bounds(model, labels=np.zeros(4, int), entries=entries)
        assert found.lower - shift <= log_z + 1e-9
        assert found.upper - shift >= log_z - 1e-9

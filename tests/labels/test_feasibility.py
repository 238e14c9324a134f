"""The search for feasible labels against enumeration: verdicts, labels, and what a proof names."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap import core
from softmap.labels import feasibility
from softmap.labels.exact import solve_exact
from softmap.labels.feasibility import (
    FeasibilityNumbers,
    FeasibleSearch,
    HardConstraints,
    find_feasible,
    infeasibility,
    small_core,
)
from softmap.model import Model
from softmap.model.many import AllDifferent, Cardinality, Linear
from support.factor_costs import cost_of
from support.oracles import energy_by_hand
from support.strategies import models, seeds


def _obeys(constraints, labels):
    """Whether labels obey all constraints, by reading their tables."""
    counts = constraints.num_labels
    offset = np.cumsum(counts) - counts
    if not constraints.allowed[offset + labels].all():
        return False
    for (i, j), table in zip(constraints.edges.tolist(), constraints.tables, strict=True):
        if not table.reshape(counts[i], counts[j])[labels[i], labels[j]]:
            return False
    for scope, table in constraints.larger:
        if not table.reshape(counts[scope])[tuple(labels[scope])]:
            return False
    if any(len(set(labels[c].tolist())) < len(c) for c in constraints.cliques):
        return False
    return all(
        _many_obeyed(f, labels[list(f.variables)].tolist(), counts[list(f.variables)].tolist())
        for f in constraints.many
    )


def _many_obeyed(factor, labels, sizes):
    if isinstance(factor, AllDifferent):
        return len(set(labels)) == len(labels)
    return math.isfinite(cost_of(factor, labels, sizes))


def _twin(constraints):
    """Some labels that obey all constraints, by enumeration; None if there are none."""
    for labels in itertools.product(*map(range, constraints.num_labels.tolist())):
        if _obeys(constraints, np.array(labels)):
            return labels
    return None


def _table(rng, shape, share):
    return (rng.random(shape) >= share).ravel()


def _random_constraints(seed):
    """Constraints of every kind over few variables, about half of them infeasible."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    counts = rng.integers(1, 5, n)
    share = rng.uniform(0.1, 0.6)
    pick = lambda k: rng.permutation(n)[:k]  # noqa: E731
    pairs = [pick(2) for _ in range(int(rng.integers(0, 2 * n)))]
    triples = [pick(3) for _ in range(int(rng.integers(0, 3)))] if n > 2 else []
    many = []
    for _ in range(int(rng.integers(0, 3))):
        scope = pick(int(rng.integers(2, n + 1))).tolist()
        kind, size = int(rng.integers(3)), len(scope)
        if kind == 0:
            many.append(AllDifferent(scope))
        elif kind == 1:
            costs = np.where(rng.random(size + 1) < 0.5, np.inf, rng.random(size + 1))
            many.append(Cardinality(scope, int(rng.integers(3)), costs))
        else:
            low = int(rng.integers(-4, 5))
            high = low + int(rng.integers(0, 4))
            many.append(Linear(scope, rng.integers(-4, 5, size).tolist(), low=low, high=high))
    return HardConstraints(
        num_labels=counts.astype(np.int64),
        allowed=rng.random(int(counts.sum())) >= 0.1,
        edges=np.array(pairs, dtype=np.int64).reshape(-1, 2),
        tables=[_table(rng, counts[p], share) for p in pairs],
        larger=[(t.astype(np.int64), _table(rng, counts[t], share)) for t in triples],
        cliques=[],
        many=many,
    )


@given(seeds)
def test_verdicts_are_those_of_enumeration(seed):
    constraints = _random_constraints(seed)
    search = FeasibleSearch(constraints)
    assert search.run()
    assert search.found == (_twin(constraints) is not None)
    if search.found:
        assert _obeys(constraints, search.labels)


def _tight_factors(seed, n=9, d=3, share=0.27):
    """Pairs and triples, so that labels just exist or just do not."""
    rng = np.random.default_rng(seed)
    factors = []
    for pair in itertools.combinations(range(n), 2):
        if rng.random() < 0.7:
            factors.append((pair, np.where(rng.random((d, d)) < share, np.inf, 0.0)))
    for _ in range(4):
        scope = tuple(rng.permutation(n)[:3].tolist())
        factors.append((scope, np.where(rng.random((d, d, d)) < 0.25, np.inf, 0.0)))
    return factors


def _tight_model(seed, n=9, d=3, share=0.27):
    return Model.from_factors([d] * n, _tight_factors(seed, n, d, share))


def test_clauses_learned_from_conflicts_exclude_no_labels():
    every = np.indices([3] * 9).reshape(9, -1)
    verdicts, conflicts = [], 0
    for seed in range(60):
        model = _tight_model(seed)
        search = FeasibleSearch(HardConstraints.of(model.network))
        search.run()
        left = np.ones(every.shape[1], dtype=bool)
        for scope, table in _tight_factors(seed):
            left &= np.isfinite(table)[tuple(every[list(scope)])]
        exists = bool(left.any())
        assert search.found == exists
        if search.infeasible:
            kept = np.zeros(search.constraints.count, dtype=bool)
            kept[search.core()] = True
            again = FeasibleSearch(search.constraints.restricted(kept))
            again.run()
            assert again.infeasible
        verdicts.append(exists)
        conflicts += search.conflicts
    assert 10 < sum(verdicts) < 50
    assert conflicts > 50


def test_long_searches_agree_with_branch_and_bound():
    verdicts, conflicts = [], 0
    for seed in range(16):
        model = _tight_model(seed, n=30, d=5, share=0.13)
        search = FeasibleSearch(HardConstraints.of(model.network))
        search.run()
        assert search.found != solve_exact(model.network).infeasible
        if search.found:
            assert np.isfinite(model.energy(search.labels))
        verdicts.append(search.found)
        conflicts += search.conflicts
    assert 2 < sum(verdicts) < 14
    assert conflicts > 500


@given(seeds)
def test_a_proof_names_constraints_that_contradict_each_other(seed):
    constraints = _random_constraints(seed)
    search = FeasibleSearch(constraints)
    search.run()
    if not search.infeasible:
        return
    for numbers in (search.core(), small_core(search, None, 2.0)):
        kept = np.zeros(constraints.count, dtype=bool)
        kept[numbers] = True
        assert _twin(constraints.restricted(kept)) is None
    for number in numbers.tolist():  # the small one has no constraint too many
        fewer = kept.copy()
        fewer[number] = False
        assert _twin(constraints.restricted(fewer)) is not None


@given(seeds)
def test_models_with_larger_factors_are_decided(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    counts = rng.integers(2, 5, n).tolist()
    factors = [((i,), np.where(rng.random(d) < 0.15, np.inf, 0.0)) for i, d in enumerate(counts)]
    factors.append(AllDifferent(rng.permutation(n)[: int(rng.integers(2, n + 1))].tolist()))
    weights = rng.integers(-3, 4, n).tolist()
    factors.append(Linear(list(range(n)), weights, low=int(rng.integers(-3, 3)), high=3))
    try:
        model = Model.from_factors(counts, factors)
    except softmap.InfeasibleModel:
        return
    every = np.array(list(itertools.product(*map(range, counts))))
    exists = bool(np.isfinite(model.energy(every)).any())
    try:
        found = find_feasible(model.network, None)
        assert exists
        assert np.isfinite(model.energy(found))
    except softmap.InfeasibleModel:
        assert not exists


@given(models(hard=True, max_n=6), seeds)
def test_hidden_labellings_are_found_in_models_of_every_family(model, seed):
    wish = np.random.default_rng(seed).random(len(model.unary))
    labels = find_feasible(model.network, wish)
    assert np.isfinite(energy_by_hand(model, model.network.complete(labels)))


@given(models(max_n=4), st.floats(0.1, 3.0))
def test_a_barrier_forbids_the_costs_above_it(model, barrier):
    constraints = HardConstraints.of(model.network, barrier=barrier)
    for labels in itertools.product(
        *map(range, model.network.num_labels[: model.network.num_variables].tolist())
    ):
        x = model.network.complete(np.array(labels))
        costs = [model.network.unary[model.network.node_slice(i)] for i in range(model.network.n)]
        above = [c[x[i]] - _least(c) for i, c in enumerate(costs)]
        for e, (i, j) in enumerate(model.network.edges.tolist()):
            if max(i, j) < model.network.num_variables:
                table = model.network.table(e)
                above.append(table[x[i], x[j]] - _least(table))
        near = any(abs(a - barrier) < 1e-9 for a in above)  # products are rounded down
        assert near or _obeys(constraints, np.array(labels)) == all(a < barrier for a in above)


def _least(costs):
    finite = costs[np.isfinite(costs)]
    return finite.min() if len(finite) else 0.0


def test_preferred_labels_are_taken_where_they_are_feasible():
    tables = np.array([[[0, np.inf], [np.inf, 0]]] * 2)
    model = Model(np.zeros((3, 2)), [[0, 1], [1, 2]], 1.0 - np.isinf(tables).astype(float))
    wish = np.array([0.0, 1.0, 1.0, 0.0, 0.0, 1.0])
    assert find_feasible(model.network, wish).tolist() == [1, 0, 1]


def _pigeons(count, names=None):
    """`count` pigeons in one hole fewer: arc consistent, yet infeasible."""
    different = np.where(np.eye(count - 1, dtype=bool), np.inf, 0.0)
    pairs = list(itertools.combinations(range(count), 2))
    model = Model(np.zeros((count, count - 1)), pairs, [different] * len(pairs))
    return model if names is None else model.with_names(names)


def test_pigeons_are_refuted_by_a_matching():
    with pytest.raises(softmap.InfeasibleModel, match="the pairs over variables a, b, c, d") as bad:
        find_feasible(_pigeons(4, list("abcd")).network, None)
    assert [(c.kind, c.variables) for c in bad.value.constraints] == [("pairs", (0, 1, 2, 3))]
    assert bad.value.variable == 0


def test_pigeons_without_a_matching_are_refuted_and_limits_are_kept():
    few = FeasibilityNumbers(clique_edges=0)
    with pytest.raises(softmap.InfeasibleModel):
        find_feasible(_pigeons(6).network, None, numbers=few)
    assert find_feasible(_pigeons(12).network, None, conflicts=50, numbers=few) is None
    assert (
        find_feasible(_pigeons(12).network, None, deadline=core.Deadline(0.0), numbers=few) is None
    )
    assert infeasibility(_pigeons(12).network, core.Deadline(0.0), few).constraints == ()
    search = FeasibleSearch(HardConstraints.of(_pigeons(12).network, numbers=few))
    stop = core.Deadline()
    stop.stop_after(200)
    assert not search.run(deadline=stop)
    assert search.conflicts > 0


def test_too_large_models_are_left_alone():
    assert find_feasible(_pigeons(6).network, None, numbers=FeasibilityNumbers(entries=10)) is None


def test_a_run_finds_colours_that_the_relaxation_does_not():
    """Queens on a board of 7 x 7 with 7 colours: all marginals of the relaxation are equal."""
    cells = list(itertools.product(range(7), range(7)))
    pairs = [
        (a, b)
        for a, b in itertools.combinations(range(49), 2)
        if cells[a][0] == cells[b][0]
        or cells[a][1] == cells[b][1]
        or abs(cells[a][0] - cells[b][0]) == abs(cells[a][1] - cells[b][1])
    ]
    different = np.where(np.eye(7, dtype=bool), np.inf, 0.0)
    result = softmap.solve(Model(np.zeros((49, 7)), pairs, [different] * len(pairs)))
    assert result.energy == result.bound == 0.0


def test_a_run_says_which_constraints_contradict_each_other():
    lone = Model.from_factors(
        [3, 3, 3, 2],
        [
            ((0, 1), np.where(np.eye(3) > 0, np.inf, 0.0)),
            ((1, 2), np.where(np.eye(3) > 0, np.inf, 0.0)),
            ((0, 2), np.where(np.eye(3) > 0, np.inf, 0.0)),
            Linear([0, 1, 2], [1, 1, 1], high=2),
        ],
    )
    with pytest.raises(softmap.InfeasibleModel) as bad:
        softmap.solve(lone)
    named = {v for c in bad.value.constraints for v in c.variables}
    assert named == {0, 1, 2}


def test_constraints_that_arc_consistency_has_used_are_named_as_well():
    """Arc consistency removes joint states of the factor, by the pairs around it."""
    inf = np.inf
    model = Model.from_factors(
        [2, 2, 2, 3],
        [
            ((0, 2), [[inf, inf], [0.0, 0.0]]),
            ((1, 2), [[0.0, inf], [inf, 0.0]]),
            ((1, 2, 3), [[[0.0, inf, inf], [inf, 0.0, inf]], [[0.0, inf, 0.0], [inf] * 3]]),
            ((0, 3), [[0.0, 0.0, 0.0], [inf, 0.0, 0.0]]),
        ],
    )
    with pytest.raises(softmap.InfeasibleModel) as bad:
        softmap.solve(model)
    named = {c.variables for c in bad.value.constraints}
    assert named == {(0, 2), (1, 2), (1, 2, 3), (0, 3)}


def test_the_error_survives_pickling():
    import pickle

    error = infeasibility(_pigeons(4).network)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.variable, copy.constraints) == (
        str(error), error.variable, error.constraints,
    )  # fmt: skip


@given(seed=seeds, count=st.integers(0, 8))
def test_which_tables_forbid_equal_labels(seed, count):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, size=(count, 2))
    tables = [rng.random(shape) < 0.4 for shape in sizes.tolist()]
    expected = [not np.diagonal(table).any() for table in tables]
    found = feasibility._all_different(sizes, [table.ravel() for table in tables])
    assert found.tolist() == expected


def test_tables_in_blocks_are_the_constraints_and_the_deadline_is_looked_at_before_each(
    monkeypatch,
):
    rng = np.random.default_rng(0)
    tables = rng.uniform(size=(9, 3, 3))
    tables[::2, 0, 1] = np.inf
    edges = [(i, i + 1) for i in range(9)]
    model = Model(rng.uniform(size=(10, 3)), edges, softmap.Tables(tables))
    whole = feasibility.HardConstraints.of(model.network)
    monkeypatch.setattr(feasibility, "BLOCK", 20)
    parts = feasibility.HardConstraints.of(model.network, deadline=core.Deadline())
    assert parts.edges.tolist() == whole.edges.tolist() == [list(pair) for pair in edges[::2]]
    assert all(np.array_equal(a, b) for a, b in zip(parts.tables, whole.tables, strict=True))
    for looks in (1, 2, 4):
        end = core.Deadline()
        end.stop_after(looks)
        with pytest.raises(core.OutOfTime):
            feasibility.HardConstraints.of(model.network, deadline=end)

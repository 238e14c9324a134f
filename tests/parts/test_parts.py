"""Passes over parts are passes over the whole, in another order; their certificates hold."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap import InfeasibleModel, ModelError, OptionError, distributed, generators
from softmap.app.cli.app import main
from softmap.methods.policy import Ask
from softmap.methods.sweeps.anneal import Anneal
from softmap.model.partition import blocks, halvings, partition
from softmap.parts.cut import cut_model
from softmap.parts.run import judge as judged
from softmap.run.judge import Judge
from softmap.run.memory import memory_of_run
from softmap.run.problem import Problem
from support.oracles import brute_force
from support.strategies import few, models
from support.whole_runs import check, labels_of, numbers


def cut_size(edges, part):
    """The number of edges between different parts."""
    return int((part[edges[:, 0]] != part[edges[:, 1]]).sum())


@given(models(), st.integers(1, 5), st.sampled_from(["own", "auto"]))
def test_certificates_hold(model, parts, method):
    if len(model.network.auxiliaries):
        with pytest.raises(ModelError, match="cannot be cut"):
            distributed.solve(model, parts=parts)
        return
    try:
        best = softmap.lp.solve(model).value
    except InfeasibleModel:
        with pytest.raises(InfeasibleModel):
            distributed.solve(model, parts=parts, partition=method, max_passes=40, threads=1)
        return
    found = distributed.solve(model, parts=parts, partition=method, max_passes=40, threads=1)
    check(model, found)
    scale = 1e-6 * (1 + abs(best))
    assert found.bound <= best + scale <= found.primal + 2 * scale
    assert found.energy >= found.bound - scale


@given(st.integers(0, 10**6), st.integers(1, 6), st.floats(-100, 100))
def test_the_energy_is_that_of_the_labels_to_the_bit(seed, parts, constant):
    model = generators.erdos_renyi(18, 3, seed=seed).replace(constant=constant)
    found = distributed.solve(model, parts=parts, partition="own", max_passes=5, threads=1)
    assert found.energy == model.energy(labels_of(model, [found.labels]))


def test_one_part_is_the_solver_people_use():
    """The same passes, the same questions at the same time, the same numbers to the bit."""
    for model in (
        generators.random_grid(9, 9, 4, seed=1),
        generators.erdos_renyi(50, 3, seed=2),
        generators.potts_grid(12, 12, 3, seed=3),
    ):
        found = distributed.solve(model, parts=1, threads=1)
        expected = softmap.solve(model, goal="lp", threads=1)
        assert [row.sweeps for row in found.trace] == [row.sweeps for row in expected.trace]
        bounds = [row.bound for row in expected.trace]  # rounded down in another way
        assert [row.bound for row in found.trace] == pytest.approx(bounds, rel=1e-13)
        assert found.primal == pytest.approx(expected.primal, rel=1e-13)


def test_a_whole_look_is_that_of_one_machine(monkeypatch):
    """Hard constraints: labels are found in other ways, but every look finds the same numbers."""
    model = generators.ragged_constrained(30, max_labels=4, seed=2)
    asked = []

    def noted(*arguments):
        asked.append(arguments[2])
        return judged(*arguments)

    monkeypatch.setattr("softmap.parts.run.judge", noted)
    found = distributed.solve(model, parts=1, threads=1)
    problem = Problem.of(model)
    tight = problem.model
    method, judge = Anneal(), Judge.of(tight)
    state = method.init(tight, None, 0)
    for row, question in zip(found.trace, asked, strict=True):
        method.step(state, int(row.sweeps) - state.passes)
        if question is Ask.BOUND:
            judge.best.offer_lam(method.answer(state, Ask.BOUND).lam)
        else:
            method.observe(state, judge.look(method.answer(state, question)))
        assert problem.bound_back(judge.best.lp_bound) == pytest.approx(row.bound, rel=1e-13)
        assert row.primal <= problem.cost_back(judge.best.point_cost)


def test_the_cut_does_not_show_where_the_order_is_the_same():
    """Parts that all touch each other go by the colours of variables, however they are cut."""
    model = generators.erdos_renyi(60, 3, c=5.0, seed=2)
    found = []
    for parts in (4, 7, 11):
        part = partition(model.network, parts, "own")
        touching = {tuple(sorted(pair)) for pair in part[model.edges].tolist()}
        pairs = itertools.combinations(range(parts), 2)
        assert touching >= set(pairs), "the premise: all parts touch each other"
        found.append(
            distributed.solve(
                model, parts=parts, partition="own", threads=1, max_passes=40, lp_gap=0.0
            )
        )
    for result in found:
        check(model, result)
        assert result.bound == pytest.approx(found[0].bound, abs=1e-9)
        assert result.primal == pytest.approx(found[0].primal, abs=1e-9)


def test_threads_and_constants_change_nothing():
    model = generators.random_grid(40, 40, 3, seed=5)
    moved = model.replace(constant=100.0)
    first = distributed.solve(model, parts=4, threads=1, max_passes=20, lp_gap=0.0)
    other = distributed.solve(model, parts=4, threads=2, max_passes=20, lp_gap=0.0)
    assert numbers(first) == numbers(other)
    shifted = distributed.solve(moved, parts=4, threads=1, max_passes=20, lp_gap=0.0)
    assert shifted.bound == pytest.approx(first.bound + 100.0)
    assert shifted.energy == pytest.approx(first.energy + 100.0)


def test_labels_are_as_good_as_the_best_on_small_trees():
    model = generators.random_tree(7, 3, seed=4)
    found = distributed.solve(model, parts=3, partition="own", threads=1)
    assert found.energy == pytest.approx(brute_force(model)[0])
    assert found.status.name == "OPTIMAL"


@few
@given(st.integers(2, 9), st.sampled_from(["grid", "tree", "random"]))
def test_parts_are_even_and_none_is_empty(parts, kind):
    model = {
        "grid": lambda: generators.potts_grid(17, 23, 2),
        "tree": lambda: generators.random_tree(300, 2, seed=1),
        "random": lambda: generators.erdos_renyi(200, 2, seed=1),
    }[kind]()
    for found in (partition(model.network, parts), halvings(model.edges, model.n, parts)):
        sizes = np.bincount(found, minlength=parts)
        assert len(sizes) == parts
        assert sizes.min() > 0
        assert sizes.max() <= 1.4 * model.n / parts + 2


def test_the_order_of_ties_in_a_sort_does_not_change_our_partition(monkeypatch):
    """Sorts that are not stable order ties by the vector instructions of the processor."""
    wanted = [
        (generators.random_tree(300, 2, seed=1), 7),
        (generators.erdos_renyi(60, 3, seed=2), 11),
        (generators.potts_grid(17, 23, 2), 5),
    ]
    expected = [halvings(model.edges, model.n, parts) for model, parts in wanted]
    sort = np.argsort

    def last_first(values, axis=-1, kind=None, **options):
        if kind is None and np.ndim(values) == 1:
            return np.lexsort((-np.arange(len(values)), values))
        return sort(values, axis=axis, kind=kind, **options)

    monkeypatch.setattr(np, "argsort", last_first)
    for (model, parts), part in zip(wanted, expected, strict=True):
        assert np.array_equal(halvings(model.edges, model.n, parts), part)


def test_cuts_are_small():
    grid = generators.potts_grid(60, 60, 2)
    best = cut_size(grid.edges, blocks((60, 60), 4))
    assert best == 120
    assert cut_size(grid.edges, halvings(grid.edges, grid.n, 4)) <= 2 * best
    metis = pytest.importorskip("pymetis")
    random = generators.erdos_renyi(500, 2, seed=3)
    for model in (grid, random):
        graph = model.network.graph
        near = metis.CSRAdjacency(adj_starts=graph.start, adjacent=graph.node[graph.half ^ 1])
        cut, _ = metis.part_graph(4, near)
        assert cut_size(model.edges, halvings(model.edges, model.n, 4)) <= 2 * cut


def test_every_edge_counts_once():
    model = generators.random_grid(8, 9, 3, seed=1)
    _, parts = cut_model(model.network, partition(model.network, 6))
    counted = np.zeros(model.m, dtype=int)
    for part in parts:
        early, _ = part.ends
        counted[part.edges[early < part.own]] += 1
    assert (counted == 1).all()
    assert np.array_equal(np.sort(np.concatenate([p.nodes[: p.own] for p in parts])), range(72))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model": 3}, "a Model or the folder"),
        ({"comm": "world"}, "a communicator"),
        ({"parts": 0}, "parts=0"),
        ({"partition": "fair"}, "partition='fair'"),
        ({"partition": "grid"}, "shape of the grid"),
        ({"lp_gap": -1}, "lp_gap=-1"),
        ({"max_passes": 1.5}, "max_passes=1.5"),
        ({"checkpoint": "no/where"}, "a folder to write into"),
        ({"eta": 0}, "eta=0"),
    ],
)
def test_wrong_arguments_are_named(options, words):
    model = generators.random_tree(10)
    with pytest.raises(OptionError, match=words):
        distributed.solve(**({"model": model} | options))


def test_absurd_scales_are_refused():
    model = generators.random_tree(10)
    with pytest.raises(ModelError, match="multiply all costs"):
        distributed.solve(
            model.replace(
                unary=model.unary * 1e-200, potentials=[p.scaled(1e-200) for p in model.potentials]
            ),
            parts=2,
        )


def test_a_process_keeps_its_memory_limit(tmp_path, capsys):
    model = softmap.generators.potts_grid(8, 8, 3, seed=1)
    needed = memory_of_run(model.network)
    assert distributed.solve(model, max_passes=1, memory_limit=2 * needed).found
    with pytest.raises(softmap.NotEnoughMemory, match="for each process"):
        distributed.solve(model, max_passes=1, memory_limit=needed // 2)
    softmap.write(model, tmp_path / "grid.npz")
    pytest.importorskip("mpi4py")
    out = ["--out", str(tmp_path / "out")]
    command = ["solve-large", str(tmp_path / "grid.npz"), *out, "--memory-limit", "1M"]
    assert main(command) == 2
    distributed.write_parts(model, tmp_path / "parts", 2)
    command = ["solve-large", str(tmp_path / "parts"), *out, "--proof", str(tmp_path / "p")]
    assert main(command) == 2
    assert "--proof needs a model file" in capsys.readouterr().err

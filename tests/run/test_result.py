"""Results are data: they pickle, copy, compare and save, and keep nothing alive."""

import copy
import pickle
import threading
from dataclasses import replace

import numpy as np
import pytest

import softmap
from softmap import generators, lp, solve
from softmap.drive.record import by_relaxation
from softmap.errors import FormatError
from softmap.model import Model
from softmap.run.evidence import Stated
from softmap.subsolvers.clusters.cluster_evidence import ClusterEvidence
from support.oracles import violation

MODELS = {
    "potts": lambda: generators.potts_grid(5, 5, 3, seed=1),
    "tables": lambda: generators.erdos_renyi(12, 3, seed=2),
    "hard": lambda: generators.ragged_constrained(9, max_labels=4, seed=3),
    "edgeless": lambda: Model([[0.0, 1.0], [2.0, 1.0]], np.zeros((0, 2), int), []),
}


def solved(name: str, **options) -> softmap.Result:
    model = MODELS[name]()
    return solve(model, threads=2, max_work=2 * model.m * 30, **options)


def same(a: softmap.Result, b: softmap.Result) -> None:
    assert a == b
    assert hash(a) == hash(b)
    np.testing.assert_array_equal(a.node_marginals, b.node_marginals)
    np.testing.assert_array_equal(a.edge_marginals, b.edge_marginals)


@pytest.mark.parametrize("name", MODELS)
def test_a_result_survives_pickling_copying_and_saving(name, tmp_path):
    result = solved(name)
    same(pickle.loads(pickle.dumps(result)), result)
    same(copy.deepcopy(result), result)
    path = tmp_path / "result.npz"
    for target in (path, tmp_path / "result.npz.gz"):
        result.save(target)
        same(softmap.load_result(target), result)
    same(softmap.load_result(path, MODELS[name]()), result)
    result.save(path, with_model=False)
    same(softmap.load_result(path, MODELS[name]()), result)


def test_a_loaded_result_warm_starts_a_run(tmp_path):
    result = solved("tables")
    result.save(tmp_path / "result.npz")
    loaded = softmap.load_result(tmp_path / "result.npz")
    options = {"threads": 1, "max_work": 200}
    again, first = (solve(r.model, warm_start=r, **options) for r in (loaded, result))
    assert again.bound == first.bound


def test_different_results_differ():
    result = solved("potts")
    assert result != solved("tables")
    assert result != replace(result, bound=result.bound - 1.0)
    assert result != replace(result, labels=result.labels[::-1] + 1)
    assert result != replace(result, model=result.model.replace(constant=1.0))
    assert result != "a result"


def test_a_file_that_does_not_fit_is_refused(tmp_path):
    result, path = solved("potts"), tmp_path / "result.npz"
    result.save(path, with_model=False)
    with pytest.raises(FormatError, match="without its model"):
        softmap.load_result(path)
    with pytest.raises(FormatError, match="another model"):
        softmap.load_result(path, result.model.replace(constant=1.0))
    with pytest.raises(FormatError, match="no such result"):
        softmap.load_result(tmp_path / "missing.npz")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(FormatError, match="not a softmap result"):
        softmap.load_result(path)
    solve(result.model, checkpoint=path, max_work=100)
    with pytest.raises(FormatError, match="expected a result, found a checkpoint"):
        softmap.load_result(path)


def test_a_result_keeps_no_thread_alive():
    before = set(threading.enumerate())
    result = solved("tables")
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=30.0)
        assert not thread.is_alive()
    assert result.threads == 2


@pytest.mark.parametrize("seed", range(6))
def test_primal_is_the_cost_of_the_marginals_next_to_forbidden_pairs(seed):
    """Large tables with +inf: some edges get exact transport, in the price and in the point."""
    rng = np.random.default_rng(seed)
    d, edges = 7, [(i, i + 1) for i in range(5)] + [(0, 3), (1, 4)]
    tables = rng.normal(size=(len(edges), d, d))
    tables[rng.random(tables.shape) < 0.35] = np.inf
    tables[:, np.arange(d), np.arange(d)] = rng.normal(size=(len(edges), d))
    model = Model(rng.normal(size=(6, d)), edges, tables)
    for most in (1, 5, 20):
        result = solve(model, threads=1, max_work=2 * model.m * most, lp_gap=0.0, gap=0.0)
        point = result.point.make()
        assert violation(model, point.nodes, point.edges).max <= 1e-9
        assert point.cost == pytest.approx(result.primal, rel=1e-9, abs=1e-9)
        assert lp.solve(model).value <= result.primal + 1e-7


def test_a_proof_prints_in_one_line():
    cycle = softmap.Model(np.zeros((3, 2)), [[0, 1], [1, 2], [0, 2]], softmap.Potts(-1.0))
    for goal in ("map", "optimal"):
        result = softmap.solve(cycle, goal=goal)
        assert result.bound == result.energy == -2.0
        assert len(repr(result.proof)) < 200
        assert result.proof.text in repr(result.proof)
    large = ClusterEvidence(clusters=((0, 1, 2),) * 500, lam=np.zeros(10**5))
    assert "500 of them" in repr(large)
    assert len(repr(large)) < 200


@pytest.mark.parametrize("seed", range(6))
def test_a_search_has_no_credit_for_what_the_relaxation_proved(seed):
    """A bound that λ proves as well as the status says is one that can be checked."""
    model = softmap.generators.erdos_renyi(24, 3, seed=seed)
    result = softmap.solve(model, goal="optimal")
    assert result.bound <= result.energy
    own = result.relative_gap(result.energy - result.lp_bound)
    if own <= 1e-9:
        assert result.proof.kind == "relaxation"
        assert result.bound == result.lp_bound
    assert result.status is softmap.Status.OPTIMAL
    assert softmap.verify(result).holds


@pytest.mark.parametrize("gained", [1e-6, 1e-4, 0.5])
def test_a_search_is_named_where_it_has_proved_something(gained):
    """A thousandth of the relaxation's gap is not worth a bound that cannot be checked."""
    model = softmap.generators.erdos_renyi(24, 3, seed=1)
    plain = softmap.solve(model, goal="lp", max_work=300)
    gap = plain.energy - plain.lp_bound
    assert gap > 0
    searched = replace(
        plain, bound=plain.lp_bound + gained * gap, proof=Stated(nodes=5),
        status=softmap.Status.TIME_LIMIT,
    )  # fmt: skip
    named = by_relaxation(searched)
    assert (named.proof.kind == "search") == (gained > 1e-3)
    assert named.bound == (searched.bound if gained > 1e-3 else plain.lp_bound)

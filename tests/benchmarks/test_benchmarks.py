"""The judge of the benchmarks and the figures made from its rows."""

import math
import shutil

import numpy as np
import pytest
from benchmarks.certify import certify, repair
from benchmarks.peers import PEERS, Answer
from benchmarks.peers.local_polytope import program

import softmap
from benchmarks import gap_chart, races, summary
from softmap import generators, lp
from softmap.relaxation import polytope

MODELS = {
    "random": generators.erdos_renyi(12, 3, seed=1),
    "potts": generators.potts_grid(4, 4, 3, seed=2),
    "ragged": generators.ragged_constrained(12, seed=3),
}


@pytest.mark.parametrize("name", MODELS)
def test_exact_lp_answer_is_certified_exact(name: str) -> None:
    model = MODELS[name]
    found = lp.solve(model, "simplex")
    certified = certify(model, Answer(found.lam, found.node_marginals, "Optimal"))
    assert certified.bound == pytest.approx(found.value, abs=1e-7)
    assert certified.primal == pytest.approx(found.value, abs=1e-7)
    assert certified.energy >= certified.bound


@pytest.mark.parametrize("name", MODELS)
def test_rough_answers_stay_on_their_side_of_the_optimum(name: str) -> None:
    model = MODELS[name]
    optimum = lp.solve(model, "simplex").value
    rng = np.random.default_rng(5)
    answer = Answer(
        lam=rng.normal(size=int(model.network.half_offset[-1])),
        nodes=rng.normal(size=int(model.network.node_offset[-1])),
        status="rough",
    )
    certified = certify(model, answer)
    assert certified.bound <= optimum + 1e-9
    assert certified.primal >= optimum - 1e-9


def test_an_answer_without_multipliers_certifies_nothing() -> None:
    model = MODELS["potts"]
    certified = certify(model, Answer(None, np.ones(int(model.network.node_offset[-1])), "half"))
    assert certified.bound == -math.inf
    assert certified.lp_gap == math.inf
    assert math.isfinite(certified.primal)


def test_repaired_marginals_are_distributions_without_forbidden_mass() -> None:
    model = MODELS["ragged"]
    nodes = repair(model, np.linspace(-1.0, 2.0, int(model.network.node_offset[-1])))
    assert nodes.min() >= 0
    assert np.allclose(np.add.reduceat(nodes, model.network.node_offset[:-1]), 1)
    assert not nodes[np.isposinf(model.unary)].any()


def test_program_is_the_local_polytope() -> None:
    model = MODELS["potts"]
    built = program(model)
    labels = np.arange(model.n) % 3
    nodes, pairs = polytope.integral(model.network, labels)
    x = np.concatenate([nodes, pairs])
    assert np.array_equal(built.matrix @ x, built.rhs)
    assert built.cost @ x == pytest.approx(model.energy(labels))


TRACE = {
    "work": [20, 100, 200, 400],
    "seconds": [1.0, 2.0, 4.0, 8.0],
    "bound": [0.0, 5.0, 9.0, 10.0],
    "energy": [20.0, 15.0, 16.0, 11.0],
}
SLOWER = TRACE | {"seconds": [3.0, 6.0, 12.0, 24.0]}


def test_races() -> None:
    assert races.passes_to_bound(TRACE, 10, optimum=10.0, gap=0.1) == 10
    assert races.passes_to_bound(TRACE, 10, optimum=20.0, gap=0.1) == math.inf
    assert races.worst_lag(SLOWER, TRACE, edges=10) == 3.0
    assert races.energies_at(TRACE, SLOWER) == (11.0, 15.0)


def test_fastest_certified_run_is_found() -> None:
    rows = [
        {"instance": "a", "method": m, "gap": 1e-3, "reached": ok, "seconds": s}
        for m, ok, s in (("highs-ipm", True, 4.0), ("clarabel", True, 3.0), ("trws", True, 1.0))
    ]
    rows.append(rows[1] | {"method": "highs-pdlp", "reached": False, "seconds": 0.1})
    best = summary.fastest(rows, "a", 1e-3, "lp")
    assert best is not None
    assert best["method"] == "clarabel"
    assert {peer.kind for peer in PEERS.values()} == {"ours", "lp", "dual"}


def test_times_to_a_gap_are_those_of_the_fastest_run_that_reached_it() -> None:
    rows = [
        {"method": "a", "instance": "x", "gap": 1e-3, "reached": True, "seconds": 3.0},
        {"method": "a", "instance": "x", "gap": 1e-3, "reached": True, "seconds": 2.0},
        {"method": "a", "instance": "x", "gap": 1e-3, "reached": False, "seconds": 1.0},
        {"method": "b", "instance": "x", "gap": 1e-4, "reached": True, "seconds": 1.0},
    ]
    assert gap_chart.times(rows, 1e-3) == {"a": {"x": 2.0}}


def test_the_chart_of_times_has_a_panel_per_gap(tmp_path) -> None:
    row = {"method": "a", "instance": "x", "reached": True, "seconds": 3.0}
    gap_chart.draw([row | {"gap": gap} for gap in (1e-3, 1e-4, 0.0)], tmp_path / "chart.svg")
    drawn = (tmp_path / "chart.svg").read_text("utf-8")
    assert drawn.count('id="axes_') == 2


@pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="no compiler")
@pytest.mark.parametrize("seed", range(3))
def test_in_face_steps_solve_the_relaxation(seed):
    """The dual never exceeds the optimum, its λ proves it, and the chains agree at the end."""
    from benchmarks.peers.in_face import InFace

    rng = np.random.default_rng(seed)
    sizes, edges = [2, 4, 3, 2, 3], [[0, 1], [2, 1], [2, 3], [4, 3], [0, 4], [1, 3]]
    tables = [rng.normal(size=(sizes[i], sizes[j])) for i, j in edges]
    model = softmap.Model([rng.normal(size=d) for d in sizes], edges, tables)
    if seed:
        model = generators.potts_grid(4, 4, 3, seed=seed)
    optimum, method = lp.solve(model).value, InFace(model.network)
    values = [method.value]
    for _ in range(400):
        method.advance()
        values.append(method.value)
    assert values == sorted(values)
    assert optimum - 1e-5 * (1 + abs(optimum)) <= values[-1] <= optimum + 1e-7
    assert method.cost() == pytest.approx(optimum, abs=1e-4 * (1 + abs(optimum)))
    assert np.abs(method.spread()).max() < 1e-4
    certified = certify(model, method.answer(""))
    assert certified.bound == pytest.approx(method.value, abs=1e-7)
    assert certified.lp_gap < 1e-4

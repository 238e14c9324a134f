"""The checker accepts what is true and rejects what is not."""

from __future__ import annotations

import dataclasses
import functools
import gzip
import itertools
import json
import math
import tracemalloc
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import settings

import softmap
from softmap import generators, verify
from softmap.app.cli.app import main
from softmap.io.limits import LIMITS
from softmap.io.store import read_archive, write_archive
from softmap.run.evidence import Relaxation, Stated
from softmap.run.trace import Status, Trace
from softmap.subsolvers.clusters.cluster_evidence import ClusterEvidence
from softmap.subsolvers.permutations.multipliers import AssignmentEvidence
from softmap.verification import Verdict
from softmap.verification.dual import exact_bound
from support.exact_sums import below
from support.proof_models import FAMILIES, Sizes, case

MODELS = {
    "random": lambda: generators.erdos_renyi(12, 3, seed=9),
    "potts": lambda: generators.potts_grid(4, 4, 3, seed=2),
    "hard": lambda: generators.ragged_constrained(10, seed=5),
    "constant": lambda: generators.random_tree(8, 3, seed=3).replace(constant=1e12),
    "factor": lambda: softmap.Model.from_factors(
        [2, 3, 2], [((0, 1, 2), np.random.default_rng(3).normal(size=(2, 3, 2)))]
    ),
}


def solved(name: str, method: str = "anneal") -> softmap.Result:
    model = MODELS[name]()
    eta = {"eta": 50.0} if softmap.METHODS[method].fixed_eta else {}
    return softmap.paper.solve(model, method=method, threads=1, max_work=2 * model.m * 60, **eta)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("method", softmap.METHODS)
def test_results_of_every_method_are_accepted(method, name):
    report = verify(solved(name, method))
    assert report.holds, str(report)


# --- one number changed ---------------------------------------------------------------------------


def with_entry(array, at, value):
    changed = np.array(array)
    changed[at] = value
    return changed


def another_label(result, rng):
    """Labels with one changed; None where that costs the same."""
    model = result.model
    i = int(rng.integers(model.network.num_variables))
    label = int(rng.integers(model.network.num_labels[i]))
    labels = with_entry(result.labels.ravel(), i, label)
    return None if model.energy(labels) == result.energy else {"labels": labels}


def another_lam(result, rng):
    """λ with one entry of an allowed label far from what it was: this always lowers the bound."""
    model, size = result.model, 10.0 * (1.0 + np.abs(result.lam).max() + abs(result.bound))
    at = int(rng.integers(len(result.lam)))
    h = int(np.searchsorted(model.network.half_offset, at, side="right")) - 1
    state = (
        model.network.node_offset[model.network.edges.reshape(-1)[h]]
        + at
        - model.network.half_offset[h]
    )
    allowed = np.isfinite(result.point.model.unary)
    block = allowed[model.network.node_slice(int(model.network.edges.reshape(-1)[h]))]
    if not allowed[state] or block.sum() == 1:  # forbidden, or a constant for the whole half-edge
        return None
    sign = rng.choice([-1.0, 1.0])
    return {"lam": with_entry(result.lam, at, result.lam[at] + sign * size)}


def another_point(result, rng):
    point = result.point
    if point.nodes is None:
        i = int(rng.integers(len(point.labels)))
        labels = with_entry(
            point.labels, i, (point.labels[i] + 1) % result.model.network.num_labels[i]
        )
        if result.model.energy(labels) == result.energy:
            return None
        return {"point": dataclasses.replace(point, labels=labels)}
    at = int(rng.integers(len(point.nodes)))
    nodes = with_entry(
        point.nodes, at, point.nodes[at] + rng.choice([-1, 1]) * rng.uniform(0.01, 1)
    )
    return {"point": dataclasses.replace(point, nodes=nodes)}


def another_number(result, rng):
    name = str(rng.choice(["energy", "bound", "primal", "work", "sweeps", "eta"]))
    value = getattr(result, name)
    off = 10.0 ** rng.uniform(-9, 1) * rng.choice([-1, 1]) * max(abs(value), 1e-3)
    changed = value + (int(off) or 1 if name == "work" else off)
    return None if changed == value else {name: changed}


def another_status(result, rng):
    tolerances = (1e-9, 1e-9)
    status = Status.GAP if result.relative_gap(result.gap) > 1e-6 else Status.LP_GAP
    if result.relative_gap(result.lp_gap) <= 1e-6:
        return None
    return {"status": status, "tolerances": tolerances}


def another_trace(result, rng):
    rows = result.trace.array()
    column = int(rng.choice([0, 4, 6, 7]))
    rows[-1, column] += rng.choice([-1, 1]) * max(1.0, abs(rows[-1, column]) * rng.uniform(1e-6, 1))
    return {"trace": Trace.from_array(rows, result.trace.stages)}


CHANGES = (another_label, another_lam, another_point, another_number, another_status, another_trace)


def test_results_with_one_number_changed_are_rejected():
    rng = np.random.default_rng(0)
    results = [solved(name) for name in MODELS if name != "constant"]
    accepted, made = [], Counter()
    for result, change, _ in itertools.product(
        results, CHANGES, range(settings().max_examples // 4)
    ):
        if (fields := change(result, rng)) is None:
            continue
        made[change] += 1
        if verify(dataclasses.replace(result, **fields)).holds:
            accepted.append((change.__name__, fields))
    assert not accepted
    assert made.keys() == set(CHANGES)


def test_any_change_of_a_file_is_noticed(tmp_path):
    result, rng = solved("random"), np.random.default_rng(1)
    path = tmp_path / "result.npz"
    result.save(path)
    assert verify(path).holds
    header, arrays = read_archive(path, "result", 3, ValueError)
    for name in [
        n for n in arrays if arrays[n].dtype.kind == "f" and n.startswith(("lam", "mess"))
    ]:
        changed = arrays[name].copy()
        changed[int(rng.integers(changed.size))] += 1e-12
        write_archive(path, header, {**arrays, name: changed})
        assert verify(path)["file"].verdict is Verdict.FALSE
    write_archive(path, header | {"seconds": 1.0}, arrays)
    assert not verify(path).holds


# --- the bound, against fractions -----------------------------------------------------------------


SIZES = [
    Sizes(),
    Sizes(hard=True),
    Sizes(big=1e12),
    Sizes(big=1e17, lam=1e3),
    Sizes(scale=1e-300),
    Sizes(scale=1e290),
    Sizes(whole=True),
]


PLACES = 4000  # binary places: products of floats have 2148 and a few more


def units(value: float | Fraction) -> int:
    """A number in units of 2^-4000, exactly: sums of integers are much faster than of fractions."""
    above, below = value.as_integer_ratio()
    places = below.bit_length() - 1
    assert below == 1 << places
    return above << (PLACES - places)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("sizes", SIZES)
def test_the_recomputed_bound_is_the_exact_one(sizes, seed):
    one = case(seed, sizes, tuple(FAMILIES))
    try:
        tight = softmap.relaxation.consistency.tighten(one.model)
    except softmap.InfeasibleModel:
        return
    lam = [units(float(v)) for v in one.lam]
    exact = units(tight.constant)
    allowed = [np.isfinite(tight.unary_of(i)) for i in range(tight.n)]
    for i in range(tight.n):
        halves = np.flatnonzero(tight.edges.ravel() == i)
        exact += min(
            units(float(c)) - sum(lam[tight.half_offset[h] + x] for h in halves)
            for x, c in enumerate(tight.unary_of(i))
            if math.isfinite(c)
        )
    for e, (i, j) in enumerate(tight.edges):
        open_to = np.isfinite(tight.table(e)) & np.outer(allowed[i], allowed[j])
        first, second = tight.half_offset[2 * e : 2 * e + 2].tolist()
        exact += min(
            units(below(one.pair[e](x, y))) + lam[first + x] + lam[second + y]
            for x, y in np.argwhere(open_to).tolist()
        )
    assert exact_bound(one.model.network, one.lam) == Fraction(exact, 1 << PLACES)


# --- the command ----------------------------------------------------------------------------------


def test_the_command_accepts_and_rejects(tmp_path, capsys):
    model = MODELS["potts"]()
    softmap.write(model, tmp_path / "model.npz")
    saved = tmp_path / "result.npz"
    assert main(["solve", str(tmp_path / "model.npz"), "--no-progress", "--save", str(saved)]) == 0
    capsys.readouterr()
    assert main(["verify", str(saved), str(tmp_path / "model.npz")]) == 0
    assert "bound" in capsys.readouterr().out
    result = softmap.load_result(saved, model)
    dataclasses.replace(result, bound=result.bound + 1e-6).save(saved)
    assert main(["verify", str(saved), str(tmp_path / "model.npz")]) == 1
    assert "false" in capsys.readouterr().out


def test_bounds_of_other_proofs_are_told_apart():
    result = softmap.solve(softmap.generators.erdos_renyi(100, 3, seed=1))
    assert result.proof.kind == "search"
    report = verify(result)
    assert report["bound"].verdict is Verdict.STATED
    assert report.holds
    assert not report


# --- forgeries ------------------------------------------------------------------------------------


@functools.cache
def honest_result():
    model = softmap.generators.potts_grid(4, 4, 3, seed=3)
    result = softmap.solve(model)
    assert result.status is Status.OPTIMAL
    assert verify(result).checked
    return result


def forged(**fields):
    """A result of a small model whose optimum the relaxation proves, with other numbers."""
    return dataclasses.replace(honest_result(), **fields)


def test_what_rests_on_a_search_is_stated_and_never_checked():
    honest = forged()
    model, labels = honest.model, honest.labels.copy()
    labels.flat[0] = (labels.flat[0] + 1) % 3
    energy = float(model.energy(labels))
    assert energy > honest.energy
    rows = [
        *honest.trace.rows[:-1],
        dataclasses.replace(honest.trace[-1], energy=energy, bound=energy),
    ]
    worse = dataclasses.replace(
        honest, labels=labels, energy=energy, bound=energy, proof=Stated(nodes=9),
        trace=Trace(rows),
    )  # fmt: skip
    report = verify(worse)
    assert report["bound"].verdict is report["status"].verdict is Verdict.STATED
    assert report.verdict is Verdict.STATED
    assert not report.checked
    assert "stated" in str(report).splitlines()[-1]
    assert report.as_dict()["verdict"] == "stated"


KINDS = (
    Relaxation(), ClusterEvidence(), Stated(), AssignmentEvidence(), Stated(kind="cores"),
    Stated(kind="semidefinite"),
)  # fmt: skip


@pytest.mark.parametrize("value", [np.inf, np.nan, 1e308, -1e308])
@pytest.mark.parametrize("name", ["bound", "lp_bound", "primal", "energy"])
def test_no_number_leads_to_an_error(name, value):
    for proof in KINDS:
        changed = forged(**{name: value})
        report = verify(dataclasses.replace(changed, proof=proof))
        assert not report.holds or name == "bound"
    assert verify(forged(**{name: value})).verdict is Verdict.FALSE


@pytest.mark.parametrize(
    "clusters", [(tuple(range(16)),), ((0, 1, 99),), ((-1, 0, 1),), ((0, 0, 1),), ((0, 1),)]
)
def test_clusters_that_are_none_are_false_before_anything_is_allocated(clusters):
    proof = ClusterEvidence(clusters=clusters, lam=np.zeros(100))
    tracemalloc.start()
    report = verify(forged(proof=proof))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert report["bound"].verdict is Verdict.FALSE
    assert peak < 100 << 20  # 16 variables of 3 labels have 43 million joint states


def test_an_archive_that_unpacks_to_far_more_than_it_is_is_refused(tmp_path):
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, header=np.zeros(LIMITS.trusted_bytes // 8 + 1))
    with pytest.raises(softmap.FormatError, match="expand to"):
        softmap.load_result(path)
    with pytest.raises(softmap.FormatError, match="expand to"):
        verify(path)
    model = softmap.generators.random_tree(5, seed=1)
    with pytest.raises(softmap.CheckpointError, match="expand to"):
        softmap.resume(path, model)
    packed = tmp_path / "bomb.npz.gz"
    member, size = gzip.compress(bytes(1 << 20)), LIMITS.trusted_bytes + LIMITS.read_bytes
    packed.write_bytes(member * (1 + size // (1 << 20)))
    with pytest.raises(softmap.FormatError, match="expand to"):
        softmap.load_result(packed)


def test_the_command_says_what_was_stated(tmp_path, capsys):
    result = forged(proof=Stated(nodes=9))
    result.save(tmp_path / "result.npz")
    softmap.write(result.model, tmp_path / "model.npz")
    given = ["verify", str(tmp_path / "result.npz"), str(tmp_path / "model.npz")]
    assert main(given) == 6
    assert capsys.readouterr().out.splitlines()[-1].split()[:2] == ["result", "stated:"]
    assert main([*given, "--json"]) == 6
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "stated"
    assert {one["name"]: one["verdict"] for one in found["statements"]}["bound"] == "stated"


def test_a_bound_among_the_least_numbers_is_checked_beside_a_larger_lam():
    """Products of the least numbers were taken for rounded, and honest bounds were rejected."""
    least = 5e-324
    unary = [np.zeros(4), np.array([0.0] * 5 + [least])]
    quadratic = softmap.TruncatedQuadratic([least], [0.5])
    model = softmap.Model(unary, None, [([(0, 1)], quadratic)])
    result = softmap.solve(model, goal="lp", threads=1)
    shifted = dataclasses.replace(result, lam=np.array([2.0**-161] * 4 + [0.0] * 6))
    assert softmap.verify(shifted).holds
    assert not softmap.verify(
        dataclasses.replace(shifted, lp_bound=2 * least, bound=2 * least)
    ).holds


def test_result_and_model_stand_in_either_order(tmp_path, capsys):
    model = softmap.generators.random_tree(6, seed=1)
    result = softmap.solve(model, threads=1)
    assert verify(model, result).verdict is verify(result, model).verdict
    softmap.write(model, tmp_path / "model.npz")
    result.save(tmp_path / "result.npz", with_model=False)
    for names in (("model.npz", "result.npz"), ("result.npz", "model.npz")):
        assert main(["verify", *(str(tmp_path / name) for name in names)]) == 0
        assert "false" not in capsys.readouterr().out

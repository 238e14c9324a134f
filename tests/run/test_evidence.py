"""Evidence of every kind is stored, shown and taken back to the user's units by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import softmap
from softmap.drive.stored import evidence_from_arrays
from softmap.relaxation.polytope import ClusterBeliefs
from softmap.run.best import Best
from softmap.run.evidence import Relaxation, Stated, evidence_arrays
from softmap.run.problem import Problem
from softmap.subsolvers.clusters.cluster_evidence import ClusterEvidence
from softmap.subsolvers.permutations.multipliers import AssignmentEvidence, Multipliers

ONES = np.ones((2, 2, 2), dtype=np.int64)
MULTIPLIERS = Multipliers(-3, ONES, ONES, ONES[0, 0])
ASSIGNMENT = AssignmentEvidence(value=1.5, multipliers=MULTIPLIERS)
KINDS = [
    Relaxation(value=1.5),
    Stated(value=2.5, nodes=7),
    Stated(value=2.5, nodes=7, start=ASSIGNMENT),
    Stated(value=2.5, kind="coins", text="a toss of coins", nodes=1),  # of nobody we know
    ClusterEvidence(value=2.0, clusters=((0, 1, 2),), lam=np.ones(4)),
    ClusterEvidence(
        value=2.0,
        clusters=((0, 1, 2), (3, 4, 5, 6)),
        lam=np.ones(4),
        beliefs=ClusterBeliefs(np.ones(3), np.ones(4), 5.0),
    ),
    ASSIGNMENT,
    AssignmentEvidence(value=1.5),
]


@pytest.mark.parametrize("evidence", KINDS, ids=repr)
def test_evidence_of_every_kind_is_stored(evidence, tmp_path):
    result = softmap.solve(softmap.generators.erdos_renyi(6, seed=1), goal="lp")
    result = replace(result, bound=evidence.value, proof=evidence)
    result.save(tmp_path / "result.npz")
    loaded = softmap.load_result(tmp_path / "result.npz")
    assert loaded == result
    assert repr(loaded.proof) == repr(evidence)
    for name in ("value", "kind", "text", "stated", "nodes", "scopes", "facts", "recorded"):
        assert getattr(loaded.proof, name) == getattr(evidence, name), name


def test_stored_evidence_of_an_unknown_kind_is_an_error():
    arrays = evidence_arrays(Relaxation()) | {"kind": np.array("coins")}
    with pytest.raises(ValueError, match="kind"):
        evidence_from_arrays(arrays, 1.0)


@pytest.mark.parametrize("exponent", [0, 7, -1060])
def test_values_come_back_to_the_units_of_the_user(exponent):
    model = softmap.generators.erdos_renyi(6, seed=1)
    problem = replace(Problem.plain(model.network), exponent=exponent)
    for evidence in KINDS[1:4]:
        assert evidence.back(problem).value == problem.bound_back(evidence.value)
    back = ASSIGNMENT.back(problem)
    assert back.value == problem.bound_back(1.5)
    assert back.multipliers.exponent == -3 - exponent
    assert KINDS[2].back(problem).start.value == back.value
    assert Relaxation(value=1.0).back(problem) is None


def test_the_best_evidence_is_kept_and_results_drop_its_records():
    model = softmap.generators.erdos_renyi(6, seed=1)
    best = Best(Problem.of(model))
    best.offer_zero()
    assert best.evidence.kind == "relaxation"
    assert best.evidence.value == best.bound == best.lp_bound
    better = Stated(value=best.bound + 1.0, nodes=3, log=object())
    assert best.offer_bound(better)
    assert not best.offer_bound(replace(better, nodes=4))
    assert best.evidence is better
    assert best.snapshot()["evidence"].log is None
    assert best.bound == better.value

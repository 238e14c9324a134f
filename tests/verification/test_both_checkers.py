"""The checker, the rules in fractions, and the checker proved in Coq, if it was compiled."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

import softmap
from adversary.product_kinds import forged, least_costs, weighted
from adversary.theorems import CHECK, by_python, by_theorem, verdict
from softmap.verification.export import export_model, integer_model
from support.integer_checker import integer_verdict
from support.proof_files import packed, write_proof

MODELS = 60


@pytest.mark.parametrize("part", range(3))
def test_checkers_give_the_same_verdict_and_bound_for_any_weights(part, tmp_path):
    """Weights from 1e-300 to 1e300; most of the conclusions are nearly true."""
    accepted = rejected = 0
    for seed in range(part * MODELS // 3, (part + 1) * MODELS // 3):
        rng = np.random.default_rng((13, seed))
        spec = weighted(rng)
        model, log = spec.model(), tmp_path / "proof"
        if least_costs(spec) is None or len({e.ends for e in spec.edges}) < len(spec.edges):
            continue
        records = forged(rng, spec, model)
        exported = integer_model(model.network)
        write_proof(log, model, packed(records))
        ours = by_python(model, log)
        if records[0][0] != "DUAL":
            continue
        mine = verdict(ours, Fraction(2) ** exported["exponent"])
        assert mine == integer_verdict(exported, records), seed
        accepted, rejected = accepted + (ours is not None), rejected + (ours is None)
        if CHECK.exists():
            export_model(tmp_path / "model.json", model.network)
            theirs = by_theorem(tmp_path / "model.json", log)
            assert mine == (theirs["verdict"], theirs.get("bound")), seed
    assert accepted > 2
    assert rejected > 2


def test_energies_are_exported_beside_rounded_costs(tmp_path):
    shared = softmap.SharedTables([[[0.1, 2.0], [3.0, np.inf]]], [0, 0], [0.1, 2.0])
    model = softmap.Model(np.zeros((3, 2)), [[0, 1], [1, 2]], shared)
    export_model(tmp_path / "model.json", model.network)
    found = json.loads((tmp_path / "model.json").read_text())
    rounded, exact = found["factors"]
    assert found["version"] == 2
    assert "energies" not in exact
    for key, product in (("costs", 0.01), ("energies", 0.1 * 0.1)):
        assert rounded[key][0] * Fraction(2) ** found["exponent"] == Fraction(product)
    assert rounded["costs"][3] is rounded["energies"][3] is None

"""The integer model has the costs of the model, exactly."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softmap
from adversary.proofs import random_model
from softmap.verification.export import export_model, integer_model
from softmap.verification.integers import flat_model


def value(cost: int | None, exponent: int) -> Fraction | float:
    return math.inf if cost is None else cost * Fraction(2) ** exponent


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000))
def test_integers_are_the_costs_exactly(seed):
    model = random_model(np.random.default_rng(seed))
    found, flat = integer_model(model.network), flat_model(model.network)
    e = found["exponent"]
    assert value(found["constant"], e) == Fraction(model.constant)
    for ours, theirs in zip(found["unary"], flat.unary, strict=True):
        assert [value(c, e) for c in ours] == theirs.tolist()
    for factor, (scope, table) in zip(found["factors"], flat.factors, strict=True):
        assert factor["scope"] == list(scope)
        assert [value(c, e) for c in factor["costs"]] == table.ravel().tolist()
    assert len(found["edges"]) == model.network.m


def test_costs_of_very_different_sizes():
    model = softmap.Model.from_factors([2, 2], [((0, 1), [[5e-324, 1e300], [0.0, -1.5]])])
    found = integer_model(model.network)
    assert found["exponent"] == -1074
    assert found["factors"][0]["costs"] == [1, int(1e300) << 1074, 0, -3 << 1073]


def test_edges_name_factor_and_axis():
    model = softmap.Model.from_factors(
        [2, 3, 2], [((2, 0), np.ones((2, 2))), ((0, 1, 2), np.arange(12.0).reshape(2, 3, 2))]
    )
    found = integer_model(model.network)
    scopes = [factor["scope"] for factor in found["factors"]]
    assert sorted(map(tuple, scopes)) == [(0, 1, 2), (0, 2)]
    for (factor, axis), ends in zip(found["edges"], model.network.edges.tolist(), strict=True):
        assert scopes[factor] == ends if axis is None else scopes[factor][axis] == ends[1]


def test_edges_of_pairs_have_numbers_in_their_order():
    pairs = [(0, 1), (1, 2), (2, 3)]
    model = softmap.Model.from_factors([2] * 4, [(pair, np.eye(2)) for pair in pairs])
    found = integer_model(model.network)
    for (factor, axis), ends in zip(found["edges"], model.edges.tolist(), strict=True):
        assert axis is None
        assert found["factors"][factor]["scope"] == ends
    assert sorted(factor for factor, _ in found["edges"]) == [0, 1, 2]


def test_file_is_json(tmp_path):
    model = softmap.generators.random_tree(5, seed=1)
    export_model(tmp_path / "model.json", model.network)
    assert json.loads((tmp_path / "model.json").read_text())["model"] == model.fingerprint()


def test_command_writes_it(tmp_path):
    from typer.testing import CliRunner

    from softmap.app.cli.app import app

    model, target = softmap.generators.random_tree(5, seed=1), tmp_path / "model.json"
    files = [str(tmp_path / "result.npz"), str(tmp_path / "model.npz")]
    softmap.solve(model).save(files[0])
    softmap.write(model, files[1])
    done = CliRunner().invoke(app, ["verify", *files, "--export", str(target)])
    assert done.exit_code == 0, done.output
    assert json.loads(target.read_text())["format"] == "softmap integer model"


@pytest.mark.parametrize("cost", [np.inf, 0.0])
def test_forbidden_is_null(cost):
    model = softmap.Model.from_factors([2, 2], [((0, 1), [[cost, 1.0], [2.0, 3.0]])])
    assert (integer_model(model.network)["factors"][0]["costs"][0] is None) == (cost == np.inf)

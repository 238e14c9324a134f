"""UAI models, evidence and results: every dialect."""

import io
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap.io import read_evidence, read_labels, write_labels
from softmap.io.formats import FORMATS
from support.files import same_energies
from support.samples import UAI, UAI_BAYES, content
from support.strategies import models

parse_uai = FORMATS["uai"].parse


def test_last_variable_of_a_scope_is_fastest():
    model = parse_uai(UAI)
    assert model.energy([0, 1, 2]) == pytest.approx(-np.log(0.25 * 2 * 6))
    assert model.energy([1, 0, 1]) == pytest.approx(-np.log(1 * 3 * 3))


def test_zero_is_forbidden_and_arity_three_is_exact():
    model = parse_uai(UAI_BAYES)
    assert model.energy([0, 0, 1]) == np.inf
    assert model.energy([1, 1, 1]) == pytest.approx(-np.log(0.5 * 0.8 * 0.7))


def test_scopes_in_both_orders_are_merged_with_transposition():
    text = b"MARKOV 2 2 3 3 2 0 1 2 1 0 2 0 1 6 0 1 2 3 4 5 6 0 10 20 30 40 50 6 0 0 0 0 0 7"
    model = parse_uai(text, values="cost")
    assert model.m == 1
    expected = np.arange(6.0).reshape(2, 3) + 10 * np.arange(6).reshape(3, 2).T
    expected[1, 2] += 7
    assert [[model.energy([x, y]) for y in range(3)] for x in range(2)] == expected.tolist()


def test_repeated_large_scopes_become_one_auxiliary_variable():
    text = b"MARKOV 3 2 2 2 2 3 0 1 2 3 2 0 1 8 0 1 2 3 4 5 6 7 8 0 10 20 30 40 50 60 70"
    model = parse_uai(text, values="cost")
    assert model.network.n - model.network.num_variables == 1
    assert model.energy([0, 1, 1]) == 3 + 50


def test_empty_scopes_and_unmentioned_variables():
    model = parse_uai(b"MARKOV 2 2 1 2 0 0 1 0.5 1 0.5")
    assert model.energy([1, 0]) == pytest.approx(-np.log(0.25))


@pytest.mark.parametrize(
    "comment", [b"c made by hand\n# twice\n%s", b"%s# the end", b"%s\nc the end\n"]
)
def test_comments_are_skipped(comment):
    assert same_energies(parse_uai(comment % UAI), parse_uai(UAI))


def test_values_may_be_logarithms_or_costs():
    logs = b"MARKOV 1 2 1 1 0 2 -inf -2.5"
    assert parse_uai(logs, values="log").energy([1]) == 2.5
    assert parse_uai(logs, values="log").energy([0]) == np.inf
    assert parse_uai(b"MARKOV 1 2 1 1 0 2 inf -2.5", values="cost").energy([1]) == -2.5
    with pytest.raises(softmap.OptionError, match="values"):
        parse_uai(logs, values="bits")


@given(models(), st.sampled_from(["potential", "log", "cost"]))
def test_what_is_written_reads_back_the_same(model, values):
    text = content(model, "uai", values=values)
    assert same_energies(parse_uai(text, values=values), model)


def test_large_costs_are_shifted_into_the_range_of_exp():
    model = softmap.Model([[-5000.0, -4999.0], [1e4, 1e4 + 3]], [[0, 1]], softmap.Potts([900.0]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        text = content(model, "uai")
    assert "underflow" in str(caught[0].message)
    again = parse_uai(text)
    assert again.energy([0, 0]) == pytest.approx(5000.0)
    assert again.energy([1, 1]) == pytest.approx(5004.0)
    assert again.energy([0, 1]) == np.inf


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"2 0 1 3 2", {0: 1, 3: 2}),
        (b"2\n0 1\n3 2\n", {0: 1, 3: 2}),
        (b"1\n2 0 1 3 2\n", {0: 1, 3: 2}),
        (b"0", {}),
        (b"1\n0\n", {}),
        (b"2\n1 0 1\n1 3 2\n", {0: 1, 3: 2}),
        (b"1 0 1", {0: 1}),
        (b"# none\n0\n", {}),
    ],
)
def test_three_dialects_of_evidence(text, expected):
    assert read_evidence(io.BytesIO(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        b"MPE\n3 1 0 2\n",
        b"MAP 3 1 0 2",
        b"MPE\n1\n3 1 0 2\n",
        b"MPE\n3 0 0 0\n-BEGIN-\n3 1 0 2\n",
        b"MPE\n1\n3 0 0 0\n-BEGIN-\nMPE\n1\n3 1 0 2\n",
    ],
)
def test_results_in_every_form(text):
    assert read_labels(io.BytesIO(text)).tolist() == [1, 0, 2]


def test_labels_round_trip(tmp_path):
    write_labels([3, 0, 1], tmp_path / "x.uai.MPE")
    assert (tmp_path / "x.uai.MPE").read_text() == "MPE\n3 3 0 1\n"
    assert read_labels(tmp_path / "x.uai.MPE").tolist() == [3, 0, 1]
    with pytest.raises(softmap.ModelError):
        write_labels([0.5], tmp_path / "y.MPE")

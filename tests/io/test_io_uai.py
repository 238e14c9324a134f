"""UAI models, evidence and results: every dialect, every way to be wrong."""

import contextlib
import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from io_helpers import damaged, reads_or_refuses, same_energies
from softmap.io import (
    format_labels,
    format_uai,
    parse_evidence,
    parse_labels,
    parse_uai,
    read_labels,
    write_labels,
)
from strategies import models

SMALL = b"""MARKOV
3
2 2 3
3
1 0
2 0 1
2 2 1

2
 0.25 1

4
 1 2
 3 4
6
 1 2 3 4
 5 6
"""
BAYES = b"BAYES\n3\n2 2 2\n3\n1 0\n2 0 1\n3 0 1 2\n2 .5 .5\n4 .1 .9 .2 .8\n8 1 0 0 1 .5 .5 .3 .7\n"


def test_last_variable_of_a_scope_is_fastest():
    model = parse_uai(SMALL)
    assert model.energy([0, 1, 2]) == pytest.approx(-np.log(0.25 * 2 * 6))
    assert model.energy([1, 0, 1]) == pytest.approx(-np.log(1 * 3 * 3))


def test_zero_is_forbidden_and_arity_three_is_exact():
    model = parse_uai(BAYES)
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
    assert model.n - model.num_variables == 1
    assert model.energy([0, 1, 1]) == 3 + 50


def test_empty_scopes_and_unmentioned_variables():
    model = parse_uai(b"MARKOV 2 2 1 2 0 0 1 0.5 1 0.5")
    assert model.energy([1, 0]) == pytest.approx(-np.log(0.25))


@pytest.mark.parametrize(
    "comment", [b"c made by hand\n# twice\n%s", b"%s# the end", b"%s\nc the end\n"]
)
def test_comments_are_skipped(comment):
    assert same_energies(parse_uai(comment % SMALL), parse_uai(SMALL))


def test_values_may_be_logarithms_or_costs():
    logs = b"MARKOV 1 2 1 1 0 2 -inf -2.5"
    assert parse_uai(logs, values="log").energy([1]) == 2.5
    assert parse_uai(logs, values="log").energy([0]) == np.inf
    assert parse_uai(b"MARKOV 1 2 1 1 0 2 inf -2.5", values="cost").energy([1]) == -2.5
    with pytest.raises(softmap.OptionError, match="values"):
        parse_uai(logs, values="bits")


BAD = {
    b"": (1, "MARKOV or BAYES"),
    b"GAUSS 1 2": (1, "MARKOV or BAYES"),
    b"MARKOV": (1, "number of variables"),
    b"MARKOV\n0": (2, "number of variables"),
    b"MARKOV\n2\n2": (3, "label counts"),
    b"MARKOV\n2\n2 x": (3, "expected a number, found 'x'"),
    b"MARKOV\n2\n2 0": (3, "label counts"),
    b"MARKOV\n2\n2 2.5": (3, "label counts"),
    b"MARKOV\n1\n2\n": (3, "number of factors"),
    b"MARKOV\n1\n2\n99": (4, "99 factors"),
    b"MARKOV\n1\n2\n1\n2 0\n": (5, "0 to 1"),
    b"MARKOV\n1\n2\n1\n1 1\n2 1 1": (5, "0 to 0"),
    b"MARKOV\n1\n2\n1\n1 -1\n2 1 1": (5, "variables of a scope"),
    b"MARKOV\n2\n2 2\n1\n2 1 1\n4 1 1 1 1": (5, "twice"),
    b"MARKOV\n1\n2\n1\n1 0\n3 1 1 1": (6, "2, the number of entries of table 0"),
    b"MARKOV\n1\n2\n1\n1 0\n2 1": (6, "the 2 entries of table 0"),
    b"MARKOV\n1\n2\n1\n1 0\n2 1 1 1": (6, "the end of the file"),
    b"MARKOV\n1\n2\n1\n1 0\n2\n 1\n -1": (8, "potential"),
    b"MARKOV\n1\n2\n1\n1 0\n2\n 1\n nan": (8, "potential"),
    b"MARKOV\n1\n2\n1\n1 0\n2\n 1\n inf": (8, "potential"),
    b"MARKOV\n1\n1000000000000\n0": (3, "costs"),
    b"MARKOV\n2\n1000000 1000000\n1\n2 0 1\n1000000000000 1": (6, "entries of table 0"),
    b"MARKOV\n1\n2\n1\n1 0\n2 1 \xff\xfe": (6, "expected a number"),
    b"MARKOV\n1\n2\n1\n1 0\n2 1 1\x00": (6, "expected a number"),
    b"MARKOV\n1\n2\n1\n1 0\n2 1 0x10": (6, "expected a number"),
    b"MARKOV\n1\n2\n1\n1 0\n2 1 1_0": (6, "expected a number"),
}


@pytest.mark.parametrize("text", BAD)
def test_bad_files_name_line_and_expectation(text):
    line, expected = BAD[text]
    with pytest.raises(softmap.FormatError) as caught:
        parse_uai(text)
    assert caught.value.line == line
    assert expected in str(caught.value)


@given(st.one_of(damaged([SMALL, BAYES]), st.binary(max_size=60)))
def test_no_text_raises_anything_but_our_errors(data):
    for values in ("potential", "log", "cost"):
        reads_or_refuses(partial(parse_uai, values=values), data)


@given(models(), st.sampled_from(["potential", "log", "cost"]))
def test_what_is_written_reads_back_the_same(model, values):
    text = "".join(format_uai(model, values=values)).encode()
    assert same_energies(parse_uai(text, values=values), model)


def test_large_costs_are_shifted_into_the_range_of_exp():
    model = softmap.Model([[-5000.0, -4999.0], [1e4, 1e4 + 3]], [[0, 1]], softmap.Potts([900.0]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        text = "".join(format_uai(model)).encode()
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
    assert parse_evidence(text) == expected


@pytest.mark.parametrize("text", [b"", b"2 0 1 3", b"1 5", b"-1", b"1 0 x", b"2 0 1 0 2", b"3 1"])
def test_bad_evidence(text):
    with pytest.raises(softmap.FormatError):
        parse_evidence(text)


@given(st.one_of(damaged([b"2 0 1 3 2", b"1\n2 0 1 3 2\n"]), st.binary(max_size=20)))
def test_no_evidence_raises_anything_but_our_errors(data):
    with contextlib.suppress(softmap.SoftmapError):
        assert all(i >= 0 and x >= 0 for i, x in parse_evidence(data).items())


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
    assert parse_labels(text).tolist() == [1, 0, 2]


@pytest.mark.parametrize(
    "text", [b"", b"MAR\n1 0", b"MPE", b"MPE 3 1 0", b"MPE 1 0 0 0", b"MPE 1 -1"]
)
def test_bad_results(text):
    with pytest.raises(softmap.FormatError):
        parse_labels(text)


def test_labels_round_trip(tmp_path):
    write_labels([3, 0, 1], tmp_path / "x.uai.MPE")
    assert (tmp_path / "x.uai.MPE").read_text() == "MPE\n3 3 0 1\n"
    assert read_labels(tmp_path / "x.uai.MPE").tolist() == [3, 0, 1]
    with pytest.raises(softmap.ModelError):
        format_labels([0.5])


@given(st.one_of(damaged([b"MPE\n1\n3 1 0 2\n", b"MAP 1 0"]), st.binary(max_size=20)))
def test_no_result_raises_anything_but_our_errors(data):
    with contextlib.suppress(softmap.SoftmapError):
        assert (parse_labels(data) >= 0).all()

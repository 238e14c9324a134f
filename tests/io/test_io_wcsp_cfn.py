"""WCSP and CFN: costs, bounds, sharing, names; round trips and damage."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from io_helpers import damaged, labellings, same_energies
from softmap.io import format_cfn, format_wcsp, parse_cfn, parse_wcsp
from strategies import models

WCSP = b"""toy 3 3 5 20
2 3 2
0 4 0
1 0 1 1
0 7
2 0 1 2 2
0 0 9
1 2 20
-2 0 2 0 1
1 1 5
2 2 0 0 -1
"""


def test_wcsp_defaults_tuples_constants_and_the_upper_bound():
    model = parse_wcsp(WCSP)
    assert model.energy([0, 0, 0]) == 4 + 7 + 9 + 0 + 0
    assert model.energy([1, 1, 1]) == 4 + 1 + 2 + (5 + 5)
    assert model.energy([1, 2, 0]) == np.inf


def test_wcsp_shared_tables_stay_shared():
    text = b"s 3 2 2 99\n2 2 2\n-2 0 1 0 1\n0 1 5\n2 1 2 0 -1\n"
    model = parse_wcsp(text)
    (potential,) = model.potentials
    assert isinstance(potential, softmap.SharedTables)
    assert len(potential.tables) == 1
    assert model.energy([0, 1, 0]) == 5
    assert model.energy([0, 0, 1]) == 5


BAD_WCSP = {
    b"": (1, "name"),
    b"toy": (1, "number of variables"),
    b"toy 1 2 0": (1, "upper bound"),
    b"toy 1 2 0 9\n3": (2, "domain sizes"),
    b"toy 1 2 0 9\n-3": (2, "interval"),
    b"toy 1 2 1 9\n2\n1 0 0": (3, "number of tuples"),
    b"toy 1 2 1 9\n2\n1 0 -1 2": (3, "global"),
    b"toy 1 2 1 9\n2\n1 0 0 1\n2 1": (4, "label"),
    b"toy 1 2 1 9\n2\n1 0 0 1\n1 -1": (4, "cost"),
    b"toy 1 2 1 9\n2\n1 0 0 1\n1 0.5": (4, "cost"),
    b"toy 1 2 1 9\n2\n1 0 0 5\n1 1": (4, "5 tuples"),
    b"toy 1 2 1 9\n2\n1 0 0 -1": (3, "tuples"),
    b"toy 2 2 1 9\n2 2\n2 0 0 0 0": (3, "twice"),
    b"toy 1 2 9 9\n2\n1 0 0 0": (3, "functions"),
    b"toy 1 2 1 9\n2\n1 0 0 0 7": (3, "end of the file"),
    b"toy 1 2 1 9\n2\n1 0 -1 salldiff var": (3, "cost"),
    b"toy 2 99999999 1 9\n99999999 99999999\n2 0 1 0 0": (None, "costs"),
    b"toy 1 999999999999 0 9\n999999999999": (None, "costs"),
}


@pytest.mark.parametrize("text", BAD_WCSP)
def test_bad_wcsp(text):
    line, expected = BAD_WCSP[text]
    with pytest.raises(softmap.FormatError) as caught:
        parse_wcsp(text)
    assert caught.value.line == line
    assert expected in str(caught.value)


@given(st.one_of(damaged([WCSP]), st.binary(max_size=60)))
def test_no_wcsp_raises_anything_but_our_errors(data):
    try:
        model = parse_wcsp(data)
    except softmap.SoftmapError:
        return
    assert not np.isnan(model.energy(labellings(model, 3))).any()


def whole(model: softmap.Model) -> softmap.Model:
    """Round all costs to halves and lift the constant: WCSP holds no negative sums."""
    halves = [softmap.Tables([np.round(2 * t) / 2 for t in model.tables()])] if model.m else []
    edges = [(model.edges, p) for p in halves]
    return softmap.Model(
        [np.round(2 * model.unary_of(i)) / 2 for i in range(model.n)], None, edges, constant=500.0
    )


@given(models(families=("tables", "potts", "shared")).map(whole))
def test_wcsp_round_trip(model):
    again = parse_wcsp("".join(format_wcsp(model, scale=2)).encode())
    x = labellings(model)
    assert np.allclose(again.energy(x), 2 * model.energy(x))


def test_wcsp_refuses_what_it_cannot_hold():
    with pytest.raises(softmap.ModelError, match="whole"):
        "".join(format_wcsp(softmap.Model([[0.5, 1.0]], None, [])))
    with pytest.raises(softmap.ModelError, match="negative"):
        "".join(format_wcsp(softmap.Model([[-1.0, 1.0]], None, [])))
    with pytest.raises(softmap.ModelError, match="too large"):
        "".join(format_wcsp(softmap.Model([[2.0**60, 1.0]], None, [])))


CFN = b"""# a comment
{ problem : { name: "toy", mustbe: "<20.00" },
  variables: { "a": ["r", "g"], b: 3, c: [x y] },
  functions: {
    c0: { scope: [], costs: [1.5] },
    ua: { scope: ["a"], costs: [0.25, 7] },
    ab: { scope: ["a" "b"], costs: [1 2 3, 4, 5, 25] },
    bc: { scope: [b, c], defaultcost: 0.5, costs: [2 "x" -1.5, 0, y, inf] },
    f1: { scope: [a, c], costs: "f2" },
    f2: { scope: [c, a], costs: [0, 1, 2, 3] }
  }
}
"""


def test_cfn_relaxed_syntax_names_and_bounds():
    model = parse_cfn(CFN)
    assert model.energy([0, 2, 0]) == 1.5 + 0.25 + 3 - 1.5 + 0 + 0
    assert model.energy([1, 1, 1]) == 1.5 + 7 + 5 + 0.5 + 3 + 3
    assert model.energy([0, 0, 1]) == np.inf
    assert model.energy([1, 2, 0]) == np.inf  # 25 even with every negative cost


def test_cfn_shared_functions_stay_shared():
    text = (
        b'{problem {name t mustbe "<9"} variables {a 2 b 2 c 2}'
        b" functions {f {scope [a b] costs g} g {scope [b c] costs [0 1 2 3]}}}"
    )
    model = parse_cfn(text)
    assert isinstance(model.potentials[0], softmap.SharedTables)
    assert model.energy([1, 0, 1]) == 2 + 1


def test_cfn_maximisation_is_turned_round():
    text = (
        b"{problem {name t mustbe '>-5.0'} variables {a 2} functions {f {scope [a] costs [3 -7]}}}"
    )
    model = parse_cfn(text.replace(b"'", b'"'))
    assert model.energy([0]) == -3
    assert model.energy([1]) == np.inf


def test_cfn_variables_without_names_and_quoted_numbers():
    text = b'{problem {mustbe "<9"} variables [2 3] functions [{scope [0] costs ["1" "2"]}]}'
    model = parse_cfn(text)
    assert model.num_labels.tolist() == [2, 3]
    assert model.energy([1, 0]) == 2


BAD_CFN = [
    (b"", "'{'"),
    (b"{", "'problem'"),
    (b"{problem {name t mustbe 7} variables", "a bound"),
    (b'{problem {mustbe "<1"} variables {} functions {}}', "at least one variable"),
    (b'{problem {mustbe "<1"} variables {a 0} functions {}}', "at least one label"),
    (b'{problem {mustbe "<1"} variables {a -3} functions {}}', "labels"),
    (b'{problem {mustbe "<1"} variables {a 2 a 2} functions {}}', "new variable"),
    (
        b'{problem {mustbe "<1"} variables {a 2} functions {f {scope [b] costs [1 2]}}}',
        "a variable",
    ),
    (b'{problem {mustbe "<1"} variables {a 2} functions {f {scope [a a] costs [1 2]}}}', "twice"),
    (b'{problem {mustbe "<1"} variables {a 2} functions {f {scope [a] costs [1]}}}', "2 costs"),
    (b'{problem {mustbe "<1"} variables {a 2} functions {f {scope [a] costs [1 z]}}}', "2 costs"),
    (b'{problem {mustbe "<1"} variables {a 2} functions {f {scope [a] costs [1 nan]}}}', "NaN"),
    (b'{problem {mustbe "<1"} variables {a 2} functions {f {scope [a] costs g}}}', "'f' to have"),
    (b'{problem {mustbe "<1"} variables {a 2} functions {f {scope [a] costs f}}}', "'f' to have"),
    (b'{problem {mustbe "<1"} variables {a 2} functions {f {scope [a] type salldiff}}}', "params"),
    (b'{problem {mustbe "<1"} variables {a 2} functions {f {scope [a] costs [1 2]}', "'}'"),
    (b'{problem {mustbe "<1"} variables {a 2} functions {f {scope [a] costs [1 2', "']'"),
    (b'{problem {mustbe "<1"} variables {a 99999999999} functions {}}', "costs"),
    (
        b'{problem {mustbe "<1"} variables {a 999999 b 999999}'
        b" functions {f {scope [a b] defaultcost 0 costs []}}}",
        "costs",
    ),
    (
        b'{problem {mustbe "<1"} variables {a 2} functions'
        b" {f {scope [a] defaultcost 0 costs [5 1]}}}",
        "labels",
    ),
    (
        b'{problem {mustbe "<1"} variables {a [x y]} functions'
        b" {f {scope [a] defaultcost 0 costs [z 1]}}}",
        "rows",
    ),
]


@pytest.mark.parametrize(("text", "expected"), BAD_CFN)
def test_bad_cfn(text, expected):
    with pytest.raises(softmap.FormatError) as caught:
        parse_cfn(text)
    assert expected in str(caught.value)


@given(st.one_of(damaged([CFN]), st.binary(max_size=60)))
def test_no_cfn_raises_anything_but_our_errors(data):
    try:
        model = parse_cfn(data)
    except softmap.SoftmapError:
        return
    assert not np.isnan(model.energy(labellings(model, 3))).any()


@given(models())
def test_cfn_round_trip(model):
    assert same_energies(parse_cfn("".join(format_cfn(model)).encode()), model, rtol=1e-12)

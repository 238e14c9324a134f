"""WCSP and CFN: costs, bounds, sharing, names; round trips."""

import numpy as np
import pytest
from hypothesis import given

import softmap
from softmap.io.formats import FORMATS
from support.files import labellings, same_energies
from support.samples import CFN, WCSP, content
from support.strategies import models

parse_cfn, parse_wcsp = FORMATS["cfn"].parse, FORMATS["wcsp"].parse


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


def whole(model: softmap.Model) -> softmap.Model:
    """Round all costs to halves and lift the constant: WCSP holds no negative sums."""
    halves = (
        [softmap.Tables([np.round(2 * t) / 2 for t in model.network.tables()])] if model.m else []
    )
    edges = [(model.edges, p) for p in halves]
    return softmap.Model(
        [np.round(2 * model.network.unary_of(i)) / 2 for i in range(model.n)],
        None,
        edges,
        constant=500.0,
    )


@given(models(families=("tables", "potts", "shared")).map(whole))
def test_wcsp_round_trip(model):
    again = parse_wcsp(content(model, "wcsp", scale=2))
    x = labellings(model)
    assert np.allclose(again.energy(x), 2 * model.energy(x))


def test_wcsp_refuses_what_it_cannot_hold():
    with pytest.raises(softmap.ModelError, match="whole"):
        content(softmap.Model([[0.5, 1.0]], None, []), "wcsp")
    with pytest.raises(softmap.ModelError, match="negative"):
        content(softmap.Model([[-1.0, 1.0]], None, []), "wcsp")
    with pytest.raises(softmap.ModelError, match="too large"):
        content(softmap.Model([[2.0**60, 1.0]], None, []), "wcsp")


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


@given(models())
def test_cfn_round_trip(model):
    assert same_energies(parse_cfn(content(model, "cfn")), model, rtol=1e-12)


def test_cfn_functions_of_one_name():
    """toulbar2 takes a name more than once; a shared table is the next one of that name."""
    text = b"""{problem: {name: n, mustbe: "<99"}, variables: {a: 2, b: 2},
    functions: {
      f: {scope: [a], costs: [1, 2]}, f: {scope: [a], costs: [10, 20]},
      g: {scope: [b], costs: "f"}, f: {scope: [b], costs: [3, 4]}, f: {scope: [b], costs: [0, 7]}
    }}"""
    model = parse_cfn(text)
    assert model.energy([0, 0]) == 1 + 10 + 3 + 3 + 0
    assert model.energy([1, 1]) == 2 + 20 + 4 + 4 + 7


def test_cfn_names_are_kept_and_written_again():
    model = parse_cfn(CFN)
    assert model.names.variables == ("a", "b", "c")
    assert model.names.states == (("r", "g"), None, ("x", "y"))
    result = softmap.solve(model)
    assert set(result.as_dict()) == {"a", "b", "c"}
    assert result.as_dict()["a"] in ("r", "g")
    again = parse_cfn(content(model, "cfn"))
    assert again.names == model.names
    assert same_energies(model, again)
    assert model.condition({"a": "g", "c": "y"}).energy([0, 0, 0]) == np.inf
    odd = model.with_names(['a"', "b", "7"])
    with pytest.warns(softmap.FormatWarning, match="cannot hold 'a"):
        text = content(odd, "cfn")
    assert parse_cfn(text).names.variables == ("x0", "x1", "x2")

"""Bayesian networks in files: BIF, XMLBIF, NET, XDSL, against each other and against pgmpy."""

from __future__ import annotations

import gzip
import io
import math
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

import softmap
from softmap.io.bayes import conditionals
from softmap.io.formats import FORMATS
from support.files import labellings
from support.samples import BIF, NET, XDSL, XMLBIF

TEXTS = {"bif": BIF, "xmlbif": XMLBIF, "net": NET, "xdsl": XDSL}
NAMED = pytest.mark.parametrize("form", TEXTS)


def named(text, form=None):
    return softmap.read(io.BytesIO(text), format=form)


@pytest.mark.parametrize("form", ["bif", "xmlbif", "net"])
def test_the_joint_distribution_of_a_toy(form):
    found = named(TEXTS[form])
    wet = [[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]]
    assert found.names.states == (("no", "yes"), ("dry", "a bit", "soaked"), ("good", "bad"))
    for r, w, m in labellings(found):
        mood = [0.1, 0.9] if (w, r) == (2, 1) else [0.5, 0.5]
        joint = [0.8, 0.2][r] * wet[r][w] * mood[m]
        assert np.exp(-found.energy([r, w, m])) == pytest.approx(joint)


def test_deterministic_nodes():
    found = named(XDSL)
    assert found.names.variables == ("rain", "wet", "boots")
    assert np.exp(-found.energy([1, 2, 0])) == pytest.approx(0.2 * 0.5)
    assert found.energy([1, 2, 1]) == np.inf


@NAMED
def test_contents_tell_the_format(form):
    assert softmap.io.format_of("unknown", TEXTS[form]) == form


@NAMED
def test_round_trip(form, tmp_path):
    found = named(TEXTS["bif" if form == "bif" else "net"])
    path = tmp_path / f"toy{FORMATS[form].suffixes[0]}"
    if form == "xdsl":  # its names hold no blanks
        states = [[s.replace(" ", "_") for s in own] for own in found.names.states]
        found = found.with_names(found.names.variables, states)
    softmap.write(found, path)
    again = softmap.read(path)
    assert set(again.names.variables) == set(found.names.variables)
    for x in labellings(found):
        y = again.names.labels(found.names.as_dict(x))
        assert again.energy(y) == pytest.approx(found.energy(x))


@NAMED
def test_what_is_no_network_is_not_written(form, tmp_path):
    path = tmp_path / f"x{FORMATS[form].suffixes[0]}"
    with pytest.raises(softmap.ModelError, match="Bayesian network"):
        softmap.write(softmap.Model(np.eye(2), [[0, 1]], softmap.Potts([1.0])), path)
    assert not path.exists()
    odd = softmap.Model([[0.0]]).with_names(['a\n"b'], [["s"]])  # no format can hold this name
    with pytest.warns(softmap.FormatWarning, match="cannot hold"):
        softmap.write(odd, path)
    assert softmap.read(path).names.variables == ("x0",)


def bundled(name: str) -> bytes:
    """A network that comes with pgmpy."""
    pgmpy = pytest.importorskip("pgmpy")
    path = Path(pgmpy.__file__).parent / "utils" / "example_models" / f"{name}.bif.gz"
    if not path.exists():
        pytest.skip(f"this pgmpy has no {name}")
    return gzip.decompress(path.read_bytes())


REAL = {"asia": (8, 18), "alarm": (37, 509), "child": (20, 230), "barley": (48, 114005)}


@pytest.mark.parametrize("name", REAL)
def test_real_networks_have_the_documented_size(name):
    """Nodes and free parameters as the repository of networks counts them."""
    found = named(bundled(name))
    variables, parameters = REAL[name]
    assert len(found.names.variables) == variables
    counted = 0
    for part in conditionals(found.network):
        counted += part.costs.size // part.costs.shape[-1] * (part.costs.shape[-1] - 1)
    assert counted == parameters


def test_names_of_networks_stay_with_the_model(tmp_path):
    model = softmap.io.parse(TEXTS["bif"])
    assert model.names.variables[0] == "rain"
    assert softmap.solve(model).as_dict()["rain"] == "no"
    softmap.write(model, tmp_path / "toy.xmlbif")
    assert softmap.read(tmp_path / "toy.xmlbif").names.variables[0] == "rain"


# --- small probabilities, names and orders --------------------------------------------------------

SMALL = {
    "uai": "MARKOV\n1\n4\n1\n1 0\n4\n1e-400 2.5E-400 0.0 3e-320\n",
    "bif": "network a {{\n}}\nvariable x {{\n type discrete [ 4 ] {{ a, b, c, d }};\n}}\n"
    "probability ( x ) {{\n table {0};\n}}\n",
    "net": 'net {{ }}\nnode x {{ states = ( "a" "b" "c" "d" ); }}\n'
    "potential ( x ) {{ data = ( {0} ); }}\n",
    "xmlbif": "<BIF><NETWORK><VARIABLE><NAME>x</NAME><OUTCOME>a</OUTCOME><OUTCOME>b</OUTCOME>"
    "<OUTCOME>c</OUTCOME><OUTCOME>d</OUTCOME></VARIABLE>"
    "<DEFINITION><FOR>x</FOR><TABLE>{0}</TABLE></DEFINITION></NETWORK></BIF>",
    "xdsl": "<smile><nodes><cpt id='x'><state id='a'/><state id='b'/><state id='c'/>"
    "<state id='d'/><probabilities>{0}</probabilities></cpt></nodes></smile>",
}


@pytest.mark.parametrize("name", SMALL)
def test_probabilities_below_the_range_of_float64_are_not_zero(name):
    """They became forbidden: a model of positive potentials was called infeasible."""
    between = ", " if name == "bif" else " "
    text = SMALL[name].format(between.join(["1e-400", "2.5E-400", "0.0", "3e-320"]))
    model = softmap.io.parse(text.encode(), name)
    tenth = math.log(10)
    expected = [400 * tenth, 400 * tenth - math.log(2.5), math.inf, 320 * tenth - math.log(3)]
    assert model.unary.tolist() == pytest.approx(expected, rel=1e-15)
    assert softmap.solve(model).labels.tolist() == [3]


@pytest.mark.parametrize("word", ["1e-99999999999999999999", "0." + "0" * 400 + "1", "12e-402"])
def test_decimals_of_any_size_have_a_logarithm(word):
    model = softmap.io.parse(f"MARKOV\n1\n2\n1\n1 0\n2\n{word} 0e-9\n".encode())
    mantissa, _, exponent = word.partition("e")
    log = float(Decimal(mantissa).ln()) + int(exponent or 0) * math.log(10)
    assert model.unary.tolist() == pytest.approx([-log, math.inf], rel=1e-15)


def test_numbers_of_large_files_keep_their_places():
    """Numbers are read in pieces."""
    rng = np.random.default_rng(0)
    n = 20_000
    exponents = rng.integers(-500, 1, (n, 2))
    words = [f"1e{e}" if e > -500 else "0.000" for e in exponents.ravel().tolist()]
    scopes = "\n".join(f"1 {i}" for i in range(n))
    tables = "\n".join(f"2\n{a} {b}" for a, b in zip(words[::2], words[1::2], strict=True))
    text = f"MARKOV\n{n}\n{' '.join(['2'] * n)}\n{n}\n{scopes}\n{tables}\n"
    found = softmap.io.parse(text.encode()).unary
    expected = np.where(exponents.ravel() > -500, -exponents.ravel() * math.log(10), math.inf)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(("name", "text"), [
    ("uai", "MARKOV\n1\n2\n1\n1 0\n2\n-1e-400 1\n"),
    ("xdsl", SMALL["xdsl"].format("-1e-400 1 0 0")),
    ("uai", "MARKOV\n1\n2\n1\n1 0\n2\n1e-1" + "0" * 400 + " 1\n"),
    ("dem", "error(1e-400) D0\n"),
])  # fmt: skip
def test_what_no_logarithm_stands_for_is_refused(name, text):
    with pytest.raises(softmap.FormatError, match=r"potential|probabilit|1e\+300"):
        softmap.io.parse(text.encode(), name)


def _network(order, rng):
    """A network in which the parents of a variable come before it in `order`."""
    sizes, factors = [2, 3, 2, 3, 2], []
    for place, i in enumerate(order):
        parents = list(order[max(0, place - 2) : place])
        table = rng.dirichlet(np.ones(sizes[i]), size=[sizes[p] for p in parents])
        factors.append(((*parents, i), -np.log(table)))
    return softmap.Model.from_factors(sizes, factors)


@pytest.mark.parametrize("suffix", [".xdsl", ".bif", ".net", ".xmlbif"])
def test_an_order_with_parents_first_is_kept(suffix, tmp_path):
    model = _network(range(5), np.random.default_rng(21))
    softmap.write(model, tmp_path / f"m{suffix}")
    twin = softmap.read(tmp_path / f"m{suffix}")
    assert twin.network.num_labels[:5].tolist() == model.network.num_labels[:5].tolist()
    labels = softmap.solve(model).labels
    assert softmap.solve(twin).labels.tolist() == labels.tolist()
    assert twin.energy(labels) == pytest.approx(model.energy(labels))


def test_another_order_is_told(tmp_path):
    model = _network([4, 2, 0, 1, 3], np.random.default_rng(3))
    with pytest.warns(softmap.FormatWarning, match="variable 4 is number 0"):
        softmap.write(model, tmp_path / "m.xdsl")
    twin = softmap.read(tmp_path / "m.xdsl")
    order = [int(name.removeprefix("x")) for name in twin.names.variables]
    assert twin.network.num_labels[:5].tolist() == model.network.num_labels[order].tolist()
    labels = softmap.solve(model).labels
    assert softmap.solve(twin).labels.tolist() == labels[order].tolist()


@pytest.mark.parametrize(("suffix", "names", "states"), [
    (".cfn", ["left eye", "right"], None),
    (".cfn", ["left", "right"], ["wide open", "shut"]),
    (".cfn", [1, 2], None),
    (".bif", ["a/b", "right"], None),
    (".bif", ["1", 1], None),
    (".net", ["left eye", "right"], None),
    (".xdsl", ["left eye", "right"], None),
    (".xmlbif", [" left", "right"], None),
    (".npz", [("left", 1), "right"], None),
    (".npz", ["left", "right"], [0.5, 1.5]),
])  # fmt: skip
def test_names_that_a_format_cannot_hold_are_not_lost_in_silence(suffix, names, states, tmp_path):
    model = softmap.Model(-np.log([[0.5, 0.5], [0.2, 0.8]])).with_names(names, states)
    with pytest.warns(softmap.FormatWarning, match="names of variables or states are not"):
        softmap.write(model, tmp_path / f"m{suffix}")
    assert softmap.read(tmp_path / f"m{suffix}").network.num_variables == 2

"""Bayesian networks in files: BIF, XMLBIF, NET, XDSL, against each other and against pgmpy."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softmap
from io_helpers import damaged, labellings, reads_or_refuses, refuses
from softmap.io import read_named
from softmap.io.formats import FORMATS

BIF = b"""// a toy
network "toy" { property author "x"; }
variable rain { type discrete [ 2 ] { no, yes }; property position = (1, 2); }
variable "wet grass" { type discrete[3]{dry, "a bit", soaked}; }
/* in between
 */
variable mood { type discrete [ 2 ] { good, bad }; }
probability ( rain ) { table 0.8, 0.2; }
probability ( "wet grass" | rain ) {
  (no) 0.9, 0.1, 0.0;
  (yes) 0.2, 0.3, 0.5;
}
probability ( mood | "wet grass", rain ) {
  default 0.5, 0.5;
  (soaked, yes) 0.1, 0.9;
}
"""
XMLBIF = b"""<?xml version="1.0" encoding="US-ASCII"?>
<!DOCTYPE BIF [ <!ELEMENT BIF ( NETWORK )*> <!ATTLIST BIF VERSION CDATA #REQUIRED> ]>
<BIF VERSION="0.3"><NETWORK><NAME>toy</NAME>
<VARIABLE TYPE="nature"><NAME>rain</NAME><OUTCOME>no</OUTCOME><OUTCOME>yes</OUTCOME></VARIABLE>
<VARIABLE TYPE="nature"><NAME>wet grass</NAME><OUTCOME>dry</OUTCOME><OUTCOME>a bit</OUTCOME>
<OUTCOME>soaked</OUTCOME><PROPERTY>x &lt; y</PROPERTY></VARIABLE>
<VARIABLE TYPE="nature"><NAME>mood</NAME><OUTCOME>good</OUTCOME><OUTCOME>bad</OUTCOME></VARIABLE>
<DEFINITION><FOR>rain</FOR><TABLE>0.8 0.2</TABLE></DEFINITION>
<DEFINITION><FOR>wet grass</FOR><GIVEN>rain</GIVEN>
<TABLE>0.9 0.1 0.0 <!-- yes --> 0.2 0.3 0.5</TABLE></DEFINITION>
<DEFINITION><FOR>mood</FOR><GIVEN>wet grass</GIVEN><GIVEN>rain</GIVEN>
<TABLE>.5 .5 .5 .5 .5 .5 .5 .5 .5 .5 0.1 0.9</TABLE></DEFINITION>
</NETWORK></BIF>
"""
NET = b"""net { node_size = (80 40); name = "a; toy"; }
node rain { states = ("no" "yes"); label = "Rain; or not"; position = (1 2); }
node wet { states = ( "dry" "a bit" "soaked" ); }
node mood { states = ("good" "bad"); } % a comment
potential (rain) { data = (0.8 0.2); }
potential (wet | rain) { data = ((0.9 0.1 0.0)(0.2 0.3 0.5)); }
potential (mood | wet rain) {
  data = (((.5 .5)(.5 .5)) % dry
          ((.5 .5)(.5 .5)) ((.5 .5)(.1 .9)));
}
"""
XDSL = b"""<?xml version="1.0" encoding="UTF-8"?>
<smile version="1.0" id="toy" numsamples="1000">
<nodes>
<cpt id="rain"><state id="no"/><state id="yes"/><probabilities>0.8 0.2</probabilities></cpt>
<cpt id="wet"><state id="dry"/><state id="bit"/><state id="soaked"/><parents>rain</parents>
<probabilities>0.9 0.1 0 0.2 0.3 0.5</probabilities></cpt>
<deterministic id="boots"><state id="on"/><state id="off"/><parents>rain</parents>
<resultingstates>off on</resultingstates></deterministic>
</nodes>
<extensions><genie><node id="rain"><name>Rain</name><state id="no"/></node></genie></extensions>
</smile>
"""
TEXTS = {"bif": BIF, "xmlbif": XMLBIF, "net": NET, "xdsl": XDSL}
NAMED = pytest.mark.parametrize("form", TEXTS)


def named(text, form=None):
    return read_named(io.BytesIO(text), format=form)


@pytest.mark.parametrize("form", ["bif", "xmlbif", "net"])
def test_the_joint_distribution_of_a_toy(form):
    found = named(TEXTS[form])
    wet = [[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]]
    assert found.states == (("no", "yes"), ("dry", "a bit", "soaked"), ("good", "bad"))
    for r, w, m in labellings(found.model):
        mood = [0.1, 0.9] if (w, r) == (2, 1) else [0.5, 0.5]
        joint = [0.8, 0.2][r] * wet[r][w] * mood[m]
        assert np.exp(-found.model.energy([r, w, m])) == pytest.approx(joint)


def test_deterministic_nodes():
    found = named(XDSL)
    assert found.variables == ("rain", "wet", "boots")
    assert np.exp(-found.model.energy([1, 2, 0])) == pytest.approx(0.2 * 0.5)
    assert found.model.energy([1, 2, 1]) == np.inf


@NAMED
def test_contents_tell_the_format(form):
    assert softmap.io.format_of("unknown", TEXTS[form]) == form


@NAMED
def test_round_trip(form, tmp_path):
    found = named(TEXTS["bif" if form == "bif" else "net"])
    path = tmp_path / f"toy{FORMATS[form].suffixes[0]}"
    if form == "xdsl":  # its names hold no blanks
        states = tuple(tuple(s.replace(" ", "_") for s in own) for own in found.states)
        found = softmap.io.Named(found.model, found.variables, states)
    softmap.write(found, path)
    again = read_named(path)
    assert set(again.variables) == set(found.variables)
    for x in labellings(found.model):
        y = again.labels(found.assignment(x))
        assert again.model.energy(y) == pytest.approx(found.model.energy(x))
    softmap.write(found.model, path)
    assert read_named(path).model.num_variables == 3


@NAMED
def test_what_is_no_network_is_not_written(form, tmp_path):
    path = tmp_path / f"x{FORMATS[form].suffixes[0]}"
    with pytest.raises(softmap.ModelError, match="Bayesian network"):
        softmap.write(softmap.Model(np.eye(2), [[0, 1]], softmap.Potts([1.0])), path)
    odd = softmap.io.Named(softmap.Model([[0.0]], [], []), ('a\n"b',), (("s",),))
    with pytest.raises(softmap.ModelError, match="name"):
        softmap.write(odd, path)
    assert not path.exists()


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
    assert len(found.variables) == variables
    counted = 0
    for part in softmap.io.bayes.conditionals(found.model):
        counted += part.table.size // part.table.shape[-1] * (part.table.shape[-1] - 1)
    assert counted == parameters


BAD = {
    "bif": {
        b"": (None, "at least one variable"),
        b"wariable x": (1, "network, variable"),
        b"variable x {\n type continuous;\n}": (2, "discrete"),
        b"variable x { type discrete [ 3 ] { a, b }; }": (1, "2, the number of states"),
        b"variable x { type discrete [ 2 ] { a, a }; }": (1, "does not have yet"),
        BIF.replace(b"(yes) 0.2, 0.3, 0.5;", b""): (None, "2 rows"),
        BIF.replace(b"(yes) 0.2, 0.3, 0.5;", b"(no) 0.2, 0.3, 0.5;"): (None, "once"),
        BIF.replace(b"(yes) 0.2,", b"(maybe) 0.2,"): (None, "one state for each"),
        BIF.replace(b"0.3, 0.5", b"0.3"): (None, "3 probabilities"),
        BIF.replace(b"0.3, 0.5", b"0.3, x"): (None, "probabilities"),
        BIF.replace(b"0.3, 0.5", b"-0.3, 0.5"): (None, "not negative"),
        BIF.replace(b"| rain )", b"| wind )"): (9, "the name of a variable"),
        BIF.replace(b"| rain )", b"| rain, rain )"): (9, "once"),
        BIF[:-30]: (None, "'}'"),
    },
    "xmlbif": {
        b"": (1, "XML"),
        b"<BAF/>": (1, "element BIF"),
        b"<BIF><NETWORK>": (1, "XML"),
        b'<!DOCTYPE BIF [ <!ENTITY a "aaaa"> ]><BIF>&a;</BIF>': (1, "entity"),
        XMLBIF.replace(b"<FOR>rain", b"<FOR>wind"): (None, "the name of a variable"),
        XMLBIF.replace(b"0.8 0.2", b"0.8"): (None, "2 probabilities"),
        XMLBIF.replace(b"0.8 0.2", b"0.8 nan"): (None, "not negative"),
        XMLBIF.replace(b'VARIABLE TYPE="nature"', b'VARIABLE TYPE="decision"'): (4, "nature"),
        b"<BIF>" + b"<A>" * 200 + b"</A>" * 200 + b"</BIF>": (1, "inside each other"),
    },
    "net": {
        b"knot x { }": (1, "net, node or potential"),
        b"node x { states = (a b) }": (1, "';'"),
        NET.replace(b"(0.8 0.2)", b"(0.8)"): (None, "2 probabilities"),
        NET.replace(b"data = (0.8", b"model_data = (0.8"): (None, "formulas"),
        NET.replace(b"potential (mood | wet rain)", b"potential (rain)"): (None, "one table"),
    },
    "xdsl": {
        b"<smile><nodes><noisymax id='x'></noisymax></nodes></smile>": (1, "cpt"),
        XDSL.replace(b"off on", b"off maybe"): (None, "2 states"),
        XDSL.replace(b"<probabilities>0.8 0.2</probabilities>", b""): (4, "probabilities"),
        XDSL.replace(b'id="wet"', b'id="rain"'): (6, "a new variable name"),
    },
}


@pytest.mark.parametrize(("form", "text"), [(f, t) for f, texts in BAD.items() for t in texts])
def test_bad_files_say_where_and_what(form, text):
    refuses(FORMATS[form].parse, text, *BAD[form][text])


@NAMED
@given(data=st.data())
@settings(max_examples=60)
def test_damaged_files_raise_our_errors_only(form, data):
    text = data.draw(st.one_of(damaged([TEXTS[form]]), st.binary(max_size=60)))
    reads_or_refuses(FORMATS[form].parse, text)


def test_formats_without_names():
    with pytest.raises(softmap.FormatError, match="a format with names"):
        named(b"MARKOV 1 2 0 ")

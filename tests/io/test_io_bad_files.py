"""Files that are wrong, of every format: the error names the line and what was expected.

Whatever bytes a reader is given, it returns a model or raises one of softmap's own errors.
"""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap.io.formats import FORMATS
from softmap.io.results import read_evidence, read_labels, read_sln
from support.files import damaged, flipped, labellings
from support.samples import BIF, NET, RESULTS, SAMPLES, XDSL, XMLBIF, content

BINARY = ("npz", "opengm")
ONE = b'{problem {mustbe "<1"} variables {a 2} functions {f {scope '
GLOBAL = b'{problem {mustbe "<9"} variables {a 2 b 2 c 2} functions {f {scope [a b c] type '
MANY = b"toy 4 2 1 9\n2 2 2 2\n4 0 1 2 3 -1 "

# format -> the text of a file -> the line that is named (None: no line), and what was expected
BAD: dict[str, dict[bytes, tuple[int | None, str]]] = {
    "lp": {
        b"minimize x": (1, "a linear objective, then the rows, found the end"),
        b"minimise x + st c: x >= 1 end": (1, "a term after the sign, found 'st'"),
        b"x + y": (1, "minimize or maximize"),
        b"min\n x y\nst\n": (2, "a linear objective"),
        b"min\n x ^ 2\nst\n": (2, "a linear objective"),
        b"min\n x\nst\n r: [ x ] >= 1": (4, "a linear sum, found a quadratic one"),
        b"min\n x\nst\n r: x >= y\nend": (4, "a number, found 'y'"),
        b"min\n x\nst\n r: x >= 1 + 2\nend": (5, "a sum with a column, found 'end'"),
        b"min\n x\nst\n r: x + y\nend": (5, "<=, >= or =, found 'end'"),
        b"min\n x\nst\n r: 1e999 x + y >= 1\nend": (4, "a finite number, found '1e999'"),
        b"min\n x\nst\n r: x + inf >= 1\nend": (4, "a term after the sign"),
        b"min\n x\nst\n r: x >= inf\nbin\n x\nend": (None, "rows that can hold"),
        b"min\n x\nbounds\n 3 x\nend": (4, "the name of a column, found '3'"),
        b"min\n x\nbin\n x\n": (5, "the name of a column, found the end of the text"),
        b"min\n x\nsos\n x\nend": (3, "a section of rows"),
        b"min\n x + 1e999\nbin\n x\nend": (2, "a finite number, found '1e999'"),
        b"min\n x + 1e308 + 1e308\nbin\n x\nend": (None, "a finite constant"),
        b"min\n x\nbin\n x\nend\nst": (6, "nothing after end, found 'st'"),
        b"minimize\n x\nsubject to\n r: x + y >= 1\nbinary\n x\nend\n": (None, "columns of whole"),
    },
    "mps": {
        b"NAME toy\nROWS\n": (2, "ENDATA"),
        b"NAME\nROWS\n Z r\n": (3, "N, L, G or E"),
        b"NAME\nROWS\n L r\n L r\n": (4, "names of rows that differ"),
        b"NAME\nROWS\n L r\nCOLUMNS\n a s 1\n": (5, "the name of a row, found 's'"),
        b"NAME\nROWS\n L r\nCOLUMNS\n a r x\n": (5, "a number, found 'x'"),
        b"NAME\nROWS\n L r\nCOLUMNS\n a r 1_0\n": (5, "a number, found '1_0'"),
        b"NAME\nROWS\n L r\nCOLUMNS\n a r nan\n": (5, "a number, found 'nan'"),
        b"NAME\nROWS\n L r\nCOLUMNS\n a r inf\n": (5, "finite coefficients"),
        b"NAME\nROWS\n L r\nCOLUMNS\n a r\n": (5, "pairs of a row and a number"),
        b"NAME\nROWS\n L r\nCOLUMNS\n a r 1 r 2\n": (5, "one number per row and column"),
        b"NAME\nROWS\n L r\nCOLUMNS\n a r 1\n b r 1\n a r 1\n": (7, "a column together"),
        b"NAME\nROWS\n L r\nCOLUMNS\n M 'MARKER' x\n": (5, "INTORG or INTEND"),
        b"NAME\nROWS\n L r\nCOLUMNS\n a r 1\nRHS\n R r 1\n R r 2\n": (8, "one number per name"),
        b"NAME\nROWS\n L r\nCOLUMNS\n a r 1\nBOUNDS\n SC B a 2\n": (7, "found 'SC'"),
        b"NAME\nROWS\n L r\nCOLUMNS\n a r 1\nBOUNDS\n UP B b 2\n": (7, "the name of a column"),
        b"NAME\nROWS\n L r\nCOLUMNS\n a r 1\nBOUNDS\n UP a\n": (7, "a bound, its set"),
        b"NAME\nROWS\n L r\nCOLUMNS\n a r 1\nBOUNDS\n UP B a 2\n UP B a 3\n": (8, "one number per"),
        b"NAME\nOBJSENSE\n least\n": (3, "MIN or MAX"),
        b"NAME\nROWS\n L r\nQUADOBJ\n a a 1\nENDATA\n": (4, "a section"),
        b"NAME\nROWS\n L r\nENDATA\n": (None, "at least one column"),
    },
    "uai": {
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
    },
    "wcsp": {
        b"": (1, "name"),
        b"toy": (1, "number of variables"),
        b"toy 1 2 0": (1, "upper bound"),
        b"toy 1 2 0 9\n3": (2, "domain sizes"),
        b"toy 1 2 0 9\n-3": (2, "domain sizes"),
        b"toy 1 2 1 9\n2\n1 0 0": (3, "number of tuples"),
        b"toy 1 2 1 9\n2\n1 0 -1 2": (3, "global"),
        b"toy 1 2 1 9\n2\n1 0 0 1\n2 1": (4, "label"),
        b"toy 1 2 1 9\n2\n1 0 0 1\n1 -1": (4, "cost"),
        b"toy 1 2 1 9\n2\n1 0 0 1\n1 0.5": (4, "a whole number"),
        b"toy 1 2 1 9\n2\n1 0 0 5\n1 1": (4, "5 tuples"),
        b"toy 1 2 1 9\n2\n1 0 0 -1": (3, "tuples"),
        b"toy 2 2 1 9\n2 2\n2 0 0 0 0": (3, "twice"),
        b"toy 1 2 9 9\n2\n1 0 0 0": (3, "functions"),
        b"toy 1 2 1 9\n2\n1 0 0 0 7": (3, "end of the file"),
        b"toy 1 2 1 9\n2\n1 0 -1 salldiff var": (3, "cost"),
        b"toy 2 99999999 1 9\n99999999 99999999\n2 0 1 0 0": (None, "costs"),
        b"toy 1 999999999999 0 9\n999999999999": (None, "costs"),
        MANY + b"smstdp 1": (3, "one of >="),
        MANY + b"salldiff 3 1": (3, "how salldiff is measured"),
        MANY + b"salldiff edit 1": (3, "not supported"),
        MANY + b"sgcc edit 1 1 0 1 1": (3, "not supported"),
        MANY + b"sgcc dec 1 1 5 1 1": (3, "wants value 5"),
        MANY + b"knapsack 3 1 1": (3, "a number of knapsack"),
        MANY + b"5 3 1 1": (3, "a global cost function"),
        MANY + b"ssame 4 1 3 0 1 2 3": (3, "lists of 1 and 3"),
        MANY + b"sregular edit 1 2 1 0 1 1 0": (3, "not supported"),
        b"toy 4 2 1 9\n2 2 2 2\n0 -1 salldiff var 1": (3, "variables"),
    },
    "cfn": {
        b"": (1, "'{'"),
        b"{": (1, "'problem'"),
        b"{problem {name t mustbe 7} variables": (1, "a bound"),
        b'{problem {mustbe "<1"} variables {} functions {}}': (1, "at least one variable"),
        b'{problem {mustbe "<1"} variables {a 0} functions {}}': (1, "at least one label"),
        b'{problem {mustbe "<1"} variables {a -3} functions {}}': (1, "labels"),
        b'{problem {mustbe "<1"} variables {a 2 a 2} functions {}}': (1, "new variable"),
        ONE + b"[b] costs [1 2]}}}": (1, "a variable"),
        ONE + b"[a a] costs [1 2]}}}": (1, "twice"),
        ONE + b"[a] costs [1]}}}": (1, "2 costs"),
        ONE + b"[a] costs [1 z]}}}": (1, "2 costs"),
        ONE + b"[a] costs [1 nan]}}}": (None, "NaN"),
        ONE + b"[a] costs g}}}": (1, "'f' to have"),
        ONE + b"[a] costs f}}}": (1, "'f' to have"),
        ONE + b"[a] type salldiff}}}": (1, "params"),
        ONE + b"[a] costs [1 2]}": (1, "'}'"),
        ONE + b"[a] costs [1 2": (1, "']'"),
        b'{problem {mustbe "<1"} variables {a 99999999999} functions {}}': (None, "costs"),
        ONE.replace(b"a 2", b"a 999999 b 999999") + b"[a b] defaultcost 0 costs []}}}": (
            None,
            "costs",
        ),
        ONE + b"[a] defaultcost 0 costs [5 1]}}}": (1, "labels"),
        ONE.replace(b"a 2", b"a [x y]") + b"[a] defaultcost 0 costs [z 1]}}}": (1, "rows"),
        GLOBAL + b"smstdp params {}}}}": (1, "one of >="),
        GLOBAL + b"salldiff params {metric var}}}}": (1, "'cost'"),
        GLOBAL + b"salldiff params {metric other cost 1}}}}": (1, "one of var"),
        GLOBAL + b"salldiff params {colour 3}}}}": (1, "one of metric, cost"),
        GLOBAL + b"knapsack params {capacity 3 weights [1 2]}}}}": (1, "lists of 3"),
        GLOBAL + b"knapsackv params {capacity 3 weightedvalues [[a x 1]]}}}}": (1, "a number"),
        GLOBAL + b"samong params {metric var cost 1 min 1 max [2] values [0]}}}}": (
            1,
            "a number or a word",
        ),
        GLOBAL + b"ssame params {cost 1 vars1 [a] vars2 [b c]}}}}": (1, "lists of 1 and 2"),
        GLOBAL + b"sgcc params {metric dec cost 1 bounds [[[[[[0]]]]]]}}}}": (1, "brackets"),
    },
    "dd": {
        b"": (None, "one line 'p"),
        b"p 1 1 1 0\na 0 0 0": (2, "4 numbers"),
        b"p 1 1 1 0\na 0 0 0 x": (2, "4 numbers"),
        b"p 1 1 1 0\na 0 0 0 nan": (2, "4 numbers"),
        b"p 1 1 1 0\nq 0 0 0 1": (2, "a line p, a, e or c"),
        b"p 1 1 2 0\na 0 0 0 1": (None, "2 assignments"),
        b"p 1 1 1 0\na 1 0 0 1": (None, "an assignment 0 to 0"),
        b"p 1 1 1 0\na 0 5 0 1": (None, "a left node 0 to 0"),
        b"p 1 1 1 0\na 0 0 5 1": (None, "a right node 0 to 0"),
        b"p 1 1 1 1\na 0 0 0 1": (None, "1 pairs"),
        b"p 1 1 1 1\na 0 0 0 1\ne 0 1 1": (None, "an assignment"),
        b"p 1 1 2 0\na 0 0 0 1\na 0 0 0 1": (None, "once"),
        b"p 1 1 2 0\na 0 0 0 1\na 1 0 0 1": (None, "at most once"),
        b"p 0 1 0 0": (None, "counts"),
        b"p 99999999 1 0 0": (None, "costs"),
        b"gm 0 1\nc toy\np 27483648  3 0 0 ": (None, "costs"),  # found by fuzzing: slow
    },
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
    "qpbo": {
        b"": (None, "the number of variables"),
        b"0 0\n": (1, "at least one variable"),
        b"2 1\n1 3 1\n": (2, "a variable 1 to 2"),
        b"2 2\n1 2 1\n": (2, "2 lines"),
        b"2 1\n1 2 1\n5": (3, "the end of the file"),
        b"2 1\n1 2 1e308\n": (None, "finite weights"),  # found by fuzzing: a warning of numpy's
        b"2 1\n1 2 inf\n": (None, "finite"),
        b"2 1\n1 2 x\n": (2, "a number"),
        b"999999999 0\n": (None, "costs"),
    },
    "qubo": {
        b"0 0 1\n": (None, "p qubo"),
        b"p qubo 0 0 0 0\n": (1, "at least one node"),
        b"c x\np qubo 0 2 1 0\n0 2 1\n": (3, "a variable 0 to 1"),
        b"c offset=x\np qubo 0 2 0 0\n": (1, "offset"),
    },
    "coo": {
        # found by fuzzing: 7.5 GiB
        b"# vartype=SPIN\n0 0 3\n1000000000 1000000000 -2\n": (None, "costs"),
        b"": (None, "lines 'i j w'"),
        b"0 1\n": (1, "lines 'i j w'"),
        b"0 -1 2\n": (1, "a variable"),
        b"# vartype=REAL\n0 0 1\n": (None, "BINARY or SPIN"),
        b"0 99999999999 1\n": (1, "a variable"),
        b"0 999999999 1\n": (None, "costs"),
    },
    "maxcut": {b"2 1\n1 2 3 4\n": (2, "the end"), b"2 3\n1 2 3\n": (2, "3 lines")},
    "qap": {
        b"3\n1 2 3\n": (None, "18 numbers"),
        b"0\n": (1, "the size"),
        b"1\n1 inf\n": (2, "finite"),
        b"1\n1e200 1e200\n": (None, "within"),
    },
    "wcnf": {
        b"": (None, "at least one variable"),
        b"1 2": (1, "0 at the end"),
        b"h 1 0\n-2 1 0\n": (2, "weight"),
        b"-1 1 0\n": (1, "weights, or h"),
        b"p wcnf 2 1 9\n-3 1 0\n": (2, "weight"),
        b"p wcnf 2 1 9\n3 7 0\n": (2, "at most 2"),
        b"p cnf 2 1\n1 0\n": (1, "'p wcnf"),
        b"1 1.5 0\n": (1, "the number of a variable"),
        b"1 x 0\n": (1, "a number"),
        b"h 999999999 0\n": (None, "costs"),
    },
    "opb": {
        b"": (None, "at least one variable"),
        b"min: 1 x1": (1, "';'"),
        b"min: 1 x1;\n1 x1 + >= 2;": (2, "a number, a literal"),
        b"min: 1 x1;\n1 x1;": (2, "'>='"),
        b"min: 1 x1;\n1 x1 >= x1;": (2, "one number"),
        b"min: 1 2x;": (1, "a literal such as x1"),
        b"min: 1 x1;\n= 3;": (None, "never holds"),
        b"min: 1 x999999999;": (None, "costs"),
    },
    "dem": {
        b"": (None, "at least one error"),
        b"error D0": (1, "a probability"),
        b"error(1.5) D0": (1, "a probability"),
        b"error(0.1) X0": (1, "a target"),
        b"repeat 2 {\nerror(0.1) D0": (2, "'}'"),
        b"}": (1, "an instruction"),
        b"noise(0.1) D0": (1, "error, detector"),
        b"repeat 999999999999 {\nerror(0.1) D0\n}": (3, "costs"),
        b"error(0.1) D999999999999": (None, "costs"),
        b"repeat 3 {\n" * 60: (51, "inside each other"),
    },
    "alist": {
        b"": (None, "four lines"),
        b"3 2\n2 2\n1 2\n2 2\n1 0\n1 2\n2 0\n1 2\n2 3\n": (3, "the weight of each column"),
        b"1 1\n1 1\n1\n1\n2\n1\n": (5, "from 1 to 1"),
        b"999999999 1\n1 1\n1\n1\n": (None, "lines"),
    },
}

BAD_RESULTS = {
    "evidence": [b"", b"2 0 1 3", b"1 5", b"-1", b"1 0 x", b"2 0 1 0 2", b"3 1"],
    "labels": [
        b"",
        b"MAR\n1 0",
        b"MPE",
        b"MPE 3 1 0",
        b"MPE 1 0 0 0",
        b"MPE 1 -1",
        b"MPE 1e308 18" + 18 * b" 0",
        b"MPE inf 1 0",
    ],
    "sln": [b"", b"3 17\n1 2", b"2 5\n1 1", b"2 5\n1 2 3", b"0 1"],
}
PARSERS = {"evidence": read_evidence, "labels": read_labels, "sln": read_sln}


def test_every_text_format_is_here():
    readable = {name for name, form in FORMATS.items() if form.reader}
    # circuits are read by the package stim: tests/codes/test_sinter.py
    assert set(SAMPLES) == set(BAD) == readable - set(BINARY) - {"stim"}
    assert set(RESULTS) == set(BAD_RESULTS) == set(PARSERS)


@pytest.mark.parametrize(("form", "text"), [(f, t) for f, texts in BAD.items() for t in texts])
def test_errors_name_the_line_and_what_was_expected(form, text):
    line, expected = BAD[form][text]
    with pytest.raises(softmap.FormatError) as caught:
        softmap.io.parse(text, form)
    assert expected in str(caught.value)
    if line is not None:
        assert caught.value.line == line


@pytest.mark.parametrize(("kind", "text"), [(k, t) for k, ts in BAD_RESULTS.items() for t in ts])
def test_bad_evidence_and_labellings(kind, text):
    with pytest.raises(softmap.FormatError):
        PARSERS[kind](io.BytesIO(text))


def reads_or_refuses(form: str, data: bytes) -> None:
    """Whatever a file holds: a model without NaN, or one of our errors."""
    options = {"values": ("potential", "log", "cost")[len(data) % 3]} if form == "uai" else {}
    try:
        model = softmap.io.parse(data, form, **options)
    except softmap.SoftmapError:
        return
    assert not np.isnan(model.energy(labellings(model, 3))).any()


@pytest.mark.parametrize("form", SAMPLES)
@given(data=st.data())
def test_damaged_texts(form, data):
    """Three files at a time: to begin an example takes longer than to read one."""
    texts = st.one_of(damaged(SAMPLES[form]), st.binary(max_size=60))
    for text in data.draw(st.lists(texts, min_size=3, max_size=3)):
        reads_or_refuses(form, text)


@pytest.mark.parametrize("form", BINARY)
@given(data=st.data())
def test_damaged_binary_files(form, data):
    if form == "opengm":
        pytest.importorskip("h5py")
    reads_or_refuses(form, data.draw(flipped([content(model, form) for model in MODELS])))


MODELS = [
    softmap.Model.from_factors(
        [2, 3, 2], [((0, 1, 2), np.arange(12.0).reshape(2, 3, 2)), ((0, 1), np.ones((2, 3)))]
    ),
    softmap.Model(np.eye(3), [[0, 1], [1, 2]], softmap.TruncatedLinear([1.0, 2.0], [1.0, 2.0])),
]


@pytest.mark.parametrize("form", SAMPLES)
def test_files_that_end_early(form):
    for text in SAMPLES[form]:
        for end in range(0, len(text), 1 + len(text) // 60):
            reads_or_refuses(form, text[:end])


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("data", [None, "MARKOV", 3, [1]])
def test_parsers_want_bytes(form, data):
    with pytest.raises(softmap.OptionError, match="expected the bytes of a file"):
        softmap.io.parse(data, form)


@pytest.mark.parametrize("kind", PARSERS)
@given(data=st.data())
def test_damaged_evidence_and_labellings(kind, data):
    text = data.draw(st.one_of(damaged(RESULTS[kind]), st.binary(max_size=20)))
    with contextlib.suppress(softmap.SoftmapError):
        found = PARSERS[kind](io.BytesIO(text))
        numbers = {"evidence": list, "labels": list, "sln": lambda pair: list(pair[0])}[kind](found)
        assert all(x >= 0 for x in numbers)

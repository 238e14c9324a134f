"""Texts of linear programs, compared with what HiGHS reads."""

from __future__ import annotations

import math
import os
import tempfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmap.io.program_texts import lp_program, mps_program
from softmap.io.streams import Content

INF = math.inf
NUMBERS = st.sampled_from([0.5, 1.0, 2.0, 3.0, 1e3, 12.25])
RELATIONS = st.sampled_from(["<=", ">=", "="])


def by_highs(text, suffix):
    """The program that HiGHS reads; None if it complains."""
    import highspy

    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    number, path = tempfile.mkstemp(suffix)
    try:
        os.write(number, text.encode())
        os.close(number)
        status = highs.readModel(path)
    finally:
        os.remove(path)
    if status != highspy.HighsStatus.kOk:
        return None
    lp = highs.getLp()
    dense = np.zeros((lp.num_row_, lp.num_col_))
    starts = list(lp.a_matrix_.start_)
    for j in range(lp.num_col_):
        for k in range(starts[j], starts[j + 1]):
            dense[lp.a_matrix_.index_[k], j] = lp.a_matrix_.value_[k]
    whole = [kind.name == "kInteger" for kind in lp.integrality_] or [False] * lp.num_col_
    return (
        list(lp.col_names_), lp.sense_.name == "kMaximize", lp.offset_, list(lp.col_cost_),
        list(lp.col_lower_), list(lp.col_upper_), whole,
        list(lp.row_lower_), list(lp.row_upper_), dense.tolist(),
    )  # fmt: skip


def plain(program):
    """A program as `by_highs` returns it."""
    dense = np.zeros((len(program.rows), len(program.names)))
    for i, j, value in zip(program.row, program.column, program.value, strict=True):
        dense[i, j] += value
    return (
        program.names, program.maximise, program.offset, program.costs, program.low, program.high,
        program.whole, program.row_low, program.row_high, dense.tolist(),
    )  # fmt: skip


@st.composite
def sums(draw, names):
    """The text of a sum without repeated columns."""
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True))
    text = ""
    for k, name in enumerate(chosen):
        sign = draw(st.sampled_from(["+", "-", "" if k == 0 else "+"]))
        number = draw(st.none() | NUMBERS)
        space = draw(st.sampled_from([" ", "\n ", "  \\ a comment\n "]))
        text += f" {sign}" + ("" if number is None else f" {number:g}") + space + name
    return text


@st.composite
def lp_texts(draw):
    names = [f"x{k}" for k in range(4)] + ["y_1", "z(2)", "w.e2"]
    aim = draw(st.sampled_from(["min", "Minimize", "MAXIMIZE", "maximum"]))
    constant = draw(st.sampled_from(["", " + 7", " - 2.5"]))
    text = (
        f"\\ a text\n{aim}\n{draw(st.sampled_from(['', ' obj:']))}{draw(sums(names))}{constant}\n"
    )
    text += draw(st.sampled_from(["st", "subject to", "Such That", "s.t."])) + "\n"
    for k in range(draw(st.integers(0, 3))):
        text += f" r{k}: {draw(sums(names))} {draw(RELATIONS)} -{draw(NUMBERS)}\n"
    text += "bounds\n"
    for name in draw(st.lists(st.sampled_from(names), max_size=4, unique=True)):
        low, high = draw(NUMBERS), 1e3 + draw(NUMBERS)
        some = [f"{low} <= {name} <= {high}", f"{name} >= -{low}", f"{name} <= {high}"]
        some += [f"{name} = {low}", f"{name} free", f"-inf <= {name} <= {high}", f"{name} >= {low}"]
        text += f" {draw(st.sampled_from(some))}\n"
    kinds = ["general", "Generals", "gen", "binary", "bin", "BINARIES"]
    text += f"{draw(st.sampled_from(kinds))}\n {' '.join(names[:3])}\n"
    return text + "end\n"


@st.composite
def mps_texts(draw):
    rows = draw(st.lists(st.sampled_from("LGE"), min_size=1, max_size=4))
    text = "* a text\nNAME toy\n" + draw(st.sampled_from(["", "OBJSENSE\n    MAX\n"]))
    text += "ROWS\n N obj\n" + "".join(f" {kind} r{k}\n" for k, kind in enumerate(rows))
    text += "COLUMNS\n"
    for j in range(4):
        text += " M1 'MARKER' 'INTORG'\n" if j == 1 else ""
        text += " M2 'MARKER' 'INTEND'\n" if j == 3 else ""
        names = ["obj", *(f"r{k}" for k in range(len(rows)))]
        used = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True))
        pairs = [f" {name} {draw(NUMBERS):g}" for name in used]
        text += f" x{j}{''.join(pairs[:2])}\n"
        text += f" x{j}{''.join(pairs[2:])}\n" if pairs[2:] else ""
    which = st.lists(st.integers(0, len(rows) - 1), unique=True)
    name = draw(st.sampled_from(["", " SET"]))
    text += "RHS\n" + "".join(f"{name} r{k} {draw(NUMBERS):g}\n".rjust(12) for k in draw(which))
    text += draw(st.sampled_from(["", " SET obj 3\n"]))
    ranges = [(k, draw(st.sampled_from("+-")), draw(NUMBERS)) for k in draw(which)]
    text += "RANGES\n" + "".join(f" SET r{k} {sign}{x:g}\n" for k, sign, x in ranges)
    text += "BOUNDS\n"
    for j in draw(st.lists(st.integers(0, 3), unique=True)):
        some = ["UP B x 9", "LO B x -3", "FX B x 2", "FR B x", "MI B x", "PL B x", "BV B x"]
        some += ["UI B x 4", "LI B x 1"]
        text += f" {draw(st.sampled_from(some))}\n".replace("x", f"x{j}")
    return text + "ENDATA\n"


@given(lp_texts())
def test_lp_texts_are_read_as_by_highs(text):
    expected = by_highs(text, ".lp")
    if expected is not None:
        assert plain(lp_program(Content(text.encode()))) == expected


@given(mps_texts())
def test_mps_texts_are_read_as_by_highs(text):
    expected = by_highs(text, ".mps")
    if expected is not None:
        assert plain(mps_program(Content(text.encode()))) == expected


def lp(rows, rest=""):
    return lp_program(Content(f"min\n x\nst\n{rows}\n{rest}\nend\n".encode()))


@pytest.mark.parametrize(
    ("row", "low", "high"),
    [
        ("c: x + 3 + y <= 1", -INF, -2.0),  # HiGHS leaves out the 3
        ("c: 2 x - 1 + y >= 4", 5.0, INF),
        ("c: -1 <= + x + y + 1 <= 5", -2.0, 4.0),  # HiGHS leaves out x and the -1
        ("c: 2 >= 3 x", -INF, 2.0),
        ("2 <= x + y", 2.0, INF),
        ("c: 4 = x - y", 4.0, 4.0),
        ("c: x + y < 1e30", -INF, INF),
        ("c: - x =< - 1", -INF, -1.0),
        ("c: x => -inf", -INF, INF),
        ("c: x + 0.1 + 0.2 <= 0.3", -INF, 0.0),  # not -5.6e-17, which no x >= 0 has
        ("c: x - 1e200 <= 1", -INF, 1e200),
    ],
)
def test_rows_with_constants_and_two_bounds(row, low, high):
    program = lp(row)
    assert (program.row_low, program.row_high) == ([low], [high])


def test_repeated_columns_are_added():
    program = lp("c: x + 2 x - y >= 1\n x + y >= 2")
    assert plain(program)[-1] == [[3.0, -1.0], [1.0, 1.0]]
    assert program.rows == ["c", "row 2"]


def test_repeated_columns_that_cancel_are_left_out():
    program = lp("c: 0.1 x + 0.2 x - 0.3 x + y >= 1")
    assert program.value == [0.0, 1.0]


def test_a_range_ends_at_the_decimal_that_is_meant():
    rows = "NAME\nROWS\n N a\n L r\n L s\nCOLUMNS\n x r 1 s 1\n"
    text = f"{rows}RHS\n R r 1.1 s 1\nRANGES\n R r 1 s inf\nENDATA\n"
    assert mps_program(Content(text.encode())).row_low == [0.1, -INF]  # 1.1 - 1.0 is above 0.1


def test_binary_columns_keep_their_bounds():
    program = lp("c: x >= 0", "bounds\n 1 <= x <= 4\n y <= 0\n z >= 1\nbinary\n x y z w")
    assert program.low == [1.0, 0.0, 1.0, 0.0]
    assert program.high == [4.0, 0.0, 1.0, 1.0]


def test_of_several_free_rows_the_first_is_the_objective():
    text = "NAME\nROWS\n N a\n N b\n L r\nCOLUMNS\n x a 1 b 2\n x r 1\nRHS\n R b 3 a 4\nENDATA\n"
    program = mps_program(Content(text.encode()))
    assert (program.costs, program.offset) == ([1.0], -4.0)  # HiGHS takes the 3 for it
    assert program.rows == ["r"]


def test_ranges_may_come_before_right_sides():
    text = "NAME\nROWS\n N a\n E r\nCOLUMNS\n x r 1\nRANGES\n R r 3\nRHS\n R r 1\nENDATA\n"
    program = mps_program(Content(text.encode()))
    assert (program.row_low, program.row_high) == ([1.0], [4.0])  # HiGHS drops the range

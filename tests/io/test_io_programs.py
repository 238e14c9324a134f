"""Integer linear programs as models: LP and MPS files, compared with plain sums and with HiGHS."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap.io import format_of, parse

INF = np.inf


@st.composite
def programs(draw):
    """Costs, ranges of columns, and rows of coefficients with two bounds, of which one may miss."""
    n = draw(st.integers(1, 8))
    sizes = draw(st.lists(st.sampled_from([2, 2, 2, 3]), min_size=n, max_size=n))
    costs = draw(st.lists(st.integers(-5, 5), min_size=n, max_size=n))
    rows = []
    for _ in range(draw(st.integers(0, 3))):
        weights = draw(st.lists(st.sampled_from([0, 1, 1, -1, 2, 0.5, -3]), min_size=n, max_size=n))
        if any(weights):
            relation = draw(st.sampled_from(["<=", ">=", "="]))
            rows.append((weights, relation, draw(st.integers(-2, 5))))
    return costs, sizes, rows


def _sum(weights):
    parts = [f"{'+' if w >= 0 else '-'} {abs(w):g} x{j}" for j, w in enumerate(weights) if w]
    return " ".join(parts) or "0 x0"


def lp_text(costs, sizes, rows):
    lines = ["\\ made by a test", "minimize", f" obj: {_sum(costs)}", "subject to"]
    lines += [f" row{i}: {_sum(w)} {rel} {b}" for i, (w, rel, b) in enumerate(rows)]
    bounds = [f" 0 <= x{j} <= {d - 1}" for j, d in enumerate(sizes)]
    names = " ".join(f"x{j}" for j in range(len(sizes)))
    return "\n".join([*lines, "bounds", *bounds, "general", f" {names}", "end", ""])


def mps_text(costs, sizes, rows):
    kinds = {"<=": "L", ">=": "G", "=": "E"}
    lines = [
        "NAME toy",
        "ROWS",
        " N obj",
        *(f" {kinds[r]} row{i}" for i, (_, r, _) in enumerate(rows)),
    ]
    lines += ["COLUMNS", " M1 'MARKER' 'INTORG'"]
    for j, c in enumerate(costs):
        lines.append(f" x{j} obj {c}")
        lines += [f" x{j} row{i} {w[j]:g}" for i, (w, _, _) in enumerate(rows) if w[j]]
    lines += [
        " M2 'MARKER' 'INTEND'",
        "RHS",
        *(f" R row{i} {b}" for i, (_, _, b) in enumerate(rows)),
    ]
    lines += ["BOUNDS", *(f" UP B x{j} {d - 1}" for j, d in enumerate(sizes)), "ENDATA", ""]
    return "\n".join(lines)


def value(costs, rows, x):
    """The objective; infinite if a row is violated."""
    for weights, relation, bound in rows:
        total = sum(w * y for w, y in zip(weights, x, strict=True))
        if {"<=": total > bound, ">=": total < bound, "=": total != bound}[relation]:
            return INF
    return sum(c * y for c, y in zip(costs, x, strict=True))


@given(programs())
def test_both_formats_mean_the_sums_that_they_say(program):
    costs, sizes, rows = program
    every = list(itertools.product(*map(range, sizes)))
    expected = [value(costs, rows, x) for x in every]
    for form, text in (("lp", lp_text(*program)), ("mps", mps_text(*program))):
        assert format_of(None, text.encode()) == form
        model = parse(text.encode(), form)
        order = [list(model.names.variables).index(f"x{j}") for j in range(len(sizes))]
        labels = np.empty((len(every), len(sizes)), dtype=int)
        labels[:, order] = every
        assert model.energy(labels).tolist() == pytest.approx(expected)


def test_the_optimum_is_that_of_highs(tmp_path):
    import highspy

    rng = np.random.default_rng(3)
    weights = rng.integers(1, 20, (3, 12))
    rows = [(row.tolist(), "<=", int(row.sum()) // 3) for row in weights]
    rows.append(([1] * 6 + [0] * 6, "=", 1))
    path = tmp_path / "knapsacks.lp"
    path.write_text(lp_text(rng.integers(-9, 0, 12).tolist(), [2] * 12, rows))
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.readModel(str(path))
    highs.run()
    result = softmap.solve(softmap.read(path))
    assert result.energy == pytest.approx(highs.getInfo().objective_function_value)
    assert result.bound == pytest.approx(result.energy)


BAD = {
    "minimize\n x + y\nsubject to\n r: x + y >= 1\nbinary\n x\nend\n": "column 'y' of real numbers",
    "minimize\n x\nsubject to\n odd: 0.33333333333 x + y >= 1\nbinary\n x y\nend\n": "row 'odd'",
    "minimize\n x\nsubject to\n r: x >= 1\ngeneral\n x\nend\n": "column 'x' of whole numbers",
    "minimize\n x +\nsubject to r: <= end": "a term after the sign",
    "minimize\n x\nsubject to\n r: x + y >= 1\nbounds\n y = 1e19\nbinary\n x\n"
    "general\n y\nend\n": "whole numbers within",
    "minimize\n x\nsubject to\n r: 5e11 x + y >= 500000000000001\nbounds\n 0 <= x <= 1000\n"
    "general\n x\nbinary\n y\nend\n": "in row 'r'",  # x = 1000, y = 0 was allowed
    "minimize\n x + [ x * y ] / 2\nsubject to\n r: x + y >= 1\nbinary\n x y\nend\n": "quadratic",
}


@pytest.mark.parametrize("text", BAD)
def test_what_is_refused_is_named(text):
    with pytest.raises(softmap.FormatError, match=BAD[text]):
        parse(text.encode(), "lp")


def test_a_maximum_and_an_offset():
    text = b"maximize\n 2 x + 3 y + 10\nsubject to\n one: x + y <= 1\nbinary\n x y\nend\n"
    model = parse(text, "lp")
    assert model.energy([[0, 0], [1, 0], [0, 1], [1, 1]]).tolist() == [-10, -12, -13, INF]


def test_names_that_are_no_text_are_refused():
    with pytest.raises(softmap.FormatError, match=r"text in UTF-8, found byte 0x80"):
        parse(b"min\n x\nst\n c: x + \x80b >= 1\nbin\n x\nend\n", "lp")


def test_costs_are_finite():
    text = "minimize\n obj: 1e308 x + y + 1e308 x\nsubject to\n c: x + y >= 1\nbinary\n x y\nend\n"
    with pytest.raises(softmap.FormatError, match="finite costs"):
        parse(text.encode(), "lp")

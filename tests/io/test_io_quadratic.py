"""Quadratic problems and assignment: .qpbo, .qubo, .coo, .mc, QAPLIB; meaning, writing."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softmap
from softmap.io import read_sln
from softmap.io.formats import FORMATS
from support.data import shared_data
from support.files import same_energies
from support.samples import COO, MAXCUT, QAP, QPBO, QUADRATIC, QUBO


def value(x, twice, spins=False, offset=0.0):
    v = [1 - 2 * k for k in x] if spins else x
    parts = (w * v[i - 1] * v[j - 1] * (1 if i == j or not twice else 2) for i, j, w in QUADRATIC)
    return sum(parts) + offset


@pytest.mark.parametrize("form", ["qpbo", "qubo", "coo"])
def test_energies_are_those_of_the_matrix(form):
    model = FORMATS[form].parse({"qpbo": QPBO, "qubo": QUBO, "coo": COO}[form])
    for x in itertools.product((0, 1), repeat=3):
        assert model.energy(x) == value(x, twice=form == "qpbo", offset=2.5 * (form == "qubo"))


def test_spins_and_maximisation():
    spins = FORMATS["qpbo"].parse(b"-" + QPBO)
    most = FORMATS["qpbo"].parse(QPBO.replace(b"3 5", b"3 -5", 1))
    fields = FORMATS["coo"].parse(b"# vartype=SPIN\n# offset=2.5\n0 0 3\n0 1 -2\n")
    for x in itertools.product((0, 1), repeat=3):
        assert spins.energy(x) == value(x, twice=True, spins=True)
        assert most.energy(x) == -value(x, twice=True)
        s, t = (2 * k - 1 for k in x[:2])
        assert fields.energy(x[:2]) == 3 * s - 2 * s * t + 2.5


def test_cuts():
    model = FORMATS["maxcut"].parse(MAXCUT)
    for x in itertools.product((0, 1), repeat=3):
        cut = 4 * (x[0] != x[1]) - 1.5 * (x[1] != x[2]) + 2 * (x[0] != x[2])
        assert model.energy(x) == -cut
    plain = FORMATS["maxcut"].parse(b"3 2\n1 2\n3 2\n")
    assert plain.energy([0, 1, 0]) == -2


def test_assignment():
    model = FORMATS["qap"].parse(QAP)
    a, b = np.array([[[0, 1, 2], [1, 0, 3], [2, 3, 1]], [[0, 5, 2], [4, 0, 3], [2, 3, 2]]])
    for p in itertools.product(range(3), repeat=3):
        expected = sum(a[i, j] * b[p[i], p[j]] for i in range(3) for j in range(3))
        assert model.energy(p) == (expected if len(set(p)) == 3 else np.inf)
    labels, best = read_sln(io.BytesIO(b"3 17\n 2,1,3\n"))
    assert (labels.tolist(), best) == ([1, 0, 2], 17.0)


@pytest.mark.skipif(shared_data() is None, reason="no benchmark instances")
def test_real_files():
    root = shared_data()
    for path in sorted(root.glob("qaplib/*.dat")):
        labels, best = read_sln(path.with_suffix(".sln"))
        assert softmap.read(path).energy(labels) == best
    model = softmap.read(root / "qpbo" / "bqp100-1.qpbo")
    assert (model.n, model.m) == (100, 464)
    result = softmap.solve(model, time_limit=0.5)
    assert result.bound <= -7970 + 1e-6 <= result.energy + 2e-6


@given(st.integers(0, 2**32 - 1), st.sampled_from(["qpbo", "qubo", "coo", "wcnf", "opb"]))
@settings(max_examples=40)
def test_round_trips(seed, form):
    """Any model with two labels each; whole costs, which all of them hold."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    edges = rng.permutation(list(itertools.combinations(range(n), 2)))[: int(rng.integers(0, 8))]
    edges = np.array(edges, dtype=int).reshape(-1, 2)
    low = 0 if form == "wcnf" else -9
    tables = rng.integers(low, 10, (len(edges), 2, 2)).astype(float) * 2
    model = softmap.Model(rng.integers(low, 10, (n, 2)).astype(float), edges, tables, constant=20.0)
    file = io.BytesIO()
    options = {"drop_constant": True} if form == "qpbo" else {}
    softmap.write(model, file, format=form, **options)
    again = FORMATS[form].parse(file.getvalue())
    if form == "qpbo":
        constant = model.energy(np.zeros(n, int))
        again = again.replace(constant=again.constant + constant)
    assert same_energies(model, again)


def test_cuts_round_trip():
    model = FORMATS["maxcut"].parse(MAXCUT)
    file = io.BytesIO()
    softmap.write(model, file, format="maxcut", drop_constant=True)
    assert same_energies(model, FORMATS["maxcut"].parse(file.getvalue()))
    uneven = softmap.Model(np.eye(2), [[0, 1]], softmap.Potts([1.0]))
    with pytest.raises(softmap.ModelError, match="single labels"):
        softmap.write(uneven, io.BytesIO(), format="maxcut")


REFUSED = {
    "qpbo": (softmap.Model([[1.0, 2.0]], [], []), "drop_constant"),
    "qubo": (softmap.Model(np.eye(3), [], []), "two labels"),
    "coo": (softmap.Model(np.eye(2), [[0, 1]], softmap.Potts([np.inf])), "finite"),
    "wcnf": (softmap.Model([[0.0, 0.5]], [], []), "whole"),
    "opb": (softmap.Model(np.eye(3), [], []), "two labels"),
}


@pytest.mark.parametrize("form", REFUSED)
def test_what_cannot_be_written(form, tmp_path):
    model, reason = REFUSED[form]
    with pytest.raises(softmap.ModelError, match=reason):
        softmap.write(model, tmp_path / f"x{FORMATS[form].suffixes[0]}")
    assert not list(tmp_path.iterdir())

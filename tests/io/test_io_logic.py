"""WCNF, OPB and detector error models: meaning by enumeration."""

from __future__ import annotations

import dataclasses
import itertools
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softmap
from softmap.io import logic
from softmap.io.dem import parse_detectors
from softmap.io.formats import FORMATS
from support.samples import DEM, OPB
from support.samples import WCNF as NEW
from support.samples import WCNF_TOP as OLD

parse_dem, parse_opb, parse_wcnf = (FORMATS[form].parse for form in ("dem", "opb", "wcnf"))


def clauses_cost(x, clauses):
    holds = [any(x[abs(v) - 1] == (v > 0) for v in literals) for _, literals in clauses]
    return sum(w for (w, _), good in zip(clauses, holds, strict=True) if not good)


@pytest.mark.parametrize("text", [OLD, NEW])
def test_clauses(text):
    clauses = [(np.inf, [1, -2, 3]), (3, [-1]), (4, [2, -3]), (2, [1, -2])]
    model = parse_wcnf(text)
    extra = 1 if text is NEW else 0
    for x in itertools.product((0, 1), repeat=4):
        assert model.energy(x) == clauses_cost(x, clauses) + extra


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=12, deadline=None)
def test_long_clauses_and_sums_against_enumeration(seed):
    """Beyond six literals there are running variables; the optimum is the enumerated one."""
    rng = np.random.default_rng(seed)
    n = 9
    clauses, lines = [], []
    for _ in range(4):
        k = int(rng.integers(1, n + 1))
        literals = (rng.permutation(n)[:k] + 1) * rng.choice([-1, 1], k)
        weight = float(rng.integers(1, 6))
        clauses.append((weight, literals.tolist()))
        lines.append(f"{weight:g} {' '.join(map(str, literals))} 0\n")
    lines.append(f"h {n} -{n} 0\n")
    every = list(itertools.product((0, 1), repeat=n))
    result = softmap.solve(parse_wcnf("".join(lines).encode()))
    assert result.energy == pytest.approx(min(clauses_cost(x, clauses) for x in every))
    assert result.bound <= result.energy + 1e-9

    weights, costs = rng.integers(-4, 5, n), rng.integers(-5, 6, n)
    weights[weights == 0] = 1
    bound = int(weights @ rng.integers(0, 2, n))
    sums = " ".join(f"{a:+d} x{i + 1}" for i, a in enumerate(weights))
    goal = " ".join(f"{a:+d} x{i + 1}" for i, a in enumerate(costs))
    allowed = [x for x in every if weights @ x <= bound]
    result = softmap.solve(parse_opb(f"min: {goal} ;\n{sums} <= {bound} ;\n".encode()))
    assert result.energy == pytest.approx(min(int(costs @ np.array(x)) for x in allowed))


def test_sums_and_products():
    model = parse_opb(OPB)
    for a, b, c, d in itertools.product((0, 1), repeat=4):
        cost = -3 * a + 2 * b * (1 - c) + d + 4 * (a * b != 0)
        assert model.energy([a, b, c, d]) == (cost if a + b + c >= 2 else np.inf)
    most = parse_opb(b"max: 2 x1 ;")
    assert most.energy([1]) == -2


def test_detectors():
    found = parse_detectors(DEM)
    assert found.probabilities.tolist() == [0.1, 0.2, 0.2, 0.2, 0.3]
    assert found.detectors == ((0, 1), (0, 1), (1, 2), (2, 3), (4, 3))
    assert (found.num_detectors, found.num_observables) == (7, 2)
    seen = [1, 1, 0, 0, 0, 0, 0]
    best, where = np.inf, None
    for x in itertools.product((0, 1), repeat=5):
        if found.syndrome(x).tolist() == seen:
            p = np.prod([q if e else 1 - q for q, e in zip(found.probabilities, x, strict=True)])
            if -np.log(p) < best:
                best, where = -np.log(p), x
    result = softmap.solve(found.model(seen))
    assert result.energy == pytest.approx(best)
    assert result.labels[:5].tolist() == list(where)
    assert found.flips(result.labels).tolist() == found.flips(where).tolist()


def test_a_real_detector_error_model():
    """A surface code of stim's, decoded: the syndrome is explained, and the proof is closed."""
    stim = pytest.importorskip("stim", reason="stim has no wheel for this machine")
    circuit = stim.Circuit.generated(
        "surface_code:rotated_memory_z", distance=3, rounds=2, after_clifford_depolarization=0.004
    )
    theirs = circuit.detector_error_model()
    ours = parse_detectors(str(theirs).encode())
    assert len(ours.probabilities) == theirs.num_errors
    assert ours.num_detectors == theirs.num_detectors
    seen, flips, errors = theirs.compile_sampler(seed=5).sample(30, return_errors=True)
    for k in range(30):
        assert (ours.syndrome(errors[k].astype(int)) == seen[k]).all()
        assert (ours.flips(errors[k].astype(int)) == flips[k]).all()
    k = int(np.argmax(seen.sum(axis=1)))
    model = ours.model(seen[k])
    result = softmap.solve(model, time_limit=5)
    chosen = result.labels[: theirs.num_errors]
    assert (ours.syndrome(chosen) == seen[k]).all()
    assert result.energy <= model_energy(ours, errors[k]) + 1e-9


def model_energy(found, errors):
    p = np.where(errors, found.probabilities, 1 - found.probabilities)
    return -np.log(p).sum()


def test_wrong_syndromes():
    found = parse_detectors(DEM)
    with pytest.raises(softmap.ModelError, match="7 detectors"):
        found.model([1, 0])
    with pytest.raises(softmap.ModelError, match="no error flips"):
        found.model([0, 0, 0, 0, 0, 1, 0])


def test_seen_detectors_are_an_argument():
    silent, fired = parse_dem(b"error(0.1) D0"), parse_dem(b"error(0.1) D0", seen=[1])
    assert softmap.solve(silent).labels.tolist() == [0]
    assert softmap.solve(fired).labels.tolist() == [1]


def test_comments_of_clauses_need_no_blank_after_the_letter():
    """The header of every file of the MaxSAT Evaluation has lines `c{` and `c}`."""
    text = b'c Standardized MaxSat Instance\nc{\nc "nvars": 2,\nc}\nh 1 2 0\n3 -1 0\nc}\n1 -2 0\n'
    model = parse_wcnf(text)
    assert softmap.solve(model).energy == 1
    assert softmap.io.format_of("unknown", text) == "wcnf"
    assert softmap.io.format_of("unknown", b"c{\np wcnf 2 1 9\n") == "wcnf"


def test_names_of_pseudo_boolean_variables_are_kept():
    text = b"min: 3 y_x1_5 2 ~x0_0 ;\n1 x0_0 1 y_x1_5 1 b >= 2 ;\n"
    model = parse_opb(text)
    assert model.names.variables == ("y_x1_5", "x0_0", "b")
    result = softmap.solve(model)
    assert result.energy == 0
    assert result.as_dict() == {"y_x1_5": 0, "x0_0": 1, "b": 1}
    assert softmap.io.format_of("unknown", b"1 x0_0 1 x0_1 >= 1;") == "opb"
    assert parse_opb(b"min: 1 x3;").network.num_variables == 3
    assert parse_opb(b"min: 1 x3;").names is None


@pytest.mark.parametrize("seed", range(4))
def test_detectors_in_bulk_are_the_parities_one_by_one(seed):
    rng = np.random.default_rng(seed)
    lines = []
    for k in range(14):
        own = np.flatnonzero(rng.random(4) < 0.7)
        lines.append(f"error({0.01 * (k + 1)}) " + " ".join(f"D{d}" for d in own) + " D4")
    found = parse_detectors("\n".join(lines).encode())
    happened = rng.integers(0, 2, 14)
    seen = found.syndrome(happened)
    p = found.probabilities
    parities = [
        softmap.Parity([k for k, own in enumerate(found.detectors) if d in own], bool(seen[d]))
        for d in range(5)
    ]
    unary = [((k,), -np.log([1 - p[k], p[k]])) for k in range(14)]
    one_by_one = softmap.Model.from_factors([2] * 14, [*unary, *parities])
    model = found.model(seen)
    assert model.network.num_variables == one_by_one.network.num_variables > 14
    every = rng.integers(0, 2, (200, 14))
    assert np.allclose(model.energy(every), one_by_one.energy(every))
    assert model.energy(happened) < np.inf
    assert softmap.lp.solve(model).value == pytest.approx(softmap.lp.solve(one_by_one).value)


def test_clauses_of_weight_0_cost_nothing():
    for text in (b"p wcnf 2 3 9\n0 1 0\n9 1 2 0\n2 -1 0\n", b"0 1 0\nh 1 2 0\n2 -1 0\n"):
        model = parse_wcnf(text)
        assert [model.energy([a, b]) for a in (0, 1) for b in (0, 1)] == [np.inf, 0.0, 2.0, 2.0]
    with pytest.raises(softmap.FormatError, match="at least 0"):
        parse_wcnf(b"p wcnf 1 1 9\n-3 1 0\n")


@pytest.mark.parametrize("seed", range(6))
def test_products_of_long_constraints_are_variables(seed, monkeypatch) -> None:
    """With a low limit, the least cost over the new variables is that of the table."""
    rng = np.random.default_rng(seed)
    terms = [
        f"{rng.integers(-4, 5):+d} "
        + " ".join(
            ("~" if rng.random() < 0.4 else "") + f"x{v}" for v in rng.permutation(8)[:k] + 1
        )
        for k in (1, 1, 2, 3, 7)
    ]
    relation = (">=", "<=", "=")[seed % 3]
    terms += [f"+{v} x{v}" for v in range(1, 9)]
    text = f"min: 2 x1 -3 x4 x6 ;\n[5] {' '.join(terms)} {relation} 1 ;\n+1 x2 +1 x5 >= 1 ;\n"
    table = parse_opb(text.encode())
    monkeypatch.setattr(logic, "LIMITS", dataclasses.replace(logic.LIMITS, joint_variables=6))
    model, n = parse_opb(text.encode()), table.network.num_visible
    assert model.network.num_visible > n
    rest = list(itertools.product((0, 1), repeat=model.network.num_visible - n))
    for labels in rng.integers(0, 2, (40, n)).tolist():
        costs = model.energy(np.array([[*labels, *own] for own in rest]))
        assert costs.min() == table.energy(labels)
        assert np.isfinite(costs).sum() <= 1


def test_products_of_named_literals_have_names() -> None:
    literals = [f"y{i}" for i in range(22)]
    text = "min: 1 y0 ;\n" + " ".join(f"+1 {a} ~{b}" for a, b in pairwise(literals)) + " >= 2 ;"
    model = parse_opb(text.encode())
    assert model.network.num_visible == 22 + 21
    assert model.names.variables[22] == "y0 ~y1"
    with pytest.raises(softmap.FormatError, match=r"line 2: a constraint with fractions over 22"):
        parse_opb(text.replace("+1 y3 ~y4", "+1.5 y3 ~y4").encode())

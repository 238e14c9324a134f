"""One file that says what was proved: labelling and conclusion, checked without the result."""

from __future__ import annotations

import itertools
import json
import math
import zlib
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from adversary.proofs import optimum
from softmap.app.cli.app import main
from softmap.errors import FormatError
from softmap.verification import Verdict
from softmap.verification.conclusion import What
from softmap.verification.proof import check_proof
from support.oracles import brute_force
from support.proof_files import packed, put_together, taken_apart
from support.strategies import models


def bits(*numbers: float) -> list[int]:
    return np.array(numbers).view(np.int64).tolist()


def altered(path, records, header=None):
    """Write other records beside a proof."""
    target = path.with_name("altered")
    put_together(target, header or taken_apart(path)[0], packed(records))
    return target


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A model whose relaxation is loose, and the proof of its optimum."""
    path = tmp_path_factory.mktemp("proof") / "run.proof"
    model = softmap.generators.erdos_renyi(40, seed=1)
    return model, softmap.solve(model, proof=path), path


def test_a_proof_decides_without_the_result(searched, tmp_path, capsys):
    model, result, path = searched
    report = softmap.verify(model, proof=path)
    assert report.checked
    assert "optimal" in report["conclusion"].numbers
    assert report["energy"].numbers == f"{result.energy!r} found"
    found = check_proof(path, model).conclusion
    assert found.optimal
    assert found.energy - found.numbers[0] <= Fraction(result.bound)
    softmap.write(model, tmp_path / "m.npz")
    assert main(["verify", str(tmp_path / "m.npz"), "--proof", str(path)]) == 0
    assert "the labelling is optimal" in capsys.readouterr().out
    assert main(["verify", str(tmp_path / "m.npz")]) == 2
    assert "MODEL --proof FILE" in capsys.readouterr().err


@given(models(), st.sampled_from(["map", "lp", "optimal"]))
def test_conclusions_are_true(tmp_path_factory, model, goal):
    path = tmp_path_factory.mktemp("proof") / "proof"
    least = optimum(model)
    try:
        result = softmap.solve(model, proof=path, goal=goal, threads=1, seed=1)
    except softmap.InfeasibleModel:
        assert least is None
        assert softmap.verify(model, proof=path).checked
        assert check_proof(path, model.network).conclusion.what is What.INFEASIBLE
        return
    assert softmap.verify(model, proof=path).checked
    found = check_proof(path, model.network)
    assert found.bound <= least
    if result.found:
        assert found.conclusion.what is What.WITHIN
        assert found.conclusion.energy - found.conclusion.numbers[0] <= least
        assert float(found.conclusion.energy) == pytest.approx(result.energy)


@given(models(families=("tables",)))
def test_an_upper_bound_below_the_optimum_is_proved(tmp_path_factory, model):
    path = tmp_path_factory.mktemp("proof") / "proof"
    least = brute_force(model)[0]
    if not math.isfinite(least):
        return
    result = softmap.solve(model, proof=path, upper_bound=least - 1, goal="optimal", threads=1)
    assert result.status is softmap.Status.NONE_BELOW
    report = softmap.verify(model, proof=path)
    assert report.checked, str(report)
    assert check_proof(path, model.network).conclusion.what is What.NONE_BELOW


def colouring(vertices: int, colours: int, seed: int) -> softmap.Model:
    """A colouring of a random graph, with costs that do not matter."""
    rng = np.random.default_rng(seed)
    pairs = [p for p in itertools.combinations(range(vertices), 2) if rng.random() < 0.3]
    differ = np.where(np.eye(colours) > 0, np.inf, rng.random((colours, colours)))
    tables = np.repeat(differ[None], len(pairs), axis=0)
    return softmap.Model(rng.random((vertices, colours)), pairs, softmap.Tables(tables))


def test_infeasible_models_are_proved_infeasible(tmp_path, capsys):
    path, proved = tmp_path / "proof", 0
    for seed in range(12):
        model = colouring(20, 3, seed)
        try:
            softmap.solve(model, proof=path, threads=1)
        except softmap.InfeasibleModel:
            proved += 1
            report = softmap.verify(model, proof=path)
            assert report.checked, str(report)
            assert "no labelling" in report["conclusion"].numbers
            softmap.write(model, tmp_path / "m.npz")
            assert main(["verify", str(tmp_path / "m.npz"), "--proof", str(path)]) == 0
    assert proved > 3
    assert {p.name for p in tmp_path.iterdir()} == {"proof", "m.npz"}
    words = ["solve", str(tmp_path / "m.npz"), "--proof", str(tmp_path / "p"), "--no-progress"]
    assert main(words) == 4
    assert main(["verify", str(tmp_path / "m.npz"), "--proof", str(tmp_path / "p")]) == 0
    capsys.readouterr()


def test_infeasibility_is_not_concluded_of_a_feasible_model(tmp_path, searched):
    model, _, path = searched
    header, records = taken_apart(path)
    steps = [record for record in records if record[0] not in ("LABELS", "CONCLUDE")]
    end = ("CONCLUDE", [[2], []])
    for forged in ([("HARD", []), *steps, end], [*steps, end], [("HARD", []), steps[0], end]):
        with pytest.raises(FormatError):
            check_proof(altered(path, forged, header), model)


@pytest.mark.parametrize(
    "last",
    [
        ("CONCLUDE", [[1], bits(0.0)]),  # the gap of the search is positive
        ("CONCLUDE", [[1], bits(-1.0)]),
        ("CONCLUDE", [[1], bits(math.nan)]),
        ("CONCLUDE", [[1], []]),
        ("CONCLUDE", [[0], bits(0.0)]),
        ("CONCLUDE", [[3], bits(0.0, 1.0)]),
        ("CONCLUDE", [[2], []]),
        ("CONCLUDE", [[4], []]),
        ("CONCLUDE", [[], []]),
        ("CUT", [[0]]),
        ("HARD", []),
        ("LABELS", [[0] * 40]),
    ],
)
def test_false_conclusions_are_rejected(searched, last):
    model, _, path = searched
    records = taken_apart(path)[1]
    with pytest.raises(FormatError):
        check_proof(altered(path, [*records[:-1], last]), model)
    with pytest.raises(FormatError):
        check_proof(altered(path, [*records, last]), model)


@pytest.mark.parametrize("labels", [[0] * 39, [0] * 39 + [3], [0] * 39 + [-1], []])
def test_other_labels_are_rejected(searched, labels):
    model, _, path = searched
    records = taken_apart(path)[1]
    with pytest.raises(FormatError):
        check_proof(altered(path, [*records[:-2], ("LABELS", [labels]), records[-1]]), model)


def test_a_worse_labelling_is_not_optimal(searched):
    model, result, path = searched
    records = taken_apart(path)[1]
    worse = np.asarray(result.labels).copy()
    worse[0] = (worse[0] + 1) % 3
    forged = [*records[:-2], ("LABELS", [worse.tolist()]), records[-1]]
    with pytest.raises(FormatError, match="does not follow"):
        check_proof(altered(path, forged), model)


def test_a_file_without_a_conclusion_is_not_all_checked(searched):
    model, result, path = searched
    shorter = altered(path, taken_apart(path)[1][:-2])
    report = softmap.verify(model, proof=shorter)
    assert report.verdict is Verdict.STATED
    assert softmap.verify(result, proof=shorter).checked


def test_compressed_records_are_not_believed(searched, tmp_path):
    """No more is decompressed than the header says, and nothing may follow."""
    model, _, path = searched
    line, body = path.read_bytes().split(b"\n", 1)
    header, target = json.loads(line), tmp_path / "proof"
    plain = zlib.decompress(body)
    assert header["packed"] is True
    for changed, content in (
        ({"bytes": header["bytes"] - 1}, body),
        ({"bytes": header["bytes"] + 1}, body),
        ({"bytes": 1 << 40}, body),
        ({"bytes": "9"}, body),
        ({"crc32": 0}, body),
        ({}, body[:-3]),
        ({}, body + b"x"),
        ({}, b"x" + body),
        ({}, b""),
        ({"packed": False}, body),
        ({}, zlib.compress(plain + bytes(1 << 24))),
    ):
        target.write_bytes(json.dumps(header | changed).encode() + b"\n" + content)
        with pytest.raises(FormatError):
            check_proof(target, model)
    target.write_bytes(json.dumps(header | {"packed": False}).encode() + b"\n" + plain)
    assert check_proof(target, model).conclusion.optimal

"""The scoreboard counts what its rows say, and stores what it ran."""

import math
from pathlib import Path

import numpy as np
import pytest
from benchmarks.contest import evidence_of, row_of
from benchmarks.peers.labels import SOLVERS, Answer
from benchmarks.scoreboard import FAMILIES, Board, Case, cases, reference, run
from benchmarks.scoreboard_tables import counts, family_table

import softmap


def row(solver, energy, bound=None, proved=False, **more):
    return {
        "family": "F", "model": "m", "solver": solver, "energy": energy, "bound": bound,
        "proved": proved, "seconds": 1.0, "reference": None, "tolerance": 0.0,
    } | more  # fmt: skip


def test_counts_of_a_family():
    rows = [row("peer", 3.0, 2.0), row("softmap", 2.0, 2.0, True), row("other", None)]
    rows += [row("peer", 7.0, reference=6.0, model="n"), row("softmap", 8.0, 1.0, model="n")]
    assert counts(rows) == [
        ["softmap", "2", "1", "1", "1", "2", "0"],
        ["other", "1", "0", "0", "0", "0", "1"],
        ["peer", "2", "0", "0", "1", "1", "0"],
    ]


@pytest.mark.parametrize("wrong", [row("peer", None, proved=True), row("peer", 3.0, 3.0, True)])
def test_a_proof_that_a_labelling_contradicts_does_not_count(wrong):
    rows = [wrong, row("softmap", 2.0)]
    assert counts(rows)[1][2] == "0"
    assert "contradicted" in family_table(rows)


def test_a_bound_above_a_labelling_does_not_count():
    rows = [row("peer", None, 2.5), row("softmap", 2.0, 1.0)]
    assert [line[5] for line in counts(rows)] == ["1", "0"]
    assert "≱" in family_table(rows)


def test_rows_have_the_energy_of_the_labels():
    model = softmap.Model([[0.0, 1.0], [2.0, 0.5]], [[0, 1]], softmap.Potts(0.25))
    assert row_of(model, Answer([0, 1], -1.0))["energy"] == 0.75
    assert math.isinf(row_of(model, Answer(None))["energy"])
    assert math.isinf(row_of(model, Answer([0]))["energy"])


def test_references_beside_the_model(tmp_path):
    (tmp_path / "G1.mc").write_text("2 1\n1 2 3\n")
    (tmp_path / "G1.opt").write_text("3\n")
    (tmp_path / "nug.sln").write_text("2 578\n1 2\n")
    assert reference(tmp_path, tmp_path / "G1.mc", "G1") == -3.0
    assert reference(tmp_path, tmp_path / "nug.dat", "nug") == 578.0


def test_a_run_is_a_process_that_is_stored(tmp_path):
    folder = tmp_path / "more" / "maxcut-gset"
    folder.mkdir(parents=True)
    (folder / "C3.mc").write_text("3 3\n1 2 1\n2 3 1\n1 3 1\n")
    (tmp_path / "README.md").write_text("")
    (case,) = cases(tmp_path, "G-set")
    assert case == Case("G-set", folder / "C3.mc")
    found = run(case, "softmap", 1.0)
    assert (found["energy"], found["proved"]) == (-2.0, True)
    board = Board(tmp_path / "board.jsonl")
    board.begin({"date": "today"})
    board.add(found)
    again = Board(tmp_path / "board.jsonl")
    assert again.rows == [found]
    assert again.facts == {"date": "today"}
    assert again.has(case, "softmap")
    assert not again.has(case, "peer")


def test_an_unknown_solver_is_an_error_of_the_row(tmp_path):
    (path := tmp_path / "C3.mc").write_text("3 3\n1 2 1\n2 3 1\n1 3 1\n")
    assert "KeyError" in run(Case("G-set", path), "nobody", 1.0)["error"]


def test_peers_have_solvers():
    decoders = {"BP+OSD", "pymatching"}
    assert {p for f in FAMILIES.values() for p in f.peers} - decoders <= set(SOLVERS)


def test_qap_of_scipy_keeps_the_order_of_the_labels(tmp_path):
    pytest.importorskip("scipy.optimize")
    rng = np.random.default_rng(1)
    matrices = rng.integers(0, 9, (2, 5, 5))
    text = "5\n" + "\n".join(" ".join(map(str, line)) for line in matrices.reshape(10, 5))
    (path := Path(tmp_path) / "q.dat").write_text(text)
    model = softmap.read(path)
    answer = list(SOLVERS["scipy QAP"](path, model, 0.05))[-1]
    flow, distance = matrices
    p = np.asarray(answer.labels)
    assert model.energy(p) == float((flow * distance[np.ix_(p, p)]).sum())


def test_evidence_is_the_file_beside_the_model_unless_it_is_an_example(tmp_path):
    for name in ("pedigree1.uai.evid", "pedigree19.uai.evid"):
        (tmp_path / name).write_text("1 0 0\n")
    found = [evidence_of(tmp_path / f"pedigree{k}.uai.xz") for k in (1, 19, 2)]
    assert found == [None, tmp_path / "pedigree19.uai.evid", None]

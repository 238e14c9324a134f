"""Proofs of the m best labellings: each rank against enumeration, honest and altered."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from adversary.proofs import changed, energies, false_rank, random_model
from softmap.app.cli.app import main
from softmap.errors import FormatError
from softmap.verification.proof import check_proof
from support.proof_files import packed, put_together, taken_apart
from support.strategies import few


@pytest.fixture(scope="module")
def ranked(tmp_path_factory):
    """A model with hard constraints that the relaxation does not solve, and its four best."""
    path = tmp_path_factory.mktemp("ranks") / "ranks.proof"
    rng = np.random.default_rng(5)
    pairs = [(i, j) for i in range(6) for j in range(i)]
    tables = [np.where(rng.random((3, 3)) < 0.2, np.inf, rng.normal(size=(3, 3))) for _ in pairs]
    model = softmap.Model.from_factors([3] * 6, list(zip(pairs, tables, strict=True)))
    return model, softmap.solve_mbest(model, 4, proof=path), path


def test_each_rank_is_decided_by_the_file_alone(ranked, tmp_path, capsys):
    model, found, path = ranked
    report = softmap.verify(model, proof=path)
    assert report.checked
    least = sorted(energies(model).values())
    checked = check_proof(path, model)
    assert [float(one.energy) for one in checked.ranks] == pytest.approx([e.energy for e in found])
    for rank, entry, true in zip(checked.ranks, found, least, strict=False):
        assert true - rank.bound < 1e-9
        assert rank.bound <= true
        assert abs(rank.bound - entry.bound) < 1e-12
    assert checked.others <= least[len(found)]
    assert repr(found[1].energy) in report["rank 2"].numbers
    assert "PART" in {name for name, _ in taken_apart(path)[1]}
    softmap.write(model, tmp_path / "m.npz")
    words = ["solve", str(tmp_path / "m.npz"), "--mbest", "2", "--proof", str(tmp_path / "p")]
    assert main(words) == 0
    assert main(["verify", str(tmp_path / "m.npz"), "--proof", str(tmp_path / "p"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [one["name"] for one in said["statements"]] == ["proof", "rank 1", "rank 2", "others"]


@few
@given(st.integers(0, 2**31), st.integers(1, 6))
def test_honest_proofs_are_accepted_and_altered_ones_prove_nothing_false(
    tmp_path_factory, seed, most
):
    rng = np.random.default_rng(seed)
    model, path = random_model(rng), tmp_path_factory.mktemp("ranks") / "proof"
    costs = energies(model)
    if not costs:
        with pytest.raises(softmap.InfeasibleModel):
            softmap.solve_mbest(model, most, proof=path)
        assert softmap.verify(model, proof=path).checked
        return
    found = softmap.solve_mbest(model, most, proof=path, threads=1)
    honest = check_proof(path, model.network)
    assert len(honest.ranks) == len(found) == min(most, len(costs))
    assert false_rank(honest, costs) is None
    for rank, entry in zip(honest.ranks, found, strict=True):
        assert rank.bound == pytest.approx(entry.bound, rel=1e-12, abs=1e-12)
    if len(costs) < most:  # else the search may end before it has excluded all others
        assert honest.others == math.inf
    header, records = taken_apart(path)
    for _ in range(3):
        put_together(path, header, packed(changed(records, rng)))
        try:
            accepted = check_proof(path, model.network)
        except FormatError:
            continue
        assert false_rank(accepted, costs) is None


def _altered(ranked, change):
    model, _, path = ranked
    header, records = taken_apart(path)
    target = path.with_name("altered")
    put_together(target, header, packed(change(records)))
    return check_proof(target, model)


def _with(name, number, *values):
    """A change of one array of all records of one name."""

    def change(records):
        return [
            (
                one,
                [*arrays[:number], list(values), *arrays[number + 1 :]] if one == name else arrays,
            )
            for one, arrays in records
        ]

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda records: records[:-1], "no conclusion about ranks"),
        (lambda records: [*records, records[-1]], "after the conclusion"),
        (lambda records: [records[0], *records[2:]], "out of its place"),
        (lambda records: [r for r in records if r[0] != "PART"], "out of its place"),
        (lambda records: [records[0], *records], "out of its place"),
        (_with("PART", 0, 4, 0), "no such part"),
        (_with("PART", 0, 0, 6), "no such part"),
        (_with("PART", 1, 3), "no such label"),
        (_with("EXCEPT", 0, 0, 1, 2, 3, 4, 4), "order"),
        (_with("RANKS", 0, 0, 0), "one bound for each rank"),
    ],
)
def test_records_out_of_place_are_rejected(ranked, change, said):
    with pytest.raises(FormatError, match=said):
        _altered(ranked, change)


def test_a_labelling_left_out_or_listed_twice_is_noticed(ranked):
    def without_best(records):
        name, (order, labels) = records[0]
        return [(name, [order, labels[6:]]), *records[1:]]

    def twice(records):
        name, (order, labels) = records[0]
        return [(name, [order, labels[:6] + labels[:18]]), *records[1:]]

    for change in (without_best, twice):
        with pytest.raises(FormatError):
            _altered(ranked, change)


def test_a_higher_bound_does_not_follow(ranked):
    for k in range(5):

        def raised(records, k=k):
            bounds = np.array(records[-1][1][0]).view(np.float64).copy()
            bounds[k] += 1e-6
            return [*records[:-1], ("RANKS", [bounds.view(np.int64).tolist()])]

        with pytest.raises(FormatError, match=f"rank {k + 1}"):
            _altered(ranked, raised)


def test_diverse_labellings_have_no_proof(ranked, tmp_path):
    with pytest.raises(softmap.OptionError, match="diverse"):
        softmap.solve_mbest(ranked[0], 2, diversity=2, proof=tmp_path / "p")
    assert not list(tmp_path.iterdir())


def test_a_proof_without_its_records_is_not_written(ranked, tmp_path, monkeypatch):
    from softmap.drive.prooffile import ProofFile

    def full(self, *given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ProofFile, "write_ranks", full)
    with pytest.warns(softmap.ProofWarning, match="No space left"):
        found = softmap.solve_mbest(ranked[0], 2, proof=tmp_path / "p")
    assert [one.energy for one in found] == [one.energy for one in ranked[1][:2]]
    assert not list(tmp_path.iterdir())

"""Proof files of runs that were resumed: they decide, too, or say that they do not."""

from __future__ import annotations

import warnings

import pytest

import softmap
from softmap.verification import Verdict

MODEL = softmap.generators.erdos_renyi(40, seed=1)  # only a search proves its optimum


def _stored(tmp_path, **options):
    """A checkpoint at the end of a run, and the result."""
    path = tmp_path / "run.npz"
    return path, softmap.solve(MODEL, threads=1, checkpoint=path, **options)


@pytest.mark.parametrize("before", ["with", "without"])
def test_a_resumed_run_writes_a_proof_that_decides(before, tmp_path):
    given = {"proof": tmp_path / "first"} if before == "with" else {}
    path, first = _stored(tmp_path, **given)
    assert first.proof.kind == "search"
    with warnings.catch_warnings():
        warnings.simplefilter("error", softmap.ProofWarning)
        again = softmap.resume(path, MODEL, threads=1, proof=tmp_path / "again")
    assert again.energy == first.energy
    assert again.status is first.status
    report = softmap.verify(MODEL, proof=tmp_path / "again")
    assert report.checked
    assert "optimal" in report["conclusion"].numbers
    assert softmap.verify(again, proof=tmp_path / "again").checked


def test_a_search_that_was_interrupted_is_proved_after_it_was_resumed(tmp_path):
    path = tmp_path / "run.npz"
    first = softmap.solve(
        MODEL, threads=1, checkpoint=path, proof=tmp_path / "first",
        on_snapshot=lambda seen: not seen.bound > seen.lp_bound,
    )  # fmt: skip
    assert softmap.verify(first, proof=tmp_path / "first").holds
    softmap.resume(path, MODEL, threads=1, proof=tmp_path / "again")
    assert softmap.verify(MODEL, proof=tmp_path / "again").checked


def test_without_time_for_the_search_the_bound_is_stated_and_the_run_says_so(tmp_path):
    path, first = _stored(tmp_path)
    with pytest.warns(softmap.ProofWarning, match="before the run was resumed, and not again"):
        again = softmap.resume(
            path, MODEL, threads=1, proof=tmp_path / "again", checkpoint=path, time_limit=0.0
        )
    assert (again.bound, again.energy, again.status) == (first.bound, first.energy, first.status)
    alone = softmap.verify(MODEL, proof=tmp_path / "again")
    assert alone.checked  # of what it concludes, which is less
    assert "optimal" not in alone["conclusion"].numbers
    report = softmap.verify(again, proof=tmp_path / "again")
    assert report.verdict is Verdict.STATED
    assert report["bound"].verdict is Verdict.STATED
    later = softmap.resume(path, MODEL, threads=1)  # the checkpoint has kept the bound
    assert later.bound == first.bound

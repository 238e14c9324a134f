"""Parts of the checker one by one: order of records, packed records, clusters, words of reports."""

from __future__ import annotations

import io
import itertools
import json
import math
import tracemalloc
import zlib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import softmap
from softmap.errors import FormatError
from softmap.subsolvers.clusters.regions import build
from softmap.verification.checks import _ranked
from softmap.verification.conclusion import Conclusion
from softmap.verification.exact import float_below, rounded_sum
from softmap.verification.integers import HALF
from softmap.verification.limit import Limits
from softmap.verification.proof import Checked, Checker, check_proof
from softmap.verification.ranks import Rank
from softmap.verification.records import MOST_PACKED, Rejected, _inflated
from softmap.verification.regions import tightened

MODEL = softmap.Model([[0.0, 6.0], [8.0, 0.0]], [[0, 1]], [[[2.0, 4.0], [4.0, 0.0]]])


def ints(*values) -> np.ndarray:
    return np.array(values, dtype=np.int64)


DUAL = ("dual", [ints(), ints(), ints(0, 0, 0, 0)])
LOAD, HARD = ("load", [(1, 0, HALF - 1)]), ("hard", [])
BOOLEANS = ("booleans", [(1, 0, 3), (0, 1)])
EXCEPT = ("except", [ints(0, 1), ints(0, 0)])
SPINS, ASSIGNED = ("spins", [ints()] * 4), ("assignment", [ints(2, 2, 0), *[ints()] * 3])
BOUND = ("conclude", [ints(0), np.array([-9.0]).view(np.int64)])
NONE = ("conclude", [ints(2), ints()])


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([HARD, HARD], "hard out of its place"), ([LOAD, HARD], "hard out of its place"),
        ([HARD, DUAL], "dual out of its place"), ([HARD, ASSIGNED], "assignment out of its place"),
        ([LOAD, EXCEPT], "except out of its place"), ([HARD, EXCEPT], "except out of its place"),
        ([LOAD, BOOLEANS], "out of its place"), ([DUAL, BOOLEANS], "out of its place"),
        ([HARD, SPINS], "spins out of its place"), ([LOAD, SPINS], "spins out of its place"),
        ([LOAD, ASSIGNED], "assignment out of its place"), ([LOAD, BOUND, LOAD], "load after the"),
        ([LOAD, ("labels", [ints(0, 1)]), LOAD], "load after the"),
    ],
)  # fmt: skip
def test_records_have_their_places(records, said):
    checker = Checker(MODEL.network, 0, Limits())
    for record in records[:-1]:
        checker.step(*record)
    with pytest.raises(Rejected, match=said):
        checker.step(*records[-1])


def test_leaves_of_spins_are_those_of_one_tree():
    """Two leaves, one for each label of the first variable; the multipliers are those of none."""
    checker = Checker(MODEL.network, 0, Limits())
    multipliers = [np.full(2, -40.0).view(np.int64), ints(), ints()]
    for label in (0, 1):
        checker.step("spins", [ints(0, label), *multipliers])
    found, _ = checker.result()
    assert -200 < found <= 2  # the optimum


def test_hard_constraints_without_a_conflict_prove_no_infeasibility():
    checker = Checker(MODEL.network, 0, Limits())
    for record in (HARD, BOOLEANS, NONE):
        checker.step(*record)
    with pytest.raises(Rejected, match="does not follow"):
        checker.result()


def test_a_proof_that_there_is_no_labelling_proves_every_bound():
    last = Conclusion.of((ints(2), ints()), None, True)
    assert Checked(Fraction(1), 0, 1, last).proves(1e9)
    assert not Checked(Fraction(1), 0, 1).proves(1e9)


@pytest.mark.parametrize(
    ("others", "said"),
    [(Fraction(5), "none costs less than 5.0"), (math.inf, "there are none"),
     (-math.inf, "nothing is stated")],
)  # fmt: skip
def test_the_words_about_ranks(others, said):
    ranks = Rank((0,), Fraction(1), Fraction(1, 3)), Rank((1,), Fraction(2), -math.inf)
    found = [*_ranked(Checked(Fraction(0), 0, 1, None, ranks, others))]
    assert [(one.name, one.numbers) for one in found] == [
        ("rank 1", f"1.0 found, no labelling costs less than {float_below(Fraction(1, 3))!r}"),
        ("rank 2", "2.0 found, no labelling costs less than -inf, apart from the 1 before"),
        ("others", said),
    ]


def test_numbers_outside_of_float64():
    huge = Fraction(10) ** 400
    assert (float_below(huge), float_below(-huge)) == (1.7976931348623157e308, -math.inf)
    assert math.isnan(rounded_sum([math.inf, 1.0]))


# --- packed records -------------------------------------------------------------------------------


def refused(path: Path, body: bytes, said: str, **fields) -> None:
    header = {"format": "softmap proof", "version": 3, "model": MODEL.fingerprint(), "exponent": 0}
    header |= {"bytes": len(body), "crc32": zlib.crc32(body)} | fields
    path.write_bytes(json.dumps(header).encode() + b"\n" + body)
    with pytest.raises(FormatError, match=said):
        check_proof(path, MODEL.network)


def test_sizes_of_records_are_those_of_the_header(tmp_path):
    path, plain = tmp_path / "x", bytes(1000)
    body = zlib.compress(plain)
    refused(path, plain, "truncated", bytes=1001)
    refused(path, plain, "expected 3", version=99)
    for size in (0, -1, "1000", MOST_PACKED * len(body) + 1):
        refused(path, body, "cannot hold", packed=True, bytes=size)
    refused(path, body, r"checksum|truncated", packed=True, bytes=MOST_PACKED * len(body))
    refused(path, body, "truncated", packed=True, bytes=1001, crc32=zlib.crc32(plain))
    refused(path, body, "checksum", packed=True, bytes=1000, crc32=1)
    refused(path, body, "no record of kind 0", packed=True, bytes=1000, crc32=zlib.crc32(plain))


def test_no_more_than_the_stated_size_is_decompressed():
    written = io.BytesIO()
    parts = _inflated(zlib.compress(bytes(1 << 20)), 0, 10, Path("x"))
    with pytest.raises(FormatError, match="truncated"):
        written.writelines(parts)
    assert written.tell() == 11


def test_what_follows_the_stated_size_is_not_decompressed(monkeypatch):
    """Each further piece of the file was decompressed whole, however large it became."""
    monkeypatch.setattr("softmap.verification.records.CHUNK", 4096)
    body = zlib.compress(bytes(1 << 24))
    assert b"".join(_inflated(body, 0, 1 << 24, Path("x"))) == bytes(1 << 24)
    tracemalloc.start()
    written = io.BytesIO()
    with pytest.raises(FormatError, match="truncated"):
        written.writelines(_inflated(body, 0, 10, Path("x")))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert written.tell() == 11
    assert peak < 1 << 20


# --- clusters -------------------------------------------------------------------------------------


@pytest.mark.parametrize("clusters", [[(0, 1)], [(0, 0, 1)], [(0, 1, 2), (1, 2)]])
def test_clusters_are_three_or_more_different_variables(clusters):
    model = softmap.Model(np.zeros((3, 2)), [[0, 1]], np.zeros((1, 2, 2)))
    with pytest.raises(ValueError, match="three or more different"):
        tightened(model.network, clusters, 1000)


def test_clusters_beside_factors_are_those_of_the_solver():
    rng, sizes = np.random.default_rng(0), [2, 3, 2, 2, 3]
    scopes = [(2, 0, 1), (4, 1, 3), (0, 1), (3, 0), (3, 4), (1, 4)]
    factors = [(scope, rng.normal(size=[sizes[i] for i in scope])) for scope in scopes]
    model = softmap.Model.from_factors(sizes, factors)
    every = [*itertools.combinations(range(5), 3), (0, 1, 2, 3)]
    for clusters in ([one] for one in every), [every[:4]], [every]:
        for some in clusters:
            theirs = build(model.network, some).model
            ours = tightened(model.network, some, theirs.half_size)
            assert ours.edges.tolist() == theirs.edges.tolist()
            assert np.array_equal(ours.unary, theirs.unary)
            assert all(np.array_equal(ours.table(e), theirs.table(e)) for e in range(ours.m))

"""Mistakes of the checker that were found: honest proofs called false, false bounds accepted."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import re
import subprocess
import sys
import tempfile
import zlib
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import softmap
from softmap.app.cli.app import main
from softmap.subsolvers.forests.forest import ForestNumbers
from softmap.tuning import Tuning
from softmap.verification import Verdict
from softmap.verification.exact import float_below, rounded_down
from softmap.verification.integers import FORBIDDEN, flat_model
from softmap.verification.limit import BYTES, COPIES, ITEM, MEMORY, WORK, Limits, Refused
from softmap.verification.node import bytes_of
from softmap.verification.records import OBJECT, Records, mapped
from softmap.verification.reduction import _dominates
from softmap.verification.search import SearchLog
from softmap.verification.tree import OPEN, Tree
from support.hostile_proofs import record, star, write_hostile
from support.proof_files import packed, taken_apart, write_proof

TINY = st.floats(min_value=2.0**-540, max_value=2.0**-440)


def test_whether_a_label_dominates_another_does_not_depend_on_the_order_of_factors():
    """One factor forbids the better label, another forbids the worse label throughout."""
    rows = [
        np.array([[0], [0]]),
        np.array([[FORBIDDEN, 0], [1, 1]]),
        np.array([[0, 0], [FORBIDDEN, FORBIDDEN]]),
    ]
    assert all(_dominates(list(order), 0, 1) for order in itertools.permutations(rows))
    assert not any(_dominates(list(order), 0, 1) for order in itertools.permutations(rows[:2]))


def test_proofs_of_permutations_with_hard_constraints_are_accepted(tmp_path):
    """19 of 16,538 were called false: the order of a set decided."""
    checked = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 6))
        costs = rng.integers(0, 5, (n, n + 1)).astype(float)
        costs[rng.random(costs.shape) < 0.3] = np.inf
        pairs = [(int(i), int(j)) for i, j in itertools.combinations(range(n), 2)]
        tables = rng.integers(0, 4, (len(pairs), n + 1, n + 1)).astype(float)
        tables[rng.random(tables.shape) < 0.15] = np.inf
        try:
            factors = [((i,), costs[i]) for i in range(n)]
            factors += list(zip(pairs, tables, strict=True))
            factors.append(softmap.AllDifferent(list(range(n))))
            model = softmap.Model.from_factors([n + 1] * n, factors)
            result = softmap.solve(model, proof=tmp_path / "proof", threads=1)
        except softmap.InfeasibleModel:
            continue
        report = softmap.verify(result, proof=tmp_path / "proof")
        assert report.checked, (seed, str(report))
        checked += 1
    assert checked > 20


@given(TINY | st.floats(0.1, 1e3), TINY | st.floats(-1e3, 1e3))
@example(2.0**-500 * (1 + 2.0**-52), 2.0**-500 * (1 + 2.0**-51))
@example(5e-324, 0.5)
@example(0.0, 1.0)
def test_products_are_rounded_down(weight, entry):
    """The error of products below 2^-969 underflows, and they were not rounded down."""
    low = float(rounded_down(np.array([weight]), np.array([entry]))[0])
    exact = Fraction(weight) * Fraction(entry)
    assert Fraction(low) <= exact < Fraction(math.nextafter(low, math.inf))


def test_a_bound_over_tiny_products_is_no_more_than_the_optimum():
    rng = np.random.default_rng(0)
    weights, table = 2.0**-500 * rng.uniform(1, 2, 400), 2.0**-510 * rng.uniform(1, 2, (2, 2))
    edges = [(i, i + 1) for i in range(400)]
    potential = softmap.SharedTables([table], np.zeros(400, int), weights)
    model = softmap.Model(np.zeros((401, 2)), edges, potential)
    low = [costs for _, costs in flat_model(model.network).factors]
    for weight, costs in zip(weights, low, strict=True):
        for entry, cost in zip(table.flat, costs.flat, strict=True):
            assert Fraction(float(cost)) <= Fraction(float(weight)) * Fraction(float(entry))


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    path = tmp_path_factory.mktemp("proof") / "run.proof"
    model = softmap.generators.erdos_renyi(40, seed=1)
    return model, softmap.solve(model, proof=path), path


def test_a_stated_optimum_beside_a_true_and_weaker_proof_is_not_accepted(
    searched, tmp_path, capsys
):
    model, result, path = searched
    weaker = tmp_path / "weaker"
    write_proof(weaker, model, packed(taken_apart(path)[1][:1]))
    report = softmap.verify(result, proof=weaker)
    assert report["proof"].verdict is Verdict.CHECKED
    assert "less than was stated" in report["proof"].numbers
    assert report.verdict is Verdict.STATED
    assert not report
    assert report.holds
    assert "less than was stated" not in softmap.verify(result, proof=path)["proof"].numbers
    softmap.write(model, tmp_path / "m.npz")
    result.save(tmp_path / "r.npz")
    words = ["verify", str(tmp_path / "r.npz"), str(tmp_path / "m.npz"), "--proof"]
    assert main([*words, str(weaker)]) == 6
    assert main([*words, str(path)]) == 0
    assert main([*words, str(tmp_path / "m.npz")]) == 1
    capsys.readouterr()


def test_an_optimum_of_zero_is_checked(tmp_path):
    queens = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    rows, columns = np.meshgrid(np.arange(4), np.arange(4), indexing="ij")
    tables = [
        np.where((rows == columns) | (np.abs(rows - columns) == j - i), np.inf, 0.0)
        for i, j in queens
    ]
    model = softmap.Model(np.zeros((4, 4)), queens, softmap.Tables(np.array(tables)))
    result = softmap.solve(model, proof=tmp_path / "proof")
    assert result.energy == result.bound == 0.0
    report = softmap.verify(result, proof=tmp_path / "proof")
    assert report["status"].verdict is Verdict.CHECKED
    assert report.checked


@pytest.mark.parametrize("size", [1e307, 1.7e308])
def test_a_huge_lam_is_false_and_no_error(size):
    model = softmap.generators.potts_grid(4, 4, 3, seed=1)
    result = softmap.paper.solve(model, goal="lp", updates=3)
    forged = dataclasses.replace(result, lam=np.full_like(result.lam, size))
    assert softmap.verify(forged).verdict is Verdict.FALSE
    assert softmap.verify(dataclasses.replace(result, bound=size)).verdict is Verdict.FALSE


def test_a_huge_unit_is_no_error(searched, tmp_path):
    model, result, _ = searched
    path = tmp_path / "proof"
    write_proof(path, model, packed([("LOAD", [[1, 4999, 100]])]))
    report = softmap.verify(result, proof=path)
    assert report["proof"].verdict is not Verdict.CHECKED or "-inf" in report["proof"].numbers


@given(st.fractions(), st.integers(-2000, 2000))
def test_the_float_below_a_fraction(value, exponent):
    value *= Fraction(2) ** exponent
    low = float_below(value)
    assert low <= value
    assert low == math.inf or math.nextafter(low, math.inf) > value


def test_a_short_log_cannot_make_the_checker_compute_large_tables(tmp_path):
    """A star of 27 binary variables: eliminating its centre makes a table of 2^26 entries."""
    model = softmap.Model(
        np.zeros((27, 2)), [(0, k) for k in range(1, 27)], softmap.Potts(np.ones(26))
    )
    result = softmap.solve(model)
    path = tmp_path / "proof"
    write_proof(path, model, packed([("LOAD", [[1, 0, 100]]), ("ELIMINATE", [[0]])]))
    assert path.stat().st_size < 400
    report = softmap.verify(result, proof=path)
    assert report["proof"].verdict is Verdict.STATED
    assert "effort" in report["proof"].numbers
    assert not report


def test_combined_factors_count_as_well():
    differ = np.array([[0, 4], [4, 0]])
    factors = [([0, 1], differ), ([0, 2], differ)]
    with pytest.raises(Refused):
        Tree([[0, 2], [0, 0], [0, 0]], factors, Limits(1e-9)).combine((0,), (0, 1), (1, 2))
    effort = Limits(2.0**-22)  # 512 entries in all, and one of a table
    for _ in range(512):
        effort.spend([1, 1], 1, copies=1)
    with pytest.raises(Refused, match="its limit, for a model and a file of this size, is 512"):
        effort.spend([1, 1], 1, copies=1)


def test_a_table_is_refused_whose_entries_cost_little_work():
    effort = Limits()
    most = MEMORY.constant // (8 * COPIES)
    effort.spend([most], 1)
    with pytest.raises(Refused, match=r"a table of 2\.8e\+06 entries; its limit, .* 2\.796e\+06"):
        effort.spend([most + 1], 1)
    effort.keep(MEMORY.constant // 2)
    with pytest.raises(Refused, match=r"is 1\.398e\+06"):
        effort.spend([most], 1)
    effort.spend([most], 1, copies=1)


def test_limits_grow_with_the_file_and_the_model():
    for file, costs in ((0, 0), (1000, 0), (0, 1000)):
        limits = Limits(2.0, file, costs)
        for amount, check in (
            (BYTES, limits.require_bytes), (WORK, limits.work), (MEMORY, limits.require),
        ):  # fmt: skip
            most = 2 * (amount.constant + amount.per_byte * file + amount.per_cost * costs)
            check(most)
            with pytest.raises(Refused, match=re.escape(f"{most:.4g}")):
                check(most + 1)
    limits = Limits(1.0)
    limits.keep(MEMORY.constant)
    with pytest.raises(Refused, match="more bytes of memory"):
        limits.keep(1)
    limits.keep(-MEMORY.constant // 2)  # free again
    limits.work(WORK.constant // 4)
    assert limits.spent == (0.25, 0.5)


def packed_file(path, model: softmap.Model, records: bytes) -> None:
    """A compressed proof file."""
    header = {"format": "softmap proof", "version": 3, "model": model.fingerprint()}
    header |= {"exponent": 0, "packed": True, "bytes": len(records), "crc32": zlib.crc32(records)}
    path.write_bytes(json.dumps(header).encode() + b"\n" + zlib.compress(records, 9))


def test_a_short_file_of_many_bytes_is_refused_before_it_is_decompressed(tmp_path, monkeypatch):
    """A megabyte held a gigabyte of zeros, which were written to disk."""
    model, path = softmap.Model(np.zeros((2, 2)), [[0, 1]], softmap.Potts([1.0])), tmp_path / "x"
    packed_file(path, model, bytes(40 << 20))
    monkeypatch.setattr(tempfile, "TemporaryFile", None)
    report = softmap.verify(model, proof=path)
    assert report["proof"].verdict is Verdict.STATED
    assert "4.194e+07 bytes of records, after decompression" in report["proof"].numbers
    assert "its limit, for a model and a file of this size, is 3.4" in report["proof"].numbers


PAIR = [("LOAD", [[1, 0, 1 << 40]]), ("COMPONENT", [[0, 1], [0]]), ("DIVE", [[0]])]
BRANCH = ("BRANCH", [[0, 1, 99]])
LONG = {  # records that take long, and what they need
    "steps": ([*PAIR, *[("STEP", [[]] * 5)] * 600], "work"),
    "cuts": ([*PAIR, *[("CUT", [[99]])] * 800], "work"),
    "combinations": ([*PAIR, *[("COMBINE", [[], [k], [0, 1]]) for k in range(120)]], "memory"),
    "moves": ([PAIR[0], *[("SHIFT", [[0, 0], [0, 0]])] * 100], "work"),
    "removals": ([PAIR[0], *[("REMOVE", [[0], []])] * 200], "work"),
    "branches": ([*PAIR, *[BRANCH] * 500], "memory"),
    "sums": (
        [("BOOLEANS", [[1, 0, 3], [0, 1]]), *[("GIVEN", [[2, 0], []])] * 1000],
        "memory",
    ),
    "clauses": (
        [("BOOLEANS", [[1, 0, 3], [0, 1]]), *[("GIVEN", [[0, 0], [1] * 50])] * 100],
        "memory",
    ),
}


@pytest.mark.parametrize("kind", LONG)
def test_records_that_take_long_are_refused(kind, tmp_path):
    """Nothing but tables was counted."""
    records, what = LONG[kind]
    model, path = softmap.Model([[0.0, 1.0], [1.0, 0.0]], [[0, 1]], softmap.Potts([0.5])), tmp_path
    write_proof(path / "proof", model, packed(records))
    effort = 2.0**-12 if what == "work" else 2.0**-10
    report = softmap.verify(model, proof=path / "proof", effort=effort)
    assert report["proof"].verdict is Verdict.STATED
    words = {"work": "more table entries", "memory": "more bytes of memory"}
    assert words[what] in report["proof"].numbers
    assert "allow a larger effort" in report["proof"].numbers


def test_each_decision_of_a_node_that_is_resumed_counts():
    """400 kB of decisions and dives took half a day: they were applied again and not counted."""
    work = []
    for number in (1, 50):
        effort = Limits()
        tree = Tree([[0, 1], [0, 0]], [([0, 1], np.zeros((2, 2), np.int64))], effort)
        tree.dive((0,))
        for _ in range(50):
            tree.branch((0, 1, 99))
        tree.leave()
        before = effort.spent[0]
        tree.dive((number,))
        work.append((effort.spent[0] - before) * WORK.constant)
    assert work[1] - work[0] >= 49 * 8 * ITEM


def test_memory_of_nodes_is_free_when_they_are_closed():
    effort = Limits()
    tree = Tree([[0, 1], [0, 0]], [([0, 1], np.zeros((2, 2), np.int64))], effort)
    for number in range(0, 80, 2):
        tree.dive((number,))
        tree.branch((0, 1, 5))
        tree.leave()
    held = bytes_of(np.zeros((2, 2)))
    assert 0 < effort.spent[1] * MEMORY.constant <= held + 42 * OPEN + (1 << 11)
    tree.release()
    assert effort.spent[1] == 0


def test_the_numbers_of_a_record_count_together_and_are_free_behind_it(tmp_path):
    """Each array had a limit of its own: those of one record took 500 MB."""
    one = record("LEARNED", *[np.zeros(2000, np.int8)] * 2)
    (tmp_path / "records").write_bytes(one * 40)
    with mapped(tmp_path / "records") as data:
        limits = Limits()
        limits.keep(limits.free - 4000 * OBJECT)
        assert sum(1 for _ in Records(data, 0, limits)) == 40
        limits.keep(limits.free - 4000 * OBJECT + 1)
        with pytest.raises(Refused, match="more bytes of memory"):
            next(iter(Records(data, 0, limits)))


def test_tables_count_until_their_search_ends():
    """A thousand eliminations left a thousand tables, none of which was too large."""
    flat, effort = flat_model(star(10, 4).network), Limits()
    for _ in range(3):
        log = SearchLog(flat, 0, effort)
        log.step("load", [(1, 0, 1 << 40)])
        before = effort.free
        for k in range(4):
            log.step("eliminate", [(k,)])
        assert before - effort.free >= 4 * 8 * (1 << 10) - 40 * 8 * 4
        log.release()
        assert effort.spent[1] == 0


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_files_of_a_megabyte_take_no_more_than_256_mb(tmp_path):
    """Arrays of one record took 500 MB, tables that stay 3 GB, decompression twice the file."""
    kinds = ("zeros", "stars", "numbers of a step", "numbers of an assignment", "clusters")
    for kind in kinds:
        size = 1 << (23 if kind == "clusters" else 25)
        model = write_hostile(tmp_path / kind, kind, size, compressed=True, file=1 << 20)
        softmap.write(model, tmp_path / f"{kind}.npz")
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(tmp_path), *kinds],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    *verdicts, peak = done.stdout.split()
    assert set(verdicts) <= {"stated", "false"}
    assert 0 < int(peak) <= 256 << 10


MEASURED = """
import sys, softmap
folder, *kinds = sys.argv[1:]
for kind in kinds:
    model = softmap.read(f"{folder}/{kind}.npz")
    print(softmap.verify(model, proof=f"{folder}/{kind}")["proof"].verdict.value)
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def test_proofs_beside_large_penalties_are_accepted(tmp_path):
    """The search took penalties of 2^127 units and more for costs of 0; the checker did not."""
    for seed in range(6):
        rng, n = np.random.default_rng(seed), 10
        pairs = list(itertools.combinations(range(n), 2))
        unary, tables = rng.normal(size=(n, 3)), rng.normal(size=(len(pairs), 3, 3))
        unary[:, 1:][rng.random((n, 2)) < 0.3] = 1e30
        model = softmap.Model(unary, pairs, tables)
        result = softmap.solve(model, proof=tmp_path / "proof", threads=1, max_work=10**7)
        assert result.status is softmap.Status.OPTIMAL
        assert softmap.verify(result, proof=tmp_path / "proof").checked


@pytest.mark.parametrize("constant", [1e188, -1e300])
def test_lam_proves_bounds_of_zeros_and_a_large_constant(tmp_path, constant):
    """The constant overflowed where tiny costs are scaled up: an honest proof was rejected."""
    model = softmap.Model(
        [[0.0, 1e-200], [0.0, 0.0]], [[0, 1]], [[[0.0, 0.0]] * 2], constant=constant
    )
    softmap.solve(model, proof=tmp_path / "proof", threads=1)
    assert softmap.verify(model, proof=tmp_path / "proof").checked


def bits(*values: float) -> list[int]:
    """Floats as the integers of a record."""
    return np.array(values, dtype=np.float64).view(np.int64).tolist()


@pytest.fixture(scope="module")
def cancelled():
    """Costs of 3 and 0, if a product of 7e16 is rounded to nearest, and of 3 + 4 if it is not."""
    rng = np.random.default_rng(1)
    while True:
        weight = rng.uniform(0.1, 1) * 1e17
        entry = weight * 0.7
        if Fraction(weight) * Fraction(0.7) - Fraction(entry) >= 3:
            break
    shared = softmap.SharedTables([[[0.0, 1.0], [1.0, 0.7]]], [0], [weight])
    model = softmap.Model([[entry, 0.0], [3.0, 0.0]], [[0, 1]], shared, constant=-entry)
    assert (model.energy([0, 0]), model.energy([1, 1])) == (3.0, 0.0)
    return model, np.array([entry, 0.0, 3.0, 0.0])


@pytest.mark.parametrize("ranked", [False, True])
def test_lam_proves_no_more_than_products_that_are_rounded_down(cancelled, tmp_path, ranked):
    """The labelling of cost 3 was called optimal: products of weights and entries were exact."""
    model, lam = cancelled
    records = [("DUAL", [[], [], bits(*lam)])]
    if ranked:
        records = [("EXCEPT", [[0, 1], [0, 0]]), *records, ("RANKS", [bits(3.0, 3.0)])]
    else:
        records += [("LABELS", [[0, 0]]), ("CONCLUDE", [[1], bits(0.0)])]
    write_proof(tmp_path / "proof", model, packed(records))
    assert softmap.verify(model, proof=tmp_path / "proof").verdict is Verdict.FALSE
    assert main_exit(model, tmp_path) == 1


def main_exit(model: softmap.Model, folder) -> int:
    """The exit code of `softmap verify` about a proof without a result."""
    softmap.write(model, folder / "m.npz")
    return main(["verify", str(folder / "m.npz"), "--proof", str(folder / "proof")])


def test_pieces_beside_rounded_products_prove_no_more(cancelled, tmp_path):
    """The edge remains outside of the piece, and its product was exact there."""
    model, lam = cancelled
    free = [("LOAD", [[1, 0, 100]]), ("COMPONENT", [[0], []]), ("CUT", [[1 << 50]])]
    piece = ("PIECE", [[1], [], bits(0.0, 0.0)])
    records = [("DUAL", [[], [], bits(*lam)]), piece, *free, ("DIVE", [[0]]), ("LEAVE", [])]
    last = [("END", []), ("LABELS", [[0, 0]]), ("CONCLUDE", [[1], bits(0.0)])]
    write_proof(tmp_path / "proof", model, packed([*records, *last]))
    report = softmap.verify(model, proof=tmp_path / "proof")
    assert report.verdict is Verdict.FALSE
    assert "the conclusion does not follow" in report["proof"].numbers


def test_a_forged_bound_over_rounded_products_is_false(cancelled):
    model, lam = cancelled
    result = softmap.solve(model, goal="lp", method="trws", threads=1)
    stated = {"labels": np.array([0, 0]), "energy": 3.0, "bound": 3.0, "lp_bound": 3.0}
    forged = dataclasses.replace(result, lam=lam, primal=3.0, **stated)
    report = softmap.verify(dataclasses.replace(forged, status=softmap.Status.OPTIMAL))
    assert report["bound"].verdict is report["LP bound"].verdict is Verdict.FALSE


def test_results_whose_products_underflow_in_other_units_are_not_called_false():
    """Weight times entry was 0 in the units of the search, and the bound was that without it."""
    tables = [[[1.1e7, 4.3e7], [2.0e8, -8.0e7], [1.3e8, 8.8e7]]]
    model = softmap.Model(
        [[1.1e287, -1.3e286, -3.7e285], [-2.2e286, 1.3e286]],
        [[0, 1]],
        softmap.SharedTables(tables, [0], [5.8e-226]),
        constant=2.6e286,
    )
    result = softmap.solve(model, threads=1, tuning=Tuning(ForestNumbers(entries=0)))
    assert softmap.verify(result).checked
    assert softmap.verify(softmap.solve(model)).checked
    assert result.lp_bound < math.fsum([2.6e286, -1.3e286, -2.2e286])

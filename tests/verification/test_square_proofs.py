"""Records of squares: what the checker finds, against the same sums in fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import softmap
from adversary.proofs import energies
from softmap.errors import FormatError
from softmap.subsolvers.clusters.cluster_numbers import TightenNumbers
from softmap.subsolvers.cores.cores import CoreNumbers
from softmap.subsolvers.search.search_numbers import SearchNumbers
from softmap.tuning import Tuning
from softmap.verification.integers import Flat
from softmap.verification.limit import Limits, Refused
from softmap.verification.proof import check_proof
from softmap.verification.records import Rejected
from softmap.verification.squares import TINY, UNIT, _own, _pairs, _rest, squares_bound
from support.effort import Ledger
from support.proof_files import packed, put_together, taken_apart

SIZES = (2, 3, 1, 4)


def bits(numbers: Any) -> Any:
    return np.asarray(numbers, np.float64).ravel().view(np.int64)


def random_flat(seed: int, factor: float = 1.0) -> Flat:
    """Costs of pairs in both directions, two tables of one pair, and some that are +inf."""
    rng = np.random.default_rng(seed)
    unary = [factor * rng.normal(size=d) for d in SIZES]
    unary[3][2] = math.inf
    pairs = [p if rng.random() < 0.5 else p[::-1] for p in combinations(range(4), 2)][1:]
    pairs.append(pairs[0])
    tables = [factor * rng.normal(size=(SIZES[i], SIZES[j])) for i, j in pairs]
    tables[1][0, 0] = math.inf
    return Flat(unary, list(zip(pairs, tables, strict=True)), Fraction(7, 3))


def random_squares(seed: int, rank: int = 3) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(sum(SIZES), len(SIZES))), rng.normal(size=(sum(SIZES), rank))


def exact(flat: Flat, moved: Any, rows: Any, unit: Fraction = Fraction(1)) -> Fraction:
    """The bound in fractions."""
    first = np.cumsum([0, *SIZES])
    m = [[Fraction(x) for x in row] for row in moved.tolist()]
    f = [[Fraction(x) for x in row] for row in rows.tolist()]

    def product(a: int, b: int) -> Fraction:
        return sum((x * y for x, y in zip(f[a], f[b], strict=True)), Fraction(0))

    total, n = flat.constant, len(SIZES)
    for i, costs in enumerate(flat.unary):
        total += min(
            Fraction(cost) - unit * product(k, k) + unit * sum(m[k][j] for j in range(n) if j != i)
            for cost, k in zip(costs.tolist(), range(first[i], first[i + 1]), strict=True)
            if cost < math.inf
        )
    for i, j in combinations(range(n), 2):
        found = []
        for a, b in np.ndindex(SIZES[i], SIZES[j]):
            terms = [t[a, b] if s == (i, j) else t[b, a] for s, t in flat.factors if {*s} == {i, j}]
            if np.isfinite([*terms, flat.unary[i][a], flat.unary[j][b]]).all():
                k, q = first[i] + a, first[j] + b
                rest = 2 * product(k, q) + m[k][j] + m[q][i]
                found.append(sum(map(Fraction, terms)) - unit * rest)
        total += min(found)
    return total


@pytest.mark.parametrize("power", [-600, -1, 0, 7, 900])
def test_the_bound_is_that_of_fractions_less_rounding_errors(power):
    for seed in range(4):
        flat = random_flat(seed, 2.0**power)
        moved, rows = random_squares(seed)
        found = squares_bound(flat, Limits(), np.array([power]), bits(moved), bits(rows))
        room = (exact(flat, moved, rows, Fraction(2) ** power) - found) / Fraction(2) ** power
        assert 1e-15 < room < 1e-12


def test_no_squares_leave_the_least_costs():
    flat, none = random_flat(1), np.zeros((sum(SIZES), 0))
    moved = np.zeros((sum(SIZES), len(SIZES)))
    found = squares_bound(flat, Limits(), np.array([0]), bits(moved), bits(none))
    least = [min(costs) for costs in flat.unary]
    assert float(found) < sum(least)
    assert 0 < exact(flat, moved, none) - found < 1e-13


def test_rounding_errors_are_subtracted_where_rows_are_tiny_and_huge():
    """The squares of tiny rows underflow; their products with huge ones do not."""
    flat = Flat([np.zeros(2)] * 2, [], Fraction(0))
    rows = np.array([[1e-160, 3e-161], [0.0, 0.0], [1e160, 1e160 / 3], [0.0, 0.0]])
    with pytest.raises(Rejected, match="not finite"):  # squares overflow
        squares_bound(flat, Limits(), np.array([0]), bits(np.zeros((4, 2))), bits(rows))
    rows *= np.array([[1e-10], [1], [1e-20], [1]])
    found = squares_bound(flat, Limits(), np.array([0]), bits(np.zeros((4, 2))), bits(rows))
    assert found <= -(Fraction(1e140) ** 2)


def test_bounds_on_rounding_errors_are_those_of_all_terms():
    """Sums of numbers that cancel: what remains is less than 0 by the bound on the errors."""
    none, one = np.zeros((2, 3)), np.array([[0.0, 1.0], [-1.0, 0.0]])
    assert _own(np.zeros(2), np.zeros((2, 2)), none).tolist() == [-TINY] * 2
    own = _own(np.zeros(1), np.array([[1.0, -1.0]]), none[:1])
    assert own.tolist() == [-(2 * UNIT * (3 + 2 + 8) * 2)]
    zero = np.zeros((2, 2))
    assert np.allclose(_rest(zero, zero, zero, none), -TINY, rtol=1e-9, atol=0.0)
    assert _rest(zero, zero, one, none)[0, 1] == -16 * UNIT
    assert _rest(zero, zero + 5, zero, none)[0, 1] == -5 * UNIT
    rows = np.array([[0.0, 0.0, 0.0], [1e150, 0.0, 0.0]])  # beside a row that may have underflown
    assert math.isclose(_rest(zero, zero, zero, rows)[0, 1], -44 * UNIT, rel_tol=1e-9)


def test_the_sizes_of_the_costs_of_pairs_count_every_table():
    table = np.array([[3.0, -1.0], [0.0, math.inf]])
    first = np.array([0, 2, 4])
    for tables, sizes in (
        ([table], [[30.0, 10.0], [0.0, 0.0]]),
        ([table, np.full((2, 2), 2.0)], [[60.0, 36.0], [24.0, 24.0]]),
    ):
        flat = Flat([np.zeros(2)] * 2, [((0, 1), one) for one in tables], Fraction(0))
        costs, found = _pairs(flat, first, 0)
        assert costs[:2, 2:].tolist() == sum(tables).tolist()
        assert found[:2, 2:].tolist() == sizes


def test_units_and_work_at_their_limits():
    flat = Flat([np.zeros(2)] * 2, [], Fraction(0))
    for power in (5000, -5000):
        given = np.array([power]), bits(np.zeros(8)), bits(np.zeros(4))
        assert squares_bound(flat, Limits(), *given) < 0
    wide = np.array([0]), bits(np.zeros(8)), bits(np.zeros(4 * 640))
    ledger = Ledger()
    assert squares_bound(flat, ledger, *wide) < 0
    assert ledger.sums == [16 * 18]  # 16 pairs of labels, 8 + 640 / 64 times
    with pytest.raises(Refused):
        squares_bound(flat, Limits(2.0**-21), *wide)


def test_records_that_are_none_are_rejected():
    flat = random_flat(2)
    moved, rows = random_squares(2)
    good = [np.array([0]), bits(moved), bits(rows)]
    wrong: list[tuple[int, Any, str]] = [
        (0, np.array([0, 0]), "unit"), (0, np.array([5001]), "unit"), (0, good[0][:0], "unit"),
        (0, np.array([-1100]), "too large"), (1, good[1][1:], "sizes"), (2, good[2][1:], "sizes"),
        (1, bits(moved * math.nan), "finite"), (2, bits(rows + math.inf), "finite"),
        (1, bits(moved - math.inf), "finite"), (2, bits(rows * 1e200), "finite"),
    ]  # fmt: skip
    assert squares_bound(flat, Limits(), *good) < 100
    for place, array, said in wrong:
        arrays = [*good[:place], array, *good[place + 1 :]]
        with pytest.raises(Rejected, match=said):
            squares_bound(flat, Limits(), *arrays)
    with pytest.raises(Refused):
        squares_bound(flat, Limits(1e-7), *good)
    for scope in ((0, 0), (0, 1, 3), (0,)):
        table = np.zeros([SIZES[i] for i in scope])
        with pytest.raises(Rejected, match="pairs"):
            squares_bound(flat._replace(factors=[(scope, table)]), Limits(), *good)
    closed = flat._replace(factors=[((0, 1), np.full((2, 3), math.inf))])
    with pytest.raises(Rejected, match="finite"):
        squares_bound(closed, Limits(), *good)


@pytest.fixture(scope="module")
def proved(tmp_path_factory):
    """A run whose bound rests on squares: nothing else has the time to prove one."""
    rng, n, d = np.random.default_rng(4), 8, 3
    pairs = list(combinations(range(n), 2))
    tables = softmap.Tables(rng.normal(size=(len(pairs), d, d)))
    model = softmap.Model(np.zeros((n, d)), pairs, tables)
    path = tmp_path_factory.mktemp("squares") / "run.proof"
    tuning = Tuning(SearchNumbers(entries=0), CoreNumbers(entries=0), TightenNumbers(node_states=0))
    return model, softmap.solve(model, proof=path, threads=1, tuning=tuning), path


def test_a_run_writes_squares_that_prove_its_bound(proved):
    model, result, path = proved
    assert result.proof.kind == "semidefinite"
    assert result.bound > result.lp_bound
    assert [name for name, _ in taken_apart(path)[1]] == ["SQUARES", "LABELS", "CONCLUDE"]
    found = check_proof(path, model)
    assert result.bound <= found.bound <= result.energy
    assert softmap.verify(result, proof=path).checked


def test_altered_squares_prove_nothing_false(proved, tmp_path):
    model, _, path = proved
    header, records = taken_apart(path)
    _, (unit, moved, rows) = records[0]
    target, optimum = tmp_path / "altered", min(energies(model).values())
    rng, rejected = np.random.default_rng(0), 0
    for trial in range(40):
        power, fresh = [*unit], [np.array(one).view(np.float64) for one in (moved, rows)]
        if trial % 8 == 0:
            power[0] += int(rng.choice([-1, 1]))
        else:
            one = fresh[trial % 2]
            one[int(rng.integers(len(one)))] += rng.choice([-1.0, 1.0, 1e-9, 1e9])
        record = ("SQUARES", [power, *(one.view(np.int64).tolist() for one in fresh)])
        put_together(target, header, packed([record]))
        assert check_proof(target, model).bound <= optimum
        put_together(target, header, packed([record, *records[1:]]))
        try:
            check_proof(target, model)
        except FormatError:
            rejected += 1
    assert rejected > 20


def test_squares_are_alone_and_about_the_costs(proved, tmp_path):
    model, _, path = proved
    header, records = taken_apart(path)
    for wrong in ([records[0], *records], [("HARD", []), *records], [*records, records[0]]):
        put_together(tmp_path / "wrong", header, packed(wrong))
        with pytest.raises(FormatError, match=r"out of its place|after the conclusion"):
            check_proof(tmp_path / "wrong", model)

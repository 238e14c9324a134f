"""The numbers of the checker: exact sums, costs as integers, and the bytes of records."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

import softmap
from softmap.errors import FormatError
from softmap.labels.exact import ExactSearch
from softmap.relaxation.flat import flatten
from softmap.verification.exact import (
    MANY,
    Expansion,
    exact_sum,
    floats_of,
    sign_of_sum,
    two_sum,
)
from softmap.verification.integers import (
    FORBIDDEN,
    HALF,
    Scale,
    along,
    flat_model,
    flat_piece,
    lower_tables,
)
from softmap.verification.records import Records, Rejected, mapped
from softmap.verification.table import RECORDS

INF = math.inf


# --- sums -----------------------------------------------------------------------------------------


def floats(seed: int, count: int = 200, low: int = -60, high: int = 60) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=count) * 2.0 ** rng.integers(low, high, count)


def test_two_sum_loses_nothing():
    a, b = floats(1), floats(2)
    total, error = two_sum(a, b)
    assert (total == a + b).all()
    for x, y, s, e in zip(a, b, total, error, strict=True):
        assert Fraction(x) + Fraction(y) == Fraction(s) + Fraction(e)
    assert np.any(error != 0)


def terms_of(sums: Expansion) -> list[list[Fraction]]:
    """The parts of each value of a flat expansion, as fractions."""
    return [[*map(Fraction, parts)] for parts in np.array(sums.parts).T.tolist()]


def test_an_expansion_loses_nothing():
    total, exact = Expansion.of(np.zeros(50)), [Fraction(0)] * 50
    for seed in range(60):
        values = floats(100 + seed, 50, -400, 400)
        total = total.add(values)
        exact = [x + Fraction(v) for x, v in zip(exact, values, strict=True)]
        assert [*map(sum, terms_of(total))] == exact
    assert [total.value(k) for k in range(50)] == exact
    assert MANY < len(total.parts) <= 18  # numbers of 860 bits
    small = Expansion.of(np.zeros(2)).add(np.array([1.0, 2.0])).add(np.array([2.0**-53, 1.0]))
    assert len(small.parts) == 2


def test_some_values_of_an_expansion_are_replaced():
    total = Expansion.of(floats(7, 6))
    before = [total.value(k) for k in range(6)]
    index = np.array([4, 1])
    longer = total.take(index)
    for power in (-200, -400, 0):
        longer = longer.add(np.full(2, 2.0**power))
    total.put(index, longer)
    assert len(total.parts) == len(longer.parts) > 2
    assert [total.value(k) for k in (0, 2, 3, 5)] == [before[k] for k in (0, 2, 3, 5)]
    added = sum(Fraction(2) ** power for power in (-200, -400, 0))
    assert [total.value(k) for k in (4, 1)] == [before[k] + added for k in (4, 1)]
    total.put(index, Expansion.of(np.array([1.0, 2.0])))
    assert [total.value(k) for k in (4, 1)] == [1, 2]


def test_signs_of_values():
    tiny, less = 2.0**-60, 2.0**-200
    values = [
        [1.0, -1.0, 0.0], [1.0, -1.0, less], [1.0, -1.0, -less], [0.0, 0.0, 0.0],
        [1.0, tiny, 0.0], [-1.0, tiny, 0.0], [0.0, -tiny, less], [tiny, -tiny, -1.0],
        [less, tiny, -1.0], [0.0, 0.0, 1.0], [1.0, -tiny, 1.0], [0.5, 0.0, -1.0],
        [1.0, 0.0, -1.0],
    ]  # fmt: skip
    parts = [np.array(part) for part in zip(*values, strict=True)]
    exact = [sum(map(Fraction, terms)) >= 0 for terms in values]
    assert Expansion(parts).nonnegative().tolist() == exact
    undefined = Expansion([np.array([math.nan, -INF]), np.zeros(2)])
    with np.errstate(invalid="ignore"):
        assert not undefined.nonnegative().any()


def least(parts, start, allowed) -> Fraction | float:
    arrays = [np.array(values, dtype=float) for values in parts]
    terms = Expansion(arrays).least(np.array(start), np.array(allowed, dtype=bool))
    return INF if math.inf in terms else sum(map(Fraction, terms))


def test_the_least_of_blocks():
    zeros, yes = [0.0] * 5, [True] * 5
    assert least([[3, 1, 2, 7, 5], zeros], [0, 3], yes) == 6
    assert least([[3, 1, 2, 7, 5], zeros], [0, 3], [1, 0, 1, 1, 1]) == 7
    assert least([[3, 1, 2, 7, 5], zeros], [0, 3], [1, 1, 1, 0, 0]) == INF
    # the second part decides between entries with the same rounded sum, also if it is the larger
    tiny = 2.0**-60
    assert least([[1, 1, 2], [tiny, -tiny, 0]], [0], [1, 1, 1]) == 1 - Fraction(tiny)
    assert least([[1, 1, 2], [tiny, -tiny, 0]], [0], [1, 0, 1]) == 1 + Fraction(tiny)
    assert least([[5, 9], [0, -8]], [0], [1, 1]) == 1


def test_further_parts_decide_the_least():
    zero, less = [0.0, 0.0], 2.0**-300
    assert least([[1, 1], zero, [less, -less]], [0], [1, 1]) == 1 - Fraction(less)
    assert least([[1, 1], zero, [less, -less]], [0], [1, 0]) == 1 + Fraction(less)
    assert least([[0, 3], zero, [0, -4]], [0], [1, 1]) == -1
    assert least([[0, 3], zero, [0, -1]], [0], [1, 1]) == 0
    assert least([[0, 3], zero, [4, 0]], [0], [1, 1]) == 3
    assert least([[0, 3, 0], [0] * 3, [-0.5, 1, -2]], [0, 2], [1, 1, 1]) == Fraction(-5, 2)
    assert least([[2.0**60, 2.0**60 + 512], zero, [0, -1024]], [0], [1, 1]) == 2**60 - 512
    for bad in ([INF, 0], [math.nan, 0], [-INF, 0]):
        with np.errstate(invalid="ignore"):
            assert least([[1, 1], zero, bad], [0], [1, 1]) == INF
            assert least([bad, zero], [0], [1, 1]) in (INF, 0)


@pytest.mark.parametrize("seed", range(20))
def test_the_least_is_that_of_fractions(seed):
    rng = np.random.default_rng(seed)
    total = Expansion.of(floats(seed, 12, -3, 3).round(1))
    for k in range(3):
        total = total.add(floats(50 + 3 * seed + k, 12, -300, 3) * rng.integers(-1, 2, 12))
    allowed, start = rng.random(12) < 0.8, np.array([0, 3, 7])
    allowed[start] = True
    blocks = [range(3), range(3, 7), range(7, 12)]
    exact = sum(min(total.value(k) for k in block if allowed[k]) for block in blocks)
    assert sum(map(Fraction, total.least(start, allowed))) == exact


def test_fractions_are_sums_of_floats():
    for terms in ([1e300, 1.0, -(2.0**-1074)], [0.1, 0.2, 0.3], [-1.7e308, 1e-300], []):
        found = floats_of(sum(map(Fraction, terms), Fraction(0)))
        assert sum(map(Fraction, found)) == sum(map(Fraction, terms))
        assert all(isinstance(x, float) for x in found)


def test_exact_sums_of_cancelling_terms():
    terms = [1e300, 1.0, -1e300, 2.0**-70, -(2.0**-80)]
    assert exact_sum(terms) == sum(map(Fraction, terms))
    assert exact_sum([]) == 0
    assert [sign_of_sum([1e300, x, -1e300]) for x in (-1e-300, 0.0, 1e-300)] == [-1, 0, 1]


# --- integers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "unit", [(0, 0, 5), (-1, 0, 5), (1, 5000, 5), (1, -5000, 5), (1, 0, -1), (1, 0, HALF)]
)
def test_units_that_are_none_are_rejected(unit):
    with pytest.raises(Rejected):
        Scale(*unit)


@pytest.mark.parametrize("unit", [(1, 4999, 0), (1, -4999, HALF - 1), (2, 0, 0)])
def test_units_at_their_limits_are_accepted(unit):
    granule, exponent, most = unit
    scale = Scale(*unit)
    assert (scale.unit, scale.most) == (granule * Fraction(2) ** exponent, most)


def convert(costs, granule=1, exponent=0, most=HALF - 1):
    scale = Scale(granule, exponent, most)
    return scale.convert(np.array(costs, dtype=float)).tolist(), scale.base, scale.common


def test_costs_are_rounded_down_to_units():
    assert convert([3.5, 1.0, 9.0, INF], most=5) == ([2, 0, FORBIDDEN, FORBIDDEN], 1, 1)
    assert convert([1.0, 6.0], most=5) == ([0, 5], 1, 1)
    assert convert([1.0, 7.0], most=5) == ([0, FORBIDDEN], 1, 1)
    assert convert([-1.5, 0.0]) == ([0, 2], -2, 1)
    assert convert([1.5, 2.0]) == ([0, 1], 1, 1)
    assert convert([4.0, 6.0], exponent=1) == ([0, 1], 2, 1)
    assert convert([0.5, 1.5], exponent=-1) == ([0, 2], 1, 1)
    assert convert([INF, INF]) == ([FORBIDDEN, FORBIDDEN], 0, 0)
    assert convert([INF, 3.0]) == ([FORBIDDEN, 0], 3, 3)


def test_a_common_divisor_is_that_of_exact_costs():
    assert convert([4.0, 8.0, 12.0], granule=2) == ([0, 2, 4], 2, 2)
    assert convert([3.0, 6.0], granule=2) == ([0, 2], 1, 1)
    assert convert([6.0, 10.0, 1e9], most=5) == ([0, 4, FORBIDDEN], 6, 2)
    assert convert([6.0, 10.5, 10.0]) == ([0, 4, 4], 6, 1)
    assert convert([5.0, 9.0], granule=2) == ([0, 2], 2, 1)
    assert convert([5.0, 8.0], granule=2) == ([0, 2], 2, 1)
    assert convert([5e-324, 4.0], exponent=1) == ([0, 2], 0, 1)
    scale = Scale(1, 0, 100)
    for costs in ([4.0, 8.0], [6.0, 6.0]):
        scale.convert(np.array(costs))
    assert (scale.base, scale.common) == (10, 2)


def test_costs_beyond_int64_or_float64_are_converted_exactly():
    assert convert([2.0**70, 2.0**70 + 2.0**20]) == ([0, 2**20], 2**70, 2**20)
    assert convert([2.0**63, 0.0]) == ([FORBIDDEN, 0], 0, 0)
    assert convert([-(2.0**63), 0.0]) == ([0, FORBIDDEN], -(2**63), 2**63)
    assert convert([5e-324, 2.0], exponent=1) == ([0, 1], 0, 1)
    assert convert([-5e-324, 2.0], exponent=1) == ([0, 2], -1, 1)
    assert convert([-5e-324, 3.0], exponent=1) == ([0, 2], -1, 1)
    assert convert([2.0**70, 2.0**71], exponent=69) == ([0, 2], 2, 2)


def test_values_along_an_axis():
    assert along(np.arange(3), 1, 3).shape == (1, 3, 1)
    assert along(np.arange(2), 0, 2).shape == (2, 1)


def test_products_of_weights_and_tables_are_rounded_down():
    rng = np.random.default_rng(7)
    weights, table = (
        rng.normal(size=6),
        np.where(rng.random((3, 3)) < 0.2, INF, rng.normal(size=(3, 3))),
    )
    table[0, 0] = 0.5  # exact products
    weights = np.abs(weights)
    edges = [(i, i + 1) for i in range(6)]
    model = softmap.Model(
        np.zeros((7, 3)), edges, softmap.SharedTables(table[None], [0] * 6, weights)
    )
    for e, low in lower_tables(model.network).items():
        for x, y in np.ndindex(3, 3):
            if table[x, y] == INF:
                assert low[x, y] == INF
                continue
            exact = Fraction(weights[e]) * Fraction(table[x, y])
            assert Fraction(low[x, y]) <= exact < Fraction(math.nextafter(low[x, y], INF))


def test_a_model_of_factors_is_flat():
    rng = np.random.default_rng(1)
    triple, pair = rng.normal(size=(2, 3, 2)), rng.normal(size=(3, 2))
    model = softmap.Model.from_factors(
        [2, 3, 2], [((0, 1, 2), triple), ((1, 2), pair), ((0,), [1.0, 2.0])]
    )
    model = model.replace(constant=0.5)
    flat = flat_model(model.network)
    tables = dict(flat.factors)
    assert set(tables) == {(0, 1, 2), (1, 2)}
    assert (tables[0, 1, 2] + 0 == triple).all() or np.allclose(tables[0, 1, 2], triple)
    assert (tables[1, 2] == pair).all()
    assert [len(costs) for costs in flat.unary] == [2, 3, 2]
    assert flat.constant == Fraction(1, 2)
    whole = softmap.Model(np.zeros((3, 2)), [[0, 1], [1, 2]], np.ones((2, 2, 2)))
    nodes, edges = np.array([2, 1]), np.array([1])
    part = flat_piece(whole.network, nodes, edges, [np.zeros(2)] * 2, lower_tables(whole.network))
    assert part.factors[0][0] == (1, 0)


def test_factors_keep_their_own_tables():
    rng = np.random.default_rng(4)
    scopes = [(0, 1, 2), (1, 2, 3), (0, 2, 3)]
    factors = {scope: rng.integers(0, 9, (2, 2, 2)).astype(float) for scope in scopes}
    model = softmap.Model.from_factors([2] * 4, list(factors.items()))
    for scope, table in flat_model(model.network).factors:
        assert (table == factors[scope]).all()


def test_joint_states_in_another_order_are_rejected():
    model = softmap.Model.from_factors(
        [2, 3, 2], [((0, 1, 2), np.random.default_rng(2).normal(size=(2, 3, 2)))]
    )
    other = copy.copy(model.network)
    turned = dataclasses.replace(
        model.network.auxiliaries, stride=model.network.auxiliaries.stride[::-1].copy()
    )
    object.__setattr__(other, "auxiliaries", turned)
    with pytest.raises(Rejected, match="order of a table"):
        flat_model(other)


def test_states_without_support_are_forbidden():
    table = np.array([[[0.0, INF], [INF, INF]]])
    flat = flat_model(softmap.Model(np.zeros((2, 2)), [[0, 1]], table).network)
    assert [costs.tolist() for costs in flat.unary] == [[0.0, INF], [0.0, INF]]


# --- records --------------------------------------------------------------------------------------


def array(numbers, width: int) -> bytes:
    head = bytes([min(len(numbers), 63) << 2 | width])
    if len(numbers) >= 63:
        head += len(numbers).to_bytes(8, "little")
    return head + b"".join(x.to_bytes(1 << width, "little", signed=True) for x in numbers)


@pytest.mark.parametrize("width", range(4))
@pytest.mark.parametrize("size", [0, 1, 62, 63, 64, 200])
def test_arrays_of_every_width_and_length_are_read(width, size):
    numbers = tuple(range(-(size // 2), size - size // 2))
    numbers = tuple(max(-128, min(127, x)) for x in numbers)
    before = b"xyz"
    body = bytes([1]) + array(numbers, width) + bytes([9]) + bytes([17]) + 3 * array(numbers, width)
    records = Records(before + body, len(before))
    read = iter(records)
    assert next(read) == ("load", [numbers])
    assert (records.count, records.place) == (1, 3)
    assert next(read) == ("end", [])
    assert (records.count, records.place) == (2, 4 + len(array(numbers, width)))
    name, found = next(read)
    assert name == "dual"
    assert [part.tolist() for part in found] == [list(numbers)] * 3
    assert all(part.dtype == np.int64 for part in found)
    assert list(read) == []
    assert records.count == 3


@pytest.mark.parametrize("kind", [0, 34, 255])
def test_other_kinds_of_records_are_rejected(kind):
    with pytest.raises(Rejected, match=f"kind {kind}"):
        list(Records(bytes([kind]) + bytes(30), 0))


def test_the_last_kind_is_a_piece():
    assert next(iter(Records(bytes([18]) + 3 * array((), 3), 0)))[0] == "piece"


@pytest.mark.parametrize("kind", [1, 17])
@pytest.mark.parametrize("size", [5, 70])
def test_arrays_that_end_too_early_are_rejected(kind, size):
    body = bytes([kind]) + (3 if kind == 17 else 1) * array(tuple(range(size)), 3)
    assert len(list(Records(body, 0))) == 1
    for cut in (1, 8, len(body) - 1, len(body) - 4):
        with pytest.raises(Rejected, match=r"ends within|longer than"):
            list(Records(body[: len(body) - cut], 0))


def file_of(path, header: bytes, body: bytes):
    path.write_bytes(header + b"\n" + body)
    return mapped(path)


def test_an_empty_file_is_no_proof(tmp_path):
    (tmp_path / "x").write_bytes(b"")
    with pytest.raises(FormatError, match="not a proof"):
        mapped(tmp_path / "x")


def widths(records: bytes) -> Iterator[tuple[int, int]]:
    """The width in bytes of each array, and the smallest one that holds its numbers."""
    at = 0
    while at < len(records):
        arrays = RECORDS[records[at]].arrays
        at += 1
        for _ in range(arrays):
            count, width, at = records[at] >> 2, 1 << (records[at] & 3), at + 1
            if count == 63:
                count, at = int.from_bytes(records[at : at + 8], "little"), at + 8
            numbers = np.frombuffer(records, f"<i{width}", count, at)
            at += count * width
            most = int(max(numbers.max(initial=0), ~numbers.min(initial=0)))
            yield width, next(w for w in (1, 2, 4, 8) if most < 1 << (8 * w - 1))


def test_a_search_writes_arrays_as_narrow_as_their_numbers(tmp_path):
    rng = np.random.default_rng(4)
    model = softmap.Model.grid(rng.integers(0, 300, (6, 6, 6)), rng.integers(0, 300, (6, 6)))
    log = ExactSearch(flatten(model.network), dp_limit=1.0, log=tmp_path / "log").run().log
    found = list(widths(log.path.read_bytes()[: log.size]))
    assert {1, 2, 4} <= {width for width, _ in found}
    assert [width for width, _ in found] == [least for _, least in found]

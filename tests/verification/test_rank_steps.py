"""Every condition of m-best proofs, on small models without edges: bounds are exact there."""

from __future__ import annotations

import copy
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import softmap
from adversary.proofs import random_model
from softmap.verification.dual import reduced_costs
from softmap.verification.integers import HALF
from softmap.verification.limit import Limits
from softmap.verification.ranks import RankedProof, _RankedDual
from softmap.verification.records import Rejected

LOAD = ("load", [(1, 0, HALF - 1)])


def alone(unary, **options) -> softmap.Model:
    """Variables without edges."""
    sizes = [len(own) for own in unary]
    tables = softmap.SharedTables([np.zeros((sizes[0], sizes[1]))], [])
    return softmap.Model(unary, np.zeros((0, 2), int), tables, **options)


def ints(*values) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def floats(*values) -> np.ndarray:
    return np.array(values, dtype=float).view(np.int64)


def begun(model, rows, order=None, lam=()) -> RankedProof:
    n = model.network.num_visible
    order = ints(*range(n)) if order is None else order
    proof = RankedProof(model.network, 0, Limits(), order, ints(*itertools.chain(*rows)))
    proof.step("dual", [ints(), ints(), floats(*lam)])
    return proof


def two(**options) -> softmap.Model:
    """Energies 0, 1, 5 and 4, 5, 9."""
    return alone([np.array([0.0, 4.0]), np.array([0.0, 1.0, 5.0])], **options)


def stated(proof: RankedProof, *bounds) -> RankedProof:
    own = copy.deepcopy(proof)
    own.step("ranks", [floats(*bounds)])
    return own


@pytest.mark.parametrize("seed", range(40))
def test_bounds_of_parts_are_those_of_enumeration(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 4, 3)
    model = alone([1.0 * rng.integers(-3, 9, d) for d in sizes], constant=2.0)
    energy = {x: Fraction(model.energy(x)) for x in itertools.product(*map(range, sizes))}
    rows = [list(energy)[k] for k in rng.permutation(len(energy))[: int(rng.integers(1, 6))]]
    order = rng.permutation(3)
    proof = begun(model, rows, order)
    for _ in range(int(rng.integers(0, 5))):  # bounds of some labellings, and of no others
        depth = int(rng.integers(3))
        out = rng.permutation(sizes[order[depth]])[: int(rng.integers(0, sizes[order[depth]]))]
        proof.step("part", [ints(int(rng.integers(len(rows))), depth), out])
        proof.step(*LOAD)
    others = min((c for x, c in energy.items() if x not in rows), default=math.inf)
    least = [others]
    for row in reversed(rows):
        least.insert(0, min(energy[row], least[0]))
    done = stated(proof, *map(float, least))
    ranks, rest = done.ranks
    assert (rest, isinstance(rest, float)) == (others, others == math.inf)
    assert [(one.labels, one.energy, one.bound) for one in ranks] == [
        (row, energy[row], bound) for row, bound in zip(rows, least, strict=False)
    ]
    assert done.bound == min(energy.values())
    for k, bound in enumerate(least):
        if bound < math.inf:
            raised = [*map(float, least[:k]), float(bound) + 1e-9, *map(float, least[k + 1 :])]
            with pytest.raises(Rejected, match=f"rank {k + 1}"):
                stated(proof, *raised)


@pytest.mark.parametrize(
    ("order", "labels", "said"),
    [((0, 0), (0, 0), "order"), ((0,), (0, 0), "order"), ((0, 2), (0, 0), "order"),
     ((0, 1), (0, 0, 1), "order"), ((1, 0), (), "there is none"),
     ((1, 0), (0, 1, 0, 1), "listed twice")],
)  # fmt: skip
def test_orders_and_labellings_that_are_none(order, labels, said):
    with pytest.raises(Rejected, match=said):
        RankedProof(two().network, 0, Limits(), ints(*order), ints(*labels))


def test_nothing_is_known_before_the_conclusion():
    proof = begun(two(), [(0, 0)])
    assert proof.ranks == ((), -math.inf)
    with pytest.raises(Rejected, match="no conclusion"):
        _ = proof.bound
    with pytest.raises(Rejected, match="after the conclusion"):
        stated(proof, 0.0, 1.0).step("part", [ints(0, 0), ints()])


def first_step(name, *arrays):
    RankedProof(two().network, 0, Limits(), ints(0, 1), ints(0, 0)).step(name, [*arrays])


@pytest.mark.parametrize(
    "record",
    [("part", ints(), ints()), ("part", ints(0, 0), ints()), ("dual", ints(3), ints(0, 1), ints()),
     ("hard",), ("ranks", floats(0.0, 1.0)), ("load", (1, 0, 5))],
)  # fmt: skip
def test_lam_comes_first(record):
    with pytest.raises(Rejected, match=f"{record[0]} out of its place"):
        first_step(*record)


def test_records_after_lam_have_their_places():
    dual = ("dual", [ints(), ints(), ints()])
    part = ("part", [ints(0, 0), ints(0)])
    for records, said in (
        ([dual], "dual out of its place"),
        ([("hard", [])], "hard out of its place"),
        ([part, dual], "dual out of its place"),
        ([part, ("piece", [])], "piece out of its place"),
        ([part, ("hard", []), ("hard", [])], "no model"),
        ([part, LOAD, ("hard", [])], "hard out of its place"),
        ([part, part], "without records"),
        ([part, ("ranks", [floats(0.0, 1.0)])], "without records"),
        ([("part", [ints(1, 0), ints()])], "no such part"),
        ([("part", [ints(-1, 0), ints()])], "no such part"),
        ([("part", [ints(0, 2), ints()])], "no such part"),
        ([("part", [ints(0, -1), ints()])], "no such part"),
        ([("part", [ints(0, 0), ints(-1, 1)])], "no such label"),
        ([("part", [ints(0, 0), ints(0, 2)])], "no such label"),
        ([("ranks", [floats(0.0)])], "one bound for each"),
        ([("ranks", [floats(0.0, 1.0, 1.0)])], "one bound for each"),
        ([("ranks", [floats(0.0, math.nan)])], "one bound for each"),
        ([("ranks", [floats(math.nan, 1.0)])], "one bound for each"),
    ):
        proof = begun(two(), [(0, 0)])
        for record in records[:-1]:
            proof.step(*record)
        with pytest.raises(Rejected, match=said):
            proof.step(*records[-1])


def test_hard_constraints_decide_whether_a_part_is_empty():
    """Labels 0 and 1 of the first variable; only the second makes the other variable fail."""
    table = np.array([[0.0, 0.0], [np.inf, np.inf]])
    model = softmap.Model([[3.0, 0.0], [0.0, 2.0]], [[0, 1]], table[None])
    for excluded, empty in ((0, True), (1, False)):
        rows = [(0, 0), (0, 1)] if empty else [(0, 0)]
        proof = begun(model, rows, lam=[0.0] * 4)
        proof.step("part", [ints(0, 0), ints(excluded)])
        proof.step("hard", [])
        proof.step(*LOAD)
        if empty:
            assert stated(proof, 3.0, 5.0, math.inf).ranks[1] == math.inf
        else:
            with pytest.raises(Rejected, match="rank 2"):
                stated(proof, 3.0, math.inf)


@pytest.mark.parametrize("lam", [[0.0] * 4, [0.0] * 6, [math.inf] + [0.0] * 4, [math.nan] * 5])
def test_lam_has_one_finite_number_per_half_edge(lam):
    model = softmap.Model([[0.0, 1.0], [0.0, 1.0, 2.0]], [[0, 1]], np.zeros((1, 2, 3)))
    with pytest.raises(Rejected, match="half-edge"):
        _RankedDual(model.network, ints(0, 1), np.array(lam))
    _RankedDual(model.network, ints(0, 1), np.zeros(5))


def test_labels_of_a_dual_are_allowed():
    model = alone([np.array([0.0, np.inf]), np.array([1.0, 3.0])])
    own = _RankedDual(model.network, ints(0, 1), np.zeros(0))
    assert own.bound(0, 0, frozenset()) == 1
    assert own.bound(0, 0, frozenset({0})) == math.inf
    with pytest.raises(Rejected, match="forbidden label"):
        own.cost(0, 1)


@pytest.mark.parametrize("seed", range(8))  # each of these models has a labelling
def test_reduced_costs_are_exact(seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    lam = rng.normal(size=int(model.network.half_offset[-1])) * 10.0 ** rng.uniform(-60, 0)
    lam *= 10.0 ** -rng.integers(0, 50, len(lam)).astype(float)
    allowed = softmap.verification.dual.allowed_states(model.network)
    exact = [
        Fraction(c) if ok else None for c, ok in zip(model.network.unary, allowed, strict=True)
    ]
    total = Fraction(model.constant)
    for h in range(2 * model.network.m):
        for x in range(int(model.network.num_labels[model.network.edges[h // 2][h % 2]])):
            at = model.network.node_offset[model.network.edges[h // 2][h % 2]] + x
            if exact[at] is not None:
                exact[at] -= Fraction(lam[model.network.half_offset[h] + x])
    for e, (i, j) in enumerate(model.network.edges):
        table, one, other = (
            model.network.table(e),
            model.network.half_offset[2 * e],
            model.network.half_offset[2 * e + 1],
        )
        total += min(
            Fraction(table[x, y]) + Fraction(lam[one + x]) + Fraction(lam[other + y])
            for x, y in np.ndindex(table.shape)
            if math.isfinite(table[x, y]) and allowed[model.network.node_offset[i] + x]
            and allowed[model.network.node_offset[j] + y]
        )  # fmt: skip
    ends = model.network.node_offset.tolist()
    least = [min(c for c in exact[a:b] if c is not None) for a, b in itertools.pairwise(ends)]
    for first in (0, model.network.num_visible, model.network.n):
        rest, costs = reduced_costs(model.network, lam, first)
        assert rest == total + sum(least[first:])
        found = [c for block in costs for c in block]
        for value, true in zip(found, exact, strict=False):
            assert value == true
    for value in (1e308, math.inf):
        with pytest.raises(OverflowError):
            reduced_costs(model.network, np.full(len(lam), value), model.network.n)


def test_a_variable_without_labels_has_no_bound():
    model = alone([np.full(2, math.inf), np.array([0.0, 1.0])])
    with pytest.raises(Rejected, match="a variable has no label"):
        _RankedDual(model.network, ints(0, 1), np.zeros(0))

"""Whole proofs of small models, written by hand: the order of records, their bound, and pieces."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import softmap
from softmap.errors import FormatError
from softmap.verification.integers import HALF
from softmap.verification.proof import Checked, check_proof
from softmap.verification.regions import tightened
from support.proof_files import packed, put_together, taken_apart, write_proof

MOST = HALF - 1


def bits(values) -> list[int]:
    return np.asarray(values, dtype=float).view(np.int64).tolist()


def pair(scale: float = 1.0, constant: float = 0.0) -> softmap.Model:
    """Two variables; the optimum is 4, and the relaxation proves it with λ."""
    unary = np.array([[0.0, 6.0], [8.0, 0.0]]) * scale
    table = np.array([[[2.0, 4.0], [4.0, 0.0]]]) * scale
    return softmap.Model(unary, [[0, 1]], table, constant=constant)


LOAD = ("LOAD", [[1, 0, MOST]])
PART = ("COMPONENT", [[0, 1], [0]])


def check(tmp_path, model, records, exponent: int = 0) -> Checked:
    write_proof(tmp_path / "x", model, packed(records), exponent)
    return check_proof(tmp_path / "x", model.network)


def rejected(tmp_path, model, records, words: str, exponent: int = 0) -> None:
    with pytest.raises(FormatError, match=words):
        check(tmp_path, model, records, exponent)


# --- one search -----------------------------------------------------------------------------------


def searched(cut: int = 4) -> list:
    """Branch on the first variable; the factor proves the rest."""
    return [
        LOAD, PART, ("CUT", [[cut]]), ("DIVE", [[0]]), ("BRANCH", [[0, 0, 0]]),
        ("STEP", [[3], [4], [1], [4], []]), ("CLOSE", []),
        ("STEP", [[], [], [0], [6], []]), ("CLOSE", []), ("END", []),
    ]  # fmt: skip


def test_a_search_proves_the_optimum(tmp_path):
    found = check(tmp_path, pair(), searched())
    assert found == Checked(Fraction(4), 2, 10)
    assert check(tmp_path, pair(constant=0.5), searched()).bound == Fraction(9, 2)
    assert check(tmp_path, pair(), searched()[:-1]).bound == 4  # the tree counts before its end
    assert check(tmp_path, pair(), [LOAD]).bound == 0


def test_the_solvers_scale_is_undone(tmp_path):
    """All costs were multiplied by 2**3 before the search: its units are 2**-3 of ours."""
    records = searched(4)
    records[0] = ("LOAD", [[1, 5, MOST]])
    assert check(tmp_path, pair(4.0), records, exponent=3).bound == 16
    records[0] = ("LOAD", [[1, -3, MOST]])
    assert check(tmp_path, pair(0.25), records, exponent=-1).bound == 1


def test_bounds_are_rounded_up_to_the_common_divisor(tmp_path):
    """All costs are even: no labelling costs 3."""
    assert check(tmp_path, pair(), searched(3)).bound == 4
    assert check(tmp_path, pair(), searched(4)).bound == 4
    odd = softmap.Model([[0.0, 6.0], [8.0, 1.0]], [[0, 1]], [[[2.0, 4.0], [4.0, 0.0]]])
    assert check(tmp_path, odd, searched(2)).bound == 3


def test_nothing_is_rounded_up_beyond_the_cut(tmp_path):
    load = ("LOAD", [[1, 0, 2]])  # labellings of 3 or more are not searched for
    records = [load, PART, ("CUT", [[3]]), ("DIVE", [[0]]), *searched()[4:]]
    assert check(tmp_path, pair(), records).bound == 3


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ([], "there are no records"),
        ([("REMOVE", [[0], []])], "there is no model"),
        ([("COMPONENT", [[0], []])], "there is no model"),
        ([("END", [])], "there is no model"),
        ([("CUT", [[3]])], "there is no model"),
        ([LOAD, LOAD], "out of its place"),
        ([LOAD, ("END", [])], "out of its place"),
        ([LOAD, ("CUT", [[3]])], "out of its place"),
        ([LOAD, PART, LOAD], "out of its place"),
        ([LOAD, PART, PART], "out of its place"),
        ([LOAD, PART, ("ELIMINATE", [[0]])], "out of its place"),
        ([LOAD, PART, ("REMOVE", [[0], []])], "out of its place"),
        ([LOAD, PART, ("DIVE", [[0]])], "before its last dive"),
        ([LOAD, PART, ("DIVE", [[0]]), ("END", [])], "before its last dive"),
        ([LOAD, ("PIECE", [[0], [], []])], "out of its place"),
        ([("PIECE", [[0], [], []])], "out of its place"),
        ([LOAD, ("DUAL", [[], [], bits([0.0] * 4)])], "out of its place"),
        ([("DUAL", [[], [], bits([0.0] * 4)])] * 2, "out of its place"),
        ([("DUAL", [[], [], bits([0.0] * 4)]), LOAD], "out of its place"),
        ([("DUAL", [[], [], bits([0.0] * 4)]), ("CLOSE", [])], "out of its place"),
    ],
)
def test_records_out_of_their_place(tmp_path, records, words):
    with pytest.raises(FormatError, match=words):
        check(tmp_path, pair(), records)


@pytest.mark.parametrize("exponent", [5001, -5001, "1", None, 1.0])
def test_exponents_that_are_none(tmp_path, exponent):
    with pytest.raises(FormatError, match="the exponent of the costs"):
        check(tmp_path, pair(), searched(), exponent)


@pytest.mark.parametrize("exponent", [5000, -5000])
def test_the_largest_exponents_are_read(tmp_path, exponent):
    records = [("LOAD", [[1, exponent, MOST]]), *searched()[1:]]
    assert check(tmp_path, pair(), records, exponent).bound == 4


def test_a_proof_proves_what_it_reaches():
    found = Checked(Fraction(4), 1, 1)
    assert found.proves(4.0)
    assert found.proves(-math.inf)
    assert not any(map(found.proves, (math.nextafter(4.0, 5.0), math.inf, math.nan)))


# --- λ --------------------------------------------------------------------------------------------

LAM = [0.0, -2.0, 2.0, -4.0]  # proves 4: labels 0 and 1 become free


def dual(lam, sizes=(), members=()) -> tuple:
    return ("DUAL", [list(sizes), list(members), bits(lam)])


def best_dual(model: softmap.Model, lam) -> Fraction:
    lam = [Fraction(x) for x in lam]
    total = Fraction(model.constant)
    for i in range(model.n):
        halves = [h for h in range(2 * model.m) if model.edges[h // 2][h % 2] == i]
        total += min(
            Fraction(c) - sum(lam[model.network.half_offset[h] + x] for h in halves)
            for x, c in enumerate(model.network.unary_of(i))
        )
    for e in range(model.m):
        table = model.network.table(e)
        total += min(
            Fraction(table[x, y]) + lam[model.network.half_offset[2 * e] + x]
            + lam[model.network.half_offset[2 * e + 1] + y]
            for x, y in np.ndindex(table.shape)
        )  # fmt: skip
    return total


@pytest.mark.parametrize("size", [1.0, 1e-300, 1e-30, 1e30, 1e300])
def test_the_bound_of_lam_is_exact(tmp_path, size):
    rng = np.random.default_rng(3)
    model, lam = pair(constant=0.25), rng.normal(size=4) * np.array([1.0, size, size, 1.0])
    assert check(tmp_path, model, [dual(lam)]).bound == best_dual(model, lam)


@pytest.mark.parametrize(
    "lam", [LAM[:3], [*LAM, 0.0], [*LAM[:3], math.inf], [math.nan] * 4, [*LAM[:3], -math.inf]]
)
def test_a_lam_that_is_none(tmp_path, lam):
    with pytest.raises(FormatError, match="λ does not have one finite number"):
        check(tmp_path, pair(), [dual(lam)])


TRIANGLE = softmap.Model(
    np.zeros((3, 2)), [[0, 1], [1, 2], [0, 2]], np.array([[[1.0, 0.0], [0.0, 1.0]]] * 3)
)


@pytest.mark.parametrize(
    ("sizes", "members"), [((3,), (0, 1)), ((0, 3), (0, 1, 2)), ((2,), (0, 1, 2)), ((-3,), ())]
)
def test_clusters_of_other_sizes(tmp_path, sizes, members):
    with pytest.raises(FormatError, match="do not match their members"):
        check(tmp_path, TRIANGLE, [dual([0.0] * 400, sizes, members)])


def test_a_cluster_proves_more_and_has_no_pieces(tmp_path):
    size = int(tightened(TRIANGLE.network, [(0, 1, 2)], 1 << 20).half_offset[-1])
    records = [dual([0.0] * size, (3,), (0, 1, 2))]
    assert check(tmp_path, TRIANGLE, records).bound <= 1
    inner = ("PIECE", [[0], [], bits([0.0, 0.0])])
    rejected(tmp_path, TRIANGLE, [*records, inner, LOAD], "without clusters and larger factors")


# --- λ and pieces ---------------------------------------------------------------------------------


def chain() -> softmap.Model:
    """The triangle, whose optimum is 1, with two more variables at each end."""
    unary = np.array([[0.0, 0.0]] * 3 + [[0.0, 3.0], [2.0, 0.0]])
    edges = [[0, 1], [1, 2], [0, 2], [2, 3], [3, 4]]
    tables = [[[1.0, 0.0], [0.0, 1.0]]] * 3 + [[[0.0, 1.0], [1.0, 0.0]]] * 2
    return softmap.Model(unary, edges, np.array(tables))


INNER = ([0, 1, 2], [0, 1, 2], bits(np.zeros(6)))


def triangle_search() -> list:
    """Two labels are equal on one of three edges: every labelling costs at least 1."""
    return [
        ("LOAD", [[1, 0, MOST]]), ("ELIMINATE", [[0]]), ("ELIMINATE", [[1]]), ("ELIMINATE", [[2]]),
    ]  # fmt: skip


def piece(nodes=INNER[0], edges=INNER[1], unary=INNER[2]) -> tuple:
    return ("PIECE", [list(nodes), list(edges), list(unary)])


def test_a_piece_adds_its_bound(tmp_path):
    lam = np.zeros(20)
    without = check(tmp_path, chain(), [dual(lam)])
    found = check(tmp_path, chain(), [dual(lam), piece(), *triangle_search()])
    assert found.bound == 1
    assert without.bound <= 0
    more = chain().replace(constant=0.5)
    assert check(tmp_path, more, [dual(lam), piece(), *triangle_search()]).bound == Fraction(3, 2)
    rejected(tmp_path, chain(), [dual(lam), piece()], "there is no model")


def test_nodes_and_edges_outside_of_a_piece_count(tmp_path):
    """The triangle costs 1, the two last variables -3 and 2, and the edges to them -4 and 0."""
    unary = np.array([[0.0, 0.0]] * 3 + [[-3.0, 0.0], [2.0, 5.0]])
    tables = [[[1.0, 0.0], [0.0, 1.0]]] * 3 + [[[-4.0, 1.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]]
    model = softmap.Model(unary, chain().edges, np.array(tables))
    found = check(tmp_path, model, [dual(np.zeros(20)), piece(), *triangle_search()])
    assert found.bound == 1 - 3 + 2 - 4


def test_two_pieces_add_their_bounds(tmp_path):
    """The last two variables: 0 and 1 cost 1, 0 and 0 cost 2, 1 and 1 cost 3."""
    last = ("PIECE", [[3, 4], [4], bits([0.0, 3.0, 2.0, 0.0])])
    search = [("LOAD", [[1, 0, MOST]]), ("ELIMINATE", [[0]]), ("ELIMINATE", [[1]])]
    both = [dual(np.zeros(20)), piece(), *triangle_search(), last, *search]
    assert check(tmp_path, chain(), both).bound == 2
    again = [*both, piece(), *triangle_search()]
    rejected(tmp_path, chain(), again, "names a node twice")


def test_lam_of_outer_edges_moves_costs_into_a_piece(tmp_path):
    """λ moves 1 from label 0 of the third variable to the edge, and 1 from the edge on."""
    lam = np.zeros(20)
    lam[12:16] = [1.0, 0.0, 0.0, 0.0]  # the half-edge of the third variable on the fourth edge
    low = bits([0.0, 0.0, 0.0, 0.0, -1.0, 0.0])
    found = check(tmp_path, chain(), [dual(lam), piece(unary=low), *triangle_search()])
    assert found.bound <= 1
    for costs in ([0.0] * 6, [0.0, 0.0, 0.0, 0.0, math.nextafter(-1.0, 0.0), 0.0]):
        records = [dual(lam), piece(unary=bits(costs)), *triangle_search()]
        rejected(tmp_path, chain(), records, "exceed those of the model")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"nodes": [0, 1, 1]}, "names a node twice"),
        ({"nodes": [0, 1, 5]}, "names a node twice"),
        ({"nodes": [0, 1, -1]}, "names a node twice"),
        ({"edges": [0, 1, 1]}, "names an edge twice"),
        ({"edges": [0, 1, 5]}, "names an edge twice"),
        ({"edges": [0, 1, -1]}, "names an edge twice"),
        ({"edges": [0, 1, 3]}, "endpoint outside"),
        ({"unary": bits([0.0] * 5)}, "one cost for each label"),
        ({"unary": bits([0.0] * 7)}, "one cost for each label"),
        ({"unary": bits([0.0] * 5 + [math.nan])}, "one cost for each label"),
        ({"unary": bits([0.0] * 5 + [-math.inf])}, "one cost for each label"),
        ({"unary": bits([0.0] * 5 + [1e-300])}, "exceed those of the model"),
        ({"unary": bits([0.0] * 5 + [math.inf])}, "exceed those of the model"),
    ],
)
def test_pieces_that_are_none(tmp_path, change, words):
    rejected(tmp_path, chain(), [dual(np.zeros(20)), piece(**change), *triangle_search()], words)


def test_a_whole_model_may_be_one_piece(tmp_path):
    whole = piece(range(5), range(5), bits(chain().unary))
    search = [("LOAD", [[1, 0, MOST]]), *(("ELIMINATE", [[v]]) for v in range(5))]
    best = min(float(chain().energy(np.array(x))) for x in np.ndindex(*[2] * 5))
    assert check(tmp_path, chain(), [dual(np.zeros(20)), whole, *search]).bound == Fraction(best)


def test_pieces_are_of_models_without_clusters_and_larger_factors(tmp_path):
    model = softmap.Model.from_factors([2, 2, 2], [((0, 1, 2), np.arange(8.0).reshape(2, 2, 2))])
    lam = np.zeros(int(model.network.half_offset[-1]))
    records = [dual(lam), ("PIECE", [[0], [], bits([0.0, 0.0])]), ("LOAD", [[1, 0, MOST]])]
    rejected(tmp_path, model, records, "without clusters and larger factors")


def test_forbidden_labels_of_a_piece(tmp_path):
    unary = np.array([[0.0, math.inf], [0.0, 0.0]])
    model = softmap.Model(unary, [[0, 1]], [[[1.0, 2.0], [0.0, 0.0]]])
    search = [("LOAD", [[1, 0, MOST]]), ("ELIMINATE", [[0]]), ("ELIMINATE", [[1]])]
    for costs, fine in (([0.0, math.inf, 0.0, 0.0], True), ([math.inf, 0.0, 0.0, 0.0], False)):
        records = [dual([0.0] * 4), ("PIECE", [[0, 1], [0], bits(costs)]), *search]
        if fine:
            assert check(tmp_path, model, records).bound == 1
        else:
            rejected(tmp_path, model, records, "exceed those of the model")
    # a forbidden label may have any cost in the piece: no labelling has it
    records = [dual([0.0] * 4), ("PIECE", [[0, 1], [0], bits([0.0, 50.0, 0.0, 0.0])]), *search]
    assert check(tmp_path, model, records).bound == 1


def test_a_header_of_another_model(tmp_path):
    write_proof(tmp_path / "x", pair(), packed(searched()))
    header, records = taken_apart(tmp_path / "x")
    put_together(tmp_path / "x", header | {"model": "0"}, packed(records))
    with pytest.raises(FormatError, match="another model"):
        check_proof(tmp_path / "x", pair().network)

"""Nodes of trees over permutations: against loops, and every condition on small models."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import softmap
from softmap.verification.limit import Limits
from softmap.verification.permutations import PermutationTree, _Node, _symmetries
from softmap.verification.records import Rejected


def swap(d: int) -> np.ndarray:
    """The permutation that exchanges the first two labels."""
    return np.array([[1, 0, *range(2, d)]])


def random_node(rng: np.random.Generator, m: int, d: int, maps: np.ndarray) -> _Node:
    """A node of small costs; the same labels and equal variables are apart."""
    unary, pair = rng.integers(0, 4, (m, d)), rng.integers(0, 3, (m, d, m, d))
    gone, apart = rng.random((m, d)) < 0.15, rng.random((m, d, m, d)) < 0.1
    apart |= (np.eye(m)[:, None, :, None] + np.eye(d)[None, :, None, :]).astype(bool)
    return _Node((), 2, (unary, pair), (gone, apart), maps)


def closed_under(gone: np.ndarray, maps: np.ndarray) -> np.ndarray:
    found = gone.copy()
    for _ in range(gone.size):
        for image, (i, p) in itertools.product(maps, np.ndindex(gone.shape)):
            found[i, p] |= found[i, image[p]]
    return found


def bound_by_loops(node: _Node, row, column, label, cut: int):
    """The bound, what is gone and apart, and whether the node is closed; None if rejected."""
    (m, d), gone, apart = node.unary.shape, node.gone, node.apart
    if m < d and (max(column.ravel(), default=0) > 0 or max(label) > 0):
        return None
    rest = {}
    for i, p, j, q in np.ndindex(m, d, m, d):
        paid = row[i, p, j] + column[i, p, q] + row[j, q, i] + column[j, q, p]
        rest[i, p, j, q] = node.pair[i, p, j, q] - paid
        if rest[i, p, j, q] < 0 and not (apart[i, p, j, q] or gone[i, p] or gone[j, q]):
            return None
    reduced = {
        (i, p): node.unary[i, p] - label[p] + sum(row[i, p, j] for j in range(m) if j != i)
        + sum(column[i, p, q] for q in range(d) if q != p)
        for i, p in np.ndindex(m, d) if not gone[i, p]
    }  # fmt: skip
    least = [min((c for (k, _), c in reduced.items() if k == i), default=None) for i in range(m)]
    if None in least:
        return cut, gone, apart, True
    found = 2 + sum(least) + sum(label)
    slack = {key: reduced[key] - least[key[0]] if key in reduced else 0 for key in np.ndindex(m, d)}
    less, away = gone.copy(), apart.copy()
    for key in np.ndindex(m, d):
        less[key] |= found + slack[key] >= cut
    for i, p, j, q in np.ndindex(m, d, m, d):
        away[i, p, j, q] |= found + rest[i, p, j, q] + slack[i, p] + slack[j, q] >= cut
    less = closed_under(less, node._maps)
    stuck = any(less[i].all() for i in range(m)) or (m == d and any(less.all(axis=0)))
    return found, less, away, bool(found >= cut or stuck)


@pytest.mark.parametrize("seed", range(60))
def test_the_bound_of_a_node_is_that_of_loops(seed):
    rng = np.random.default_rng(seed)
    m, d = [(2, 2), (2, 3), (3, 3), (1, 2), (0, 2)][seed % 5]
    maps = swap(d) if seed % 3 == 0 and d > 1 else np.zeros((0, d), int)
    node, high = random_node(rng, m, d, maps), 1 if rng.random() < 0.8 else 2
    row, column = rng.integers(-2, high, (m, d, m)), rng.integers(-2, min(high, 1), (m, d, d))
    label = rng.integers(-2, 1, d)
    if rng.random() < 0.2:
        (column if m and rng.random() < 0.5 else label).flat[int(rng.integers(d))] = 1
    cut = int(rng.integers(-8, 10)) if m else 2 + int(label.sum()) + int(rng.integers(-1, 2))
    wanted = bound_by_loops(node, row, column, label, cut)
    if wanted is None:
        with pytest.raises(Rejected):
            node.bound(row, column, label, cut)
        return
    assert node.bound(row, column, label, cut) == wanted[0]
    if not (wanted[3] and (wanted[1] == node.gone).all()):
        assert (node.gone == wanted[1]).all()
        assert (node.apart == wanted[2]).all()
    assert node.closed == wanted[3]


@pytest.mark.parametrize("seed", range(12))
def test_a_child_is_the_rest_of_its_parent(seed):
    rng = np.random.default_rng(seed)
    m, d = 3, 4
    maps = np.array([[1, 0, 2, 3], [0, 1, 3, 2], [2, 1, 0, 3]])
    node = random_node(rng, m, d, maps)
    i, p = int(rng.integers(m)), int(rng.integers(d))
    child = node.child(i, p)
    rows, cols = [k for k in range(m) if k != i], [q for q in range(d) if q != p]
    assert (child.path, child.variables, child.labels) == (((i, p),), rows, cols)
    assert child._base == 2 + node.unary[i, p]
    for (a, j), (b, q) in itertools.product(enumerate(rows), enumerate(cols)):
        assert child.unary[a, b] == node.unary[j, q] + node.pair[i, p, j, q]
        assert child.gone[a, b] == (node.gone[j, q] or node.apart[i, p, j, q])
        assert (child.pair[a, b] == node.pair[j, q][np.ix_(rows, cols)]).all()
        assert (child.apart[a, b] == node.apart[j, q][np.ix_(rows, cols)]).all()
    kept = [[cols.index(image[q]) for q in cols] for image in maps if image[p] == p]
    assert child._maps.tolist() == kept
    below = child.child(rows[0], cols[0])
    assert below.path == ((i, p), (rows[0], cols[0]))
    assert (below.variables, below.labels) == (rows[1:], cols[1:])


def test_what_is_excluded_is_excluded_with_its_images():
    zeros = np.zeros((2, 3), int), np.zeros((2, 3, 2, 3), int)
    no = np.zeros((2, 3), bool), np.zeros((2, 3, 2, 3), bool)
    node = _Node((), 0, zeros, no, swap(3))
    node.exclude(0, 1)
    assert node.gone.tolist() == [[True, True, False], [False] * 3]
    assert not node.closed
    node.exclude(0, 2)
    assert node.closed
    node.gone[:] = False
    node.close(False)
    assert node.closed


# --- symmetries -----------------------------------------------------------------------------------


def same_costs() -> list[np.ndarray]:
    """Costs that do not change when the first two labels of three are exchanged."""
    unary, pair = np.array([[1, 1, 5], [2, 2, 7]]), np.zeros((2, 3, 2, 3), int)
    pair[0, :, 1] = pair[1, :, 0] = [[9, 1, 2], [1, 9, 2], [3, 3, 9]]
    apart = np.broadcast_to(np.eye(3, dtype=bool)[None, :, None], (2, 3, 2, 3)).copy()
    return [unary, pair, np.zeros((2, 3), bool), apart]


@pytest.mark.parametrize(
    ("which", "at", "value", "kept"),
    [
        (0, (0, 1), 4, False), (0, (1, 0), 4, False), (0, (1, 2), 4, True),
        (1, (0, 0, 1, 1), 4, False), (1, (0, 2, 1, 0), 4, False), (1, (0, 2, 1, 2), 4, True),
        (1, (0, 0, 1, 0), 4, True),  # it is apart
        (2, (0, 0), True, False), (2, (0, 2), True, True), (3, (0, 0, 1, 1), True, False),
        (3, (0, 2, 1, 0), True, False),
    ],
)  # fmt: skip
def test_symmetries_leave_every_cost_unchanged(which, at, value, kept):
    image, arrays = swap(3).ravel(), same_costs()
    assert _symmetries(image, *arrays).tolist() == swap(3).tolist()
    arrays[which][at] = value
    if kept:
        assert len(_symmetries(image, *arrays)) == 1
        return
    for images in (image, np.array([0, 1, 2, *image])):
        with pytest.raises(Rejected, match="changes a cost"):
            _symmetries(images, *arrays)


def test_costs_of_excluded_labels_may_differ_and_images_are_whole():
    arrays = same_costs()
    arrays[2][0, :2] = True
    arrays[0][0, 0] = 8
    assert len(_symmetries(swap(3).ravel(), *arrays)) == 1
    arrays[0][1, 0] = 8
    with pytest.raises(Rejected, match="changes a cost"):
        _symmetries(swap(3).ravel(), *arrays)
    assert len(_symmetries(np.zeros(0, int), *same_costs())) == 0
    for flat, said in (([1, 0], "one image"), ([1, 0, 2, 0], "one image"), ([0, 0, 2], "no perm")):
        with pytest.raises(Rejected, match=said):
            _symmetries(np.array(flat), *same_costs())


# --- trees ----------------------------------------------------------------------------------------


def permuted(**options) -> softmap.Model:
    """Two variables and labels that differ; the optimum is 3, and one half besides."""
    table = np.array([[np.inf, 1.0], [0.0, np.inf]])
    return softmap.Model([[0.0, 4.0], [1.0, 2.0]], [[0, 1]], table[None], constant=0.5, **options)


def arrays(m: int, d: int) -> list[np.ndarray]:
    return [np.zeros(k, int) for k in (m * d * m, m * d * d, d)]


def tree(cut: int) -> PermutationTree:
    return PermutationTree(permuted().network, Limits(), np.array([2, 2, 0, cut]))


def test_only_the_root_bounds_all_labellings():
    own = tree(100)
    assert own.bound() < -(1 << 40)
    own.add(np.array([0, 1]), *arrays(1, 1))
    assert own.bound() < -(1 << 40)
    own.add(np.array([], int), *arrays(2, 2))
    assert own.bound() == Fraction(3, 2)
    own.add(np.array([0, 0]), *arrays(1, 1))
    assert own.bound() == Fraction(3, 2)


def test_the_bound_of_many_variables_does_not_overflow():
    n, least = 33, -(1 << 52)
    table = np.where(np.eye(n, dtype=bool), np.inf, 0.0)
    pairs, shared = [*itertools.combinations(range(n), 2)], softmap.SharedTables(table[None], 0)
    own = PermutationTree(
        softmap.Model(np.zeros((n, n)), pairs, shared).network, Limits(), np.array([n, n, 0, 10])
    )
    row, column, label = arrays(n, n)
    with pytest.raises(OverflowError):  # the bound, modulo 2^64, is positive
        own.add(np.array([], int), row + least, column + least, label)
    assert own.bound() <= 0


def test_closed_children_prove_the_cut():
    own = tree(3)
    own.add(np.array([], int), *arrays(2, 2))
    own.add(np.array([0, 1]), *arrays(1, 1))  # 4 + 1 + 0
    own.add(np.array([0, 0]), *arrays(1, 1))  # 0 + 2 + 1
    assert own.bound() == Fraction(7, 2)
    own.add(np.array([0, 0]), *arrays(1, 1))  # nothing is open any more
    assert own.bound() == Fraction(7, 2)


@pytest.mark.parametrize("path", [[0, 2], [2, 0], [-1, 0], [0, -1], [0, 0, 0, 1], [0, 0, 1, 0]])
def test_variables_and_labels_are_fixed_once(path):
    own = tree(100)
    own.add(np.array([], int), *arrays(2, 2))
    own.add(np.array([0, 0]), *arrays(1, 1))
    with pytest.raises(Rejected, match="fixed twice"):
        own.add(np.array(path), *arrays(1, 1))

"""Graph matching (`.dd`): assignments of left to right nodes, costs of pairs of assignments."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from softmap import arguments
from softmap.arguments import flag
from softmap.errors import FormatError
from softmap.io.limits import LIMITS
from softmap.io.streams import Content
from softmap.io.tokens import gather, parse_decimals, quote
from softmap.model import Model
from softmap.model.factors import Assembly
from softmap.model.many import AtMostOne
from softmap.model.model import assembled
from softmap.model.potentials.base import Costs, Ints

_BLOCK = re.compile(rb"(?m)^[ \t]*gm[ \t]+(\d+)[ \t]+(\d+)[ \t\r]*$")
_WIDTH = {b"p": 4, b"a": 4, b"e": 3}
_IGNORED = (b"c", b"i", b"n", b"#")  # comments, coordinates and neighbourhoods


def parse_dd(content: Content, *, block: int | None = None, one_to_one: bool = False) -> Model:
    """Return the model of a graph matching file.

    There is one variable per left node. Its labels are its assignments in the order of the file,
    then "unassigned", at cost 0. No right node may be used twice.

    Parameters
    ----------
    content : Content
    block : int, optional
        The problem to read, from 0, in a file of several graphs (it has one per pair of graphs).
    one_to_one : bool, default False
        Add an `AtMostOne` for each right node to the forbidden pairs: the energies are the same,
        the bound is tighter. Its chain variables come after the left nodes.
    """
    block = None if block is None else arguments.count("block", block)
    text, line = _select(content, block)
    rows = _rows(text, line, content)
    n_left, n_right, n_assign, n_pairs = _header(rows, content)
    left, right, costs = _assignments(rows[b"a"], n_left, n_right, n_assign, content)
    pairs = _pairs(rows[b"e"], n_assign, n_pairs, content)
    return _assemble(n_left, (left, right, costs), pairs, content, flag("one_to_one", one_to_one))


def _select(content: Content, block: int | None) -> tuple[bytes, int]:
    """Return the text of one problem and its first line number."""
    heads = list(_BLOCK.finditer(content.data))
    if not heads:
        if block not in (None, 0):
            raise content.error(f"block {block}", "one problem only")
        return content.data, 1
    if block is None and len(heads) > 1:
        raise FormatError(
            f"expected one matching problem, found {len(heads)} (a file of several graphs); "
            f"choose one of them: block=0 to block={len(heads) - 1} (on the command line --block)",
            content.name,
            expected="one matching problem",
        )
    k = block or 0
    if not 0 <= k < len(heads):
        raise content.error(f"block 0 to {len(heads) - 1}, not {k}")
    end = heads[k + 1].start() if k + 1 < len(heads) else len(content.data)
    begin = heads[k].end()
    return content.data[begin:end], content.data.count(b"\n", 0, begin) + 1


def _rows(text: bytes, first: int, content: Content) -> dict[bytes, Costs]:
    """Return the numbers of the lines of each kind, one row per line."""
    lines: dict[bytes, list[bytes]] = {kind: [] for kind in _WIDTH}
    for number, line in enumerate(text.splitlines(), first):
        kind, _, rest = line.strip().partition(b" ")
        if kind in lines:
            lines[kind].append(rest)
        elif kind and kind[:1] not in _IGNORED:
            raise content.error("a line p, a, e or c", quote(kind), number)
    return {kind: _numbers(kind, part, text, first, content) for kind, part in lines.items()}


def _numbers(kind: bytes, lines: list[bytes], text: bytes, first: int, content: Content) -> Costs:
    width = _WIDTH[kind]
    values = parse_decimals(b"\n".join(lines))
    counts = {len(line.split()) for line in lines}
    if values is None or counts - {width} or np.isnan(values).any():
        for number, line in enumerate(text.splitlines(), first):
            head, _, rest = line.strip().partition(b" ")
            found = parse_decimals(rest) if head == kind else np.zeros(width)
            if found is None or len(found) != width or np.isnan(found).any():
                raise content.error(f"{width} numbers after {kind.decode()!r}", quote(rest), number)
    assert values is not None
    return values.reshape(-1, width)


def _header(rows: dict[bytes, Costs], content: Content) -> list[int]:
    head = rows[b"p"]
    if len(head) != 1:
        raise content.error("one line 'p left right assignments pairs'", len(head))
    if (head < 0).any() or (head > 2**31).any() or (head != np.floor(head)).any() or head[0, 0] < 1:
        raise FormatError("the line p: expected counts of nodes and pairs", content.name)
    return [int(x) for x in head[0]]


def _ids(column: Costs, count: int, what: str, content: Content) -> Ints:
    good = (column >= 0) & (column < count) & (column == np.floor(column))
    if not good.all():
        bad = column[np.argmin(good)]
        raise content.error(f"{what} 0 to {count - 1}", f"{bad:.17g}")
    return column.astype(np.int64)


def _assignments(
    rows: Costs, n_left: int, n_right: int, count: int, content: Content
) -> tuple[Ints, Ints, Costs]:
    if len(rows) != count:
        raise content.error(f"{count} assignments (lines a)", len(rows))
    order = _ids(rows[:, 0], count, "an assignment", content)
    if len(np.unique(order)) != count:
        raise content.error("every assignment once")
    rows = rows[np.argsort(order)]
    left = _ids(rows[:, 1], n_left, "a left node", content)
    right = _ids(rows[:, 2], n_right, "a right node", content)
    if len(np.unique(left * max(n_right, 1) + right)) != count:
        raise content.error("every pair of nodes at most once")
    content.check(rows[:, 3])
    return left, right, rows[:, 3]


def _pairs(rows: Costs, n_assign: int, count: int, content: Content) -> tuple[Ints, Ints, Costs]:
    if len(rows) != count:
        raise content.error(f"{count} pairs of assignments (lines e)", len(rows))
    first = _ids(rows[:, 0], n_assign, "an assignment", content)
    second = _ids(rows[:, 1], n_assign, "an assignment", content)
    content.check(rows[:, 2])
    return first, second, rows[:, 2]


def _assemble(
    n: int,
    assignments: tuple[Ints, Ints, Costs],
    pairs: tuple[Ints, Ints, Costs],
    content: Content,
    one_to_one: bool,
) -> Model:
    left, right, costs = assignments
    content.reserve(n + len(left))
    num_labels = np.bincount(left, minlength=n) + 1
    label = np.zeros(len(left), dtype=np.int64)
    order = np.argsort(left, kind="stable")
    label[order] = np.arange(len(left)) - (np.cumsum(num_labels - 1) - num_labels + 1)[left[order]]
    assembly = Assembly(num_labels)
    unary = np.zeros(int(num_labels.sum()))
    np.add.at(unary, (np.cumsum(num_labels) - num_labels)[left] + label, costs)
    assembly.add_flat_unary(unary)
    users = _users(right, content)
    edges = _edges(n, left, users, pairs)
    sizes = num_labels[edges].astype(np.float64).prod(axis=1)
    content.reserve(int(sizes.sum()) + len(edges) * LIMITS.matching_edge)
    for which, tables in _tables(edges, num_labels, (left, label), users, pairs):
        assembly.add_tables(edges[which], tables)
    if one_to_one:
        content.reserve(LIMITS.matching_edge * 4 * int(num_labels.sum()))
        for node in np.unique(right).tolist():
            own = np.flatnonzero(right == node)
            if len(own) > 2:
                assembly.add_many(AtMostOne(left[own], label[own]))
    return assembled(assembly.pieces())


def _users(right: Ints, content: Content) -> tuple[Ints, Ints]:
    """Return all pairs of assignments that use the same right node."""
    order = np.argsort(right, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(right[order])) + 1)
    content.reserve(sum(len(g) ** 2 for g in groups) // 2 * LIMITS.matching_edge)
    which: dict[int, tuple[Ints, Ints]] = {k: np.triu_indices(k, 1) for k in {*map(len, groups)}}
    pairs = [(g[which[len(g)][0]], g[which[len(g)][1]]) for g in groups]
    one, other = (np.concatenate([pair[a] for pair in pairs]) for a in (0, 1))
    return one, other


def _edges(n: int, left: Ints, users: tuple[Ints, Ints], pairs: tuple[Ints, Ints, Costs]) -> Ints:
    """Return the pairs of left nodes that share a right node or have a cost."""
    ends = [(left[pairs[0]], left[pairs[1]]), (left[users[0]], left[users[1]])]
    keys = [np.minimum(i, j) * n + np.maximum(i, j) for i, j in ends]
    joined = np.unique(np.concatenate(keys))
    both = np.column_stack([joined // n, joined % n])
    # A left node has one assignment: costs of two assignments of one node have no effect.
    return both[both[:, 0] != both[:, 1]]


def _tables(
    edges: Ints,
    num_labels: Ints,
    nodes: tuple[Ints, Ints],
    users: tuple[Ints, Ints],
    pairs: tuple[Ints, Ints, Costs],
) -> Iterator[tuple[Ints, Costs]]:
    """Yield edges whose tables have the same shape, with the tables.

    They hold the costs of pairs of assignments; +inf if both use the same right node.
    """
    left, label = nodes
    n, shapes = len(num_labels), num_labels[edges]
    sizes = shapes.prod(axis=1)
    start = np.cumsum(sizes) - sizes
    keys = edges[:, 0] * n + edges[:, 1]

    def places(first: Ints, second: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        swap = left[first] > left[second]
        one, two = np.where(swap, second, first), np.where(swap, first, second)
        apart = left[one] != left[two]
        one, two = one[apart], two[apart]
        edge = np.searchsorted(keys, left[one] * n + left[two])
        return start[edge] + label[one] * shapes[edge, 1] + label[two], apart

    where, apart = places(pairs[0], pairs[1])
    costs = np.bincount(where, pairs[2][apart], int(sizes.sum())).astype(np.float64, copy=False)
    costs[places(*users)[0]] = np.inf
    for shape in np.unique(shapes, axis=0):
        which = np.flatnonzero((shapes == shape).all(axis=1))
        rows = gather(costs, start[which], int(shape.prod()))
        yield which, rows.reshape(len(which), *shape.tolist())

"""Half-edge incidence, colouring, components and levels against plain Python."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmap.generators import grid_edges
from softmap.model.graph import Graph, grid_width, spanning_forest


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 12))
    pair = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] != p[1])
    pairs = draw(st.lists(pair, max_size=25)) if n > 1 else []
    return n, np.array(pairs, dtype=np.int32).reshape(-1, 2)


@given(graphs())
def test_rows_hold_the_half_edges_of_each_node_in_order(case):
    n, edges = case
    graph = Graph.from_edges(edges, n)
    ends = edges.reshape(-1).tolist()
    for i in range(n):
        mine = graph.half[graph.start[i] : graph.start[i + 1]].tolist()
        assert mine == [h for h in range(len(ends)) if ends[h] == i]
        assert graph.degree[i] == len(mine)
    assert graph.node.tolist() == ends


def test_ends_that_are_no_nodes_are_refused():
    with pytest.raises(ValueError, match="half-edge 1 is out of range"):
        Graph.from_edges(np.array([[0, 3]], dtype=np.int32), 3)


def test_the_arrays_are_read_only_and_typed():
    graph = Graph.from_edges(np.array([[0, 1], [1, 2]], dtype=np.int32), 4)
    assert (graph.node.dtype, graph.start.dtype, graph.half.dtype) == (np.int32, "i8", np.int32)
    for array in (graph.start, graph.half):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@given(graphs())
def test_colouring_is_first_fit_and_valid(case):
    n, edges = case
    colour = Graph.from_edges(edges, n).colouring()
    assert len(colour) == n
    assert (colour[edges[:, 0]] != colour[edges[:, 1]]).all()
    for i in range(n):
        near = {int(b if a == i else a) for a, b in edges if i in (a, b)}
        taken = {int(colour[j]) for j in near if j < i}
        assert colour[i] == min(set(range(n + 1)) - taken)


def test_colouring_of_a_million_edges():
    rows = cols = 708
    edges = grid_edges(rows, cols)
    assert len(edges) > 10**6
    colour = Graph.from_edges(edges.astype(np.int32), rows * cols).colouring()
    y, x = np.divmod(np.arange(rows * cols), cols)
    np.testing.assert_array_equal(colour, (x + y) % 2)


@given(graphs())
def test_components_are_those_of_networkx(case):
    n, edges = case
    component = Graph.from_edges(edges, n).components()
    other = networkx.Graph(edges.tolist())
    other.add_nodes_from(range(n))
    for together in networkx.connected_components(other):
        assert len(set(component[list(together)].tolist())) == 1
    count = networkx.number_connected_components(other)
    assert list(dict.fromkeys(component.tolist())) == list(range(count))


def test_many_parallel_edges_do_not_cancel():
    graph = Graph.from_edges(np.array([[0, 1]] * 256, dtype=np.int32), 3)
    assert graph.components().tolist() == [0, 0, 1]
    assert graph.degree.tolist() == [256, 256, 0]
    assert graph.colouring().tolist() == [0, 1, 0]


@given(graphs(), st.randoms(use_true_random=False))
def test_levels_are_the_longest_paths_along_the_order(case, random):
    n, edges = case
    rank = np.arange(n)
    random.shuffle(rank)
    graph = Graph.from_edges(edges, n)
    level = graph.levels(rank)
    expected = [0] * n
    for i in np.argsort(rank):
        near = [int(b if a == i else a) for a, b in edges if i in (a, b)]
        expected[i] = max((expected[j] + 1 for j in near if rank[j] < rank[i]), default=0)
    assert level.tolist() == expected


@given(graphs(), st.randoms(use_true_random=False))
def test_a_spanning_forest_takes_the_first_of_equal_weights(case, random):
    """As Kruskal's algorithm does: by weight, then by number, whatever does not close a cycle."""
    n, edges = case
    pairs = np.unique(np.sort(edges, axis=1), axis=0).astype(np.int64)
    weight = np.array([random.choice([-1.0, 0.0, 2.0]) for _ in pairs])
    tree = list(range(n))
    expected = []
    for k in sorted(range(len(pairs)), key=lambda k: (weight[k], k)):
        i, j = (tree[node] for node in pairs[k])
        if i != j:
            expected.append(k)
            tree = [i if each == j else each for each in tree]
    assert spanning_forest(n, pairs, weight).tolist() == sorted(expected)


def width_plainly(edges):
    """The twin of `grid_width`."""
    steps = [abs(int(i) - int(j)) for i, j in edges]
    width = max(steps, default=0)
    joins = all(
        step == width or (step == 1 and min(i, j) % width != width - 1)
        for step, (i, j) in zip(steps, edges.tolist(), strict=True)
    )
    return width if width > 1 and joins else None


@given(graphs())
def test_edges_of_any_graph_are_those_of_a_grid_only_if_they_are(case):
    assert grid_width(case[1]) == width_plainly(case[1])


@given(st.integers(2, 5), st.integers(2, 5), st.data())
def test_a_grid_is_known_with_edges_missing_and_reversed_but_not_with_others(rows, cols, data):
    edges = grid_edges(rows, cols)
    turned = np.where(data.draw(st.lists(st.booleans(), min_size=len(edges), max_size=len(edges))))
    edges[turned] = edges[turned][:, ::-1]
    kept = np.append(data.draw(st.permutations(range(len(edges)))), np.arange(len(edges)))
    down = np.flatnonzero(np.abs(np.diff(edges, axis=1)) == cols)[:1]
    some = np.append(kept[: data.draw(st.integers(0, len(edges)))], down)
    assert grid_width(edges) == grid_width(edges[some]) == cols
    around = [cols - 1, cols]  # the end of a row, and the start of the next one
    assert grid_width(np.vstack([edges, [around]])) is None
    assert grid_width(np.vstack([edges, [[0, cols + 1]]])) is None

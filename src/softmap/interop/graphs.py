"""Conversions from and to networkx, sparse matrices of weights, plain arrays and data frames."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from softmap import Model, Potts, Tables
from softmap.errors import ModelError, OptionError, needs_extra, shown
from softmap.extend import Costs, Ints, Potential, checked_model, integers, numbers, per_edge
from softmap.extend.factors import require_pairwise


def to_arrays(model: Model) -> dict[str, Any]:
    """Return the arguments of `Model(...)` as a dict: unary, edges, pairwise, constant.

    `unary` and `pairwise` are numpy arrays if all shapes agree, else lists of arrays.

    Examples
    --------
    >>> import softmap
    >>> model = softmap.Model([[0, 1], [1, 0]], [[0, 1]], softmap.Potts(0.4))
    >>> softmap.interop.to_arrays(model)["pairwise"].tolist()
    [[[0.0, 0.4], [0.4, 0.0]]]
    """
    network = checked_model(model).network
    require_pairwise(network, "a dict of arrays", "; see to_pgmpy")
    unary = [network.unary_of(i).copy() for i in range(network.n)]
    tables = list(network.tables())
    return {
        "unary": np.array(unary) if len({len(u) for u in unary}) == 1 else unary,
        "edges": network.edges.astype(np.int64),
        "pairwise": np.array(tables) if len({t.shape for t in tables}) == 1 else tables,
        "constant": model.constant,
    }


def from_sparse(adjacency: Any, unary: ArrayLike) -> Model:
    """Return a Potts model with one edge per stored weight.

    Parameters
    ----------
    adjacency : scipy.sparse matrix or array
        Weights: a symmetric matrix (each pair counts once), or one triangle only.
    unary : float array (variables, labels), or list of arrays
        Costs of the labels of each variable.

    Examples
    --------
    >>> import scipy.sparse, softmap
    >>> weights = scipy.sparse.coo_array(([0.4], ([0], [1])), shape=(2, 2))
    >>> softmap.interop.from_sparse(weights, [[0, 1], [1, 0]])
    Model(2 variables, 2 labels, 1 edge, potts)
    """
    if not hasattr(adjacency, "tocoo"):
        raise ModelError(f"expected a scipy.sparse matrix of weights, not {shown(adjacency)}")
    matrix = adjacency.tocoo()
    matrix.sum_duplicates()
    rows, cols = matrix.coords if hasattr(matrix, "coords") else (matrix.row, matrix.col)
    weights = numbers(matrix.data, "weights")
    if matrix.shape[0] != matrix.shape[1]:
        raise ModelError(f"the matrix of weights must be square, not {matrix.shape}")
    if (rows == cols).any():
        i = int(rows[np.argmax(rows == cols)])
        raise ModelError(f"the matrix has a weight on its diagonal, at {i}")
    upper, lower = rows < cols, rows > cols
    if upper.any() and lower.any():
        if abs(matrix - matrix.T).max() != 0:
            raise ModelError("the matrix must be symmetric, or have one triangle only")
        rows, cols, weights = rows[upper], cols[upper], weights[upper]
    edges = np.column_stack([rows, cols]).astype(np.int64)
    return Model(unary, None, [(edges, Potts(weights))] if len(edges) else [])


def from_edge_index(edge_index: Any, unary: ArrayLike, weights: Any = 1.0) -> Model:
    """Return a Potts model of a graph of PyTorch Geometric.

    Parameters
    ----------
    edge_index : int tensor or array (2, edges)
        `data.edge_index`: each edge in both directions, or in one. Loops are left out; weights of
        repeated edges add up.
    unary : float array (variables, labels), or list of arrays
        Costs of the labels of each variable, such as the negative of a network's `log_softmax`.
    weights : float, or float array (edges,), default 1
        Potts weights, such as `data.edge_attr`.

    Examples
    --------
    >>> import softmap
    >>> edges = [[0, 1, 1, 2], [1, 0, 2, 1]]
    >>> softmap.interop.from_edge_index(edges, [[0, 1], [0, 0], [1, 0]])
    Model(3 variables, 2 labels, 2 edges, potts)
    """
    ends = integers(np.asarray(edge_index), "edge_index")
    if ends.ndim != 2 or len(ends) != 2:
        raise ModelError(f"edge_index must have two rows, not the shape {ends.shape}")
    given = numbers(np.asarray(weights, dtype=np.float64).reshape(-1), "weights")
    kept = ends[0] != ends[1]
    return _weighted(ends[:, kept], np.broadcast_to(given, kept.shape)[kept], unary)


def from_regions(regions: ArrayLike, unary: ArrayLike, weight: float = 1.0) -> Model:
    """Return a Potts model of the regions of an image, such as those of `skimage` and `OpenCV`.

    Two regions that touch are joined by an edge. Its weight is the length of their border, in pairs
    of neighbouring pixels, times `weight`.

    Parameters
    ----------
    regions : int array (rows, columns), or of more dimensions
        The number of each pixel's region: the result of `skimage.segmentation.slic` or `watershed`,
        `cv2.connectedComponents`, or a superpixel class's `getLabels()`.
    unary : float array (regions, labels), or list of arrays
        Costs of the labels of each region, in the order of the regions' numbers.
    weight : float, default 1
        Cost per pair of neighbouring pixels with different labels.

    Examples
    --------
    >>> import softmap
    >>> regions = [[0, 0, 1], [0, 2, 2]]
    >>> model = softmap.interop.from_regions(regions, [[0, 1], [1, 0], [0, 3]], 0.3)
    >>> softmap.solve(model).labels[regions].tolist()
    [[0, 0, 1], [0, 0, 0]]
    """
    given = integers(regions, "regions")
    _, place = np.unique(given, return_inverse=True)
    place = place.reshape(given.shape)
    ends = [
        np.stack([np.delete(place, -1, axis).ravel(), np.delete(place, 0, axis).ravel()])
        for axis in range(place.ndim)
    ]
    pairs = np.sort(np.concatenate([*ends, np.zeros((2, 0), np.int64)], axis=1), axis=0)
    pairs = pairs[:, pairs[0] != pairs[1]]
    return _weighted(pairs, np.full(pairs.shape[1], float(weight)), unary)


def _weighted(ends: Ints, weights: Costs, unary: ArrayLike) -> Model:
    import scipy.sparse

    n = len(unary)  # type: ignore[arg-type]
    if ends.size and not 0 <= ends.min() <= ends.max() < n:
        raise ModelError(f"there are costs for {n} variables, but an edge of {int(ends.max())}")
    return from_sparse(scipy.sparse.coo_array((weights, tuple(ends)), shape=(n, n)), unary)


def to_sparse(model: Model) -> Any:
    """Return the weights of a Potts model as a symmetric sparse array; parallel edges add up."""
    import scipy.sparse

    if not all(isinstance(p, Potts) for p in checked_model(model).potentials):
        raise ModelError("only models whose edges are all Potts have a matrix of weights")
    weights = [p.weights for p in model.potentials if isinstance(p, Potts)]
    data = np.concatenate(weights) if weights else np.zeros(0)
    i, j = model.edges.T
    both = np.concatenate([i, j]), np.concatenate([j, i])
    array = scipy.sparse.coo_array((np.tile(data, 2), both), shape=(model.n, model.n))
    return array.tocsr()


def trace_frame(run: Any) -> Any:
    """Return the trace of a result (or a trace) as a `pandas.DataFrame`, one row per check."""
    with needs_extra("the conversion to pandas", "interop"):
        import pandas
    trace: Any = getattr(run, "trace", run)
    if not callable(getattr(trace, "columns", None)):
        raise OptionError(f"expected a result or a trace, not {shown(run)}")
    return pandas.DataFrame(trace.columns())


def from_networkx(graph: Any, *, costs: str = "costs", weight: str = "weight") -> Model:
    """Convert a networkx graph.

    Parameters
    ----------
    graph : networkx graph
        Directed or not, with or without parallel edges.
    costs : str, default "costs"
        Attribute with the costs: a list for a node, a table for an edge. The rows of a table belong
        to the source in a directed graph, else to the endpoint that comes first among the graph's
        nodes.
    weight : str, default "weight"
        Attribute with the Potts weight of an edge without a table.

    Returns
    -------
    Model
        The model, with the names of the nodes (`Model.names`).
    """
    if not all(hasattr(graph, part) for part in ("nodes", "edges", "is_directed", "graph")):
        raise ModelError(f"expected a networkx graph, not {shown(graph)}")
    _require_names(costs=costs, weight=weight)
    names = tuple(graph.nodes)
    place = {name: i for i, name in enumerate(names)}
    unary = []
    for name, value in graph.nodes(data=costs):
        if value is None:
            raise ModelError(f"node {name!r} has no attribute {costs!r}")
        unary.append(np.atleast_1d(numbers(value, f"costs of node {shown(name)}")))
    tables: list[tuple[tuple[int, int], Costs]] = []
    weights: list[tuple[tuple[int, int], float]] = []
    for a, b, attributes in graph.edges(data=True):
        ends = place[a], place[b]
        pair = ends if graph.is_directed() or ends[0] < ends[1] else ends[::-1]
        if attributes.get(costs) is not None:
            tables.append((pair, numbers(attributes[costs], f"costs of edge {shown((a, b))}")))
        elif attributes.get(weight) is not None:
            name = f"the weight of edge {shown((a, b))}"
            weights.append((pair, float(per_edge(attributes[weight], name)[0])))
        else:
            raise ModelError(f"edge {a!r}, {b!r} has neither {costs!r} nor {weight!r}")
    groups: list[tuple[Any, Potential]] = []
    if tables:
        groups.append((np.array([p for p, _ in tables]), Tables([t for _, t in tables])))
    if weights:
        groups.append((np.array([p for p, _ in weights]), Potts([w for _, w in weights])))
    model = Model(unary, None, groups, constant=graph.graph.get("constant", 0.0))
    return model.with_names(names)


def _require_names(**given: Any) -> None:
    for name, value in given.items():
        if not isinstance(value, str):
            raise OptionError(f"{name} must be the name of an attribute, not {shown(value)}")


def to_networkx(model: Model, *, costs: str = "costs", weight: str = "weight") -> Any:
    """Return an undirected multigraph; `from_networkx` converts it back.

    Potts edges have their weight as an attribute, all other edges a table. The constant is an
    attribute of the graph.

    Parameters
    ----------
    model : Model
        A model without factors of three or more variables.
    costs : str, default "costs"
        Name of the attribute for the costs of nodes and the tables of edges.
    weight : str, default "weight"
        Name of the attribute for the weights of Potts edges.
    """
    with needs_extra("the conversion to networkx", "interop"):
        import networkx
    _require_names(costs=costs, weight=weight)
    network = checked_model(model).network
    require_pairwise(network, "a graph", "; see to_pgmpy")
    graph = networkx.MultiGraph(constant=network.constant)
    called = range(network.n) if network.names is None else network.names.variables
    for i, name in enumerate(called):
        graph.add_node(name, **{costs: network.unary_of(i)})
    for first, last, potential in network.groups():
        for e in range(first, last):
            i, j = network.edges[e].tolist()
            if isinstance(potential, Potts):
                weighted = {weight: float(potential.weights[e - first])}
                graph.add_edge(called[i], called[j], **weighted)
            else:
                table = network.table(e)
                graph.add_edge(called[i], called[j], **{costs: table if i < j else table.T})
    return graph

"""Partitions of the variables into parts of about equal size with few edges between parts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softmap.arguments import count
from softmap.errors import MissingExtra, OptionError, shown
from softmap.model import Network

Ints = NDArray[np.int64]
METHODS = ("auto", "grid", "metis", "own")


def partition(model: Network, parts: int, method: str = "auto") -> Ints:
    """Return the part of each variable, 0 to `parts - 1`; parts of close numbers are close.

    Parameters
    ----------
    model : Network
        The model.
    parts : int
        Number of parts.
    method : "auto", "grid", "metis" or "own"
        "grid": blocks of a grid whose shape is known. "metis": METIS (package pymetis). "own":
        recursive bisection along breadth-first orders, with moves across the boundaries. "auto":
        the first of these that is available.
    """
    parts = count("parts", parts, 1, model.n)
    if method not in METHODS:
        raise OptionError(f"partition={shown(method)}: expected one of {', '.join(METHODS)}")
    if method == "grid" and model.shape is None:
        raise OptionError("partition='grid': the shape of the grid is not known; see with_shape")
    if parts == 1:
        return np.zeros(model.n, dtype=np.int64)
    if method == "grid" or (method == "auto" and model.shape is not None):
        return blocks(tuple(model.shape or ()), parts)
    if method == "metis" or (method == "auto" and _metis() is not None):
        return _by_metis(model, parts)
    return halvings(model.edges, model.n, parts)


def blocks(shape: tuple[int, ...], parts: int) -> Ints:
    """Return blocks of a grid: the longest side is halved until there are `parts` blocks."""
    part = np.zeros(shape, dtype=np.int64)
    _halve_block(part, 0, parts)
    return part.reshape(-1)


def _halve_block(block: NDArray[np.int64], first: int, parts: int) -> None:
    if parts == 1:
        block[...] = first
        return
    axis = int(np.argmax(block.shape))
    left = parts // 2
    middle = max(1, round(block.shape[axis] * left / parts))
    lower, upper = np.split(block, [middle], axis=axis)
    _halve_block(lower, first, left)
    _halve_block(upper, first + left, parts - left)


def _metis() -> object | None:
    try:
        import pymetis
    except ImportError:
        return None
    module: object = pymetis
    return module


def _by_metis(model: Network, parts: int) -> Ints:
    module = _metis()
    if module is None:
        raise MissingExtra("partition='metis'", "metis")
    graph = model.graph
    neighbours = module.CSRAdjacency(  # type: ignore[attr-defined]
        adj_starts=graph.start, adjacent=graph.node[graph.half ^ 1]
    )
    # recursive bisection keeps parts of close numbers close
    _, found = module.part_graph(parts, neighbours, recursive=True)  # type: ignore[attr-defined]
    return _all_used(np.asarray(found, dtype=np.int64), parts)


def _all_used(part: Ints, parts: int) -> Ints:
    """Fill empty parts, which METIS leaves if there are few variables."""
    sizes = np.bincount(part, minlength=parts)
    for empty in np.flatnonzero(sizes == 0):
        donor = int(np.argmax(sizes))
        part[np.flatnonzero(part == donor)[-1]] = empty
        sizes[donor] -= 1
        sizes[empty] += 1
    return part


def halvings(edges: NDArray[np.integer], n: int, parts: int) -> Ints:
    """Recursive bisection along breadth-first orders, with moves across the boundaries."""
    from scipy.sparse import coo_array, csr_array

    ones = np.ones(len(edges))
    half = coo_array((ones, (edges[:, 0], edges[:, 1])), shape=(n, n))
    adjacency = csr_array(half + half.T)
    part = np.zeros(n, dtype=np.int64)
    _halve(adjacency, np.arange(n), part, 0, parts)
    return _all_used(_moved(adjacency, part, parts), parts)


def _halve(adjacency: object, nodes: Ints, part: Ints, first: int, parts: int) -> None:
    """Assign the nodes to parts first..first+parts-1."""
    if parts == 1:
        part[nodes] = first
        return
    inside = adjacency[nodes][:, nodes]  # type: ignore[index]
    left = parts // 2
    middle = max(left, round(len(nodes) * left / parts))
    sides = []
    for order in _orders(inside):
        side = np.ones(len(nodes), dtype=np.int64)
        side[order[:middle]] = 0
        sides.append(_moved(inside, side, 2, left / parts))
    side = min(sides, key=lambda each: _crossing(inside, each))
    _halve(adjacency, nodes[side == 0], part, first, left)
    _halve(adjacency, nodes[side == 1], part, first + left, parts - left)


def _orders(adjacency: object) -> list[Ints]:
    """Return a breadth-first order, good for grids, and a depth-first order, good for trees.

    Both start each component at its first node of smallest degree. The breadth-first order visits
    neighbours by degree, then by number, as Cuthill and McKee do. scipy breaks ties by an unstable
    sort, whose outcome depends on the CPU, so that ties are broken here.
    """
    from scipy.sparse import block_array, coo_array, csr_array
    from scipy.sparse.csgraph import breadth_first_order, connected_components, depth_first_order

    low = np.argsort(np.diff(adjacency.indptr), kind="stable")  # type: ignore[attr-defined]
    n, component = len(low), connected_components(adjacency, directed=False)[1]
    heads = low[np.unique(component[low], return_index=True)[1]]
    # an extra node connects all components, so that one traversal suffices
    links = coo_array((np.ones(len(heads)), (heads, np.zeros_like(heads))), shape=(n, 1))
    joined = csr_array(block_array([[adjacency, links], [links.T, None]]))
    deep = depth_first_order(joined, n, directed=False, return_predecessors=False)[1:]
    low = np.append(low, n)
    by_degree = csr_array(joined[low][:, low]).sorted_indices()
    wide = low[breadth_first_order(by_degree, n, directed=False, return_predecessors=False)[1:]]
    wide = wide[np.argsort(component[wide], kind="stable")]  # grouped by component
    return [wide, deep.astype(np.int64)]


def _moved(
    adjacency: object, part: Ints, parts: int, left: float | None = None, *, rounds: int = 12,
    slack: float = 1.05,
) -> Ints:  # fmt: skip
    """Move boundary variables to the part of most of their neighbours, within size limits.

    `rounds` is the largest number of rounds, and `slack` the largest size of a part relative to its
    target. In each round only half of the variables may move, so that neighbours rarely swap parts.
    The moves end after a round that does not reduce the cut.
    """
    from scipy.sparse import csr_array

    n = len(part)
    shares = np.full(parts, 1 / parts) if left is None else np.array([left, 1 - left])
    most = np.ceil(slack * shares * n)
    best, lowest = part, _crossing(adjacency, part)
    part = part.copy()
    for turn in range(rounds):
        member = csr_array((np.ones(n), (np.arange(n), part)), shape=(n, parts))
        near = np.asarray((adjacency @ member).todense())
        gain = near.max(axis=1) - near[np.arange(n), part]
        wanted = near.argmax(axis=1)
        may = (gain > 0) & ((np.arange(n) * 2654435761 >> 7) % 2 == turn % 2)
        _move(part, np.flatnonzero(may), wanted, gain, most)
        cut = _crossing(adjacency, part)
        if cut < lowest:
            best, lowest = part.copy(), cut
        elif turn % 2:
            break
    return best


def _move(
    part: Ints, nodes: Ints, wanted: Ints, gain: NDArray[np.float64], most: NDArray[np.float64]
) -> None:
    """Apply the moves of largest gain first, within the size limits of the parts."""
    sizes = np.bincount(part, minlength=len(most))
    for target in np.unique(wanted[nodes]):
        coming = nodes[wanted[nodes] == target]
        room = max(0, int(most[target]) - int(sizes[target]))
        chosen = coming[np.argsort(-gain[coming], kind="stable")[:room]]
        sizes -= np.bincount(part[chosen], minlength=len(most))
        sizes[target] += len(chosen)
        part[chosen] = target


def _crossing(adjacency: object, part: Ints) -> int:
    entries = adjacency.tocoo()  # type: ignore[attr-defined]
    return int((part[entries.row] != part[entries.col]).sum()) // 2

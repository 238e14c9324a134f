"""Conversions from and to networkx: graphs whose nodes and edges have costs."""

from __future__ import annotations

from typing import Any

import numpy as np

from softmap.errors import MissingExtra, ModelError, OptionError, shown
from softmap.io.named import Named
from softmap.model import Model, checked_model
from softmap.model.potentials import Potential, Potts, Tables
from softmap.model.potentials.base import Costs, numbers, per_edge

__all__ = ["from_networkx", "to_networkx"]


def from_networkx(graph: Any, *, costs: str = "costs", weight: str = "weight") -> Named:
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
    Named
        The model, with the names of the nodes.
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
    model = model.with_names(names)
    return Named(model, names, tuple(tuple(range(len(row))) for row in unary))


def _require_names(**given: Any) -> None:
    for name, value in given.items():
        if not isinstance(value, str):
            raise OptionError(f"{name} must be the name of an attribute, not {shown(value)}")


def to_networkx(model: Model, *, costs: str = "costs", weight: str = "weight") -> Any:
    """Return an undirected multigraph; `from_networkx` converts it back.

    Potts edges get the attribute `weight`, all others a table `costs`. The constant is an attribute
    of the graph.
    """
    try:
        import networkx
    except ImportError as error:
        raise MissingExtra("the conversion to networkx", "interop") from error
    _require_names(costs=costs, weight=weight)
    if checked_model(model).n != model.num_variables:
        raise ModelError("a graph holds factors of one and two variables only; see to_pgmpy")
    graph = networkx.MultiGraph(constant=model.constant)
    for i in range(model.n):
        graph.add_node(i, **{costs: model.unary_of(i)})
    for first, last, potential in model.groups():
        for e in range(first, last):
            i, j = model.edges[e].tolist()
            if isinstance(potential, Potts):
                graph.add_edge(i, j, **{weight: float(potential.weights[e - first])})
            else:
                table = model.table(e)
                graph.add_edge(i, j, **{costs: table if i < j else table.T})
    return graph

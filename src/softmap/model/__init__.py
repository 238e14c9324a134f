"""Models: the costs of variables and edges, the graph, and the families of potentials."""

from softmap.model.graph import Graph
from softmap.model.lowered_nodes import Auxiliaries
from softmap.model.many import (
    AllDifferent,
    AtMostOne,
    Cardinality,
    ExactlyOne,
    Linear,
    Max,
    Or,
    Parity,
)
from softmap.model.model import Model, checked_model, checked_network, has_fingerprint, raised
from softmap.model.network import Network
from softmap.model.potentials import (
    Potential,
    Potts,
    Projection,
    SharedTables,
    Tables,
    TruncatedLinear,
    TruncatedQuadratic,
)

__all__ = [
    "AllDifferent",
    "AtMostOne",
    "Auxiliaries",
    "Cardinality",
    "ExactlyOne",
    "Graph",
    "Linear",
    "Max",
    "Model",
    "Network",
    "Or",
    "Parity",
    "Potential",
    "Potts",
    "Projection",
    "SharedTables",
    "Tables",
    "TruncatedLinear",
    "TruncatedQuadratic",
    "checked_model",
    "checked_network",
    "has_fingerprint",
    "raised",
]

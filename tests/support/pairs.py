"""A model on which the numbers of updates that theorems ask for are affordable."""

from softmap.model import Model, checked_network
from softmap.relaxation import polytope
from softmap.relaxation.dual import SmoothedDual
from support.oracles import violation


def pair():
    """One edge, two labels, costs of ±1 in conflict: the only kind of model K is affordable on."""
    return Model([[1.0, -1.0], [-1.0, 0.5]], [[0, 1]], [[[-1.0, 1.0], [0.8, 1.0]]])


def projected(model, lam, eta):
    """The cost of the projected marginals of λ."""
    dual = SmoothedDual(model, eta)
    nodes = dual.node_marginals(lam)
    pairs = polytope.proj(checked_network(model), nodes, dual.edge_marginals(lam))
    assert violation(model, nodes, pairs).max < 1e-9
    return polytope.cost(checked_network(model), nodes, pairs)

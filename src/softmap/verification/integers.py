"""The costs of a model as integers, rounded down, as used in proof files.

A block of costs belongs to one variable or to one factor of two or more variables. Each block
becomes its minimum, in units, and the nonnegative differences of its entries from the minimum.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softmap.model import Network
from softmap.verification.dual import allowed_states, blocks
from softmap.verification.limit import Limits
from softmap.verification.records import Ints, Rejected

FORBIDDEN = 1 << 60  # stands for infinity: the entry is in no labelling below the cut

HALF = 1 << 59  # costs from here on count as forbidden

Floats = NDArray[np.float64]


class Flat(NamedTuple):
    """A model as unary costs of variables, and factors with scopes and tables."""

    unary: list[Floats]
    factors: list[tuple[tuple[int, ...], Floats]]
    constant: Fraction


class Given(NamedTuple):
    """What a class that checks records is made of.

    Attributes
    ----------
    model : Network
        The model that the proof refers to.
    exponent : int
        The solver multiplied all costs by 2**exponent.
    effort : Limits
        Limits the sizes of tables.
    hard : bool
        Whether the proof is about the hard constraints alone.
    """

    model: Network
    exponent: int
    effort: Limits
    hard: bool = False

    def flat(self) -> Flat:
        """Return the model, or its hard constraints, without auxiliary nodes."""
        flat = flat_model(self.model)
        return hard_constraints(flat) if self.hard else flat

    def about_costs(self, name: str) -> Given:
        """Return itself; raise `Rejected` if the proof is about the hard constraints alone."""
        if self.hard:
            raise Rejected(f"{name} out of its place")
        return self


def flat_model(model: Network) -> Flat:
    """Return the model without auxiliary nodes; products are rounded down to float64."""
    n, held, labels = model.num_variables, model.memberships, model.num_labels.tolist()
    costs = np.where(allowed_states(model), model.unary, np.inf)
    unary = np.split(costs, model.node_offset[1:-1])
    tables = lower_tables(model)
    inner = (model.edges < n).all(axis=1)
    if any(tables[e].min() < 0 for e in np.flatnonzero(~inner).tolist()):
        raise Rejected("a factor is tied to its variables by more than hard constraints")
    pairs = np.flatnonzero(inner).tolist()
    factors = [(tuple(model.edges[e].tolist()), tables[e]) for e in pairs]
    for a in range(len(held.arity)):
        own = slice(held.start[a], held.start[a + 1])
        scope = tuple(held.variable[own].tolist())
        rest = [math.prod(labels[i] for i in scope[k + 1 :]) for k in range(len(scope))]
        if rest != held.stride[own].tolist():
            raise Rejected("joint states of a factor are not in the order of a table")
        factors.append((scope, unary[n + a].reshape([labels[i] for i in scope])))
    return Flat(unary[:n], factors, Fraction(model.constant))


def hard_constraints(flat: Flat) -> Flat:
    """Return the model of the hard constraints alone: finite costs become 0."""
    unary = [_zeros(costs) for costs in flat.unary]
    return Flat(unary, [(scope, _zeros(table)) for scope, table in flat.factors], Fraction(0))


def _zeros(costs: Floats) -> Floats:
    return np.where(np.isfinite(costs), 0.0, np.inf)


def flat_piece(
    model: Network, nodes: Ints, edges: Ints, unary: list[Floats], tables: dict[int, Floats]
) -> Flat:
    """Return the submodel of some nodes with the given unary costs, and some edges' tables."""
    place = {i: k for k, i in enumerate(nodes.tolist())}
    factors = [(tuple(place[i] for i in model.edges[e].tolist()), tables[e]) for e in edges]
    return Flat(unary, factors, Fraction(0))


def lower_tables(model: Network) -> dict[int, Floats]:
    """The table of each edge, rounded down if it is a product of a weight and a table."""
    tables: dict[int, Floats] = {}
    for block in blocks(model):
        tables.update(zip(block.edges.tolist(), block.cost, strict=True))
    return tables


class Scale:
    """Costs in units of `granule · 2**exponent`, rounded down.

    Attributes
    ----------
    unit : Fraction
        The cost of one unit.
    base : int
        The sum of the minima of all blocks so far, in units.
    most : int
        Entries that exceed the minimum of their block by more than this are forbidden.
    common : int
        A common divisor of all costs so far; 1 if a cost was rounded.
    """

    def __init__(self, granule: int, exponent: int, most: int) -> None:
        if granule < 1 or not -5000 < exponent < 5000 or not 0 <= most < HALF:
            raise Rejected("the unit of the costs is not valid")
        self._granule, self._exponent, self.most = granule, exponent, most
        self.unit = Fraction(granule) * Fraction(2) ** exponent
        self.base, self.common = 0, 0

    def convert(self, costs: Floats) -> Ints:
        """Add the minimum to `base`; return the entries minus it, with large ones forbidden."""
        out = np.full(costs.shape, FORBIDDEN, np.int64)
        finite = np.isfinite(costs)
        if not finite.any():
            return out
        units = self._units(costs[finite])
        low = int(units.min())
        above = units - low
        near = above <= self.most
        self.base += low
        steps = int(np.gcd.reduce(above[near].astype(np.int64)))
        self.common = math.gcd(self.common, low, steps)
        out[finite] = np.where(near, above, FORBIDDEN).astype(np.int64)
        return out

    def _units(self, costs: Floats) -> NDArray[Any]:
        """Costs in units, rounded down: int64 if they fit, else Python integers."""
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.ldexp(costs, -self._exponent)
            exact = np.ldexp(scaled, self._exponent) == costs
        if exact.all() and np.abs(scaled).max() < 2.0**62:
            floor = np.floor(scaled)
            units = floor.astype(np.int64)
            if (floor != scaled).any() or (units % self._granule != 0).any():
                self.common = 1
            return units // self._granule
        parts = [Fraction(c) / self.unit for c in costs.tolist()]
        if any(part.denominator != 1 for part in parts):
            self.common = 1
        return np.array([math.floor(part) for part in parts], dtype=object)


def along(values: Ints, axis: int, axes: int) -> Ints:
    """Values along one axis, reshaped to broadcast against a table."""
    return values.reshape([-1 if k == axis else 1 for k in range(axes)])

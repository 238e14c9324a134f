"""A feasible point of the tightened polytope, in which the marginals of all regions agree.

After some passes, the marginals of regions over a shared pair or variable agree only nearly. First
pairs, then variables, take the mean of these marginals. Each region is then corrected by the
difference to the marginals of its members, which may make masses negative. Negative masses are cut
off, and both steps are repeated. The negative masses that remain are removed by mixing in the
product of node marginals, which is consistent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from softmap.model import Network
from softmap.model.inputs import places_in, within
from softmap.model.potentials import Projection
from softmap.model.potentials.base import Ints
from softmap.relaxation import polytope
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import Floats
from softmap.relaxation.gaps import scaled
from softmap.relaxation.polytope import ClusterBeliefs, couple
from softmap.subsolvers.clusters.regions import Tightened, build
from softmap.subsolvers.clusters.scopes import Scope

CORRECTIONS = 30  # most corrections of a point
ENOUGH = 1e-6  # weight of the product below which no further correction is made
EVEN = 0.3  # weight of the uniform distribution in the product that distributes corrections
FURTHER = 1.5  # over-relaxation: a negative mass -x is changed by 1.5 x
SAFE = 1e-12  # extra weight of the product, so that rounding errors leave no negative mass


@dataclass(frozen=True, eq=False)
class TightenedPoint:
    """A point of the relaxation tightened by clusters.

    Attributes
    ----------
    clusters : tuple of tuples of int
        The variables of each cluster.
    bound : float
        Lower bound on the optimum of this relaxation.
    primal : float
        Cost of the point, an upper bound on that optimum.
    node_marginals : float64 array
        Flat over `model.node_offset` of the model that was solved.
    """

    clusters: tuple[Scope, ...]
    bound: float
    primal: float
    node_marginals: Floats

    @property
    def gap(self) -> float:
        """The gap `primal - bound`, at least 0; 0 proves the point optimal for this relaxation."""
        return max(0.0, self.primal - self.bound)


def tightened_point(
    model: Network, clusters: tuple[Scope, ...], beliefs: ClusterBeliefs, labels: Ints | None
) -> tuple[float, Floats]:
    """Return cost and node marginals of a feasible point near the beliefs of the tightened model.

    A labelling is a point of every relaxation. It is returned instead if its cost is lower, or if
    hard constraints prevent the construction of another point.
    """
    found = scaled(model)
    base = tighten(found.model)
    tight = build(base, clusters)
    best, nodes = math.inf, np.zeros(base.unary.size)
    if labels is not None:
        best, nodes = float(base.energy(labels)), polytope.integral_nodes(base, labels)
    point = agreeing(tight, beliefs.nodes)
    if point is not None:
        coupling = np.ldexp(beliefs.coupling, found.exponent)
        eta = float(np.ldexp(beliefs.eta, -found.exponent))
        cost = couple(tight.model, point, coupling, eta).cost
        if cost < best:
            best, nodes = cost, point[: base.unary.size]
    return float(np.ldexp(best, -found.exponent)) + model.constant, nodes


def agreeing(tight: Tightened, beliefs: Floats) -> Floats | None:
    """Return node marginals of `tight.model` that agree along all coupling edges.

    The result is None if the model has forbidden states. `beliefs` are flat over its node states,
    non-negative, and sum to 1 in every node.
    """
    if not np.isfinite(tight.model.unary).all():
        return None  # the product would put mass on forbidden states
    links, labels = _Links(tight), tight.model.num_labels
    start, even = tight.model.node_offset[:-1], 1.0 / np.repeat(labels, labels)
    visible = int(tight.model.node_offset[tight.base.num_variables])
    nodes = beliefs
    for _ in range(CORRECTIONS):
        corrected = links.averaged(nodes)
        product = links.product((1 - EVEN) * corrected[:visible] + EVEN * even[:visible])
        links.correct(corrected, product)
        if links.needed(corrected, product).max() <= ENOUGH:
            break
        nodes = np.maximum(np.where(corrected < 0, (1 - FURTHER) * corrected, corrected), 0.0)
        nodes /= np.repeat(np.add.reduceat(nodes, start), labels)
    return links.mixed(corrected, product)


@dataclass(frozen=True, eq=False)
class _Incidence:
    """Links from regions to nodes they contain: for every region state, the state of that node.

    Attributes
    ----------
    upper, lower : int64[links]
        The region and the contained node of each link.
    states : int64[entries]
        States of the regions, flat over node states, concatenated over links.
    slots : int64[entries]
        For each of `states`, the index of its projection among the slots. The slots are the
        concatenated states of the lower nodes of all links.
    below, of_slot : int64[slots]
        Flat state of the lower node, and link, of each slot.
    """

    upper: Ints
    lower: Ints
    states: Ints
    slots: Ints
    below: Ints
    of_slot: Ints

    @classmethod
    def of(cls, tight: Tightened, upper: Ints, lower: Ints, label: Ints) -> _Incidence:
        """Make the links; `label` is the state of the lower node for every state of the upper."""
        offset, labels = tight.model.node_offset, tight.model.num_labels
        sizes, widths = labels[upper], labels[lower]
        first = np.cumsum(widths) - widths
        return cls(
            upper,
            lower,
            _runs(offset[upper], sizes),
            np.repeat(first, sizes) + label,
            _runs(offset[lower], widths),
            np.repeat(np.arange(len(lower)), widths),
        )

    def pushed(self, nodes: Floats) -> Floats:
        """Return the marginals of every upper node over the states of the lower one, by slot."""
        return _sums(self.slots, nodes[self.states], len(self.below))

    def missing(self, nodes: Floats) -> Floats:
        """Return the marginals of the lower nodes minus those of the upper ones, by slot."""
        return np.asarray(nodes[self.below] - self.pushed(nodes))


class _Links:
    """Links of regions to all their variables, and of clusters and factors to pair regions."""

    def __init__(self, tight: Tightened) -> None:
        self.tight, model, held = tight, tight.model, tight.model.memberships
        owner = held.node
        sizes = model.num_labels[owner]
        state = _runs(np.zeros(len(owner), dtype=np.int64), sizes)
        count = np.repeat(model.num_labels[held.variable], sizes)
        label = state // np.repeat(held.stride, sizes) % count
        self.members = _Incidence.of(tight, owner, held.variable, label)
        ties = np.flatnonzero(tight.lower >= tight.first_pair)
        upper, lower = tight.upper[ties], tight.lower[ties]
        maps: list[Ints] = []
        if len(ties):
            potential = model.potentials[-1]  # `build` puts all coupling edges in the last group
            assert isinstance(potential, Projection)
            maps = [potential.maps[k] for k in potential.index[ties].tolist()]
        flat = np.concatenate([np.zeros(0, dtype=np.int64), *maps])
        self.pairs = _Incidence.of(tight, upper, lower, flat)

    def averaged(self, beliefs: Floats) -> Floats:
        """Average the marginals of pairs over the regions that contain them, then of variables."""
        tight, nodes = self.tight, beliefs.copy()
        offset = tight.model.node_offset
        spans = ((tight.first_pair, tight.first_cluster), (0, tight.base.num_variables))
        for links, (low, high) in zip((self.pairs, self.members), spans, strict=True):
            said = _sums(links.below, links.pushed(nodes), len(nodes))
            voices = 1 + np.bincount(links.below, minlength=len(nodes))
            part = slice(offset[low], offset[high])
            nodes[part] = ((nodes + said) / voices)[part]
        return nodes

    def product(self, variables: Floats) -> Floats:
        """Return the product, in every region, of the marginals of its variables."""
        nodes = np.ones(self.tight.model.unary.size)
        nodes[: len(variables)] = variables
        members = self.members
        factor = variables[members.below][members.slots]
        np.multiply.at(nodes, members.states, factor)
        return nodes

    def correct(self, nodes: Floats, product: Floats) -> None:
        """Correct pairs, then larger regions, so that they agree with the nodes they contain.

        The missing marginal of each pair is added to the region, distributed over the other
        variables by the product. The missing marginal of a variable is thereby added once per pair
        that contains it; the surplus is subtracted.
        """
        tight, upper = self.tight, self.members.upper
        is_pair = (upper >= tight.first_pair) & (upper < tight.first_cluster)
        nodes += product * self._lacking(self.members, nodes, product, is_pair.astype(np.int64))
        weight = (1 - self._pairs_inside()) * ~is_pair
        change = self._lacking(self.members, nodes, product, weight)
        change += self._lacking(self.pairs, nodes, product, np.ones(len(self.pairs.upper)))
        nodes += product * change

    def _lacking(
        self, links: _Incidence, nodes: Floats, product: Floats, weight: Ints | Floats
    ) -> Floats:
        """Return the missing marginals of regions, relative to the product, as a weighted sum."""
        lacks = links.missing(nodes) / product[links.below] * weight[links.of_slot]
        return _sums(links.states, lacks[links.slots], len(nodes))

    def _pairs_inside(self) -> Ints:
        """Return, for every link to a variable, the number of linked pairs that contain it."""
        tight, members, pairs = self.tight, self.members, self.pairs
        n = np.int64(tight.base.num_variables)
        ends = tight.pairs[pairs.lower - tight.first_pair]
        codes = (pairs.upper[:, None] * n + ends).ravel()
        found, count = np.unique(codes, return_counts=True)
        at = places_in(found, members.upper * n + members.lower)
        return np.append(count, 0)[at]  # -1: none

    def needed(self, nodes: Floats, product: Floats) -> Floats:
        """Return the weight of the product that makes each mass non-negative."""
        short = np.minimum(nodes, 0.0)
        return np.asarray(short / (short - product))

    def mixed(self, nodes: Floats, product: Floats) -> Floats:
        """Mix in the product, in each connected component as much as makes all masses >= 0."""
        members, model = self.members, self.tight.model
        links = coo_array(
            (np.ones(len(members.upper)), (members.upper, members.lower)), shape=(model.n, model.n)
        )
        count, part = connected_components(links, directed=False)
        of_state, share = np.repeat(part, model.num_labels), np.zeros(count)
        np.maximum.at(share, of_state, self.needed(nodes, product))
        share = np.where(share > 0, np.minimum(1.0, share * (1 + SAFE) + SAFE), 0.0)[of_state]
        return np.maximum((1 - share) * nodes + share * product, 0.0)


def _sums(place: Ints, values: Floats, size: int) -> Floats:
    return np.bincount(place, values, minlength=size).astype(np.float64, copy=False)


def _runs(start: Ints, sizes: Ints) -> Ints:
    """Concatenate the ranges start[k], …, start[k] + sizes[k] - 1."""
    return np.repeat(start, sizes) + within(sizes)

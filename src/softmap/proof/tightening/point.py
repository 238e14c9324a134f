"""A point of the tightened polytope: regions agree wherever they are tied.

After some passes, what regions say about a pair or a variable agrees only nearly. Here pairs take
the mean of what is said about them, then variables. Each region is then corrected by what its
members miss, which may leave negative masses. Those are cut off, and the same is done again; what
is left in the end is made up by a share of a product of node marginals, in which everything agrees.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from softmap.model import Model
from softmap.model.potentials import Projection
from softmap.model.potentials.base import Ints
from softmap.proof.tightening.regions import Scope, Tightened, build
from softmap.relaxation import polytope
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import Floats
from softmap.relaxation.point import Beliefs, couple
from softmap.relaxation.scaling import scaled

__all__ = ["TightenedPoint", "agreeing", "tightened_point"]


@dataclass(frozen=True)
class Corrections:
    """How marginals of regions are made consistent.

    Attributes
    ----------
    rounds : int
        Corrections and cuts at most.
    further : float
        Cuts go beyond 0 by half of what is cut off.
    enough : float
        Share of the product that needs no further round.
    even : float
        Share of the even distribution in the product that corrections are spread by.
    safe : float
        By how much more than needed is mixed in: rounding shall leave nothing negative.
    """

    rounds: int = 30
    further: float = 1.5
    enough: float = 1e-6
    even: float = 0.3
    safe: float = 1e-12


CORRECTIONS = Corrections()


@dataclass(frozen=True, eq=False)
class TightenedPoint:
    """A point of the relaxation tightened by clusters.

    Attributes
    ----------
    clusters : the sets of variables that tighten it
    bound, primal : float
        Lower bound on the optimum of this relaxation, and the cost of the point, an upper one.
    node_marginals : flat over `model.node_offset`, of the model that was solved
    """

    clusters: tuple[Scope, ...]
    bound: float
    primal: float
    node_marginals: Floats

    @property
    def gap(self) -> float:
        """`primal - bound`, at least 0; 0 proves the point optimal for this relaxation."""
        return max(0.0, self.primal - self.bound)


def tightened_point(
    model: Model, clusters: tuple[Scope, ...], beliefs: Beliefs, labels: Ints | None
) -> tuple[float, Floats]:
    """Cost and node marginals of a point near beliefs of the tightened model.

    The labelling, if it is cheaper, or where hard constraints leave nothing else: a labelling is a
    point of every relaxation.
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
    """Node marginals of `tight.model` that agree along all ties; None next to hard constraints.

    `beliefs` are flat over its node states, not negative, and sum to 1 in every node.
    """
    if not np.isfinite(tight.model.unary).all():
        return None  # the product would put mass on forbidden states
    links, labels = _Links(tight), tight.model.num_labels
    start, even = tight.model.node_offset[:-1], 1.0 / np.repeat(labels, labels)
    visible = int(tight.model.node_offset[tight.base.num_variables])
    nodes = beliefs
    for _ in range(CORRECTIONS.rounds):
        corrected = links.averaged(nodes)
        product = links.product(
            (1 - CORRECTIONS.even) * corrected[:visible] + CORRECTIONS.even * even[:visible]
        )
        links.correct(corrected, product)
        if links.needed(corrected, product).max() <= CORRECTIONS.enough:
            break
        nodes = np.maximum(
            np.where(corrected < 0, (1 - CORRECTIONS.further) * corrected, corrected), 0.0
        )
        nodes /= np.repeat(np.add.reduceat(nodes, start), labels)
    return links.mixed(corrected, product)


@dataclass(frozen=True, eq=False)
class _Incidence:
    """Links from regions to nodes below: for every state of the region, the state of that node.

    Attributes
    ----------
    upper, lower : int64[links]
    states : int64[entries]
        States of the upper nodes, flat over node states, link after link.
    slots : int64[entries]
        Where each leads, in an array with the states of the lower node of every link.
    below, of_slot : int64[slots]
        Flat state of the lower node, and number of the link.
    """

    upper: Ints
    lower: Ints
    states: Ints
    slots: Ints
    below: Ints
    of_slot: Ints

    @classmethod
    def of(cls, tight: Tightened, upper: Ints, lower: Ints, label: Ints) -> _Incidence:
        """`label` is the state of the lower node for every state of the upper one."""
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
        """Marginals of every upper node over the states of the lower one, per slot."""
        return _sums(self.slots, nodes[self.states], len(self.below))

    def missing(self, nodes: Floats) -> Floats:
        """What they lack to be those of the lower node."""
        return np.asarray(nodes[self.below] - self.pushed(nodes))


class _Links:
    """Links of regions to all their variables, and of clusters and factors to pair regions."""

    def __init__(self, tight: Tightened) -> None:
        self.tight, model, aux = tight, tight.model, tight.model.auxiliaries
        n = tight.base.num_variables
        owner = n + np.repeat(np.arange(len(aux)), np.diff(aux.start))
        sizes = model.num_labels[owner]
        state = _runs(np.zeros(len(owner), dtype=np.int64), sizes)
        count = np.repeat(model.num_labels[aux.member], sizes)
        label = state // np.repeat(aux.stride, sizes) % count
        self.members = _Incidence.of(tight, owner, aux.member, label)
        ties = np.flatnonzero(tight.lower >= tight.first_pair)
        upper, lower = tight.upper[ties], tight.lower[ties]
        maps: list[Ints] = []
        if len(ties):
            potential = model.potentials[-1]  # all ties of `build` are one group, the last
            assert isinstance(potential, Projection)
            maps = [potential.maps[k] for k in potential.index[ties].tolist()]
        flat = np.concatenate([np.zeros(0, dtype=np.int64), *maps])
        self.pairs = _Incidence.of(tight, upper, lower, flat)

    def averaged(self, beliefs: Floats) -> Floats:
        """Means for pairs of what regions and they themselves say, then for variables."""
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
        """In every region, the product of these marginals of its variables."""
        nodes = np.ones(self.tight.model.unary.size)
        nodes[: len(variables)] = variables
        members = self.members
        factor = variables[members.below][members.slots]
        np.multiply.at(nodes, members.states, factor)
        return nodes

    def correct(self, nodes: Floats, product: Floats) -> None:
        """Change pairs, then other regions, so that they agree with what lies below.

        A region gets what it misses of each pair, spread over the other variables by the product;
        what it misses of a variable is then counted once per pair that has it, and taken back but
        for once.
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
        """What regions miss along links, in units of the product, summed with these weights."""
        lacks = links.missing(nodes) / product[links.below] * weight[links.of_slot]
        return _sums(links.states, lacks[links.slots], len(nodes))

    def _pairs_inside(self) -> Ints:
        """For every link to a variable: how many pairs that the region is linked to have it."""
        tight, members, pairs = self.tight, self.members, self.pairs
        n = np.int64(tight.base.num_variables)
        ends = tight.pairs[pairs.lower - tight.first_pair]
        codes = (pairs.upper[:, None] * n + ends).ravel()
        found, count = np.unique(codes, return_counts=True)
        wanted = members.upper * n + members.lower
        if not len(found):
            return np.zeros(len(wanted), dtype=np.int64)
        at = np.minimum(np.searchsorted(found, wanted), len(found) - 1)
        return np.where(found[at] == wanted, count[at], 0)

    def needed(self, nodes: Floats, product: Floats) -> Floats:
        """The share of the product that each mass needs in order not to be negative."""
        short = np.minimum(nodes, 0.0)
        return np.asarray(short / (short - product))

    def mixed(self, nodes: Floats, product: Floats) -> Floats:
        """With as much of the product in each part of the model as makes all masses >= 0."""
        members, model = self.members, self.tight.model
        links = coo_array(
            (np.ones(len(members.upper)), (members.upper, members.lower)), shape=(model.n, model.n)
        )
        count, part = connected_components(links, directed=False)
        of_state, share = np.repeat(part, model.num_labels), np.zeros(count)
        np.maximum.at(share, of_state, self.needed(nodes, product))
        share = np.where(
            share > 0, np.minimum(1.0, share * (1 + CORRECTIONS.safe) + CORRECTIONS.safe), 0.0
        )[of_state]
        return np.maximum((1 - share) * nodes + share * product, 0.0)


def _sums(place: Ints, values: Floats, size: int) -> Floats:
    return np.bincount(place, values, minlength=size).astype(np.float64, copy=False)


def _runs(start: Ints, sizes: Ints) -> Ints:
    """start[0], start[0] + 1, … for sizes[0] numbers, then the same for the next."""
    first = np.cumsum(sizes) - sizes
    return np.repeat(start - first, sizes) + np.arange(int(sizes.sum()))

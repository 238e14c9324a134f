"""The local polytope and the slack polytope: membership, `Proj` (Algorithm 4), edge transport.

`couple` computes a point of the local polytope from node marginals, with its cost.

Node arrays are flat over `model.node_offset`, edge arrays over `model.edge_offset` (row-major),
slack over `model.half_offset`. Node marginals are normalised. Constraints hold to within a mass of
1e-9 (guaranteed); errors of about 1e-15 are typical.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap import core
from softmap.errors import ModelError, OptionError
from softmap.later import later, made
from softmap.model import Network
from softmap.model.inputs import within
from softmap.model.layout import layout
from softmap.model.potentials import Potts, TruncatedLinear
from softmap.model.potentials.base import numbers
from softmap.model.sums import careful_sums
from softmap.relaxation.dual import EdgeBatch, Floats, edge_batches, edge_entries
from softmap.relaxation.transport import MASS, cheapest_coupling, nearest_coupling


def lift(model: Network, node_mu: ArrayLike) -> Floats:
    """Return node marginals in which every auxiliary node agrees with its members.

    A projection edge admits one coupling only, so the marginal of an auxiliary node must have the
    members' marginals. They are reached by Algorithm 2 of Altschuler et al. with one axis per
    member instead of two: scale down along each axis, then add the product of the missing masses.
    """
    nodes = np.array(node_mu, dtype=np.float64)
    if nodes.shape != model.unary.shape:
        raise OptionError(f"node marginals must be {model.unary.size} numbers, not {nodes.shape}")
    ties = _ties(model)
    joint, rest = nodes.copy(), np.ones_like(nodes)
    for tie in ties:
        have = tie.marginals(joint)
        want = nodes[tie.members]
        scale = np.divide(want, have, out=np.ones_like(have), where=have > want)
        joint[tie.states] *= scale[tie.key]
    for tie in ties:
        missing = np.maximum(nodes[tie.members] - tie.marginals(joint), 0.0)
        total = np.add.reduceat(missing, tie.start)
        share = missing / np.repeat(np.where(total > 0, total, 1.0), tie.counts)
        # The first axis has the total missing mass; the other axes are normalised.
        rest[tie.states] *= (missing if tie.first else share)[tie.key]
    if ties:
        begin = int(model.node_offset[model.num_variables])
        nodes[begin:] = joint[begin:] + rest[begin:]
        nodes[np.isposinf(model.unary) & (nodes <= MASS.speck)] = 0.0
    return nodes


@dataclass(frozen=True)
class _Tie:
    """Member t (counted from 0) of every auxiliary node that has one, as flat index arrays."""

    first: bool
    states: NDArray[np.int64]  # node states of the auxiliary nodes
    key: NDArray[np.int64]  # for each of `states`, the entry of the member's marginal it adds to
    members: NDArray[np.int64]  # node states of the members, concatenated
    start: NDArray[np.int64]
    counts: NDArray[np.int64]

    def marginals(self, joint: Floats) -> Floats:
        sums = np.bincount(self.key, weights=joint[self.states], minlength=len(self.members))
        return sums.astype(np.float64, copy=False)


def _ties(model: Network) -> list[_Tie]:
    arity = model.memberships.arity
    return [_tie(model, t, np.flatnonzero(arity > t)) for t in range(arity.max(initial=0))]


def _tie(model: Network, t: int, which: NDArray[np.int64]) -> _Tie:
    held, node = model.memberships, model.num_variables + which
    row = held.start[which] + t
    member, stride = held.variable[row], held.stride[row]
    sizes, counts = model.num_labels[node], model.num_labels[member]
    start = np.cumsum(counts) - counts
    local = within(sizes)
    label = local // np.repeat(stride, sizes) % np.repeat(counts, sizes)
    own = within(counts)
    return _Tie(
        first=t == 0,
        states=np.repeat(model.node_offset[node], sizes) + local,
        key=np.repeat(start, sizes) + label,
        members=np.repeat(model.node_offset[member], counts) + own,
        start=start,
        counts=counts,
    )


Bools = NDArray[np.bool_]


def cost(model: Network, node_mu: ArrayLike, edge_mu: ArrayLike) -> float:
    """⟨C, μ⟩ + `model.constant`, with 0 · inf = 0."""
    nodes, pairs = _nodes(model, node_mu), _pairs(model, edge_mu)
    parts = [node_cost(model, nodes)]
    parts += [batch_cost(batch, pairs[batch.entries]) for batch in edge_batches(model)]
    return math.fsum([*parts, model.constant])


def node_cost(model: Network, node_mu: NDArray[Any], threads: int = 1) -> float:
    """Σ_i ⟨C_i, μ_i⟩, with 0 · inf = 0; `node_mu` may be in single precision (`normalised`)."""
    if node_mu.dtype == np.float32:
        return float(core.careful_node_cost(layout(model), node_mu, threads))
    return float(core.careful_product(model.unary, np.ascontiguousarray(node_mu), threads))


def normalised(model: Network, nodes: NDArray[Any]) -> Floats:
    """Return node marginals in double precision.

    Those in single precision are sums of about 1 to within rounding; the marginals that they stand
    for are divided by these sums, in double precision.
    """
    if nodes.dtype == np.float64:
        return nodes
    out = np.empty(nodes.size)
    core.normalise(layout(model), nodes, out)
    return out


def batch_cost(batch: EdgeBatch, mu: Floats) -> float:
    """Σ_e ⟨C_e, μ_e⟩ over a batch, with 0 · inf = 0."""
    return float(
        careful_sums(np.multiply(batch.cost, mu, where=mu != 0, out=np.zeros(mu.shape)).ravel())
    )


def proj(
    model: Network, node_mu: ArrayLike, edge_mu: ArrayLike, nu: ArrayLike | None = None
) -> Floats:
    """Return `Proj(μ, ν)` (Algorithm 4): edge marginals near `edge_mu` in the (slack) polytope.

    The node marginals do not change. If the rank-one correction would put mass on a forbidden pair,
    the edge gets the optimal transport plan over allowed pairs instead. If there is no such plan,
    an `OptionError` names the edge.
    """
    nodes, pairs, slack = _nodes(model, node_mu), _pairs(model, edge_mu), _slack(model, nu)
    out = np.empty_like(pairs)
    for batch in edge_batches(model):
        p, q = batch_targets(batch, nodes, slack)
        _check_targets(batch, p, q)
        out[batch.entries], fits = project_batch(batch, pairs[batch.entries], p, q)
        _check_fit(model, batch, fits)
    return out


def transport(model: Network, node_mu: ArrayLike, nu: ArrayLike | None = None) -> Floats:
    """Return the edge marginals of least cost for given node marginals (optimal transport)."""
    nodes, slack = _nodes(model, node_mu), _slack(model, nu)
    out = np.empty(model.edge_size)
    for batch in edge_batches(model):
        p, q = batch_targets(batch, nodes, slack)
        _check_targets(batch, p, q)
        out[batch.entries], stranded = cheapest_coupling(batch.cost, p, q)
        _check_fit(model, batch, stranded <= MASS.missing)
    return out


def group_in_closed_form(model: Network, g: int) -> Bools:
    """Which edges of a group get their cheapest transport whatever κ is.

    Potts and truncated linear ones of non-negative finite weight, the latter between equally many
    labels.
    """
    potential = model.potentials[g]
    if not isinstance(potential, Potts | TruncatedLinear):
        return np.zeros(len(potential), dtype=bool)
    plain = (potential.weights >= 0) & (potential.weights < np.inf)
    if isinstance(potential, TruncatedLinear):
        rows, cols = model.end_labels(*model.group_start[g : g + 2].tolist())
        plain &= rows == cols
    return np.asarray(plain)


def batch_targets(batch: EdgeBatch, nodes: Floats, slack: Floats | None) -> tuple[Floats, Floats]:
    """Return μ_i + ν_{e,i} and μ_j + ν_{e,j} for the edges of a batch."""
    p, q = nodes[batch.row_states], nodes[batch.col_states]
    if slack is not None:
        p, q = p + slack[batch.rows], q + slack[batch.cols]
    return p, q


def project_batch(batch: EdgeBatch, mu: Floats, p: Floats, q: Floats) -> tuple[Floats, Bools]:
    """Return `Proj` for one batch: edge marginals, and whether each edge has a feasible one."""
    p, q = np.maximum(p, 0.0), np.maximum(q, 0.0)
    excluded = np.isposinf(batch.cost)
    plan = nearest_coupling(np.where(excluded, 0.0, np.maximum(mu, 0.0)), p, q)
    fits = np.ones(len(plan), dtype=bool)
    plan[excluded & (plan <= MASS.speck)] = 0.0
    redo = ~(_misfit(plan, p, q) <= MASS.missing) | ((plan > 0) & excluded).any(axis=(1, 2))
    if redo.any():
        plan[redo], stranded = cheapest_coupling(batch.cost[redo], p[redo], q[redo])
        fits[redo] = stranded <= MASS.missing
    return plan, fits


def _misfit(plan: Floats, p: Floats, q: Floats) -> Floats:
    rows = np.abs(plan.sum(axis=2) - p).max(axis=1)
    cols = np.abs(plan.sum(axis=1) - q).max(axis=1)
    return np.maximum(rows, cols)


def integral(model: Network, labels: ArrayLike) -> tuple[Floats, Floats]:
    """Return the vertex of the polytope that a labelling defines: node and edge marginals."""
    ends = model.complete(labels)[model.edges]
    pairs = np.zeros(model.edge_size)
    pairs[edge_entries(model, np.arange(model.m), ends[:, 0], ends[:, 1])] = 1.0
    return integral_nodes(model, labels), pairs


def integral_nodes(model: Network, labels: ArrayLike) -> Floats:
    """Return the node marginals of a labelling: mass 1 on each of its labels."""
    nodes = np.zeros(int(model.node_offset[-1]))
    nodes[model.node_offset[:-1] + model.complete(labels)] = 1.0
    return nodes


def checked_marginals(model: Network, given: ArrayLike) -> Floats:
    """Return normalised node marginals; raise `OptionError` for negative or all-zero ones."""
    try:
        nodes = numbers(given, "node_marginals")
    except ModelError as error:
        raise OptionError(str(error)) from error
    size = int(model.node_offset[-1])
    if nodes.shape != (size,):
        raise OptionError(f"node_marginals must be {size} numbers, not of shape {nodes.shape}")
    with np.errstate(over="ignore", invalid="ignore"):
        mass = np.add.reduceat(nodes, model.node_offset[:-1])
    if not ((nodes >= 0).all() and (mass > 0).all() and (mass < np.inf).all()):
        raise OptionError("node_marginals must be finite, not negative, and not all 0 at a node")
    return np.asarray(nodes / np.repeat(mass, model.num_labels))


def _nodes(model: Network, node_mu: ArrayLike) -> Floats:
    return _sized("node marginals", node_mu, int(model.node_offset[-1]))


def _pairs(model: Network, edge_mu: ArrayLike) -> Floats:
    return _sized("edge marginals", edge_mu, model.edge_size)


def _slack(model: Network, nu: ArrayLike | None) -> Floats | None:
    return None if nu is None else _sized("slack", nu, model.half_size)


def _sized(name: str, values: ArrayLike, size: int) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (size,):
        raise OptionError(f"{name} must be a flat array of {size} numbers, not {array.shape}")
    return array


def _check_targets(batch: EdgeBatch, p: Floats, q: Floats) -> None:
    mass_p, mass_q = p.sum(axis=1), q.sum(axis=1)
    fine = (np.abs(mass_p - 1) <= MASS.loose) & (np.abs(mass_q - 1) <= MASS.loose)
    fine &= (p.min(axis=1) >= -MASS.loose) & (q.min(axis=1) >= -MASS.loose)
    if not fine.all():
        e = int(batch.edges[np.argmin(fine)])
        raise OptionError(
            f"edge {e}: the marginals of its endpoints (plus slack) are not distributions; "
            "they must be non-negative and sum to 1"
        )


def _check_fit(model: Network, batch: EdgeBatch, fits: Bools) -> None:
    if not fits.all():
        e = int(batch.edges[np.argmin(fits)])
        i, j = model.edges[e]
        raise OptionError(
            f"edge {e}: no coupling of the marginals of nodes {i} and {j} avoids its forbidden "
            "pairs; use `lift` for auxiliary nodes, or an integral point"
        )


Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Coupled:
    """Edge marginals for given node marginals, and their cost.

    Attributes
    ----------
    cost : float
        ⟨C, μ⟩ + constant; +inf if every coupling of some edge puts mass on a forbidden pair.
    entropy : float
        Entropy of the edge marginals before the projection to the polytope.
    slack : float
        Σ ‖ν_{e,i}‖₁ before the projection.
    plan : float64 array or None
        The edge marginals, flat over `model.edge_offset`; None unless requested.
    """

    cost: float
    entropy: float
    slack: float
    plan: Floats | None


def couple(
    model: Network,
    nodes: Floats,
    coupling: Floats,
    eta: float,
    *,
    threads: int = 1,
    plans: bool = False,
    deadline: core.Deadline | None = None,
) -> Coupled:
    """Return the point of the local polytope with given node marginals.

    The edge marginals are `Proj` (Algorithm 4) of exp(-η (C_e + κ_i + κ_j)). In small tables they
    are improved by exchanges of mass. An edge gets the optimal transport plan instead if it has a
    closed form (Potts, truncated linear), or if `Proj` would use a forbidden pair.

    Parameters
    ----------
    model : Network
    nodes : float64 array
        Node marginals, flat over `model.node_offset`.
    coupling : float64 array
        κ, flat over half-edges.
    eta : float
        Inverse temperature η.
    threads : int, default 1
    plans : bool, default False
        Whether to return the edge marginals, too.
    deadline : core.Deadline, optional
        `core.OutOfTime` is raised if this passes first.
    """
    terms, (entropy, slack) = np.empty(model.m + 2), np.empty((2, model.m))
    plan = np.empty(model.edge_size) if plans else None
    cost = terms[: model.m]
    out = core.CouplingArrays(cost=cost, entropy=entropy, slack=slack, plan=plan)
    core.couple(layout(model), coupling, eta, nodes, None, out, threads, deadline)
    terms[model.m :] = node_cost(model, nodes, threads), model.constant
    total = float(core.careful_sum(terms)) if np.isfinite(terms).all() else math.inf
    return Coupled(total, float(entropy.sum()), float(slack.sum()), plan)


def needs_coupling(model: Network) -> bool:
    """Whether the point depends on κ; it does not if every edge gets its optimal transport plan."""
    groups = range(len(model.potentials))
    return not all(group_in_closed_form(model, g).all() for g in groups)


@dataclass(frozen=True, eq=False)
class ClusterBeliefs:
    """The current marginals of a method, which are nearly consistent.

    Attributes
    ----------
    nodes : float64 array
        Node marginals, flat over `model.node_offset`.
    coupling : float64 array
        κ, see `couple`.
    eta : float
        Inverse temperature η.
    """

    nodes: Floats
    coupling: Floats
    eta: float


@dataclass(frozen=True, eq=False)
class MadePoint:
    """Node marginals, edge marginals (flat over `model.edge_offset`), and their cost."""

    nodes: Floats
    edges: Floats
    cost: float


@later("coupling")
@dataclass(frozen=True, eq=False)
class PrimalPoint:
    """A point of the local polytope, stored without its edge marginals, which take much memory.

    Attributes
    ----------
    model : Network
    nodes : float64 or float32 array, or None
        Node marginals, which are `normalised` when they are read; None if the point is a labelling.
    labels : int64 array or None
        The labelling, if `nodes` is None.
    coupling : float64 array, function or None
        κ of `couple`, or a function that returns it; None if the point does not depend on κ
        (`needs_coupling`).
    eta : float
        η of `couple`; +inf gives every edge its optimal transport plan.
    """

    model: Network
    nodes: NDArray[Any] | None = None
    labels: Ints | None = None
    coupling: Floats | None = None
    eta: float = math.inf

    def __getstate__(self) -> dict[str, Any]:
        return made(self, "coupling")

    def node_marginals(self) -> Floats:
        """Return the node marginals, flat over `model.node_offset`."""
        if self.nodes is not None:
            return normalised(self.model, self.nodes)
        return integral_nodes(self.model, self._labels())

    def edge_marginals(self) -> Floats:
        """Return the edge marginals, flat over `model.edge_offset`."""
        return self.make().edges

    def make(self) -> MadePoint:
        """Compute the point and its cost."""
        nodes = self.node_marginals()
        if self.nodes is None:
            edges = integral(self.model, self._labels())[1]
        elif math.isinf(self.eta):
            edges = transport(self.model, nodes)
        else:
            zero = np.zeros(self.model.half_size)
            coupling = zero if self.coupling is None else self.coupling
            found = couple(self.model, nodes, coupling, self.eta, plans=True)
            if found.plan is None or math.isinf(found.cost):
                raise OptionError("no coupling of these node marginals avoids forbidden pairs")
            return MadePoint(nodes, found.plan, found.cost)
        return MadePoint(nodes, edges, cost(self.model, nodes, edges))

    def _labels(self) -> Ints:
        if self.labels is None:
            raise ValueError("a point needs node marginals or labels")
        return self.labels

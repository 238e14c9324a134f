"""The optimum of the smoothed relaxation at a fixed η, its marginals, and their derivatives."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike

from softmap.arguments import positive
from softmap.methods.marginals.curvature import SMOOTHING, Curvature, ModelFrame
from softmap.methods.marginals.newton import approach, warn_unless_consistent
from softmap.methods.sweeps.loops import Messages
from softmap.methods.sweeps.stars import Stars
from softmap.model import Model, Network
from softmap.relaxation import polytope
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import Floats, check_lam


@dataclass(frozen=True, eq=False)
class SoftMarginals:
    """The optimum μ of the smoothed relaxation `min ⟨C, μ⟩ - H(μ)/η` over the local polytope.

    H is the entropy of the paper: the sum over all nodes and all edges. μ is not the marginal of
    the Gibbs distribution `exp(-η energy)`; see `softmap.exact_marginals` for that.

    Attributes
    ----------
    frame : ModelFrame
        The tables of the arc-consistent model: removed states have cost +inf.
    eta : float
        Inverse temperature η.
    lam : float64 array
        λ of the marginals; it can be used as a warm start.
    curvature : Curvature
        The marginals and the products with their derivatives.

    Examples
    --------
    >>> import softmap
    >>> from softmap.methods.marginals import smoothed_optimum
    >>> model = softmap.Model([[0, 1], [0, 0]], [[0, 1]], softmap.Potts(1.0))
    >>> smoothed_optimum(model, eta=2.0).of(0).round(3).tolist()
    [0.699, 0.301]
    """

    frame: ModelFrame
    eta: float
    lam: Floats
    curvature: Curvature

    def __repr__(self) -> str:
        return f"SoftMarginals({self.frame.model}, eta={self.eta:g})"

    @staticmethod
    def at(model: Model | Network, eta: float, lam: Floats) -> SoftMarginals:
        """Return the marginals at a λ, which need not be optimal.

        Parameters
        ----------
        model : Model or Network
            The model.
        eta : float
            Inverse temperature η.
        lam : float64 array
            λ.
        """
        frame = ModelFrame(tighten(model))
        return SoftMarginals(frame, eta, lam, Curvature(frame, lam, eta))

    @property
    def model(self) -> Network:
        """The arc-consistent model."""
        return self.frame.model

    @property
    def nodes(self) -> Floats:
        """The node marginals, flat over `model.node_offset`."""
        nodes: Floats = self.curvature.nodes
        return nodes

    @cached_property
    def edges(self) -> Floats:
        """The edge marginals, flat over `model.edge_offset`."""
        out = np.empty(self.model.edge_size)
        for batch, table in zip(self.frame.edge_batches, self.curvature.tables, strict=True):
            out[batch.entries] = table
        return out

    def of(self, i: int) -> Floats:
        """Return the marginal of node `i`."""
        return self.nodes[self.model.node_slice(i)]

    @property
    def slack(self) -> float:
        """The largest |ν|: the inconsistency between node and edge marginals."""
        return self.curvature.worst

    @property
    def value(self) -> float:
        """The dual value -L(λ), a lower bound on the smoothed optimum (within `gap` of it)."""
        return -self.curvature.value

    @cached_property
    def gap(self) -> float:
        """The smoothed cost of a feasible point minus `value`; at least 0.

        The smoothed optimum lies between the two. It is +inf if no feasible point was found.
        """
        try:
            edges = polytope.proj(self.model, self.nodes, self.edges)
        except ValueError:
            return math.inf
        cost = polytope.cost(self.model, self.nodes, edges)
        entropy = _entropy(self.nodes) + _entropy(edges)
        return max(0.0, cost - entropy / self.eta - self.value)


def _entropy(mu: Floats) -> float:
    positive_part = mu[mu > 0]
    return float(-(positive_part * np.log(positive_part)).sum())


def smoothed_optimum(
    model: Model | Network,
    eta: float,
    *,
    lam: ArrayLike | None = None,
    tol: float = SMOOTHING.tol,
    threads: int = 1,
) -> SoftMarginals:
    """Minimise L of (Reg-D) at η until the marginals agree to within `tol`.

    Accelerated star sweeps are followed by Newton's method with conjugate gradients. A
    `ConvergenceWarning` is issued if `tol` is not reached.

    Parameters
    ----------
    model : Model or Network
    eta : float
        Inverse temperature η.
    lam : float64 array, optional
        Initial λ; 0 by default.
    tol : float
        Largest |ν|.
    threads : int, default 1
    """
    soft = approached(model, eta, lam=lam, tol=tol, threads=threads)
    warn_unless_consistent(soft.curvature, tol)
    return soft


def approached(
    model: Model | Network, eta: float, *, lam: ArrayLike | None, tol: float, threads: int = 1
) -> SoftMarginals:
    """Return what `smoothed_optimum` returns, without its warning (see `slack` and `gap`)."""
    eta, tol = positive("eta", eta), positive("tol", tol)
    frame = ModelFrame(tighten(model))
    start = None if lam is None else check_lam(frame.model, lam)
    point = approach(frame, partial(_swept, frame.model, threads), eta, tol, lam=start, growth=8)
    return SoftMarginals(frame, eta, point.lam, point)


def _swept(model: Network, threads: int, point: Curvature, count: int) -> Curvature:
    """After `count` accelerated sweeps over the stars."""
    stars = Stars(model, threads)
    messages: Messages = stars.start(point.lam)
    stars.passes(messages, count, point.eta, momentum=True)
    return point.at(stars.lam(messages.msg))


def adjoint(
    soft: SoftMarginals, nodes: Floats, edges: Floats, *, tol: float = SMOOTHING.adjoint
) -> tuple[Floats, Floats]:
    """Return the derivative of ⟨nodes, μ_i⟩ + ⟨edges, μ_e⟩ by the costs of nodes and edges.

    It takes one linear solve (see `Curvature.pulled_back`). Arrays are flat, as the marginals are.
    """
    point, batches = soft.curvature, soft.frame.edge_batches
    by_node, tables = point.pulled_back(nodes, [edges[batch.entries] for batch in batches], tol)
    by_edge = np.empty_like(edges)
    for batch, table in zip(batches, tables, strict=True):
        by_edge[batch.entries] = table
    return by_node, by_edge

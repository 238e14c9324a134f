"""The smoothed dual of the paper, equation by equation, in plain numpy and in the log domain.

Tests compare the compiled kernels with this reference. The costs of a group of edges are processed
as stacks of tables of equal shape, with a bounded number of entries at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.arguments import positive
from softmap.errors import ModelError, OptionError
from softmap.model import Model, Network
from softmap.model.potentials.base import numbers, softmin, softmin_by_block
from softmap.model.structure import unique_rows
from softmap.relaxation.consistency import tighten

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class EdgeBatch:
    """Edges of one family and one table shape.

    Attributes
    ----------
    edges : int64[k]
        Edge numbers.
    cost : float64[k, d_i, d_j]
        C_e; also +inf if the state of an endpoint has an infinite unary cost.
    rows, cols : int64[k, d_i], int64[k, d_j]
        Indices of the labels of the first and second endpoint in half-edge arrays (λ, S, ν).
    row_states, col_states : int64[k, d_i], int64[k, d_j]
        Indices of the same labels in node arrays (unary costs, μ_i).
    entries : int64[k, d_i, d_j]
        Indices of the pairs of labels in edge arrays (μ_e).
    """

    edges: Ints
    cost: Floats
    rows: Ints
    cols: Ints
    row_states: Ints
    col_states: Ints
    entries: Ints

    def reduced(self, lam: Floats) -> Floats:
        """C_e(x_i, x_j) + λ_{e,i}(x_i) + λ_{e,j}(x_j)."""
        shifted: Floats = self.cost + lam[self.rows][:, :, None] + lam[self.cols][:, None, :]
        return shifted

    def marginals(self, lam: Floats, eta: float) -> Floats:
        """μ_e(x_e) ∝ exp(-η C_e(x_e) - η Σ_{i∈e} λ_{e,i}(x_i)), shaped like `cost`."""
        cost = self.reduced(lam)
        weight = np.exp(-eta * (cost - cost.min(axis=(1, 2), keepdims=True)))
        mu: Floats = weight / weight.sum(axis=(1, 2), keepdims=True)
        return mu


def edge_batches(model: Network, limit: int = 1 << 20) -> Iterator[EdgeBatch]:
    """Yield all edges of a model, in batches of at most about `limit` table entries."""
    for g, potential in enumerate(model.potentials):
        begin, end = int(model.group_start[g]), int(model.group_start[g + 1])
        shapes, which = unique_rows(model.num_labels[model.edges[begin:end]])
        for s, (d_i, d_j) in enumerate(shapes.tolist()):
            members = np.flatnonzero(which == s)
            step = max(1, limit // (d_i * d_j))
            for at in range(0, len(members), step):
                k = members[at : at + step]
                yield _batch(model, begin + k, potential.stack(k, d_i, d_j))


def _batch(model: Network, edges: Ints, cost: Floats) -> EdgeBatch:
    _, d_i, d_j = cost.shape
    x, y = np.arange(d_i), np.arange(d_j)
    row_states = model.node_offset[model.edges[edges, 0]][:, None] + x
    col_states = model.node_offset[model.edges[edges, 1]][:, None] + y
    if model.has_forbidden:
        row_bar = np.where(np.isposinf(model.unary[row_states]), np.inf, 0.0)
        col_bar = np.where(np.isposinf(model.unary[col_states]), np.inf, 0.0)
        cost = cost + row_bar[:, :, None] + col_bar[:, None, :]
    return EdgeBatch(
        edges=edges,
        cost=cost,
        rows=model.half_offset[2 * edges][:, None] + x,
        cols=model.half_offset[2 * edges + 1][:, None] + y,
        row_states=row_states,
        col_states=col_states,
        entries=edge_entries(model, edges[:, None, None], x[:, None], y),
    )


def edge_entries(model: Network, edges: Ints, x: Ints, y: Ints) -> Ints:
    """Return the indices in edge arrays of labels x (first endpoint) and y (second endpoint)."""
    entries: Ints = model.edge_offset[edges] + x * model.num_labels[model.edges[edges, 1]] + y
    return entries


def half_states(model: Network) -> Ints:
    """Return, for each entry of a half-edge array, the index of the same label in node arrays."""
    node = model.edges.reshape(-1)
    shift = model.node_offset[node] - model.half_offset[:-1]
    return np.repeat(shift, model.num_labels[node]) + np.arange(model.half_offset[-1])


def reduced_unary(model: Network, lam: Floats) -> Floats:
    """Return C_i(x) - Σ_{e∈N_i} λ_{e,i}(x), flat over node states."""
    size = int(model.node_offset[-1])
    total = np.bincount(half_states(model), weights=lam, minlength=size)
    return model.unary - total


def check_lam(model: Network, lam: ArrayLike) -> Floats:
    """Return λ as a float64 array of the right length; raise `OptionError` if not finite."""
    try:
        array = numbers(lam, "lam")
    except ModelError as error:
        raise OptionError(str(error)) from error
    size = model.half_size
    if array.shape != (size,):
        raise OptionError(f"lam must be a flat array of {size} numbers, not of shape {array.shape}")
    if not np.isfinite(array).all():
        bad = int(np.argmin(np.isfinite(array)))
        raise OptionError(f"lam[{bad}] is {array[bad]}; expected a finite number")
    return array


def check_eta(eta: float) -> float:
    """Return η as a finite positive float, or raise `OptionError`."""
    return positive("eta", eta)


class SmoothedDual:
    """The smoothed dual L(λ) of (Reg-D) at a fixed η, with its marginals and slack.

    λ is multiplied by η, as in the proof of Proposition "dual-obj". The constant (m + n)/η of the
    entropy is left out, so that -L(λ) is the value of the regularised dual, `model.constant`
    included. Forbidden states have μ = S = ν = 0 and do not depend on λ.

    Parameters
    ----------
    model : Network
    eta : float
        Inverse temperature η, in units of 1 / cost.

    Examples
    --------
    >>> import numpy as np, softmap
    >>> model = softmap.Model([[0, 1], [1, 0]], [[0, 1]], softmap.Potts(0.4))
    >>> dual = softmap.SmoothedDual(model, eta=100.0)
    >>> round(-dual.value(np.zeros(model.network.half_size)), 6)
    -0.006931
    """

    def __init__(self, model: Model | Network, eta: float) -> None:
        self.model = tighten(model)
        self.eta = check_eta(eta)
        self._half_states = half_states(self.model)

    def value(self, lam: ArrayLike) -> float:
        """Return L(λ)."""
        lam = check_lam(self.model, lam)
        reduced = reduced_unary(self.model, lam)
        total = softmin_by_block(reduced, self.model.node_offset[:-1], self.eta).sum()
        for batch in edge_batches(self.model):
            cost = batch.reduced(lam).reshape(len(batch.edges), -1)
            total += softmin(cost, self.eta).sum()
        return float(-total - self.model.constant)

    def node_marginals(self, lam: ArrayLike) -> Floats:
        """μ_i(x) ∝ exp(-η C_i(x) + η Σ_{e∈N_i} λ_{e,i}(x)), flat over node states."""
        cost = reduced_unary(self.model, check_lam(self.model, lam))
        starts, counts = self.model.node_offset[:-1], self.model.num_labels
        least = np.repeat(np.minimum.reduceat(cost, starts), counts)
        weight = np.exp(-self.eta * (cost - least))
        return weight / np.repeat(np.add.reduceat(weight, starts), counts)

    def edge_marginals(self, lam: ArrayLike) -> Floats:
        """μ_e(x_e) ∝ exp(-η C_e(x_e) - η Σ_{i∈e} λ_{e,i}(x_i)), flat over `model.edge_offset`."""
        lam = check_lam(self.model, lam)
        out = np.empty(self.model.edge_size)
        for batch in edge_batches(self.model):
            out[batch.entries] = batch.marginals(lam, self.eta)
        return out

    def S(self, lam: ArrayLike) -> Floats:
        """S_{e,i}(x_i) = Σ_{x_j} μ_e(x_i, x_j), flat over half-edges."""
        lam = check_lam(self.model, lam)
        out = np.empty(self.model.half_size)
        for batch in edge_batches(self.model):
            mu = batch.marginals(lam, self.eta)
            out[batch.rows] = mu.sum(axis=2)
            out[batch.cols] = mu.sum(axis=1)
        return out

    def slack(self, lam: ArrayLike) -> Floats:
        """ν_{e,i} = S_{e,i} - μ_i (Definition "slack"), flat over half-edges."""
        return self.S(lam) - self.node_marginals(lam)[self._half_states]

    def gradient(self, lam: ArrayLike) -> Floats:
        """∂L/∂λ_{e,i}(x) = μ_i(x) - S_{e,i}(x) = -ν_{e,i}(x)."""
        return -self.slack(lam)

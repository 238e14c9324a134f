"""Bounds on log Z: forests from above, independent variables from below."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from softmap.arguments import count, positive
from softmap.methods.marginals.exact import ENTRIES, exact_marginals, narrow
from softmap.methods.marginals.forests import Padded, cover
from softmap.model import Model, checked_model
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import Floats

__all__ = ["PartitionBounds", "log_partition_bounds"]

EPS = float(np.finfo(np.float64).eps)
ROUNDS = 40


class PartitionBounds(NamedTuple):
    """`lower <= log Z <= upper`."""

    lower: float
    upper: float


def log_partition_bounds(
    model: Model,
    eta: float = 1.0,
    *,
    labels: ArrayLike | None = None,
    rounds: int = ROUNDS,
    entries: int = ENTRIES,
) -> PartitionBounds:
    """Bounds on log Z, where Z is the sum of `exp(-η energy)` over all labellings.

    Where variables can be eliminated with tables of at most `entries` entries both are log Z, a
    rounding error apart. Elsewhere the upper one comes from a convex combination of forests
    (tree-reweighted sums: log Z is convex in the costs) whose shares of the unary costs are
    improved in `rounds` steps, and the lower one from independent variables (mean field). Both hold
    however many rounds there are.

    Parameters
    ----------
    labels : a labelling, such as that of `solve`, to start the lower bound with

    Examples
    --------
    >>> import softmap
    >>> model = softmap.generators.potts_grid(4, 4, 3, seed=1)
    >>> lower, upper = softmap.log_partition_bounds(model, entries=1)
    >>> lower <= softmap.exact_marginals(model).log_partition <= upper
    True
    """
    tight = tighten(checked_model(model))
    start = None if labels is None else tight.complete(labels)
    eta, rounds = positive("eta", eta), count("rounds", rounds)
    shift = -eta * tight.constant
    if narrow(tight, count("entries", entries, 1)):
        exact = exact_marginals(tight, eta, entries=entries).log_partition
        margin = _margin(Padded(tight), eta, 1.0, exact) + 32 * EPS * abs(shift)
        return PartitionBounds(exact - margin, exact + margin)
    padded = Padded(tight)
    above, nodes, margin = _forests(padded, eta, rounds)
    starts = [nodes]
    if start is not None:
        starts.append(np.eye(padded.unary.shape[1])[start])
    below = max(_mean_field(tight, padded, eta, q, rounds) for q in starts)
    margin += 32 * EPS * abs(shift)
    return PartitionBounds(below + shift - margin, above + shift + margin)


def _margin(padded: Padded, eta: float, least: float, value: float) -> float:
    """What rounding may have done to a sum of logarithms of sums of this size."""
    finite = [np.abs(a[np.isfinite(a)]).max(initial=0.0) for a in (padded.unary, padded.tables)]
    size = eta * (float(finite[0]) + float(finite[1]) / least) + padded.unary.shape[1]
    return 32 * EPS * (abs(value) + (len(padded.unary) + len(padded.pairs)) * (1.0 + size))


def _forests(padded: Padded, eta: float, rounds: int) -> tuple[float, Floats, float]:
    """Σ_T ρ_T log Z_T with Σ_T ρ_T E_T = E, made small over the shares; and mean marginals."""
    from scipy.optimize import minimize

    n, d = padded.unary.shape
    forests = cover(n, padded.pairs)
    rho = 1.0 / len(forests)
    often = np.bincount(np.concatenate([f.pair for f in forests]), minlength=len(padded.pairs))
    tables = -eta * padded.tables / (rho * often)[:, None, None]
    nodes = -eta * padded.unary
    means = np.zeros((n, d))

    def bound(flat: Floats) -> tuple[float, Floats]:
        shares = flat.reshape(len(forests), n, d)
        shares = shares - shares.mean(axis=0)
        found = [f.sums(nodes + s, tables) for f, s in zip(forests, shares, strict=True)]
        gradient = rho * np.array([mu for _, mu in found])
        means[:] = gradient.sum(axis=0)
        gradient -= gradient.mean(axis=0)
        return rho * sum(total for total, _ in found), gradient.ravel()

    best, start = bound(np.zeros(len(forests) * n * d))[0], np.zeros(len(forests) * n * d)
    if len(forests) > 1 and rounds:
        found = minimize(bound, start, jac=True, method="L-BFGS-B", options={"maxiter": rounds})
        best = min(best, bound(found.x)[0])
        size = float(np.abs(found.x).max()) / eta
    else:
        size = 0.0
    margin = _margin(padded, eta, rho, best) * (1.0 + size)
    return best, means, margin


def _mean_field(model: Model, padded: Padded, eta: float, q: Floats, rounds: int) -> float:
    """The best of -η E_q[energy] + H(q) over rounds of exact updates, one colour at a time."""
    colour = model.graph.colouring()
    best = _free(padded, eta, q)
    for _ in range(rounds):
        for c in range(int(colour.max()) + 1):
            cost = padded.unary + _field(padded, q)
            chosen = (colour == c) & np.isfinite(cost).any(axis=1)
            logits = -eta * cost[chosen]
            q = q.copy()
            weight = np.exp(logits - logits.max(axis=1, keepdims=True))
            q[chosen] = weight / weight.sum(axis=1, keepdims=True)
        value = _free(padded, eta, q)
        if not value > best + 1e-9 * (1 + abs(best)):
            return max(best, value)
        best = value
    return best


def _field(padded: Padded, q: Floats) -> Floats:
    """Expected costs of all edges of a variable, by its label; +inf where one would break."""
    i, j = padded.pairs.T
    barred = np.isposinf(padded.tables)
    table = np.where(barred, 0.0, padded.tables)
    out = np.zeros_like(q)
    for here, there, cost, bar in (
        (i, j, table, barred),
        (j, i, table.transpose(0, 2, 1), barred.transpose(0, 2, 1)),
    ):
        weight = q[there][:, :, None]
        expected = (cost @ weight)[:, :, 0]
        expected[(bar & (weight > 0).transpose(0, 2, 1)).any(axis=2)] = np.inf
        np.add.at(out, here, expected)
    return out


def _free(padded: Padded, eta: float, q: Floats) -> float:
    used = q > 0
    pairs = 0.5 * _field(padded, q)[used]
    cost = float((q[used] * (padded.unary[used] + pairs)).sum())
    return -eta * cost - float((q[used] * np.log(q[used])).sum())

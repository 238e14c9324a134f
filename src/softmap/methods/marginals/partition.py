"""Bounds on log Z: tree-reweighted sums (upper) and mean field (lower)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.arguments import count, positive
from softmap.methods.marginals.exact import ELIMINATION, exact_log_partition, log_sum
from softmap.model import Model, checked_model
from softmap.model.graph import spanning_forest
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import Floats

Ints = NDArray[np.int64]


class Padded:
    """A model in rectangular arrays; padded labels are forbidden.

    Attributes
    ----------
    unary : float64[n, d]
    tables : float64[p, d, d]
        Sums over parallel edges.
    pairs : int64[p, 2]
        Each pair once, the smaller node first.
    """

    def __init__(self, model: Model) -> None:
        n, d = model.n, int(model.num_labels.max())
        self.unary: Floats = np.full((n, d), np.inf)
        self.unary[np.arange(d) < model.num_labels[:, None]] = model.unary
        ends = np.sort(model.edges.astype(np.int64), axis=1)
        pairs, which = np.unique(ends, axis=0, return_inverse=True)
        self.pairs: Ints = pairs.reshape(-1, 2)
        self.tables: Floats = np.zeros((len(self.pairs), d, d))
        for e, (i, j) in enumerate(model.edges.tolist()):
            table = model.table(e) if i < j else model.table(e).T
            rows, cols = table.shape
            self.tables[which.reshape(-1)[e], :rows, :cols] += table


@dataclass(frozen=True)
class TreeLevel:
    """The nodes of one depth, their parents, their edges, and which endpoint the child is."""

    child: Ints
    parent: Ints
    pair: Ints
    second: NDArray[np.bool_]

    def tables(self, tables: Floats) -> Floats:
        """Return the tables with the parent's label as first axis."""
        chosen = tables[self.pair]
        return np.where(self.second[:, None, None], chosen, chosen.transpose(0, 2, 1))


@dataclass(frozen=True)
class Forest:
    """A rooted forest: its roots, the levels below them, and its edges (`pair`)."""

    roots: Ints
    levels: tuple[TreeLevel, ...]
    pair: Ints

    def sums(self, nodes: Floats, tables: Floats) -> tuple[float, Floats]:
        """Return log Z and node marginals of log-potentials `nodes` (n, d), `tables` (p, d, d)."""
        belief, messages = nodes.copy(), []
        for level in reversed(self.levels):
            table = level.tables(tables)
            message = log_sum(table + belief[level.child][:, None, :], 2)
            np.add.at(belief, level.parent, message)
            messages.append((table, message))
        total = float(log_sum(belief[self.roots], 1).sum())
        for level, (table, message) in zip(self.levels, reversed(messages), strict=True):
            with np.errstate(invalid="ignore"):
                known = np.where(np.isneginf(message), -np.inf, belief[level.parent] - message)
            belief[level.child] += log_sum(table + known[:, :, None], 1)
        top = belief.max(axis=1, keepdims=True)
        weight = np.exp(belief - top)
        return total, weight / weight.sum(axis=1, keepdims=True)


def cover(n: int, pairs: Ints) -> list[Forest]:
    """Return spanning forests that cover all pairs; each contains as many new pairs as possible."""
    used = np.zeros(len(pairs), dtype=np.int64)
    forests: list[Forest] = []
    while not forests or (used == 0).any():
        chosen = spanning_forest(n, pairs, used)
        used[chosen] += 1
        forests.append(_rooted(n, pairs, chosen))
    return forests


def _rooted(n: int, pairs: Ints, chosen: Ints) -> Forest:
    near: list[list[tuple[int, int, bool]]] = [[] for _ in range(n)]
    for k in chosen.tolist():
        i, j = pairs[k].tolist()
        near[i].append((j, k, True))
        near[j].append((i, k, False))
    seen, roots, depths = [False] * n, [], [[]]  # type: list[bool], list[int], list[list[tuple[int, int, int, bool]]]
    for root in range(n):
        if seen[root]:
            continue
        seen[root] = True
        roots.append(root)
        front, depth = [root], 0
        while front:
            found = [(j, i, k, side) for i in front for j, k, side in near[i] if not seen[j]]
            for j, *_ in found:
                seen[j] = True
            if found:
                if depth == len(depths):
                    depths.append([])
                depths[depth] += found
            front, depth = [j for j, *_ in found], depth + 1
    levels = tuple(
        TreeLevel(*(np.array(column) for column in zip(*rows, strict=True)))
        for rows in depths
        if rows
    )
    return Forest(np.array(roots), levels, chosen)


EPS = float(np.finfo(np.float64).eps)


class PartitionBounds(NamedTuple):
    """Bounds `lower <= log Z <= upper`."""

    lower: float
    upper: float


def log_partition_bounds(
    model: Model,
    eta: float = 1.0,
    *,
    labels: ArrayLike | None = None,
    rounds: int = 40,
    entries: int = ELIMINATION.entries,
) -> PartitionBounds:
    """Return bounds on log Z, where Z is the sum of `exp(-η energy)` over all labellings.

    If variable elimination is possible within `entries`, both bounds are log Z up to rounding.
    Otherwise the upper bound is a convex combination of spanning forests (tree-reweighted: log Z is
    convex in the costs), and the lower bound is mean field. Both are valid after any number of
    rounds.

    Parameters
    ----------
    model : Model
    eta : float, default 1
        Inverse temperature η, in units of 1 / cost.
    labels : int array, optional
        A labelling, such as that of `solve`, at which mean field starts.
    rounds : int, default 40
        Number of steps that improve each bound.
    entries : int, optional
        Largest number of table entries of variable elimination in all.

    Returns
    -------
    PartitionBounds
        The named tuple `(lower, upper)`.

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
    exact = exact_log_partition(tight, eta, count("entries", entries, 1))
    if exact is not None:
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
    """Return a bound on the rounding error of the computed log Z."""
    finite = [np.abs(a[np.isfinite(a)]).max(initial=0.0) for a in (padded.unary, padded.tables)]
    size = eta * (float(finite[0]) + float(finite[1]) / least) + padded.unary.shape[1]
    return 32 * EPS * (abs(value) + (len(padded.unary) + len(padded.pairs)) * (1.0 + size))


def _forests(padded: Padded, eta: float, rounds: int) -> tuple[float, Floats, float]:
    """Minimise Σ_T ρ_T log Z_T subject to Σ_T ρ_T E_T = E; also return mean marginals."""
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
    """Maximise -η E_q[energy] + H(q) by rounds of exact updates, one colour at a time."""
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
    """Return the expected cost of a variable's edges for each label; +inf if one is forbidden."""
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

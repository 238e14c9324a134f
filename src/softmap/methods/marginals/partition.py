"""Bounds on log Z: elimination, mini-buckets (upper), mean field (lower), and search (both)."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from softmap import core
from softmap.arguments import count, not_negative, positive
from softmap.errors import InfeasibleModel
from softmap.methods.marginals.blocks import BlockMeanField
from softmap.methods.marginals.cases import SEARCHED, Cases, SumSearch
from softmap.methods.marginals.exact import ELIMINATION, exact_log_partition
from softmap.methods.marginals.tables import EPS, Ints, LogTables
from softmap.model import Model, checked_model
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import Floats


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
    entries: int = ELIMINATION.streamed,
    table: int = 4096,
    time_limit: float | None = None,
) -> PartitionBounds:
    """Return bounds on log Z, where Z is the sum of `exp(-η energy)` over all labellings.

    If variable elimination is possible within `entries`, both bounds are log Z up to rounding;
    tables are freed as soon as they are used. Otherwise the upper bound is that of weighted
    mini-buckets (Hölder's inequality), and the lower bound is mean field over blocks of variables.
    If the model is small, both are improved by a search: exact sums over the labellings that weigh
    most, and upper bounds for the others.

    Parameters
    ----------
    model : Model
    eta : float, default 1
        Inverse temperature η, in units of 1 / cost.
    labels : int array, optional
        A labelling, such as that of `solve`, at which mean field starts, too.
    rounds : int, default 40
        Largest number of steps of mean field.
    entries : int, optional
        Largest number of table entries of variable elimination in all, and of the search.
    table : int, default 4096
        Largest table of a mini-bucket. Larger tables give better bounds.
    time_limit : float, optional
        Seconds after which the bounds so far are returned. No limit by default.

    Returns
    -------
    PartitionBounds
        The named tuple `(lower, upper)`.

    Examples
    --------
    >>> import softmap
    >>> model = softmap.generators.potts_grid(4, 4, 3, seed=1)
    >>> lower, upper = softmap.log_partition_bounds(model, entries=1, table=16)
    >>> lower <= softmap.exact_marginals(model).log_partition <= upper
    True
    """
    tight = tighten(checked_model(model))
    start = None if labels is None else tight.complete(labels)
    eta, rounds = positive("eta", eta), count("rounds", rounds)
    entries, table = count("entries", entries, 1), count("table", table, 1)
    seconds = math.inf if time_limit is None else not_negative("time_limit", time_limit)
    deadline, logs = core.Deadline(seconds), LogTables.of(tight, eta)
    # what elimination does not finish in half of the time it leaves to the bounds
    exact = exact_log_partition(logs, entries, core.Deadline(seconds / 2))
    if exact is not None:
        _require_finite(exact[0])
        return PartitionBounds(exact[0] - exact[1], exact[0] + exact[1])
    below = _below(tight, logs, eta, start, rounds, table, deadline)
    return PartitionBounds(*_searched(logs, below, entries, table, deadline))


def _below(
    model: Model,
    logs: LogTables,
    eta: float,
    start: Ints | None,
    rounds: int,
    table: int,
    deadline: core.Deadline,
) -> float:
    """Return the best of the lower bounds by mean field: over blocks, and from each start."""
    padded = Padded(model)
    starts = [_uniform(padded)]
    if start is not None:
        starts.append(np.eye(padded.unary.shape[1])[start])
    below = max(_mean_field(model, padded, eta, q, rounds, deadline) for q in starts)
    shift = -eta * model.constant
    below += shift - _margin(padded, eta, below) - 32 * EPS * abs(shift)
    with suppress(core.OutOfTime):
        third = core.Deadline(deadline.left / 3)  # the rest is for the upper bound and the search
        below = max(below, BlockMeanField(logs, 4 * table, third).lower(rounds))
    return below


def _searched(
    logs: LogTables, below: float, entries: int, table: int, deadline: core.Deadline
) -> tuple[float, float]:
    """Return the bounds of mini-buckets and of a search over cases, which may end at any time."""
    upper = logs.shift + logs.error + float(np.log(logs.flat.num_labels).sum()) * (1 + 64 * EPS)
    upper += 64 * EPS * abs(upper)  # every table is at most 0
    none = np.zeros(0, np.int64)
    with suppress(core.OutOfTime):
        search = SumSearch(Cases(logs, none, min(table, SEARCHED), deadline))
        upper = min(upper, search.upper)
        if table > SEARCHED and not search.cases.root.exact:
            with suppress(core.OutOfTime):
                third = core.Deadline(deadline.left / 3)
                upper = min(upper, float(Cases(logs, none, table, third).root.upper[0]))
        below = max(below, search.lower)
        while upper - below > 1e-6 and search.cases.affordable(entries):
            if not search.step(deadline):
                break
            below, upper = max(below, search.lower), min(upper, search.upper)
    _require_finite(upper)
    return below, upper


def _require_finite(upper: float) -> None:
    if upper == -math.inf:
        raise InfeasibleModel("no labelling has finite cost: log Z is -inf")


def _uniform(padded: Padded) -> Floats:
    allowed = np.isfinite(padded.unary)
    return allowed / np.maximum(1, allowed.sum(axis=1, keepdims=True))


def _margin(padded: Padded, eta: float, value: float) -> float:
    """Return a bound on the rounding error of the computed mean field."""
    finite = [np.abs(a[np.isfinite(a)]).max(initial=0.0) for a in (padded.unary, padded.tables)]
    size = eta * (float(finite[0]) + float(finite[1])) + padded.unary.shape[1]
    size = (len(padded.unary) + len(padded.pairs)) * (1.0 + size)
    return 32 * EPS * (size + (abs(value) if math.isfinite(value) else 0.0))


def _mean_field(
    model: Model, padded: Padded, eta: float, q: Floats, rounds: int, deadline: core.Deadline
) -> float:
    """Maximise -η E_q[energy] + H(q) by rounds of exact updates, one colour at a time."""
    colour = model.graph.colouring()
    best = _free(padded, eta, q)
    for _ in range(rounds):
        if deadline.passed:
            break
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
    excluded = np.isposinf(padded.tables)
    table = np.where(excluded, 0.0, padded.tables)
    out = np.zeros_like(q)
    for here, there, cost, bar in (
        (i, j, table, excluded),
        (j, i, table.transpose(0, 2, 1), excluded.transpose(0, 2, 1)),
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

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
from softmap.methods.marginals.tables import EPS, LogTables
from softmap.model import Model, Network
from softmap.relaxation.consistency import tighten


class PartitionBounds(NamedTuple):
    """Bounds `lower <= log Z <= upper`."""

    lower: float
    upper: float


def log_partition_bounds(
    model: Model | Network,
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
    model : Model or Network
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
    tight = tighten(model)
    start = None if labels is None else tight.lowered(labels)
    eta, rounds = positive("eta", eta), count("rounds", rounds)
    entries, table = count("entries", entries, 1), count("table", table, 1)
    seconds = math.inf if time_limit is None else not_negative("time_limit", time_limit)
    deadline, logs = core.Deadline(seconds), LogTables.of(tight, eta)
    # what elimination does not finish in half of the time it leaves to the bounds
    exact = exact_log_partition(logs, entries, core.Deadline(seconds / 2))
    if exact is not None:
        _require_finite(exact[0])
        return PartitionBounds(exact[0] - exact[1], exact[0] + exact[1])
    below = -math.inf
    if start is not None:
        below = -eta * float(tight.energy(start))
        below -= logs.error + 4 * EPS * abs(below)
    with suppress(core.OutOfTime):
        third = core.Deadline(deadline.left / 3)  # the rest is for the upper bound and the search
        field = BlockMeanField(logs, 4 * table, third)
        found = [field.lower(rounds, x) for x in ((None,) if start is None else (None, start))]
        below = max(below, *found)
    return PartitionBounds(*_searched(logs, below, entries, table, deadline))


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

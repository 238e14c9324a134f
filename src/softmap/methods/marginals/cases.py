"""Search over fixed labels of some variables, with bounds by mini-buckets for all cases at once."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from softmap import core
from softmap.methods.marginals.leaves import Leaves
from softmap.methods.marginals.minibuckets import MiniBuckets
from softmap.methods.marginals.tables import EPS, Ints, LogTables
from softmap.relaxation.dual import Floats
from softmap.relaxation.flat import elimination_order

SEARCHED = 256  # entries of a table in a search: many cases are better than large tables (0076)
CASES = 1 << 19  # table entries of all cases of one evaluation together: a few MB
SEARCH_ENTRIES = 500_000_000  # table entries of a search without a time limit, and of an inner sum


class Labelled(NamedTuple):
    """Cases with upper bounds; if they are exact, the values are at most 2 · error lower."""

    labels: Ints
    upper: Floats
    exact: bool
    error: float


class Cases:
    """Open cases by the number of variables they fix, each with an upper bound.

    Parameters
    ----------
    logs : LogTables
        The tables.
    maxima : int sequence
        The variables that are maximised; the others are summed over.
    most : int
        Largest number of entries of a table of mini-buckets.
    deadline : core.Deadline
        When to stop; `core.OutOfTime` is raised then.

    Attributes
    ----------
    order : int array
        The order of elimination. Labels are fixed from its end.
    open : dict
        Number of fixed variables to labels (k, f) and bounds (k).
    work : int
        Number of table entries so far.
    """

    def __init__(self, logs: LogTables, maxima: Ints, most: int, deadline: core.Deadline) -> None:
        self.logs, self.most, self.maxima = logs, most, len(maxima)
        # two orders are enough: the tables are split anyway
        found = elimination_order(logs.flat, math.inf, tries=2).variables
        late = np.isin(found, maxima)
        self.order: Ints = np.concatenate([found[~late], found[late]])
        self.work = 0
        root = self.evaluated(np.zeros((1, 0), np.int64), deadline)
        self.root, self.root_work = root, self.work
        self.open: dict[int, tuple[Ints, Floats]] = {0: (root.labels, root.upper)}

    def evaluated(self, labels: Ints, deadline: core.Deadline) -> Labelled:
        """Return upper bounds for some cases."""
        found = MiniBuckets(
            self.logs, self.order.tolist(), self.maxima, self.most, deadline, labels
        )
        self.work += found.work
        return Labelled(labels, found.upper, found.exact, found.error)

    def branched(self, depth: int, last: int, deadline: core.Deadline) -> Labelled:
        """Take the best open cases of a depth, fix more variables, and return the new cases."""
        labels, upper = self.open.pop(depth)
        batch = max(1, CASES // self.most)
        sizes = self.logs.flat.num_labels[self.order[::-1]]
        more, width = 1, int(sizes[depth])
        while depth + more < last and len(labels) * width * sizes[depth + more] <= batch:
            width *= int(sizes[depth + more])
            more += 1
        count = min(len(labels), max(1, batch // width))
        rank = np.argsort(-upper)
        chosen, rest = rank[:count], rank[count:]
        if len(rest):
            self.open[depth] = labels[rest], upper[rest]
        states = np.indices(sizes[depth : depth + more].tolist()).reshape(more, -1).T
        grown = np.hstack(
            [np.repeat(labels[chosen], len(states), axis=0), np.tile(states, (count, 1))]
        )
        try:
            found = self.evaluated(grown, deadline)
        except core.OutOfTime:
            self.open[depth] = labels, upper
            raise
        limit = np.repeat(upper[chosen], len(states))  # that of the case before, where it is less
        return found if found.exact else found._replace(upper=np.minimum(found.upper, limit))

    def taken(self, depth: int, count: int) -> Ints:
        """Remove the best open cases of a depth and return their labels."""
        labels, upper = self.open.pop(depth)
        rank = np.argsort(-upper)
        chosen, rest = rank[:count], rank[count:]
        if len(rest):
            self.open[depth] = labels[rest], upper[rest]
        return labels[chosen]

    def affordable(self, entries: int) -> bool:
        """Whether another evaluation stays within a number of table entries in all."""
        return self.work + max(1, CASES // self.most) * self.root_work <= entries

    def put(self, cases: Labelled) -> None:
        """Add open cases."""
        keep = cases.upper > -math.inf
        labels, upper = cases.labels[keep], cases.upper[keep]
        depth = labels.shape[1]
        if depth in self.open:
            before = self.open[depth]
            labels, upper = np.vstack([before[0], labels]), np.concatenate([before[1], upper])
        if len(upper):
            self.open[depth] = labels, upper


class SumSearch:
    """Bounds on log Z by cases: exact sums of the heavy ones, upper bounds of the others."""

    def __init__(self, cases: Cases) -> None:
        self.cases, self.leaves = cases, Leaves(cases.logs, cases.order)
        self._upper: list[float] = []
        self._lower: list[float] = []
        if cases.root.exact:
            self._close(cases.root.upper - 2 * cases.root.error, cases.root.upper)
            cases.open.clear()

    def _close(self, lower: Floats, upper: Floats) -> None:
        self._upper.append(_log_sum(upper, 1))
        self._lower.append(_log_sum(lower, -1))

    def step(self, deadline: core.Deadline) -> bool:
        """Branch on the cases of one depth that weigh most; return False if none are open."""
        open_ = self.cases.open
        if not open_:
            return False
        depth = max(open_, key=lambda d: _log_sum(open_[d][1], 1))
        leaves = self.leaves
        if depth == leaves.depth:
            deadline.require()
            chosen = self.cases.taken(depth, max(1, CASES // leaves.entries))
            self.cases.work += len(chosen) * leaves.entries
            self._close(*leaves.sums(chosen))
            return True
        last = leaves.depth if leaves.depth is not None else self.cases.logs.n
        found = self.cases.branched(depth, last, deadline)
        if found.exact:
            self._close(found.upper - 2 * found.error, found.upper)
        else:
            self.cases.put(found)
        return True

    @property
    def lower(self) -> float:
        """A lower bound on log Z."""
        return _log_sum(np.array(self._lower), -1)

    @property
    def upper(self) -> float:
        """An upper bound on log Z."""
        uppers = [upper for _, upper in self.cases.open.values()]
        return _log_sum(np.concatenate([*uppers, np.array(self._upper)]), 1)


def _log_sum(values: Floats, up: int) -> float:
    """Return log Σ exp(values), rounded up (1) or down (-1)."""
    if not len(values) or values.max() == -math.inf:
        return -math.inf
    top = float(values.max())
    total = top + math.log(float(np.exp(values - top).sum()))
    return total + up * EPS * (2 * len(values) + 8 + 4 * (abs(total) + abs(top)))

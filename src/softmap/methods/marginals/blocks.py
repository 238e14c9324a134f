"""Lower bounds on log Z by mean field over blocks of variables, with exact sums inside them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from softmap import core
from softmap.machine import usable_cores
from softmap.methods.marginals.tables import EPS, Ints, LogTables, table_sizes
from softmap.model.potentials.base import offsets
from softmap.relaxation.dual import Floats
from softmap.relaxation.flat import FlatModel, elimination_order


@dataclass(eq=False)
class MeanFieldBlock:
    """Consecutive variables with the tables among them, and their distribution q.

    q is proportional to exp of the tables plus `field`; `log_z` is the logarithm of its sum,
    `error` the rounding error of that, and `means` are the marginals of the variables.
    """

    flat: FlatModel
    order: Ints
    states: slice
    field: Floats
    log_z: float = 0.0
    error: float = 0.0
    means: Floats | None = None

    def update(self, field: Floats) -> None:
        """Compute q for another field."""
        logs = replace(self.flat, unary=self.flat.unary + field)
        native = core.LogSums(logs.native, self.order, usable_cores())
        native.up(core.Deadline())
        native.down(core.Deadline())
        self.field, self.log_z, self.error = field, native.log_sum, native.error
        self.means = native.marginals()[0]


class BlockMeanField:
    """The largest -η E_q[energy] + H(q) over products q of distributions of blocks.

    Parameters
    ----------
    logs : LogTables
        The tables. Those of three or more variables in different blocks count as their smallest
        entry.
    most : int
        Largest mean number of entries of the tables of variable elimination inside a block.
    deadline : core.Deadline
        When to stop; `core.OutOfTime` is raised before the first bound is known.
    """

    def __init__(self, logs: LogTables, most: int, deadline: core.Deadline) -> None:
        self.logs, self._deadline, flat = logs, deadline, logs.flat
        self._offset, self._where = offsets(flat.num_labels), offsets(table_sizes(flat))
        start = flat.scope_start[:-1]
        reduce = (np.minimum.reduceat, np.maximum.reduceat)
        self._low, self._high = (r(flat.scope, start) if len(start) else start for r in reduce)
        self.blocks: list[MeanFieldBlock] = []
        at, block_of = 0, np.zeros(logs.n, np.int64)
        while at < logs.n:
            end = self._end(at, most)
            block_of[at:end] = len(self.blocks)
            self.blocks.append(self._block(at, end))
            at = end
        self._cut(block_of)

    def _inside(self, begin: int, end: int) -> FlatModel:
        """Return the variables begin..end-1 with the tables among them."""
        flat, where, offset = self.logs.flat, self._where, self._offset
        chosen = np.flatnonzero((self._low >= begin) & (self._high < end))
        sizes = np.diff(flat.scope_start)[chosen]
        pick = np.repeat(flat.scope_start[chosen] - offsets(sizes)[:-1], sizes)
        many = np.diff(where)[chosen]
        entry = np.repeat(where[chosen] - offsets(many)[:-1], many)
        return FlatModel(
            flat.num_labels[begin:end],
            flat.unary[offset[begin] : offset[end]],
            offsets(sizes),
            flat.scope[pick + np.arange(len(pick))] - begin,
            flat.tables[entry + np.arange(len(entry))],
            0.0,
        )

    def _end(self, begin: int, most: int) -> int:
        """Return the end of the longest block that is narrow enough, by doubling and bisection."""

        def narrow(end: int) -> bool:
            self._deadline.require()
            limit = float(most) * (end - begin)
            return elimination_order(self._inside(begin, end), limit, tries=2).found

        good, step, n = begin + 1, 1, self.logs.n
        while good < n and narrow(min(n, good + step)):
            good, step = min(n, good + step), 2 * step
        bad = min(n + 1, good + step)
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if middle <= n and narrow(middle) else (good, middle)
        return good

    def _block(self, begin: int, end: int) -> MeanFieldBlock:
        flat, states = self._inside(begin, end), slice(self._offset[begin], self._offset[end])
        order = elimination_order(flat, math.inf, tries=2).variables
        return MeanFieldBlock(flat, order, states, np.zeros(len(flat.unary)))

    def _cut(self, block_of: Ints) -> None:
        """Collect the tables between blocks: pairs, and a constant for larger tables."""
        self._pairs: list[tuple[slice, slice, Floats]] = []
        self._near: list[list[tuple[slice, slice, Floats]]] = [[] for _ in self.blocks]
        self._least, self._size = 0.0, 1.0
        flat = self.logs.flat
        for f in np.flatnonzero(block_of[self._low] != block_of[self._high]).tolist():
            scope = flat.scope[flat.scope_start[f] : flat.scope_start[f + 1]]
            table = flat.tables[self._where[f] : self._where[f + 1]]
            self._size += float(np.abs(table[np.isfinite(table)]).max(initial=0.0))
            if len(scope) > 2:
                self._least += float(table.min())
                continue
            one, other = (slice(self._offset[v], self._offset[v + 1]) for v in scope)
            square = table.reshape(flat.num_labels[scope])
            self._pairs.append((one, other, square))
            first, second = block_of[scope]
            self._near[first].append((one, other, square))
            self._near[second].append((other, one, square.T))

    def _field(self, b: int, means: Floats) -> Floats:
        """Return the expected entries of the tables of a block with others, for each label."""
        out = np.zeros_like(means)
        for own, other, table in self._near[b]:
            out[own] += _expected(table, means[other])
        return out[self.blocks[b].states]

    def lower(self, rounds: int, labels: Ints | None = None) -> float:
        """Return the best bound of some rounds of exact updates, rounding errors subtracted.

        Parameters
        ----------
        rounds : int
            Largest number of rounds.
        labels : int array, optional
            A labelling to begin with. By default, the first round ignores the tables between a
            block and those after it.
        """
        if math.isinf(self._least):
            return -math.inf
        means, best = np.zeros(int(self._offset[-1])), -math.inf
        if labels is not None:
            means[self._offset[:-1] + labels] = 1.0
        for _ in range(max(1, rounds)):
            for b, block in enumerate(self.blocks):
                if self._deadline.passed:
                    return best
                block.update(self._field(b, means))
                if not math.isfinite(block.log_z):
                    return best
                means[block.states] = block.means
            value = self._value(means)
            if len(self.blocks) == 1 or not value > best + 1e-7 * abs(value):
                return max(best, value)
            best = value
        return best

    def _value(self, means: Floats) -> float:
        """Return the free energy of q minus the rounding errors of sums and marginals."""
        cut = sum(_mean(_expected(t, means[other]), means[one]) for one, other, t in self._pairs)
        inner = sum(b.log_z - _mean(b.field, means[b.states]) for b in self.blocks)
        value = self.logs.shift + self._least + inner + cut
        # a marginal is the exponential of a sum of errors on a path of at most n buckets
        errors = sum(block.error for block in self.blocks)
        fields = (b.field[np.isfinite(b.field)] for b in self.blocks)
        sizes = self._size + sum(float(np.abs(field).sum()) for field in fields)
        wrong = min(1.0, 8.0 * (self.logs.n + 2) * errors)
        count = self.logs.n + len(self._pairs) + 8
        margin = errors + self.logs.error + 2 * wrong * sizes
        return value - 2 * margin - EPS * count * (abs(value) + abs(self.logs.shift) + sizes)


def _expected(table: Floats, mean: Floats) -> Floats:
    """Return the expected entry of each row; -inf if a forbidden one has positive probability."""
    possible = mean > 0
    expected: Floats = table @ mean if possible.all() else table[:, possible] @ mean[possible]
    return expected


def _mean(values: Floats, mean: Floats) -> float:
    """Return the expected value; values of probability 0 do not count."""
    possible = mean > 0
    return float(values[possible] @ mean[possible])

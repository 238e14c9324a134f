"""Weighted mini-buckets: upper bounds on sums and maxima over labels, for models of any width.

Variables are eliminated one by one. If the tables of a variable are too large together, they are
split into parts f_1, ..., f_R. Hölder's inequality bounds the sum of the product:
Σ_x Π_r f_r(x) ≤ Π_r (Σ_x f_r(x)^(1/w_r))^(w_r) for weights w_r > 0 that sum to 1. The limit w_r = 0
is the maximum. Functions of shared variables may be moved between the parts; they are chosen so
that the power sums of all parts agree there (moment matching).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softmap import core
from softmap.methods.marginals.tables import EPS, Ints, LogTables
from softmap.relaxation.dual import Floats

Table = tuple[tuple[int, ...], Floats]
"""Variables in the order of elimination, and values: axis 0 are cases, the others the variables."""


class MiniBuckets:
    """Upper bounds on log max Σ exp, one for each case of fixed labels.

    Parameters
    ----------
    logs : LogTables
        The tables.
    order : int sequence
        All variables: first those that are summed over, in the order of elimination, then the
        maximised ones in this order. Those at the end may be fixed.
    maxima : int
        Number of variables that are maximised.
    most : int
        Largest number of entries of a table, for each case.
    deadline : core.Deadline
        When to stop; `core.OutOfTime` is raised then.
    cases : int array (k, f), optional
        Labels of the last variable of the order, of the one before it, and so on.

    Attributes
    ----------
    upper : float64 array
        The bound of each case; rounding errors are included.
    error : float
        The part of `upper` that is due to rounding errors.
    exact : bool
        Whether no bucket was split: the value is between `upper - 2 * error` and `upper`.
    work : int
        Number of table entries, of all cases.
    """

    def __init__(
        self,
        logs: LogTables,
        order: Sequence[int],
        maxima: int,
        most: int,
        deadline: core.Deadline,
        cases: Ints | None = None,
    ) -> None:
        fixed = np.zeros((1, 0), np.int64) if cases is None else cases
        free = len(order) - fixed.shape[1]
        self.exact, self.work, self._most, self._require = True, 0, most, deadline.require
        self._labels = logs.flat.num_labels[np.asarray(order, np.int64)].tolist()
        self._total, self._size, self._terms = np.full(len(fixed), logs.shift), 1.0, 1
        self._buckets: list[list[Table]] = [[] for _ in range(free)]
        self._fill(logs, order, fixed)
        for v in range(free):
            self._eliminate(v, v >= len(order) - maxima)
        steps = len(order) + self._terms + max(self._labels, default=1) + 32
        sizes = self._size + np.where(np.isfinite(self._total), np.abs(self._total), 0.0)
        self.error = logs.error + 4 * EPS * steps * float(sizes.max(initial=0.0))
        self.upper: Floats = self._total + self.error

    def _fill(self, logs: LogTables, order: Sequence[int], fixed: Ints) -> None:
        """Put the tables of the model, for each case, into the buckets of their first variables."""
        place, free = {v: k for k, v in enumerate(order)}, len(self._buckets)
        for scope, table in logs.factors():
            self._require()
            axes = sorted(range(len(scope)), key=lambda a: place[scope[a]])
            at = [place[scope[a]] for a in axes]
            kept = sum(p < free for p in at)
            values = table.transpose(axes)[None]
            if kept < len(at):
                chosen = tuple(fixed[:, len(order) - 1 - p] for p in at[kept:])
                values = values[0][(..., *chosen)]  # the cases are the last axis
                values = values.transpose(kept, *range(kept))
            self._add(tuple(at[:kept]), values)

    def _add(self, scope: tuple[int, ...], values: Floats) -> None:
        if scope:
            self._buckets[scope[0]].append((scope, values))
        else:
            self._note(values)
            self._total = self._total + values.reshape(-1)

    def _note(self, values: Floats) -> None:
        """Add the size of some numbers to the sum of all sizes, for the bound on rounding."""
        finite = np.isfinite(values)
        low, high = (f(values, where=finite, initial=0.0) for f in (np.min, np.max))
        self._size += max(-float(low), float(high))

    def _entries(self, scope: frozenset[int]) -> int:
        size = 1
        for v in scope:
            size *= self._labels[v]
        return size

    def _parts(self, tables: list[Table]) -> list[list[Table]]:
        """Split tables, each into the part that grows least; the largest first."""
        parts: list[tuple[frozenset[int], list[Table]]] = []
        for table in sorted(tables, key=lambda t: -t[1][0].size):
            grown = [(scope | frozenset(table[0]), k) for k, (scope, _) in enumerate(parts)]
            fitting = [(len(s) - len(parts[k][0]), k, s) for s, k in grown]
            fitting = [f for f in fitting if self._entries(f[2]) <= self._most]
            if fitting:
                _, k, scope = min(fitting, key=lambda f: f[:2])
                parts[k] = scope, [*parts[k][1], table]
            else:
                parts.append((frozenset(table[0]), [table]))
        return [part for _, part in parts]

    def _joined(self, tables: list[Table]) -> Table:
        self._require()
        scope = tuple(sorted({v for s, _ in tables for v in s}))
        out = np.zeros(
            (max(len(values) for _, values in tables), *(self._labels[v] for v in scope))
        )
        for inside, values in tables:
            out += self._spread(scope, inside, values)
        self._note(out)
        self.work += out.size
        return scope, out

    def _spread(self, scope: tuple[int, ...], inside: Sequence[int], values: Floats) -> Floats:
        """Return a table with axes of length 1 for the variables that it does not depend on."""
        return values.reshape(-1, *(self._labels[v] if v in inside else 1 for v in scope))

    def _eliminate(self, v: int, maximise: bool) -> None:
        tables, self._buckets[v] = self._buckets[v], []
        parts = [self._joined(part) for part in self._parts(tables)]
        self._terms = max(self._terms, len(tables) + len(parts) ** 2)
        weight = 0.0 if maximise else 1.0 / len(parts)
        if len(parts) > 1:
            self.exact = False
            for a in range(len(parts)):
                for b in range(a):
                    parts[a], parts[b] = self._matched(parts[a], parts[b], weight)
        for scope, values in parts:
            result = power_sum(values, weight, (1,))[:, 0]
            top = result.max(axis=tuple(range(1, result.ndim)), keepdims=True)
            top = np.where(np.isfinite(top), top, 0.0)
            self._note(top)
            self._total = self._total + top.reshape(-1)
            self._add(scope[1:], result - top)

    def _matched(self, one: Table, other: Table, weight: float) -> tuple[Table, Table]:
        """Move a function of the shared variables so that the power sums of both agree there."""
        self._require()
        shared = [v for v in one[0] if v in other[0]]
        sums = [
            power_sum(t, weight, tuple(k + 1 for k, v in enumerate(s) if v not in shared))
            for s, t in (one, other)
        ]
        flat = [s.reshape(len(s), *(self._labels[v] for v in shared)) for s in sums]
        with np.errstate(invalid="ignore"):
            moved = 0.5 * (flat[1] - flat[0])
        moved = np.where(np.isfinite(moved), moved, 0.0)
        self._note(moved)
        return (
            (one[0], one[1] + self._spread(one[0], shared, moved)),
            (other[0], other[1] - self._spread(other[0], shared, moved)),
        )


def power_sum(values: Floats, weight: float, axes: tuple[int, ...]) -> Floats:
    """Return w log Σ exp(values / w) over some axes, which are kept; the maximum if w = 0."""
    top: Floats = values.max(axis=axes, keepdims=True)
    if weight == 0.0 or not axes:
        return top
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        sums = np.exp((values - safe) / weight).sum(axis=axes, keepdims=True)
        out: Floats = safe + weight * np.log(sums)
    return out

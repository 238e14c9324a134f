"""Models as tables of logarithms, with the rounding error of making them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.errors import OptionError
from softmap.model import Network
from softmap.model.potentials.base import offsets
from softmap.relaxation.dual import Floats
from softmap.relaxation.flat import FlatModel, flatten

Ints = NDArray[np.int64]
EPS = float(np.finfo(np.float64).eps)
LARGEST = 1e307  # sum of the largest logarithms of all tables: sums of them stay finite


@dataclass(frozen=True)
class LogTables:
    """The tables -η C of a model, each with its largest entry 0.

    Attributes
    ----------
    flat : FlatModel
        The tables; they hold logarithms, not costs.
    shift : float
        What was subtracted from all tables; log Z of the model is that of `flat` plus `shift`.
    error : float
        A bound on the rounding errors of `shift` and of all tables together.
    entry_error : float, default +inf
        A bound on the rounding errors of one entry of each table together, without `shift`.
    """

    flat: FlatModel
    shift: float
    error: float
    entry_error: float = math.inf

    @classmethod
    def of(cls, model: Network, eta: float) -> LogTables:
        """Return the tables of a model; raise `OptionError` if η times its costs is too large."""
        flat = flatten(model)
        with np.errstate(over="ignore"):
            unary, taken, size = _logs(flat.unary, offsets(flat.num_labels), eta)
            tables, more, sizes = _logs(flat.tables, offsets(table_sizes(flat)), eta)
            total = float(size.sum() + sizes.sum() + eta * abs(model.constant))
        if not total <= LARGEST:
            raise OptionError(f"eta={eta:g}: its products with the costs are beyond 1e307")
        shift = -eta * float(core.careful_sum(np.concatenate([[model.constant], taken, more])))
        # products of weights and tables are rounded before the logarithms are
        error = 4 * EPS * (abs(shift) + total)
        logs = replace(flat, unary=unary, tables=tables, constant=0.0)
        return cls(
            logs,
            shift,
            error,
            4 * EPS * (_reach(unary, flat.num_labels) + _reach(tables, table_sizes(flat))),
        )

    @property
    def n(self) -> int:
        """The number of variables."""
        return len(self.flat.num_labels)

    def factors(self) -> list[tuple[tuple[int, ...], Floats]]:
        """Return all tables with their variables, those of single variables first."""
        flat = self.flat
        labels = flat.num_labels
        at = offsets(labels)
        out: list[tuple[tuple[int, ...], Floats]]
        out = [((v,), flat.unary[at[v] : at[v + 1]]) for v in range(self.n)]
        start, where = flat.scope_start, offsets(table_sizes(flat))
        for f in range(len(start) - 1):
            scope = flat.scope[start[f] : start[f + 1]]
            table = flat.tables[where[f] : where[f + 1]].reshape(labels[scope])
            out.append((tuple(scope.tolist()), table))
        return out

    def given(self, variables: Sequence[int], labels: Sequence[int]) -> LogTables:
        """Return the tables of the other variables, in their order, with some labels fixed."""
        fixed = dict(zip(variables, labels, strict=True))
        rest = [v for v in range(self.n) if v not in fixed]
        number = {v: k for k, v in enumerate(rest)}
        kept: list[tuple[tuple[int, ...], Floats]] = []
        shift = self.shift
        for scope, table in self.factors():
            part = table[tuple(fixed.get(v, slice(None)) for v in scope)]
            inside = tuple(number[v] for v in scope if v in number)
            if inside:
                kept.append((inside, np.asarray(part)))
            else:
                shift += float(part)
        unary = [np.zeros(int(d)) for d in self.flat.num_labels[rest]]
        for scope, table in kept:
            if len(scope) == 1:
                unary[scope[0]] = unary[scope[0]] + table
        large = [(scope, table) for scope, table in kept if len(scope) > 1]
        total = sum(float(np.abs(t[np.isfinite(t)]).max(initial=0.0)) for _, t in kept)
        size = abs(shift) + abs(self.shift) + total if math.isfinite(shift) else total
        flat = FlatModel(
            self.flat.num_labels[rest],
            np.concatenate([*unary, np.zeros(0)]),
            offsets(np.array([len(scope) for scope, _ in large], np.int64)),
            np.array([v for scope, _ in large for v in scope], np.int64),
            np.concatenate([*(table.ravel() for _, table in large), np.zeros(0)]),
            0.0,
        )
        return LogTables(flat, shift, self.error + EPS * (self.n + len(kept)) * size)


def table_sizes(flat: FlatModel) -> Ints:
    """Return the number of entries of each factor."""
    if len(flat.scope_start) < 2:
        return np.zeros(0, np.int64)
    return np.multiply.reduceat(flat.num_labels[flat.scope], flat.scope_start[:-1])


def _reach(logs: Floats, sizes: Ints) -> float:
    """The sum over all blocks of the largest finite |logarithm|."""
    if not len(logs):
        return 0.0
    finite = np.where(np.isfinite(logs), logs, 0.0)
    return float(-np.minimum.reduceat(finite, offsets(sizes)[:-1]).sum())


def _logs(costs: Floats, offset: Ints, eta: float) -> tuple[Floats, Floats, Floats]:
    """Return -η (costs - smallest of the block), the smallest, and the largest |η cost|."""
    if not len(costs):
        return costs, np.zeros(0), np.zeros(0)
    least = np.minimum.reduceat(costs, offset[:-1])
    least = np.where(np.isfinite(least), least, 0.0)
    size = eta * np.maximum.reduceat(np.where(np.isfinite(costs), np.abs(costs), 0.0), offset[:-1])
    return -eta * (costs - np.repeat(least, np.diff(offset))), least, size

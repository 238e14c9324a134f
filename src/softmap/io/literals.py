"""Costs of conjunctions of literals (true and false variables), in bulk, to a model."""

from __future__ import annotations

import numpy as np

from softmap.io.assembly import Assembly, Costs, Ints, check_range
from softmap.io.limits import check_entries
from softmap.io.streams import Content
from softmap.model import Model
from softmap.model.many import Many, Or

__all__ = ["LARGEST_TABLE", "Conjunctions"]

_PAIR = 8  # memory of a pair and of a joint state beside their tables, in costs
_JOINT = 16
LARGEST_TABLE = 6  # variables of a table; beyond, chains are smaller and as tight
_RUNNING = 40  # costs and memory of one running variable


class Conjunctions:
    """Collects costs to be paid where all literals of a row hold.

    A literal is +v or -v for variable v from 1 on; label 1 of variable v - 1 makes +v true.
    """

    def __init__(self, n: int, content: Content) -> None:
        check_entries(2 * n, content.size, content.name)
        self.content = content
        self.n = n
        self.assembly = Assembly(np.full(n, 2), content.name)
        self.entries = 2 * n
        self._rows: dict[int, list[tuple[Ints, Costs]]] = {}

    def add(self, literals: Ints, costs: Costs) -> None:
        """Rows of k literals each, and what each row costs; a variable may stand there twice."""
        if not len(literals):
            return
        keys = _sorted_rows(2 * np.abs(literals) + (literals > 0))  # by variable
        variable = keys >> 1
        ordered = np.where(keys & 1, variable, -variable)
        again = variable[:, 1:] == variable[:, :-1]
        if again.any():
            odd = again.any(axis=1)
            self._add_odd(ordered[odd], costs[odd])
            ordered, costs = ordered[~odd], costs[~odd]
        if len(ordered):
            self._rows.setdefault(literals.shape[1], []).append((ordered, costs))

    def _add_odd(self, ordered: Ints, costs: Costs) -> None:
        """Rows with a variable more than once: once is enough, and both ways it never holds."""
        by_size: dict[int, list[tuple[list[int], float]]] = {}
        for row, cost in zip(ordered.tolist(), costs.tolist(), strict=True):
            kept = list(dict.fromkeys(row))
            if len({abs(v) for v in kept}) == len(kept):
                by_size.setdefault(len(kept), []).append((kept, cost))
        for part in by_size.values():
            self.add(np.array([r for r, _ in part]), np.array([c for _, c in part]))

    def add_table(self, variables: Ints, table: Costs) -> None:
        """Any costs of a few variables (from 0 on)."""
        self.reserve(table.size + _JOINT)
        self.assembly.add_factor(variables.tolist(), table)

    def add_many(self, factor: Many) -> None:
        """A factor over many variables (from 0 on), as a chain."""
        self.reserve(_RUNNING * len(factor.variables))
        self.assembly.add_many(factor)

    def reserve(self, entries: int) -> None:
        """Refuse what the file is too small for."""
        self.entries += entries
        check_entries(self.entries, self.content.size, self.content.name)

    def model(self) -> Model:
        """The model."""
        for k in sorted(self._rows):
            parts = self._rows.pop(k)
            literals = np.concatenate([rows for rows, _ in parts])
            costs = np.concatenate([costs for _, costs in parts])
            check_range(np.abs(costs), self.content.name)
            self._join(k, literals, costs)
        return self.assembly.build()

    def _join(self, k: int, literals: Ints, costs: Costs) -> None:
        if k == 0:
            self.assembly.add_constant(float(costs.sum()))
            return
        place = np.zeros(len(literals), dtype=np.int64)
        for axis in range(k):
            place = 2 * place + (literals[:, axis] > 0)
        scopes = np.abs(literals) - 1
        if k == 1:
            self.assembly.unary += np.bincount(2 * scopes[:, 0] + place, costs, 2 * self.n)
            return
        if k > LARGEST_TABLE:
            for row, cost in zip(literals, costs.tolist(), strict=True):
                # not all of them: one at least has the other label
                self.add_many(Or(np.abs(row) - 1, (row < 0).astype(np.int64), cost))
            return
        number, first = _numbered(scopes, self.n)
        self.reserve(len(first) * (2**k + _JOINT if k > 2 else _PAIR))
        flat = np.bincount(number * 2**k + place, costs, len(first) * 2**k)
        tables: Costs = flat.astype(np.float64, copy=False).reshape(len(first), *[2] * k)
        if k == 2:
            self.assembly.add_tables(scopes[first], tables)
        else:
            self.assembly.add_alike(scopes[first], tables)


def _sorted_rows(keys: Ints) -> Ints:
    """Each row in order; of few columns, pairs of whole columns are exchanged."""
    k = keys.shape[1]
    if k > 4:
        return np.sort(keys, axis=1)
    columns = [keys[:, a] for a in range(k)]
    for last in range(k - 1, 0, -1):
        for a in range(last):
            one, other = columns[a], columns[a + 1]
            columns[a], columns[a + 1] = np.minimum(one, other), np.maximum(one, other)
    return np.column_stack(columns) if k else keys


def _numbered(scopes: Ints, n: int) -> tuple[Ints, Ints]:
    """A number for each different row, and a place where each stands first."""
    k = scopes.shape[1]
    if float(n) ** k < 2**62:
        key = scopes[:, 0].copy()
        for axis in range(1, k):
            key *= n
            key += scopes[:, axis]
        ordered = np.sort(key)
        if (ordered[1:] != ordered[:-1]).all():  # none twice: as the file has them
            each = np.arange(len(key))
            return each, each
        order = np.argsort(key)
        fresh = np.append(True, ordered[1:] != ordered[:-1])
    else:
        order = np.lexsort(scopes.T[::-1])
        fresh = np.append(True, (scopes[order[1:]] != scopes[order[:-1]]).any(axis=1))
    number = np.empty(len(scopes), np.int64)
    number[order] = np.cumsum(fresh) - 1
    return number, order[fresh]

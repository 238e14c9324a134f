"""Functions used by several factors: kept as shared tables, whatever order they come in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softmap.io.assembly import Assembly, Costs
from softmap.model.potentials import SharedTables

__all__ = ["SharedCollector"]


class SharedCollector:
    """Pairwise uses of shared tables, handed over as one group; other arities go straight in."""

    def __init__(self, assembly: Assembly) -> None:
        self.assembly = assembly
        self._tables: list[Costs] = []
        self._number: dict[int, int] = {}
        self._edges: list[Sequence[int]] = []
        self._index: list[int] = []

    def add(self, scope: Sequence[int], table: Costs) -> None:
        """Use `table` (the same object each time) on a scope."""
        if len(scope) != 2:
            self.assembly.add_factor(scope, table)
            return
        number = self._number.setdefault(id(table), len(self._tables))
        if number == len(self._tables):
            self._tables.append(table)
        self._edges.append(scope)
        self._index.append(number)

    def flush(self) -> None:
        """Hand the collected edges over."""
        if self._edges:
            potential = SharedTables(self._tables, np.array(self._index))
            self.assembly.add_potential(np.array(self._edges), potential)

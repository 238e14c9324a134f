"""Limits on the work of the checker that remember what was counted."""

from __future__ import annotations

from softmap.verification.limit import COPIES, Limits


class Ledger(Limits):
    """Limits of any effort, and the entries of each sum of tables.

    Attributes
    ----------
    sums : list of int
        The entries of each sum, times the number of tables.
    """

    def __init__(self) -> None:
        super().__init__(1e9)
        self.sums: list[int] = []

    def spend(self, shape: list[int], tables: int, copies: int = COPIES) -> None:
        self.sums.append(tables)
        for size in shape:
            self.sums[-1] *= size
        super().spend(shape, tables, copies)

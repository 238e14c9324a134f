"""What the check of a proof may cost: a short file can ask for tables of any size."""

from __future__ import annotations

import math

LARGEST = 1 << 24  # entries of one table at effort 1: 128 MiB, and a few copies of it
ENTRIES = 1 << 31  # entries of all sums of tables at effort 1: some seconds (decision 82)


class Refused(Exception):
    """Raised if a check would cost more than the checker may spend; the proof may be right."""


class TableLimit:
    """Counts the table entries that a check computes, and refuses to exceed a limit.

    Parameters
    ----------
    factor : float, default 1
        Multiplies the limits on the entries of one table and of all tables together.
    """

    def __init__(self, factor: float = 1.0) -> None:
        self._largest, self._left = LARGEST * factor, ENTRIES * factor

    def spend(self, shape: list[int], tables: int) -> None:
        """Count the entries of a sum of `tables` tables before it is computed.

        Parameters
        ----------
        shape : list of int
            The shape of the sum.
        tables : int
            Number of tables that are added to a table of this shape.
        """
        entries = math.prod(shape)
        self._left -= entries * tables
        if entries > self._largest or self._left < 0:
            raise Refused(
                f"the check needs a table of {entries:.3g} entries, or more of them in all, than "
                "its effort allows; allow a larger effort"
            )

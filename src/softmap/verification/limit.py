"""What the check of a proof may cost: a short file can ask for tables of any size.

The unit of work is one entry of an array that numpy adds or compares, a few nanoseconds. Limits
grow with the model and with the file, so that honest proofs of any length are checked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

ITEM = 32  # work on one number in a list of Python: 50 ns and more
CALL = 1 << 10  # work on one record, or one call of numpy: 2 µs and more


class Refused(Exception):
    """Raised if a check would cost more than the checker may spend; the proof may be right."""


@dataclass(frozen=True)
class Amount:
    """A limit at effort 1: a constant, and parts that grow with the file and the model.

    Attributes
    ----------
    constant : int
        The limit of an empty file of an empty model.
    per_byte : int
        Its growth per byte of the file.
    per_cost : int
        Its growth per cost of the model: unary costs and table entries.
    """

    constant: int
    per_byte: int = 0
    per_cost: int = 0

    def of(self, factor: float, file: int, costs: int) -> float:
        """The limit for a file and a model; `factor` is the effort."""
        return factor * (self.constant + self.per_byte * file + self.per_cost * costs)


WORK = Amount(1 << 31, 3 << 12, 1 << 8)  # ten seconds, and fifty per MB (decision 139)
BYTES = Amount(1 << 25, 1 << 5, 1 << 5)  # of records after decompression
MEMORY = Amount(1 << 26, 1 << 4, 1 << 12)  # bytes at a time (decision 160)
COPIES = 3  # of a table, while it is computed


class Limits:
    """Counts the work of a check and what it keeps in memory, and refuses to exceed a limit.

    Parameters
    ----------
    factor : float, default 1
        The effort, which multiplies all limits.
    file : int, default 0
        Bytes of the file.
    costs : int, default 0
        Unary costs and table entries of the model.

    Attributes
    ----------
    bytes : float
        The largest number of bytes of records after decompression.
    """

    def __init__(self, factor: float = 1.0, file: int = 0, costs: int = 0) -> None:
        self._work = self._left = WORK.of(factor, file, costs)
        self._memory = self._free = MEMORY.of(factor, file, costs)
        self.bytes = BYTES.of(factor, file, costs)

    @property
    def spent(self) -> tuple[float, float]:
        """The fractions of the limits of work and of memory that were used."""
        return 1 - self._left / self._work, 1 - self._free / self._memory

    @property
    def free(self) -> float:
        """Bytes of memory that are free."""
        return self._free

    def spend(self, shape: list[int], tables: int, copies: int = COPIES) -> None:
        """Count the entries of a sum of `tables` tables, and their bytes, before it is computed.

        Parameters
        ----------
        shape : list of int
            The shape of the sum.
        tables : int
            Number of tables that are added to a table of this shape.
        copies : int, default 3
            Number of arrays of this shape that exist at a time.
        """
        entries = math.prod(shape)
        if 8 * copies * entries > self._free:
            self.refuse(f"a table of {entries:.3g} entries", self._free / (8 * copies))
        self.work(entries * tables)

    def work(self, amount: int) -> None:
        """Count work in entries of arrays, before it is done."""
        self._left -= amount
        if self._left < 0:
            self.refuse("the work on more table entries", self._work)

    def keep(self, amount: int) -> None:
        """Count bytes that stay in memory; of a negative number, that are free again."""
        self.require(amount)
        self._free -= amount

    def require(self, amount: int) -> None:
        """Refuse what takes more bytes than are free, if only for a moment."""
        if amount > self._free:
            self.refuse("more bytes of memory for its records", self._memory)

    def require_bytes(self, count: int) -> None:
        """Refuse records of too many bytes."""
        if count > self.bytes:
            self.refuse(f"{count:.4g} bytes of records, after decompression", self.bytes)

    def refuse(self, needed: str, limit: float) -> None:
        """Raise `Refused`: what is needed, and the limit."""
        raise Refused(
            f"the check needs {needed}; its limit, for a model and a file of this size, is "
            f"{limit:.4g}: allow a larger effort"
        )


class Held:
    """Bytes that stay in memory for an object: they are free again when it is released."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._amount = limits, 0

    def keep(self, amount: int) -> None:
        """Count bytes; of a negative number, that are free again."""
        self._limits.keep(amount)
        self._amount += amount

    def release(self) -> None:
        """Free all bytes of the object, which is not used any more."""
        self.keep(-self._amount)

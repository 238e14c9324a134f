"""The arrays of a run on a device: messages, points, the best of each, and sums over blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from softmap.methods.cuda.arena import Arena

__all__ = ["Kept", "Messages", "Points", "Sums"]


@dataclass(frozen=True, eq=False)
class Messages:
    """The messages of a run.

    Attributes
    ----------
    msg : array
        Current messages.
    prev : array
        Earlier backward messages, for momentum.
    polished : array
        Messages after hard-min passes, whose bound is computed.
    shift : array
        Constant subtracted from each message by the last backward half pass.
    """

    msg: Any
    prev: Any
    polished: Any
    shift: Any

    @classmethod
    def of(cls, arena: Arena) -> Messages:
        """Zeros."""
        zeros, dtype = arena.device.zeros, arena.dtype
        msg, prev, polished = (zeros(arena.message_size, dtype) for _ in range(3))
        return cls(msg, prev, polished, zeros(len(arena.tiling.mate), dtype))


@dataclass(frozen=True, eq=False)
class Points:
    """Node arrays that a check computes.

    Attributes
    ----------
    share : array
        Reduced cost of every node state, divided by the number of chains through the node.
    mu : array
        Node marginals.
    label : array
        The label of largest marginal of every node.
    mean : array or None
        The running average of marginals that passes update; None if nothing is averaged.
    mean_mu : array or None
        The averaged marginals, normalised.
    """

    share: Any
    mu: Any
    label: Any
    mean: Any = None
    mean_mu: Any = None

    @classmethod
    def of(cls, arena: Arena, averaging: bool) -> Points:
        """Zeros."""
        zeros, costs = arena.device.zeros, arena.tiling.cost_size
        means = (zeros(costs, np.float32), zeros(costs, np.float64)) if averaging else ()
        share, mu = (zeros(costs, np.float64) for _ in range(2))
        return cls(share, mu, zeros(arena.threads, np.int32), *means)


@dataclass(frozen=True, eq=False)
class Kept:
    """The best of a run so far: messages of the bound and of the point, marginals, labels."""

    lam: Any
    msg: Any
    mu: Any
    label: Any

    @classmethod
    def of(cls, arena: Arena) -> Kept:
        """Zeros."""
        zeros = arena.device.zeros
        lam, msg = (zeros(arena.message_size, arena.dtype) for _ in range(2))
        return cls(
            lam, msg, zeros(arena.tiling.cost_size, np.float64), zeros(arena.threads, np.int32)
        )


class Sums:
    """Rows of sums over all nodes: partial sums per block, and the totals.

    Parameters
    ----------
    arena : Arena
    rows : int
        Number of rows.
    nearest : int
        The first rows, this many, are rounded to nearest; all further rows are rounded down.
    """

    def __init__(self, arena: Arena, rows: int, nearest: int) -> None:
        self._device, self._blocks, self._nearest = arena.device, arena.blocks, nearest
        self._parts = arena.device.zeros(rows * arena.blocks, np.float64)
        self._totals = arena.device.zeros(rows, np.float64)

    def row(self, number: int) -> Any:
        """Return the partial sums from a row on (a view)."""
        return self._parts[number * self._blocks :]

    def add_up(self) -> None:
        """Compute the totals on the device."""
        rows = len(self._totals)
        given = [self._parts, self._totals, self._blocks, rows, self._nearest]
        self._device.launch("totals", rows * self._device.block, given)

    def totals(self) -> Any:
        """Return the totals, on the host."""
        return self._device.fetch(self._totals)

"""Auxiliary nodes: one per factor of three or more variables; its states are the joint states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softmap.model.potentials.base import Ints

__all__ = ["NO_AUXILIARIES", "Auxiliaries"]


@dataclass(frozen=True)
class Auxiliaries:
    """How the joint state of each auxiliary node follows from the labels of its members.

    Auxiliary `a` has state `Σ stride[k] * label[member[k]]` over `k` in `start[a]:start[a + 1]`.
    """

    start: Ints
    member: Ints
    stride: Ints

    def __len__(self) -> int:
        return len(self.start) - 1

    def states(self, labels: Ints) -> Ints:
        """Joint states for labellings of shape (..., variables)."""
        terms = labels[..., self.member] * self.stride
        total: Ints = np.add.reduceat(terms, self.start[:-1], axis=-1)
        return total


NO_AUXILIARIES = Auxiliaries(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))

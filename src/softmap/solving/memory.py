"""How much memory a run takes: said beforehand, so that none is begun that cannot end."""

from __future__ import annotations

import numpy as np

from softmap.errors import NotEnoughMemory
from softmap.machine import available_memory
from softmap.model import Model

__all__ = ["memory_needed", "require_memory"]

# Arrays over half-edge states: messages, those before, a copy that is polished; λ twice and κ
MESSAGES, JUDGED = 2.5, 3
EDGE = 350  # bytes per edge: the model, its layout, the schedule of passes and what sorts it
STATE = 44  # bytes per node state: costs in three orders, marginals
SMALL = 1 << 24  # bytes that are always there


def memory_needed(model: Model, dtype: str = "float64") -> int:
    """Bytes that solving a model takes at its peak, the model itself included.

    From the sizes of its arrays; measured peaks are within a fifth of it for models that take more
    than a few tens of megabytes.
    """
    item = np.dtype(dtype).itemsize
    halves, states = model.half_size, int(model.node_offset[-1])
    tables = sum(a.nbytes for p in model.potentials for a in p.arrays().values() if a.ndim > 1)
    packed = tables * item // 8  # tables of tiles lie side by side
    return int(
        halves * (MESSAGES * item + 8 * JUDGED) + EDGE * model.m + STATE * states + tables + packed
    )


def require_memory(model: Model, dtype: str) -> None:
    """Raise `NotEnoughMemory` where a run would take more than there is."""
    needed = memory_needed(model, dtype) - model.nbytes
    if needed <= SMALL:
        return
    available = available_memory()
    if available is not None and needed > available:
        raise NotEnoughMemory(needed, available)

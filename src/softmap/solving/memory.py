"""How much memory a run takes: said beforehand, so that none is begun that cannot end."""

from __future__ import annotations

import numpy as np

from softmap.errors import NotEnoughMemory
from softmap.machine import available_memory
from softmap.methods.sweeps.anneal import easily_coupled
from softmap.methods.sweeps.chains import CHAINS
from softmap.model import Model
from softmap.relaxation.point import needs_coupling

__all__ = ["memory_needed", "require_memory"]

# Arrays over half-edge states: messages, and of one direction those before and of the best bound; a
# copy of these on models that are small; and those of two points that depend on them
MESSAGES, COPY, POINTS = 2.0, 0.5, 1.0
# The same in double precision: κ of two points that are made of it (by when other arrays are gone),
# λ to decode, and λ of a bound where messages in single precision do not prove their own
COUPLED, DECODED, PROVED = 1.5, 1, 1
EDGE = 80  # bytes per edge: the model, its graph, the schedule of passes
NODE = 115  # bytes per node: places, orders, labels
STATE = 44  # bytes per node state: costs in two orders, shares, marginals
AVERAGE = 20  # more bytes per node state where marginals are averaged
SMALL = 1 << 24  # bytes that are always there


def memory_needed(model: Model, dtype: str = "float64") -> int:
    """Bytes that solving a model takes at its peak, the model itself included.

    From the sizes of its arrays; measured peaks are within a fifth of it for models that take more
    than a few tens of megabytes.
    """
    item, wide = np.dtype(dtype).itemsize, 0.0
    if model.has_forbidden or len(model.auxiliaries):
        wide += DECODED
    sent = MESSAGES + (COPY if model.half_size <= CHAINS.spare else 0.0)
    states = int(model.node_offset[-1])
    tables = _in_tables(model)
    if len(model.auxiliaries) or (item < 8 and tables):
        wide += COUPLED
    elif needs_coupling(model):
        sent += POINTS
    if item < 8 and (tables or model.half_size <= CHAINS.large):
        wide += PROVED
    # tables of tiles lie side by side; in single precision, those of the model are made, too
    packed = tables * item // 8 * (1 if item == 8 else 2)
    return int(
        model.half_size * (sent * item + 8 * wide)
        + EDGE * model.m
        + NODE * model.n
        + (STATE + AVERAGE * easily_coupled(model)) * states
        + tables
        + packed
    )


def _in_tables(model: Model) -> int:
    """Bytes of costs that are given pair by pair."""
    arrays = ((len(p), a) for p in model.potentials for a in p.arrays().values())
    return sum(a.nbytes for edges, a in arrays if a.ndim > 1 or a.size > edges)


def require_memory(model: Model, dtype: str) -> None:
    """Raise `NotEnoughMemory` where a run would take more than there is."""
    needed = memory_needed(model, dtype) - model.nbytes
    if needed <= SMALL:
        return
    available = available_memory()
    if available is not None and needed > available:
        raise NotEnoughMemory(needed, available)

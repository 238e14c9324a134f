"""How much memory a run takes: said beforehand, so that none is begun that cannot end."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from softmap.errors import NotEnoughMemory
from softmap.machine import available_memory
from softmap.methods.sweeps.anneal import easily_coupled
from softmap.methods.sweeps.chains import CHAINS
from softmap.model import Model
from softmap.relaxation.point import needs_coupling

__all__ = ["memory_needed", "require_memory", "room_beside"]


@dataclass(frozen=True, eq=False)
class MemoryEstimate:
    """What is counted; arrays are over half-edge states, the rest are bytes.

    Attributes
    ----------
    messages : float
        Arrays of messages, and of one direction those before and those of the best bound.
    copy : float
        Arrays that are a copy of these, on models that are small.
    points : float
        Arrays of two points that depend on messages.
    coupled : float
        Arrays in double precision of two points that are made of κ, by when others are gone.
    decoded, proved : float
        Arrays in double precision: λ to decode; λ of a bound where messages in single precision do
        not prove their own.
    edge : int
        Per edge: the model, its graph, the schedule of passes.
    node : int
        Per node: places, orders, labels.
    state : int
        Per node state: costs in two orders, shares, marginals.
    average : int
        Per node state, where marginals are averaged.
    small : int
        What is there whatever the model: buffers, threads, parts of libraries.
    """

    messages: float = 2.0
    copy: float = 0.5
    points: float = 1.0
    coupled: float = 1.5
    decoded: float = 1.0
    proved: float = 1.0
    edge: int = 80
    node: int = 115
    state: int = 44
    average: int = 20
    small: int = 1 << 24


TAKES = MemoryEstimate()


def memory_needed(model: Model, dtype: str = "float64") -> int:
    """Bytes that solving a model takes at its peak, the model itself included.

    From the sizes of its arrays; measured peaks are within a fifth of it for models that take more
    than a few tens of megabytes.
    """
    item, wide = np.dtype(dtype).itemsize, 0.0
    if model.has_forbidden or len(model.auxiliaries):
        wide += TAKES.decoded
    sent = TAKES.messages + (TAKES.copy if model.half_size <= CHAINS.spare else 0.0)
    states = int(model.node_offset[-1])
    tables = _in_tables(model)
    if len(model.auxiliaries) or (item < 8 and tables):
        wide += TAKES.coupled
    elif needs_coupling(model):
        sent += TAKES.points
    if item < 8 and (tables or model.half_size <= CHAINS.large):
        wide += TAKES.proved
    # tables of tiles lie side by side; in single precision, those of the model are made, too
    packed = tables * item // 8 * (1 if item == 8 else 2)
    return int(
        model.half_size * (sent * item + 8 * wide)
        + TAKES.edge * model.m
        + TAKES.node * model.n
        + (TAKES.state + TAKES.average * easily_coupled(model)) * states
        + tables
        + packed
    )


def _in_tables(model: Model) -> int:
    """Bytes of costs that are given pair by pair."""
    arrays = ((len(p), a) for p in model.potentials for a in p.arrays().values())
    return sum(a.nbytes for edges, a in arrays if a.ndim > 1 or a.size > edges)


def require_memory(model: Model, dtype: str, limit: int | None = None) -> None:
    """Raise `NotEnoughMemory` where a run would take more than there is, or than is allowed."""
    needed = memory_needed(model, dtype)
    if limit is not None and needed + TAKES.small > limit:
        raise NotEnoughMemory(
            needed + TAKES.small, limit, _what_fits(model, dtype, limit - TAKES.small)
        )
    needed -= model.nbytes  # which is there already
    if needed <= TAKES.small:
        return
    available = available_memory()
    if available is not None and needed > available:
        raise NotEnoughMemory(needed, available, _what_fits(model, dtype, available + model.nbytes))


def room_beside(model: Model, dtype: str, limit: int | None) -> float:
    """Bytes that stages after the relaxation may take; +inf without a limit."""
    if limit is None:
        return math.inf
    return max(0.0, limit - TAKES.small - memory_needed(model, dtype))


def _what_fits(model: Model, dtype: str, room: int) -> str:
    """What would fit in so many bytes: single precision, or how much less of a model."""
    single = memory_needed(model, "float32")
    if dtype != "float32" and single <= room:
        return f"dtype='float32' fits: about {single:,} bytes"
    part = max(0, room) / min(single, memory_needed(model, dtype))
    precision = " in dtype='float32'" if single < memory_needed(model, "float64") else ""
    return (
        f"a model of about {int(part * model.num_visible):,} of its {model.num_visible:,} "
        f"variables fits{precision}; softmap.scale.distributed spreads a model over processes"
    )

"""An estimate of the memory of a run, so that a run without enough memory is not started."""

from __future__ import annotations

import math
from dataclasses import dataclass

from softmap.errors import NotEnoughMemory
from softmap.machine import available_memory
from softmap.methods.sweeps.anneal import easily_coupled
from softmap.methods.sweeps.chains import ChainNumbers
from softmap.model import Network
from softmap.model.graph import grid_width
from softmap.model.potentials.base import is_one_value
from softmap.relaxation.polytope import needs_coupling
from softmap.tuning import TUNING, Numbers, Tuning

__all__ = [
    "MemoryEstimate", "memory_left", "memory_needed", "memory_of_run", "require_memory",
    "search_memory",
]  # fmt: skip


@dataclass(frozen=True)
class MemoryEstimate(Numbers):
    """Memory of the relaxation and of a result; those of a subsolver are among its numbers.

    Arrays have one entry per half-edge state; a *single* array has four bytes per entry.
    """

    messages: float = 1.0  # arrays: messages of both directions; D43
    drift: float = 0.5  # single arrays: momentum of one direction; D43
    bound: float = 0.5  # single arrays of a large model: messages of the best bound; D43
    bounds: float = 1.25  # arrays of a small model: messages of two bounds, and a part of λ; D43
    points: float = 1.0  # arrays: messages kept for two primal points; D43
    coupled: float = 1.5  # arrays of a model with factors: κ of two primal points; D43
    decoded: float = 1.0  # arrays: λ for decoding labels; D43
    answer: float = 1.0  # arrays: λ of a result that is not lazily computed; D43
    edge: int = 38  # bytes per edge: model, graph, schedule of passes; D43
    scattered: int = 36  # bytes per edge, unless the model is an image: indices of costs; D43
    parameter: int = 16  # bytes per edge of each weight or truncation that differs by edge; D43
    node: int = 58  # bytes per node: indices, orders, labels; D43
    uneven: int = 16  # bytes per node if label counts differ; D43
    state: int = 24  # bytes per node state: costs in two orders, shares; D43
    marginals: float = 2.0  # node marginals: those of a check, and of the best point; D43
    average: float = 1.0  # node marginals for their average; D43
    small: int = 1 << 24  # bytes for any model: buffers, threads, libraries; D43
    share: float = 0.4  # fraction of the memory beside the relaxation for each subsolver; D43
    lazy_entries: int = 1 << 19  # entries of λ above which it is computed when it is read; D43
    returned_entries: int = 1 << 19  # those above which freed memory is returned at once; D43


def memory_of_run(model: Network, tuning: Tuning = TUNING) -> int:
    """Return the memory limit that solving a model needs, in bytes: with buffers and libraries."""
    return memory_needed(model, tuning) + tuning.of(MemoryEstimate).small


def memory_needed(model: Network, tuning: Tuning = TUNING) -> int:
    """Return the estimated peak memory of solving a model, in bytes, the model included.

    Measured peaks are within 20 % of the estimate for models of more than a few tens of megabytes.
    """
    takes = tuning.of(MemoryEstimate)
    small = model.half_size <= tuning.of(ChainNumbers).spare
    double = takes.messages + (takes.bounds if small else 0.0)
    single = takes.drift + (0.0 if small else takes.bound)
    if model.has_forbidden or model.has_factors:
        double += takes.decoded
    if model.has_factors:
        double += takes.coupled
    elif needs_coupling(model):
        double += takes.points
    if model.half_size <= takes.lazy_entries:
        double += takes.answer
    points = takes.marginals + takes.average * easily_coupled(model)
    parameters, tables = _costs_of_edges(model)
    return int(
        model.half_size * (8 * double + 4 * single)
        + (takes.edge + takes.scattered * (grid_width(model.edges) is None)) * model.m
        + takes.parameter * parameters
        + (takes.node + takes.uneven * (not model.is_even)) * model.n
        + (takes.state + points * (8 if small else 4)) * model.unary.size
        + 2 * tables  # those of the model, and those of the schedule
    )


def _costs_of_edges(model: Network) -> tuple[int, int]:
    """Return the number of weights and truncations that differ, and the bytes of dense tables."""
    parameters = tables = 0
    for edges, a in ((len(p), a) for p in model.potentials for a in p.arrays().values()):
        parameters += a.size * (a.shape == (edges,) and not is_one_value(a))
        tables += a.nbytes * (a.ndim > 1 or a.size > edges)
    return parameters, tables


def require_memory(model: Network, limit: int | None = None, tuning: Tuning = TUNING) -> None:
    """Raise `NotEnoughMemory` if a run needs more memory than available or than `limit`."""
    small = tuning.of(MemoryEstimate).small
    if limit is not None and memory_of_run(model, tuning) > limit:
        fits = _what_fits(model, limit - small, tuning)
        raise NotEnoughMemory(memory_of_run(model, tuning), limit, fits)
    needed = memory_needed(model, tuning) - model.nbytes  # the model is in memory already
    if needed <= small:
        return
    available = available_memory()
    if available is not None and needed > available:
        fits = _what_fits(model, available + model.nbytes, tuning)
        raise NotEnoughMemory(needed, available, fits)


def memory_left(model: Network, limit: int | None, tuning: Tuning = TUNING) -> float:
    """Memory for subsolvers beside the relaxation, in bytes; +inf without a limit."""
    if limit is None:
        return math.inf
    return max(0.0, limit - memory_of_run(model, tuning))


def search_memory(model: Network, entries: int, entry: int, edge: int) -> float:
    """Memory of an exact search without open nodes and dynamic programming, in bytes.

    Parameters
    ----------
    model : Network
        The model.
    entries : int
        Number of its table entries.
    entry, edge : int
        Bytes per table entry, and per node and edge.
    """
    return float(entry * entries + edge * (model.n + model.m))


def _what_fits(model: Network, room: int, tuning: Tuning) -> str:
    """Advice on what fits into `room` bytes: a smaller model, or several processes."""
    variables = int(max(0, room) / memory_needed(model, tuning) * len(model.visible_counts))
    if variables == 0:
        return f"a run of any model takes {tuning.of(MemoryEstimate).small:,} bytes and more"
    return (
        f"a model of about {variables:,} of its {len(model.visible_counts):,} variables fits; "
        "softmap.scale.distributed spreads a model over processes"
    )

"""An estimate of the memory of a run, so that a run without enough memory is not started."""

from __future__ import annotations

import math
from dataclasses import dataclass

from softmap.errors import NotEnoughMemory
from softmap.machine import available_memory
from softmap.methods.sweeps.anneal import easily_coupled
from softmap.methods.sweeps.chains import CHAINS
from softmap.model import Network
from softmap.model.graph import grid_width
from softmap.model.potentials.base import is_one_value
from softmap.relaxation.polytope import needs_coupling
from softmap.tuning import TUNING

__all__ = [
    "TAKES", "memory_left", "memory_needed", "memory_of_run", "require_memory", "search_memory",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class MemoryEstimate:
    """Memory per unit of size. One array has one entry per half-edge state.

    Attributes
    ----------
    messages : float
        Arrays: messages of both directions.
    drift : float
        Arrays in single precision: momentum of one direction.
    bound : float
        Arrays in single precision: messages of the best bound.
    bounds : float
        Arrays, on small models: 0.5 for messages of the best bound, 0.5 for those of another one,
        and a margin for λ, which is computed if a gap is a rounding error.
    points : float
        Arrays: messages kept for two primal points.
    coupled : float
        Arrays in double precision: κ of two primal points.
    decoded : float
        Arrays in double precision: λ for decoding labels.
    answer : float
        Arrays in double precision: λ of a result that is not lazily computed.
    edge : int
        Bytes per edge: model, graph, schedule of passes.
    scattered : int
        Bytes per edge for places of costs and messages, unless the model is an image, where they
        are in line.
    parameter : int
        Bytes per edge for each of weight and truncation that is not the same for all edges.
    node : int
        Bytes per node: indices, orders, labels.
    uneven : int
        Bytes per node if label counts differ.
    state : int
        Bytes per node state: costs in two orders, shares.
    marginals : float
        Arrays of node marginals: those of a check, and of the best point.
    average : float
        Arrays of node marginals for their average.
    small : int
        Bytes for any model: buffers, threads, libraries.
    share : float
        Fraction of the memory beside the relaxation for each later stage; two keep theirs.
    constraint : int
        Bytes per table entry of a search for feasible labels (decision 33).
    entry, joined, copied : int
        Bytes of an exact search: per table entry, per node and edge, and per node and edge of each
        further thread (decision 51).
    eliminated : int
        Bytes per table entry of dynamic programming: two doubles.
    cores : int
        Bytes per table entry of a core-guided search (decision 70).
    spins : int
        Bytes per pair of variables of a semidefinite bound: 15 matrices of doubles.
    permuted : int
        Bytes per pair of labels of a permutation: costs as floats, as integers, and compiled.
    tightened : float
        Memory of tightening before its first cluster, in that of the relaxation (decision 47).
    cluster : int
        Bytes per joint state of a cluster (decision 47).
    logged : int
        Bytes of the proof of a search that is kept in memory (decision 78).
    """

    messages: float = 1.0
    drift: float = 0.5
    bound: float = 0.5
    bounds: float = 1.25
    points: float = 1.0
    coupled: float = 1.5
    decoded: float = 1.0
    answer: float = 1.0
    edge: int = 38
    scattered: int = 36
    parameter: int = 16
    node: int = 58
    uneven: int = 16
    state: int = 24
    marginals: float = 2.0
    average: float = 1.0
    small: int = 1 << 24
    share: float = 0.4
    constraint: int = 100
    entry: int = 64
    joined: int = 2_000
    copied: int = 400
    eliminated: int = 16
    cores: int = 500
    spins: int = 120
    permuted: int = 40
    tightened: float = 5.0
    cluster: int = 1_000
    logged: int = 128_000_000


TAKES = MemoryEstimate()


def memory_of_run(model: Network) -> int:
    """Return the memory limit that solving a model needs, in bytes: with buffers and libraries."""
    return memory_needed(model) + TAKES.small


def memory_needed(model: Network) -> int:
    """Return the estimated peak memory of solving a model, in bytes, the model included.

    Measured peaks are within 20 % of the estimate for models of more than a few tens of megabytes.
    """
    small = model.half_size <= CHAINS.spare
    double = TAKES.messages + (TAKES.bounds if small else 0.0)
    single = TAKES.drift + (0.0 if small else TAKES.bound)
    if model.has_forbidden or model.has_factors:
        double += TAKES.decoded
    if model.has_factors:
        double += TAKES.coupled
    elif needs_coupling(model):
        double += TAKES.points
    if model.half_size <= TUNING.lazy_entries:
        double += TAKES.answer
    points = TAKES.marginals + TAKES.average * easily_coupled(model)
    parameters, tables = _costs_of_edges(model)
    return int(
        model.half_size * (8 * double + 4 * single)
        + (TAKES.edge + TAKES.scattered * (grid_width(model.edges) is None)) * model.m
        + TAKES.parameter * parameters
        + (TAKES.node + TAKES.uneven * (not model.is_even)) * model.n
        + (TAKES.state + points * (8 if small else 4)) * model.unary.size
        + 2 * tables  # those of the model, and those of the schedule
    )


def _costs_of_edges(model: Network) -> tuple[int, int]:
    """Return the number of weights and truncations that differ, and the bytes of dense tables."""
    parameters = tables = 0
    for edges, a in ((len(p), a) for p in model.potentials for a in p.arrays().values()):
        parameters += a.size * (a.shape == (edges,) and not is_one_value(a))
        tables += a.nbytes * (a.ndim > 1 or a.size > edges)
    return parameters, tables


def require_memory(model: Network, limit: int | None = None) -> None:
    """Raise `NotEnoughMemory` if a run needs more memory than available or than `limit`."""
    if limit is not None and memory_of_run(model) > limit:
        fits = _what_fits(model, limit - TAKES.small)
        raise NotEnoughMemory(memory_of_run(model), limit, fits)
    needed = memory_needed(model) - model.nbytes  # the model is in memory already
    if needed <= TAKES.small:
        return
    available = available_memory()
    if available is not None and needed > available:
        raise NotEnoughMemory(needed, available, _what_fits(model, available + model.nbytes))


def memory_left(model: Network, limit: int | None) -> float:
    """Memory for stages after the relaxation, in bytes; +inf without a limit."""
    if limit is None:
        return math.inf
    return max(0.0, limit - memory_of_run(model))


def search_memory(model: Network, entries: int) -> float:
    """Memory of an exact search without open nodes and dynamic programming, in bytes."""
    return float(TAKES.entry * entries + TAKES.joined * (model.n + model.m))


def _what_fits(model: Network, room: int) -> str:
    """Advice on what fits into `room` bytes: a smaller model, or several processes."""
    variables = int(max(0, room) / memory_needed(model) * len(model.visible_counts))
    if variables == 0:
        return f"a run of any model takes {TAKES.small:,} bytes and more"
    return (
        f"a model of about {variables:,} of its {len(model.visible_counts):,} variables fits; "
        "softmap.scale.distributed spreads a model over processes"
    )

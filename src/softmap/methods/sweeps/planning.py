"""Schedules of passes: an order of the nodes, divided into levels, strips and blocks."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.model import Network
from softmap.model.graph import Graph
from softmap.model.layout import cost_arrays, layout
from softmap.model.potentials.base import is_one_value

Ints = NDArray[np.int64]
Steps = NDArray[np.int32]
Floats = NDArray[np.float64]


# The members of `Block` in `src/core/base/schedule.hpp`, which documents them.
BLOCK = np.dtype(
    [
        *((name, np.int64) for name in ("early_at", "late_at", "table_at")),
        *((name, np.uint32) for name in ("lane", "early_from", "late_from")),
        *((name, np.int32) for name in ("step", "early", "late", "group", "reach")),
        *((name, np.uint8) for name in ("kind", "count", "orientation")),
        *((name, np.bool_) for name in ("straight_early", "straight_late")),
    ],
    align=True,
)

# The members of `Row` in the same file.
ROW = np.dtype(
    [
        *((name, np.int64) for name in ("place", "pulls")),
        *((name, np.int32) for name in ("first", "nodes", "labels", "degree", "step", "way")),
    ]
)


@dataclass(frozen=True, eq=False)
class Schedule:
    """A schedule: an order of the nodes, and the memory layout of costs and messages.

    Attributes
    ----------
    row_start : int64[levels + 1]
        Start of the rows of each level.
    rows : ROW[rows]
        Runs of up to `core.LANES` nodes of one strip and degree.
    nodes : int32[n]
        Nodes in the order of strips.
    chains : int32[n + LANES]
        Number n_i of chains through the k-th of `nodes`, negated if more edges lead backward from
        it than forward.
    unary : float64[by strip]
        Costs of the nodes.
    pull_at, pull_step : int64[pulls], int32[pulls]
        Index and stride of the messages into the nodes of each row, node by node, from the entry
        `pulls` of the row on. In chain schedules, straight rows have those of their first node
        only.
    blocks : BLOCK[blocks]
        Tiles and single edges. The *early* endpoint of an edge is the one that comes first.
    edge : int32[lanes]
        Edge of each lane, -1 for lanes without one.
    early_at, late_at : int64[ends]; early_step, late_step : int32[ends]
        Index and stride, in arrays by strip, of the costs of each lane's endpoints; those of a
        spare 0 for idle lanes. Blocks with contiguous lanes have those of their first lane only.
    weight, truncation : float64[lanes] or float64[LANES]
        Parameters of each lane's edge, or 0; those of one tile if all edges have the same.
        `truncation` is empty if no edge has one.
    table : float64[packed tables]
        Tables of tiles; the same entry of all lanes is contiguous.
    forward_start, forward : int64[levels * bands + 1], int32[blocks]
        Blocks by level and band of their early endpoints. A band is a part of a level that depends
        on few bands of the levels before.
    forward_after : uint64[levels * bands * 2]
        For each level and band, the sets of bands (one bit each) that must have finished the steps
        before: of computing the shares of the nodes, and of sending.
    backward_start, backward, backward_after
        As the arrays of the forward direction, by the late endpoints.
    later : int32[blocks]
        Blocks by level of their late endpoints, otherwise in the order of `blocks`.

    Notes
    -----
    In arrays of messages, those into early endpoints come first.
    """

    row_start: Ints
    rows: NDArray[np.void]
    nodes: Steps
    chains: Steps
    unary: Floats
    pull_at: Ints
    pull_step: Steps
    blocks: NDArray[np.void]
    edge: Steps
    early_at: Ints
    early_step: Steps
    late_at: Ints
    late_step: Steps
    weight: Floats
    truncation: Floats
    table: Floats
    forward_start: Ints
    forward: Steps
    forward_after: NDArray[np.uint64]
    backward_start: Ints
    backward: Steps
    backward_after: NDArray[np.uint64]
    later: Steps

    @cached_property
    def native(self) -> Any:
        """The schedule for the compiled loops."""
        return core.Schedule({f.name: _plain(getattr(self, f.name)) for f in fields(self)})

    @property
    def node_places(self) -> tuple[Ints, Ints]:
        """Return start and stride of the costs of each node in arrays by strip."""
        rows = np.repeat(self.rows, self.rows["nodes"])
        at, step = np.empty((2, len(self.nodes)), dtype=np.int64)
        at[self.nodes] = rows["place"] + np.arange(len(rows)) - rows["first"]
        step[self.nodes] = rows["step"]
        return at, step

    @cached_property
    def half_places(self) -> tuple[Ints, Ints]:
        """Return start and stride of the message into each half-edge."""
        block = np.repeat(np.arange(len(self.blocks)), _lanes_of(self.blocks, len(self.edge)))
        used = np.flatnonzero(self.edge >= 0)
        of, edge = self.blocks[block[used]], self.edge[used].astype(np.int64)
        half = 2 * edge + of["orientation"]
        at, step = np.empty((2, 2 * len(edge)), dtype=np.int64)
        within = used - of["lane"]
        at[half] = of["early_at"] + within
        at[half ^ 1] = of["late_at"] + within
        step[half] = step[half ^ 1] = of["step"]
        return at, step

    @property
    def forward_degree(self) -> Steps:
        """Return the number of edges that lead forward from the k-th of `nodes`, along chains."""
        degree = np.repeat(self.rows["degree"], self.rows["nodes"])
        chains = self.chains[: len(degree)]
        return np.where(chains < 0, degree + chains, np.minimum(chains, degree))

    @property
    def bands(self) -> int:
        """The number of bands of each level."""
        return (len(self.forward_start) - 1) // max(1, len(self.row_start) - 1)

    @cached_property
    def cost_size(self) -> int:
        """The length of an array of costs by strip, with a spare 0 that idle lanes read."""
        rows = self.rows
        ends = rows["place"] + rows["labels"].astype(np.int64) * rows["step"]
        return int(ends.max()) + 1 + core.LANES

    @cached_property
    def message_size(self) -> int:
        """The length of an array of messages, padded so that a vector can be read at its end."""
        blocks = self.blocks
        ends = blocks["late_at"] + blocks["late"].astype(np.int64) * blocks["step"]
        return int(ends.max(initial=0)) + core.LANES

    @cached_property
    def back_size(self) -> int:
        """The length of the part with the messages into early endpoints."""
        return int(self.blocks["late_at"].min()) if len(self.blocks) else 0


def _lanes_of(blocks: NDArray[np.void], lanes: int) -> Ints:
    """Return the number of lanes of each block."""
    return np.diff(np.append(blocks["lane"].astype(np.int64), lanes))


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array for the compiled loops: records as bytes."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint8) if flat.dtype.names else flat


def aligned(size: int, dtype: Any = np.float64) -> NDArray[Any]:
    """Return zeros aligned to a cache line, so that no vector crosses one.

    A large array is mapped by itself, so that its memory returns to the system as soon as it is
    not used: the C library would keep it between smaller arrays.
    """
    item = np.dtype(dtype).itemsize
    if size * item >= PLANNING.mapped and hasattr(mmap, "MAP_ANONYMOUS"):
        pages = mmap.mmap(-1, size * item, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # a kernel without huge pages
                pages.madvise(mmap.MADV_HUGEPAGE)
        return np.frombuffer(pages, dtype)
    raw = np.zeros(size + 64 // item, dtype)
    first = -raw.ctypes.data % 64 // item
    return raw[first : first + size]


def copied(array: NDArray[Any], threads: int, dtype: Any = None) -> NDArray[Any]:
    """Return a copy, made by several threads, in another precision if `dtype` is given."""
    out = aligned(array.size, array.dtype if dtype is None else dtype)
    core.copy_into(array, out, threads)
    return out


@dataclass(frozen=True)
class PlanLimits:
    """When passes reorder the nodes, and which plans are cached.

    Attributes
    ----------
    narrow : int
        Levels with fewer nodes on average are too narrow for vector instructions.
    width : int
        Target number of nodes per level after reordering.
    segment : int
        Smallest number of levels after reordering: with fewer, a pass propagates too little.
    cycles : float
        Graphs with fewer edges per node are not reordered: one pass nearly solves them.
    remembered : int
        Largest number of edges of a graph whose plans are cached.
    mapped : int
        Smallest size of an array, in bytes, that is mapped by itself.
    """

    narrow: int = core.LANES
    width: int = 2 * core.LANES
    segment: int = 2 * core.LANES
    cycles: float = 1.1
    remembered: int = 1 << 18
    mapped: int = 1 << 22


PLANNING = PlanLimits()


def pass_order(graph: Graph) -> tuple[Ints, Ints]:
    """Return rank and level of each node.

    The order is the natural one unless its levels are narrow. In that case levels are taken modulo
    K: all segments of K levels are processed in parallel, and a chain is as long as a segment.
    """
    n = len(graph.start) - 1
    rank = np.arange(n)
    level = graph.levels(rank).astype(np.int64)
    levels, cycle = int(level.max(initial=-1)) + 1, n // PLANNING.width
    if (
        PLANNING.narrow * levels <= n
        or cycle < PLANNING.segment
        or len(graph.node) < 2 * PLANNING.cycles * n
    ):
        return rank, level
    rank[np.argsort(level % cycle, kind="stable")] = np.arange(n)
    return rank, graph.levels(rank).astype(np.int64)


def decoding_order(graph: Graph, variables: int) -> Ints:
    """Return the first `variables` nodes in reverse order, to decode after a forward pass."""
    rank = pass_order(graph)[0][:variables]
    return np.argsort(rank)[::-1]


LANES = core.LANES


def chain_schedule(
    model: Network, threads: int = 1, deadline: core.Deadline | None = None
) -> Schedule:
    """Return the schedule of monotonic chains in the order of `pass_order`.

    Nodes of one level are independent. Node i lies on
    `max(#earlier neighbours, #later neighbours)` chains. Raises `core.OutOfTime` if the deadline
    passes first.
    """

    looked = deadline or core.Deadline()

    def make() -> Plan:
        looked.require()
        graph = model.graph  # sorted here, if nobody has asked for it
        looked.require()
        order = pass_order(graph)
        looked.require()
        return _plan(model, *order, threads=threads, deadline=deadline)

    return _remembered(model, "chains", make).filled(model, threads, deadline)


def colour_schedule(model: Network, deadline: core.Deadline | None = None) -> Schedule:
    """Return the schedule of stars: levels are colours, and node costs are not divided.

    Raises `core.OutOfTime` if the deadline passes first.
    """

    def make() -> Plan:
        level = model.graph.colouring().astype(np.int64)
        plan = _plan(model, np.arange(model.n), level, leading=False, deadline=deadline)
        plan.arrays["chains"] = np.ones_like(plan.arrays["chains"])
        return plan

    return _remembered(model, "colours", make).filled(model, 1, deadline)


def level_schedule(model: Network, rank: Ints, level: Ints) -> Schedule:
    """Return the schedule of chains in the order `rank`; no edge joins two nodes of a level."""
    return _plan(model, rank, level).filled(model)


def surpluses(model: Network, plan: Schedule) -> Floats:
    """How often H_i is taken off Σ_e H_e in the entropy that belongs to chains: |N_i| - n_i."""
    surplus = model.graph.degree.astype(np.float64)
    surplus[plan.nodes] -= np.abs(plan.chains[: model.n])
    return surplus


@dataclass(frozen=True)
class Plan:
    """The part of a schedule that does not depend on costs; models with the same graph share it.

    `arrays` are those of `Schedule`, by name; the sizes are those of costs by strip and of tables.
    """

    arrays: dict[str, NDArray[Any]]
    cost_size: int
    table_size: int

    def filled(
        self, model: Network, threads: int = 1, deadline: core.Deadline | None = None
    ) -> Schedule:
        """Return the schedule with the costs of a model."""
        looked = deadline or core.Deadline()
        looked.require()
        blocks, edge = self.arrays["blocks"], self.arrays["edge"]
        data = [p.kernel_data(*model.end_labels(a, b)) for a, b, p in model.groups()]
        weight = _by_lane([each.weight for each in data], 1.0, len(edge))
        cuts = any(each.truncation is not None for each in data)
        truncation = _by_lane([each.truncation for each in data], 0.0, len(edge) if cuts else 0)
        table = aligned(self.table_size)
        core.pack_lanes(layout(model), _plain(blocks), edge, weight, truncation, table, threads)
        looked.require()
        unary = aligned(self.cost_size + LANES)
        nodes, rows = self.arrays["nodes"], _plain(self.arrays["rows"])
        core.by_strip(layout(model), nodes, rows, unary, threads)
        return Schedule(
            unary=unary, weight=weight, truncation=truncation, table=table, **self.arrays
        )


def _by_lane(parts: list[NDArray[Any] | None], absent: float, size: int) -> Floats:
    """Return an array by lane to be filled, or, if all edges have the same value, one tile of it.

    The groups of edges have the values `parts`; None stands for `absent`.
    """
    given = [np.array([absent]) if part is None else part for part in parts]
    one = all(map(is_one_value, given)) and len({float(part[0]) for part in given}) == 1
    return np.full(LANES, given[0][0]) if one and size > LANES else np.zeros(size)


def _remembered(model: Network, name: str, make: Callable[[], Plan]) -> Plan:
    """Return the cached plan for a graph and its shapes, or make one.

    The cache belongs to the graph. Two threads may make the same plan at the same time; the plans
    are equal.
    """
    if model.m > PLANNING.remembered:
        return make()
    kinds = cost_arrays(model)["kind"]
    shapes = (model.num_labels, model.group_start, kinds, _tile_keys(model))
    known = model.graph.remembered.get(name)
    if known is not None and all(map(np.array_equal, known[0], shapes)):
        plan: Plan = known[1]
        return plan
    plan = make()
    model.graph.remembered[name] = shapes, plan
    return plan


def _plan(
    model: Network,
    rank: Ints,
    level: Ints,
    *,
    leading: bool = True,
    threads: int = 1,
    deadline: core.Deadline | None = None,
) -> Plan:
    """Make a plan; `leading` keeps, for straight rows, only the messages into their first node."""
    keys = _tile_keys(model)
    (deadline or core.Deadline()).require()
    made = core.plan(layout(model), rank, level, keys, leading, threads, deadline)
    sizes = {name: made.pop(name) for name in ("cost_size", "table_size")}
    for name, kind in (("rows", ROW), ("blocks", BLOCK)):
        made[name] = made[name].reshape(-1).view(kind)
    return Plan(made, **sizes)


def _tile_keys(model: Network) -> Ints:
    """Return one key per edge; only edges with equal keys may share a tile."""
    keys = [p.tile_key(*model.end_labels(first, last)) for first, last, p in model.groups()]
    return np.concatenate([*keys, np.zeros(0, dtype=np.int64)])

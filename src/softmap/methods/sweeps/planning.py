"""The order in which passes go through the nodes, cut into levels, strips and blocks.

Nodes of one level share no edge, so a vector holds several of them (see `schedule.Schedule`).
Levels follow the numbers of the nodes, unless these leave hardly more than one node to a level.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from softmap import core
from softmap.methods.sweeps.schedule import Schedule, aligned
from softmap.model import Model
from softmap.model.graph import Graph
from softmap.model.layout import kinds, layout

__all__ = ["chain_schedule", "colour_schedule", "decoding_order", "level_schedule", "pass_order"]


@dataclass(frozen=True)
class PlanLimits:
    """When passes take an order of their own, and which plans are remembered.

    Attributes
    ----------
    narrow : int
        Nodes per level under which vectors stay empty.
    width : int
        Nodes per level that an order of our own aims at.
    shortest : int
        Levels that must remain: in fewer, what one pass learns does not get far.
    cycles : float
        Edges per node: one pass in the natural order nearly solves a graph of fewer.
    remembered : int
        Edges up to which the graph keeps its plans.
    """

    narrow: int = core.LANES
    width: int = 2 * core.LANES
    shortest: int = 64
    cycles: float = 1.1
    remembered: int = 1 << 18


PLANNING = PlanLimits()


Ints = NDArray[np.int64]


def pass_order(graph: Graph) -> tuple[Ints, Ints]:
    """Rank and level of each node.

    The natural order, unless its levels are narrow. Then those levels count modulo K: K stretches
    of the graph are gone through side by side, and a chain is as long as a stretch.
    """
    n = len(graph.start) - 1
    rank = np.arange(n)
    level = graph.levels(rank).astype(np.int64)
    levels, cycle = int(level.max(initial=-1)) + 1, n // PLANNING.width
    if (
        PLANNING.narrow * levels <= n
        or cycle < PLANNING.shortest
        or len(graph.node) < 2 * PLANNING.cycles * n
    ):
        return rank, level
    rank[np.argsort(level % cycle, kind="stable")] = np.arange(n)
    return rank, graph.levels(rank).astype(np.int64)


def decoding_order(graph: Graph, variables: int) -> Ints:
    """The first `variables` nodes, last of a pass first: λ stands as a forward pass has left it."""
    rank = pass_order(graph)[0][:variables]
    return np.argsort(rank)[::-1]


LANES = core.LANES


def chain_schedule(model: Model, dtype: DTypeLike = np.float64) -> Schedule:
    """Monotonic chains in the order of `pass_order`, with independent nodes by level.

    Node i lies on `max(#earlier neighbours, #later neighbours)` chains.
    """

    def make() -> Plan:
        return _plan(model, *pass_order(model.graph))

    return _remembered(model, "chains", make).filled(model, dtype)


def colour_schedule(model: Model, dtype: DTypeLike = np.float64) -> Schedule:
    """Stars by colour: levels are colours, and nodes keep the whole of their costs."""

    def make() -> Plan:
        level = model.graph.colouring().astype(np.int64)
        plan = _plan(model, np.arange(model.n), level, leading=False)
        plan.arrays["share"] = np.ones_like(plan.arrays["share"])
        return plan

    return _remembered(model, "colours", make).filled(model, dtype)


def level_schedule(model: Model, rank: Ints, level: Ints, dtype: DTypeLike) -> Schedule:
    """Chains in the order `rank`, for nodes in levels that no edge stays within."""
    return _plan(model, rank, level).filled(model, dtype)


@dataclass(frozen=True)
class Plan:
    """What costs cannot change of a schedule: models that share a graph may share it.

    `arrays` are those of `Schedule`, by name; the sizes are those of costs by strip and of tables.
    """

    arrays: dict[str, NDArray[Any]]
    cost_size: int
    table_size: int

    def filled(self, model: Model, dtype: DTypeLike) -> Schedule:
        """The schedule, with the costs of a model in one precision."""
        blocks, edge = self.arrays["blocks"], self.arrays["edge"]
        cuts = any(
            p.kernel_data(*model.end_labels(a, b)).truncation is not None
            for a, b, p in model.groups()
        )
        weight, truncation = np.zeros(len(edge)), np.zeros(len(edge) if cuts else 0)
        table = aligned(self.table_size, dtype)
        core.pack_lanes(layout(model, dtype), blocks.reshape(-1), edge, weight, truncation, table)
        unary = aligned(self.cost_size + LANES)
        nodes, at, step = (self.arrays[name] for name in ("nodes", "node_at", "node_step"))
        core.by_strip(layout(model), nodes, at, step, unary)
        return Schedule(
            unary=unary, weight=weight, truncation=truncation, table=table, **self.arrays
        )


def _remembered(model: Model, name: str, make: Callable[[], Plan]) -> Plan:
    """The plan that was made before for a model with this graph and these shapes, or a new one.

    It is kept with the graph and goes with it. Threads that come at the same time may both make
    one, which are equal.
    """
    if model.m > PLANNING.remembered:
        return make()
    shapes = (model.num_labels, model.group_start, kinds(model), _tile_keys(model))
    known = model.graph.remembered.get(name)
    if known is not None and all(map(np.array_equal, known[0], shapes)):
        plan: Plan = known[1]
        return plan
    plan = make()
    model.graph.remembered[name] = shapes, plan
    return plan


def _plan(model: Model, rank: Ints, level: Ints, *, leading: bool = True) -> Plan:
    """`leading`: of straight rows, only the places of messages into the first node are kept."""
    made = core.plan(layout(model), rank, level, _tile_keys(model), leading)
    sizes = {name: made.pop(name) for name in ("cost_size", "table_size")}
    return Plan({"rank": rank} | made, **sizes)


def _tile_keys(model: Model) -> Ints:
    """What each edge has to share with those beside it in a tile."""
    keys = [p.tile_key(*model.end_labels(first, last)) for first, last, p in model.groups()]
    return np.concatenate([*keys, np.zeros(0, dtype=np.int64)])

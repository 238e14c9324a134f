"""Chain passes over one part with the kernels of the CUDA backend; messages of the halo are staged
through the host.

The order within a part is that of a device: wide levels, since it works on one at a time. What the
judge of a device can price is priced there; points of models with forbidden pairs on the host.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.cuda.devices import Device
from softmap.cuda.engine import Heat, Row
from softmap.cuda.judge import judged_on_device
from softmap.cuda.parts import HaloEngine, PartOrder
from softmap.cuda.tiling import CYCLE, DEEPEST, MOST_LEVELS
from softmap.distributed.parts import Part
from softmap.distributed.terms import Terms, spread
from softmap.model.graph import Graph
from softmap.model.grids import grid_width

__all__ = ["DevicePart", "device_order"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
STORED = ("msg", "prev", "mean", "shift")


def device_order(part: Part) -> PartOrder:
    """Levels within phases as `softmap.cuda.tiling` chooses them for whole models."""
    depth = _depth(part)
    full = np.zeros(part.model.n, dtype=np.int64)
    full[: part.own] = depth
    # edges between parts join different phases
    order = np.lexsort([part.nodes, full, part.phase])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    level, phases = part.levels(depth)
    return PartOrder(level, rank, phases)


def _depth(part: Part) -> Ints:
    """The level of each own node within its phase."""
    own, edges = part.own, part.alike
    width = grid_width(part.nodes[edges])
    if width:
        node = part.nodes[:own]
        return (node // width + node % width) % CYCLE
    graph = Graph.from_edges(edges, own)
    level = graph.levels(np.arange(own)).astype(np.int64)
    levels = int(level.max(initial=0)) + 1
    if levels > DEEPEST or (levels > MOST_LEVELS and len(edges) >= 2 * own):
        level = graph.colouring().astype(np.int64)
    return level


class DevicePart(Terms):
    """Messages of one part on a device: a `softmap.distributed.engines.PartEngine`."""

    def __init__(
        self, part: Part, device: Device, dtype: str, averaging: bool, threads: int
    ) -> None:
        order = device_order(part)
        super().__init__(part, order.rank, threads)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.engine = HaloEngine(part.model, device, dtype, order, averaging)
        self._on_device = judged_on_device(part.model)
        # of edges between own nodes, the device finds itself what messages took off
        counted = self.late & ~self.owned if self._on_device else self.late
        early_first = order.rank[part.model.edges[:, 0]] < order.rank[part.model.edges[:, 1]]
        edges = np.flatnonzero(counted)
        self._late_slots = device.upload(self.engine.slots(2 * edges + early_first[edges]))

    @property
    def msg(self) -> Any:
        """The messages, on the device."""
        return self.engine.msg

    # --- passes ---

    def extrapolate(self, clock: Floats, eta: float) -> None:
        """Momentum, before a pass: kernels apply it where they read."""
        t = 1.0 if clock[2] > 0.0 else float(clock[0])
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        self.engine.set_clock(eta, (t - 1.0) / following, 0)

    def half_pass(self, phase: int, forward: bool, eta: float, momentum: bool, msg: Any) -> None:
        """Let the own nodes of one phase send, onwards or back."""
        if phase < len(self.engine.phases):
            heat = Heat.HARD if eta == np.inf else self.engine.heat
            self.engine.half_phase(phase, forward, heat, msg)

    def product(self) -> float:
        """The part's share of the product that decides on a restart of momentum."""
        return self.engine.product()

    def take(self, places: Any, values: NDArray[Any], *, early: bool, msg: Any) -> None:
        """Messages from another part; those into early ends take part in momentum."""
        self.engine.take(places, values, momentum=early and msg is self.engine.msg, msg=msg)

    def sample(self, eta: float, weight: float, samples: int) -> None:
        """Let the node marginals enter their running average."""
        self.engine.set_clock(eta, self.engine.beta, samples - 1)
        self.engine.sample_own()

    # --- what is exchanged with other parts ---

    def places(self, halves: Ints) -> Ints:
        """Where the messages into half-edges lie, label by label."""
        model = self.part.model
        labels = model.num_labels[model.edges.reshape(-1)[halves]]
        return self.engine.places(halves, labels, spread(labels))

    def state_places(self, nodes: Ints) -> Ints:
        """Where the states of nodes lie in arrays of a judgement."""
        labels = self.part.model.num_labels[nodes]
        return self.engine.state_places(nodes, labels, spread(labels))

    def ready(self, places: Ints) -> Any:
        """Places on the device."""
        return self.engine.device.upload(places)

    def read(self, array: Any, places: Any) -> NDArray[Any]:
        """Entries of an array of the device."""
        return self.engine.read(array, places)

    def write(self, array: Any, places: Any, values: NDArray[Any]) -> None:
        """Set entries of an array of the device."""
        self.engine.write(array, places, values)

    # --- judgement ---

    def measure(self, eta: float) -> None:
        """Begin a judgement of where the messages stand."""
        self._eta = eta
        self.engine.set_clock(eta, self.engine.beta, 0)
        self.engine.measure()

    def boundary(self, averaged: bool) -> list[Any]:
        """Arrays over states whose halo other parts know."""
        engine = self.engine
        if averaged:
            engine.average()
        return [engine.share, engine.mu, *([engine.mean_mu] if averaged else [])]

    def marginals(self) -> Floats:
        """Node marginals; right at the own nodes, and at the halo's where that was filled in."""
        return self.engine.by_node(self.engine.mu)

    def glimpsed(self) -> None:
        """Nothing: arrays of a judgement stay on the device."""

    def priced(self, averaged: bool) -> list[float]:
        """Terms of the point: cost, edge entropy, slack, averaged cost, dual, node entropy."""
        engine, mean = self.engine, np.inf
        taken_off = engine.read(engine.shift, self._late_slots).astype(np.float64)
        if self._on_device:
            engine.couple(averaged)
        sums = engine.sums()
        smoothed = sums[Row.NODE_SOFT] + core.careful_sum(taken_off)
        if self._on_device:
            cost, entropy, slack = (
                sums[Row.NODE_COST] + sums[Row.EDGE_COST], sums[Row.EDGE_ENTROPY],
                sums[Row.EDGE_SLACK],
            )  # fmt: skip
            smoothed += sums[Row.EDGE_SHIFT]
            if averaged:
                mean = sums[Row.MEAN_NODE_COST] + sums[Row.MEAN_EDGE_COST]
        else:
            coupling = self._couplings()
            cost, entropy, slack = self.point_terms(coupling, self._eta, self.marginals())
            if averaged:
                average = engine.by_node(engine.mean_mu)
                mean = self.point_terms(coupling, self._eta, average)[0]
        row = [cost, entropy, slack, mean, smoothed, sums[Row.NODE_ENTROPY]]
        return [float(row[0]) if np.isfinite(row[0]) else np.inf, *map(float, row[1:])]

    def _couplings(self) -> Floats:
        """κ = share - M of all half-edges, on the host."""
        share = self.engine.by_node(self.engine.share)[self._half_states]
        minus = self.engine.lam(self.engine.msg, 0)
        return np.where(np.isfinite(share), share + minus, np.inf)

    @cached_property
    def _half_states(self) -> Ints:
        """The state of each entry of λ."""
        model = self.part.model
        node = model.edges.reshape(-1)
        labels = model.num_labels[node]
        return np.repeat(model.node_offset[node], labels) + spread(labels)

    def spare(self, hard: int) -> Any:
        """A copy of the messages for hard passes; λ is read off it when somebody wants to."""
        self.engine.device.copy(self.engine.msg, self.engine.polished)
        return self.engine.polished

    def prove(self, msg: Any) -> tuple[float, Floats | None]:
        """The part's share of the bound, rounded down; λ stays on the device."""
        return self.engine.bound(msg), None

    def keep(self) -> None:
        """Keep λ of the last bound on the device."""
        self.engine.device.copy(self.engine.polished, self.engine.best_lam)

    def fetched(self, kept: bool) -> Floats:
        """λ of the last bound, or of the one that was kept."""
        engine = self.engine
        return engine.lam(engine.best_lam if kept else engine.polished, 1)

    def forget(self) -> None:
        """Nothing: arrays of a judgement stay on the device."""

    # --- checkpoints ---

    def stored(self) -> dict[str, NDArray[Any]]:
        """The arrays that a run goes on from."""
        return {name: self.engine.device.fetch(getattr(self.engine, name)) for name in STORED}

    def restore(self, name: str, array: NDArray[Any]) -> None:
        """Put a stored array back."""
        self.engine.device.put(getattr(self.engine, name), array)

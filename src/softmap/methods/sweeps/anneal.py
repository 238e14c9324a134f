"""The default method: smoothed chain passes with momentum; η is annealed by the gap.

The model of an image may be initialised coarse-to-fine, from blocks of 2 × 2 pixels. If neighbours
are strongly coupled, the first passes mainly propagate information over long distances. On the
coarse model each pass propagates twice as far for a quarter of the work.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.methods.base import Assessment, Floats, Proposal, State, SweepMethod
from softmap.methods.policy import AnnealingRule, Ask, Cooling, longest_momentum
from softmap.methods.sweeps.chains import ChainMarginals, ChainNumbers, Chains, ProvedBound, polish
from softmap.methods.sweeps.loops import CLOCK, SAMPLED, Messages, Sampling
from softmap.methods.sweeps.planning import aligned, copied, decoding_order
from softmap.model import Network, Potential, Potts, TruncatedLinear, TruncatedQuadratic
from softmap.model.graph import grid_width, neighbours
from softmap.relaxation.gaps import cost_scale
from softmap.relaxation.polytope import Coupled
from softmap.tuning import Numbers

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class AnnealNumbers(Numbers):
    """The average of marginals, and coarse-to-fine initialisation."""

    recent: float = 8.0  # sample k of averaged marginals has the weight k^8; D7
    coarse_pixels: int = 1 << 14  # least number of pixels for coarse-to-fine; D26
    coarse_tied: float = 2.5  # least range of edge costs for it, in that of unary costs; D26
    coarse_passes: int = 8  # passes over the coarse model; D26


@dataclass(frozen=True, eq=False)
class Coarser:
    """A coarsened model: all pixels of a block share one label.

    Attributes
    ----------
    model : Network
        The coarse model.
    source : int64[2m]
        For each half-edge of the image, the coarse half-edge whose λ initialises it: the one in the
        same direction, also for edges within a block. -1 if there is none.
    part : float64[2m]
        Factor on that λ: weight of the edge / weight of the coarse edge.
    """

    model: Network
    source: Ints
    part: Floats


def coarser(model: Network, numbers: AnnealNumbers) -> Coarser | None:
    """Return the coarsened model, or None if coarse-to-fine does not apply.

    It applies to large images whose neighbours are strongly coupled.
    """
    width = grid_width(model.edges) if model.n >= numbers.coarse_pixels else None
    if width is None or model.n % width or not _coupled(model, numbers.coarse_tied):
        return None
    family = _family(model)
    return None if family is None else _blocks(model, width, family)


def _family(model: Network) -> Callable[[Floats], Potential] | None:
    """Return a function from weights to a potential, if edges differ only in weights >= 0."""
    first = model.potentials[0] if model.potentials else None
    if model.has_forbidden or not isinstance(first, Potts | TruncatedLinear | TruncatedQuadratic):
        return None
    if (model.num_labels != model.num_labels[0]).any():
        return None
    cuts = first.arrays().get("truncation", np.zeros(0))[:1]
    for potential in model.potentials:
        arrays = potential.arrays()
        if type(potential) is not type(first) or not (arrays["weights"] >= 0).all():
            return None
        if len(cuts) and (arrays["truncation"] != cuts).any():
            return None
    return lambda weights: type(first)(weights, *cuts)


def _coupled(model: Network, least: float) -> bool:
    """Whether the ranges of edge costs are at least `least` times those of unary costs."""
    sizes = model.cost_sizes
    return sizes.width - sizes.node_width >= least * sizes.node_width


def _in_pairs(costs: Floats) -> Floats:
    """Return the sums of consecutive pairs along the first axis; an odd last entry stays alone."""
    sums = costs[::2].copy()
    sums[: len(costs) // 2] += costs[1::2]
    return sums


def _blocks(model: Network, width: int, family: Callable[[Floats], Potential]) -> Coarser:
    costs = model.unary.reshape(-1, width, int(model.num_labels[0]))
    costs = _in_pairs(_in_pairs(costs).swapaxes(0, 1)).swapaxes(0, 1)
    rows, cols = costs.shape[:2]
    pixel = np.arange(model.n)
    block = pixel // width // 2 * cols + pixel % width // 2
    ends = np.sort(model.edges, axis=1)
    crossing = block[ends[:, 0]] != block[ends[:, 1]]
    leads = _Leads(rows, cols, down=ends[:, 1] - ends[:, 0] == width)
    after, before = leads.forward(block[ends[:, 0]]), leads.back(block[ends[:, 1]])
    weights = np.concatenate([p.arrays()["weights"] for p in model.potentials])
    edges = neighbours((rows, cols))
    total = np.bincount(after[crossing], weights[crossing], len(edges)).astype(np.float64)
    swapped = (model.edges[:, 0] > model.edges[:, 1]).astype(np.int64)
    source, part = np.empty(2 * model.m, dtype=np.int64), np.empty(2 * model.m)
    for side, edge in enumerate((after, before)):
        half, heavy = 2 * np.arange(model.m) + (swapped ^ side), (edge >= 0) & (total[edge] > 0)
        source[half] = np.where(heavy, 2 * edge + side, -1)
        part[half] = np.where(heavy, weights, 0.0) / np.where(heavy, total[edge], 1.0)
    return Coarser(Network(costs.reshape(rows * cols, -1), edges, family(total)), source, part)


@dataclass(frozen=True, eq=False)
class _Leads:
    """The edges between blocks, to the right or `down`, in the order of `neighbours`."""

    rows: int
    cols: int
    down: NDArray[np.bool_]

    def forward(self, block: Ints) -> Ints:
        """Return the edge from a block to the right, or down; -1 at the border."""
        row, col = block // self.cols, block % self.cols
        rim = np.where(self.down, row == self.rows - 1, col == self.cols - 1)
        first = np.where(self.down, self.rows * (self.cols - 1) + block, block - row)
        return np.where(rim, -1, first)

    def back(self, block: Ints) -> Ints:
        """Return the edge to a block from the left, or from above; -1 at the border."""
        rim = np.where(self.down, block < self.cols, block % self.cols == 0)
        before = block - np.where(self.down, self.cols, 1)
        return np.where(rim, -1, self.forward(np.where(rim, 0, before)))


FALL = 1e-6  # relative decrease of the smoothed dual between two checks that counts as rounding


def easily_coupled(model: Network) -> bool:
    """Whether edge marginals are fast to compute from node marginals (Potts or small tables)."""
    for first, last, potential in model.groups():
        rows, cols = model.end_labels(first, last)
        if potential.family != "potts" and last > first and (rows * cols).max() > core.EXCHANGED:
            return False
    return bool(model.m)


class Engine(Protocol):
    """The passes over one model that `Annealed` drives, and their regularised primal point.

    `point_dtype` is the precision of the node marginals of points.
    """

    model: Network
    point_dtype: np.dtype[Any]

    def __init__(
        self, model: Network, threads: int, deadline: core.Deadline | None = None
    ) -> None: ...

    def start(self, lam: Floats | None) -> Messages: ...

    def sampled_passes(
        self,
        state: Messages,
        count: int,
        eta: float,
        sampling: Sampling,
        deadline: core.Deadline | None = None,
    ) -> int: ...

    def nodes(self, messages: Floats, eta: float) -> Floats: ...

    def marginals(self, state: Messages, eta: float) -> ChainMarginals: ...

    def current_lam(self, state: Messages, eta: float) -> Floats: ...

    def resend(self, state: Messages, eta: float) -> None: ...

    def undo_proposal(self, state: Messages) -> None: ...

    def prove(
        self,
        state: Messages,
        hard: int,
        deadline: core.Deadline | None = None,
        limit: core.Deadline | None = None,
    ) -> ProvedBound: ...


@dataclass(kw_only=True)
class AnnealState(Cooling, State):
    """The state of an annealed run.

    Attributes
    ----------
    messages : Messages
    passes : int
        Number of passes so far.
    samples : int
        Number of samples in the average of node marginals.
    mean : float64 or float32 array
        The average of node marginals.
    lent : bool
        Whether the best point may be this array, so that the next sample goes into a copy.
    node_entropy : float
        Entropy of the nodes, to be subtracted from that of the edges, at the last check.
    calm : float
        Factor on the limit of momentum: 1 at first, smaller after the smoothed dual decreased.
    good : float64 array
        The messages of the last check; empty if momentum cannot decrease the dual.
    """

    messages: Messages
    passes: int = 0
    samples: int = 0
    mean: Floats
    lent: bool = False
    node_entropy: float = 0.0
    calm: float = 1.0
    good: Floats = field(default_factory=lambda: np.zeros(0))


class Annealed(SweepMethod):
    """Passes of an engine with momentum, at an η that rises; messages are kept when η rises.

    Parameters
    ----------
    eta : float, optional
        Initial η; by default from the scale of the costs.
    threads : int, default 1
    averaging : bool, default True
        Whether to average node marginals, if points over the average are fast to compute.
    """

    exact_finish = True
    engine_type: ClassVar[type[Engine]]

    def __init__(
        self,
        *,
        eta: float | None = None,
        threads: int = 1,
        averaging: bool = True,
    ) -> None:
        super().__init__(eta=eta, threads=threads)
        self.averaging = averaging

    def new_engine(self, model: Network, deadline: core.Deadline | None) -> Engine:
        """Return the engine of a model; `OutOfTime` is raised if the deadline passes first."""
        return self.engine_type(model, self.threads, deadline)

    def init(
        self,
        model: Network,
        lam: Floats | None,
        seed: int,
        deadline: core.Deadline | None = None,
    ) -> AnnealState:
        self.engine = self.new_engine(model, deadline)
        self.averaging = self.averaging and easily_coupled(model)
        self.scale = cost_scale(model)
        eta = self.given_eta or self.tuning.of(AnnealingRule).first / self.scale
        mean = aligned(model.unary.size, self.engine.point_dtype)
        messages = self.engine.start(lam)
        # Momentum over large factors may decrease the dual: keep messages to return to.
        good = messages.msg.copy() if model.has_factors else np.zeros(0)
        return AnnealState(messages=messages, eta=eta, mean=mean, good=good)

    def step(self, state: AnnealState, count: int, deadline: core.Deadline | None = None) -> None:
        """Do `count` passes; every few passes the node marginals are added to the average."""
        rule = self.tuning.of(AnnealingRule)
        most = longest_momentum(rule, state.eta, self.scale)
        if state.calm < 1.0:
            most = max(state.calm * rule.momentum * math.sqrt(state.eta * self.scale), 1.0)
        due = self.averaging and state.passes % SAMPLED + count >= SAMPLED
        if due and state.lent:
            state.mean, state.lent = copied(state.mean, self.threads), False
        mean = state.mean if due else np.zeros(0)
        recent = self.tuning.of(AnnealNumbers).recent
        sampling = Sampling(state.passes, state.samples, most, mean, recent)
        done = self.engine.sampled_passes(state.messages, count, state.eta, sampling, deadline)
        after = sampling.after(done)
        state.passes, state.samples = after.passes, after.samples
        state.work += 2 * self.engine.model.m * done

    def undo_proposal(self, state: AnnealState) -> None:
        self.engine.undo_proposal(state.messages)

    def restart_point(self, state: AnnealState) -> Floats:
        return self.engine.current_lam(state.messages, state.eta)

    def propose(self, state: AnnealState) -> Proposal:
        return self.answer(state, Ask.EVERYTHING)

    def answer(
        self, state: AnnealState, ask: Ask, deadline: core.Deadline | None = None
    ) -> Proposal:
        if ask is Ask.BOUND:
            return self._bound_and_nodes(state)
        if ask is Ask.POINT:
            return self._proposal(state, (), 0, deadline)
        average = (state.mean,) if state.samples > 1 else ()
        hard = polish(state.passes, self.tuning.of(ChainNumbers))
        return self._proposal(state, average, hard, deadline)

    def last_bound(self, state: AnnealState, limit: core.Deadline) -> Proposal:
        """Propose the bound of the messages, which takes half a pass, and no marginals."""
        proved = self.engine.prove(state.messages, 0, limit=limit)
        return Proposal(proved.lam, state.eta, bound=proved.bound, labels=proved.labels)

    def _bound_and_nodes(self, state: AnnealState) -> Proposal:
        messages = state.messages
        self.engine.resend(messages, state.eta)
        nodes = self.engine.nodes(messages.msg, state.eta)
        proved = self.engine.prove(messages, 0)
        return Proposal(
            proved.lam, state.eta, nodes=(nodes,), bound=proved.bound, labels=proved.labels
        )

    def _proposal(
        self,
        state: AnnealState,
        more: tuple[Floats, ...],
        hard: int,
        deadline: core.Deadline | None,
    ) -> Proposal:
        """Propose the current marginals, those in `more`, and the bound after hard-min passes."""
        messages, engine = state.messages, self.engine
        engine.resend(messages, state.eta)
        found = engine.marginals(messages, state.eta)
        state.node_entropy, state.smoothed = found.node_entropy, found.smoothed
        nodes, coupling, point_cost = (found.nodes, *more), found.coupling, found.point_cost
        points: tuple[Coupled, ...] = ()
        if point_cost is not None:  # the entropy of the averaged point is not needed
            with suppress(core.OutOfTime):
                points = tuple(
                    point_cost(p, whole=not k, deadline=deadline) for k, p in enumerate(nodes)
                )
        abandoned = not points and deadline is not None and deadline.passed
        proved = engine.prove(messages, hard, deadline)
        return Proposal(
            proved.lam, state.eta, coupling, nodes, state.smoothed, proved.bound, points,
            proved.labels, abandoned,
        )  # fmt: skip

    def observe(self, state: AnnealState, verdict: Assessment) -> None:
        """Raise η if the rule says so; restore earlier messages if the smoothed dual decreased."""
        if any(verdict.kept) or verdict.labelled:
            state.lent = any(verdict.kept[1:]) and not verdict.labelled
        fell = not state.smoothed >= state.previous - FALL * abs(state.previous)
        if fell and len(state.good):
            self._go_back(state)
            return
        if len(state.good):
            self.undo_proposal(state)
            state.good[:] = state.messages.msg
        state.observe(
            self.tuning.of(AnnealingRule),
            bound=verdict.bound,
            primals=verdict.primals,
            entropy=verdict.edge_entropy - state.node_entropy,
            averaged=state.samples > 1,
        )

    def _go_back(self, state: AnnealState) -> None:
        """Restore the messages of the last check, and lower the limit of momentum."""
        messages = state.messages
        self.undo_proposal(state)
        messages.msg[:] = state.good
        messages.drift[:] = 0.0
        messages.clock[:] = CLOCK
        state.calm /= self.tuning.of(AnnealingRule).calmer


class Anneal(Annealed):
    """The annealed method over monotonic chains: smoothed TRW-S passes."""

    name = "anneal"
    engine_type = Chains
    engine: Chains

    def new_engine(self, model: Network, deadline: core.Deadline | None) -> Chains:
        return Chains(model, self.threads, deadline, self.tuning.of(ChainNumbers))

    def start_coarse(self, state: AnnealState, deadline: core.Deadline | None = None) -> None:
        """Initialise λ coarse-to-fine, if the model can be coarsened (see `coarser`)."""
        numbers = self.tuning.of(AnnealNumbers)
        small = coarser(self.engine.model, numbers)
        if small is None:
            return
        method = Anneal(threads=self.threads).with_tuning(self.tuning)
        try:
            there = method.init(small.model, None, 0, deadline)
        except core.OutOfTime:
            return
        method.start_coarse(there, deadline)
        method.step(there, numbers.coarse_passes, deadline)
        state.work += there.work
        if there.passes < numbers.coarse_passes:
            return
        lam = method.restart_point(there)
        del method, there
        self.engine.begin_with(state.messages, lam, small.source, small.part)
        if self.given_eta is None:
            state.eta *= self.tuning.of(AnnealingRule).growth

    def decode_order(self, model: Network) -> NDArray[np.int64]:
        return decoding_order(model.graph, model.num_variables)

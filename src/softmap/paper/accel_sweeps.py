"""`accel-sweeps`: momentum over whole star sweeps with a safeguard, so that its rate is proved.

Theorem and proof are in `docs/theory/rates.md`, the constants in `softmap.paper.rates`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softmap import core
from softmap.methods.base import Floats, Proposal, State, SweepMethod
from softmap.methods.policy import Ask
from softmap.methods.sweeps.loops import CLOCK, NONE, Messages
from softmap.methods.sweeps.stars import Rule, Stars
from softmap.model import Network
from softmap.paper.baselines import NESTEROV
from softmap.paper.estimate import NOISE, largest_step, least_step
from softmap.relaxation.gaps import cost_scale

EVERY = 25  # sweeps with momentum per safeguard step, which costs as much as 3.5 sweeps
SETTLING = 10  # most sweeps without momentum before a proposal


def sweep_curvature(model: Network, eta: float) -> Floats:
    """W_h = η (|N_i| + 2) / 2 at every entry of λ: the Hessian of L is at most diag(W)."""
    node = model.edges.reshape(-1)
    weight: Floats = np.repeat(eta * (model.graph.degree[node] / 2.0 + 1.0), model.num_labels[node])
    return weight


@dataclass(kw_only=True)
class AccelSweepsState(State):
    """Messages m = -λ of the run with momentum, and the two points of the estimate sequence.

    Attributes
    ----------
    messages : Messages
        The run with momentum.
    x, v : float64 arrays
        Messages of least L at the last safeguard step, and of the minimum of the estimate function.
    nodes : float64 array
        Mean of the node marginals at the points y of the safeguard steps, weighted by a_k.
    value : float
        L(x).
    total : float
        A_k: L(x) - L* is at most ‖λ* - λ⁰‖² / (2 A_k) in the norm of `sweep_curvature`.
    sweeps, guards : int
        Number of sweeps with momentum and of safeguard steps.
    """

    messages: Messages
    x: Floats
    v: Floats
    nodes: Floats
    value: float
    total: float = 0.0
    sweeps: int = 0
    guards: int = 0


class AccelSweeps(SweepMethod):
    """Momentum over whole star sweeps at a fixed η, with a safeguard that proves the rate 1/k².

    After every `every` sweeps, one step of accelerated alternating minimisation is made from the
    best point so far. The better of its result and of the momentum's is kept. A proposal is the
    best point after a few sweeps without momentum, which remove most of its slack, and the mean of
    the node marginals over the safeguard steps, whose slack is proved to fall like 1/k².

    Parameters
    ----------
    eta : float, optional
        Inverse temperature η of the whole run; 1000 / scale of the costs by default.
    threads : int, default 1
    every : int, default 25
        Number of sweeps with momentum between two safeguard steps.
    """

    name = "accel-sweeps"

    def __init__(self, *, eta: float | None = None, threads: int = 1, every: int = EVERY) -> None:
        super().__init__(eta=eta, threads=threads)
        self.every = every

    def init(
        self,
        model: Network,
        lam: Floats | None,
        seed: int,
        deadline: core.Deadline | None = None,
    ) -> AccelSweepsState:
        """Return the initial state x = v = λ (0 if None)."""
        self.stars = Stars(model, self.threads, deadline)
        self.eta = self.given_eta or NESTEROV / cost_scale(model)
        self.colours = max(len(self.stars.plan.row_start) - 1, 1)
        self._weight = -self.stars.start(sweep_curvature(model, self.eta)).msg
        messages = self.stars.start(lam)
        x = messages.msg.copy()
        nodes = self.stars.nodes(x, self.eta)
        return AccelSweepsState(
            messages=messages, x=x, v=x.copy(), nodes=nodes, value=self._value(x)
        )

    def step(
        self, state: AccelSweepsState, count: int, deadline: core.Deadline | None = None
    ) -> None:
        """Do `count` sweeps with momentum, and the safeguard steps that are due between them."""
        while count > 0:
            asked = min(count, self.every - state.sweeps % self.every)
            done = self.stars.passes(
                state.messages, asked, self.eta, momentum=True, deadline=deadline
            )
            state.sweeps += done
            state.work += 2 * self.stars.model.m * done
            if done < asked:
                return
            count -= done
            if state.sweeps % self.every == 0:
                self.guard(state, deadline)

    def guard(self, state: AccelSweepsState, deadline: core.Deadline | None = None) -> None:
        """Do one safeguard step (none if the deadline passes first)."""
        total, x, v = state.total, state.x, state.v
        least = least_step(total, self.colours)
        y = x + least / (total + least) * (v - x)
        down = self._swept(y, 1, Rule.GRADIENT, deadline)
        swept = self._swept(y, 1, Rule.STAR, deadline)
        if down is None or swept is None:
            return
        step = y - down  # W⁻¹ ∇L(y)
        points = [x, state.messages.msg, swept]
        values = [state.value, *(self._value(point) for point in points[1:])]
        best = int(np.argmin(values))
        square = float(self._weight @ (step * step))
        noise = NOISE * abs(values[best])
        gain = self._value(y) - values[best] + float(self._weight @ (step * (v - y))) - noise
        held = total * (state.value - values[best] - noise)
        a = max(largest_step(square, gain, held), least)
        state.v = v - a * step
        state.total += a
        state.nodes += a / state.total * (self.stars.nodes(y, self.eta) - state.nodes)
        state.value, state.x = values[best], points[best].copy()
        state.guards += 1
        state.work += 7 * self.stars.model.m  # a gradient, a sweep, three values
        if best != 1:
            state.messages.msg[:] = state.x
            state.messages.drift[:] = 0.0
            state.messages.clock[:] = CLOCK

    def settling(self, state: AccelSweepsState) -> int:
        """Return the number of sweeps without momentum of a proposal: a third, at most ten."""
        return min(SETTLING, -(-state.sweeps // 3))

    def propose(self, state: AccelSweepsState) -> Proposal:
        """Propose the best λ so far after a few sweeps without momentum."""
        return self._proposal(state, None)

    def answer(
        self, state: AccelSweepsState, ask: Ask, deadline: core.Deadline | None = None
    ) -> Proposal:
        return self._proposal(state, deadline)

    def _proposal(self, state: AccelSweepsState, deadline: core.Deadline | None) -> Proposal:
        now = state.messages.msg
        point = now if self._value(now) <= state.value else state.x
        settled = self._swept(point, self.settling(state), Rule.STAR, deadline)
        point = point if settled is None else settled
        nodes = (self.stars.nodes(point, self.eta), state.nodes)[: 1 + (state.guards > 0)]
        return Proposal(self.stars.lam(point), self.eta, nodes=nodes, smoothed=-self._value(point))

    def _value(self, messages: Floats) -> float:
        """L(λ)."""
        return -self.stars.value(messages, self.eta)

    def _swept(
        self, messages: Floats, count: int, rule: Rule, deadline: core.Deadline | None
    ) -> Floats | None:
        """Return the messages after some sweeps without momentum; None if they were stopped."""
        shift = np.zeros(len(self.stars.plan.blocks))
        copy = Messages(messages.copy(), NONE, np.array(CLOCK), shift)
        done = self.stars.passes(
            copy, count, self.eta, momentum=False, rule=rule, deadline=deadline
        )
        return copy.msg if done == count else None

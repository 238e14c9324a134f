"""TRW-S (Kolmogorov 2006): passes over monotonic chains at η = ∞."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.methods.base import Floats, Proposal, State, SweepMethod
from softmap.methods.policy import Ask
from softmap.methods.sweeps.chains import ChainNumbers, Chains
from softmap.methods.sweeps.loops import Messages
from softmap.methods.sweeps.planning import decoding_order
from softmap.model import Network
from softmap.relaxation.gaps import cost_scale
from softmap.relaxation.polytope import Coupled

ROUNDED = 1e4  # η of the marginals of methods at η = ∞, in units of 1 / scale of the costs


@dataclass(kw_only=True)
class TRWSState(State):
    """Messages of the hard-min recursion."""

    messages: Messages


class TRWS(SweepMethod):
    """TRW-S: hard-min passes over monotonic chains.

    Its bound never decreases; it may converge to a value below the LP optimum.

    Parameters
    ----------
    eta : float, optional
        η of the proposed marginals only; the messages do not depend on it.
    threads : int, default 1
    """

    name = "trws"

    def init(
        self,
        model: Network,
        lam: Floats | None,
        seed: int,
        deadline: core.Deadline | None = None,
    ) -> TRWSState:
        self.chains = Chains(model, self.threads, deadline, self.tuning.of(ChainNumbers))
        self.eta = self.given_eta or ROUNDED / cost_scale(model)
        return TRWSState(messages=self.chains.start(lam))

    def step(self, state: TRWSState, count: int, deadline: core.Deadline | None = None) -> None:
        """Do `count` passes, each forward and backward."""
        messages = state.messages
        done = self.chains.passes(messages, count, np.inf, momentum=False, deadline=deadline)
        state.work += 2 * self.chains.model.m * done

    def propose(self, state: TRWSState) -> Proposal:
        return self.answer(state, Ask.EVERYTHING)

    def answer(self, state: TRWSState, ask: Ask, deadline: core.Deadline | None = None) -> Proposal:
        """Propose marginals and their point, unless the deadline passes first, and the bound."""
        chains, messages = self.chains, state.messages
        chains.resend(messages, np.inf)
        found = chains.marginals(messages, self.eta)
        points: tuple[Coupled, ...] = ()
        if found.point_cost is not None:
            with suppress(core.OutOfTime):
                points = (found.point_cost(found.nodes, whole=True, deadline=deadline),)
        abandoned = not points and deadline is not None and deadline.passed
        proved = chains.prove(messages, deadline=deadline)
        return Proposal(
            proved.lam, self.eta, found.coupling, (found.nodes,), None, proved.bound, points,
            proved.labels, abandoned,
        )  # fmt: skip

    def last_bound(self, state: TRWSState, limit: core.Deadline) -> Proposal:
        """Propose the bound of the messages, which takes half a pass, and no marginals."""
        proved = self.chains.prove(state.messages, 0, limit=limit)
        return Proposal(proved.lam, self.eta, bound=proved.bound, labels=proved.labels)

    def restart_point(self, state: TRWSState) -> Floats:
        return self.chains.current_lam(state.messages, np.inf)

    def undo_proposal(self, state: TRWSState) -> None:
        self.chains.undo_proposal(state.messages)

    def decode_order(self, model: Network) -> NDArray[np.int64]:
        return decoding_order(model.graph, model.num_variables)

"""Sequential tree-reweighted message passing (Kolmogorov 2006): the chain pass at η = ∞."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from softmap.methods.base import Algorithm, Floats, Proposal, State
from softmap.methods.sweeps.chains import Chains
from softmap.methods.sweeps.messages import Messages
from softmap.methods.sweeps.ordering import decoding_order
from softmap.model import Model
from softmap.relaxation.dual import cost_scale

__all__ = ["TRWS"]

SHARPNESS = 1e4  # η of the marginals that are rounded, in units of 1 / scale of the costs


@dataclass(kw_only=True)
class TRWSState(State):
    """Messages of the hard-min recursion."""

    messages: Messages


class TRWS(Algorithm):
    """Hard-min passes over monotonic chains: its bound never falls, and may stall below the LP.

    Parameters
    ----------
    eta : float, optional
        Only for the marginals that the judge is shown; the messages know no temperature.
    """

    name = "trws"
    sweeping = True

    def __init__(
        self, *, eta: float | None = None, threads: int = 1, dtype: DTypeLike = np.float64
    ) -> None:
        self.sharpness, self.dtype, self.threads = eta, dtype, threads

    @classmethod
    def configured(cls, eta: float | None, threads: int, dtype: DTypeLike) -> Self:
        return cls(eta=eta, threads=threads, dtype=dtype)

    def init(self, model: Model, lam: Floats | None, seed: int) -> TRWSState:
        self.chains = Chains(model, self.threads, self.dtype)
        self.eta = self.sharpness or SHARPNESS / cost_scale(model)
        return TRWSState(messages=self.chains.start(lam))

    def step(self, state: TRWSState, count: int) -> None:
        """`count` passes, forward and backward each."""
        self.chains.passes(state.messages, count, np.inf, momentum=False)
        state.work += 2 * self.chains.model.m * count

    def propose(self, state: TRWSState) -> Proposal:
        self.chains.resend(state.messages, np.inf)
        found = self.chains.marginals(state.messages, self.eta)
        points = () if found.price is None else (found.price(found.nodes, whole=True),)
        proved = self.chains.prove(state.messages)
        return Proposal(
            proved.lam, self.eta, found.coupling, (found.nodes,), None, proved.bound, points,
            proved.labels,
        )  # fmt: skip

    def restart_point(self, state: TRWSState) -> Floats:
        return self.chains.standing(state.messages, np.inf)

    def decode_order(self, model: Model) -> NDArray[np.int64]:
        return decoding_order(model.graph, model.num_variables)

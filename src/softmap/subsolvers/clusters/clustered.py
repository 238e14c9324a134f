"""Annealed passes over one tightened model."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from softmap import core
from softmap.methods.base import Proposal
from softmap.methods.policy import AnnealingRule, eta_rises
from softmap.methods.sweeps.anneal import Anneal
from softmap.methods.sweeps.chains import ChainNumbers, polish
from softmap.model.layout import layout
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import Floats
from softmap.relaxation.polytope import ClusterBeliefs, normalised
from softmap.subsolvers.clusters.cluster_numbers import TightenNumbers
from softmap.subsolvers.clusters.regions import Tightened, arrange
from softmap.tuning import Tuning

__all__ = ["Clustered"]


class Clustered:
    """Passes over one tightened model, and how far they have come.

    Parameters
    ----------
    tight : Tightened
    lam : float64 array
        Initial λ.
    eta : float
        Initial η.
    threads : int
        Number of threads.
    tuning : Tuning
        The numbers of the run.
    end : Deadline, optional
        The end of the run; set-up that does not end before raises `core.OutOfTime`.

    Attributes
    ----------
    tight : Tightened
    bound : float
        Best bound of this model.
    settled : bool
        Whether the smoothed dual has converged: it gained little at the last check.
    idle : int
        Number of consecutive checks that did not raise the best bound of any model.
    rising : bool
        Whether the last check raised the bound of this model.
    """

    def __init__(
        self,
        tight: Tightened,
        lam: Floats,
        eta: float,
        threads: int,
        tuning: Tuning,
        end: core.Deadline | None = None,
    ) -> None:
        self._numbers = numbers = tuning.of(TightenNumbers)
        rule = tuning.of(AnnealingRule)
        self._rule = replace(rule, growth=numbers.growth, settled=numbers.settled)
        self._chains = tuning.of(ChainNumbers)
        model, self._states = arrange(tight)
        # Clusters are chosen by edge marginals: proposals need couplings and no averages.
        anneal = Anneal(threads=threads, eta=eta, averaging=False)
        self._algorithm = anneal.with_tuning(tuning)
        self._state = self._algorithm.init(tighten(model, threads, end), lam, 0, end)
        self._algorithm.engine.keep_couplings()
        self.tight = tight
        self.bound = self._smoothed = self._previous = -math.inf
        labels = np.log(model.num_labels)
        self._entropy = float(labels.sum() + labels[model.edges].sum())
        self.settled, self.rising, self.idle = False, True, 0

    @property
    def smoothing(self) -> float:
        """By how much smoothing lowers the bound.

        Where rounding errors exceed that, it is at most what the entropy of all labels allows.
        """
        return min(self.bound - self._smoothed, self._entropy / self._state.eta)

    @property
    def lam(self) -> Floats:
        """The current λ, to start passes over another model from."""
        return self._algorithm.restart_point(self._state)

    def restart(self, eta: float) -> None:
        """Continue at another η."""
        self._state.eta = eta

    def step(self) -> None:
        """Do one pass."""
        self._algorithm.step(self._state, 1)

    def propose(self, end: core.Deadline) -> Proposal:
        """Return the marginals, and the bound that hard-min passes prove; its λ and κ are lazy.

        Raises `core.OutOfTime` if `end` passes before.
        """
        engine, state = self._algorithm.engine, self._state
        engine.resend(state.messages, state.eta)
        found = engine.marginals(state.messages, state.eta)
        self._smoothed = found.smoothed
        end.require()
        proved = engine.prove(state.messages, polish(state.passes, self._chains), end, end)
        return Proposal(
            proved.lam, state.eta, found.coupling, (found.nodes,), found.smoothed, proved.bound
        )

    def nodes(self, found: Proposal) -> Floats:
        """Return the marginals of variables and pairs, in the order of the tightened model."""
        return self._nodes(found, int(self.tight.model.node_offset[self.tight.first_cluster]))

    def proof(self, found: Proposal, end: core.Deadline) -> tuple[float, Floats, ClusterBeliefs]:
        """Return the bound, its λ, and all marginals, in the order of the tightened model.

        Raises `core.OutOfTime` if `end` passes before.
        """
        model, lam = self._algorithm.engine.model, found.lam
        end.require()
        bound = core.dual_bound(layout(model), lam, model.constant, self._algorithm.threads)
        end.require()
        coupling = found.coupling
        assert coupling is not None
        end.require()
        return (
            bound,
            lam,
            ClusterBeliefs(self._nodes(found, len(self._states)), coupling, found.eta),
        )

    def _nodes(self, found: Proposal, count: int) -> Floats:
        model = self._algorithm.engine.model
        return normalised(model, found.nodes[0])[self._states[:count]]

    def observe(self, bound: float, gained: float, gap: float) -> None:
        """Note the bound of a check; raise η once the smoothed dual has converged.

        Parameters
        ----------
        bound : float
        gained : float
            By how much this raised the best bound of all models.
        gap : float
            The MAP gap.
        """
        smoothed = self._smoothed
        self.rising = bound - self.bound > self._numbers.rising * gap
        self.bound = max(self.bound, bound)
        self.settled = bool(
            eta_rises(
                # the smoothed dual is above the bound by rounding errors only
                self._rule, self._state.eta, bound=max(bound, smoothed), smoothed=smoothed,
                previous=self._previous, primal=math.inf, gap=math.inf, entropy=0.0,
            )
        )  # fmt: skip
        self.idle = 0 if gained > self._numbers.progress * gap else self.idle + 1
        self._previous = smoothed
        if bound - smoothed > self._numbers.coarse * gap:
            self._state.raise_by(self._numbers.fast_growth)
        elif self.settled:
            self._state.raise_by(self._rule.growth)

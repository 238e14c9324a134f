"""`Forest`: models of pairs whose graph is a forest, solved by dynamic programming."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from softmap import core
from softmap.model import Model, Network
from softmap.model.layout import layout
from softmap.model.potentials.base import Ints
from softmap.relaxation.dual import Floats
from softmap.run.at_once import answer, may_answer
from softmap.run.best import Best
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.result import Result
from softmap.run.subsolver import Once, Outcome, Share, by_default
from softmap.tuning import Numbers

__all__ = ["Forest", "ForestNumbers"]


@dataclass(frozen=True)
class ForestNumbers(Numbers):
    """Which forests are solved at once."""

    entries: int = 200_000  # most entries of λ: some ms, without a look at the time; D181


class Forest(Once):
    """The optimum of a forest by min-sum messages, and λ that proves it."""

    name = "trees"

    @classmethod
    def at_once(cls, model: Model, options: Options) -> Result | None:
        """Return the result of a forest with finite costs and no factors of more variables."""
        if model.m >= model.n or model.constraints or not may_answer(options):
            return None
        began, network = time.perf_counter(), model.network
        optimum = _optimum(network) if _may_be_forest(network, options) else None
        if optimum is None:
            return None
        labels, lam = optimum
        energy = core.energy(layout(network), labels, network.constant, 1)
        bound = core.dual_bound(layout(network), lam, network.constant, 1)
        seconds = time.perf_counter() - began
        return answer(model, options, cls.name, labels, (energy, bound), lambda: lam, seconds)

    @classmethod
    def make(cls, problem: Problem, options: Options) -> Forest | None:
        fits = by_default(options) and _may_be_forest(problem.model, options)
        return cls(problem, options) if fits else None

    def __call__(self, best: Best, share: Share) -> Outcome:
        optimum = _optimum(self.problem.model)
        if optimum is None:
            return Outcome(active=False, ran=False)
        best.offer_labels(optimum[0])
        best.offer_lam(optimum[1])
        return Outcome(active=False)


def _may_be_forest(network: Network, options: Options) -> bool:
    """Whether a network has few edges, no factor nodes, and finite costs."""
    if network.m >= network.n or network.half_size > options.tuning.of(ForestNumbers).entries:
        return False
    return not network.has_factors and not network.has_forbidden


def _optimum(network: Network) -> tuple[Ints, Floats] | None:
    """Return labels of least cost and λ that proves them; None if the network has a cycle."""
    labels, lam = np.empty(network.n, dtype=np.int64), np.empty(network.half_size)
    return (labels, lam) if core.tree_optimum(layout(network), labels, lam) else None

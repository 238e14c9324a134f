"""Figure 1: convergence of the primal value on one graph, and log-competitive ratios."""

from __future__ import annotations

from softmap.experiments.methods import PAPER
from softmap.experiments.settings import Settings, spaced
from softmap.experiments.unit import Unit

__all__ = ["FIGURE", "units"]

FIGURE = "figure1"


def units(settings: Settings) -> list[Unit]:
    """Every method of the paper, accelerated ones in both forms, in every trial."""
    checks = spaced(settings.updates, settings.points)
    return [
        Unit(
            FIGURE, settings.size, settings.labels, settings.seed, method, settings.eta, trial,
            checks,
        )
        for method in PAPER
        for trial in range(settings.trials)
    ]  # fmt: skip

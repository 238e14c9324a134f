"""Figure 2 (the appendix's): SMP against Accel-SMP on graphs of different sizes."""

from __future__ import annotations

from softmap.experiments.methods import PAPER
from softmap.experiments.settings import Settings, spaced
from softmap.experiments.unit import Unit

__all__ = ["FIGURE", "units"]

FIGURE = "figure2"


def units(settings: Settings) -> list[Unit]:
    """SMP and both forms of Accel-SMP, for every size and trial."""
    checks = spaced(settings.updates, settings.points)
    return [
        Unit(FIGURE, n, settings.labels, settings.seed, method, settings.eta, trial, checks)
        for n in settings.sizes
        for method in PAPER
        if method.stars
        for trial in range(settings.trials)
    ]

"""The trials of each figure: Figure 1, Figure 2 of the appendix, and an additional Figure 3.

Figure 1 shows convergence on one graph. Figure 2 compares SMP with Accel-SMP on graphs of different
sizes. Figure 3 shows gaps by messages, by seconds and by η, with the methods of softmap.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from softmap.app.experiments.settings import Settings, spaced
from softmap.app.experiments.trials import (
    PAPER,
    Method,
    Problem,
    Unit,
    passes_until,
    problem,
    solvers,
    star_size,
)
from softmap.errors import OptionError
from softmap.model import Model

__all__ = ["FIGURES", "Plan", "eta_units", "size_units", "trial_units", "work_units"]

FIGURE1, FIGURE2, FIGURE3, FIGURE3_ETA = "figure1", "figure2", "figure3", "figure3-eta"
FIGURES = (FIGURE1, FIGURE2, FIGURE3)


@dataclass
class Plan:
    """The trials of some figures."""

    figures: tuple[str, ...]
    settings: Settings
    workers: int | None = None
    problems: dict[int, Problem] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if unknown := set(self.figures) - set(FIGURES):
            raise OptionError(f"unknown figure {', '.join(sorted(unknown))}")
        s = self.settings
        sizes = {s.size} if {"figure1", "figure3"} & set(self.figures) else set()
        sizes |= set(s.sizes) if "figure2" in self.figures else set()
        self.problems = {n: problem(n, s.labels, s.seed) for n in sorted(sizes)}

    @cached_property
    def units(self) -> list[Unit]:
        """Return all trials."""
        s, found = self.settings, []
        if "figure1" in self.figures:
            found += trial_units(s)
        if "figure2" in self.figures:
            found += size_units(s)
        if "figure3" in self.figures:
            model = self.problems[s.size].model
            found += work_units(s, model) + eta_units(s, model)
        return found

    @property
    def cost(self) -> float:
        """The estimated time of all trials on one core, in seconds."""
        return sum(unit.cost for unit in self.units)


def trial_units(settings: Settings) -> list[Unit]:
    """Return the trials of every method of the paper, accelerated ones in both forms."""
    checks = spaced(settings.updates, settings.points)
    return [
        _unit(FIGURE1, settings, method, settings.eta, trial, checks)
        for method in PAPER
        for trial in range(settings.trials)
    ]


def size_units(settings: Settings) -> list[Unit]:
    """Return the trials of SMP and both forms of Accel-SMP, for every size."""
    checks = spaced(settings.updates, settings.points)
    return [
        Unit(FIGURE2, n, settings.labels, settings.seed, method, settings.eta, trial, checks)
        for n in settings.sizes
        for method in PAPER
        if method.stars
        for trial in range(settings.trials)
    ]


def work_units(settings: Settings, model: Model) -> list[Unit]:
    """Return trials of every method at the η of the paper, evaluated at growing work."""
    chosen = [method for method in PAPER if method.method != "bcd"]
    return [
        _unit(FIGURE3, settings, method, settings.eta, trial, _checks_of(method, settings, model))
        for method in (*chosen, *solvers())
        for trial in range(1 if method.sweeping else settings.trials)
    ]


def eta_units(settings: Settings, model: Model) -> list[Unit]:
    """Return trials of methods at fixed η, over a range of η, evaluated at the end."""
    fixed = [m for m in (*PAPER, *solvers()) if m.method != "bcd" and not m.steered]
    trials = min(settings.trials, settings.eta_trials)
    return [
        _unit(FIGURE3_ETA, settings, method, eta, trial, _checks_of(method, settings, model)[-1:])
        for method in fixed
        for eta in settings.etas
        for trial in range(1 if method.sweeping else trials)
    ]


def _unit(
    figure: str,
    settings: Settings,
    method: Method,
    eta: float,
    trial: int,
    checks: tuple[int, ...],
) -> Unit:
    n, labels, seed = settings.size, settings.labels, settings.seed
    return Unit(figure, n, labels, seed, method, eta, trial, checks)


def _checks_of(method: Method, settings: Settings, model: Model) -> tuple[int, ...]:
    """Return the numbers of updates, or passes, of about equal work for every method."""
    if method.sweeping:
        return passes_until(max(1, settings.messages // (2 * model.m)))
    each = star_size(model.graph.degree) if method.stars else 1.0
    return spaced(round(settings.messages / each), settings.points)

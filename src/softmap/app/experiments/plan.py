"""The settings and trials of each figure: Figures 1 and 2 of the paper, and an additional Figure 3.

Figure 1 shows convergence on one graph. Figure 2 compares SMP with Accel-SMP on graphs of different
sizes. Figure 3 shows gaps by messages, by seconds and by η, with the methods of softmap.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

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


@dataclass(frozen=True)
class Settings:
    """The paper's values, and values that the paper does not give (updates, points, range of η).

    Attributes
    ----------
    trials : int
        Number of runs of each randomised method on the same graph (Figures 1 and 2).
    updates : int
        Number of updates of each run; in Figure 3 every method computes `4 * updates` messages.
    seed : int
        Seed of the graphs and of the trials.
    points : int
        Number of evaluations of a run, evenly spaced in log(updates).
    size : int
        Number of variables in Figures 1 and 3.
    sizes : tuple of int
        Numbers of variables in Figure 2.
    labels : int
        Number of labels d of Figures 1 and 2.
    eta : float
        η of Figures 1 and 2.
    etas : tuple of float
        Values of η in Figure 3.
    eta_trials : int
        Number of trials at each of `etas`.
    """

    trials: int = 10
    updates: int = 100_000
    seed: int = 0
    points: int = 40
    size: int = 100
    sizes: tuple[int, ...] = (9, 36, 81)
    labels: int = 3
    eta: float = 1000.0
    etas: tuple[float, ...] = (10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0)
    eta_trials: int = 3

    def __post_init__(self) -> None:
        for name in ("trials", "updates", "points", "eta_trials"):
            if getattr(self, name) < 1:
                raise OptionError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.seed < 0:
            raise OptionError(f"seed must not be negative, found {self.seed}")

    @property
    def messages(self) -> int:
        """The work of each run of Figure 3, in messages."""
        return 4 * self.updates


def settings_for(
    *,
    quick: bool = False,
    trials: int | None = None,
    updates: int | None = None,
    seed: int | None = None,
) -> Settings:
    """Return the full or the quick settings, with some values replaced."""
    small: dict[str, Any] = {
        "trials": 3,
        "updates": 5000,
        "points": 16,
        "etas": (10.0, 100.0, 1000.0, 10000.0),
        "eta_trials": 1,
    }
    chosen: dict[str, Any] = small if quick else {}
    given = {"trials": trials, "updates": updates, "seed": seed}
    return Settings(**{**chosen, **{k: v for k, v in given.items() if v is not None}})


def spaced(last: int, points: int) -> tuple[int, ...]:
    """Return integers from 10 to `last`, evenly spaced in the logarithm."""
    first = min(10, last)
    return tuple(int(k) for k in np.unique(np.geomspace(first, last, points).round().astype(int)))


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

"""The settings and trials of each figure: Figures 1 and 2 of the paper, and two of our own.

Figure 1 shows convergence. Figure 2 compares SMP with Accel-SMP on graphs of different sizes.
Figure 3 shows gaps by messages, by seconds and by η, with the methods of softmap. Figure 4 shows
what the paper's accelerated methods gain if the last tenth of their updates is plain.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from softmap.app.experiments.entries import (
    FORMS,
    PAPER,
    SETTLED,
    Method,
    own_method,
    solvers,
)
from softmap.app.experiments.problems import Graph
from softmap.app.experiments.trials import Unit, passes_until, star_size
from softmap.errors import OptionError


@dataclass(frozen=True)
class Settings:
    """The paper's values, and values that the paper does not give (graphs, updates, points, η).

    Attributes
    ----------
    graphs : int
        Number of graphs of each size.
    trials : int
        Number of runs of each randomised method on each graph (Figures 1, 2 and 4).
    updates : int
        Number of updates of each run; in Figure 3 every method computes `4 * updates` messages, and
        in Figure 4 runs of EMP have up to `3 * updates`.
    seed : int
        Seed of the first graph; the next graphs have the next seeds.
    points : int
        Number of evaluations of a run, evenly spaced in log(updates).
    size : int
        Number of variables in Figures 1 and 3.
    sizes : tuple of int
        Numbers of variables in Figure 2; Figure 4 has them, too.
    labels : int
        Number of labels d.
    eta : float
        η of Figures 1, 2 and 4.
    etas : tuple of float
        Values of η in Figure 3.
    work_trials, eta_trials : int
        Number of trials on each graph in Figure 3, and at each of `etas`.
    own : tuple of str
        Methods of the user as module:class, for Figures 1, 2 and 3.
    """

    graphs: int = 20
    trials: int = 10
    updates: int = 100_000
    seed: int = 0
    points: int = 20
    size: int = 100
    sizes: tuple[int, ...] = (9, 36, 81)
    labels: int = 3
    eta: float = 1000.0
    etas: tuple[float, ...] = (10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0)
    work_trials: int = 3
    eta_trials: int = 1
    own: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("graphs", "trials", "updates", "points", "work_trials", "eta_trials"):
            if getattr(self, name) < 1:
                raise OptionError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.seed < 0:
            raise OptionError(f"seed must not be negative, found {self.seed}")

    @property
    def messages(self) -> int:
        """The work of each run of Figure 3, in messages."""
        return 4 * self.updates

    def graph(self, n: int, number: int) -> Graph:
        """Return one of the graphs with n variables."""
        return Graph(n, self.labels, self.seed + number)

    def graphs_of(self, n: int) -> tuple[Graph, ...]:
        """Return all graphs with n variables."""
        return tuple(self.graph(n, number) for number in range(self.graphs))

    def lengths(self, method: str) -> tuple[int, ...]:
        """Return the numbers of updates of the runs of Figure 4: a hundredth and more of all."""
        parts = (100, 30, 10, 3, 1)
        lengths = [max(10, self.updates // part) for part in parts]
        if method == "emp":
            lengths.append(3 * self.updates)
        return tuple(sorted(set(lengths)))


def settings_for(
    *,
    quick: bool = False,
    graphs: int | None = None,
    trials: int | None = None,
    updates: int | None = None,
    seed: int | None = None,
    own: tuple[str, ...] = (),
) -> Settings:
    """Return the full or the quick settings, with some values replaced."""
    small: dict[str, Any] = {
        "graphs": 3,
        "trials": 3,
        "updates": 5000,
        "points": 12,
        "etas": (10.0, 100.0, 1000.0, 10000.0),
        "work_trials": 1,
    }
    chosen: dict[str, Any] = small if quick else {}
    named = {"graphs": graphs, "trials": trials, "updates": updates, "seed": seed}
    replaced = {name: value for name, value in named.items() if value is not None}
    return Settings(**{**chosen, **replaced, "own": own})


def spaced(last: int, points: int) -> tuple[int, ...]:
    """Return integers from 10 to `last`, evenly spaced in the logarithm."""
    first = min(10, last)
    return tuple(int(k) for k in np.unique(np.geomspace(first, last, points).round().astype(int)))


FIGURE1, FIGURE2, FIGURE3, FIGURE3_ETA = "figure1", "figure2", "figure3", "figure3-eta"
FIGURE4 = "figure4"
FIGURES = (FIGURE1, FIGURE2, FIGURE3, FIGURE4)


@dataclass
class Plan:
    """The trials of some figures."""

    figures: tuple[str, ...]
    settings: Settings
    workers: int | None = None

    def __post_init__(self) -> None:
        if unknown := set(self.figures) - set(FIGURES):
            raise OptionError(f"unknown figure {', '.join(sorted(unknown))}")
        own = [own_method(place) for place in self.settings.own]
        if {FIGURE1, FIGURE2} & set(self.figures):
            for method in own:
                if method.sweeping:
                    raise OptionError(
                        f"--with {method.method}: a step of {method.label} is a pass (`sweeping`),"
                        " but Figures 1 and 2 count updates of blocks; expected figure3"
                    )

    @cached_property
    def units(self) -> list[Unit]:
        """Return all trials."""
        makers = {
            FIGURE1: [trial_units],
            FIGURE2: [size_units],
            FIGURE3: [work_units, eta_units],
            FIGURE4: [settling_units],
        }
        return [u for name in self.figures for make in makers[name] for u in make(self.settings)]

    @cached_property
    def graphs(self) -> list[Graph]:
        """Return the graphs of all trials, by size."""
        return sorted({unit.graph for unit in self.units}, key=lambda g: (g.n, g.seed))

    @property
    def cost(self) -> float:
        """The estimated time of all trials on one core, in seconds."""
        return sum(unit.cost for unit in self.units)


def trial_units(settings: Settings) -> list[Unit]:
    """Return the trials of every method of the paper, accelerated ones in both forms."""
    checks = spaced(settings.updates, settings.points)
    own = [own_method(place) for place in settings.own]
    return [
        Unit(FIGURE1, graph, method, settings.eta, trial, checks)
        for method in (*PAPER, *own)
        for graph in settings.graphs_of(settings.size)
        for trial in range(settings.trials)
    ]


def size_units(settings: Settings) -> list[Unit]:
    """Return the trials of SMP and both forms of Accel-SMP, for every size."""
    checks = spaced(settings.updates, settings.points)
    own = [own_method(place) for place in settings.own]
    return [
        Unit(FIGURE2, graph, method, settings.eta, trial, checks)
        for n in settings.sizes
        for method in (*(method for method in PAPER if method.stars), *own)
        for graph in settings.graphs_of(n)
        for trial in range(settings.trials)
    ]


def work_units(settings: Settings) -> list[Unit]:
    """Return trials of every method at the η of the paper, evaluated at growing work."""
    chosen = [method for method in PAPER if method.method != "bcd"]
    own = [own_method(place) for place in settings.own]
    return [
        Unit(FIGURE3, graph, method, settings.eta, trial, _checks_of(method, settings, graph))
        for method in (*chosen, *solvers(), *own)
        for graph in settings.graphs_of(settings.size)
        for trial in range(1 if method.sweeping else min(settings.trials, settings.work_trials))
    ]


def eta_units(settings: Settings) -> list[Unit]:
    """Return trials of methods at fixed η, over a range of η, evaluated at the end."""
    fixed = [m for m in (*PAPER, *solvers()) if m.method != "bcd" and not m.steered]
    trials = min(settings.trials, settings.eta_trials)
    return [
        Unit(FIGURE3_ETA, graph, method, eta, trial, _checks_of(method, settings, graph)[-1:])
        for method in fixed
        for eta in settings.etas
        for graph in settings.graphs_of(settings.size)
        for trial in range(1 if method.sweeping else trials)
    ]


def settling_units(settings: Settings) -> list[Unit]:
    """Return runs of several lengths, alone and with the last tenth of the updates plain."""
    cases = [(settings.size, method) for method in ("smp", "emp")]
    cases += [(n, "smp") for n in settings.sizes if n != settings.size]
    units = []
    for n, name in cases:
        lengths = settings.lengths(name)
        runs = [(Method(name, form), lengths) for form in ("standard", *FORMS)]
        runs += [(Method(name, form + SETTLED), (k,)) for form in FORMS for k in lengths]
        units += [
            Unit(FIGURE4, graph, method, settings.eta, trial, checks)
            for method, checks in runs
            for graph in settings.graphs_of(n)
            for trial in range(settings.trials)
        ]
    return units


def _checks_of(method: Method, settings: Settings, graph: Graph) -> tuple[int, ...]:
    """Return the numbers of updates, or passes, of about equal work for every method."""
    model = graph.model()
    if method.sweeping:
        return passes_until(max(1, settings.messages // (2 * model.m)))
    each = star_size(model.network.graph.degree) if method.stars else 1.0
    return spaced(round(settings.messages / each), settings.points)

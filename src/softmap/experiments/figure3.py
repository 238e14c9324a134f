"""Figure 3 (ours): the same gaps by messages and by seconds, our solvers beside; and by η."""

from __future__ import annotations

from softmap.experiments.methods import PAPER, Method, solvers
from softmap.experiments.settings import Settings, spaced
from softmap.experiments.unit import Unit, passes_until, star_size
from softmap.model import Model

__all__ = ["BY_ETA", "BY_WORK", "eta_units", "work_units"]

BY_WORK, BY_ETA = "figure3", "figure3-eta"


def work_units(settings: Settings, model: Model) -> list[Unit]:
    """Every method at the η of the paper, looked at as the work grows."""
    chosen = [method for method in PAPER if method.method != "bcd"]
    return [
        _unit(BY_WORK, settings, method, settings.eta, trial, _checks(method, settings, model))
        for method in (*chosen, *solvers())
        for trial in range(1 if method.sweeping else settings.trials)
    ]


def eta_units(settings: Settings, model: Model) -> list[Unit]:
    """Methods with a fixed η, over its range, looked at when the work is done."""
    fixed = [m for m in (*PAPER, *solvers()) if m.method != "bcd" and not m.steered]
    trials = min(settings.trials, settings.eta_trials)
    return [
        _unit(BY_ETA, settings, method, eta, trial, _checks(method, settings, model)[-1:])
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


def _checks(method: Method, settings: Settings, model: Model) -> tuple[int, ...]:
    """Updates, or passes, that cost about the same messages for every method."""
    if method.sweeping:
        return passes_until(max(1, settings.messages // (2 * model.m)))
    each = star_size(model.graph.degree) if method.stars else 1.0
    return spaced(round(settings.messages / each), settings.points)

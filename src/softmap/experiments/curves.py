"""What figures and claims are made of: means, deviations and ratios over trials."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softmap.experiments.table import Table

__all__ = ["FLOOR", "Curve", "curve", "first_below", "log_ratio", "ratio_curve"]

Floats = NDArray[np.float64]

# Gaps below this are what tolerances of the LP solver leave open, and count as this.
FLOOR = 1e-6


@dataclass(frozen=True)
class Curve:
    """Mean and standard deviation over trials, and where along the run."""

    updates: Floats
    work: Floats
    mean: Floats
    deviation: Floats

    @property
    def last(self) -> float:
        """The mean at the end."""
        return float(self.mean[-1])


def curve(table: Table, column: str = "gap") -> Curve:
    """Average the trials of one method at one η."""
    values = np.maximum(table.by_trial(column), FLOOR)
    return _averaged(table, values)


def log_ratio(standard: Table, accelerated: Table, column: str = "gap") -> Floats:
    """log(gap of the standard method / gap of the accelerated one), (trials, points).

    The paper's competitive ratio: positive where the accelerated variant has the lower error.
    Trials of equal number share their random numbers and are compared with each other.
    """
    above = np.maximum(standard.by_trial(column), FLOOR)
    below = np.maximum(accelerated.by_trial(column), FLOOR)
    return np.log(above / below)


def ratio_curve(table: Table, method: str, form: str, column: str = "gap") -> Curve:
    """The log-competitive ratio of one method and one form, averaged over trials."""
    standard = table.where(method=method, form="standard")
    accelerated = table.where(method=method, form=form)
    return _averaged(standard, log_ratio(standard, accelerated, column))


def first_below(found: Curve, level: float) -> float:
    """Updates after which the mean is first at or below a level; inf if it never is."""
    reached = np.flatnonzero(found.mean <= level)
    return float(found.updates[reached[0]]) if reached.size else math.inf


def _averaged(table: Table, values: Floats) -> Curve:
    updates = table.by_trial("updates")[0].astype(float)
    work = table.by_trial("work").mean(axis=0)
    return Curve(updates, work, values.mean(axis=0), values.std(axis=0))

"""The settings of a reproduction: all values that its tables depend on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from softmap.errors import OptionError

__all__ = ["Settings", "settings_for", "spaced"]


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

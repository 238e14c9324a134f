"""What a reproduction is made of: everything that decides its tables, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from softmap.errors import OptionError

__all__ = ["Settings", "settings_for", "spaced"]


@dataclass(frozen=True)
class Settings:
    """The paper's values, and ours where it gives none (updates, points, the range of η).

    Attributes
    ----------
    trials : int
        Runs of each randomised method on the same graph (Figures 1 and 2).
    updates : int
        Updates of each run; Figure 3 gives every method `4 * updates` messages.
    seed : int
        Of the graphs and of the trials.
    points : int
        Evaluations of a run, evenly spaced in the logarithm of the updates.
    size, sizes : int, tuple of int
        Variables in Figures 1 and 3, and in Figure 2.
    labels, eta : int, float
        d and η of Figures 1 and 2.
    etas, eta_trials
        The range of η in Figure 3, and the trials at each.
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
        """Work of each run of Figure 3."""
        return 4 * self.updates


def settings_for(
    *,
    quick: bool = False,
    trials: int | None = None,
    updates: int | None = None,
    seed: int | None = None,
) -> Settings:
    """The full settings, or those of a quick look, with some of them replaced."""
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
    """Whole numbers up to `last`, evenly spaced in the logarithm, from 10 on."""
    first = min(10, last)
    return tuple(int(k) for k in np.unique(np.geomspace(first, last, points).round().astype(int)))

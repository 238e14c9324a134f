"""What a peer is given and what it hands back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.model import Model

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Settings:
    """The relative gap asked for, what to ask the solver for, and what it may use."""

    gap: float
    tolerance: float
    time_limit: float
    threads: int


@dataclass(frozen=True)
class Answer:
    """Dual multipliers and a primal point, as the peer left them: the judge makes them sound.

    Attributes
    ----------
    lam : flat half-edge array in the project's sign, or None
    nodes : node marginals, not necessarily feasible, or None
    labels : a labelling, or None
    work : half-edge messages sent, 0 for LP solvers
    trace : columns against time, where the method keeps them
    """

    lam: Floats | None
    nodes: Floats | None
    status: str
    iterations: int = 0
    labels: NDArray[np.int64] | None = None
    work: int = 0
    trace: dict[str, Any] = field(default_factory=dict)


# Preparing (building the LP, compiling) is apart from solving: only the latter is on the clock.
Prepared = Callable[[], Answer]
Prepare = Callable[[Model, Settings], Prepared]

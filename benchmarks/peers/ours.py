"""softmap's own methods, through the door its users take."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers.base import Answer, Prepared, Settings
from softmap import generators, solve
from softmap.model import Model

COLUMNS = ("work", "seconds", "eta", "bound", "primal", "energy")


def warm_up(*, method: str) -> None:
    """Load the compiled kernels on small models."""
    settings = Settings(gap=1e-3, tolerance=1e-3, time_limit=1.0, threads=2)
    for small in (
        generators.random_grid(3, 3, 3),
        generators.potts_grid(3, 3, 3),
        generators.stereo_grid(3, 3, 5),
        generators.ragged_constrained(9),
    ):
        _solve(small, settings, method)


def prepare(model: Model, settings: Settings, *, method: str) -> Prepared:
    """Nothing: all that is done about this model is on the clock."""
    return lambda: _answer(_solve(model, settings, method))


def _solve(model: Model, settings: Settings, method: str) -> Any:
    # gap=0: go on for the LP although the labelling may be optimal already
    return solve(
        model,
        method=method,
        goal="lp",
        lp_gap=settings.gap,
        gap=0.0,
        time_limit=settings.time_limit,
        threads=settings.threads,
    )


def _answer(result: Any) -> Answer:
    return Answer(
        lam=np.asarray(result.lam, dtype=np.float64),
        nodes=result.node_marginals,
        labels=result.labels,
        status=result.status.name.lower(),
        iterations=round(result.sweeps),
        work=int(result.work),
        trace={name: result.trace.columns()[name].tolist() for name in COLUMNS},
    )

"""HiGHS: interior point, simplex and its two first-order methods."""

from __future__ import annotations

from typing import Any

import highspy

from benchmarks.peers.base import Answer, Prepared, Settings
from benchmarks.peers.local_polytope import Program, program
from softmap.model import Model
from softmap.relaxation.lp import highs_model

TOLERANCES = (
    "primal_feasibility_tolerance",
    "dual_feasibility_tolerance",
    "primal_residual_tolerance",
    "dual_residual_tolerance",
    "optimality_tolerance",
    "ipm_optimality_tolerance",
    "pdlp_optimality_tolerance",
)


def prepare(model: Model, settings: Settings, *, solver: str, presolve: bool = False) -> Prepared:
    """Hand the LP to HiGHS. No crossover: a vertex is not what is asked for.

    Without crossover, presolve makes most of these LPs slower, and where states are forbidden the
    prices that come back through it are wrong (status "Unknown"): off unless asked for.
    """
    lp = program(model)
    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    options: dict[str, Any] = {
        "output_flag": False,
        "solver": solver,
        "time_limit": settings.time_limit,
        "threads": settings.threads,
        "run_crossover": "off",
        "presolve": "on" if presolve else "off",
    }
    if solver != "simplex":
        options |= dict.fromkeys(TOLERANCES, settings.tolerance)
    for name, value in options.items():
        highs.setOptionValue(name, value)
    highs.passModel(highs_model(lp))
    return lambda: _run(highs, lp)


def _run(highs: Any, lp: Program) -> Answer:
    highs.run()
    found, info = highs.getSolution(), highs.getInfo()
    counts = (
        info.simplex_iteration_count,
        info.ipm_iteration_count,
        info.pdlp_iteration_count,
    )
    return lp.answer(
        found.col_value if found.value_valid else None,
        found.row_dual if found.dual_valid else None,
        highs.modelStatusToString(highs.getModelStatus()),
        sum(max(0, int(count)) for count in counts),
    )

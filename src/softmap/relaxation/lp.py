"""The exact LP over the local polytope, through HiGHS: the ground truth that bounds approach."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from softmap.arguments import count, not_negative, positive
from softmap.errors import OptionError, shown
from softmap.model import Model
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import Floats
from softmap.relaxation.program import (
    Imported,
    Program,
    highs_model,
    program_of,
    read_solution,
    write,
)

__all__ = ["METHODS", "Imported", "LPSolution", "read_solution", "solve", "write"]

# Our name -> HiGHS's.
METHODS = {
    "auto": "choose",
    "simplex": "simplex",
    "ipm": "ipm",
    "ipx": "ipx",
    "pdlp": "pdlp",
    "hipdlp": "hipdlp",
}


@dataclass(frozen=True, eq=False)
class LPSolution:
    """What HiGHS found.

    Attributes
    ----------
    value : float
        Optimal value, `model.constant` included; NaN if there is no solution.
    node_marginals, edge_marginals : flat arrays over `model.node_offset` and `model.edge_offset`
    lam : flat half-edge array
        Dual multipliers in our sign: `dual_bound(model, lam)` is `value` again, up to tolerances.
    seconds : float
        Time in HiGHS; `setup_seconds` is what building the LP took.
    status : str
        HiGHS's own words, "Optimal" when all went well.
    """

    value: float
    node_marginals: Floats
    edge_marginals: Floats
    lam: Floats
    seconds: float
    setup_seconds: float
    status: str
    iterations: int


def solve(
    model: Model,
    method: str = "auto",
    *,
    tolerance: float | None = None,
    time_limit: float | None = None,
    threads: int | None = None,
) -> LPSolution:
    """Solve the LP relaxation over the local polytope.

    Parameters
    ----------
    method : one of `METHODS`
        "auto" leaves the choice to HiGHS; "simplex" and the interior-point methods ("ipm", "ipx")
        end at an optimal vertex, "pdlp" and "hipdlp" are first-order methods.
    tolerance : float, optional
        Feasibility and optimality tolerance; HiGHS's own if left out.
    time_limit : seconds, optional
    threads : int, optional
    """
    if not isinstance(method, str) or method not in METHODS:
        raise OptionError(f"method must be one of {', '.join(METHODS)}, not {shown(method)}")
    began = time.perf_counter()
    tight = tighten(model)
    program = program_of(tight)
    highs = _highs(METHODS[method], tolerance, time_limit, threads)
    highs.passModel(highs_model(program))
    ready = time.perf_counter()
    highs.run()
    seconds = time.perf_counter() - ready
    return _solution(tight, program, highs, seconds, ready - began)


def _highs(
    solver: str, tolerance: float | None, time_limit: float | None, threads: int | None
) -> Any:
    options: dict[str, Any] = {"output_flag": False, "solver": solver}
    if tolerance is not None:
        tolerance = positive("tolerance", tolerance)
        for name in ("primal_feasibility", "dual_feasibility", "ipm_optimality", "pdlp_optimality"):
            options[f"{name}_tolerance"] = tolerance
    if time_limit is not None:
        options["time_limit"] = not_negative("time_limit", time_limit)
    if threads is not None:
        options["threads"] = count("threads", threads, 1, 4096)
    import highspy

    highs: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in options.items():
        if highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            raise OptionError(f"HiGHS does not take {value!r} for its option {name!r}")
    return highs


def _solution(
    model: Model, program: Program, highs: Any, seconds: float, setup: float
) -> LPSolution:
    found, info = highs.getSolution(), highs.getInfo()
    nodes = np.zeros(int(model.node_offset[-1]))
    pairs = np.zeros(int(model.edge_offset[-1]))
    lam = np.zeros(model.half_size)
    value = math.nan
    if found.value_valid:
        x = np.array(found.col_value)
        nodes[program.states] = x[: len(program.states)]
        pairs[program.pairs] = x[len(program.states) :]
        value = float(info.objective_function_value) + model.constant
    if found.dual_valid:
        # HiGHS prices a row at π in C - Aᵀπ; ours is +λ in C_e + λ, so λ = -π
        lam[program.halves] = -np.array(found.row_dual)[model.n :]
    return LPSolution(
        value=value,
        node_marginals=nodes,
        edge_marginals=pairs,
        lam=lam,
        seconds=seconds,
        setup_seconds=setup,
        status=highs.modelStatusToString(highs.getModelStatus()),
        iterations=_iterations(info),
    )


def _iterations(info: Any) -> int:
    counts = (
        info.simplex_iteration_count,
        info.ipm_iteration_count,
        info.crossover_iteration_count,
        info.pdlp_iteration_count,
    )
    return sum(max(0, int(count)) for count in counts)

"""The result of a linear assignment without its chains: labels, and prices that prove them."""

from __future__ import annotations

import math
import time
from functools import cache
from typing import Any

import numpy as np

from softmap import core
from softmap.labels.assignment import Assignment, AssignmentNumbers, assign, assignment_lam
from softmap.machine import usable_cores
from softmap.model import AllDifferent, Model
from softmap.model.model import lone_constraint
from softmap.model.potentials.base import Ints
from softmap.model.sums import careful_sums
from softmap.relaxation.dual import Floats
from softmap.relaxation.gaps import PROVED
from softmap.relaxation.polytope import PrimalPoint
from softmap.run.evidence import Relaxation
from softmap.run.options import Options
from softmap.run.result import Result
from softmap.run.trace import Row, Status, Trace

__all__ = ["assigned"]

OTHER_STAGES = (
    "max_work", "updates", "warm_start", "initial", "upper_bound", "checkpoint", "proof",
    "on_snapshot", "eta",
)  # fmt: skip
"""Options that need the subsolvers of a run, and the chains of the model."""


def assigned(model: Model, options: Options) -> Result | None:
    """Return the result of a linear assignment if nothing needs its chains.

    λ, which proves the bound, and the marginals are lazily computed from the prices.

    Parameters
    ----------
    model : Model
        The model.
    options : Options
        The options of the run.
    """
    said = lone_constraint(model)
    if said is None or not _is_plain(options):
        return None
    factor, costs = said
    begin = time.perf_counter()
    order = list(factor.variables)
    numbers = options.tuning.of(AssignmentNumbers)
    found = assign(costs[order], core.Deadline(options.seconds), numbers)
    if found is None:
        return None
    labels = np.empty(len(order), dtype=np.int64)
    labels[order] = found.labels
    chosen = costs[np.arange(len(labels)), labels]
    energy = float(careful_sums(np.append(chosen, model.constant)))
    bound = min(energy, float(core.lower_sum(np.array([found.bound, model.constant]))))
    # this unit is at most that of `softmap.relaxation.gaps`, which needs the costs of the chains
    unit = min(abs(bound), abs(bound - model.constant))
    if energy - bound > PROVED * unit:
        return None
    seconds = time.perf_counter() - begin
    return _result(model, factor, options, labels, found, energy, bound, seconds)


def _is_plain(options: Options) -> bool:
    shown = options.verbose or options.progress
    default = options.method == "anneal" and options.backend == "cpu" and options.goal != "lp"
    return default and not shown and all(getattr(options, name) is None for name in OTHER_STAGES)


def _result(
    model: Model, factor: AllDifferent, options: Options, labels: Ints, found: Assignment,
    energy: float, bound: float, seconds: float,
) -> Result:  # fmt: skip
    @cache
    def made() -> Floats:
        return assignment_lam(model.network, factor, found.prices)

    lam: Any = made  # `Result` calls it at the first access

    row = Row(
        work=0, sweeps=0.0, seconds=seconds, eta=1.0, bound=bound, smoothed=math.nan,
        primal=energy, energy=energy, slack=math.nan, stage="labels",
    )  # fmt: skip
    return Result(
        model=model, method=options.method, status=Status.OPTIMAL, labels=labels, energy=energy,
        bound=bound, primal=energy, lam=lam, messages=lam, eta=row.eta, trace=Trace([row]), work=0,
        sweeps=0.0, seconds=seconds, setup_seconds=0.0, threads=options.threads or usable_cores(),
        point=PrimalPoint(model.network, labels=labels), lp_bound=bound,
        proof=Relaxation(value=bound), tolerances=(options.lp_gap, options.gap),
    )  # fmt: skip

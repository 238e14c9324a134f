"""Answers without a run: labels, and λ that proves that they are optimal."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.machine import usable_cores
from softmap.model import Model
from softmap.relaxation.gaps import PROVED
from softmap.relaxation.polytope import PrimalPoint
from softmap.run.evidence import Relaxation
from softmap.run.options import Options
from softmap.run.result import Result
from softmap.run.trace import Row, Status, Trace

__all__ = ["answer", "may_answer"]

NEED_A_RUN = (
    "max_work", "updates", "warm_start", "initial", "upper_bound", "checkpoint", "proof",
    "on_snapshot", "eta", "memory_limit",
)  # fmt: skip
"""Options that only the subsolvers of a run obey."""


def may_answer(options: Options) -> bool:
    """Whether a proved labelling is all that the options ask for."""
    if options.method != "anneal" or options.backend != "cpu" or options.goal == "lp":
        return False
    if options.verbose or options.progress:
        return False
    return all(getattr(options, name) is None for name in NEED_A_RUN)


def answer(
    model: Model, options: Options, stage: str, labels: NDArray[np.int64],
    values: tuple[float, float], lam: Callable[[], NDArray[np.float64]], seconds: float,
) -> Result | None:  # fmt: skip
    """Return the result of a model, if the bound proves the labels.

    Parameters
    ----------
    model : Model
        The model.
    options : Options
        The options of the call.
    stage : str
        The name of the subsolver in the trace.
    labels : int array
        One label per variable.
    values : (float, float)
        Their energy, and the bound that λ proves.
    lam : function
        Returns λ; called when the result is asked for it.
    seconds : float
        The time that the answer took.
    """
    energy, bound = values[0], min(values)
    # this unit is at most that of `softmap.relaxation.gaps`, which looks at all costs
    if not energy - bound <= PROVED * min(abs(bound), abs(bound - model.constant)):
        return None
    row = Row(
        work=0, sweeps=0.0, seconds=seconds, eta=1.0, bound=bound, smoothed=math.nan,
        primal=energy, energy=energy, slack=math.nan, stage=stage,
    )  # fmt: skip
    # attributes of a result that are functions are called at their first access
    lazy: Any = lam
    point: Any = partial(_vertex, model, labels)
    return Result(
        model=model, method=options.method, status=Status.OPTIMAL, labels=labels, energy=energy,
        bound=bound, primal=energy, lam=lazy, messages=lazy, eta=row.eta, trace=Trace([row]),
        work=0, sweeps=0.0, seconds=seconds, setup_seconds=0.0,
        threads=options.threads or usable_cores(), point=point, lp_bound=bound,
        proof=Relaxation(value=bound), tolerances=(options.lp_gap, options.gap),
    )  # fmt: skip


def _vertex(model: Model, labels: NDArray[np.int64]) -> PrimalPoint:
    return PrimalPoint(model.network, labels=labels)

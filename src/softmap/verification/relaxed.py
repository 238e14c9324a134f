"""The check of a bound by λ, and what rounding is allowed for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from softmap.model import Network
from softmap.verification.dual import dual_proves
from softmap.verification.exact import TINIEST
from softmap.verification.report import Statement, Verdict

if TYPE_CHECKING:
    from softmap.run.evidence import Evidence
    from softmap.run.result import Result


@dataclass(frozen=True)
class Allowances:
    """Tolerances between a stated number and the recomputed one.

    Attributes
    ----------
    feasible : float
        Largest violation of a constraint of the local polytope, in units of mass.
    least : float
        Costs below this absolute value are rounded when the solver scales them back; gaps between
        such costs are not compared.
    rounding : float
        Rounding error of a primal cost, relative to the sum of the absolute values of its terms.
    large : int
        Number of edges from which a bound may have been summed in single precision.
    single : float
        Rounding error of a bound summed in single precision, relative to the sum of the absolute
        values of its terms.
    """

    feasible: float = 1e-9
    least: float = 1e-290
    rounding: float = 2.0**-40
    large: int = 1 << 18
    single: float = 2.0**-22


ALLOWED = Allowances()


def check(result: Result, proof: Evidence) -> Statement:
    """Check that λ proves the bound."""
    return relaxed_statement("bound", result.model.network, result.lam, result.bound, "λ")


def relaxed_statement(name: str, model: Network, lam: Any, bound: float, by: str) -> Statement:
    """Check that λ proves the bound, and that the bound of λ is not much higher."""
    if bound == -math.inf:
        return Statement(name, Verdict.CHECKED, "none stated")
    flat = np.asarray(lam, dtype=np.float64)
    if flat.shape != (int(model.half_offset[-1]),) or not np.isfinite(flat).all():
        return Statement(
            name,
            Verdict.FALSE,
            "λ does not have one finite number for each label of each half-edge",
        )
    dual = dual_proves(model, flat, bound)
    if math.isnan(dual.found):
        return Statement(name, Verdict.FALSE, f"{bound!r} stated, the proof is not finite")
    allowed = ALLOWED.single if model.m > ALLOWED.large else ALLOWED.rounding
    tight = dual.found - bound <= allowed * dual.size + dual.terms * TINIEST
    said = f"{bound!r} stated, {by} proves {dual.found!r}"
    return Statement(name, Verdict.of(dual.proved and tight), said)

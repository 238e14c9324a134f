"""Methods by name, for `softmap.solve` and the command line."""

from __future__ import annotations

from typing import Any

from numpy.typing import DTypeLike

from softmap.algorithms.base import Algorithm
from softmap.algorithms.paper import methods as paper
from softmap.algorithms.sweeps.anneal import Anneal
from softmap.algorithms.sweeps.baselines import MPLP, AnnealStar, Diffusion, Nesterov
from softmap.algorithms.sweeps.team import Team
from softmap.algorithms.sweeps.trws import TRWS
from softmap.errors import OptionError
from softmap.relaxation.dual import check_eta

__all__ = ["METHODS", "PASSES", "make"]

# One step is one pass over the whole graph.
PASSES: dict[str, type[Any]] = {
    method.name: method for method in (Anneal, AnnealStar, TRWS, MPLP, Diffusion, Nesterov)
}

# One step is one update of a random block, at a fixed η: the methods of the paper.
UPDATES: dict[str, type[Any]] = {
    method.name: method
    for method in (
        paper.EMP,
        paper.SMP,
        paper.AccelEMP,
        paper.AccelSMP,
        paper.AccelEMPPrinted,
        paper.AccelSMPPrinted,
        paper.BCD,
        paper.AccelBCD,
    )
}

METHODS: dict[str, type[Any]] = {**PASSES, **UPDATES}


def make(
    method: str,
    *,
    eta: float | None = None,
    team: Team | None = None,
    dtype: DTypeLike = "float64",
) -> Algorithm:
    """A method by name, configured.

    Parameters
    ----------
    method : str
        One of `METHODS`.
    eta : float
        Inverse temperature; the paper's methods need it, others choose their own.
    team : Team
        Threads of the methods that pass over the whole graph.
    """
    if eta is not None:
        check_eta(eta)
    if method in PASSES:
        sweeping: Algorithm = PASSES[method](eta=eta, team=team, dtype=dtype)
        return sweeping
    if method not in UPDATES:
        raise OptionError(f"unknown method {method!r}; choose one of {', '.join(METHODS)}")
    if eta is None:
        raise OptionError(f"method {method!r} works at a fixed η: give eta=..., for example 1000.0")
    randomised: Algorithm = UPDATES[method](eta=eta)
    return randomised

"""Methods by name, for `softmap.solve` and the command line."""

from __future__ import annotations

from numpy.typing import DTypeLike

from softmap.algorithms.base import Algorithm
from softmap.algorithms.paper import methods as paper
from softmap.algorithms.sweeps.anneal import Anneal
from softmap.algorithms.sweeps.baselines import MPLP, AnnealStar, Diffusion, Nesterov
from softmap.algorithms.sweeps.trws import TRWS
from softmap.errors import OptionError
from softmap.machine import usable_cores
from softmap.relaxation.dual import check_eta

__all__ = ["METHODS", "find", "make"]

METHODS: dict[str, type[Algorithm]] = {
    method.name: method
    for method in (
        Anneal,
        AnnealStar,
        TRWS,
        MPLP,
        Diffusion,
        Nesterov,
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


def find(method: str) -> type[Algorithm]:
    """The class of a method."""
    if method not in METHODS:
        raise OptionError(f"unknown method {method!r}; choose one of {', '.join(METHODS)}")
    return METHODS[method]


def make(
    method: str,
    *,
    eta: float | None = None,
    threads: int | None = None,
    dtype: DTypeLike = "float64",
) -> Algorithm:
    """A method by name, configured.

    Parameters
    ----------
    method : str
        One of `METHODS`.
    eta : float
        Inverse temperature; the paper's methods need it, others choose their own.
    threads : int
        Threads of the methods that pass over the whole graph.
    """
    if eta is not None:
        check_eta(eta)
    found = find(method)
    if found.fixed_eta and eta is None:
        raise OptionError(f"method {method!r} works at a fixed η: give eta=..., for example 1000.0")
    return found.configured(eta, threads or usable_cores(), dtype)

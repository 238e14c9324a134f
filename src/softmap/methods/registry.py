"""Methods by name, for `softmap.solve` and the command line."""

from __future__ import annotations

from collections import UserDict
from importlib import import_module
from typing import Any, Literal

from numpy.typing import DTypeLike

from softmap.errors import OptionError
from softmap.machine import usable_cores
from softmap.methods.base import Algorithm
from softmap.relaxation.dual import check_eta

__all__ = ["METHODS", "MethodName", "find", "make"]

MethodName = Literal[
    "anneal", "anneal-star", "trws", "mplp", "diffusion", "nesterov", "emp", "smp", "accel-emp",
    "accel-smp", "accel-emp-printed", "accel-smp-printed", "bcd", "accel-bcd",
]  # fmt: skip
"""The names of the methods, for type checkers and editors; a method of yours is `METHODS[name]`."""


class Methods(UserDict[str, Any]):
    """The method classes by name; an entry "module:class" is imported on first use."""

    def __getitem__(self, name: str) -> type[Algorithm]:
        found = self.data[name]
        if isinstance(found, str):
            module, _, kind = found.partition(":")
            found = self.data[name] = getattr(import_module(f"softmap.methods.{module}"), kind)
        method: type[Algorithm] = found
        return method


METHODS = Methods(
    {
        "anneal": "sweeps.anneal:Anneal",
        "anneal-star": "sweeps.baselines:AnnealStar",
        "trws": "sweeps.baselines:TRWS",
        "mplp": "sweeps.baselines:MPLP",
        "diffusion": "sweeps.baselines:Diffusion",
        "nesterov": "sweeps.baselines:Nesterov",
        "emp": "paper.methods:EMP",
        "smp": "paper.methods:SMP",
        "accel-emp": "paper.methods:AccelEMP",
        "accel-smp": "paper.methods:AccelSMP",
        "accel-emp-printed": "paper.methods:AccelEMPPrinted",
        "accel-smp-printed": "paper.methods:AccelSMPPrinted",
        "bcd": "paper.methods:BCD",
        "accel-bcd": "paper.methods:AccelBCD",
    }
)


def find(method: str) -> type[Algorithm]:
    """Return the class of a method, or raise `OptionError` for an unknown name."""
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
    """Return a configured method.

    Parameters
    ----------
    method : str
        One of `METHODS`.
    eta : float, optional
        Inverse temperature η. The paper's methods need it; other methods anneal η themselves by
        default.
    threads : int, optional
        Number of threads of sweep methods.
    dtype : float64 (default) or float32
        Precision of the messages of sweep methods.
    """
    if eta is not None:
        check_eta(eta)
    found = find(method)
    if found.fixed_eta and eta is None:
        raise OptionError(f"method {method!r} works at a fixed η: give eta=..., for example 1000.0")
    return found.configured(eta, threads or usable_cores(), dtype)

"""Methods by name, for `softmap.solve` and the command line."""

from __future__ import annotations

from typing import Any

from softmap.algorithms import paper
from softmap.algorithms.base import Algorithm
from softmap.errors import OptionError

__all__ = ["METHODS", "make"]

METHODS: dict[str, type[Any]] = {
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


def make(method: str, **options: Any) -> Algorithm:
    """A method by name, configured.

    Parameters
    ----------
    method : str
        One of `METHODS`.
    **options
        What its class takes; all of the paper's methods need `eta`.
    """
    if method not in METHODS:
        raise OptionError(f"unknown method {method!r}; choose one of {', '.join(METHODS)}")
    try:
        algorithm: Algorithm = METHODS[method](**options)
    except TypeError as error:
        raise OptionError(f"method {method!r}: {error}") from error
    return algorithm

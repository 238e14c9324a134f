"""The checker's module for the toy's records and evidence: it shares no code with the toy."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from softmap.verification.integers import Given, flat_model
from softmap.verification.records import Rejected
from softmap.verification.report import Statement, Verdict


def proved(flat: Any, least: np.ndarray) -> Fraction:
    """The bound that the least costs of all tables prove; they are compared with the costs."""
    tables = [*flat.unary, *(table for _, table in flat.factors)]
    if len(least) != len(tables):
        raise Rejected("there is not one least cost for each table")
    for low, table in zip(least.tolist(), tables, strict=True):
        if not low <= table.min():
            raise Rejected("a least cost exceeds an entry of its table")
    return flat.constant + sum(map(Fraction, least.tolist()), Fraction(0))


class SumsProof:
    """Checks the one record of least costs."""

    def __init__(self, given: Given) -> None:
        self._given = given.about_costs("least sums")
        self._bound: Fraction | None = None

    def step(self, name: str, arrays: list[Any]) -> None:
        if self._bound is not None or name != "least sums":
            raise Rejected(f"{name} out of its place")
        self._bound = proved(flat_model(self._given.model), arrays[0].view(np.float64))

    def bound(self) -> Fraction:
        assert self._bound is not None
        return self._bound


def check(result: Any, evidence: Any) -> Statement:
    """Check evidence without a proof file."""
    try:
        found = proved(flat_model(result.model.network), np.asarray(evidence.least))
    except Rejected as error:
        return Statement("bound", Verdict.FALSE, str(error))
    holds = found >= Fraction(result.bound)
    return Statement("bound", Verdict.of(holds), f"{result.bound!r} stated, {float(found)!r} found")

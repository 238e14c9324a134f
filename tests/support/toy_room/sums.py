"""`LeastSums`: the sum of the least costs of all tables, proved by which entries they are.

It is a weak bound, by which a test shows what a subsolver has to bring along, and that nothing
else has to know it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softmap import core
from softmap.io.store import Arrays
from softmap.run.best import Best
from softmap.run.evidence import Evidence
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.records import bits, record
from softmap.run.subsolver import Occasion, Outcome, Plan, Share, Subsolver, View

__all__ = ["KIND", "LeastSums", "Sums"]

KIND = 40  # kind of its records


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Sums(Evidence):
    """The least costs of the first tables, in the order of the network, and a bound on the rest.

    Attributes
    ----------
    least : float64 array
        A lower bound on the entries of each table: unary costs, then pairs.
    """

    kind = "least sums"
    text = "the least costs of all tables"
    least: Any = ()

    @property
    def facts(self) -> dict[str, str]:
        return {"tables": f"{len(self.least):,}"}

    def back(self, problem: Problem) -> Sums:
        least = np.ldexp(self.least, -problem.exponent)
        return replace(self, value=problem.bound_back(self.value), least=least)

    def records(self, lam: Any) -> Iterator[bytes]:
        return record(KIND, bits(self.least))

    @property
    def recorded(self) -> float:
        return self.value

    def arrays(self) -> Arrays:
        return {"least": np.asarray(self.least)}

    @classmethod
    def of_arrays(cls, arrays: Arrays, value: float) -> Sums:
        if arrays["least"].ndim != 1:
            raise ValueError("the least costs are no list")
        return cls(value=value, least=arrays["least"])


class LeastSums(Subsolver):
    """Adds up least costs, a table per slice, and begins where the last slice has ended."""

    name = "least sums"
    evidence = Sums

    def __init__(self, problem: Problem, options: Options) -> None:
        super().__init__(problem, options)
        model = problem.model
        self._costs = [model.unary[model.node_slice(i)] for i in range(model.n)]
        self._costs += [model.table(e) for e in range(model.m)]
        self._least: list[float] = []

    @classmethod
    def make(cls, problem: Problem, options: Options) -> LeastSums | None:
        plain = problem.model.is_plain and not problem.model.has_forbidden
        return cls(problem, options) if plain else None

    def plan(self, view: View) -> Plan | None:
        if view.occasion is not Occasion.TURN or len(self._least) == len(self._costs):
            return None
        return Plan("the least cost of a table", urgent=True)

    def __call__(self, best: Best, share: Share) -> Outcome:
        table = self._costs[len(self._least)]
        self._least.append(float(np.nextafter(table.min(), -np.inf)))
        active = len(self._least) < len(self._costs)
        if not active:
            bound = float(core.lower_sum(np.array([*self._least, self.problem.model.constant])))
            best.offer_bound(Sums(value=bound, least=np.array(self._least)))
        return Outcome(active=active, work=1)

    def snapshot(self) -> Arrays:
        return {"least": np.array(self._least)}

    def restore(self, arrays: Arrays) -> None:
        if arrays["least"].shape > (len(self._costs),) or arrays["least"].dtype != np.float64:
            raise ValueError("there are more least costs than tables")
        self._least = arrays["least"].tolist()

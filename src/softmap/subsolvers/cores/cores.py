"""`Cores`: bounds and labels of clauses and sums by core-guided search."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from softmap.errors import InfeasibleModel, WriteError
from softmap.labels.feasibility import completed
from softmap.relaxation.flat import flat_entries
from softmap.run.best import Best
from softmap.run.evidence import Stated
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.records import copied, record
from softmap.run.subsolver import (
    Occasion,
    Outcome,
    Plan,
    Share,
    Subsolver,
    View,
    two_labels,
)
from softmap.tuning import Numbers

if TYPE_CHECKING:
    from softmap.subsolvers.cores.core_guided import CoreGuided

__all__ = ["CoreNumbers", "CoreRecords", "Cores"]

BOOLEANS, COSTS = 24, 25  # kinds of records


@dataclass(frozen=True)
class CoreNumbers(Numbers):
    """Which models have a core-guided search, and when it comes before the relaxation."""

    entries: int = 4_000_000  # most table entries; D70
    conflict_work: int = 1_000  # units of work per conflict; D70
    setup: float = 60.0  # evaluations of the bound: set-up of tables of these entries; D51
    patience: float = 0.15  # of the time: without a gain, before the first check; D70
    unlabelled: float = 0.4  # of the time: left until which runs without labels wait; D70, D96
    entry_bytes: int = 500  # bytes per table entry; D70
    logged: int = 32_000_000  # most integers of four bytes of a proof in memory; D78


class CoreRecords:
    """The proof of a core-guided search: its Boolean variables, the costs, and its steps.

    Parameters
    ----------
    search : CoreGuided
        The search.
    """

    def __init__(self, search: CoreGuided) -> None:
        self._search = search

    def records(self, problem: Problem, fresh: Callable[[], Path]) -> Iterator[bytes]:
        """Yield the Boolean variables, the costs of all tables, and the steps of the search."""
        path, encoding = fresh(), self._search.encoding
        if not (size := self._search.write(path)):
            raise WriteError(path, OSError("it cannot be written"))
        units = encoding.units
        yield from record(
            BOOLEANS, [units.whole, units.exponent, encoding.variables], encoding.chosen
        )
        for table, literals in encoding.paid():
            yield from record(COSTS, [table], literals)
        yield from copied(path, size)


class Cores(Subsolver):
    """Core-guided search, for variables of two labels tied by hard constraints or clauses."""

    name = "cores"
    number = 7

    def __init__(self, problem: Problem, options: Options) -> None:
        super().__init__(problem, options)
        self._search: CoreGuided | None = None
        # until when it comes before the first check of the relaxation, on the clock
        self._patience = math.inf
        self._entries = flat_entries(problem.model)
        self._numbers = self.tuning.of(CoreNumbers)

    @classmethod
    def make(cls, problem: Problem, options: Options) -> Cores | None:
        model = problem.model
        logical = model.has_forbidden or model.has_factors
        if not options.proving or options.backend != "cpu":
            return None
        if not logical or not two_labels(problem):
            return None
        cores = cls(problem, options)
        if cores._entries > cores._numbers.entries:
            return None
        return cores.fitting(float(cores._numbers.entry_bytes * cores._entries))

    def plan(self, view: View) -> Plan | None:
        if view.recalling or view.occasion is not Occasion.TURN:
            return None
        begin = 0.0
        if self._search is None:
            model = self.problem.model
            read = self._entries / max(1, model.unary.size + model.edge_size)
            begin = self._numbers.setup * read * view.bound_seconds
        return Plan("cores of clauses and sums", urgent=self._early(view), begin=begin)

    def _early(self, view: View) -> bool:
        """Where the first check of the relaxation takes long, until it gains nothing for long."""
        passed = view.board.seen is not None and view.board.seen.done > 0
        return view.slow and not passed and view.now < self._patience

    def __call__(self, best: Best, share: Share) -> Outcome:
        began = time.perf_counter()
        if self._search is None:
            from softmap.subsolvers.cores.core_guided import CoreGuided  # imported late

            logged = 0 if share.proof is None else self._numbers.logged
            self._search = CoreGuided(self.problem.model, self.problem.given, logged)
        search, prepared = self._search, time.perf_counter() - began
        before = best.bound, best.energy
        labels = search.run(
            energy=min(best.energy, best.cutoff),
            conflicts=1 + share.work // self._numbers.conflict_work,
            deadline=share.deadline,
        )
        if math.isinf(search.bound):
            raise InfeasibleModel(
                "no labelling has finite cost: a search over all variables found none", None
            )
        whole = None if labels is None else completed(self.problem.model, labels)
        if whole is not None:
            best.offer_labels(whole)
        if search.proved:
            log = None if share.proof is None else CoreRecords(search)
            best.offer_bound(
                Stated(
                    value=search.bound, kind="cores", text="a core-guided search",
                    nodes=search.cores, parts="cores", log=log,
                )
            )  # fmt: skip
        limit = self.options.seconds
        early = share.run_left > self._numbers.unlabelled * limit and not best.found
        if early or math.isinf(self._patience) or before != (best.bound, best.energy):
            self._patience = time.perf_counter() + self._numbers.patience * limit
        return Outcome(active=not search.done, prepared=prepared)

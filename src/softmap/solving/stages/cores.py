"""`Cores`: bounds and labels of clauses and sums by core-guided search."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from softmap.errors import InfeasibleModel, WriteError
from softmap.labels.feasibility import complete_labels
from softmap.solving.best import Best
from softmap.solving.evidence import Stated
from softmap.solving.memory import TAKES
from softmap.solving.problem import Problem
from softmap.solving.records import copied, record
from softmap.solving.stage import Estimates, Handed, Outcome, Share, Stage, Trait
from softmap.solving.stages.search import flat_entries
from softmap.solving.trace import StageName

if TYPE_CHECKING:
    from softmap.proof.cores.search import CoreGuided

__all__ = ["CoreRecords", "Cores"]

BOOLEANS, COSTS = 24, 25  # kinds of records


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


class Cores(Stage):
    """Core-guided search, for variables of two labels tied by hard constraints or clauses."""

    name = StageName.CORES
    needs = frozenset({Trait.TWO_LABELS, Trait.LOGICAL})

    def applies(self) -> bool:
        self._search: CoreGuided | None = None
        self._soon = False  # whether it comes before the first check of the relaxation
        self._patience = math.inf  # until when it does, on the clock
        self._entries = flat_entries(self.problem.model)
        small = self._entries <= self.tuning.cores_entries
        return small and self.options.goal != "lp" and self.options.backend == "cpu"

    def memory(self) -> float:
        return float(TAKES.cores * self._entries)

    def begin(self, known: Estimates) -> float:
        checked = 2 * self.tuning.checks.early * known.bound
        self._soon = checked > self.tuning.share * self.options.seconds
        if self._search is not None:
            return 0.0
        model = self.problem.model
        read = self._entries / max(1, model.unary.size + model.edge_size)
        return self.tuning.setup * read * known.bound

    def urgent(self, best: Best, handed: Handed) -> bool:
        """Where the first check of the relaxation takes long, until it gains nothing for long."""
        return self._soon and handed.seen is None and time.perf_counter() < self._patience

    def __call__(self, best: Best, share: Share) -> Outcome:
        began = time.perf_counter()
        if self._search is None:
            from softmap.proof.cores.search import CoreGuided  # imported late

            logged = 0 if self._proof is None else TAKES.logged // 4
            self._search = CoreGuided(self.problem.model, self.problem.given, logged)
        search, prepared = self._search, time.perf_counter() - began
        before = best.bound, best.energy
        labels = search.run(
            energy=min(best.energy, best.cutoff),
            conflicts=1 + share.work // self.tuning.conflict_entries,
            deadline=share.deadline,
        )
        if math.isinf(search.bound):
            raise InfeasibleModel(
                "no labelling has finite cost: a search over all variables found none", None
            )
        whole = None if labels is None else complete_labels(self.problem.model, labels)
        if whole is not None:
            best.offer_labels(whole)
        if search.proved:
            log = None if self._proof is None else CoreRecords(search)
            best.offer_bound(
                Stated(
                    value=search.bound, kind="cores", text="a core-guided search",
                    nodes=search.cores, log=log,
                )
            )  # fmt: skip
        limit = self.options.seconds
        early = share.run_left > self.tuning.first_share * limit and not best.found
        if early or math.isinf(self._patience) or before != (best.bound, best.energy):
            self._patience = time.perf_counter() + self.tuning.share * limit
        return Outcome(active=not search.done, prepared=prepared)

"""`Permute`: labels and bounds of models whose variables all have different labels."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.labels.different import shared_labels
from softmap.run.best import Best
from softmap.run.budget import UNLIMITED
from softmap.run.evidence import Stated
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.records import record
from softmap.run.subsolver import Occasion, Outcome, Plan, Share, Subsolver, View, by_default
from softmap.subsolvers.permutations.multipliers import ASSIGNMENT, AssignmentEvidence, Multipliers
from softmap.tuning import Numbers, Tuning

if TYPE_CHECKING:
    from softmap.labels.permutations import Permutation, PermutationLog

__all__ = ["PermutationNumbers", "Permute"]

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class PermutationNumbers(Numbers):
    """Which permutations are searched, and how the time is divided."""

    entries: float = 1e8  # most pairs of labels of two variables, each twice; D68
    stalled_share: float = 0.8  # of the time, once the dual ascent has stalled; D68
    partial_share: float = 0.1  # of the time, for partial matchings; D89
    slice: float = 0.05  # s, shortest slice; D35
    growth: float = 0.25  # slice, in the time so far; D35
    variables: int = 16  # most variables of a search in any case; D68
    gap: float = 0.05  # relative gap up to which more variables are searched; D68
    passes: float = 2_000.0  # passes over all pairs, of each search without a limit; D68
    swap_share: float = 0.4  # of a slice, for swaps while they improve labels; D68, D96
    idle_share: float = 0.1  # of a slice, for swaps after that; D68
    swap_patience: float = 0.1  # s, least time of swaps without success before that; D68
    pair_bytes: int = 40  # bytes per pair of labels: costs as floats, integers, compiled; D68
    logged: int = 16_000_000  # most integers of eight bytes of a proof in memory; D78


class PermutationRecords:
    """The multipliers of all nodes of a search, as records of a proof.

    Parameters
    ----------
    log : PermutationLog
        The nodes.
    """

    def __init__(self, log: PermutationLog) -> None:
        self._log = log

    def records(self, problem: Problem, fresh: Callable[[], Path]) -> Iterator[bytes]:
        """Yield the multipliers of each node, from the root on."""
        for arrays in self._log.records(problem.exponent):
            yield from record(ASSIGNMENT, *arrays)


class Permute(Subsolver):
    """Permutations: tabu search by swaps, dual ascent over assignment problems, and a search.

    The local polytope proves next to nothing here (decision 68). In runs with a time limit, the
    others have a small part of the time once the dual ascent has stalled. Partial matchings,
    in which one label may be shared, are permutations of more labels (decision 89).
    """

    name = "permutations"
    number = 6
    evidence = AssignmentEvidence

    def __init__(self, problem: Problem, options: Options, shared: list[int] | None = None) -> None:
        super().__init__(problem, options)
        self._begun = time.perf_counter()
        self._seconds = 0.0
        self._found: _Parts | None = None
        self._shared = shared or []
        self._numbers = self.tuning.of(PermutationNumbers)

    @classmethod
    def make(cls, problem: Problem, options: Options) -> Permute | None:
        model = problem.model
        if not by_default(options) or not model.has_forbidden:
            return None
        if not cls(problem, options)._few:
            return None
        shared = shared_labels(model, problem.given)
        if shared is None:
            return None
        permute = cls(problem, options, shared)
        each = permute._numbers.pair_bytes
        return permute.fitting(each * permute._entries) if permute._few else None

    @property
    def _few(self) -> bool:
        return self._entries <= self._numbers.entries

    @property
    def _entries(self) -> float:
        """The number of pairs of labels of two variables, twice."""
        return self._entries_of(self.problem.model.num_visible if self._shared else 0)

    def _entries_of(self, own: int) -> float:
        """The same, with labels that single variables have instead of a shared one."""
        sizes = self.problem.model.num_labels[: self.problem.model.num_visible]
        return float(len(sizes) * (int(sizes.max(initial=0)) + own)) ** 2

    def plan(self, view: View) -> Plan | None:
        if view.recalling or view.occasion is not Occasion.TURN:
            return None
        due = self._partly(view) if self._shared else self._mostly(view)
        return Plan("permutations", urgent=True, whole=True) if due else None

    def _mostly(self, view: View) -> bool:
        """Always at first; once the ascent has stalled, for most of the time."""
        if self._found is None or not self._found.stalled:
            return True
        return self._seconds < self._numbers.stalled_share * (view.now - self._begun)

    def _partly(self, view: View) -> bool:
        """After a check of the relaxation, the last one if time is not limited, since others may
        prove more of a partial matching; then for the least part of the time.
        """
        seen, numbers = view.board.seen, self._numbers
        if seen is None:
            return False
        part = numbers.partial_share * (view.now - self._begun)
        due = self._seconds + numbers.slice <= part
        return self.options.either(timed=due, counted=seen.last)

    def __call__(self, best: Best, share: Share) -> Outcome:
        begun, numbers = time.perf_counter(), self._numbers
        if self._found is None:
            from softmap.labels.permutations import Permutation  # imported late

            model, seed = self.problem.model, self.options.seed
            logged = 0 if share.proof is None else numbers.logged
            try:
                costs = Permutation.of(model, self._shared, share.run_end)
            except core.OutOfTime:
                return Outcome(active=False, ran=False)
            self._found = _Parts(costs, seed, self.tuning, logged)
        seconds, work = self.options.either(
            timed=(max(numbers.slice, numbers.growth * self._seconds), UNLIMITED),
            counted=(math.inf, int(numbers.passes * self._entries_of(0))),
        )
        active = self._found.improve(best, share.within(seconds), work)
        self._seconds += time.perf_counter() - begun
        return Outcome(active=active and work >= UNLIMITED)


class _Parts:
    """The searches of one permutation, which share each slice.

    Parameters
    ----------
    costs : Permutation
        The costs.
    seed : int
        Seed of the random numbers.
    tuning : Tuning
        The numbers of the run.
    logged : int, default 0
        Size of the proof of the search, in integers of eight bytes; none is kept if it is 0.
    """

    def __init__(self, costs: Permutation, seed: int, tuning: Tuning, logged: int = 0) -> None:
        self._costs, self._seed, self._tuning, self._logged = costs, seed, tuning, logged
        self._numbers = tuning.of(PermutationNumbers)
        self._swaps = core.SwapSearch(costs.native, seed)
        self._ascent = core.AssignmentAscent(costs.native, seed)
        self._search: core.AssignmentSearch | None = None
        self._exchanged = False  # whether variables and labels are exchanged in the search
        self._bound = -1
        self._tried = self._idle = 0.0  # seconds of swaps, and those since they last helped

    @property
    def stalled(self) -> bool:
        """Whether passes of the dual ascent have stalled."""
        return self._ascent.coolings > 0

    def improve(self, best: Best, share: Share, work: int) -> bool:
        """Improve labels and bound for one slice; return whether more can be done."""
        self._swap(best, share, work)
        if self._search is None:
            self._ascend(best, share.deadline, work)
        if self._search is None and not (best.found and self._worth(best)):
            return True
        return self._branch(best, share.deadline, work)

    def _worth(self, best: Best) -> bool:
        """Whether a search may end: few variables, or a bound near the energy."""
        near = best.gap <= self._numbers.gap * abs(best.energy)
        few = len(self._costs.unary) <= self._numbers.variables
        return self._ascent.coolings > 1 and (few or near)

    def _swap(self, best: Best, share: Share, work: int) -> None:
        """Search for labels, for a part of the slice that is larger while they improve."""
        begun, before = time.perf_counter(), best.energy
        if best.found:
            self._swaps.offer(self._visible(best))
        numbers = self._numbers
        helps = self._bound >= 0 and self._idle <= 0.5 * self._tried + numbers.swap_patience
        part = numbers.swap_share if helps else numbers.idle_share
        labels = np.empty(len(self._costs.unary), dtype=np.int64)
        self._swaps.run(labels, work, share.part(part))
        self._offer(best, labels)
        spent = time.perf_counter() - begun
        self._tried += spent
        self._idle = 0.0 if best.energy < before else self._idle + spent

    def _visible(self, best: Best) -> Labels:
        return self._costs.inner(best.labels[: len(self._costs.unary)])

    def _offer(self, best: Best, labels: Labels) -> None:
        best.offer_labels(best.problem.model.with_running(self._costs.outer(labels)))

    def _ascend(self, best: Best, deadline: core.Deadline, work: int) -> None:
        """Raise the bound, and offer it with its multipliers."""
        bound = self._ascent.run(work, deadline)
        if bound <= self._bound:
            return
        self._bound = bound
        value = self._value(best, bound)
        if value > best.bound:
            best.offer_bound(self._ascended(value))

    def _value(self, best: Best, bound: int) -> float:
        terms = [self._costs.value(bound), best.problem.model.constant]
        return float(core.lower_sum(np.array(terms)))

    def _ascended(self, value: float) -> AssignmentEvidence:
        """The multipliers of the best bound, for the costs of the model."""
        n, d = self._costs.unary.shape
        rows, columns = np.empty(n * d * n, dtype=np.int64), np.empty(n * d * d, dtype=np.int64)
        labels = np.empty(d, dtype=np.int64)
        self._ascent.multipliers(rows, columns, labels)
        row = rows.reshape(n, d, n) + self._costs.shift[:, None, :]
        columns = columns.reshape(n, d, d)
        multipliers = Multipliers(self._costs.exponent, row, columns, labels)
        return AssignmentEvidence(value=value, multipliers=multipliers)

    def _branch(self, best: Best, deadline: core.Deadline, work: int) -> bool:
        """Search; return whether it goes on."""
        costs = self._costs
        most = costs.cost(self._visible(best)) - costs.step
        if self._search is None:
            self._search = self._new_search(most)
        search = self._search
        search.limit(most)
        ended = search.run(work, deadline)
        labels = np.empty(len(costs.unary), dtype=np.int64)
        if search.labels(labels):
            labels = np.argsort(labels) if self._exchanged else labels
            self._offer(best, labels)
        value = self._value(best, max(search.bound, self._bound))
        if value > best.bound:
            start = self._ascended(self._value(best, self._bound))
            log = self._log() if ended else None
            best.offer_bound(Stated(value=value, nodes=search.nodes, start=start, log=log))
        return not ended

    def _log(self) -> PermutationRecords | None:
        """The proof of a search that has ended, if it was kept."""
        from softmap.labels.permutations import PermutationLog  # imported late

        if self._search is None or not self._logged or self._search.full:
            return None
        return PermutationRecords(PermutationLog(self._costs, self._search, self._maps))

    def _new_search(self, most: int) -> core.AssignmentSearch:
        """A search from the best multipliers, in the direction that has more symmetries."""
        from softmap.labels.permutations import SymmetryNumbers  # imported late

        costs, numbers = self._costs, self._tuning.of(SymmetryNumbers)
        symmetry = costs.symmetry(numbers)
        self._maps, kind = symmetry.maps, symmetry.kind
        if self._logged:  # a proof has symmetries of labels only
            kind = np.arange(len(kind))
        elif costs.unary.shape[0] == costs.unary.shape[1]:
            other = costs.transposed().symmetry(numbers)
            self._exchanged = other.size > symmetry.size
            symmetry = other if self._exchanged else symmetry
            kind = symmetry.kind
        return core.AssignmentSearch(
            self._ascent, self._exchanged, symmetry.maps, kind, most, costs.step,
            costs.barrier, self._seed, self._logged,
        )  # fmt: skip

"""The stages after the relaxation: exact search (whole or partial), labels, and tightening.

A stage is called with a time slice and offers bounds and labels to `Best`. It must not claim a
bound that it has not proved. `softmap.solving.schedule` decides which stage runs when.
"""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.errors import InfeasibleModel
from softmap.labels.annealing import Annealing
from softmap.labels.cuts import Fusion
from softmap.labels.improving import Neighbourhoods
from softmap.model import Model
from softmap.proof.search.exact import (
    OPEN_NODE_BYTES,
    ExactResult,
    ExactSearch,
)
from softmap.proof.search.moves import LargeMoves
from softmap.proof.search.partial import PartialSearch
from softmap.relaxation.flat import (
    EliminationOrder,
    FlatModel,
    elimination_order,
    flat_lam,
    flatten,
)
from softmap.solving.best import Best
from softmap.solving.budget import Budget, Share
from softmap.solving.feasible import FirstLabels
from softmap.solving.memory import memory_needed
from softmap.solving.problem import Problem
from softmap.solving.proof import Proof, ProofKind
from softmap.solving.stage import Stage
from softmap.solving.trace import StageName

if TYPE_CHECKING:
    from softmap.labels.cuts import Expansions
    from softmap.solving.tighten import Tightening
    from softmap.solving.warm import Clusters

__all__ = ["Improve", "Partial", "Search", "StageTuning", "Tighten"]


@dataclass(frozen=True, eq=False)
class StageTuning:
    """Tuning numbers of the stages.

    Attributes
    ----------
    backtracks : int
        Smallest number of backtracks in a slice of the search without a time limit.
    read : int
        Smallest product of table entries of the model and backtracks in such a slice, per unit of
        work, unless `max_work` is given. Most small models are solved in one slice of at most two
        seconds: a slice before the LP is solved is not continued later.
    longest : float
        Largest length of a slice without a time limit, in seconds.
    few : int
        Largest number of nodes of a model that is searched without a time limit.
    nearly : float
        Relative gap up to which larger models are searched without a time limit.
    dp_entries : int
        Table entries of dynamic programming per unit of work.
    fresh : float
        Improvement of λ, as a fraction of the MAP gap, for which a search restarts.
    entries : int
        Largest number of table entries of a model that is searched.
    clustered : int
        Largest number of node states of a model that is tightened.
    clustering_seconds : float
        Time until tightening has added its first clusters, per message entry, in seconds: on large
        models this takes longer than the bounds by which other stages estimate their time.
    partial_from : int
        Smallest number of variables for which only the loose part of a model is searched.
    loose : float
        Largest size of the loose part, as a fraction of the variables.
    tight : float
        Relative gap at which a search stops.
    narrow : int
        Largest number of variables for which the width of a model is computed.
    eliminated : float
        Largest number of table entries for which variable elimination solves the model.
    entry_bytes : int
        Memory of a search per table entry, in bytes.
    entry_seconds, edge_seconds : float
        Set-up time of a search per table entry, and per variable and edge, in seconds.
    edge_bytes : int
        Memory of a search, or of a search for labels, per edge, in bytes.
    copy_bytes : int
        Memory of each further thread of a search, per node and edge, in bytes.
    copy_share : float
        Largest fraction of the memory left by a search for its further threads.
    dp_bytes : int
        Memory of dynamic programming per table entry, in bytes, if memory is limited.
    without_clusters : float
        Memory of tightening before the first cluster, relative to that of the relaxation.
    state_bytes : int
        Memory per joint state of a cluster, in bytes.
    moved : int
        Largest number of table entries of a model whose labels are improved by exact search over
        small parts.
    mobile : int
        Largest number of variables of such a model.
    annealed : int
        Largest number of table entries of a larger model whose labels are annealed.
    cooled : int
        Work of annealing before a search per table entry of the model: with 150, the cut is the
        optimum in half of the paper's random graphs, and a search has a sixth fewer nodes.
    cooling : int
        Largest work of annealing before a search, some 4 ms.
    flat_seconds : float
        Time to collect the tables, per entry, in seconds.
    lean : float
        Smallest fraction of the time of each search for better labels.
    shortest : float
        Least time of each in a slice, in seconds, before the end of the run.
    keep : float
        Factor of what its earlier successes count, from one slice with successes to the next.
    """

    backtracks: int = 50
    read: int = 600
    longest: float = 10.0
    few: int = 600
    nearly: float = 3e-3
    dp_entries: int = 20
    fresh: float = 0.02
    entries: int = 60_000_000
    clustered: int = 5_000_000
    clustering_seconds: float = 2e-7
    partial_from: int = 300
    loose: float = 0.3
    tight: float = 1e-10
    narrow: int = 3_000
    eliminated: float = 5e8
    entry_bytes: int = 64
    entry_seconds: float = 1e-7
    edge_seconds: float = 1.5e-5
    edge_bytes: int = 2000
    copy_bytes: int = 400
    copy_share: float = 0.25
    dp_bytes: int = 16
    without_clusters: float = 5.0
    state_bytes: int = 1000
    moved: int = 30_000_000
    mobile: int = 5_000
    annealed: int = 4_000_000
    cooled: int = 200
    cooling: int = 800_000
    flat_seconds: float = 4e-8
    lean: float = 0.1
    shortest: float = 0.02
    keep: float = 0.7


TUNING = StageTuning()


class _Improver(Protocol):
    """A search for better labels that goes on with each call, until a limit."""

    def __call__(
        self,
        labels: NDArray[np.int64],
        *,
        deadline: core.Deadline | None,
        work: int,
    ) -> NDArray[np.int64]: ...


def _flat_entries(model: Model) -> int:
    """The number of node costs and table entries of a model without its auxiliary edges."""
    tied = model.edges[:, 0] >= model.num_variables
    pairs = np.diff(model.edge_offset)[~tied].sum() if model.m else 0
    return int(pairs) + model.unary.size


def _search_takes(model: Model, entries: int) -> float:
    """Memory of an exact search without open nodes and dynamic programming, in bytes."""
    return float(TUNING.entry_bytes * entries + TUNING.edge_bytes * (model.n + model.m))


def _search_threads(problem: Problem, spare: float) -> tuple[int, float]:
    """The number of threads of a search, and the memory of all but the first, in bytes."""
    model = problem.model
    each = TUNING.entry_bytes * model.half_size + TUNING.copy_bytes * (model.n + model.m)
    fits = TUNING.copy_share * max(spare, 0.0) / max(each, 1)  # +inf if memory is not limited
    further = int(min(problem.threads - 1, fits))
    return 1 + further, float(further * each)


class Search(Stage):
    """Exact branch and bound over the model, from λ and the best labels."""

    name = StageName.SEARCH
    setup = 300.0

    def applies(self) -> bool:
        self._flat: FlatModel | None = None
        self._search: ExactSearch | None = None
        self._bound = -math.inf  # bound of the λ it started from, or of its root
        self._beyond = 0.0  # by how much the labels it started from exceed the upper bound
        model = self.problem.model
        self.entries = _flat_entries(model)
        return self.entries <= TUNING.entries

    def takes(self) -> float:
        return _search_takes(self.problem.model, self.entries)

    def delay(self, budget: Budget) -> float:
        model = self.problem.model
        seconds = TUNING.entry_seconds * self.entries + TUNING.edge_seconds * (model.n + model.m)
        return seconds if self._search is None else 0.0

    def __call__(self, best: Best, share: Share) -> None:
        if not share.timed and not self._promising(best):
            return
        interrupts = share.budget.interrupts
        found = self._current(best, share).run(
            incumbent=best.labels if best.found else None,
            deadline=interrupts.within(share.left if share.timed else TUNING.longest),
            end=interrupts.within(share.end),
            backtrack_limit=-1 if share.timed else self._backtracks(share),
        )
        share.spend()
        if found.infeasible:
            raise InfeasibleModel(
                "no labelling has finite cost: an exact search over all variables found none", None
            )
        self._offer(best, found)

    def _anneals(self, best: Best) -> int:
        """Work of annealing the labels in the first slice; 0 if it does not pay."""
        again = self._search is not None or not best.found or best.cutoff < math.inf
        if again or self.narrow or self.entries > TUNING.annealed:
            return 0
        fits = Annealing.takes(self.problem.model, self.entries) <= self.room
        return min(TUNING.cooled * self.entries, TUNING.cooling) if fits else 0

    def _backtracks(self, share: Share) -> int:
        """The number of backtracks in a slice without a time limit."""
        many = share.budget.max_work is None
        least = TUNING.read * share.work // max(1, self.entries) if many else 0
        return max(TUNING.backtracks, least, share.work // self.problem.model.n)

    @cached_property
    def narrow(self) -> bool:
        """Whether variable elimination solves the model: its width is small."""
        return self.elimination.found

    @cached_property
    def elimination(self) -> EliminationOrder:
        """The order and the size of variable elimination, if the model has few variables."""
        if self.problem.model.num_variables > TUNING.narrow:
            return EliminationOrder(math.inf, math.inf, np.zeros(0, np.int64))
        return elimination_order(self.problem.model, TUNING.eliminated)

    def _flattened(self) -> FlatModel:
        if self._flat is None:
            self._flat = flatten(self.problem.model)
        return self._flat

    def forget(self) -> None:
        """Restart with the next slice, because a resumed run does so, too."""
        self._search = None

    def _current(self, best: Best, share: Share) -> ExactSearch:
        """Return the current search, or a new one if λ has improved much."""
        bound, rest = best.lp_bound, best.energy - best.bound
        better = not bound - self._bound <= TUNING.fresh * rest
        beyond = self._above(best)
        if self._search is None or better or beyond != self._beyond:
            self._beyond = beyond
            model = self.problem.model
            self._bound = bound
            spare = self.room - self.takes()
            threads, copies = _search_threads(self.problem, spare)
            spare -= copies  # half for tables, half for open nodes
            tables = 1e9 if share.timed else float(TUNING.dp_entries * share.work)
            if not share.timed and self.narrow:
                tables = max(tables, TUNING.eliminated)
            self._search = ExactSearch(
                self._flattened(),
                incumbent=best.labels if best.found else None,
                lam=flat_lam(model, best.lam),
                relative_gap=min(TUNING.tight, self.options.gap),
                absolute_gap=beyond,
                dp_limit=min(tables, spare / TUNING.dp_bytes),
                open_bytes=min(OPEN_NODE_BYTES, spare / 2),
                threads=threads,
                log=None if self.fresh_log is None else self.fresh_log(),
                anneal=self._anneals(best),
                seed=self.options.seed,
            )
        return self._search

    def _promising(self, best: Best) -> bool:
        """Whether a search without a time limit is short enough: few nodes, or a small gap."""
        near = self.problem.model.n <= TUNING.few or best.gaps().map <= TUNING.nearly
        return near or self.narrow

    def _offer(self, best: Best, found: ExactResult) -> None:
        if found.labels is not None:
            best.offer_labels(found.labels)
        proof = Proof(ProofKind.SEARCH, nodes=found.nodes)
        best.offer_bound(found.lower_bound, proof, found.log)
        self._bound = max(self._bound, found.root_bound)
        # labels above the cutoff have improved: another search must prove the new ones
        again = self._beyond != self._above(best)
        self.active = not found.complete or again

    def _above(self, best: Best) -> float:
        """The amount by which the energy of the labels exceeds the upper bound, at least 0."""
        return max(0.0, best.energy - best.cutoff) if best.found else 0.0


class Partial(Stage):
    """Exact search of the part of a large model that is not tight (not decided by λ)."""

    name = StageName.SEARCH
    setup = 10.0

    def applies(self) -> bool:
        self._search: PartialSearch | None = None
        self._energy = math.inf  # of the labels from which a part was last computed
        model = self.problem.model
        self._largest = int(TUNING.loose * model.n)
        return model.n > TUNING.partial_from and model.m > 0 and not len(model.auxiliaries)

    def takes(self) -> float:
        model = self.problem.model
        entries = model.unary.size + int(model.edge_offset[-1])
        return OPEN_NODE_BYTES + _search_takes(model, entries)

    def ready(self, best: Best) -> bool:
        small = self._search is not None and self._search.size <= self._largest
        return best.found and (small or best.energy < self._energy)

    def __call__(self, best: Best, share: Share) -> None:
        if not self.ready(best):
            return
        model = self.problem.model
        search = self._current(best)
        if search.size > self._largest:
            return
        seconds = share.left if share.timed else TUNING.longest
        found = search.run(
            deadline=share.budget.interrupts.within(seconds),
            backtrack_limit=-1 if share.timed else max(TUNING.backtracks, share.work // model.n),
            largest=self._largest,
        )
        share.spend()
        best.offer_labels(found.labels)
        best.offer_bound(found.bound, Proof(ProofKind.SEARCH, nodes=found.nodes), found.log)
        self.active = not found.complete

    def _current(self, best: Best) -> PartialSearch:
        """Return the current search, or a new one if that starts from a smaller part."""
        old = self._search
        if old is None or best.energy < self._energy:
            self._energy = best.energy
            threads, _ = _search_threads(self.problem, self.room - self.takes())
            new = PartialSearch(
                self.problem.model, best.lam, best.labels, self.fresh_log, threads=threads
            )
            self._search = new if old is None or new.size < old.size else old
        assert self._search is not None
        return self._search


class _Shares:
    """The time of several searches for labels: more for those with more successes per second.

    Parameters
    ----------
    count : int
        Number of searches.
    """

    def __init__(self, count: int) -> None:
        self._merit = np.full(count, 1.0 / count)

    @property
    def parts(self) -> NDArray[np.float64]:
        """The fraction of the time of each search."""
        rest = 1.0 - TUNING.lean * len(self._merit)
        return TUNING.lean + rest * self._merit / self._merit.sum()

    def note(self, gains: NDArray[np.float64]) -> None:
        """Say how much each search has improved the labels in its part of a slice."""
        if (total := gains.sum()) > 0.0:
            rates = gains / total / self.parts
            self._merit = TUNING.keep * self._merit + (1.0 - TUNING.keep) * rates / rates.sum()


class Improve(Stage):
    """Expansion moves and three searches for labels; finds feasible labels if there are none.

    Annealing over single labels, dynamic programming over narrow parts of the model and exact
    search over small ones share the time; those that improve the labels get more of it. In runs
    with a time limit and more threads than searches, they run side by side instead. Each goes on
    where its last part of a slice has ended.
    """

    name = StageName.LABELS
    setup = 8.0
    proves = False

    def applies(self) -> bool:
        self._expansions: Expansions | None = None
        self._first = FirstLabels(self.problem)
        model = self.problem.model
        entries = _flat_entries(model)
        small = entries <= TUNING.moved and model.num_variables <= TUNING.mobile
        self._may_move = small and _search_takes(model, entries) <= self.room
        brief = self._may_move or entries <= TUNING.annealed
        self._may_anneal = brief and Annealing.takes(model, entries) <= self.room
        self._flat_seconds = TUNING.shortest + TUNING.flat_seconds * entries
        self._shares: _Shares | None = None
        self._slices = 0
        return True

    def takes(self) -> float:
        model = self.problem.model
        return float(TUNING.edge_bytes * model.m / 10 + 8 * model.unary.size)

    def start_from(self, expansions: Expansions | None) -> None:
        """Continue the expansion moves of the opening, if memory allows it."""
        fits = Fusion.takes(self.problem.model) <= self.room
        self._expansions = expansions if fits else None

    def least(self, budget: Budget) -> float:
        seconds = super().least(budget)
        if self._may_anneal:  # needs no bound
            seconds = min(seconds, self._flat_seconds)
        return seconds if self._expansions is None else min(seconds, TUNING.shortest)

    def __call__(self, best: Best, share: Share) -> None:
        if not best.found:
            nodes = best.point.node_marginals() if best.point else None
            deadline = share.budget.interrupts.within(share.left)
            self._first(best, nodes, deadline=deadline, work=share.work)
        if best.found and self.problem.model.m and self._expanded(best, share):
            together = share.timed and self.problem.threads > len(self._searches) > 1
            (self._search_together if together else self._search)(best, share)
        share.spend()

    def _expanded(self, best: Best, share: Share) -> bool:
        """Whether no expansion move improves the labels, after as many as the slice allows.

        Slices without a time limit have none: a resumed run could not continue them.
        """
        moves = self._expansions
        if moves is None or not share.timed or moves.ended(best.labels):
            return True
        labels = best.labels.copy()
        ended = moves.run(labels, deadline=share.budget.interrupts.within(share.left))
        best.offer_labels(labels)
        return ended

    @cached_property
    def _searches(self) -> list[_Improver]:
        """The searches, each of which continues from call to call."""
        model, seed = self.problem.model, self.options.seed
        flat = flatten(model) if self._may_anneal or self._may_move else None
        found: list[_Improver] = []
        if flat is not None and self._may_anneal:
            found.append(Annealing(flat, seed).improve)
        found.append(Neighbourhoods(model, seed=seed, threads=self.problem.threads).improve)
        if flat is not None and self._may_move:
            found.append(LargeMoves(flat, seed).improve)
        return found

    def _search_together(self, best: Best, share: Share) -> None:
        """Improve the labels by all searches at once, from the same labels."""
        seconds = max(share.left, min(TUNING.shortest, share.end))
        deadline = share.budget.interrupts.within(seconds)

        def improved(search: _Improver) -> NDArray[np.int64]:
            return search(best.labels, deadline=deadline, work=share.work)

        with ThreadPoolExecutor(len(self._searches), "softmap-labels") as threads:
            for found in [threads.submit(improved, search) for search in self._searches]:
                best.offer_labels(found.result())

    def _search(self, best: Best, share: Share) -> None:
        """Improve the labels by each of the searches, each time another one first."""
        if self._shares is None:
            self._shares = _Shares(len(self._searches))
        parts = self._shares.parts
        gains, waiting = np.zeros(len(parts)), np.ones(len(parts), dtype=bool)
        first = self._slices % len(parts)
        for k in (*range(first, len(parts)), *range(first)):
            seconds = float(parts[k] / parts[waiting].sum()) * share.left
            seconds = max(seconds, min(TUNING.shortest, share.end))
            deadline = share.budget.interrupts.within(seconds)
            waiting[k] = False
            work = int(parts[k] * share.work)
            labels = self._searches[k](best.labels, deadline=deadline, work=work)
            before = best.energy
            best.offer_labels(labels)
            gains[k] = before - best.energy
        self._shares.note(gains)
        self._slices += 1


class Tighten(Stage):
    """The relaxation tightened by clusters; labels are decoded from its marginals."""

    name = StageName.TIGHTEN
    setup = 200.0

    def applies(self) -> bool:
        self._run: Tightening | None = None
        self._clusters: Clusters | None = None
        model = self.problem.model
        return model.m > 0 and model.unary.size <= TUNING.clustered

    def takes(self) -> float:
        return TUNING.without_clusters * memory_needed(self.problem.model)

    def ready(self, best: Best) -> bool:
        return best.found

    def delay(self, budget: Budget) -> float:
        return self.least(budget) if self._run is None else 0.0

    def least(self, budget: Budget) -> float:
        seconds = super().least(budget)
        if self._run is not None:
            return seconds
        return max(seconds, TUNING.clustering_seconds * self.problem.model.half_size)

    def start_from(self, clusters: Clusters | None) -> None:
        """Start from the clusters of an earlier proof."""
        self._clusters = clusters

    def __call__(self, best: Best, share: Share) -> None:
        if not best.found:
            return
        from softmap.proof.tightening.clusters import Limits  # imported late
        from softmap.solving.tighten import Tightening
        from softmap.solving.times import TurnClock

        if self._run is None:
            states = (self.room - self.takes()) / TUNING.state_bytes
            limits = Limits()
            limits = replace(limits, states=int(min(limits.states, states)))
            self._run = Tightening(self.problem, best, limits)
            if self._clusters is not None:
                self._run.adopt(self._clusters)
        run = self._run
        before, prepared = run.work, run.times.prepared
        messages = share.work // max(1, int(run.tight.model.num_labels.mean()))
        end, noted = time.perf_counter() + share.end, share.budget.interrupts
        clock = TurnClock(share.deadline, end, lambda: noted.noted)
        self.active = run.go_on(clock, before + messages, self.options.gap)
        self.prepared = run.times.prepared - prepared
        share.budget.spend(run.work - before)

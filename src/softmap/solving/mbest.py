"""`solve_mbest`: the m best labellings, or m diverse ones, each with a certified bound."""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from itertools import count as numbers_from

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.arguments import count, not_negative, time_limit_of
from softmap.machine import available_memory, usable_cores
from softmap.model import Model, checked_model
from softmap.model.potentials.base import Costs, Ints
from softmap.proof.search.exact import solve_exact
from softmap.relaxation.bounds import dual_bound
from softmap.relaxation.flat import EliminationOrder, elimination_order, flat_lam, flatten
from softmap.relaxation.gaps import model_unit, relative_gap
from softmap.solving.diverse import next_diverse
from softmap.solving.problem import Problem
from softmap.solving.result import Result
from softmap.solving.solve import solve
from softmap.solving.trace import Status

__all__ = ["RankedLabelling", "solve_mbest"]

EPS = np.finfo(float).eps


@dataclass(frozen=True, eq=False)
class RankTuning:
    """Tuning numbers of the search for the best labellings.

    Attributes
    ----------
    first : float
        Fraction of the time limit for the best labelling.
    tight : float
        Relative gap at which a search may stop.
    entries : float
        Largest number of table entries for which variable elimination finds all labellings.
    entry_seconds : float
        Estimated time of elimination per table entry, in seconds.
    entry_bytes : int
        Memory of elimination per stored table entry, in bytes.
    chosen : int
        Largest number of labels of all labellings that are found by elimination.
    """

    first: float = 0.5
    tight: float = 1e-10
    entries: float = 5e8
    entry_seconds: float = 5e-9
    entry_bytes: int = 16
    chosen: int = 20_000_000


TUNING = RankTuning()


@dataclass(frozen=True, eq=False)
class RankedLabelling:
    """One of the labellings of `solve_mbest`.

    Attributes
    ----------
    labels : int64 array
        The labelling.
    energy : float
        `model.energy(labels)`.
    bound : float
        Certified lower bound on the energy of the true entry of this rank.
    proved : bool
        Whether `energy` is within the requested relative gap of `bound`.
    """

    labels: NDArray[np.int64]
    energy: float
    bound: float
    proved: bool


def solve_mbest(
    model: Model,
    m: int,
    *,
    diversity: int | None = None,
    time_limit: float | None = None,
    gap: float = 1e-6,
    threads: int | None = None,
    seed: int = 0,
) -> list[RankedLabelling]:
    """Return the m best labellings in order of energy, or m diverse labellings.

    Without `diversity`, entry k is the labelling of k-th lowest energy, and its `bound` is a lower
    bound on the k-th lowest energy. With `diversity=d`, entry k has the lowest energy among the
    labellings that differ from *each* earlier entry in at least d variables, and its `bound` is a
    lower bound on the energy of all of those. Entries are found greedily; they need not be the best
    set of m.

    Parameters
    ----------
    model : Model
    m : int
        Number of labellings.
    diversity : int, optional
        Smallest number of variables in which any two labellings differ.
    time_limit : float, optional
        Time limit in seconds, for all labellings. Without a limit every entry is searched for until
        it is proved; with one, see `proved` of each entry.
    gap : float, default 1e-6
        Relative gap to `bound` at which an entry counts as proved. Labellings whose energies differ
        by less may come in either order.
    threads : int, optional
        Number of threads; all that this process may use by default.
    seed : int, default 0
        Seed of the random numbers.

    Returns
    -------
    list of RankedLabelling
        Fewer than m if no more labellings of finite cost exist, or none was found in time.

    Examples
    --------
    >>> import softmap
    >>> model = softmap.generators.potts_grid(4, 4, 3, seed=1)
    >>> ranked = softmap.solve_mbest(model, 3)
    >>> [entry.proved for entry in ranked]
    [True, True, True]
    >>> ranked[0].energy <= ranked[1].energy <= ranked[2].energy
    True
    """
    most, gap = count("m", m, 1), not_negative("gap", gap)
    apart = None if diversity is None else count("diversity", diversity, 1)
    limit = time_limit_of(time_limit)
    deadline = time.perf_counter() + limit
    cores = usable_cores() if threads is None else count("threads", threads, 1)
    if apart is None:
        known = _by_elimination(checked_model(model), most, gap, cores, deadline)
        if known is not None:
            return known
    share = None if math.isinf(limit) else TUNING.first * limit
    first = solve(model, goal="optimal", gap=gap, threads=threads, seed=seed, time_limit=share)
    if first.status is Status.INTERRUPTED:
        deadline = time.perf_counter()
    return _others(first, most, apart, deadline)


def _by_elimination(
    model: Model, most: int, gap: float, threads: int, deadline: float
) -> list[RankedLabelling] | None:
    """Return the best labellings by dynamic programming; None if the model is too wide for it."""
    problem = Problem.of(model)
    order = elimination_order(problem.model, TUNING.entries)
    room, left = available_memory(), deadline - time.perf_counter()
    short = (
        order.found
        and not len(model.running)  # their labellings are counted once per visible labelling
        and most * model.num_variables <= TUNING.chosen
        and TUNING.entry_seconds * order.entries <= TUNING.first * left
        and (room is None or TUNING.entry_bytes * order.stored <= room)
    )
    if not short:
        return None
    upper = math.inf
    while True:
        labels, bounds, slack = _enumerated(problem, order, most, upper, threads, deadline)
        if not labels:  # out of time, or infeasible: `solve` says which
            return None
        found = _sorted(model, list(zip(labels, map(problem.bound_back, bounds), strict=True)))
        ranked = [_ranked(model, x, bound, gap) for x, bound in found]
        if math.isfinite(upper) or len(ranked) < most or all(entry.proved for entry in ranked):
            return ranked
        # the energy of the last labelling allows a finer rounding of the costs
        highest = max(float(problem.model.energy(x)) for x in labels)
        upper = highest + 1e-6 * max(abs(highest), slack)


def _enumerated(
    problem: Problem,
    order: EliminationOrder,
    most: int,
    upper: float,
    threads: int,
    deadline: float,
) -> tuple[list[Ints] | None, list[float], float]:
    """Return labellings, bounds of their ranks, and the rounding of bounds; None if time ran out.

    `upper` is an upper bound on the energy of the last labelling, in the units of the problem.
    """
    flat, left = flatten(problem.model), deadline - time.perf_counter()
    found = core.best_labellings(
        flat.native, order.variables, most, upper, threads, core.Deadline(left)
    )
    labels = [np.array(x, np.int64) for x in found["labels"]]
    return (labels if found["complete"] else None), found["bounds"], found["slack"]


def _others(first: Result, most: int, apart: int | None, deadline: float) -> list[RankedLabelling]:
    """Return the first labelling and the following ones."""
    if not math.isfinite(first.energy):
        return []
    model, gap = first.model, first.tolerances[1]
    if apart is not None:
        found = list(islice(_apart(first, apart, deadline), most))
    else:
        found = _sorted(model, list(islice(_Partition(first, gap, deadline, most), most)))
    return [_ranked(model, labels, bound, gap) for labels, bound in found]


def _sorted(model: Model, found: list[tuple[Ints, float]]) -> list[tuple[Ints, float]]:
    """Sort labellings by energy, and bounds with them: bounds belong to ranks."""
    labels = sorted((labels for labels, _ in found), key=model.energy)
    return list(zip(labels, accumulate((bound for _, bound in found), max), strict=True))


def _ranked(model: Model, labels: Ints, bound: float, gap: float) -> RankedLabelling:
    energy = float(model.energy(labels))
    labels = labels[: model.num_visible]
    bound = min(bound, energy)
    proved = relative_gap(energy - bound, model_unit(model, bound)) <= gap
    shaped = labels if model.shape is None else labels.reshape(model.shape)
    return RankedLabelling(shaped, energy, bound, proved)


def _apart(first: Result, distance: int, deadline: float) -> Iterator[tuple[Ints, float]]:
    """Yield diverse labellings, each with its bound."""
    problem = Problem.of(first.model)
    flat = flatten(problem.model)
    best = first.labels.reshape(-1)
    earlier, bound = [best], first.bound
    yield best, bound
    while True:
        labels, proved = next_diverse(flat, earlier, distance, deadline)
        simple = (
            None if math.isinf(proved) and proved > 0 else _moved(problem.scaled, earlier, distance)
        )
        options = [x for x in (labels, simple) if x is not None]
        if not options:
            return
        labels = min(options, key=problem.scaled.energy)
        bound = max(bound, problem.bound_back(proved))  # bounds do not decrease with the rank
        earlier.append(labels[: problem.scaled.num_visible])
        yield earlier[-1], bound


def _moved(model: Model, earlier: list[Ints], distance: int) -> Ints | None:
    """Change labels of the last labelling until it differs enough from all, or return None.

    The cost of a change is estimated from pairwise costs, for each change separately.
    """
    last, n = earlier[-1], model.num_visible
    cost = model.unary[: model.node_offset[n]].copy()
    for e in np.flatnonzero((model.edges < n).all(axis=1)).tolist():
        i, j = model.edges[e].tolist()
        table = model.table(e)
        cost[model.node_slice(i)] += table[:, last[j]]
        cost[model.node_slice(j)] += table[last[i]]
    owner = np.repeat(np.arange(n), model.num_labels[:n])
    cost -= cost[model.node_offset[:n] + last][owner]
    moved = last.copy()
    for k in np.argsort(cost, kind="stable").tolist():
        i = owner[k]
        if moved[i] == last[i]:
            moved[i] = k - model.node_offset[i]
        if min(int((moved != x).sum()) for x in earlier) >= distance:
            return moved if math.isfinite(model.energy(moved)) else None
    return None


@dataclass
class _Part:
    """The labellings that agree with `start` in `depth` variables and differ in the next one.

    Variables are in the order of `_PartBounds.order`. `barred` are the forbidden labels of the next
    variable; `labels` and `energy` are the best known labelling of the part.
    """

    start: Ints
    depth: int
    barred: frozenset[int]
    bound: float
    labels: Ints | None = None
    energy: float = math.inf


class _Partition:
    """A partition of all labellings that were not returned yet (Lawler 1972).

    A part has a lower bound from the λ of the first run. It is searched only if that bound is below
    the energy of the best known labelling.
    """

    def __init__(self, first: Result, gap: float, deadline: float, most: int) -> None:
        self.gap, self.deadline, self.most = gap, deadline, most
        self.problem = Problem.of(first.model)
        model = self.problem.model
        self.flat = flatten(model)
        lam = self.problem.lam(first.lam)
        self.flat_lam = flat_lam(model, lam)
        self.bounds = _PartBounds(model, lam)
        self._order = numbers_from()
        self._waiting: list[tuple[float, int, _Part]] = []
        self._searched: list[tuple[float, int, _Part]] = []
        self._lost = math.inf  # lower bound of the parts in which no labelling was found
        labels = model.with_running(first.labels)
        self._push(_Part(labels, 0, frozenset(), first.bound, labels, first.energy))

    def __iter__(self) -> Iterator[tuple[Ints, float]]:
        """Yield the next best labelling, and a lower bound on all remaining ones before it."""
        while True:
            self._search_while_open()
            if not self._searched:
                return
            bound = self._bound()
            part = heapq.heappop(self._searched)[2]
            if part.labels is None:  # does not happen: such parts are not stored
                return
            began = time.perf_counter()
            self._split(part, part.labels)
            if self.most > 1:  # divide the remaining time among the remaining labellings
                self.deadline -= (self.most - 1) * (time.perf_counter() - began)
                self.most = 1
            yield part.labels, bound

    def _bound(self) -> float:
        waiting = self._waiting[0][0] if self._waiting else math.inf
        return min([self._lost, waiting, *(part.bound for _, _, part in self._searched)])

    def _push(self, part: _Part) -> None:
        known = part.labels is not None
        entry = (part.energy if known else part.bound, next(self._order), part)
        heapq.heappush(self._searched if known else self._waiting, entry)

    def _search_while_open(self) -> None:
        """Search the parts that may contain a better labelling than the best known one."""
        while self._waiting:
            bound, _, part = self._waiting[0]
            if self._searched:
                gap = self._searched[0][0] - bound
                close = relative_gap(gap, model_unit(self.problem.given, bound)) <= self.gap
                if close or time.perf_counter() >= self.deadline:
                    return
            heapq.heappop(self._waiting)
            self._search(part)

    def _search(self, part: _Part) -> None:
        """Find the best labelling of a part, or any labelling if the time is up."""
        unary = self._unary(part)
        labels = self._changed(part, unary)
        left = self.deadline - time.perf_counter()
        if left > 0:
            found = solve_exact(
                replace(self.flat, unary=unary),
                incumbent=labels,
                lam=self.flat_lam,
                deadline=core.Deadline(left),
                relative_gap=min(TUNING.tight, self.gap),
                ascent=False,
            )
            if found.infeasible:
                return
            part.bound = max(part.bound, self.problem.bound_back(found.lower_bound))
            labels = labels if found.labels is None else found.labels
        if labels is None:
            self._lost = min(self._lost, part.bound)
            return
        part.labels, part.energy = labels, float(self.problem.given.energy(labels))
        self._push(part)

    def _unary(self, part: _Part) -> Costs:
        """Return unary costs that forbid every labelling outside the part."""
        offset, order = self.problem.model.node_offset, self.bounds.order
        fixed = np.zeros(self.problem.model.num_variables, dtype=bool)
        fixed[order[: part.depth]] = True
        others = np.repeat(fixed, self.flat.num_labels)
        others[(offset[: len(part.start)] + part.start)[fixed]] = False
        unary: Costs = np.where(others, np.inf, self.flat.unary)
        unary[offset[order[part.depth]] + np.array(sorted(part.barred), dtype=np.int64)] = np.inf
        return unary

    def _changed(self, part: _Part, unary: Costs) -> Ints | None:
        """Return the labelling that the part was split from, with one label changed."""
        i = int(self.bounds.order[part.depth])
        allowed = np.flatnonzero(np.isfinite(unary[self.problem.model.node_slice(i)]))
        if not len(allowed):
            return None
        tried = np.repeat(part.start[None], len(allowed), axis=0)
        tried[:, i] = allowed
        tried = self.problem.model.with_running(tried[:, : self.problem.model.num_visible])
        energies = self.problem.given.energy(tried)
        best = int(np.argmin(energies))
        return tried[best] if math.isfinite(energies[best]) else None

    def _split(self, part: _Part, labels: Ints) -> None:
        """Split a part without one labelling: one new part for each variable that may differ."""
        for depth in range(part.depth, len(self.bounds.order)):
            before = part.barred if depth == part.depth else frozenset()
            barred = before | {int(labels[self.bounds.order[depth]])}
            proved = self.bounds.of(labels, depth, barred)
            if proved < math.inf:
                bound = max(part.bound, self.problem.bound_back(proved))
                self._push(_Part(labels, depth, barred, bound))


class _PartBounds:
    """Lower bounds of parts from one λ: only the minima of variables change.

    `order` begins with the variables that λ decides least. If they are fixed, the bound is close to
    the energy, and parts that differ in a later variable need no search.
    """

    def __init__(self, model: Model, lam: Costs) -> None:
        half = np.diff(model.half_offset)
        first = model.node_offset[model.edges.ravel()]
        at = np.repeat(first - model.half_offset[:-1], half) + np.arange(int(half.sum()))
        self.belief = model.unary.copy()
        np.subtract.at(self.belief, at, lam)
        size = np.where(np.isfinite(model.unary), np.abs(model.unary), 0.0)
        np.add.at(size, at, np.abs(lam))
        self.model = model
        self.least = np.minimum.reduceat(self.belief, model.node_offset[:-1])
        terms = model.n + int(np.bincount(model.edges.ravel(), minlength=1).max(initial=0)) + 8
        total = float(np.maximum.reduceat(size, model.node_offset[:-1]).sum())
        self.base = dual_bound(model, lam) - 4 * EPS * terms * total  # minus all rounding errors
        margins = [self._margin(i) for i in range(model.num_visible)]
        self.order = np.argsort(margins, kind="stable")
        self._labels: Ints | None = None

    def _margin(self, i: int) -> float:
        block = self.belief[self.model.node_slice(i)]
        return float(np.partition(block, 1)[1] - block.min()) if len(block) > 1 else math.inf

    def of(self, labels: Ints, depth: int, barred: frozenset[int]) -> float:
        """Return the lower bound of a part, see `_Part`."""
        if self._labels is not labels:
            n = self.model.num_variables
            rise = self.belief[self.model.node_offset[:n] + labels] - self.least[:n]
            self._labels = labels
            self._sums = np.concatenate([[0.0], np.cumsum(rise[self.order])])
        i = int(self.order[depth])
        block = self.belief[self.model.node_slice(i)].copy()
        block[sorted(barred)] = np.inf
        return float(self.base + self._sums[depth] + (block.min() - self.least[i]))

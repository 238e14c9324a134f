"""The labellings that are left, in parts: what the best ones are taken from (Lawler 1972)."""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count as numbers_from

import numpy as np

from softmap import core
from softmap.drive.prooffile import ProofFile, Searched
from softmap.labels.exact import ExactResult, solve_exact
from softmap.model import Network
from softmap.model.potentials.base import Costs, Ints
from softmap.relaxation.bounds import dual_bound
from softmap.relaxation.flat import flat_lam, flatten
from softmap.relaxation.gaps import CLOSED, model_unit, relative_gap
from softmap.run.problem import Problem
from softmap.run.result import Result

__all__ = ["Partition"]

EPS = np.finfo(float).eps


@dataclass
class Part:
    """The labellings that agree with `start` in `depth` variables and differ in the next one.

    Variables are in the order of `PartBounds.order`. `excluded` are the forbidden labels of the
    next variable; `labels` and `energy` are the best known labelling of the part.
    """

    start: Ints
    depth: int
    excluded: frozenset[int]
    bound: float
    labels: Ints | None = None
    energy: float = math.inf


class Partition:
    """A partition of all labellings that were not returned yet (Lawler 1972).

    A part has a lower bound from the λ of the first run. It is searched only if that bound is below
    the energy of the best known labelling.

    Parameters
    ----------
    first : Result
        The run that found the best labelling.
    gap : float
        Relative gap at which a labelling counts as proved.
    deadline : Deadline
        When to stop; after the first labelling, earlier by an estimate of the time to split.
    most : int
        Number of labellings that are wanted.
    proof : ProofFile, optional
        Keeps the records of all searches. The bound of the first run is then proved by λ, or by
        another search: its own records are not here.

    Attributes
    ----------
    searched : list of Searched
        The records of all parts that were searched.
    recorded : bool
        Whether the bound of every part follows from λ and these records.
    problem : Problem
        The model, and its units.
    bounds : PartBounds
        The bounds by λ, and the order of the variables.
    """

    def __init__(
        self,
        first: Result,
        gap: float,
        deadline: core.Deadline,
        most: int,
        proof: ProofFile | None = None,
    ) -> None:
        self.gap, self.deadline, self.most = gap, deadline, most
        self.problem = Problem.unrounded(first.model)
        model = self.problem.model
        self.flat = flatten(model)
        lam = self.problem.lam(first.lam)
        self.flat_lam = flat_lam(model, lam)
        self.bounds = PartBounds(model, lam)
        self._order = numbers_from()
        self._waiting: list[tuple[float, int, Part]] = []
        self._searched: list[tuple[float, int, Part]] = []
        self._whole = True  # whether every labelling is in one of the parts
        self._lost = math.inf  # lower bound of the parts in which no labelling was found
        self._proof, self.searched, self.recorded = proof, list[Searched](), True
        labels = model.lowered(first.labels)
        self._begin(Part(labels, 0, frozenset(), first.bound, labels, first.energy))

    def __iter__(self) -> Iterator[tuple[Ints, float]]:
        """Yield the next best labelling, and a lower bound on all remaining ones before it."""
        while True:
            self._whole = False
            self._search_while_open()
            if not self._searched:
                self._whole = True
                return
            bound = self.bound()
            part = heapq.heappop(self._searched)[2]
            if part.labels is None:  # does not happen: such parts are not stored
                return
            began = time.perf_counter()
            self._split(part, part.labels)
            if self.most > 1:  # divide the remaining time among the remaining labellings
                spent = (self.most - 1) * (time.perf_counter() - began)
                self.deadline = self.deadline.at(self.deadline.end - spent)
                self.most = 1
            self._whole = True
            yield part.labels, bound

    def write(self, proof: ProofFile, ranked: list[tuple[Ints, float]]) -> str:
        """Write the proof of the labellings that were returned, with the bounds of their ranks.

        Return why it cannot be written; nothing if it was.
        """
        problem, lam, order = self.problem, self.bounds.lam, self.bounds.order
        if not (problem.survives_scaling(lam) and problem.costs_survive_scaling()):
            return "costs are too small"
        if not self._whole:
            return "a search has failed"
        if not self.recorded:
            return "the records of a search are missing"
        try:
            rows = np.array([labels.reshape(-1) for labels, _ in ranked], dtype=np.int64)
            stated = [*(bound for _, bound in ranked), self.bound()]
            proof.write_ranks(problem, (order, lam), (rows, stated), self.searched)
        except (OSError, MemoryError) as error:
            return str(getattr(error, "reason", None) or error or type(error).__name__)
        return ""

    def _begin(self, whole: Part) -> None:
        """Start with the part of all labellings; its bound is proved again if records are kept."""
        by_lam = self.problem.bound_back(self.bounds.base)
        missed = relative_gap(whole.bound - by_lam, model_unit(self.problem.given, by_lam))
        if self._proof is not None:
            whole.bound = by_lam
        if self._proof is None or missed <= CLOSED:
            self._push(whole)
        else:
            self._search(whole)

    def bound(self) -> float:
        """The lower bound of all labellings that were not returned yet."""
        waiting = self._waiting[0][0] if self._waiting else math.inf
        return min([self._lost, waiting, *(part.bound for _, _, part in self._searched)])

    def _push(self, part: Part) -> None:
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
                if close or self.deadline.passed:
                    return
            heapq.heappop(self._waiting)
            self._search(part)

    def _search(self, part: Part) -> None:
        """Find the best labelling of a part, or any labelling if the time is up."""
        unary = self._unary(part)
        labels = self._changed(part, unary)
        if not self.deadline.passed:
            found = self._exact(part, unary, labels)
            if found.infeasible:
                return
            part.bound = max(part.bound, self.problem.bound_back(found.lower_bound))
            labels = labels if found.labels is None else found.labels
        if labels is None:
            self._lost = min(self._lost, part.bound)
            return
        part.labels, part.energy = labels, float(self.problem.given.energy(labels))
        self._push(part)

    def _exact(self, part: Part, unary: Costs, labels: Ints | None) -> ExactResult:
        """Search a part, and keep the records if there is a proof file."""
        flat, proof = replace(self.flat, unary=unary), self._proof
        found = solve_exact(
            flat,
            incumbent=labels,
            lam=self.flat_lam,
            deadline=self.deadline,
            relative_gap=min(CLOSED, self.gap),
            ascent=False,
            log=None if proof is None else proof.fresh(),
        )
        if proof is not None:
            log = proof.refutation(flat, self.deadline) if found.infeasible else found.log
            self.recorded &= log is not None
            if log is not None:
                where = part.start, part.depth, part.excluded
                self.searched.append(Searched(*where, log, found.infeasible))
        return found

    def _unary(self, part: Part) -> Costs:
        """Return unary costs that forbid every labelling outside the part."""
        offset, order = self.problem.model.node_offset, self.bounds.order
        fixed = np.zeros(self.problem.model.num_variables, dtype=bool)
        fixed[order[: part.depth]] = True
        others = np.repeat(fixed, self.flat.num_labels)
        others[(offset[: len(part.start)] + part.start)[fixed]] = False
        unary: Costs = np.where(others, np.inf, self.flat.unary)
        unary[offset[order[part.depth]] + np.array(sorted(part.excluded), dtype=np.int64)] = np.inf
        return unary

    def _changed(self, part: Part, unary: Costs) -> Ints | None:
        """Return the labelling that the part was split from, with one label changed."""
        i = int(self.bounds.order[part.depth])
        allowed = np.flatnonzero(np.isfinite(unary[self.problem.model.node_slice(i)]))
        if not len(allowed):
            return None
        tried = np.repeat(part.start[None], len(allowed), axis=0)
        tried[:, i] = allowed
        tried = self.problem.model.consistent(tried)
        energies = self.problem.given.energy(tried)
        best = int(np.argmin(energies))
        return tried[best] if math.isfinite(energies[best]) else None

    def _split(self, part: Part, labels: Ints) -> None:
        """Split a part without one labelling: one new part for each variable that may differ."""
        for depth in range(part.depth, len(self.bounds.order)):
            before = part.excluded if depth == part.depth else frozenset()
            excluded = before | {int(labels[self.bounds.order[depth]])}
            proved = self.bounds.of(labels, depth, excluded)
            if proved < math.inf:
                bound = max(part.bound, self.problem.bound_back(proved))
                self._push(Part(labels, depth, excluded, bound))


class PartBounds:
    """Lower bounds of parts from one λ: only the minima of variables change.

    `order` begins with the variables that λ decides least. If they are fixed, the bound is close to
    the energy, and parts that differ in a later variable need no search.
    """

    def __init__(self, model: Network, lam: Costs) -> None:
        half = np.diff(model.half_offset)
        first = model.node_offset[model.edges.ravel()]
        at = np.repeat(first - model.half_offset[:-1], half) + np.arange(int(half.sum()))
        self.lam, self.belief = lam, model.unary.copy()
        np.subtract.at(self.belief, at, lam)
        size = np.where(np.isfinite(model.unary), np.abs(model.unary), 0.0)
        np.add.at(size, at, np.abs(lam))
        self.model = model
        self.least = np.minimum.reduceat(self.belief, model.node_offset[:-1])
        terms = model.n + int(np.bincount(model.edges.ravel(), minlength=1).max(initial=0)) + 8
        total = float(np.maximum.reduceat(size, model.node_offset[:-1]).sum())
        bound = dual_bound(model, lam)  # may be large beside all costs: it has the constant
        self.base = bound - 4 * EPS * terms * (total + abs(bound))  # minus all rounding errors
        margins = [self._margin(i) for i in range(len(model.visible_counts))]
        self.order = np.argsort(margins, kind="stable")
        self._labels: Ints | None = None

    def _margin(self, i: int) -> float:
        block = self.belief[self.model.node_slice(i)]
        return float(np.partition(block, 1)[1] - block.min()) if len(block) > 1 else math.inf

    def of(self, labels: Ints, depth: int, excluded: frozenset[int]) -> float:
        """Return the lower bound of a part, see `Part`."""
        if self._labels is not labels:
            n = self.model.num_variables
            rise = self.belief[self.model.node_offset[:n] + labels] - self.least[:n]
            self._labels = labels
            self._sums = np.concatenate([[0.0], np.cumsum(rise[self.order])])
        i = int(self.order[depth])
        block = self.belief[self.model.node_slice(i)].copy()
        block[sorted(excluded)] = np.inf
        return float(self.base + self._sums[depth] + (block.min() - self.least[i]))

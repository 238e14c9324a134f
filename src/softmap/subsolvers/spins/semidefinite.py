"""`Semidefinite`: the semidefinite bound of dense models; a search with it for two labels."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from softmap import core
from softmap.model import Network
from softmap.relaxation.gaps import CLOSED
from softmap.run.best import Best
from softmap.run.evidence import Stated
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.records import Recorded, bits, record
from softmap.run.subsolver import Occasion, Outcome, Plan, Share, Subsolver, View
from softmap.subsolvers.spins.spin_numbers import SpinNumbers, SpinSteps, SquareSteps

if TYPE_CHECKING:
    from softmap.subsolvers.spins.indicators import Squares
    from softmap.subsolvers.spins.squares import SquareBound
    from softmap.subsolvers.spins.tree import Leaf, SpinTree

__all__ = ["Semidefinite", "indicators", "of_pairs"]

SPINS, SQUARES = 22, 33  # kinds of records


class SpinRecords:
    """The leaves of a tree of semidefinite bounds, as records of a proof.

    Parameters
    ----------
    leaves : list of Leaf
        The leaves.
    """

    def __init__(self, leaves: list[Leaf]) -> None:
        self._leaves = leaves

    def records(self, problem: Problem, fresh: Callable[[], Path]) -> Iterator[bytes]:
        """Yield the decisions and multipliers of each leaf."""
        for leaf in self._leaves:
            labels = [int(sign < 0) for sign in leaf.signs]
            multipliers = leaf.multipliers
            yield from record(
                SPINS,
                [part for pair in zip(leaf.spins, labels, strict=True) for part in pair],
                bits(problem.lam_back(multipliers.diagonal)),
                multipliers.triangles.ravel(),
                bits(problem.lam_back(multipliers.weights)),
            )


class SquareRecords:
    """Squares and moved costs of possible labels, as records of a proof.

    Parameters
    ----------
    squares : Squares
        The squares.
    """

    def __init__(self, squares: Squares) -> None:
        self._squares = squares

    def records(self, problem: Problem, fresh: Callable[[], Path]) -> Iterator[bytes]:
        """Yield the squares and moved costs of all labels, in the units of the problem."""
        squares, tables = self._squares, []
        for rows in (2 * squares.moved, squares.factor):
            every = np.zeros((len(squares.possible), rows.shape[1]))
            every[squares.possible] = rows
            tables.append(bits(every.ravel()))
        return record(SQUARES, [-problem.exponent], *tables)


def of_pairs(model: Network) -> bool:
    """Whether the model has two labels per variable, and factors of pairs only."""
    plain = model.is_plain
    return plain and model.m > 0 and bool((model.num_labels == 2).all())


def indicators(model: Network) -> int:
    """The possible labels but one per variable, and one more, of a model of pairs; else 0."""
    if not model.is_plain or not model.m:
        return 0
    return int(np.isfinite(model.unary).sum()) - model.n + 1


class Semidefinite(Subsolver):
    """The semidefinite bound of dense models: of spins for two labels, by squares for more.

    Few spins have triangles and branch and bound, too. Sparse models, and two labels with hard
    constraints, are left to clusters, which prove more there.
    """

    name = "semidefinite bound"
    number = 5

    def __init__(self, problem: Problem, options: Options) -> None:
        super().__init__(problem, options)
        self._tree: SpinTree | SquareBound | None = None
        self._gain = math.inf  # most that another bound without triangles may add
        self._first = True  # whether it has not run yet
        self._numbers = self.tuning.of(SpinNumbers)
        self._next = self._numbers.second  # step of the next early slice
        self._free = indicators(problem.model)
        self._many = not of_pairs(problem.model)

    @classmethod
    def make(cls, problem: Problem, options: Options) -> Semidefinite | None:
        model, numbers = problem.model, options.tuning.of(SpinNumbers)
        dense = 2 * model.m > numbers.degree * model.n
        if not options.proving or not dense or model.n > numbers.variables:
            return None
        bound = cls(problem, options)
        if bound._import and options.seconds < numbers.import_limit:
            return None  # an import cannot be interrupted
        fits = not model.has_forbidden
        if bound._many:
            # 0.3 s for their eigenvalues
            fits = 0 < bound._free <= numbers.indicators
        return bound.fitting(bound._memory) if fits else None

    @property
    def _memory(self) -> float:
        size = self.problem.model.n + self._free * self._many
        return float(self._numbers.pair_bytes * size**2)

    def plan(self, view: View) -> Plan | None:
        if view.occasion is not Occasion.TURN:
            return None
        begin = 0.0
        if self._tree is None:
            begin = self._numbers.setup * view.bound_seconds + self._import
        return Plan("a semidefinite bound", urgent=self._early(view), begin=begin)

    def _early(self, view: View) -> bool:
        """After the first check; then at growing intervals, as a search, if spins are few."""
        seen = view.board.seen
        alone = self.options.whole_run or self.options.backend != "cpu"
        if seen is None or alone or self._many:
            return False
        return self._first or (not seen.last and seen.done >= self._next and self._few)

    def __call__(self, best: Best, share: Share) -> Outcome:
        self._first = False
        if seen := share.board.seen:
            self._next = max(self._next, 4 * seen.done)
        began = time.perf_counter()
        tree = self._tree = self._tree or self._new(logged=share.proof is not None)
        if tree is None:
            return Outcome(active=False, ran=False)
        set_up = time.perf_counter() - began
        before, bounds, active = tree.work, tree.bounds, True
        try:
            while active and not share.over() and tree.work - before < share.work:
                active = self._advance(tree, best, share)
        except core.OutOfTime:
            pass
        best.offer_labels(tree.labels(self.problem.model.num_variables))
        self._offer(tree, best)
        if share.early and active:  # a resumed run restarts it, too
            self._tree, self._gain = None, math.inf
        prepared = set_up if tree.bounds > bounds else time.perf_counter() - began
        return Outcome(active=active and not tree.done, prepared=prepared)

    @property
    def _import(self) -> float:
        """Seconds for the import of scipy, which most runs do without."""
        return 0.0 if "scipy.linalg" in sys.modules else self._numbers.import_seconds

    @property
    def _few(self) -> bool:
        """Whether triangles, of which there are many, pay."""
        return not self._many and self.problem.model.n <= self._numbers.triangles

    def _new(self, *, logged: bool) -> SpinTree | SquareBound | None:
        if self._many:
            from softmap.subsolvers.spins.indicators import IndicatorForm
            from softmap.subsolvers.spins.squares import SquareBound

            form = IndicatorForm.of(self.problem.model)
            return SquareBound(form, logged=logged, steps=self.tuning.of(SquareSteps))
        from softmap.subsolvers.spins.form import SpinForm
        from softmap.subsolvers.spins.tree import SpinTree

        spins = SpinForm.of(self.problem.model)
        if spins is None:
            return None
        seed, steps = self.options.seed, self.tuning.of(SpinSteps)
        # a node takes less memory than the root
        most = int(max(16.0, min(self.room.each / self._memory, 1e9)))
        return SpinTree(spins, seed, steps, logged=logged, most_open=most)

    def _advance(self, tree: SpinTree | SquareBound, best: Best, share: Share) -> bool:
        """One bound; return whether another may be better."""
        numbers = self._numbers
        if self._gain > numbers.progress * max(best.gap, 0.0):
            steps = numbers.square_steps if self._many else numbers.spin_sweeps
            self._gain = tree.relax(steps, share.deadline, share.run_end)
            return True
        if not self._few:
            return False
        spins = cast("SpinTree", tree)
        spins.run(self._target(best), share.deadline, share.run_end)
        return not spins.done

    def _target(self, best: Best) -> float:
        """The bound that closes a node: it proves the best labels."""
        least = min(best.energy, best.cutoff)
        return least - min(CLOSED, self.options.gap) * self.problem.unit(least)

    def _offer(self, tree: SpinTree | SquareBound, best: Best) -> None:
        bound = min(tree.bound, best.energy)
        if bound > best.bound:
            best.offer_bound(
                Stated(
                    value=bound, kind="semidefinite", text="a semidefinite relaxation",
                    nodes=max(1, tree.nodes), log=_records(tree.leaves),
                )
            )  # fmt: skip


def _records(leaves: list[Leaf] | Squares | None) -> Recorded | None:
    """The records of a bound, if they were kept."""
    if leaves is None:
        return None
    return SpinRecords(leaves) if isinstance(leaves, list) else SquareRecords(leaves)

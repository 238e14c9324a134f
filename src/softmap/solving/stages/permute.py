"""`Permute`: labels and bounds of models whose variables all have different labels."""

from __future__ import annotations

import time
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.labels.permutations import Permutation, Symmetry, is_permutation
from softmap.solving.best import Best
from softmap.solving.proof import Multipliers, Proof, ProofKind
from softmap.solving.stage import UNLIMITED, Handed, Once, Outcome, Share
from softmap.solving.trace import StageName

__all__ = ["Permute"]

Labels = NDArray[np.int64]


class Permute(Once):
    """Permutations: tabu search by swaps, dual ascent over assignment problems, and a search.

    The local polytope proves next to nothing here (decision 68). In runs with a time limit, the
    other stages have a small part of the time once the dual ascent has stalled.
    """

    name = StageName.PERMUTE

    def applies(self) -> bool:
        self._begun = time.perf_counter()
        self._seconds = 0.0
        self._found: _Parts | None = None
        model = self.problem.model
        few = self._entries <= self.tuning.permuted_entries
        return few and self.default and is_permutation(model, self.problem.given)

    @property
    def _entries(self) -> float:
        """The number of pairs of labels of two variables, twice."""
        sizes = self.problem.model.num_labels[: self.problem.model.num_visible]
        return float(len(sizes) * int(sizes.max(initial=0))) ** 2

    def memory(self) -> float:
        return self.tuning.permuted_bytes * self._entries

    def urgent(self, best: Best, handed: Handed) -> bool:
        """Always at first; once the ascent has stalled, for most of the time."""
        if self._found is None or not self._found.stalled or self.options.time_limit is None:
            return True
        spent = time.perf_counter() - self._begun
        return self._seconds < self.tuning.permuted_share * spent

    def __call__(self, best: Best, share: Share) -> Outcome:
        begun, tuning = time.perf_counter(), self.tuning
        if self._found is None:
            model, seed = self.problem.model, self.options.seed
            self._found = _Parts(Permutation.of(model), seed, self.problem.exponent)
        if share.timed:
            share = share.within(max(tuning.first_slice, tuning.growth * self._seconds))
        work = UNLIMITED if share.timed else int(tuning.permuted_work * self._entries)
        active = self._found.improve(best, share, work)
        self._seconds += time.perf_counter() - begun
        return Outcome(active=active and share.timed)


class _Parts:
    """The searches of one permutation, which share each slice.

    Parameters
    ----------
    costs : Permutation
        The costs.
    seed : int
        Seed of the random numbers.
    exponent : int
        Costs are the user's times `2**exponent`.
    """

    def __init__(self, costs: Permutation, seed: int, exponent: int) -> None:
        self._costs, self._seed = costs, seed
        self._turned = _oriented(costs)
        native = self._turned.costs.native
        self._swaps = core.SwapSearch(native, seed)
        self._ascent = core.AssignmentAscent(native, seed)
        self._search: core.AssignmentSearch | None = None
        self._bound = -1
        self._tried = self._idle = 0.0  # seconds of swaps, and those since they last helped

    @property
    def stalled(self) -> bool:
        """Whether passes of the dual ascent have stalled."""
        return self._ascent.coolings > 0

    def improve(self, best: Best, share: Share, work: int) -> bool:
        """Improve labels and bound for one slice; return whether more can be done."""
        self._swap(best, share, work)
        searching = self._search is not None
        if not searching:
            self._ascend(best, share.deadline, work)
        if best.found and (searching or self._worth(best)):
            return self._branch(best, share, work)
        return True

    def _worth(self, best: Best) -> bool:
        """Whether a search may end: few variables, or a bound near the energy."""
        near = best.gap <= 0.05 * abs(best.energy)
        return self._ascent.coolings > 1 and (len(self._costs.unary) <= 16 or near)

    def _swap(self, best: Best, share: Share, work: int) -> None:
        """Search for labels, for a part of the slice that is larger while they improve."""
        begun, before = time.perf_counter(), best.energy
        if best.found:
            self._swaps.offer(self._turned.given(best.labels[: len(self._costs.unary)]))
        part = 0.5 if self._idle <= 0.5 * self._tried + 0.1 else 0.1
        labels = np.empty(len(self._turned.costs.unary), dtype=np.int64)
        self._swaps.run(labels, work, share.part(part))
        self._offer(best, labels)
        spent = time.perf_counter() - begun
        self._tried += spent
        self._idle = 0.0 if best.energy < before else self._idle + spent

    def _offer(self, best: Best, labels: Labels) -> None:
        best.offer_labels(best.problem.model.with_running(self._turned.given(labels)))

    def _ascend(self, best: Best, deadline: core.Deadline, work: int) -> None:
        """Raise the bound, and offer it with its multipliers."""
        bound = self._ascent.run(work, deadline)
        if bound <= self._bound:
            return
        self._bound = bound
        value = self._value(best, bound)
        if value > best.bound:
            proof = Proof(ProofKind.ASSIGNMENT, multipliers=self._multipliers(value))
            best.offer_bound(value, proof)

    def _value(self, best: Best, bound: int) -> float:
        terms = [self._costs.value(bound), best.problem.model.constant]
        return float(core.lower_sum(np.array(terms)))

    def _multipliers(self, value: float) -> Multipliers:
        """The multipliers of the best bound, for the costs of the model."""
        given, scale = self._costs, self._costs.scale
        n, d = self._turned.costs.unary.shape
        rows, columns = np.empty(n * d * n, dtype=np.int64), np.empty(n * d * d, dtype=np.int64)
        first, second = np.empty(n, dtype=np.int64), np.empty(d, dtype=np.int64)
        self._ascent.multipliers(rows, columns, first, second)
        row, column = rows.reshape(n, d, n), columns.reshape(n, d, d)
        if self._turned.exchanged:
            row, column = column.transpose(1, 0, 2).copy(), row.transpose(1, 0, 2).copy()
            second = first
        row += np.triu(given.shift, 1)[:, None, :] * scale
        return Multipliers(
            given.exponent - (scale.bit_length() - 1), row, column, second, value
        )

    def _branch(self, best: Best, share: Share, work: int) -> bool:
        """Search; return whether it goes on."""
        costs = self._costs
        energy = costs.cost(best.labels[: len(costs.unary)])
        most = (energy - costs.step) * costs.scale
        if self._search is None:
            symmetry, step = self._turned.symmetry, costs.step * costs.scale
            self._search = core.AssignmentSearch(
                self._ascent, symmetry.maps, symmetry.kind, most, step,
                costs.barrier * costs.scale, self._seed,
            )  # fmt: skip
        search = self._search
        search.limit(most)
        ended = search.run(work, share.deadline)
        labels = np.empty(len(self._turned.costs.unary), dtype=np.int64)
        if search.labels(labels):
            self._offer(best, labels)
        value = self._value(best, max(search.bound, self._bound))
        if value > best.bound:
            given = self._multipliers(self._value(best, self._bound))
            best.offer_bound(value, Proof(ProofKind.SEARCH, nodes=search.nodes, multipliers=given))
        return not ended


class _Oriented:
    """Costs with variables and labels exchanged if that has more symmetries.

    Parameters
    ----------
    costs : Permutation
        The costs, exchanged or not.
    symmetry : Symmetry
        Their symmetries.
    exchanged : bool
        Whether variables and labels are exchanged.
    """

    def __init__(self, costs: Permutation, symmetry: Symmetry, exchanged: bool) -> None:
        self.costs, self.symmetry, self.exchanged = costs, symmetry, exchanged

    def given(self, labels: Labels) -> Labels:
        """Labels of the given problem from those of this one, and the other way round."""
        return np.argsort(labels) if self.exchanged else np.ascontiguousarray(labels)


def _oriented(costs: Permutation) -> _Oriented:
    n, d = costs.unary.shape
    plain = _Oriented(costs, costs.symmetry(), False)
    if n < d:
        return plain
    turned = costs.transposed()
    other = _Oriented(turned, turned.symmetry(), True)
    return other if other.symmetry.size > plain.symmetry.size else plain

"""Clauses and sums of literals, and clauses that follow from them by hints.

A literal is +v or -v, for a Boolean variable v = 1, 2, … A hint names a constraint from which one
more literal follows; nothing is searched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from softmap.verification.limit import ITEM, Limits
from softmap.verification.records import Numbers, Rejected

LONG = 64  # literals from which on a sum is added up by numpy


class LiteralSum:
    """A constraint Σ weight · literal ≥ bound, with positive weights and each variable once.

    Parameters
    ----------
    terms : iterable of (int, int)
        Literals and their weights, which may be negative.
    bound : int
        The least sum of the weights of literals that hold.
    """

    def __init__(self, terms: Iterable[tuple[int, int]], bound: int) -> None:
        total: dict[int, int] = {}
        for literal, weight in terms:
            v = abs(literal)
            total[v] = total.get(v, 0) + (weight if literal > 0 else -weight)
            bound -= weight if literal < 0 else 0
        bound -= sum(weight for weight in total.values() if weight < 0)
        self.bound = bound
        self.weights = {v if w > 0 else -v: abs(w) for v, w in total.items() if w}
        whole = len(self.weights) > LONG and sum(self.weights.values()) < 1 << 62
        pairs = np.array(list(self.weights.items()), dtype=np.int64).T if whole else None
        self._arrays = pairs

    def __len__(self) -> int:
        return len(self.weights)

    def most(self, holds: bytearray) -> int:
        """The sum of the weights of all literals that do not fail."""
        if self._arrays is None:
            return sum(w for x, w in self.weights.items() if not holds[-x])
        literals, weights = self._arrays
        return int(weights[np.frombuffer(holds, np.uint8)[-literals] == 0].sum())


class Constraints:
    """Numbered clauses and sums, and literals that hold whatever else does.

    Parameters
    ----------
    effort : Limits, optional
        Limits the work and the memory.

    Attributes
    ----------
    broken : bool
        Whether the empty clause follows: no values satisfy all constraints.
    """

    def __init__(self, effort: Limits | None = None) -> None:
        self._effort = effort or Limits()
        self._all: list[Numbers | LiteralSum] = []
        self._size = 1 << 10
        self._holds = bytearray(2 * self._size + 1)  # of literal -v at index -v
        self.broken = False

    def reserve(self, variables: int) -> None:
        """Make room for the literals of so many variables."""
        if variables <= self._size:
            return
        size, old = 2 * variables, self._holds
        self._effort.keep(2 * size)
        self._holds = bytearray(2 * size + 1)
        self._holds[: self._size + 1] = old[: self._size + 1]
        self._holds[-self._size :] = old[-self._size :]
        self._size = size

    def clause(self, number: int) -> Numbers:
        """Return the literals of a clause."""
        found = self._at(number)
        if isinstance(found, LiteralSum):
            raise Rejected(f"constraint {number} is no clause")
        return found

    def _at(self, number: int) -> Numbers | LiteralSum:
        if not 0 <= number < len(self._all):
            raise Rejected(f"there is no constraint {number}")
        return self._all[number]

    def add(self, constraint: Numbers | LiteralSum) -> None:
        """Add a constraint; it gets the next number."""
        each = 160 if isinstance(constraint, LiteralSum) else 36
        self._effort.keep(256 + each * len(constraint))
        self._all.append(constraint)

    def learn(self, clause: Numbers, hints: Numbers) -> None:
        """Add a clause that follows by hints; raise `Rejected` if it does not."""
        trail = list[int]()
        if not self._assume([-x for x in clause], trail):
            steps = iter(hints)
            if not any(self._conflict(step, steps, trail) for step in steps):
                raise Rejected("the hints of a clause yield no conflict")
        self._undo(trail)
        self.add(clause)
        if len(clause) == 1:
            self._holds[clause[0]] = 1
        self.broken = self.broken or not clause

    def require_apart(self, literals: Numbers, hints: Numbers) -> None:
        """Raise `Rejected` unless at most one literal holds; hints of each literal end with 0."""
        self._effort.require(len(literals) ** 2)
        steps, never = iter(hints), list[bytes]()  # whether each literal fails with another one
        for x in literals:
            trail = list[int]()
            conflict = self._assume([x], trail)
            for step in iter(lambda: next(steps, 0), 0):
                conflict = conflict or self._conflict(step, steps, trail)
            never.append(bytes([conflict or self._holds[-y] for y in literals]))
            self._undo(trail)
        for k, gone in enumerate(never):
            if any(not gone[j] and not never[j][k] for j in range(k)):
                raise Rejected("two literals of a group can hold together")

    def _assume(self, literals: list[int], trail: list[int]) -> bool:
        """Let literals hold; return whether two of them, or known ones, contradict each other."""
        for x in literals:
            if self._holds[-x]:
                return True
            if not self._holds[x]:
                self._holds[x] = 1
                trail.append(x)
        return False

    def _conflict(self, step: int, steps: Iterator[int], trail: list[int]) -> bool:
        """Derive the literal of one hint; return whether the constraint cannot hold."""
        holds = self._holds
        found = self._at(abs(step) - 1)
        self._effort.work(ITEM * (8 + 2 * len(found)))
        if isinstance(found, LiteralSum):
            return self._sum_conflict(found, next(steps, 0), trail)
        left = [x for x in found if not holds[-x]]
        if len(left) > 1:
            raise Rejected(f"a hint to constraint {abs(step) - 1} implies nothing")
        return self._assume(left, trail) or not left

    def _sum_conflict(self, found: LiteralSum, literal: int, trail: list[int]) -> bool:
        most = found.most(self._holds)
        if literal == 0 or self._holds[-literal]:
            if most >= found.bound:
                raise Rejected("a sum that can hold is named as a conflict")
            return True
        if most - found.weights.get(literal, 0) >= found.bound:
            raise Rejected("a sum does not imply the literal of its hint")
        return self._assume([literal], trail)

    def _undo(self, trail: list[int]) -> None:
        for x in trail:
            self._holds[x] = 0

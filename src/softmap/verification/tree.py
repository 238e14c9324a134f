"""Checks the branch-and-bound search of one component by repeating its steps.

A node can be closed if `lower` reaches the cut, or if a variable has no labels left: by the
invariant of `NodeCosts`, every labelling then costs as much as the cut.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from softmap.verification.integers import HALF
from softmap.verification.limit import CALL, Limits
from softmap.verification.node import Decision, NodeCosts
from softmap.verification.records import Ints, Numbers, Rejected

Path = tuple[Any, Decision] | None  # the parent's path and the last decision
OPEN = 512  # bytes of an open node, whose path shares all but the last decision with others


@dataclass
class _Dive:
    """A dive from an open node: its bound, the decisions so far, and those that may be negated.

    A level has a decision, and `lower` and the path before it.
    """

    bound: int
    path: Path
    levels: list[tuple[Decision, int, Path]] = field(default_factory=list)


class Tree(NodeCosts):
    """The open nodes of one branch-and-bound search, and the dive from one of them."""

    STEPS = frozenset({"cut", "dive", "branch", "close", "leave", "step", "combine"})

    def __init__(
        self,
        unary: list[list[int]],
        factors: list[tuple[list[int], Ints]],
        effort: Limits | None = None,
    ) -> None:
        super().__init__(unary, factors, effort)
        self._opened = 0  # number of nodes opened
        self._dive: _Dive | None = None
        self._open: dict[int, tuple[int, Path]] = {0: (0, None)}

    def bound(self) -> int:
        """Lower bound on all labellings of the component, proved by the search so far."""
        if self._dive is not None:
            raise Rejected("the search ends before its last dive does")
        self.compute_minima()
        least = [max(bound, self.lower) for bound, _ in self._open.values()]
        return max(0, min([self.upper, *([] if self._empty else least)]))  # no cost is negative

    def cut(self, which: Numbers) -> None:
        """Lower the cut: from now on, only labellings below it are searched for."""
        (cut,) = which
        if abs(cut) > HALF:
            raise Rejected("the cut is too large")
        self.upper = min(self.upper, cut)

    def dive(self, which: Numbers) -> None:
        """Select an open node and apply its decisions, in any order: each removes labels."""
        (number,) = which
        if self._dive is not None or number not in self._open:
            raise Rejected(f"node {number} is not open")
        bound, path = self._open.pop(number)
        self._held.keep(-OPEN)
        self._dive = _Dive(bound, path)
        self._descend()
        while path is not None:
            path, decision = path
            self._restrict(decision)

    def branch(self, decision: Numbers) -> None:
        """Branch: apply a decision; its negation is explored after the node is closed."""
        x, kind, a = decision
        dive = self._dive
        if dive is None or not 0 <= kind < 4 or not 0 <= x < len(self._cost):
            raise Rejected("a decision is made outside of a dive, or about no variable")
        dive.levels.append(((x, kind, a), self.lower, dive.path))
        self._descend()
        dive.path = (dive.path, (x, kind, a))
        self._restrict((x, kind, a))

    def close(self) -> None:
        """Close a node whose bound reaches the cut, and negate the last decision."""
        dive = self._dive
        if dive is None or (self.lower < self.upper and not self._empty):
            raise Rejected("a node is closed whose bound does not reach the cut")
        self._return()
        if not dive.levels:
            self._dive = None
            return
        decision, _, path = dive.levels.pop()
        dive.path = other = _negated(path, decision)
        self._restrict(other[1])

    def leave(self) -> None:
        """End a dive: the negation of each decision and the current node become open nodes."""
        dive = self._dive
        if dive is None:
            raise Rejected("there is no dive to leave")
        self._effort.work(4 * CALL * (1 + len(dive.levels)))
        nodes = [(lower, _negated(path, one)) for one, lower, path in dive.levels]
        for lower, path in [*nodes, (self.lower, dive.path)]:
            self._opened += 1
            if (bound := max(lower, dive.bound)) < self.upper:
                self._held.keep(OPEN)
                self._open[self._opened] = bound, path
        for _ in range(len(dive.levels) + 1):
            self._return()
        self._dive = None


def _negated(path: Path, decision: Decision) -> tuple[Path, Decision]:
    """The path to the other child of a node."""
    x, kind, a = decision
    return path, (x, kind ^ 1, a)

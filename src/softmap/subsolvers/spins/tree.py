"""Branch and bound with the semidefinite bound: spins are fixed to the reference, best node first.

The state of a node goes to its children: vectors, triangles and multipliers. A triangle of a spin
that is fixed becomes one of the reference.
"""

from __future__ import annotations

import heapq
import math
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.subsolvers.spins.bound import SpinBound, SpinMultipliers
from softmap.subsolvers.spins.form import SpinForm
from softmap.subsolvers.spins.rounding import rounded_spins
from softmap.subsolvers.spins.spin_numbers import SpinSteps

__all__ = ["Leaf", "SpinTree"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FLIPS = np.array([[1, 1, 1], [1, 1, -1], [1, -1, 1], [-1, 1, 1]])  # spins of opposite sign, by kind


class Leaf(NamedTuple):
    """A closed node: its decisions, and the multipliers that bound it.

    Attributes
    ----------
    spins : tuple of int
        The spins that are fixed, in the order of the decisions.
    signs : tuple of int
        Their products with the reference.
    multipliers : SpinMultipliers
        Of the other spins, in their order; the reference is the last.
    """

    spins: tuple[int, ...]
    signs: tuple[int, ...]
    multipliers: SpinMultipliers


@dataclass
class _SpinNode:
    """An open node, and what its bound is computed from."""

    spins: tuple[int, ...]
    signs: tuple[int, ...]
    free: Ints
    bound: float
    state: SpinBound
    fixed: float  # cost of the fixed spins, up to the rounding errors that the form allows for
    age: int  # steps so far, those of its ancestors included
    leaf: Leaf | None  # of the bound: that of its parent until it has a better one
    rounds: int = 0  # separations since the last bound
    bounds: int = 0  # number of bounds with triangles
    gain: float = math.inf  # of the last one
    rest: float = math.inf  # most that further sweeps could have added to it


class SpinTree:
    """Branch and bound over the spins of a form.

    Parameters
    ----------
    form : SpinForm
        The cost as a function of spins.
    seed : int
        Seed of the first vectors.
    steps : SpinSteps
        The numbers of the bound.
    logged : bool
        Whether leaves are kept.
    most_open : int
        Number of open nodes from which on the one of largest bound is next, to close some.

    Attributes
    ----------
    nodes : int
        Number of nodes that were bounded.
    bounds : int
        Number of bounds that were computed.
    work : int
        Number of matrix entries that were multiplied by vectors.
    best : float64 array
        The spins of lowest cost that were found.
    """

    def __init__(
        self, form: SpinForm, seed: int, steps: SpinSteps, *, logged: bool, most_open: int = 1 << 30
    ) -> None:
        self._form, self._steps, self._logged, self._most = form, steps, logged, most_open
        n = len(form.matrix)
        self._count, self._random = count(), np.random.default_rng(seed)
        state = SpinBound(form.matrix, SpinBound.start(n, seed))
        self._root = _SpinNode((), (), np.arange(n), -math.inf, state, 0.0, 0, None)
        self._open: list[tuple[float, int, _SpinNode]] = [
            (-math.inf, next(self._count), self._root)
        ]
        self._leaves: list[Leaf] = []
        self._closed = math.inf  # the least bound of a leaf
        self.nodes, self.bounds, self.work = 0, 0, 0
        self.best, self._cost = np.ones(n), math.inf

    @property
    def bound(self) -> float:
        """A lower bound on the cost of all spins."""
        lowest = self._open[0][0] if self._open else math.inf
        return self._form.rounded(min(lowest, self._closed))

    @property
    def leaves(self) -> list[Leaf] | None:
        """The leaves of the tree, which prove the bound; None if they are not kept."""
        rest = [node.leaf for _, _, node in self._open]
        if not self._logged or any(leaf is None for leaf in rest):
            return None
        kept = {(leaf.spins, leaf.signs): leaf for leaf in (*self._leaves, *rest) if leaf}
        return list(kept.values())

    def labels(self, variables: int) -> Ints:
        """The labels of the best spins."""
        return self._form.labels(self.best, variables)

    @property
    def done(self) -> bool:
        """Whether there is no open node."""
        return not self._open

    def relax(self, sweeps: int, deadline: core.Deadline, end: core.Deadline) -> float:
        """Sweeps over the vectors of the root without triangles, and its bound.

        Returns the gain that another call may have: at most that of this one.
        """
        node = self._root
        node.state.relax(sweeps, deadline)
        self.work += sweeps * int(np.count_nonzero(self._form.matrix))
        self._bound(node, end)
        self._open = [(node.bound, 0, node)]
        self._round(node, end)
        return min(node.gain, node.rest)

    def run(self, target: float, deadline: core.Deadline, end: core.Deadline) -> None:
        """Improve the bound of the first open node, and close it or branch when that stalls.

        Parameters
        ----------
        target : float
            Nodes are closed if their bound, rounded, reaches it.
        deadline : Deadline
            The end of the slice; a node goes on later.
        end : Deadline
            The end of the run, for what cannot go on later.
        """
        node = self._pop()
        try:
            self._improve(node, deadline, end)
        except core.OutOfTime:
            self._push(node)
            raise
        if self._form.rounded(node.bound) >= target or len(node.free) == 1:
            self._close(node)
        elif deadline.passed or self._hopeful(node, target):
            self._push(node)
        else:
            self._branch(node, end)

    def _pop(self) -> _SpinNode:
        if len(self._open) < self._most:
            return heapq.heappop(self._open)[2]
        last = self._open.pop(self._open.index(max(self._open)))
        heapq.heapify(self._open)
        return last[2]

    def _push(self, node: _SpinNode) -> None:
        heapq.heappush(self._open, (node.bound, next(self._count), node))

    def _improve(self, node: _SpinNode, deadline: core.Deadline, end: core.Deadline) -> None:
        """Some rounds of triangles, and the bound after them."""
        steps, state, n = self._steps, node.state, len(node.free)
        most = steps.rounds if node.bounds or node.spins else steps.first_rounds
        while node.rounds < most:
            if deadline.passed:
                return
            state.separate(steps.violated, steps.added * n, deadline)
            penalty = steps.penalty / (1 + node.age / steps.halved)
            state.tighten(steps.steps, penalty, 1 - 1 / steps.average, deadline)
            node.age, node.rounds = node.age + steps.steps, node.rounds + 1
            self.work += steps.steps * n * n
        self._bound(node, end)
        node.bounds, node.rounds = node.bounds + 1, 0

    def _bound(self, node: _SpinNode, end: core.Deadline) -> None:
        found = node.state.certify(self._steps.sweeps, end, self._form.lost, self._steps)
        self.work += self._steps.sweeps * len(node.free) ** 2
        node.gain, self.bounds = 0.0, self.bounds + 1
        if found is None:
            return
        node.rest = found.rest
        terms = np.array([self._form.constant, node.fixed, found.bound, -self._form.lost])
        bound = float(core.lower_sum(terms))
        if bound > node.bound:
            node.bound, node.gain = bound, bound - node.bound
            node.leaf = Leaf(node.spins, node.signs, found) if self._logged else None

    def _hopeful(self, node: _SpinNode, target: float) -> bool:
        soon = node.bound + self._steps.hopeful * node.gain
        return node.bounds < self._steps.least or soon > target - float(self._form.step)

    def _close(self, node: _SpinNode) -> None:
        self.nodes += 1
        self._closed = min(self._closed, node.bound)
        if self._logged and node.leaf is not None:
            self._leaves.append(node.leaf)

    def _round(self, node: _SpinNode, end: core.Deadline) -> None:
        """Spins by random hyperplanes through the vectors of a node, improved one by one."""
        form = self._form
        spins = np.ones(len(form.matrix))
        state, steps = node.state, self._steps
        found = rounded_spins(state.matrix, state.vectors, self._random, end, steps)
        spins[list(node.spins)] = node.signs
        spins[node.free] = found * found[-1]
        cost = float(np.einsum("i,ij,j", spins, form.matrix, spins))
        if cost < self._cost:
            self._cost, self.best = cost, spins

    def _branch(self, node: _SpinNode, end: core.Deadline) -> None:
        """Fix the least decided spin."""
        self.nodes += 1
        with suppress(core.OutOfTime):  # the children are needed all the same
            self._round(node, end)
        vectors = node.state.vectors
        at = int(np.argmin(np.abs(np.einsum("ik,k->i", vectors[:-1], vectors[-1]))))
        for sign in (1, -1):
            self._push(self._child(node, at, sign))

    def _child(self, node: _SpinNode, at: int, sign: int) -> _SpinNode:
        free, matrix = np.delete(node.free, at), self._form.matrix
        spins, signs = (*node.spins, int(node.free[at])), (*node.signs, sign)
        fixed, values = np.array(spins), np.array(signs, dtype=np.float64)
        inner = matrix[np.ix_(free, free)]
        row = np.einsum("i,ij->j", values, matrix[np.ix_(fixed, free)])
        cost = float(values @ matrix[np.ix_(fixed, fixed)] @ values + 2 * row[-1])
        row[-1] = 0.0
        inner[-1] += row
        inner[:, -1] += row
        state = SpinBound(
            inner, np.delete(node.state.vectors, at, axis=0),
            *_merged(*node.state.triangles, at, sign, len(free)),
        )  # fmt: skip
        return _SpinNode(spins, signs, free, node.bound, state, cost, node.age, node.leaf)


def _merged(triangles: Ints, weights: Floats, at: int, sign: int, n: int) -> tuple[Ints, Floats]:
    """The triangles after spin `at` of n + 1 was fixed to `sign` times the last one."""
    corners, flips = triangles[:, :3].copy(), FLIPS[triangles[:, 3]]
    fixed = corners == at
    flips[fixed] *= sign
    corners[fixed] = n
    kept = ~(fixed.any(axis=1) & (triangles[:, 2] == n))  # else two corners are one spin
    corners, flips, weights = corners[kept], flips[kept], weights[kept]
    corners -= corners > at
    order = np.argsort(corners, axis=1)
    corners, flips = (np.take_along_axis(a, order, axis=1) for a in (corners, flips))
    flips[(flips < 0).sum(axis=1) > 1] *= -1
    kinds = np.where((flips < 0).any(axis=1), 3 - flips.argmin(axis=1), 0)
    keys = np.column_stack([corners, kinds])
    unique, place = np.unique(keys, axis=0, return_inverse=True)
    return unique, np.asarray(np.bincount(place.ravel(), weights, len(unique)), np.float64)

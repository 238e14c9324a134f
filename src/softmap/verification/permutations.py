"""A tree of decisions over permutations, whose nodes have multipliers of assignment problems."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.model import Network
from softmap.verification.assignment import AssignmentCosts, assignment_bound, check_sizes
from softmap.verification.integers import Given
from softmap.verification.limit import CALL, Limits
from softmap.verification.records import Ints, Rejected

Bools = NDArray[np.bool_]
Path = tuple[tuple[int, int], ...]  # variables and their labels
LARGE = 1 << 62


class _Node:
    """The costs after some variables got labels, and what excludes all else below the cut.

    Attributes
    ----------
    path : tuple of (int, int)
        The fixed variables and their labels.
    unary : int64[m, l]
        Costs of the labels of the other variables.
    pair : int64[m, l, m, l]
        Costs of their pairs.
    gone : bool[m, l]
        Labels that no labelling below the cut has.
    apart : bool[m, l, m, l]
        Pairs of labels that none has.
    closed : bool
        Whether no labelling below the cut agrees with the path.
    """

    def __init__(
        self,
        path: Path,
        base: int,
        costs: tuple[Ints, Ints],
        no: tuple[Bools, Bools],
        maps: Ints,
    ) -> None:
        self.path, self._base = path, base
        (self.unary, self.pair), (self.gone, self.apart) = costs, no
        self._maps = maps  # symmetries, as permutations of `labels`
        fixed = ({i for i, _ in path}, {p for _, p in path})
        m, d = self.unary.shape
        self.variables = [i for i in range(m + len(path)) if i not in fixed[0]]
        self.labels = [p for p in range(d + len(path)) if p not in fixed[1]]
        self.closed = False

    @property
    def symmetries(self) -> int:
        """The number of permutations of labels that leave the costs unchanged."""
        return len(self._maps)

    def child(self, variable: int, label: int) -> _Node:
        """The node after one more variable got a label."""
        i, p = self.variables.index(variable), self.labels.index(label)
        rows, cols = np.arange(len(self.variables)) != i, np.arange(len(self.labels)) != p
        pick = np.ix_(rows, cols)
        some = np.ix_(rows, cols, rows, cols)
        unary = self.unary[pick] + self.pair[i, p][pick]
        gone = self.gone[pick] | self.apart[i, p][pick]
        path, base = (*self.path, (variable, label)), self._base + int(self.unary[i, p])
        maps = self._maps[self._maps[:, p] == p][:, cols]
        no = gone, self.apart[some]
        return _Node(path, base, (unary, self.pair[some]), no, maps - (maps > p))

    def bound(self, row: Ints, column: Ints, label: Ints, cut: int) -> int:
        """The bound of multipliers; exclude labels and pairs by it, and close the node."""
        m, d = self.unary.shape
        if m < d and ((column > 0).any() or (label > 0).any()):
            raise Rejected("a multiplier of a label that may be unused is positive")
        rest = self.pair - row[:, :, :, None] - column[:, :, None, :]
        rest -= row.transpose(2, 0, 1)[:, None] + column.transpose(2, 0, 1)[None]
        if (rest < 0)[~self.apart & ~self.gone[:, :, None, None] & ~self.gone].any():
            raise Rejected("the multipliers of a node exceed its costs")
        own = row.sum(axis=2) - row[np.arange(m), :, np.arange(m)]
        own += column.sum(axis=2) - column[:, np.arange(d), np.arange(d)]
        reduced = np.where(self.gone, LARGE, self.unary + own - label)
        least = reduced.min(axis=1)
        if (least == LARGE).any():
            self.closed = True
            return cut
        # as Python integers: the sum over all variables may exceed 64 bits
        found = self._base + sum(least.tolist()) + int(label.sum())
        slack = np.where(self.gone, 0, reduced - least[:, None])
        self.gone |= found + slack >= cut
        self.apart |= found + rest + slack[:, :, None, None] + slack >= cut
        self.close(found >= cut)
        return found

    def exclude(self, variable: int, label: int) -> None:
        """No labelling below the cut has a label."""
        self.gone[self.variables.index(variable), self.labels.index(label)] = True
        self.close(False)

    def close(self, now: bool) -> None:
        """Close the node now, or if a variable or a needed label has no possibility left.

        A label is gone if a symmetry maps it to one that is.
        """
        before = -1
        while before < (before := int(self.gone.sum())):
            for image in self._maps:
                self.gone |= self.gone[:, image]
        square = self.gone.shape[0] == self.gone.shape[1]
        stuck = self.gone.all(axis=1).any() or (square and self.gone.all(axis=0).any())
        self.closed = self.closed or now or bool(stuck)


class PermutationTree:
    """Checks the multipliers of all nodes of a tree.

    Parameters
    ----------
    model : Network
        The model, whose labels all differ.
    effort : Limits
        Limits the sizes of tables.
    shape : int64 array
        Number of variables and labels, exponent of the unit, the cut in units, and permutations of
        the labels that leave all costs unchanged.
    """

    def __init__(self, model: Network, effort: Limits, shape: Ints) -> None:
        self._costs = AssignmentCosts(model, shape[:3])
        self._effort, self._cut = effort, int(shape[3])
        n, d = self._costs.shape
        effort.spend([n, d, n, d], 8 * (1 + len(shape[4:]) // d))
        unary, pair, gone, apart = self._costs.arrays()
        maps = _symmetries(shape[4:], unary, pair, gone, apart)
        self._open = [_Node((), 0, (unary, pair), (gone, apart), maps)]
        self._root, self._best = self._open[0], -(1 << 62)

    def add(self, path: Ints, rows: Ints, columns: Ints, labels: Ints) -> None:
        """Check the multipliers of a node, given by its variables and labels."""
        steps = tuple(zip(path[::2].tolist(), path[1::2].tolist(), strict=True))
        node = self._find(steps)
        if node is None or node.closed:
            return
        m, d = node.unary.shape
        self._effort.spend([m, d, m, d], 8)
        self._effort.work(CALL * (64 + len(node.path)) + 4 * node.symmetries * (CALL + m * d))
        check_sizes(m, d, rows, columns, labels)
        found = node.bound(rows.reshape(m, d, m), columns.reshape(m, d, d), labels, self._cut)
        self._best = found if node is self._root else self._best
        while self._open and self._open[-1].closed:
            done = self._open.pop()
            if self._open:
                self._open[-1].exclude(*done.path[-1])

    def _find(self, path: Path) -> _Node | None:
        """The open node of a path, or a new child of one; None if it is closed already."""
        while self._open and self._open[-1].path != path[: len(self._open[-1].path)]:
            self._open.pop()
        if not self._open or len(path) - len(self._open[-1].path) > 1:
            return None
        top = self._open[-1]
        if len(path) > len(top.path):
            variable, label = path[-1]
            if variable not in top.variables or label not in top.labels:
                raise Rejected("a variable or label is fixed twice, or there is none such")
            if top.gone[top.variables.index(variable), top.labels.index(label)]:
                return None
            self._open.append(top.child(variable, label))
        return self._open[-1]

    def bound(self) -> Fraction:
        """The lower bound of all records."""
        return self._costs.value(self._cut if self._root.closed else min(self._best, self._cut))


def _symmetries(flat: Ints, unary: Ints, pair: Ints, gone: Bools, apart: Bools) -> Ints:
    """The given permutations of labels; raise `Rejected` if one of them changes a cost."""
    d = unary.shape[1]
    if len(flat) % d:
        raise Rejected("there is not one image for each label")
    for image in flat.reshape(-1, d):
        if sorted(image.tolist()) != [*range(d)]:
            raise Rejected("a symmetry is no permutation of the labels")
        same = (gone[:, image] == gone).all() and (unary[:, image] == unary)[~gone].all()
        other, cost = apart[:, image][:, :, :, image], pair[:, image][:, :, :, image]
        if not same or not (other == apart).all() or not (cost == pair)[~apart].all():
            raise Rejected("a symmetry changes a cost")
    return flat.reshape(-1, d)


class MultiplierProof:
    """Checks multipliers of the model, or of the nodes of a tree.

    Parameters
    ----------
    given : Given
        The model.
    """

    def __init__(self, given: Given) -> None:
        self._given = given.about_costs("assignment")
        self._alone: Fraction | None = None
        self._tree: PermutationTree | None = None

    def step(self, name: str, arrays: list[Any]) -> None:
        """Check one record."""
        if name != "assignment" or self._alone is not None:
            raise Rejected(f"{name} out of its place")
        shape, *multipliers = arrays
        if self._tree is not None:
            self._tree.add(shape[3:], *multipliers)
        elif len(shape) <= 3:
            self._alone = assignment_bound(self._given.model, shape, *multipliers)
        else:
            self._tree = PermutationTree(self._given.model, self._given.effort, shape)
            self._tree.add(shape[:0], *multipliers)

    def bound(self) -> Fraction:
        """The bound of all records."""
        if self._alone is not None:
            return self._alone
        assert self._tree is not None
        return self._tree.bound()

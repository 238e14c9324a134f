"""Some labels of a large problem, as a smaller one whose messages are a start for all labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.transport.problem import TransportProblem
from softmap.transport.results import Floats
from softmap.transport.stacks import soft_minima

THINNED = 4  # labels per label drawn: the smaller problem has 1/16 of the pairs (decision 98)
FEWEST = 64  # labels drawn of a node (decision 98)
BLOCK = 64  # labels whose messages are computed at a time, so that their costs stay in a cache


class SampledProblem:
    """A problem with some of the labels of every node, and its messages to all labels.

    Labels of a node with a given marginal are drawn at equal steps of its mass, those of a free
    node at equal steps.

    Parameters
    ----------
    whole : TransportProblem
        The problem with all labels; its costs are tables.
    """

    def __init__(self, whole: TransportProblem) -> None:
        self.whole, model = whole, whole.model
        drawn = [
            _drawn(mass if given else None, len(mass))
            for mass, given in zip(whole.split(whole.mass), whole.fixed, strict=True)
        ]
        self._labels = [labels for labels, _ in drawn]
        tables = [
            whole.model.table(e)[np.ix_(self._labels[i], self._labels[j])]
            for e, (i, j) in enumerate(model.edges)
        ]
        marginals = [len(at) if mass is None else mass for at, mass in drawn]
        unary = [
            costs[at] for costs, at in zip(whole.split(model.unary), self._labels, strict=True)
        ]
        self.problem = TransportProblem.of(marginals, model.edges, tables, unary)

    @staticmethod
    def worthwhile(problem: TransportProblem) -> bool:
        """Whether labels can be left out: tables, and nodes with many labels only."""
        few = THINNED * FEWEST
        return not problem.family and bool(problem.model.num_labels.min(initial=few) >= few)

    def messages(self, network: Any, eta: float, deadline: Any) -> Floats | None:
        """Return messages into all half-edges of the whole problem; None after the deadline.

        Parameters
        ----------
        network : core.TransportNetwork
            Messages of the smaller problem.
        eta : float
            Inverse temperature.
        deadline : core.Deadline
            The end of the run.
        """
        out, small, sent = [], self.problem.model, np.empty(len(self.problem.owner))
        network.sent(eta, sent)
        for e, ends in enumerate(self.whole.model.edges):
            table = self.whole.model.table(e)
            for side in (0, 1):
                h, drawn = 2 * e + 1 - side, self._labels[ends[1 - side]]
                costs, own = table.T if side else table, sent[small.half_slice(h)]
                message = np.empty(len(costs))
                for first in range(0, len(costs), BLOCK):
                    if deadline.passed:
                        return None
                    part = slice(first, first + BLOCK)
                    message[part] = soft_minima(np, costs[part][:, drawn] + own, 1, eta)
                out.append(message - message.min())
        return np.concatenate(out)


def _drawn(mass: Floats | None, size: int) -> tuple[NDArray[np.int64], Floats | None]:
    """Return labels, and their masses if masses are given."""
    steps = (np.arange(size // THINNED) + 0.5) / (size // THINNED)
    if mass is None:
        return (steps * size).astype(np.int64), None
    at = np.minimum(np.searchsorted(mass.cumsum(), steps), size - 1)
    labels, count = np.unique(at, return_counts=True)
    return labels, count / count.sum()

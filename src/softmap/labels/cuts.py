"""Minimum cuts: exact solution of binary submodular models, and fusion and expansion moves."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap import core
from softmap.model import Model
from softmap.model.layout import layout

__all__ = ["Fusion", "solve_binary"]

Labels = NDArray[np.int64]
Floats = NDArray[np.float64]
SLICE = 0.1  # seconds between two calls of `stop`


def solve_binary(
    model: Model,
    *,
    barrier: float = np.inf,
    seconds: float = 1e9,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[Labels, Floats] | None:
    """Solve a submodular model of two labels by a minimum cut.

    An edge is submodular if C(0, 0) + C(1, 1) ≤ C(0, 1) + C(1, 0).

    Parameters
    ----------
    model : Model
        Nodes have at most two labels.
    barrier : float, default +inf
        Finite cost that stands for +inf; more than all finite costs together.
    seconds : float, default 1e9
        Stop after this time.
    stop : function, optional
        Called every 0.1 s; the cut stops if it returns True.

    Returns
    -------
    labels, lam : arrays, or None
        Optimal labels, and λ whose bound is their energy up to rounding. If it is stopped, both
        belong to the flow so far. None if the model is not binary and submodular.
    """
    if model.num_labels.max(initial=0) > 2:
        return None
    cut = core.BinaryCut(layout(model), barrier)
    if not cut.applies():
        return None
    end = time.perf_counter() + seconds
    while not cut.run(min(SLICE, end - time.perf_counter())):
        if time.perf_counter() >= end or stop():
            break
    labels, lam = np.empty(model.n, dtype=np.int64), np.empty(model.half_size)
    cut.read(labels, lam)
    return labels, lam


class Fusion:
    """Moves that choose between two labellings, for each variable, by one minimum cut.

    The energy never rises. A move is optimal if every edge is submodular in the choice. With a
    constant proposal (an α-expansion), this holds for all metrics.

    Parameters
    ----------
    model : Model
        A model without factors of more than two variables.
    barrier : float, default +inf
        Finite cost that stands for +inf; more than all finite costs together.
    """

    def __init__(self, model: Model, barrier: float = np.inf) -> None:
        self.model = model
        self._moves = core.FusionMoves(layout(model), barrier)

    def fuse(self, labels: Labels, proposal: ArrayLike, *, seconds: float = 1e9) -> int:
        """Apply one fusion move in place: each variable keeps its label or takes the proposal's.

        Parameters
        ----------
        labels : int array
            The labelling, changed in place.
        proposal : int array
            The other labelling.
        seconds : float, default 1e9
            Stop after this time.

        Returns
        -------
        int
            The number of variables that changed; -1, and no change, if time ran out.
        """
        given = np.ascontiguousarray(proposal, dtype=np.int64)
        return int(self._moves.fuse(labels, given, seconds))

    def expand(self, labels: Labels, *, rounds: int = 2, seconds: float = 1e9) -> bool:
        """Apply α-expansions of all labels, one after the other, in place.

        Parameters
        ----------
        labels : int array
            The labelling, changed in place.
        rounds : int, default 2
            Largest number of expansions of every label.
        seconds : float, default 1e9
            Stop after this time.

        Returns
        -------
        bool
            Whether a whole round changed nothing: no expansion lowers the energy.
        """
        end = time.perf_counter() + seconds
        last = self.model.num_labels - 1
        idle, count = 0, int(last.max()) + 1
        for step in range(rounds * count):
            alpha = step % count
            proposal = np.where(alpha <= last, alpha, labels)
            changed = self.fuse(labels, proposal, seconds=max(0.0, end - time.perf_counter()))
            if changed < 0:
                return False
            idle = 0 if changed else idle + 1
            if idle == count:
                return True
        return False

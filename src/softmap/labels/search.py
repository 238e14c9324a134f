"""The search for labels during a run: decode what a method proposes, improve it, keep the best."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from softmap.labels.decoding import decide, decode, round_nodes
from softmap.labels.improving import (
    Priced,
    best_labelling,
    improved_by_forests,
    with_followers,
)
from softmap.model import Model
from softmap.relaxation.dual import Floats, cost_scale
from softmap.relaxation.gaps import gap_unit

__all__ = ["LabelSearch", "Readable"]

DESCENT = 1  # random forests that every new labelling is improved over; as dear as decoding it
MORE = 1 / 32  # further forests per pass done so far; up to twice as many where the LP is solved
ENOUGH = 8  # from so many forests on, the further ones are annealed: fewer leave no time to cool
WARM = 48  # annealed forests over labels of an earlier model
HEAT = 3.0  # random costs in the first annealed forest, in units of `LabelSearch._heat`
Readable = Floats | Callable[[], NDArray[np.int64]]
CLOSED = 1e-9  # relative gap under which a labelling counts as optimal


class LabelSearch:
    """Looks for labellings of one tightened model and keeps the best.

    Parameters
    ----------
    order : permutation of the variables, optional
        In which they are decided when labels are read off λ; the natural order if left out.

    Attributes
    ----------
    labels, energy
        The best labelling so far; the energy is +inf until one obeys the hard constraints.
    """

    def __init__(self, model: Model, order: NDArray[np.int64] | None = None) -> None:
        self.model, self.order = model, order
        self.labels: NDArray[np.int64] = np.zeros(model.num_variables, dtype=np.int64)
        self.energy = math.inf

    def read(self, lam: Readable) -> NDArray[np.int64]:
        """Labels read off λ, or by a function of its own."""
        return lam() if callable(lam) else decode(self.model, lam, self.order)

    def look(
        self, lam: Readable, nodes: Floats, *, bound: float, primal: float, work: int = 0
    ) -> None:
        """Read labels off λ and node marginals, and search around them while a gap is open.

        `bound` and `primal` are the best values known of the LP. The work done so far says for how
        long to search, and is the seed, so that a resumed run searches like any other.
        """
        found = self._decoded(lam, nodes)
        self._keep(*found)
        if not self._open(bound):
            return
        stuck = max(0.0, self.energy - primal) / (self.energy - bound)
        more = int(MORE * (1.0 + stuck) * work / max(1, 2 * self.model.m))
        annealed = more if more >= ENOUGH else 0
        self._improve(found, DESCENT + more - annealed, 0.0, work)
        if annealed and self._open(bound):
            self._improve(self._best, annealed, self._heat(bound), work + 1)

    def looking(
        self, lam: Readable, nodes: Floats, *, bound: float, primal: float, work: int = 0
    ) -> Callable[[], LabelSearch]:
        """`look`, to be called when there is time: it leaves this alone and gives a copy."""
        other = copy.copy(self)
        if callable(lam):  # what it reads will not stay as it is
            read = lam()
            lam = lambda: read  # noqa: E731

        def look() -> LabelSearch:
            other.look(lam, nodes, bound=bound, primal=primal, work=work)
            return other

        return look

    def _decoded(self, lam: Readable, nodes: Floats) -> Priced:
        """The better of rounding and decoding; where neither is feasible, decide step by step."""
        model = self.model
        candidates = [round_nodes(model, nodes), self.read(lam)]
        if len(model.running):  # the others may be right where these are not
            candidates.append(model.with_running(candidates[1][: model.num_visible]))
        energies = [float(model.energy(labels)) for labels in candidates]
        if math.isfinite(least := min(energies)):  # else polishing may mend either
            candidates, energies = [candidates[energies.index(least)]], [least]
        labels, energy = best_labelling(model, candidates, energies)
        if not math.isfinite(energy):
            labels, energy = best_labelling(model, [decide(model, nodes)])
        return labels, energy

    def _improve(self, known: Priced, rounds: int, heat: float, seed: int) -> None:
        self._keep(*improved_by_forests(self.model, known, rounds, heat, seed))

    @property
    def _best(self) -> Priced:
        return self.labels, self.energy

    def _heat(self, bound: float) -> float:
        """Geometric mean of the scale of the costs and of what a variable may still gain."""
        each = max(0.0, self.energy - bound) / self.model.num_variables
        return HEAT * math.sqrt(cost_scale(self.model) * each)

    def _open(self, bound: float) -> bool:
        """Whether there are labels to start from, and may be better ones."""
        return CLOSED * gap_unit(bound) < self.energy - bound < math.inf

    def improve(self, bound: float, seed: int) -> None:
        """Look for better labels around the best ones: costs may have changed a little."""
        if self._open(bound):
            self._keep(*best_labelling(self.model, [self.labels], [self.energy]))
            self._improve(self._best, DESCENT, 0.0, seed)
        if self._open(bound):
            self._improve(self._best, WARM, self._heat(bound), seed + 1)

    def adopt(self, other: LabelSearch) -> None:
        """Keep what another search of the same model has found, if it is better."""
        self._keep(*other._best)

    def take(self, labels: NDArray[np.int64]) -> None:
        """Keep a labelling from elsewhere if it is better."""
        self._keep(labels, float(self.model.energy(labels)))

    def _keep(self, labels: NDArray[np.int64], energy: float) -> None:
        labels, energy = with_followers(self.model, (labels, energy))
        # labels that nobody has looked at might cost less than +inf
        if energy < self.energy or math.isinf(self.energy):
            self.energy, self.labels = energy, labels

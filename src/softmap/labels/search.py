"""The search for labels during a run: feasible ones, and those that a method proposes, improved."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.errors import InfeasibleModel
from softmap.labels.decoding import decide, decode, round_nodes
from softmap.labels.improving import Priced, best_labelling, improved_by_forests, strides
from softmap.model import Model
from softmap.model.layout import layout
from softmap.relaxation.dual import Floats, cost_scale
from softmap.relaxation.gaps import gap_unit

__all__ = ["LabelSearch", "Priced", "Readable", "find_feasible"]

NONE, FOUND = 0, 1


def find_feasible(
    model: Model, preference: Floats | None, *, seconds: float, work: int
) -> NDArray[np.int64] | None:
    """A labelling of finite cost, or None where the limits end the search.

    Keeps arc consistency, goes back where it fails, and prefers labels of greater `preference`
    (node marginals, say).

    Raises
    ------
    InfeasibleModel
        Where the whole tree was searched.
    """
    wish = np.zeros(model.unary.size) if preference is None else np.ascontiguousarray(preference)
    labels = np.zeros(model.n, dtype=np.int64)
    verdict, *_ = core.feasible(
        layout(model), strides(model), model.num_variables, wish, np.isfinite(model.unary), labels,
        min(work, 1 << 62), min(seconds, 1e9),
    )  # fmt: skip
    if verdict == NONE:
        raise InfeasibleModel(
            "no labelling has finite cost: a search over all labels found none", None
        )
    return labels[: model.num_variables] if verdict == FOUND else None


Readable = Floats | Callable[[], NDArray[np.int64]]


@dataclass(frozen=True)
class SearchEffort:
    """How long to search for labels.

    Attributes
    ----------
    descent : int
        Random forests over which every new labelling is improved; each costs about one decoding.
    more : float
        Further forests per pass done so far; up to twice as many where the LP is solved.
    annealed_from : int
        Anneal the further forests only if there are at least this many: fewer leave no time to
        cool.
    warm : int
        Annealed forests over labels of an earlier model.
    heat : float
        Random costs in the first annealed forest, over √(scale of the costs · gap per variable).
    closed : float
        Relative gap under which a labelling counts as optimal.
    """

    descent: int = 1
    more: float = 1 / 32
    annealed_from: int = 8
    warm: int = 48
    heat: float = 3.0
    closed: float = 1e-9


EFFORT = SearchEffort()


class LabelSearch:
    """Looks for labellings of one model without unsupported states.

    Parameters
    ----------
    model : Model
    order : permutation of the variables, optional
        In which they are decided when labels are read off λ; the natural order if left out.
    """

    def __init__(self, model: Model, order: NDArray[np.int64] | None = None) -> None:
        self.model, self.order = model, order

    def read(self, lam: Readable) -> NDArray[np.int64]:
        """Labels read off λ, or by a function of its own."""
        return lam() if callable(lam) else decode(self.model, lam, self.order)

    def look(
        self, known: Priced, lam: Readable, nodes: Floats, bound: float, primal: float, work: int
    ) -> Priced:
        """Read labels off λ and node marginals, and search around them while a gap is open.

        Parameters
        ----------
        known : labels and their energy
            The best labelling so far; what is returned is not worse.
        lam : array, or a function that reads labels off
        nodes : array
            Node marginals.
        bound, primal : float
            The best values known of the LP.
        work : int
            Work done so far: tells for how long to search, and is the seed, so that a resumed run
            searches like any other.
        """
        found = self._decoded(lam, nodes)
        best = _better(known, found)
        if not self._open(best, bound):
            return best
        stuck = max(0.0, best[1] - primal) / (best[1] - bound)
        more = int(EFFORT.more * (1.0 + stuck) * work / max(1, 2 * self.model.m))
        annealed = more if more >= EFFORT.annealed_from else 0
        best = _better(best, self._improved(found, EFFORT.descent + more - annealed, 0.0, work))
        if annealed and self._open(best, bound):
            best = _better(best, self._improved(best, annealed, self._heat(best, bound), work + 1))
        return best

    def later(
        self, known: Priced, lam: Readable, nodes: Floats, bound: float, primal: float, work: int
    ) -> Callable[[], Priced]:
        """`look`, to be called when there is time: labels are read off now, λ may change."""
        if callable(lam):
            read = lam()
            lam = lambda: read  # noqa: E731
        return lambda: self.look(known, lam, nodes, bound, primal, work)

    def improve(self, known: Priced, bound: float, seed: int) -> Priced:
        """Look for better labels around known ones: costs may have changed a little."""
        best = known
        if self._open(best, bound):
            best = _better(best, best_labelling(self.model, [best[0]], [best[1]]))
            best = _better(best, self._improved(best, EFFORT.descent, 0.0, seed))
        if self._open(best, bound):
            heat = self._heat(best, bound)
            best = _better(best, self._improved(best, EFFORT.warm, heat, seed + 1))
        return best

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

    def _improved(self, known: Priced, rounds: int, heat: float, seed: int) -> Priced:
        return improved_by_forests(self.model, known, rounds, heat, seed)

    def _heat(self, known: Priced, bound: float) -> float:
        """Geometric mean of the scale of the costs and of what a variable may still gain."""
        each = max(0.0, known[1] - bound) / self.model.num_variables
        return EFFORT.heat * math.sqrt(cost_scale(self.model) * each)

    def _open(self, known: Priced, bound: float) -> bool:
        """Whether there are labels to start from, and may be better ones."""
        return EFFORT.closed * gap_unit(bound) < known[1] - bound < math.inf


def _better(known: Priced, found: Priced) -> Priced:
    """The better of two labellings; the new one where none is feasible yet."""
    return found if found[1] < known[1] or math.isinf(known[1]) else known

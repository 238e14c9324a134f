"""The stages before the relaxation: an earlier result, exact methods, first labels.

Models of small width are solved by variable elimination, submodular models with two labels by one
minimum cut (its flow is λ that proves the labels), linear assignments as such. A search that
propagates and learns finds labels that obey hard constraints, or proves that there are none. Runs
on other large pairwise models start with labels of one pass of messages and expansion moves, which
are good long before those of the relaxation.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from softmap import core
from softmap.labels import cheapest, first_labels
from softmap.labels.cuts import Expansions, Fusion, Labels, expandable, solve_binary
from softmap.labels.pricing import energy_of
from softmap.relaxation.dual import Floats
from softmap.relaxation.flat import elimination_order
from softmap.solving.best import Best
from softmap.solving.budget import Share
from softmap.solving.feasible import find_first_labels
from softmap.solving.memory import room_beside
from softmap.solving.relax import Passes
from softmap.solving.stage import Stage
from softmap.solving.trace import StageName

if TYPE_CHECKING:
    from softmap.solving.warm import WarmStart

__all__ = [
    "OPENING", "Assign", "Cut", "Eliminate", "Expand", "Obey", "Opening", "OpeningTuning",
    "Outright", "Recall",
]  # fmt: skip


@dataclass(frozen=True)
class OpeningTuning:
    """Tuning numbers of the first stages.

    Attributes
    ----------
    expanded : int
        Smallest number of variables for expansion moves.
    rounds : int
        Largest number of rounds of expansions.
    submodular : float
        Smallest fraction of submodular terms for expansion moves (`expandable`).
    first : float
        Largest fraction of the time of this stage for the messages of first labels.
    labels : int
        Largest number of labels for which every label is expanded.
    variables : int
        Largest number of variables for elimination before passes.
    states : int
        Smallest number of node states, auxiliary nodes included, for elimination before passes.
        Passes over fewer states take milliseconds, and often prove the labels by λ.
    per_state : float
        Largest number of table entries of elimination per node state for elimination before passes:
        with more, the first passes take less time.
    cost_bytes : int
        Memory of the search for costs that stand for hard constraints, per table entry, in bytes.
    """

    expanded: int = 2_000
    rounds: int = 2
    submodular: float = 0.9
    first: float = 0.4
    labels: int = 256
    variables: int = 3_000
    states: int = 20_000
    per_state: float = 300.0
    cost_bytes: int = 100


TUNING = OpeningTuning()


class Opening(Stage):
    """A stage that runs once, before the passes of the relaxation.

    Attributes
    ----------
    ran : bool
        Whether the stage has found that it applies to the model, and has run.
    """

    share: ClassVar[float] = 1.0  # largest fraction of the time left
    after_setup: ClassVar[bool] = False  # whether the relaxation is set up before it
    ran = True

    def applies(self) -> bool:
        """Whether the model has pairs only, and the run uses the default method."""
        model = self.problem.model
        pairs = model.m > 0 and not len(model.auxiliaries) and not len(model.running)
        return pairs and self.default

    @property
    def default(self) -> bool:
        """Whether the run uses the default method, on the processor, and wants labels."""
        options = self.options
        return options.method == "anneal" and options.backend == "cpu" and options.goal != "lp"


class Recall(Stage):
    """The earlier result of a warm start, evaluated with the costs of this model.

    Parameters
    ----------
    passes : Passes
        The passes; they are skipped if the earlier result is good enough.
    warm : WarmStart
        The warm start.
    """

    name = StageName.RELAX

    def __init__(self, passes: Passes, warm: WarmStart) -> None:
        self._passes, self._warm = passes, warm
        super().__init__(passes.problem, passes.options)

    def applies(self) -> bool:
        return self._warm.result is not None

    def __call__(self, best: Best, share: Share) -> None:
        relaxation, warm = self._passes.relaxation, self._warm
        lower = warm.recall(relaxation.judge, relaxation.labels, self.options.seed)
        if lower > 1.0 and relaxation.begun:
            relaxation.algorithm.lower_eta(relaxation.state, lower)
        self._passes.end(relaxation.closed() or warm.ended(best, self.options))


class Eliminate(Opening):
    """Variable elimination, if it takes less time than the first passes over the model.

    This is so if factors of several variables have large tables: the relaxation has an auxiliary
    node with a state for each of their entries, elimination has not.
    """

    name = StageName.SEARCH
    share = 0.6

    def applies(self) -> bool:
        model, options = self.problem.model, self.options
        large = len(model.auxiliaries) > 0 and model.unary.size >= TUNING.states
        large = large and model.num_variables <= TUNING.variables
        if not large or not self.default or options.goal == "labels" or options.whole_run:
            return False
        return elimination_order(model, TUNING.per_state * model.unary.size).found

    def __call__(self, best: Best, share: Share) -> None:
        from softmap.solving.stages import Search  # imported late: few models need it

        search = Search(self.problem, self.options, self._proof)
        self.ran = search.active and search.narrow
        if self.ran:
            search(best, share)


class Outright(Opening):
    """A method that solves models of one kind exactly, with λ that proves the labels."""

    @abstractmethod
    def answer(self, share: Share) -> tuple[Labels, Floats] | None:
        """Return the optimal labels and λ; None if the model is of another kind or time is up."""

    def __call__(self, best: Best, share: Share) -> None:
        found = self.answer(share)
        self.ran = found is not None
        if found is not None:
            best.offer_labels(found[0])
            best.offer_lam(found[1])


class Cut(Outright):
    """The minimum cut of a submodular model of two labels."""

    name = StageName.CUT

    def applies(self) -> bool:
        return super().applies() and int(self.problem.model.num_labels.max()) <= 2

    def answer(self, share: Share) -> tuple[Labels, Floats] | None:
        deadline = share.budget.interrupts.within(share.left)
        return solve_binary(self.problem.model, deadline=deadline, threads=self.problem.threads)


class Assign(Outright):
    """A linear assignment: unary costs, and labels that are all different."""

    name = StageName.LABELS

    def applies(self) -> bool:
        return bool(self.problem.given.required) and self.default

    def answer(self, share: Share) -> tuple[Labels, Floats] | None:
        from softmap.labels.assignment import solve_assignment  # imported late: few models need it

        deadline = share.budget.interrupts.within(share.left)
        return solve_assignment(self.problem.model, self.problem.given, deadline)


class Obey(Opening):
    """First labels that obey the hard constraints, by a search that propagates and learns."""

    name = StageName.LABELS

    def applies(self) -> bool:
        return self.default

    def takes(self) -> float:
        model = self.problem.model
        return float(TUNING.cost_bytes * (model.unary.size + int(model.edge_offset[-1])))

    def __call__(self, best: Best, share: Share) -> None:
        self.ran = find_first_labels(self.problem, best, share.budget)


class Expand(Opening):
    """First labels of a large model: by one pass of messages, then by expansion moves.

    The relaxation is set up before: set-up after it would often not fit into short time limits.

    Attributes
    ----------
    expansions : Expansions or None
        The expansion moves, which later stages continue.
    """

    name = StageName.LABELS
    proves = False
    share = 0.5  # limits too short for passes leave all of the time to labels
    after_setup = True

    def applies(self) -> bool:
        self.expansions: Expansions | None = None
        model = self.problem.model
        large = model.num_variables >= TUNING.expanded
        if not super().applies() or not large or int(model.num_labels.max()) > TUNING.labels:
            return False
        return expandable(model) >= TUNING.submodular

    def __call__(self, best: Best, share: Share) -> None:
        interrupts = share.budget.interrupts
        fusion = Fusion(self.problem.model, threads=self.problem.threads)
        labels = self._first(fusion, best, interrupts.within(TUNING.first * share.left))
        self.expansions = Expansions(fusion)
        deadline = interrupts.within(share.left)
        self.expansions.run(labels, rounds=TUNING.rounds, deadline=deadline)
        best.offer_labels(labels)
        if not math.isfinite(best.lp_bound):
            best.offer_zero()

    def _first(self, fusion: Fusion, best: Best, deadline: core.Deadline) -> Labels:
        """Labels to start from: those of one pass of messages, fused with given ones.

        If memory does not allow that: given ones, or those of lowest node cost.
        """
        model, options = self.problem.model, self.options
        room = room_beside(model, options.memory_limit)
        messages = 2 * model.half_size  # bytes: one number in single precision per edge and label
        if messages + Fusion.takes(model) > room:
            return np.array(best.labels if best.found else cheapest(model, model.unary))
        found = first_labels(model, deadline=deadline, threads=self.problem.threads)
        if best.found:
            fusion.fuse(found, best.labels, deadline=deadline)
            if not energy_of(model, found, self.problem.threads) < best.energy:
                return best.labels.copy()
        return found


OPENING: tuple[type[Opening], ...] = (Eliminate, Cut, Assign, Obey, Expand)
"""The stages before the relaxation, in order; the run ends if one of them closes the gap."""

"""`Decode`: labels decoded from the relaxation and improved, in a background thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.arguments import count
from softmap.errors import InfeasibleModel
from softmap.labels import LabelSearch, round_nodes
from softmap.labels.energies import Labelled, energy_of
from softmap.labels.feasibility import FeasibilityNumbers, find_feasible
from softmap.labels.search import SearchEffort
from softmap.methods.base import Algorithm
from softmap.relaxation.polytope import normalised
from softmap.run.best import Best, checked_labels
from softmap.run.budget import Budget
from softmap.run.memory import MemoryEstimate
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.subsolver import Board, Occasion, Outcome, Plan, Seen, Share, Subsolver, View
from softmap.subsolvers.passes.pass_numbers import PassNumbers
from softmap.subsolvers.passes.storing import METHOD, ROUNDED

if TYPE_CHECKING:
    from softmap.io.store import Arrays

__all__ = ["Background", "Decode"]

Found = TypeVar("Found")


class Background(Generic[Found]):
    """A computation in a background thread, or at once if there is only one thread.

    Its outcome must not depend on when it runs. Runs with any number of threads are then identical,
    because they read the outcome after the same pass.

    Parameters
    ----------
    work : function
        The computation; it has no arguments.
    threaded : bool
        Whether to run it in a thread.
    """

    def __init__(self, work: Callable[[], Found], *, threaded: bool) -> None:
        self._work = work
        self._found: Found | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="softmap-labels")
        self._process = os.getpid()
        if threaded:
            self._thread.start()
        else:
            self._run()

    def _run(self) -> None:
        try:
            self._found = self._work()
        except BaseException as error:  # raised again by `found`
            self._error = error

    @property
    def ended(self) -> bool:
        """Whether the outcome is known."""
        return not self._thread.is_alive()

    def found(self, timeout: float | None = None) -> Found | None:
        """Return the outcome; block up to `timeout` seconds, then return None."""
        if self._process != os.getpid():  # a forked process does not have this thread
            return self._work()
        if self._thread.ident is not None:
            self._thread.join(timeout)
            if self._thread.is_alive():
                return None
        if self._error is not None:
            raise self._error
        return self._found


class Decode(Subsolver):
    """Labels from the marginals and messages of each check that may yield better ones.

    Passes go on while labels are searched for in a thread, and wait for the outcome at the next
    check; where the passes leave the cores free (a GPU), they do not wait.

    Parameters
    ----------
    problem : Problem
        The problem.
    options : Options
        The options of the run.
    """

    name = "labels"
    number = 3

    _method: Algorithm  # from `begin` on

    def __init__(self, problem: Problem, options: Options) -> None:
        super().__init__(problem, options)
        self._numbers = self.tuning.of(PassNumbers)
        self._pending: Background[Labelled] | None = None
        self._decoded_at = 0  # step of the check from which labels were last decoded
        self._started_at = -1  # step at which the last background search began

    def begin(self, best: Best, share: Share, *, alone: bool) -> Board:
        if (method := share.board.get(METHOD)) is not None:
            self._method = method
        return Board()

    @property
    def _concurrent(self) -> bool:
        """Whether passes do not wait for labels: results then depend on timing."""
        return self._method.leaves_cores and self.options.racing(self.problem.threads) > 1

    def plan(self, view: View) -> Plan | None:
        """After each check; and once a search has ended for which nobody waits."""
        pending = self._pending is not None
        if view.occasion is not Occasion.CHECKED:
            ended = view.occasion is Occasion.END and view.board.get(ROUNDED) is not None
            due = ended or (pending and view.occasion is not Occasion.TURN)
        else:
            seen = view.board.seen
            checked = seen is not None and (seen.nodes is not None or (seen.last and pending))
            due = checked or (self._ended and self._concurrent)
        return (
            Plan("labels decoded from the relaxation", urgent=True, proves=False) if due else None
        )

    @property
    def _ended(self) -> bool:
        """Whether a search in the background has ended."""
        return self._pending is not None and self._pending.ended

    def abandon(self) -> None:
        self._pending = None

    def __call__(self, best: Best, share: Share) -> Outcome:
        seen, before = share.board.seen, best.energy
        self._collect(best, share, wait=not self._concurrent or (seen is not None and seen.last))
        if seen is not None and seen.nodes is not None and self._due(best, seen):
            self._find(best, share, seen)
        if share.last and (rounded := share.board.get(ROUNDED)) is not None:
            labels = rounded()
            if labels is not None:
                best.offer_labels(labels)
        return Outcome(ran=best.energy < before, work=0)

    # --- storing ----------------------------------------------------------------------------------

    def snapshot(self) -> Arrays:
        """Return the step of the last search and its outcome if that is pending."""
        found = None if self._pending is None else self._pending.found()
        arrays = {"decoded_at": np.array(self._decoded_at)}
        return arrays if found is None else arrays | {"pending": found[0]}

    def restore(self, arrays: Arrays) -> None:
        self._decoded_at = count("decoded_at", arrays["decoded_at"].item())
        if "pending" in arrays:
            model = self.problem.model
            labels = checked_labels(model, arrays["pending"])
            priced = labels, energy_of(model, labels, self.problem.threads)
            self._pending = Background(lambda: priced, threaded=False)

    # --- when -------------------------------------------------------------------------------------

    def _due(self, best: Best, seen: Seen) -> bool:
        """Whether to decode labels: at growing intervals, at the end, and if the LP is solved.

        Intervals grow more slowly if only labels are missing. Without them, every check counts.
        """
        options, gaps = self.options, best.gaps()
        alone = options.goal == "lp"
        if alone and self._method.frugal:  # copying marginals from a device takes long
            return False
        factor = 2 if gaps.lp <= self._numbers.decoded * options.gap else 4
        due = seen.last or not best.found or seen.done >= factor * self._decoded_at
        if alone and not seen.last:
            due &= not self._decoded_at or best.may_be_best()
        # while passes continue, one search from messages that solve the LP is enough
        again = not self._concurrent or self._started_at < seen.solved_at
        due |= seen.solved_at > 0 and again and not (alone and gaps.map <= options.lp_gap)
        return due

    def _decisive(self, best: Best, seen: Seen) -> bool:
        """Whether to wait for the labels: the first ones, or such that may end the run."""
        options = self.options
        if self._concurrent or seen.last:
            return seen.last
        if not self._decoded_at or not self._method.sweeping or options.goal == "lp":
            return True
        near = self._numbers.decisive
        return not best.found or best.gaps().lp <= near * max(options.lp_gap, options.gap)

    # --- how --------------------------------------------------------------------------------------

    @cached_property
    def _labels(self) -> LabelSearch:
        model, effort = self.problem.model, self.tuning.of(SearchEffort)
        order = partial(self._method.decode_order, model)
        return LabelSearch(model, order, self.room.left, self.problem.threads, effort)

    def _find(self, best: Best, share: Share, seen: Seen) -> None:
        """Decode labels and improve them, in the background unless they are decisive."""
        assert seen.nodes is not None
        decisive, nodes = self._decisive(best, seen), seen.nodes()
        if self.options.goal == "lp" and not seen.last and seen.done < self._numbers.quick:
            self._find_quickly(best, share, seen)
            return
        self._decoded_at = seen.done
        if share.run_left <= 0.0 or not (decisive or best.found):
            best.offer_labels(round_nodes(self.problem.model, nodes, self.problem.threads))
        if share.run_left <= 0.0:
            return
        # with goal="lp", labels are decoded and improved once
        work = 0 if self.options.goal == "lp" else seen.work
        known: Labelled = best.labels, best.energy
        assert seen.decoder is not None
        what = known, seen.decoder(), nodes, best.lp_bound, seen.primal, work
        if not decisive:
            self._start(seen.done, what, share.budget)
            return
        best.offer_labels(*self._labels.look(*what, share.deadline))
        if self.problem.model.half_size > self.tuning.of(MemoryEstimate).returned_entries:
            core.give_back()
        if not best.found:
            self._find_feasible(best, share, nodes, seen.work)

    def _find_quickly(self, best: Best, share: Share, seen: Seen) -> None:
        """Round and decode labels: the first checks of a run for the LP need some primal value."""
        assert seen.nodes is not None
        assert seen.decoder is not None
        best.offer_labels(round_nodes(self.problem.model, seen.nodes(), self.problem.threads))
        if best.gaps().lp > self.options.lp_gap and share.run_left > 0.0:
            best.offer_labels(self._labels.decoded(seen.decoder(), share.deadline))

    def _start(self, done: int, what: tuple[Any, ...], budget: Budget) -> None:
        """Start a search for labels in the background, unless another one has not ended."""
        if self._pending is None:
            known, lam, nodes, bound, primal, work = what
            if callable(lam):  # now: the next pass changes the messages
                decoded = lam()
                lam = lambda: decoded  # noqa: E731
            end = budget.interrupts.within(budget.left)
            search = partial(self._labels.look, known, lam, nodes, bound, primal, work, end)
            self._pending = Background(search, threaded=self.problem.threads > 1)
            self._started_at = done

    def _collect(self, best: Best, share: Share, *, wait: bool) -> None:
        """Offer the outcome of the background search; one that has not ended goes on."""
        if self._pending is None:
            return
        blocks = wait and not share.budget.interrupts.noted
        found = self._pending.found(share.run_left if blocks else 0.0)
        if found is not None:
            self._pending = None
            best.offer_labels(*found)

    def _find_feasible(
        self, best: Best, share: Share, nodes: NDArray[np.float64], work: int
    ) -> None:
        """Search for feasible labels, for a fraction of the time of the passes."""
        model, threads = self.problem.model, self.problem.threads
        with suppress(InfeasibleModel):  # the bound of the relaxation is useful all the same
            found = find_feasible(
                model, normalised(model, nodes), given=self.problem.given, deadline=share.deadline,
                conflicts=work // self._numbers.conflict_work,
                numbers=self.tuning.of(FeasibilityNumbers),
            )  # fmt: skip
            if found is not None:
                priced = found, energy_of(model, found, threads)
                best.offer_labels(*self._labels.improve(priced, best.lp_bound, work))

"""`Passes`: steps of one method on the LP relaxation, and checks.

A check computes a bound and a point of the polytope. It takes as long as one to ten passes, so
that its times grow with the number of passes. They depend on passes and gaps, not on time.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from softmap import core
from softmap.errors import OptionError
from softmap.labels import LabelSearch
from softmap.labels.search import SearchEffort
from softmap.methods.base import Algorithm, Assessment, Floats, Proposal, make
from softmap.methods.policy import Ask, Checks, CheckTimes, passes_to_next
from softmap.relaxation.dual import SmoothedDual
from softmap.run.best import Best
from softmap.run.judge import Judge
from softmap.run.memory import MemoryEstimate
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.subsolver import Board, Occasion, Outcome, Plan, Seen, Share, Subsolver, View
from softmap.run.trace import RELAXATION, Status
from softmap.run.values import Tolerances
from softmap.subsolvers.passes.pass_numbers import PassNumbers
from softmap.subsolvers.passes.storing import METHOD, ROUNDED, like_number, put_back, taken

if TYPE_CHECKING:
    from softmap.io.store import Arrays
    from softmap.run.warm import WarmStart

__all__ = ["Passes", "Progress"]


@dataclass(kw_only=True)
class Progress(CheckTimes):
    """How far the passes have come: plain numbers, so that they can be stored.

    Attributes
    ----------
    done : int
        Number of steps of the method so far.
    checked_at : int
        Step of the last check.
    solved_at : int
        Step at which the LP was solved (0: not yet).
    eta : float
        η of the last check.
    stalled : int
        1 if neither gap has improved for long.
    """

    done: int = 0
    checked_at: int = -1
    solved_at: int = 0
    eta: float = 1.0
    stalled: int = 0


class PassChecks:
    """The checks of the passes: when they are due, what they compute, and what follows from it.

    Parameters
    ----------
    best : Best
        The values that the judge offers to.
    method : Algorithm
        The method whose state is checked.
    options : Options
        The options of the run.
    """

    def __init__(self, best: Best, method: Algorithm, options: Options) -> None:
        self._best, self._method, self._options = best, method, options
        self._numbers = options.tuning.of(PassNumbers)

    @cached_property
    def judge(self) -> Judge:
        """The judge of the run: the method's own judge, if it has one."""
        found: Judge = self._method.judge_by(Judge(self._best))
        return found

    def steps_to_next(self, best: Best, at: Progress) -> int:
        """The number of steps until the next check."""
        options = self._options
        if options.every is not None:
            return options.every
        if options.whole_run and options.updates:
            return max(1, options.updates // 40)
        if self._method.sweeping:
            asked = max(options.lp_gap, options.gap, 1e-12)
            checks = options.tuning.of(Checks)
            gap = best.gaps().lp if at.done else math.inf  # the first check does not depend on it
            return passes_to_next(checks, at.done, gap / asked)
        return max(2 * best.problem.model.m, at.done // 5)

    def closed(self, best: Best, at: Progress) -> Status | None:
        """The status if a gap is within its tolerance, or neither has improved for long.

        The LP gap does not count while passes may still prove the labels optimal.
        """
        options = self._options
        if options.whole_run:
            return None
        status = best.met(Tolerances(options.lp_gap, options.gap))
        if status is Status.LP_GAP and self._proving(best, at):
            return None
        stalled = at.stalled or not best.problem.model.m  # without edges, λ is empty
        return status or (Status.STALLED if stalled and at.checked_at >= 0 else None)

    def _proving(self, best: Best, at: Progress) -> bool:
        """Whether the labels are an LP solution, so that further passes may prove them optimal."""
        options = self._options
        if options.goal == "lp" or not self._method.sweeping:
            return False
        tight = best.tight and best.gaps().lp <= options.lp_gap
        return tight and at.done < 2 * at.solved_at + self._numbers.proving

    def check(
        self,
        best: Best,
        state: Any,
        at: Progress,
        share: Share,
        limit: Status | None,
        *,
        cold: bool,
    ) -> tuple[Proposal, Assessment]:
        """Check the state of the method, and let it raise η; once the time is up, only the bound.

        Raises `core.OutOfTime` if the time limit itself passes before that bound is known.

        Parameters
        ----------
        best : Best
            The best values of the run.
        state : object
            The state of the method.
        at : Progress
            How far the passes have come.
        share : Share
            The slice.
        limit : Status, optional
            The limit that was reached: no step follows.
        cold : bool
            Whether the passes have started from λ = 0.
        """
        over = limit is Status.TIME_LIMIT or share.budget.left <= 0.0
        if over and not self.judge.whole:
            ask = Ask.BOUND
            found = self._method.last_bound(state, core.Deadline(share.budget.unspent))
        else:  # Ctrl-C ends passes, not their last check
            ask = self._ask(best, at, last=limit is not None, cold=cold)
            found = self._method.answer(state, ask, core.Deadline(share.run_left))
        if not self._method.sweeping and not np.isfinite(found.lam).all():
            found = Proposal(best.lam, found.eta)  # a diverging method has overflowed
        return found, self._judged(best, state, found, ask)

    def _ask(self, best: Best, at: Progress, *, last: bool, cold: bool) -> Ask:
        """What to compute."""
        options = self._options
        ratio = best.gaps().lp / max(options.lp_gap, 1e-300)
        tight = best.tight
        ask = at.ask(options.tuning.of(Checks), at.done, lp_ratio=ratio, tight=tight, last=last)
        # labels alone give a primal value at the first checks of a run for the LP
        first = self._method.sweeping and at.done < self._numbers.quick
        early = cold and options.goal == "lp" and first and not self._method.frugal
        return Ask.BOUND if early and not last else ask

    def _judged(self, best: Best, state: Any, found: Proposal, ask: Ask) -> Assessment:
        """Compute the bound, and a point if asked for; let the method raise η."""
        if (ask is Ask.BOUND or found.abandoned) and not self.judge.whole:
            return Assessment(self.judge.bound(found), (), math.nan, math.nan, found.nodes)
        verdict = self.judge.look(found)
        labelled = best.energy <= best.point_cost
        self._method.observe(state, replace(verdict, labelled=labelled))
        return verdict

    def smoothed(self, found: Proposal) -> float | None:
        """Return the value of the smoothed dual at a check, or None if it is not known.

        Some methods compute it themselves. For the others it is computed here if the run makes
        all updates and the model is small.
        """
        model = self._best.problem.model
        small = model.half_size <= self._numbers.smoothed_entries
        if found.smoothed is not None or not (self._options.whole_run and small):
            return found.smoothed
        if not np.isfinite(found.lam).all():  # λ of a diverging method
            return None
        return -SmoothedDual(model, found.eta).value(found.lam)


class Passes(Subsolver):
    """The relaxation: a slice is the steps up to the next check, and the check.

    Parameters
    ----------
    problem : Problem
        The problem.
    options : Options
        The options of the run.
    """

    name = RELAXATION
    number = 0

    def __init__(self, problem: Problem, options: Options) -> None:
        super().__init__(problem, options)
        self._numbers = self.tuning.of(PassNumbers)
        self._recalled, self._abandoned = True, False
        self._first: Floats | None = None  # λ to start from
        self._state: Any = None
        self._current: tuple[int, Floats] | None = None  # a step and its λ

    def begin(self, best: Best, share: Share, *, alone: bool) -> Board:
        """Make the method, from a warm start if there is one; initialise it if it is alone."""
        warm = self._warm = share.board.start
        self._best, self._method = best, self._new_method(warm)
        self._checks = PassChecks(best, self._method, self.options)
        self._at = self._start()
        if warm is not None:
            self._first, self._recalled = warm.lam, warm.result is None
        if alone:
            self.set_up(share.run_end)
        return Board(state=self.seen, entries={METHOD: self._method, ROUNDED: self._rounded})

    def _new_method(self, warm: WarmStart | None) -> Algorithm:
        """The method, on the CPU or on a GPU."""
        options, threads = self.options, self.problem.threads
        eta = self.problem.eta(options.eta)
        if eta is None and warm is not None:
            eta = warm.eta(options.method)
        if options.backend == "cpu":
            method = make(options.method, eta=eta, threads=threads)
        else:
            from softmap.methods.cuda.anneal import CudaAnneal  # imported late: it needs CuPy

            method = CudaAnneal(eta=eta, threads=threads, dtype=options.precision)
        return method.with_tuning(options.tuning)

    def plan(self, view: View) -> Plan | None:
        """Urgent for the first passes; and always if others wait for it, or are slow beside it.

        On a GPU, the LP is solved first: that takes a fraction of the time of any other subsolver.
        """
        if view.occasion is not Occasion.TURN:
            return None
        options = self.options
        alone = options.whole_run or not self._method.sweeping or options.goal == "lp"
        first = options.backend != "cpu" or self._at.done < self._numbers.urgent
        return Plan("passes and a check", urgent=alone or first, leads=True)

    def set_up(self, deadline: core.Deadline | None = None) -> bool:
        """Initialise the method, which takes the time of several passes; False if it is too late.

        Parameters
        ----------
        deadline : Deadline, optional
            The end of the run.
        """
        if self._state is None:
            model, seed = self.problem.model, self.options.seed
            try:
                if deadline is not None:
                    deadline.require()
                self._state = self._method.init(model, self._first, seed, deadline)
            except core.OutOfTime:
                return False
            self._hand_back_memory()
        return True

    def __call__(self, best: Best, share: Share) -> Outcome:
        begun = self.set_up(share.run_end)
        if not self._recalled:
            return self._recall(best)
        if not begun:
            why = share.budget.stop() or Status.TIME_LIMIT
            return Outcome(active=False, ran=False, ended=why)
        if status := self._checks.closed(best, self._at):
            return self._end(status)
        limit = self._advance(best, share)
        if limit is not None:
            share.store()
        seen = self._check(best, share, limit)
        return Outcome(active=limit is None, ended=limit, work=0, seen=seen)

    def abandon(self) -> None:
        """Give up the state of the method, which may be inconsistent; the counts are kept."""
        self._abandoned = True

    def _start(self) -> Progress:
        """The numbers of passes that have not begun."""
        at = Progress()
        at.next_check = self._checks.steps_to_next(self._best, at)
        return at

    # --- storing ----------------------------------------------------------------------------------

    def snapshot(self) -> Arrays:
        """Return the state of the method and the numbers of `Progress`.

        After a failure, the stored relaxation begins anew.
        """
        state, at = self._state, self._at
        if self._abandoned:
            state, at = (
                self._method.init(self.problem.model, None, self.options.seed),
                self._start(),
            )
        elif state is None and self.options.backend != "cpu":  # it would take seconds
            raise OSError("the GPU was not ready within the time limit")
        else:
            self.set_up()
            state = self._state
            self._method.undo_proposal(state)
        numbers = {name: np.array(value) for name, value in asdict(at).items()}
        return {f"state/{name}": np.asarray(value) for name, value in taken(state)} | numbers

    def restore(self, arrays: Arrays) -> None:
        self.set_up()
        put_back(self._state, arrays)
        numbers = asdict(self._at)
        self._at = Progress(**{name: like_number(name, arrays[name]) for name in numbers})
        self._recalled = True

    def seen(self) -> Seen:
        """The relaxation as it stands, without a check."""
        at, work = self._at, 0 if self._state is None else self._state.work
        lam = partial(self._lam_at, at.done)
        return Seen(at.done, work, self._sweeps, at.eta, lam, solved_at=at.solved_at)

    def _rounded(self) -> Any:
        """Labels that the method itself has rounded, or None."""
        none = self._state is None or self._abandoned
        return None if none else self._method.rounded(self._state)

    # --- an earlier result ------------------------------------------------------------------------

    def _end(self, status: Status) -> Outcome:
        seen = replace(self.seen(), last=True)
        return Outcome(active=False, ran=False, ended=status, work=0, seen=seen)

    def _recall(self, best: Best) -> Outcome:
        """Evaluate the earlier result with the costs of this model."""
        warm, model = self._warm, self.problem.model
        assert warm is not None
        self._recalled = True
        effort = self.tuning.of(SearchEffort)
        labels = LabelSearch(model, threads=self.problem.threads, effort=effort)
        warm.recall(self._checks.judge, labels, self.options.seed)
        ended = warm.ended(best, self.options)
        evidence = warm.evidence
        return Outcome(
            active=ended is None, ended=ended, work=0, seen=self.seen(), evidence=evidence
        )

    # --- steps ------------------------------------------------------------------------------------

    def _advance(self, best: Best, share: Share) -> Status | None:
        """Do the steps up to the next check, or to a limit; return the status of the limit.

        The next check is due earlier, but after at least one step, if the slice ends.
        """
        at, budget = self._at, share.budget
        if not self._state.work and self._first is None:
            self._start_coarse(share)
        if at.checked_at == at.done:  # labels of the last check are known by now
            at.next_check = at.done + self._checks.steps_to_next(best, at)
        while at.done < at.next_check:
            if status := budget.stop(at.done):
                return status
            if self._step(share):
                return budget.stop(at.done) or Status.TIME_LIMIT
            if share.left <= 0:
                break
        return budget.stop(at.done)

    def _step(self, share: Share) -> bool:
        """Do as many steps as there are until the next check or limit; whether it stopped one."""
        at, budget, model = self._at, share.budget, self.problem.model
        wanted = min(at.next_check, self.options.updates or at.next_check) - at.done
        star = int(model.graph.degree.max()) * self._method.compared
        each = 2 * model.m if self._method.sweeping else star
        count = min(wanted, max(1, budget.work_left // max(1, each)))
        if self._method.sweeping:  # a pass may be longer than the slice
            count = max(1, min(count, int(share.left / (budget.pass_seconds or math.inf))))
        # a run that is stored ends after a whole pass, so that it can be continued exactly
        end = self._end_of_passes(share) if self.options.checkpoint is None else None
        before, began = self._state.work, time.perf_counter()
        self._method.step(self._state, count, end)
        if end is not None and end.passed:
            return True  # the last pass was stopped: it helps the bound, and does not count
        if self._method.sweeping:
            budget.time_of_pass((time.perf_counter() - began) / count)
        budget.spend(self._state.work - before)
        at.done += count
        return False

    def _end_of_passes(self, share: Share) -> core.Deadline:
        """The end of the run, or that of the first pass, as no other has told how long one takes.

        The bound after a pass takes up to two thirds of its time.
        """
        first = self._method.sweeping and not share.budget.pass_seconds
        alone = first and self.options.backend == "cpu"
        return share.run_end.within(0.6 * share.run_left) if alone else share.run_end

    def _start_coarse(self, share: Share) -> None:
        """Warm-start from a coarsened model if enough passes will follow."""
        budget, pays = share.budget, self._numbers.coarse
        affordable = budget.work_left // max(1, 2 * self.problem.model.m)
        if min(self.options.updates or pays, affordable) >= pays:
            before = self._state.work
            self._method.start_coarse(self._state, share.deadline)
            budget.spend(self._state.work - before)
            self._hand_back_memory()

    # --- checks -----------------------------------------------------------------------------------

    def _check(self, best: Best, share: Share, limit: Status | None) -> Seen | None:
        """Check the current state of the method, and let it raise η."""
        at = self._at
        stopped = limit is Status.TIME_LIMIT or share.run_end.passed
        if at.checked_at == at.done and not stopped:
            return None  # nothing has changed since the last check
        at.checked_at, primal = at.done, best.point_cost
        cold, began = self._first is None, time.perf_counter()
        try:
            found, verdict = self._checks.check(best, self._state, at, share, limit, cold=cold)
        except core.OutOfTime:
            return replace(self.seen(), last=True)  # the best bound so far has to do
        if self._checks.judge.whole:  # the last check takes as long as any
            share.budget.time_of_check(time.perf_counter() - began)
        at.eta = found.eta
        solved = best.gaps().lp <= self.options.lp_gap
        at.solved_at = (at.solved_at or at.done) if solved else 0
        passes = at.done if self._method.sweeping else int(self._sweeps)
        at.stalled = int(at.has_stalled(self.tuning.of(Checks), passes, *best.gaps()))
        self._hand_back_memory()
        decoder = lambda: found.labels or found.lam  # noqa: E731 - λ is made only if needed
        nodes = (lambda: verdict.nodes[0]) if verdict.nodes else None
        return replace(
            self.seen(), smoothed=self._checks.smoothed(found), decoder=decoder, nodes=nodes,
            slack=verdict.slack, primal=primal, last=limit is not None,
        )  # fmt: skip

    # --- the current state ------------------------------------------------------------------------

    @property
    def _sweeps(self) -> float:
        """The work of the method, in passes over all half-edges."""
        return 0.0 if self._state is None else self._state.work / max(1, 2 * self.problem.model.m)

    def _lam_at(self, done: int) -> Floats:
        """The λ of the method after `done` steps, until the next one; computed once per step."""
        at, best = self._at, self._best
        if done != at.done:
            raise OptionError(
                "λ of a snapshot is lost when the run continues: read it in on_snapshot, or "
                "before the next step of iterate"
            )
        if self._state is None or (not done and self._first is None):
            return best.lam if self._first is None else self._first  # `best.lam` is still 0
        if self._current is None or self._current[0] != done:
            lam = self._method.restart_point(self._state)
            # λ of a diverging method of the paper may have overflowed
            self._current = done, lam if np.isfinite(lam).all() else best.lam
        return self._current[1]

    def _hand_back_memory(self) -> None:
        """Return freed memory of a large model to the system before more is allocated."""
        if self.problem.model.half_size > self.tuning.of(MemoryEstimate).returned_entries:
            core.give_back()

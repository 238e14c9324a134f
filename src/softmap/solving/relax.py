"""The relaxation stage: steps of one method, checks, and the switch to the next stage.

A check computes a bound, a point of the polytope and labels. Each takes as long as one to ten
passes, so that it is computed only if it may change something. The decision depends on passes and
gaps, not on time, unless the time limit is near.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.errors import InfeasibleModel
from softmap.labels import LabelSearch, cheapest, round_nodes
from softmap.labels.feasibility import find_feasible
from softmap.labels.improving import best_labelling
from softmap.labels.pricing import Priced, energy_of
from softmap.labels.search import Readable
from softmap.methods.base import Algorithm, Floats, Proposal, Verdict, make
from softmap.methods.policy import Ask, Checks, Schedule
from softmap.model import Model
from softmap.model.potentials import Potts, Projection, TruncatedLinear, TruncatedQuadratic
from softmap.relaxation.bounds import reduced_nodes
from softmap.relaxation.polytope import normalised
from softmap.solving.best import Best, Tolerances
from softmap.solving.budget import Budget, Share, Task
from softmap.solving.judge import Judge
from softmap.solving.memory import room_beside
from softmap.solving.options import Options
from softmap.solving.problem import Problem
from softmap.solving.stage import Stage
from softmap.solving.trace import StageName, Status

if TYPE_CHECKING:
    from softmap.solving.warm import WarmStart

__all__ = ["Background", "Check", "Passes", "Progress", "RelaxTuning", "Relaxation"]

Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class RelaxTuning:
    """Tuning numbers of the relaxation stage.

    Attributes
    ----------
    responsive : float
        Seconds between two checks of limits and Ctrl-C.
    coarse_pays : int
        Smallest number of remaining passes for coarse-to-fine initialisation to pay off.
    coarse_cost : int
        Time of the coarse solve, in passes.
    proving, proving_least : int
        If the labels solve the LP, further passes may prove them optimal: up to `proving` times the
        passes that solved it, and at least `proving_least` in total.
    exact_after, exact_size : int
        After `exact_after` passes, an LP of at most `exact_size` node states and edge pairs is
        solved by the interior-point method of HiGHS.
    wide : float
        Number of pairs of labels per message entry that the time estimate of a check assumes.
    lazy : int
        λ with more entries than this is lazily computed in results.
    """

    responsive: float = 0.1
    coarse_pays: int = 8
    coarse_cost: int = 4
    proving: int = 2
    proving_least: int = 100
    exact_after: int = 5_000
    exact_size: int = 50_000
    wide: float = 8.0
    lazy: int = 1 << 19


TUNING = RelaxTuning()
CHECKS = Checks()


@dataclass(kw_only=True)
class Progress(Schedule):
    """The state of the relaxation stage: plain numbers, so that it can be stored.

    Attributes
    ----------
    done : int
        Number of steps of the method so far.
    checked_at : int
        Step of the last check.
    solved_at : int
        Step at which the LP was solved (0: not yet).
    next_search : int
        Step of the next attempt of an exact search before the LP is solved.
    eta : float
        η of the last check.
    """

    next_search: int = 5
    done: int = 0
    checked_at: int = -1
    solved_at: int = 0
    eta: float = 1.0


class Check(NamedTuple):
    """The values of a check that `Best` does not keep: smoothed dual (None: unknown), slack."""

    smoothed: float | None = None
    slack: float = math.nan


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

    Attributes
    ----------
    seconds : float
        Its time; 0 while it runs.
    """

    def __init__(self, work: Callable[[], Found], *, threaded: bool) -> None:
        self._work = work
        self._found: Found | None = None
        self._error: BaseException | None = None
        self.seconds = 0.0
        self._thread = threading.Thread(target=self._run, name="softmap-labels")
        self._process = os.getpid()
        if threaded:
            self._thread.start()
        else:
            self._run()

    def _run(self) -> None:
        began = time.perf_counter()
        try:
            self._found = self._work()
        except BaseException as error:  # raised again by `found`
            self._error = error
        self.seconds = time.perf_counter() - began

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


class Relaxation:
    """The LP relaxation of a problem, solved by one method.

    Parameters
    ----------
    problem : Problem
    options : Options
    best : Best
        Keeps the best bounds, points and labels.
    budget : Budget
    warm : WarmStart, optional

    Attributes
    ----------
    algorithm : Algorithm
        The method.
    state : State
        Its state.
    judge : Judge
    labels : LabelSearch
    at : Progress
    """

    def __init__(
        self,
        problem: Problem,
        options: Options,
        best: Best,
        budget: Budget,
        warm: WarmStart | None = None,
    ) -> None:
        self.problem, self.options, self.best, self.budget = problem, options, best, budget
        eta = problem.eta(options.eta)
        if eta is None and warm is not None:
            eta = warm.eta(options.method)
        self.algorithm = _method(options, eta, problem.threads)
        budget.leave_out(self.algorithm.uncounted)
        if not problem.model.cost_sizes.largest:  # all costs are 0: λ = 0 is optimal
            best.offer_lam(best.lam)
        self.at = Progress()
        self.at.next_check = self._interval()
        self._first = None if warm is None else warm.lam
        self._hurried = False
        self._pending: Background[Priced] | None = None
        self._searched_at = -1  # step at which the last background search began
        self._restart: tuple[int, Floats] | None = None

    # --- set-up -----------------------------------------------------------------------------------

    def set_up(self) -> None:
        """Initialise the method, unless the time limit would be reached before the first pass ends.

        Without the method, the result of the run has the labels of lowest unary cost and the bound
        of λ = 0.
        """
        budget = self.budget
        if budget.time_limit is not None and self.options.backend == "cpu":
            self._guess_times()
            needed = Task.SETUP, Task.STEP, Task.BRIEF, Task.FINISH
            if budget.left <= 0 or not budget.fits(*needed):
                budget.note(Task.FINISH, 0.0)  # without messages, the result is soon assembled
                return
        self.state  # noqa: B018 - made here

    @property
    def begun(self) -> bool:
        """Whether the method is initialised."""
        return "state" in self.__dict__

    @cached_property
    def state(self) -> Any:
        """The state of the method, initialised lazily; that takes the time of several passes."""
        state = self.algorithm.init(self.problem.model, self._first, self.options.seed)
        self._hand_back_memory()
        return state

    @cached_property
    def judge(self) -> Judge:
        """The judge of this run: the method's own judge, if it has one."""
        found: Judge = self.algorithm.judge_by(Judge(self.best))
        return found

    @cached_property
    def labels(self) -> LabelSearch:
        """The search for labels."""
        model, options = self.problem.model, self.options
        room = room_beside(model, options.memory_limit)
        order = partial(self.algorithm.decode_order, model)
        return LabelSearch(model, order, room, self.problem.threads)

    # --- current state ----------------------------------------------------------------------------

    @property
    def sweeps(self) -> float:
        """The work of the method, in passes over all half-edges."""
        return float(self.state.work / max(1, 2 * self.problem.model.m)) if self.begun else 0.0

    @property
    def tolerances(self) -> Tolerances:
        """The requested tolerances."""
        return Tolerances(self.options.lp_gap, self.options.gap)

    def closed(self) -> Status | None:
        """Return the status if a gap is within its tolerance.

        The LP gap does not count while passes may still prove the labels optimal, or while labels
        are searched for and a device has nothing else to do.
        """
        if self.options.whole_run:
            return None
        status = self.best.met(self.tolerances)
        searching = self._meanwhile and self._pending is not None
        return None if status is Status.LP_GAP and (searching or self._proving()) else status

    def _proving(self) -> bool:
        """Whether the labels are an LP solution, so that further passes may prove them optimal."""
        best, at = self.best, self.at
        if best.gaps().lp > self.options.lp_gap or not best.energy <= best.point_cost:
            return False
        asked = self.algorithm.sweeping and self.options.goal != "lp"
        return asked and at.done < max(TUNING.proving * at.solved_at, TUNING.proving_least)

    def stalled(self) -> Status | None:
        """Return STALLED if neither gap has improved for long; never with a number of updates."""
        sweeping = self.algorithm.sweeping
        passes = self.at.done if sweeping else int(self.sweeps)
        stalled = self.at.stalled(CHECKS, passes, *self.best.gaps())
        stalled = stalled or not self.problem.model.m  # without edges, λ is empty
        return Status.STALLED if stalled and not self.options.whole_run else None

    def search_due(self) -> bool:
        """Whether to attempt an exact search now (at growing intervals)."""
        at = self.at
        if not self.algorithm.sweeping or at.done < at.next_search:
            return False
        at.next_search = 4 * at.done
        return True

    def restart_point(self) -> Floats:
        """The current λ of the method, computed once per step."""
        at, best = self.at, self.best
        if not self.begun or (not at.done and self._first is None):
            return best.lam if self._first is None else self._first  # `best.lam` is still 0
        if self._restart is None or self._restart[0] != at.done:
            lam = self.algorithm.restart_point(self.state)
            # λ of a diverging method of the paper may have overflowed
            self._restart = at.done, lam if np.isfinite(lam).all() else best.lam
        return self._restart[1]

    def resume(self, numbers: dict[str, Any]) -> None:
        """Restore the counts of a stored run; `numbers` are the fields of `Progress`."""
        self.at = Progress(**numbers)

    # --- steps ------------------------------------------------------------------------------------

    def advance(self, share: Share) -> Status | None:
        """Do the steps up to the next check, or to a limit; return the status of the limit.

        The next check is due earlier, but after at least one step, if the time slice ends.
        """
        at, budget = self.at, self.budget
        if budget.left <= 0 or not self.begun:
            return Status.TIME_LIMIT
        if budget.time_limit and not budget.known(Task.STEP) and not self.algorithm.frugal:
            self._guess_times()
        if not self.state.work and self._first is None:
            self._start_coarse()
        while at.done < at.next_check:
            if status := budget.stop(at.done) or self._out_of_time():
                return status
            self._step()
            if share.left <= 0:
                break
        return budget.stop(at.done)

    def hurry(self) -> bool:
        """Switch to brief checks near the time limit; return whether a pass and a check still fit.

        This uses the time that was reserved for a thorough check after the next pass.
        """
        self._hurried = True
        return self.begun and not self.budget.stop(self.at.done) and not self._out_of_time()

    def _closing(self) -> tuple[Task, ...]:
        """The tasks after the last step."""
        return (Task.BRIEF, Task.FINISH) if self._hurried else self.budget.closing()

    def _step(self) -> None:
        """Do as many steps as fit between two checks of limits."""
        at, budget, graph = self.at, self.budget, self.problem.model.graph
        sweeping = self.algorithm.sweeping
        count = 1 if sweeping else max(1, self.problem.model.n // 10)
        if at.done > 0 and budget.known(Task.STEP):
            count = max(count, budget.fitting(Task.STEP, TUNING.responsive))
        wanted = min(at.next_check, self.options.updates or at.next_check) - at.done
        dearest = 2 * self.problem.model.m if sweeping else int(graph.degree.max())
        count = budget.affordable(dearest, min(count, wanted))
        if budget.time_limit is not None:
            fitting = budget.fitting(Task.STEP, budget.left, *self._closing())
            count = max(1, min(count, fitting))
        before = self.state.work
        with budget.timed(Task.STEP, count):
            self.algorithm.step(self.state, count)
        budget.spend(self.state.work - before)
        at.done += count

    def _interval(self) -> int:
        """The number of steps until the next check."""
        options, at = self.options, self.at
        if options.whole_run and options.updates:
            return max(1, options.updates // 40)
        if self.algorithm.sweeping:
            asked = max(options.lp_gap, options.gap, 1e-12)
            return CHECKS.passes_to_next(at.done, self.best.gaps().lp / asked)
        return max(2 * self.problem.model.m, at.done // 5)

    def _guess_times(self) -> None:
        """Estimate the time of set-up, steps and checks from one evaluation of the bound.

        If the estimate leaves no time for a step, a second evaluation excludes a slow first one.
        """
        if not self.begun:
            self.budget.guess_setup(self.problem.model)
        steps = 1 if self.algorithm.sweeping else 2 * self.problem.model.m
        width, threads = _label_width(self.problem.model), self.problem.threads
        for _ in range(2):
            if self.budget.left <= 0:  # no time left to estimate the time of a step
                return
            self.budget.guess(lambda: self.best.offer_lam(self.best.lam), steps, width, threads)
            if not self._out_of_time() or self.budget.expected(Task.BOUND) > TUNING.responsive:
                return

    def _start_coarse(self) -> None:
        """Warm-start from a coarsened model if enough passes will follow."""
        options, budget = self.options, self.budget
        passes = [options.updates or TUNING.coarse_pays]
        if options.max_work is not None:
            passes.append(budget.affordable(2 * self.problem.model.m, TUNING.coarse_pays))
        if options.time_limit is not None:
            fitting = budget.fitting(Task.STEP, budget.left, Task.BRIEF, Task.FINISH)
            passes.append(fitting - TUNING.coarse_cost)
        if min(passes) >= TUNING.coarse_pays:
            before = self.state.work
            self.algorithm.start_coarse(self.state, budget.interrupts.within(budget.left))
            budget.spend(self.state.work - before)
            self._hand_back_memory()

    def _out_of_time(self) -> Status | None:
        """Whether the next step and the closing tasks would exceed the time limit."""
        if self.budget.time_limit is None or self.budget.fits(Task.STEP, *self._closing()):
            return None
        return Status.TIME_LIMIT

    def _hand_back_memory(self) -> None:
        """Return freed memory of a large model to the system before more is allocated."""
        if self.problem.model.half_size > TUNING.lazy:
            core.give_back()

    # --- checks -----------------------------------------------------------------------------------

    def check(self, *, last: bool = False) -> Check:
        """Check the current state of the method, and let it raise η.

        Near the time limit only the bound is computed, and labels are decoded quickly or not at
        all.
        """
        self.take_labels(wait=last or None)
        at, budget = self.at, self.budget
        thorough = budget.fits(Task.CHECK, Task.FINISH)
        if at.checked_at == at.done and (not thorough or at.decoded_at == at.done):
            return Check()  # nothing has changed since the last check
        before, at.checked_at = max(at.checked_at, 0), at.done
        if not self.begun or (not at.done and not thorough):
            found = self._least_check()
        elif not thorough or (not last and self._hasty()):
            found = self._brief_check(thorough=thorough)
        else:
            found = self._whole_check(before, last=last)
        solved = self.best.gaps().lp <= self.options.lp_gap
        at.solved_at = (at.solved_at or at.done) if solved else 0
        at.next_check = at.done + self._interval()
        self._hand_back_memory()
        return found

    def least_check(self) -> Check:
        """Check an aborted run: use only λ of the method."""
        self.take_labels()
        self.at.checked_at = self.at.done
        return self._least_check()

    def _whole_check(self, before: int, *, last: bool) -> Check:
        """Compute a bound, a point, and labels if they are due."""
        at, best = self.at, self.best
        cost_before = best.point_cost
        with self.budget.timed(Task.CHECK):
            proposal = self._proposal(last=last)
            at.eta = proposal.eta
            verdict = self.judge.look(proposal)
        self._ask_for_labels(proposal, verdict, cost_before, last=last)
        if not last and self._hands_over(before):
            self._solve_exactly()
        labelled = best.energy <= best.point_cost
        self.algorithm.observe(self.state, replace(verdict, labelled=labelled))
        return Check(proposal.smoothed, verdict.slack)

    def _hasty(self) -> bool:
        """Whether to skip the point in an early check: labels give a primal value, too."""
        early = self.algorithm.sweeping and self.at.done <= CHECKS.hasty and self._first is None
        return early and self.options.goal == "lp" and not self.algorithm.frugal

    def _proposal(self, *, last: bool) -> Proposal:
        ratio = self.best.gaps().lp / max(self.options.lp_gap, 1e-300)
        tight = self.best.energy <= self.best.point_cost < math.inf
        ask = self.at.ask(CHECKS, self.at.done, lp_ratio=ratio, tight=tight, last=last)
        return self._sound(self.algorithm.answer(self.state, ask))

    def _sound(self, seen: Proposal) -> Proposal:
        """Return the proposal, or the best λ so far if a diverging method has overflowed."""
        if self.algorithm.sweeping or np.isfinite(seen.lam).all():
            return seen
        return Proposal(self.best.lam, seen.eta)

    def _brief_check(self, *, thorough: bool) -> Check:
        """Check without a point of the polytope: the bound, and decoded labels."""
        best, budget = self.best, self.budget
        proposal = self._sound(self.algorithm.answer(self.state, Ask.BOUND))
        self.at.eta = proposal.eta
        self.judge.bound(proposal)
        if proposal.nodes:
            best.offer_labels(
                round_nodes(self.problem.model, proposal.nodes[0], self.problem.threads)
            )
        quickly = proposal.labels is not None and budget.fits(Task.STEP, Task.FINISH)
        if (thorough or quickly) and not self.closed():
            best.offer_labels(self.labels.read(_readable(proposal)))
        if not best.found:
            self._read_labels(proposal.lam if self.at.done else None)
        return Check()

    def _least_check(self) -> Check:
        """Compute the bound of the current λ, and labels if there are none yet."""
        best, done = self.best, self.at.done
        if done:
            best.offer_lam(self.restart_point())
        elif not math.isfinite(best.lp_bound):
            best.offer_zero()
        if best.found:
            return Check()
        with self.budget.timed(Task.READ):
            self._read_labels(best.lam if done else None)
        timed = self.budget.time_limit is not None  # else the run was interrupted
        if timed and best.found and self.budget.fits(Task.MOVES, Task.FINISH):
            best.offer_labels(*best_labelling(self.problem.model, [best.labels]))
        return Check()

    def _hands_over(self, before: int) -> bool:
        """Whether to solve a small LP, still open after very many passes, by an exact solver."""
        passed = self.algorithm.exact_finish and before < TUNING.exact_after <= self.at.done
        if not passed or self.closed():
            return False
        model = self.problem.model
        size = model.unary.size + int(model.edge_offset[-1])
        return size <= TUNING.exact_size and not len(model.auxiliaries)

    def _solve_exactly(self) -> None:
        """Solve the LP by an interior-point method; the judge evaluates its solution."""
        from softmap.relaxation import lp  # imported late: few runs need it

        model, left = self.problem.model, self.budget.left
        # always one thread: the rounding of HiGHS depends on the number of threads
        limit = None if math.isinf(left) else max(0.0, left)
        found = lp.solve(model, "ipm", time_limit=limit, threads=1)
        if found.status == "Optimal":
            nodes = np.maximum(found.node_marginals, 0.0)
            mass = np.add.reduceat(nodes, model.node_offset[:-1])
            nodes /= np.repeat(mass, model.num_labels)
            self.judge.solution(found.lam, nodes)
            self._find_labels(found.lam, nodes, self.best.point_cost)

    # --- labels -----------------------------------------------------------------------------------

    def _ask_for_labels(
        self, seen: Proposal, verdict: Verdict, before: float, *, last: bool
    ) -> None:
        """Search for labels at growing intervals, at the end, and until some are feasible.

        Intervals grow more slowly if only labels are missing, and not at all while passes try to
        prove them optimal. λ is computed only if needed: it may have to be copied from a device.

        Parameters
        ----------
        seen : Proposal
        verdict : Verdict
        before : float
            Cost of the best point before this check.
        last : bool
            Whether this is the last check.
        """
        options, at, best = self.options, self.at, self.best
        alone = options.goal == "lp"
        if alone and self.algorithm.frugal:
            return
        factor = 2 if best.gaps().lp <= CHECKS.hope * options.gap else 4
        wanted = not alone or self._labels_may_be_best()
        due = at.labels_due(at.done, factor=factor, wanted=wanted, last=last)
        if due or not best.found:
            wait = last or self._decisive()
            self._find_labels(_readable(seen), verdict.nodes[0], before, wait=wait)
        if due:
            return
        pointless = alone and best.gaps().map <= options.lp_gap
        wait = last or not self._meanwhile
        # beside passes that go on, one search from messages that solve the LP is enough
        pointless |= not wait and self._searched_at >= (at.solved_at or at.done)
        if self._proving() or (self.closed() and not pointless):
            self._find_labels(_readable(seen), verdict.nodes[0], best.point_cost, wait=wait)

    @property
    def _meanwhile(self) -> bool:
        """Whether passes go on until a search for labels ends, however long that takes.

        Results then depend on the timing, so that only runs with a time limit do so.
        """
        timed = self.budget.time_limit is not None
        return timed and self.algorithm.leaves_cores and self.problem.threads > 1

    def _labels_may_be_best(self) -> bool:
        """Whether labels are, or may become, the best primal point."""
        best = self.best
        gap = best.point_cost - best.lp_bound
        return not self.at.decoded_at or not best.energy - best.lp_bound > CHECKS.rivals * gap

    def _decisive(self) -> bool:
        """Whether the search must finish before further passes: first labels, or a possible end."""
        options = self.options
        if self._meanwhile:
            return False
        if not self.best.found or not self.algorithm.sweeping or options.goal == "lp":
            return True
        return self.best.gaps().lp <= CHECKS.hope * max(options.lp_gap, options.gap)

    def _find_labels(
        self, lam: Readable, nodes: Floats, primal: float, *, wait: bool = True
    ) -> None:
        """Search for labels, starting from λ; in the background unless `wait`.

        Parameters
        ----------
        lam : float64 array or function
            λ, or a function that returns decoded labels.
        nodes : float64 or float32 array
            Node marginals.
        primal : float
            Cost of a point, which tells how much of the gap the LP may still close.
        wait : bool, default True
            Whether to block until the search is done.
        """
        best, budget, model = self.best, self.budget, self.problem.model
        if not budget.fits(Task.LABELS, Task.FINISH):
            if not best.found:
                best.offer_labels(round_nodes(model, nodes))
            return
        # with goal="lp", labels are decoded and improved once
        work = 0 if self.options.goal == "lp" else self.state.work
        if not wait and not best.found:
            best.offer_labels(round_nodes(model, nodes, self.problem.threads))
        known: Priced = best.labels, best.energy
        if not wait:
            if self._pending is None:
                # passes of a device do not tell how many tree moves the cores have time for
                left = budget.left - budget.expected(Task.FINISH) if self._meanwhile else math.inf
                end = budget.interrupts.within(left)
                search = self.labels.later(known, lam, nodes, best.lp_bound, primal, work, end)
                self._pending = Background(search, threaded=self.problem.threads > 1)
                self._searched_at = self.at.done
            return
        with budget.timed(Task.LABELS):
            best.offer_labels(*self.labels.look(known, lam, nodes, best.lp_bound, primal, work))
            self._hand_back_memory()
            if not best.found:
                self._find_feasible(nodes)

    def take_labels(self, *, wait: bool | None = None) -> bool:
        """Offer the outcome of the background search; return whether it is an improvement.

        Parameters
        ----------
        wait : bool, optional
            Whether to block until the search ends or the time limit is reached; otherwise an
            unfinished search continues. By default, block unless passes leave the cores to it.
        """
        pending = self._pending
        if pending is None:
            return False
        wait = not self._meanwhile if wait is None else wait
        timeout = None if math.isinf(self.budget.left) else max(0.0, self.budget.left)
        found = pending.found(timeout if wait else 0.0)
        if found is None:
            return False
        self._pending = None
        self.budget.note(Task.LABELS, pending.seconds)
        return self.best.offer_labels(*found)

    def pending_labels(self) -> NDArray[np.int64] | None:
        """Return the outcome of the background search, for a checkpoint; it stays pending."""
        found = None if self._pending is None else self._pending.found()
        return None if found is None else found[0]

    def resume_pending(self, labels: NDArray[np.int64]) -> None:
        """Restore the labels of a stored background search, for the next check."""
        priced = labels, energy_of(self.problem.model, labels, self.problem.threads)
        self._pending = Background(lambda: priced, threaded=False)

    def _find_feasible(self, nodes: Floats) -> None:
        """Search for feasible labels, for a fraction of the time of the passes."""
        model, best, work = self.problem.model, self.best, self.state.work
        with suppress(InfeasibleModel):  # the bound of the relaxation is useful all the same
            found = find_feasible(
                model,
                normalised(model, nodes),
                given=self.problem.given,
                deadline=self.budget.interrupts.within(self.budget.left),
                work=work // 2,
            )
            if found is not None:
                priced = found, energy_of(model, found, self.problem.threads)
                best.offer_labels(*self.labels.improve(priced, best.lp_bound, work))

    def _read_labels(self, lam: Floats | None) -> None:
        """Offer the labels of least reparametrised cost, for each variable separately; λ or 0."""
        model, threads = self.problem.model, self.problem.threads
        theta = model.unary if lam is None else reduced_nodes(model, lam, threads)
        self.best.offer_labels(cheapest(model, theta))


class Passes(Stage):
    """The relaxation as a stage: a slice is the steps up to the next check, and the check.

    Parameters
    ----------
    relaxation : Relaxation
        The relaxation.
    store : function
        Stores the run. It is called before the check of a limit, which a run without this limit
        does not make.

    Attributes
    ----------
    status : Status or None
        Why there are no more passes.
    hurried : bool
        Whether the time limit is so near that checks are brief.
    found : Check
        The last check.
    """

    name = StageName.RELAX

    def __init__(self, relaxation: Relaxation, store: Callable[[], object]) -> None:
        self.relaxation, self._store = relaxation, store
        self.status: Status | None = None
        self.limited, self.hurried, self.found = False, False, Check()
        super().__init__(relaxation.problem, relaxation.options)

    def applies(self) -> bool:
        return True

    def fits(self, budget: Budget) -> bool:
        return True  # `advance` estimates whether a step and a check fit

    def least(self, budget: Budget) -> float:
        return budget.expected(Task.STEP, Task.CHECK)

    def delay(self, budget: Budget) -> float:
        return 2 * self.least(budget)  # so that checks take less than half of the time

    def __call__(self, best: Best, share: Share) -> None:
        relaxation = self.relaxation
        limit = relaxation.advance(share)
        self.limited = limit is not None
        if self.limited and not self.hurried:
            self._store()
        self.found = relaxation.check(last=self.limited)
        if limit is Status.TIME_LIMIT and relaxation.hurry():
            limit, self.hurried = None, True
        self.end(relaxation.closed() or limit or relaxation.stalled())

    def end(self, status: Status | None) -> None:
        """End the passes for a reason; None continues them."""
        self.status, self.active = status, status is None

    @property
    def resumable(self) -> bool:
        """Whether a run that is stored now continues as this one does."""
        return not self.limited and not self.hurried


def _method(options: Options, eta: float | None, threads: int) -> Algorithm:
    """Return the method, on the CPU or on a GPU."""
    if options.backend == "cpu":
        return make(options.method, eta=eta, threads=threads)
    from softmap.methods.cuda.anneal import (
        CudaAnneal,  # imported late: it needs CuPy
    )

    return CudaAnneal(eta=eta, threads=threads, dtype=options.precision)


def _readable(seen: Proposal) -> Readable:
    """Return what labels are decoded from: the method's own decoder, or λ."""
    return seen.labels or seen.lam


def _label_width(model: Model) -> float:
    """Return the relative time of a check: without a closed form it couples all pairs."""
    formula = Potts | Projection | TruncatedLinear | TruncatedQuadratic
    spans = [(a, b) for a, b, each in model.groups() if not isinstance(each, formula)]
    pairs = sum(int(model.edge_offset[b] - model.edge_offset[a]) for a, b in spans)
    return max(1.0, pairs / max(1, model.half_size) / TUNING.wide)

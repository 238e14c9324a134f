"""The record of a run: its trace, log and checkpoints."""

from __future__ import annotations

import logging
import math
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from softmap.drive.assembly import Spent, assembled, by_relaxation, cautious, primal_back
from softmap.errors import CheckpointError, CheckpointWarning, debugging
from softmap.labels.energies import energy_of
from softmap.later import display
from softmap.model import Model
from softmap.run.best import Best
from softmap.run.budget import Budget
from softmap.run.failures import StageFailure
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.result import Result
from softmap.run.subsolver import Seen
from softmap.run.trace import Row, Snapshot, Status, Trace

__all__ = ["LOG", "Checkpoints", "Record", "Watcher", "watcher"]

LOG = logging.getLogger("softmap")
LOG.addHandler(logging.NullHandler())


class Record:
    """Writes the trace: one row per check of the relaxation and per slice of another subsolver.

    Parameters
    ----------
    problem : Problem
        The problem.
    best : Best
        The best values so far.
    budget : Budget
        The budget of the run.
    trace : Trace
        The rows of an earlier part of the run, or none.

    Attributes
    ----------
    problem : Problem
        The problem.
    trace : Trace
        The rows, in the user's units.
    labels : int64 array
        The labelling of lowest energy in the user's units. It may differ from the run's best
        labelling if costs are tiny, because conversion to the user's units rounds them.
    energy : float
        The energy of `labels` in the user's units.
    """

    def __init__(self, problem: Problem, best: Best, budget: Budget, trace: Trace) -> None:
        self.trace = trace
        self.labels, self.energy = best.labels, math.inf
        self.problem, self._best, self._budget = problem, best, budget
        self._evaluated: Any = None

    def note(self, name: str, seen: Seen, *, check: bool = False) -> Snapshot:
        """Add a row with the current values; return it as a snapshot.

        Parameters
        ----------
        name : str
            The name of the subsolver that has run.
        seen : Seen
            The relaxation as it stands.
        check : bool, default False
            Whether the row is that of a check of the relaxation.
        """
        problem, best = self.problem, self._best
        self.evaluate()
        energy = self.energy
        primal = primal_back(problem, best.primal, best.energy, energy)
        if len(self.trace):  # conversion to the user's units may have rounded an earlier row
            primal = min(primal, self.trace[-1].primal)
        smoothed = math.nan
        if check and seen.smoothed is not None:
            smoothed = problem.cost_back(seen.smoothed)
        row = Row(
            work=self._budget.work,
            sweeps=seen.sweeps,
            seconds=self._budget.seconds,
            eta=problem.eta_back(seen.eta),
            bound=problem.bound_back(best.bound),
            smoothed=smoothed,
            primal=primal,
            energy=energy,
            slack=seen.slack if check else math.nan,
            stage=name,
            lp_bound=problem.bound_back(best.lp_bound),
        )
        self.trace.rows.append(row)
        LOG.debug("%s", row)
        lam = lambda: problem.lam_back(seen.lam()).copy()  # noqa: E731
        return Snapshot(problem.posed, row, self.labels, lam, seen.done)

    def complete(self, seen: Seen) -> bool:
        """Whether the last row has the present values."""
        if not len(self.trace):
            return False
        self.evaluate()
        row, bound = self.trace[-1], self.problem.bound_back(self._best.bound)
        present = (self._budget.work, seen.sweeps, bound, self.energy)
        return (row.work, row.sweeps, row.bound, row.energy) == present

    def result(
        self,
        options: Options,
        seen: Seen,
        status: Status,
        failures: tuple[StageFailure, ...] = (),
    ) -> Result:
        """Return the result of the run, which claims no more than is proved.

        Parameters
        ----------
        options : Options
            The options of the run.
        seen : Seen
            The relaxation as it stands at the end.
        status : Status
            Why the run has ended.
        failures : tuple of StageFailure, optional
            The subsolvers that have failed.
        """
        self.evaluate()
        budget, problem = self._budget, self.problem
        spent = Spent(budget.work, seen.sweeps, budget.seconds, budget.setup_seconds)
        priced = self.labels, self.energy
        whole = assembled(
            options, self._best, priced, self.trace, spent, seen.lam, status, failures
        )
        plain = by_relaxation(whole)
        kept = plain is whole and problem.given is problem.scaled
        result = whole if kept else cautious(plain)
        LOG.info("%r after %.3g s: %s", result, result.seconds, result.status)
        return result

    def evaluate(self) -> None:
        """Compute the energy of the best labels in the user's units if the labels have changed."""
        best, given = self._best, self.problem.given
        if best.labels is self._evaluated:
            return
        same = given is self.problem.scaled or not best.found
        energy = best.energy if same else energy_of(given, best.labels, self.problem.threads)
        # not before: without memory for the energy, it is tried again
        self._evaluated = best.labels
        if energy <= self.energy or not math.isfinite(self.energy):
            self.labels, self.energy = best.labels, energy


class Checkpoints:
    """Stores a run at intervals, at its end and when it is interrupted.

    Parameters
    ----------
    path : str, Path or None
        The file; None stores nothing.
    write : function
        Writes the run to a path.
    own : bool, default False
        Whether the file at this path is of an earlier part of the run.
    """

    interval: ClassVar[float] = 30.0  # seconds between two checkpoints

    def __init__(
        self, path: str | Path | None, write: Callable[[Path], object], *, own: bool = False
    ) -> None:
        self._path = None if path is None else Path(path)
        self._write, self._own = write, own
        self._saved, self._whole = time.perf_counter(), True

    def suspend(self) -> None:
        """Disable checkpoints: a resumed run could not continue from this point."""
        self._whole = False

    def allow(self) -> None:
        """Enable checkpoints again."""
        self._whole = True

    def save_if_due(self, *, at_end: bool) -> None:
        """Store the run if checkpoints are enabled, and it has ended or the interval has passed."""
        due = at_end or time.perf_counter() - self._saved > self.interval
        if self._path is not None and self._whole and due:
            self.save()

    def save(self) -> None:
        """Store the run. If that fails, the last checkpoint remains and the run continues."""
        self._own = self._written(self._write) or self._own

    def add(self, write: Callable[[Path], object]) -> None:
        """Let `write` add to the file, if it is of this run."""
        if self._own:
            self._written(write)

    def _written(self, write: Callable[[Path], object]) -> bool:
        """Call `write` with the path; return whether it succeeded."""
        if self._path is None:
            return False
        try:
            write(self._path)
        except Exception as error:
            if debugging() and not isinstance(error, OSError | MemoryError | CheckpointError):
                raise
            reason = getattr(error, "reason", None) or str(error) or "out of memory"
            warnings.warn(
                f"{self._path}: the checkpoint cannot be written ({reason}); the run continues, "
                "and an earlier checkpoint is unchanged",
                CheckpointWarning,
                stacklevel=3,
            )
            return False
        finally:
            self._saved = time.perf_counter()
        return True


class Watcher(NamedTuple):
    """Callbacks that display a run: one for each snapshot, one for the result."""

    show: Callable[[Snapshot], Any]
    end: Callable[[Result], Any]
    close: Callable[[], Any]


def watcher(model: Model, options: Options) -> Watcher:
    """Log the start of a run; return its display: a progress bar, lines, or nothing."""
    LOG.info("solving %r by %s, goal %s", model, options.method, options.goal)
    if not options.verbose and not options.progress:
        return Watcher(lambda snapshot: None, lambda result: None, lambda: None)
    limits = {"time_limit": options.time_limit, "gap": options.gap}
    watching = display("progress.Watching")(
        verbose=options.verbose, progress=options.progress, limits=limits
    )
    return Watcher(watching, watching.end, watching.close)

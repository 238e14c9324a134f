"""Marginal MAP: the labels of some variables that weigh most, summed over the others."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.arguments import count, not_negative, time_limit_of, wrong
from softmap.errors import InfeasibleModel, ModelError, OptionError, shown
from softmap.methods.marginals.blocks import BlockMeanField
from softmap.methods.marginals.cases import SEARCH_ENTRIES, SEARCHED, Cases, Labelled
from softmap.methods.marginals.exact import exact_log_partition
from softmap.methods.marginals.tables import LogTables
from softmap.model import Model, checked_model
from softmap.relaxation.consistency import tighten
from softmap.relaxation.gaps import PROVED, Gaps
from softmap.run.failures import Failures
from softmap.run.interrupts import Interrupts
from softmap.run.trace import Status

__all__ = ["MarginalMap", "marginal_map"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MarginalMap(Gaps):
    """Labels of the maximised variables, and bounds on their free energy.

    The free energy of labels of the maximised variables is `-log` of the sum of `exp(-energy)` over
    all labels of the others. Both bounds are computed with rounding errors included, but there is
    no proof that `softmap.verify` could check: they are stated.

    Attributes
    ----------
    model : Model
    variables : int64 array
        The maximised variables, in increasing order.
    labels : int64 array
        Their labels, in the same order; no answer if `found` is False.
    energy : float
        The free energy of the labels is at most this; +inf if `found` is False.
    bound : float
        The free energy of all labels is at least this.
    status : Status
        Why the search stopped.
    seconds : float
        How long it took.
    """

    model: Model
    variables: Ints
    labels: Ints
    energy: float
    bound: float
    status: Status
    seconds: float

    @property
    def found(self) -> bool:
        """Whether the labels have a sum that is proved to be positive."""
        return self.energy < math.inf

    @property
    def stated(self) -> bool:
        """True: there is no proof to check."""
        return True

    def as_dict(self) -> dict[Any, Any]:
        """Return the labels as a mapping from maximised variables to states, by name if named."""
        pairs = zip(self.variables.tolist(), self.labels.tolist(), strict=True)
        names = self.model.names
        if names is None:
            return dict(pairs)
        return {names.variables[i]: names.state(i, label) for i, label in pairs}

    def __getitem__(self, variable: Hashable) -> Any:
        """Return the state of a maximised variable, given by name (by number if unnamed)."""
        states = self.as_dict()
        if variable not in states:
            raise ModelError(f"{shown(variable)} is not among the maximised variables")
        return states[variable]

    def __repr__(self) -> str:
        return (
            f"MarginalMap(energy={self.energy:.10g}, bound={self.bound:.10g}, "
            f"status={self.status.name})"
        )


def marginal_map(
    model: Model,
    sum_over: Sequence[Hashable] | None = None,
    *,
    query: Sequence[Hashable] | None = None,
    gap: float = 1e-6,
    time_limit: float | None = None,
    table: int = SEARCHED,
    entries: int = SEARCH_ENTRIES,
) -> MarginalMap:
    """Maximise over some variables the sum of `exp(-energy)` over the others.

    Upper bounds on sums and maxima are those of
    weighted mini-buckets; a best-first search fixes the labels of the maximised variables.

    Parameters
    ----------
    model : Model
    sum_over : sequence, optional
        The variables that are summed over, by number or by name. The others are maximised.
    query : sequence, optional
        The variables that are maximised, in place of `sum_over`; the others are summed over.
    gap : float, default 1e-6
        Gap between `energy` and `bound`, relative to `max(1, |bound|)`, that ends the search.
    time_limit : float, optional
        Seconds after which the best labels and bound so far are returned. Without one the search
        ends at the gap, or after `entries`.
    table : int, default 256
        Largest table of a mini-bucket. Larger tables give better bounds, but fewer cases.
    entries : int, optional
        Largest number of table entries of an exact inner sum, and of the whole search if there is
        no time limit.

    Returns
    -------
    MarginalMap

    Raises
    ------
    InfeasibleModel
        No labelling has finite cost.

    Examples
    --------
    >>> import softmap
    >>> model = softmap.generators.potts_grid(4, 4, 3, seed=1)
    >>> found = softmap.marginal_map(model, sum_over=range(8))
    >>> found.bound <= found.energy, found.status.name
    (True, 'OPTIMAL')
    """
    begin = time.perf_counter()
    tight = tighten(checked_model(model, "marginal_map").network)
    seconds = time_limit_of(time_limit)
    gap, entries = not_negative("gap", gap), count("entries", entries, 1)
    variables = _maxima(model, sum_over, query)
    search = _MaxSearch(LogTables.of(tight, 1.0), variables, count("table", table, 1), entries, gap)
    with Interrupts() as interrupts:
        most = entries if math.isinf(seconds) else math.inf
        left = max(0.0, seconds - (time.perf_counter() - begin))
        status = search.run(interrupts.within(left), most)
    if status is Status.TIME_LIMIT and interrupts.noted:
        status = Status.INTERRUPTED
    energy = 0.0 - search.lower
    bound = min(0.0 - search.upper, energy)
    took = time.perf_counter() - begin
    return MarginalMap(model, variables, search.labels, energy, bound, status, took)


def _maxima(model: Model, sum_over: Any, query: Any) -> Ints:
    """Return the variables that are not summed over, in increasing order."""
    if (sum_over is None) == (query is None):
        raise OptionError("expected either sum_over, the variables to sum over, or query, the rest")
    summed = np.zeros(model.n, bool)
    if query is None:
        summed[_variables(model, "sum_over", sum_over)] = True
    else:
        summed[:] = True
        summed[_variables(model, "query", query)] = False
    return np.flatnonzero(~summed)


def _variables(model: Model, argument: str, listed: Any) -> list[int]:
    """Return variables that are given by number or by name.

    Parameters
    ----------
    model : Model
        The model.
    argument : str
        The name of the argument, for errors.
    listed : sequence
        The variables.
    """
    expected = "a sequence of variables, by number or by name"
    point = isinstance(listed, np.ndarray) and listed.ndim != 1
    if point or not isinstance(listed, Sequence | np.ndarray) or isinstance(listed, str | bytes):
        raise wrong(argument, listed, expected)
    places = []
    for name in listed:
        if model.names is not None and isinstance(name, Hashable) and name in model.names.place:
            places.append(model.names.place[name])
        elif isinstance(name, int | np.integer) and 0 <= name < model.n:
            places.append(int(name))
        else:
            raise wrong(argument, name, f"{expected}; the model has {model.n}")
    return places


class _MaxSearch:
    """Best-first search for the labels of the maximised variables, in turns with dives."""

    def __init__(
        self, logs: LogTables, variables: Ints, table: int, entries: int, gap: float
    ) -> None:
        self.logs, self.variables, self.gap = logs, variables, gap
        self.table, self.entries = table, entries
        self.labels, self.lower = np.zeros(len(variables), np.int64), -math.inf
        trivial = float(np.log(logs.flat.num_labels).sum())
        self._first = logs.shift + logs.error + trivial + 1e-12 * (abs(logs.shift) + trivial)
        self._closed = -math.inf  # the largest upper bound of sums that are not looked at again
        self._cases: Cases | None = None

    @property
    def upper(self) -> float:
        """An upper bound on the logarithm of all sums."""
        if self._cases is None:
            return self._first
        tops = [float(upper.max()) for _, upper in self._cases.open.values()]
        return max([self._closed, *tops])

    def run(self, deadline: core.Deadline, entries: float) -> Status:
        """Search until the gap is closed, or until a limit."""
        failures = Failures(core.OutOfTime)
        with suppress(core.OutOfTime):
            make = partial(Cases, self.logs, self.variables, self.table, deadline)
            self._cases = failures.attempt_part("sums", make, None)
            dive = True
            while self._cases is not None and self._cases.open and not self._done():
                if self._cases.work > entries:
                    return Status.EFFORT
                upper, step = self.upper, partial(self._step, dive, deadline)
                failures.attempt_part("sums", step, None)
                if len(failures):  # cases may be lost: none of them was above this
                    self._closed = max(self._closed, upper)
                    break
                dive = not dive
            if len(failures):
                return Status.FAILED
            if self.upper == -math.inf:
                raise InfeasibleModel("no labelling has finite cost")
            tight = self.upper - self.lower <= PROVED * max(1.0, abs(self.upper))
            left = not self._done()  # sums that could not be computed exactly
            return Status.EXHAUSTED if left else Status.OPTIMAL if tight else Status.GAP
        return Status.TIME_LIMIT

    def _done(self) -> bool:
        return self.upper - self.lower <= self.gap * max(1.0, abs(self.upper))

    def _step(self, dive: bool, deadline: core.Deadline) -> None:
        """Look at the best case of all, or at those with most fixed labels."""
        assert self._cases is not None
        open_, last = self._cases.open, len(self.variables)
        best = max(open_, key=lambda d: float(open_[d][1].max()))
        depth = max(open_) if dive and self.lower == -math.inf else best
        if depth == last:
            self._sum(deadline)
        else:
            found = self._cases.branched(depth, last, deadline)
            if found.exact and found.labels.shape[1] == last:
                self._close(found)
            else:
                self._cases.put(found)
        self._prune()

    def _close(self, found: Labelled) -> None:
        """Take exact sums."""
        self._closed = max(self._closed, float(found.upper.max()))
        best = int(found.upper.argmax())
        self._take(found.labels[best], float(found.upper[best]) - 2 * found.error)

    def _take(self, labels: Ints, lower: float) -> None:
        if lower > self.lower:
            assert self._cases is not None
            fixed = self._cases.order[::-1][: len(labels)]
            self.lower, self.labels = lower, labels[np.argsort(fixed)]

    def _sum(self, deadline: core.Deadline) -> None:
        """Compute, or bound, the sum for the best labels of all maximised variables."""
        assert self._cases is not None
        labels, upper = self._cases.open.pop(len(self.variables))
        best = int(upper.argmax())
        chosen, rest = labels[best], np.delete(np.arange(len(upper)), best)
        high, low = float(upper[best]), -math.inf
        fixed = self._cases.order[::-1][: len(chosen)]
        try:
            logs = self.logs.given(fixed.tolist(), chosen.tolist())
            exact = exact_log_partition(logs, self.entries, deadline)
            if exact is not None:
                low, high = exact[0] - exact[1], min(high, exact[0] + exact[1])
            else:
                low = BlockMeanField(logs, 4 * self.table, deadline).lower(10)
        finally:  # also if time ran out
            self._closed = max(self._closed, high)
            if len(rest):
                self._cases.open[len(self.variables)] = labels[rest], upper[rest]
            self._take(chosen, low)

    def _prune(self) -> None:
        """Drop cases that are no better than the best labels, and keep their bounds."""
        assert self._cases is not None
        for depth, (labels, upper) in list(self._cases.open.items()):
            keep = upper > self.lower
            if not keep.all():
                self._closed = max(self._closed, float(upper[~keep].max()))
                self._cases.open[depth] = labels[keep], upper[keep]
                if not keep.any():
                    del self._cases.open[depth]

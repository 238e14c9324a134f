"""What a run says about a method on any graph: means over graphs and trials, with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softmap.app.experiments.entries import Method
from softmap.app.experiments.plan import FIGURE3
from softmap.app.experiments.tables import Table
from softmap.app.experiments.trials import Point, Results, Unit

Floats = NDArray[np.float64]

# Gaps are clipped to this value from below: the tolerance of the LP solver.
FLOOR = 1e-6
DRAWS = 1000  # bootstrap samples of an interval
LEVEL_OF_INTERVALS = 0.95
WORK_POINTS = 24  # amounts of work at which Figure 3 shows all methods
COLUMNS = ("gap", "returned_gap", "bound_gap", "exchanged_gap", "work", "seconds")


@dataclass(frozen=True)
class Estimate:
    """A number, and its 95 % interval over graphs and trials."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, samples: Floats) -> Estimate:
        """Return the estimate of a statistic, its value first, then those of the draws."""
        tail = (1.0 - LEVEL_OF_INTERVALS) / 2
        draws = samples[1:] if len(samples) > 1 else samples
        low, high = np.quantile(draws, (tail, 1.0 - tail))
        return cls(float(samples[0]), float(low), float(high))

    def text(self, form: str = "+.2f") -> str:
        """Return the value and the interval."""
        return f"{self.value:{form}} [{self.low:{form}}, {self.high:{form}}]"


class Bootstrap:
    """Samples of graphs and of trials on them, with replacement: first graphs, then trials.

    All methods run on the same graphs with the same trials, so that one sample serves all of them.

    Parameters
    ----------
    graphs, trials : int
        Number of graphs, and of trials on each.
    draws : int
        Number of samples.
    """

    def __init__(self, graphs: int, trials: int, draws: int = DRAWS) -> None:
        rng = np.random.default_rng(0)
        counts = np.zeros((draws, graphs, trials))
        chosen = rng.integers(graphs, size=(draws, graphs, 1))
        within = rng.integers(trials, size=(draws, graphs, trials))
        np.add.at(counts, (np.arange(draws)[:, None, None], chosen, within), 1.0)
        first = np.ones((1, graphs, trials))
        self._weights = np.concatenate([first, counts]).reshape(draws + 1, -1) / (graphs * trials)

    def means(self, values: Floats) -> Floats:
        """Return means of an array [graph, trial, ...]: over all, then over each sample."""
        flat = values.reshape(self._weights.shape[1], -1)
        means = self._weights @ flat
        return means.reshape(-1, *values.shape[2:])


@dataclass(frozen=True)
class Runs:
    """All runs of one method on graphs of one size.

    Attributes
    ----------
    axis : float64[points]
        Updates; in Figure 3 messages.
    columns : mapping
        Arrays [graph, trial, point] by name (`COLUMNS`); those called gaps are differences from the
        LP optimum, at least `FLOOR`.
    """

    axis: Floats
    columns: Mapping[str, Floats]

    def log(self, column: str = "gap") -> Floats:
        """Return the logarithms of gaps, [graph, trial, point]."""
        return np.log(self.columns[column])


Key = tuple[str, int, str, str, float]  # figure, n, method, form, eta


class Evidence:
    """The points of a run as arrays, by figure, size, method, form and η.

    Parameters
    ----------
    results : dict of Unit to list of Point
        The run.
    truth : Table
        The LP optima of the graphs, and other facts about them.
    draws : int
        Number of bootstrap samples of an interval.
    """

    def __init__(self, results: Results, truth: Table, draws: int = DRAWS) -> None:
        self.truth, self.draws = truth, draws
        names = zip(truth["n"].tolist(), truth["graph"].tolist(), strict=True)
        self._optima = dict(zip(names, truth["optimum"].tolist(), strict=True))
        self._units: dict[Key, list[Unit]] = {}
        for unit in results:
            key = unit.figure, unit.graph.n, unit.method.method, unit.method.form, unit.eta
            self._units.setdefault(key, []).append(unit)
        self._results = results
        self._runs: dict[tuple[Key, tuple[int, ...]], Runs] = {}
        self._bootstraps: dict[tuple[int, int], Bootstrap] = {}

    @cached_property
    def keys(self) -> list[Key]:
        """Figure, size, method, form and η of all runs, in the order of the plan."""
        return list(self._units)

    def figures(self) -> set[str]:
        """Return the figures of the run."""
        return {key[0] for key in self.keys}

    def entries(self, figure: str) -> Iterator[Method]:
        """Yield the methods of a figure."""
        found = (Method(key[2], key[3]) for key in self.keys if key[0] == figure)
        return iter(dict.fromkeys(found))

    def sizes(self, figure: str) -> list[int]:
        """Return the sizes of the graphs of a figure."""
        return list(dict.fromkeys(key[1] for key in self.keys if key[0] == figure))

    def etas(self, figure: str) -> list[float]:
        """Return the values of η of a figure."""
        return sorted({key[4] for key in self.keys if key[0] == figure})

    def runs(
        self, figure: str, n: int, method: str, form: str, *, eta: float | None = None,
        last: int | None = None,
    ) -> Runs:  # fmt: skip
        """Return the runs of a method.

        Parameters
        ----------
        figure : str
        n : int
            Number of variables.
        method, form : str
            See `Method`.
        eta : float, optional
            Inverse temperature; by default the only one of the figure.
        last : int, optional
            Only runs of this many updates (Figure 4 has several lengths).
        """
        eta = self.etas(figure)[0] if eta is None else eta
        key = figure, n, method, form, eta
        units = [u for u in self._units[key] if last is None or u.last == last]
        place = key, tuple(sorted({u.last for u in units}))
        if place not in self._runs:
            self._runs[place] = self._stacked(units)
        return self._runs[place]

    def _stacked(self, units: list[Unit]) -> Runs:
        graphs = sorted({unit.graph for unit in units}, key=lambda graph: graph.seed)
        trials = 1 + max(unit.trial for unit in units)
        by_place = {(unit.graph, unit.trial): unit for unit in units}
        rows = [[self._columns(by_place[graph, t]) for t in range(trials)] for graph in graphs]
        if units[0].figure.startswith(FIGURE3):
            rows = self._by_work(units, rows)
            axis = rows[0][0]["work"][:]
        else:
            axis = np.array(units[0].checks, dtype=float)
        columns = {
            name: np.array([[each[name] for each in row] for row in rows]) for name in COLUMNS
        }
        return Runs(axis, columns)

    def _columns(self, unit: Unit) -> dict[str, Floats]:
        optimum = self._optima[unit.graph.n, unit.graph.seed]
        values = np.array(self._results[unit], dtype=float).T
        point = dict(zip(Point._fields, values, strict=True))
        returned = np.where(np.isnan(point["returned"]), point["primal"], point["returned"])
        with np.errstate(invalid="ignore"):
            gaps = {
                "gap": point["primal"] - optimum,
                "returned_gap": returned - optimum,
                "bound_gap": optimum - point["bound"],
                "exchanged_gap": point["exchanged"] - optimum,
            }
        gaps = {name: np.maximum(gap, FLOOR) for name, gap in gaps.items()}
        return {**gaps, "work": point["work"], "seconds": point["seconds"]}

    def _by_work(
        self, units: list[Unit], rows: list[list[dict[str, Floats]]]
    ) -> list[list[dict[str, Floats]]]:
        """Return rows at common amounts of work: the values of the last check until then."""
        every = [each["work"] for row in rows for each in row]
        if all(len(work) == 1 for work in every):
            grid = np.array([np.mean([work[0] for work in every])])
        else:
            first, last = max(work[0] for work in every), min(work[-1] for work in every)
            grid = np.geomspace(first, last, WORK_POINTS)
            grid[-1] = last
        if len(grid) == 1:
            return [[{**each, "work": grid} for each in row] for row in rows]
        placed = []
        for row in rows:
            found = [np.searchsorted(each["work"], grid, side="right") - 1 for each in row]
            at = [np.maximum(k, 0) for k in found]
            placed.append(
                [
                    {**{name: values[k] for name, values in each.items()}, "work": grid}
                    for each, k in zip(row, at, strict=True)
                ]
            )
        return placed

    def bootstrap(self, values: Floats) -> Bootstrap:
        """Return the bootstrap of an array [graph, trial, ...]."""
        shape = values.shape[0], values.shape[1]
        if shape not in self._bootstraps:
            self._bootstraps[shape] = Bootstrap(*shape, self.draws)
        return self._bootstraps[shape]

    def means(self, values: Floats) -> Floats:
        """Return bootstrapped means of an array [graph, trial, ...], the mean itself first."""
        return self.bootstrap(values).means(values)

    def ratio(
        self, figure: str, n: int, method: str, form: str, column: str = "gap",
        standard: str | None = None,
    ) -> Floats:  # fmt: skip
        """Return log(gap of the standard method / gap of this one), [graph, trial, point].

        This is the paper's competitive ratio, positive if the second method has the lower error.
        Trials with the same number share their random numbers and are compared with each other.
        """
        above = self.runs(figure, n, standard or method, "standard").log(column)
        return above - self.runs(figure, n, method, form).log(column)

    def reference(self, name: str, n: int) -> Floats:
        """Return a column of the table of references for the graphs with n variables."""
        return np.asarray(self.truth.where(n=n)[name], dtype=float)


@dataclass(frozen=True)
class Curve:
    """A mean over graphs and trials along a run, with intervals."""

    axis: Floats
    mean: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, axis: Floats, samples: Floats) -> Curve:
        """Return the curve of a statistic, [sample, point]."""
        tail = (1.0 - LEVEL_OF_INTERVALS) / 2
        low, high = np.quantile(samples[1:], (tail, 1.0 - tail), axis=0)
        return cls(axis, samples[0], low, high)

    @property
    def last(self) -> float:
        """The mean at the end."""
        return float(self.mean[-1])

    def at(self, k: int) -> Estimate:
        """Return one point."""
        return Estimate(float(self.mean[k]), float(self.low[k]), float(self.high[k]))


def gap_curve(evidence: Evidence, runs: Runs, column: str = "gap") -> Curve:
    """Return the geometric mean of a gap over graphs and trials."""
    samples = np.exp(evidence.means(runs.log(column)))
    return Curve.of(runs.axis, samples)


def first_below(curve: Curve, level: float) -> float:
    """Return the place on the axis where the mean first is at most `level`; inf if nowhere."""
    reached = np.flatnonzero(curve.mean <= level)
    return float(curve.axis[reached[0]]) if reached.size else math.inf

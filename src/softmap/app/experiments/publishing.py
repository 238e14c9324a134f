"""The tables of a stored run: means over graphs and trials, with intervals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from softmap.app.experiments.entries import FORMS, OWN, SETTLED, Method
from softmap.app.experiments.plan import FIGURE1, FIGURE2, FIGURE3, FIGURE3_ETA, FIGURE4
from softmap.app.experiments.samples import (
    Curve,
    Estimate,
    Evidence,
    Floats,
    Runs,
    gap_curve,
)
from softmap.app.experiments.tables import Table

GAPS = ("gap", "returned_gap", "bound_gap")
INTERVAL = ("mean", "low", "high")


def tables_of(evidence: Evidence) -> dict[str, Table]:
    """Return the tables of all figures of a run, by name; means of gaps are geometric."""
    makers = {
        FIGURE1: {FIGURE1: _gaps, f"{FIGURE1}-ratios": _ratios},
        FIGURE2: {FIGURE2: _gaps, f"{FIGURE2}-ratios": _ratios},
        FIGURE3: {FIGURE3: _by_work, f"{FIGURE3}-seconds": _seconds},
        FIGURE3_ETA: {FIGURE3_ETA: _by_eta},
        FIGURE4: {FIGURE4: _settled, f"{FIGURE4}-graphs": _settled_graphs},
    }
    there = evidence.figures()
    return {
        name: make(evidence, figure)
        for figure, named in makers.items()
        if figure in there
        for name, make in named.items()
    }


def _cells(curve: Curve, k: int) -> tuple[float, float, float]:
    return float(curve.mean[k]), float(curve.low[k]), float(curve.high[k])


def _gaps(evidence: Evidence, figure: str) -> Table:
    """Gaps of the current iterate with intervals, of what is returned, and of the bound."""
    rows: list[tuple[Any, ...]] = []
    for n in evidence.sizes(figure):
        for entry in evidence.entries(figure):
            runs = evidence.runs(figure, n, entry.method, entry.form)
            curves = [gap_curve(evidence, runs, column) for column in GAPS]
            for k, updates in enumerate(runs.axis):
                others = (float(curve.mean[k]) for curve in curves[1:])
                rows.append(
                    (n, entry.method, entry.form, int(updates), *_cells(curves[0], k), *others)
                )
    names = ("n", "method", "form", "updates", "gap", "gap_low", "gap_high", *GAPS[1:])
    return Table.from_rows(names, rows)


def compared(entry: Method) -> list[tuple[str, str]]:
    """Return the methods that an entry is compared with, as families, and what it is called."""
    if entry.form in FORMS:
        return [(entry.method, entry.form)]
    return [("emp", entry.label), ("smp", entry.label)] if entry.form == OWN else []


def ratio_curve(
    evidence: Evidence, figure: str, n: int, entry: Method, standard: str, column: str = "gap"
) -> Curve:
    """Return the mean log-competitive ratio of an entry to a standard method."""
    ratio = evidence.ratio(figure, n, entry.method, entry.form, column, standard)
    axis = evidence.runs(figure, n, entry.method, entry.form).axis
    return Curve.of(axis, evidence.means(ratio))


def _ratios(evidence: Evidence, figure: str) -> Table:
    """Log-competitive ratios; own methods are compared with every standard method there is."""
    rows: list[tuple[Any, ...]] = []
    there = {(entry.method, entry.form) for entry in evidence.entries(figure)}
    for n in evidence.sizes(figure):
        for entry in evidence.entries(figure):
            for standard, form in compared(entry):
                if (standard, "standard") not in there:
                    continue
                curve = ratio_curve(evidence, figure, n, entry, standard)
                rows += [
                    (n, standard, form, int(updates), *_cells(curve, k))
                    for k, updates in enumerate(curve.axis)
                ]
    return Table.from_rows(("n", "method", "form", "updates", *INTERVAL), rows)


def _by_work(evidence: Evidence, figure: str) -> Table:
    n = evidence.sizes(figure)[0]
    rows: list[tuple[Any, ...]] = []
    for entry in evidence.entries(figure):
        runs = evidence.runs(figure, n, entry.method, entry.form)
        curves = [gap_curve(evidence, runs, column) for column in GAPS]
        for k, work in enumerate(runs.axis):
            others = (float(curve.mean[k]) for curve in curves[1:])
            rows.append((n, entry.method, entry.form, work, *_cells(curves[0], k), *others))
    names = ("n", "method", "form", "messages", "gap", "gap_low", "gap_high", *GAPS[1:])
    return Table.from_rows(names, rows)


def seconds_of(runs: Runs) -> Floats:
    """Return mean seconds along a run of Figure 3."""
    return np.asarray(runs.columns["seconds"].mean(axis=(0, 1)))


def _seconds(evidence: Evidence, figure: str) -> Table:
    n = evidence.sizes(figure)[0]
    rows: list[tuple[Any, ...]] = []
    for entry in evidence.entries(figure):
        runs = evidence.runs(figure, n, entry.method, entry.form)
        times = zip(runs.axis, seconds_of(runs), strict=True)
        rows += [(n, entry.method, entry.form, work, seconds) for work, seconds in times]
    return Table.from_rows(("n", "method", "form", "messages", "seconds"), rows)


def _by_eta(evidence: Evidence, figure: str) -> Table:
    n = evidence.sizes(figure)[0]
    rows: list[tuple[Any, ...]] = []
    for entry in evidence.entries(figure):
        for eta in evidence.etas(figure):
            runs = evidence.runs(figure, n, entry.method, entry.form, eta=eta)
            curves = [gap_curve(evidence, runs, column) for column in GAPS]
            others = (curve.last for curve in curves[1:])
            rows.append((n, entry.method, entry.form, eta, *_cells(curves[0], -1), *others))
    names = ("n", "method", "form", "eta", "gap", "gap_low", "gap_high", *GAPS[1:])
    return Table.from_rows(names, rows)


def settling(evidence: Evidence) -> Iterator[tuple[int, str, str, int, Floats]]:
    """Yield the log ratios of Figure 4: n, method, form, updates, ratio [graph, trial]."""
    for n in evidence.sizes(FIGURE4):
        for entry in evidence.entries(FIGURE4):
            method, form = entry.method, entry.form
            if form == "standard" or not _has(evidence, n, entry):
                continue
            plain = evidence.runs(FIGURE4, n, method, "standard")
            for k, length in enumerate(plain.axis):
                if form.endswith(SETTLED):
                    runs = evidence.runs(FIGURE4, n, method, form, last=int(length))
                    log = runs.log()[:, :, -1]
                else:
                    log = evidence.runs(FIGURE4, n, method, form).log()[:, :, k]
                yield n, method, form, int(length), plain.log()[:, :, k] - log


def _has(evidence: Evidence, n: int, entry: Method) -> bool:
    return any(key[:4] == (FIGURE4, n, entry.method, entry.form) for key in evidence.keys)


def _settled(evidence: Evidence, figure: str) -> Table:
    """Mean log ratio with its interval, the least and the largest graph, and how many are ahead."""
    rows = []
    for n, method, form, length, ratio in settling(evidence):
        mean = Estimate.of(evidence.means(ratio))
        graphs = ratio.mean(axis=1)
        spread = (graphs.min(), graphs.max(), int((graphs > 0).sum()))
        rows.append((n, method, form, length, mean.value, mean.low, mean.high, *spread))
    names = ("n", "method", "form", "updates", *INTERVAL, "least", "most", "ahead")
    return Table.from_rows(names, rows)


def _settled_graphs(evidence: Evidence, figure: str) -> Table:
    """Mean log ratio on every graph, with an interval over its trials."""
    rows = []
    for n, method, form, length, ratio in settling(evidence):
        for graph, trials in enumerate(ratio):
            mean = Estimate.of(evidence.means(trials[None]))
            cells = (mean.value, mean.low, mean.high)
            rows.append((n, graph, method, form, length, *cells))
    return Table.from_rows(("n", "graph", "method", "form", "updates", *INTERVAL), rows)

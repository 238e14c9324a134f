"""A reproduction from start to finish: trials, tables, pictures, claims, manifest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from softmap.errors import OptionError
from softmap.experiments import figure1, figure2, figure3, truth
from softmap.experiments.claims import decide
from softmap.experiments.claims_page import write_claims
from softmap.experiments.curves import ratio_curve
from softmap.experiments.manifest import write_manifest
from softmap.experiments.methods import FORMS
from softmap.experiments.runner import OnDone, Results, run_units
from softmap.experiments.settings import Settings
from softmap.experiments.store import Store
from softmap.experiments.table import Table
from softmap.experiments.truth import Problem
from softmap.experiments.unit import Unit
from softmap.io.atomic import write_text

__all__ = ["FIGURES", "Plan", "read_tables", "reproduce"]

FIGURES = ("figure1", "figure2", "figure3")
CURVE = ("n", "method", "form", "eta", "trial", "updates", "work")
GAPS = ("gap", "returned_gap", "bound_gap")
TABLES = ("truth", figure1.FIGURE, figure2.FIGURE, figure3.BY_WORK, figure3.BY_ETA)


@dataclass
class Plan:
    """What is to be run for some figures."""

    figures: tuple[str, ...]
    settings: Settings
    workers: int | None = None
    problems: dict[int, Problem] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if unknown := set(self.figures) - set(FIGURES):
            raise OptionError(f"unknown figure {', '.join(sorted(unknown))}")
        s = self.settings
        sizes = {s.size} if {"figure1", "figure3"} & set(self.figures) else set()
        sizes |= set(s.sizes) if "figure2" in self.figures else set()
        self.problems = {n: truth.problem(n, s.labels, s.seed) for n in sorted(sizes)}

    @cached_property
    def units(self) -> list[Unit]:
        """All trials."""
        s, found = self.settings, []
        if "figure1" in self.figures:
            found += figure1.units(s)
        if "figure2" in self.figures:
            found += figure2.units(s)
        if "figure3" in self.figures:
            model = self.problems[s.size].model
            found += figure3.work_units(s, model) + figure3.eta_units(s, model)
        return found

    @property
    def cost(self) -> float:
        """A guess of the seconds of all trials on one core."""
        return sum(unit.cost for unit in self.units)


def reproduce(
    plan: Plan, folder: Path, *, on_done: OnDone = lambda unit: None, draw: bool | None = None
) -> list[Path]:
    """Run a plan, or go on with it, and write everything into a folder.

    Parameters
    ----------
    on_done : callable
        Told of each trial when it is there.
    draw : bool, optional
        Pictures, too; if left out, where matplotlib is installed.

    Returns
    -------
    list of Path
        What was written, `manifest.json` last.
    """
    store = Store(folder / "trials")
    results = run_units(plan.units, plan.problems, store, workers=plan.workers, on_done=on_done)
    written = _write_tables(plan, results, folder)
    tables = read_tables(folder, [path.stem for path in written])
    claims = folder / "claims.md"
    write_text(claims, [write_claims(decide(tables))])
    if draw or (draw is None and find_spec("matplotlib")):
        written += import_module("softmap.plotting.experiments").draw_all(tables, folder)
    written.append(claims)
    what = "all" if set(plan.figures) == set(FIGURES) else " ".join(plan.figures)
    return [*written, write_manifest(folder, what, plan.settings, store.code, written)]


def read_tables(folder: Path, names: Iterable[str] | None = None) -> dict[str, Table]:
    """Tables of a reproduction by name, as they are on disk."""
    wanted = names if names is not None else [*TABLES, *(f"{name}-seconds" for name in TABLES)]
    paths = {name: folder / f"{name}.csv" for name in wanted}
    return {name: Table.from_csv(path) for name, path in paths.items() if path.exists()}


def _write_tables(plan: Plan, results: Results, folder: Path) -> list[Path]:
    tables = {"truth": _truth(plan)}
    for name in TABLES[1:]:
        units = [unit for unit in plan.units if unit.figure == name]
        if units:
            tables[name] = _gaps(units, results, plan.problems)
    for name in (figure1.FIGURE, figure2.FIGURE):
        if name in tables:
            tables[f"{name}-ratios"] = _ratios(tables[name])
    if figure3.BY_WORK in tables:
        units = [unit for unit in plan.units if unit.figure == figure3.BY_WORK]
        tables[f"{figure3.BY_WORK}-seconds"] = _seconds(units, results)
    paths = []
    for name, table in tables.items():
        paths.append(folder / f"{name}.csv")
        table.to_csv(paths[-1])
    return paths


def _truth(plan: Plan) -> Table:
    """Facts about the graphs; the largest is cross-checked."""
    largest = max(plan.problems)
    rows = [truth.reference_row(p, check=n == largest) for n, p in plan.problems.items()]
    return Table.from_rows(truth.COLUMNS, rows)


def _curve_keys(unit: Unit) -> tuple[int, str, str, float, int]:
    return unit.n, unit.method.method, unit.method.form, unit.eta, unit.trial


def _gaps(units: list[Unit], results: Results, problems: dict[int, Problem]) -> Table:
    rows = []
    for unit in units:
        optimum = problems[unit.n].optimum
        for p in results[unit]:
            gaps = (p.primal - optimum, p.returned - optimum, optimum - p.bound)
            rows.append((*_curve_keys(unit), p.updates, p.work, *gaps))
    return Table.from_rows(CURVE + GAPS, rows)


def _seconds(units: list[Unit], results: Results) -> Table:
    rows = [
        (*_curve_keys(unit), p.updates, p.work, p.seconds) for unit in units for p in results[unit]
    ]
    return Table.from_rows((*CURVE, "seconds"), rows)


def _ratios(table: Table) -> Table:
    """Log-competitive ratios, mean and deviation over trials."""
    rows = []
    for n, method in table.distinct("n", "method"):
        for form in FORMS:
            found = ratio_curve(table.where(n=n), method, form)
            for updates, mean, deviation in zip(
                found.updates, found.mean, found.deviation, strict=True
            ):
                rows.append((n, method, form, updates, mean, deviation))
    return Table.from_rows(("n", "method", "form", "updates", "mean", "deviation"), rows)

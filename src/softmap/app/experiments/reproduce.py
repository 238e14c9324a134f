"""A complete reproduction: trials, tables, figures, claims, manifest."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable
from dataclasses import asdict
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import softmap
from softmap.app.experiments.claims import decide, write_claims
from softmap.app.experiments.pictures import draw_all
from softmap.app.experiments.plan import (
    FIGURE1,
    FIGURE2,
    FIGURE3,
    FIGURE3_ETA,
    FIGURES,
    Plan,
    Settings,
)
from softmap.app.experiments.tables import Table, ratio_curve
from softmap.app.experiments.trials import (
    COLUMNS,
    FORMS,
    OnDone,
    Problem,
    Results,
    Store,
    Unit,
    reference_row,
    run_units,
)
from softmap.io.atomic import write_text

CURVE = ("n", "method", "form", "eta", "trial", "updates", "work")
GAPS = ("gap", "returned_gap", "bound_gap")
TABLES = ("truth", FIGURE1, FIGURE2, FIGURE3, FIGURE3_ETA)
PACKAGES = ("numpy", "scipy", "highspy", "cvxpy", "clarabel", "matplotlib")
# Files that show times, which differ from run to run.
TIMED = ("figure3-seconds.csv", "figure3.png", "figure3.svg")


def reproduce(
    plan: Plan, folder: Path, *, on_done: OnDone = lambda unit: None, draw: bool | None = None
) -> list[Path]:
    """Run a plan, or resume it, and write all files into a folder.

    Parameters
    ----------
    plan : Plan
        The trials.
    folder : Path
        Output folder; finished trials in it are reused.
    on_done : callable
        Callback, called with each finished trial.
    draw : bool, optional
        Whether to draw figures; by default if matplotlib is installed.

    Returns
    -------
    list of Path
        The files written, `manifest.json` last.
    """
    store = Store(folder / "trials")
    results = run_units(plan.units, plan.problems, store, workers=plan.workers, on_done=on_done)
    written = _write_tables(plan, results, folder)
    tables = read_tables(folder, [path.stem for path in written])
    claims = folder / "claims.md"
    write_text(claims, [write_claims(decide(tables), plan.settings)])
    if draw or (draw is None and find_spec("matplotlib")):
        written += draw_all(tables, folder)
    written.append(claims)
    what = "all" if set(plan.figures) == set(FIGURES) else " ".join(plan.figures)
    return [*written, write_manifest(folder, what, plan.settings, store.code, written)]


def read_tables(folder: Path, names: Iterable[str] | None = None) -> dict[str, Table]:
    """Read the tables of a reproduction, by name."""
    wanted = names if names is not None else [*TABLES, *(f"{name}-seconds" for name in TABLES)]
    paths = {name: folder / f"{name}.csv" for name in wanted}
    return {name: Table.from_csv(path) for name, path in paths.items() if path.exists()}


def _write_tables(plan: Plan, results: Results, folder: Path) -> list[Path]:
    tables = {"truth": _truth(plan)}
    for name in TABLES[1:]:
        units = [unit for unit in plan.units if unit.figure == name]
        if units:
            tables[name] = _gaps(units, results, plan.problems)
    for name in (FIGURE1, FIGURE2):
        if name in tables:
            tables[f"{name}-ratios"] = _ratios(tables[name])
    if FIGURE3 in tables:
        units = [unit for unit in plan.units if unit.figure == FIGURE3]
        tables[f"{FIGURE3}-seconds"] = _seconds(units, results)
    paths = []
    for name, table in tables.items():
        paths.append(folder / f"{name}.csv")
        table.to_csv(paths[-1])
    return paths


def _truth(plan: Plan) -> Table:
    """Return the table of LP optima of the graphs; the largest is checked with CVXPY."""
    largest = max(plan.problems)
    rows = [reference_row(p, check=n == largest) for n, p in plan.problems.items()]
    return Table.from_rows(COLUMNS, rows)


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
    """Return the table of log-competitive ratios: mean and standard deviation over trials."""
    rows = []
    for n, method in table.distinct("n", "method"):
        for form in FORMS:
            found = ratio_curve(table.where(n=n), method, form)
            for updates, mean, deviation in zip(
                found.updates, found.mean, found.deviation, strict=True
            ):
                rows.append((n, method, form, updates, mean, deviation))
    return Table.from_rows(("n", "method", "form", "updates", "mean", "deviation"), rows)


def write_manifest(
    folder: Path, what: str, settings: Settings, code: str, files: Iterable[Path]
) -> Path:
    """Write settings, versions and a digest of every file that another run must reproduce."""
    content = {
        "what": what,
        "settings": asdict(settings),
        "versions": versions(),
        "code": code,
        "files": {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(files)
            if path.name not in TIMED
        },
    }
    path = folder / "manifest.json"
    write_text(path, [json.dumps(content, indent=2) + "\n"])
    return path


def versions() -> dict[str, str]:
    """Return the versions of softmap, Python, the machine and packages that affect numbers."""
    found = {
        "softmap": softmap.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
    }
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found

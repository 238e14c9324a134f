"""A complete reproduction: trials, the stored run, and what is made of it."""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import softmap
from softmap import core
from softmap.app.experiments.archive import load_run, save_run
from softmap.app.experiments.claims import decide, write_claims
from softmap.app.experiments.code import code_digest
from softmap.app.experiments.entries import OWN, own_class
from softmap.app.experiments.pictures import draw_all
from softmap.app.experiments.plan import FIGURE1, Plan, Settings
from softmap.app.experiments.problems import COLUMNS, Graph, reference_row
from softmap.app.experiments.publishing import tables_of
from softmap.app.experiments.repeating import different, part
from softmap.app.experiments.samples import DRAWS, Evidence
from softmap.app.experiments.tables import Table
from softmap.app.experiments.trials import OnDone, Store, Unit, run_units
from softmap.errors import FormatError, SoftmapError
from softmap.io.atomic import write_text

PACKAGES = ("numpy", "scipy", "highspy", "cvxpy", "clarabel", "matplotlib")
NO_FIGURES = "no figures: matplotlib is not installed (pip install 'softmap[plot]')"


class StaleRun(SoftmapError):
    """A stored run is not what today's code computes."""


class _Store(Store):
    """A store in which a trial of a method of the user belongs to the method's source, too."""

    def path(self, unit: Unit) -> Path:
        if unit.method.form != OWN:
            return super().path(unit)
        own_class(unit.method.method)  # imports the module
        source = getattr(sys.modules[unit.method.method.partition(":")[0]], "__file__", None)
        text = Path(source).read_bytes() if source else b""
        return self.folder / f"{unit.key(self.code + hashlib.sha256(text).hexdigest())}.json"


def reproduce(
    plan: Plan, folder: Path, *, on_done: OnDone = lambda unit: None, draws: int = DRAWS
) -> list[Path]:
    """Run a plan, or resume it; store the run, and make all files of it.

    Parameters
    ----------
    plan : Plan
        The trials.
    folder : Path
        Output folder; finished trials in it are reused.
    on_done : callable
        Callback, called with each finished trial.
    draws : int
        Number of bootstrap samples of an interval.

    Returns
    -------
    list of Path
        The files written. Figures are not among them if matplotlib is not installed.
    """
    store = _Store(folder / "trials", code_digest())
    done = run_units(plan.units, store, workers=plan.workers, on_done=on_done)
    written = save_run({unit: done[unit] for unit in plan.units}, folder)
    written.append(write_truth(plan.graphs, folder))
    written.append(write_manifest(folder, plan.figures, plan.settings, store.code))
    return [*written, *publish(folder, draws)]


def publish(folder: Path, draws: int = DRAWS) -> list[Path]:
    """Make the tables, figures and verdicts of the stored run in a folder; return the files.

    Parameters
    ----------
    folder : Path
        Holds run.npz, seconds.npz, truth.csv and manifest.json.
    draws : int
        Number of bootstrap samples of an interval.
    """
    evidence, settings = stored_evidence(folder, draws), stored_settings(folder)
    paths = []
    for name, table in tables_of(evidence).items():
        paths.append(folder / f"{name}.csv")
        table.to_csv(paths[-1])
    if can_draw():
        paths += draw_all(evidence, folder)
    claims = folder / "claims.md"
    write_text(claims, [write_claims(decide(evidence), settings)])
    return [*paths, claims]


def can_draw() -> bool:
    """Whether figures can be drawn: matplotlib is installed."""
    return find_spec("matplotlib") is not None


def stored_evidence(folder: Path, draws: int = DRAWS) -> Evidence:
    """Read a stored run."""
    return Evidence(load_run(folder), Table.from_csv(folder / "truth.csv"), draws)


def stored_settings(folder: Path) -> Settings:
    """Return the settings of a stored run."""
    path = folder / "manifest.json"
    try:
        stored: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["settings"]
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in stored.items()
        }
        return Settings(**values)
    except (ValueError, KeyError, TypeError) as error:
        message = f"not the manifest of `softmap reproduce`: {error}"
        raise FormatError(message, str(path)) from error


def write_truth(graphs: Iterable[Graph], folder: Path) -> Path:
    """Write the table of LP optima of the graphs, by HiGHS and by CVXPY if it is installed."""
    path = folder / "truth.csv"
    Table.from_rows(COLUMNS, [reference_row(graph) for graph in graphs]).to_csv(path)
    return path


def write_manifest(folder: Path, figures: Iterable[str], settings: Settings, code: str) -> Path:
    """Write what was run, when, where, and with which code.

    "checked" is the digest of later code that repeated a part of the run to the bit.
    """
    content = {
        "figures": list(figures),
        "settings": asdict(settings),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "versions": versions(),
        "code": code,
        "checked": code,
    }
    path = folder / "manifest.json"
    write_text(path, [json.dumps(content, indent=2, ensure_ascii=False) + "\n"])
    return path


def check_code(folder: Path) -> None:
    """Store the digest of today's code in the manifest of a run, if it has the same bits.

    If the digest is new, whole trials of all methods of Figure 1 and of all sweep methods are run
    again first; `StaleRun` is raised if any differs.
    """
    path, digest = folder / "manifest.json", code_digest()
    content = json.loads(path.read_text(encoding="utf-8"))
    if content["checked"] == digest:
        return
    run = load_run(folder)
    units = [u for u in part(run, 3) if u.figure == FIGURE1 or u.method.sweeping]
    if names := different(run, units):
        raise StaleRun(f"{path}: the code has changed, and the run with it: {'; '.join(names)}")
    content["checked"] = digest
    write_text(path, [json.dumps(content, indent=2, ensure_ascii=False) + "\n"])


def machine() -> str:
    """Return the processor, the operating system, and the instruction set of the inner loops."""
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    system = f"{platform.system()} {platform.machine()}"
    return f"{models[0] if models else name}, {system}, loops of level {core.level()}"


def versions() -> dict[str, str]:
    """Return the versions of softmap, Python and packages that affect numbers."""
    found = {"softmap": softmap.__version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found

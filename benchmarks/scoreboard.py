"""Families of public models beside whichever solvers are installed, one table per family.

`python -m benchmarks.scoreboard [--family F ...] [--solver S ...] [--seconds 5] [--workers 1]
[--limit-models N] [--out FILE]`. A run is a process with one thread, killed `GRACE` seconds past
its limit; `--workers` of them run at a time. FILE gets the facts of the run as its first line and
one line of JSON per run as it ends; a run that is in FILE already is not repeated. Energies are
computed by our model if the solver returns labels that fit it. Models and reference values come
from the folder of instances. `make figures` turns the stored run into a page of the documentation.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import importlib.metadata
import json
import math
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.facts import facts
from benchmarks.scoreboard_tables import family_tables, overview

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.data import shared_data

Row = dict[str, Any]
GRACE = 15.0  # seconds past the limit for reading the model and stopping, before a run is killed
TOULBAR2 = ("toulbar2 command", "toulbar2 package")
LOGIC = (*TOULBAR2, "RC2", "CP-SAT")
PACKAGES = {  # solver: module and distribution
    "toulbar2 package": ("pytoulbar2", "pytoulbar2"),
    "dwave-samplers": ("dwave.samplers", "dwave-samplers"),
    "scipy QAP": ("scipy.optimize", "scipy"),
    "RC2": ("pysat.examples.rc2", "python-sat"),
    "CP-SAT": ("ortools.sat.python.cp_model", "ortools"),
    "α-expansion": ("gco", "gco-wrapper"),
    "BP+OSD": ("ldpc", "ldpc"),
    "pymatching": ("pymatching", "pymatching"),
}
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Family:
    """Files of the folder of instances and the peers that take them.

    Parameters
    ----------
    files : str
        Patterns of files relative to the folder, separated by blanks.
    peers : tuple of str
        Solvers beside softmap.
    """

    files: str
    peers: tuple[str, ...] = TOULBAR2


FAMILIES = {
    "UAI-2022": Family("**/*.uai **/*.uai.xz **/*.uai.gz"),
    "G-set": Family("more/maxcut-gset/*.mc*", (*TOULBAR2, "dwave-samplers")),
    "be, bqp": Family("more/maxcut-b*/*.mc* qpbo/*.qpbo", (*TOULBAR2, "dwave-samplers")),
    "Chimera": Family("more/ising-chimera/*.coo", (*TOULBAR2, "dwave-samplers")),
    "QAPLIB": Family("qaplib/*.dat more/qaplib/*.dat", (*TOULBAR2, "scipy QAP")),
    "QPLIB": Family("more/opb-qplib/*.opb", (*TOULBAR2, "CP-SAT")),
    "MaxSAT": Family("more/wcnf/*.wcnf*", LOGIC),
    "PB": Family("more/opb/*.opb* more/opb/*.wbo*", (*TOULBAR2, "CP-SAT")),
    "radio links": Family(
        "more/wcsp-frequency/*.wcsp* wcsp/CELAR6*.wcsp* wcsp/scen06.wcsp* wcsp/graph05.wcsp*",
        (*TOULBAR2, "toulbar2 VNS"),
    ),
    "SPOT5": Family(
        "more/uai-spot5/*.uai* more/wcsp-spot5-vac/*.wcsp*", (*TOULBAR2, "toulbar2 VNS")
    ),
    "planning": Family("more/uai-planning/*.uai*"),
    "BIF": Family("more/bif/*.bif*"),
    "images": Family("uai-segmentation/*.uai* uai-scene/*.uai* opengm-h5/*.h5",
                     (*TOULBAR2, "α-expansion")),
    "DEM": Family("more/stim-dem/*.dem*", ("BP+OSD", "pymatching")),
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A model of a family, and the best energy known of it with its tolerance."""

    family: str
    path: Path
    reference: float | None = None
    tolerance: float = 0.0

    @property
    def name(self) -> str:
        """The file's name without the suffixes of the format."""
        return re.sub(r"(\.xz|\.gz)$", "", self.path.name).rpartition(".")[0]


def cases(root: Path, family: str) -> list[Case]:
    """The models of a family in the folder, with references."""
    entrants = _entrants(root)
    found = {}
    for pattern in FAMILIES[family].files.split():
        for path in sorted(root.glob(pattern)):
            case = Case(family, path)
            if path.name.endswith((".evid", ".MAP", ".evid.xz")) or case.name in found:
                continue
            if family == "UAI-2022" and case.name in entrants:
                # the leader board has decadic logarithms with one decimal
                energy = -entrants[case.name] * math.log(10)
                found[case.name] = Case(family, path, energy, 0.0505 * math.log(10))
            elif family != "UAI-2022" and (family != "DEM" or _shots(path).is_file()):
                found[case.name] = Case(family, path, reference(root, path, case.name))
    return list(found.values())


def _shots(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(".xz").removesuffix(".dem") + ".shots")


def _entrants(root: Path) -> dict[str, float]:
    table = root / "more" / "uai2022-mpe-best.csv"
    if not table.is_file():
        return {}
    with table.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {row["problem"]: float(row["best3600"]) for row in rows if row["best3600"].strip()}


def reference(root: Path, path: Path, name: str) -> float | None:
    """The best known energy of a model from the file beside it or the READMEs; None if unknown."""
    beside = {suffix: path.with_name(f"{name}{suffix}") for suffix in (".opt", ".sln", ".ub")}
    if beside[".opt"].is_file():  # values of cuts, with either sign: energies are negative
        return -abs(float(beside[".opt"].read_text("utf-8").split()[0]))
    if beside[".sln"].is_file():
        return float(beside[".sln"].read_text("utf-8").split()[1])
    if (own := path.with_name("README.md")).is_file():
        energy = r"[^\n]*Reference ground energy (-?\d+(?:\.\d+)?)"
        match = re.search(re.escape(path.name) + energy, own.read_text("utf-8"))
        return float(match[1]) if match else None
    lines = (root / "README.md").read_text("utf-8").splitlines()
    line = next((one for one in lines if one.startswith(f"| {path.name}")), "")
    words = r"(?:optimal|best found|reference solution) (-?\d+(?:\.\d+)?)|(\d+) optimal"
    values = [float(a or b) for a, b in re.findall(words, line)]
    return min(values, default=None)


def run(case: Case, solver: str, seconds: float) -> Row:
    """One solver on one model, in a process of its own; the last line that it prints counts."""
    command = [sys.executable, "-m", "benchmarks.contest", solver, str(case.path), str(seconds)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env=os.environ | ONE_THREAD, cwd=Path(__file__).resolve().parent.parent,
    ) as process:  # fmt: skip
        try:
            out, err = process.communicate(timeout=seconds + GRACE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            err = "killed"
    lines = [line for line in out.splitlines() if line.startswith("{") and line.endswith("}")]
    row: Row = {"family": case.family, "model": case.name, "solver": solver, "energy": None}
    row |= {"bound": None, "proved": False, "seconds": seconds, "reference": case.reference}
    row |= {"tolerance": case.tolerance} | (json.loads(lines[-1]) if lines else {})
    if not lines:
        said = [line.strip() for line in err.splitlines() if line.strip()]
        row["error"] = said[-1] if said else "no answer"
    return row


def versions() -> dict[str, str]:
    """The versions of the peers that can be imported or called."""
    found = {}
    for solver, (module, package) in PACKAGES.items():
        try:
            importlib.import_module(module)
            found[solver] = f"{package} {importlib.metadata.version(package)}"
        except ImportError:  # of the module, or of one that it needs
            continue
    try:
        told = subprocess.run(["toulbar2", "--help"], capture_output=True, text=True, check=False)
        match = re.search(r"version\s*:?\s*([\d.]+\d)", told.stdout + told.stderr)
        found["toulbar2 command"] = f"toulbar2 {match[1] if match else ''}".strip()
    except OSError:  # no such command
        pass
    if by := [found[one] for one in TOULBAR2 if one in found]:
        found["toulbar2 VNS"] = by[0]
    return found


@dataclass
class Board:
    """The runs of a file, which grows by one line per run.

    Parameters
    ----------
    path : Path, optional
        The file; by default, nothing is stored.
    """

    path: Path | None
    facts: Row = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.path is not None and self.path.is_file():
            first, *rest = self.path.read_text("utf-8").splitlines()
            self.facts, self.rows = json.loads(first), [json.loads(line) for line in rest]

    def has(self, case: Case, solver: str) -> bool:
        """Whether a run is stored."""
        key = (case.family, case.name, solver)
        return any((r["family"], r["model"], r["solver"]) == key for r in self.rows)

    def begin(self, about: Row) -> None:
        """Store the facts of the run; a file that has facts keeps them."""
        if not self.facts:
            self.facts = about
            self._append(about)

    def add(self, row: Row) -> None:
        """Store a run."""
        self.rows.append(row)
        self._append(row)

    def _append(self, row: Row) -> None:
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


def chosen(options: argparse.Namespace, known: dict[str, str]) -> Iterator[tuple[Case, str]]:
    """Models and solvers to run; those models that a limit keeps are spread over the family."""
    root = shared_data()
    if root is None:
        sys.exit("no folder of instances beside the project")
    for family in options.family or FAMILIES:
        found = cases(root, family)
        step = max(1.0, len(found) / (options.limit_models or len(found) or 1))
        kept = [found[math.floor(k * step)] for k in range(math.ceil(len(found) / step - 1e-9))]
        for case in kept:
            for solver in ("softmap", *FAMILIES[family].peers):
                installed = solver == "softmap" or solver in known
                if installed and (not options.solver or solver in options.solver):
                    yield case, solver


def main() -> None:
    """Run the solvers and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--family", nargs="*", choices=list(FAMILIES))
    parser.add_argument("--solver", nargs="*")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--limit-models", type=int, help="at most this many models per family")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    known, board = versions(), Board(options.out)
    board.begin(
        facts() | {"seconds": options.seconds, "workers": options.workers, "solvers": known}
    )
    todo = [one for one in chosen(options, known) if not board.has(*one)]
    with ThreadPoolExecutor(options.workers) as pool:
        runs = [pool.submit(run, *one, options.seconds) for one in todo]
        for done in as_completed(runs):
            board.add(row := done.result())
            print({k: v for k, v in row.items() if v is not None}, flush=True)
    print(family_tables(board.rows), overview(board.rows), sep="\n\n")


if __name__ == "__main__":
    main()

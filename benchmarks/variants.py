"""Runs of one set of models under variants of the solver, several at a time, compared in one table.

`benchmarks.tuning` varies numbers, `benchmarks.ablation` switches mechanisms off. The models are
of all kinds: some of each family of a data folder where there is one, and generated ones. Every run
has one thread and the same time limit; the unchanged solver runs several times, so that the table
shows what noise alone does.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

import softmap
from benchmarks.summary import markdown

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.data import shared_data

PLAIN = "unchanged"
SAME = 1e-6  # relative difference under which two values count as equal
FAMILIES = (
    "uai-grid/*", "uai-protein/*", "uai-segmentation/*", "uai-scene/*", "uai-objectdetection/*",
    "uai-dbn/*", "uai-wcsp/*", "uai-relational/*", "uai-imagealignment/*", "uai-bayes/*", "wcsp/*",
    "cfn/*", "qpbo/*", "graph-matching/*.dd.xz", "qaplib/*", "more/maxcut-gset/*",
    "more/maxcut-be/*", "more/maxcut-bqp/*", "more/uai-spot5/*", "more/uai-pedigree/*",
    "more/uai-linkage/*", "more/uai-promedas/*", "more/uai-planning/*", "more/bif/*",
    "more/wcsp-frequency/*", "more/wcnf/*", "more/opb-qplib/*", "more/opb/*",
    "more/ising-chimera/*", "more/uai-cnf/*", "more/wcsp-spot5-vac/*", "more/qaplib/*",
)  # fmt: skip
"""The families of models of a data folder, as patterns of their files."""


@dataclass(frozen=True)
class Ran:
    """What one run of a variant has found."""

    model: str
    variant: str
    energy: float
    bound: float
    proved: bool
    seconds: float


def generated() -> dict[str, Callable[[], softmap.Model]]:
    """Models that need no data folder."""
    make = softmap.generators
    return {
        "paper 100": partial(make.erdos_renyi, 100, 3, seed=1),
        "paper 300": partial(make.erdos_renyi, 300, 3, seed=1),
        "random grid 40": partial(make.random_grid, 40, 40, 3, seed=1),
        "Potts grid 60": partial(make.potts_grid, 60, 60, 5, seed=1),
        "stereo 100": partial(make.stereo_grid, 100, 100, 16, seed=1),
        "tree 5000": partial(make.random_tree, 5000, 5, seed=1),
    }


def of_folder(each: int = 1) -> dict[str, Path]:
    """Files of the data folder, evenly out of each family.

    Parameters
    ----------
    each : int
        Number of files of a family, at most.
    """
    root = shared_data()
    if root is None:
        return {}
    found = {}
    for pattern in FAMILIES:
        files = sorted(p for p in root.glob(pattern) if _is_model(p))
        for k in sorted({(2 * i + 1) * len(files) // (2 * each) for i in range(each)}):
            if files:
                found[str(files[k].relative_to(root))] = files[k]
    return found


def _is_model(path: Path) -> bool:
    name = path.name.removesuffix(".xz").removesuffix(".gz")
    return name.endswith(
        (".uai", ".wcsp", ".cfn", ".bif", ".mc", ".dat", ".dd", ".qpbo", ".wcnf", ".opb", ".coo")
    )


def _read(path: Path) -> softmap.Model:
    values = "cost" if "uai-cost" in path.parts else None
    evidence = path.with_name(path.name.removesuffix(".xz") + ".evid")
    return softmap.read(path, values=values, evidence=evidence if evidence.exists() else None)


def _run(job: tuple[str, str, float, Callable[..., object]]) -> Ran | None:
    """Run one variant on one model; None if the model cannot be read."""
    name, variant, seconds, change = job
    own = generated()
    try:
        model = own[name]() if name in own else _read(Path(shared_data() or ".") / name)
    except softmap.SoftmapError:
        return None
    began = time.perf_counter()
    try:
        with change() as options:  # type: ignore[attr-defined]
            result = softmap.solve(model, time_limit=seconds, threads=1, **options)
    except softmap.InfeasibleModel:
        return Ran(name, variant, math.inf, math.inf, True, time.perf_counter() - began)
    proved = result.status in (softmap.Status.OPTIMAL, softmap.Status.GAP)
    spent = time.perf_counter() - began
    return Ran(name, variant, result.energy, result.bound, proved, spent)


def run_all(
    variants: dict[str, Callable[..., object]], *, seconds: float, processes: int, repeats: int,
    out: Path | None, only: str = "", each: int = 1,
) -> list[Ran]:  # fmt: skip
    """Run all variants on all models; write one line per run to a file."""
    names = [n for n in [*generated(), *of_folder(each)] if only in n]
    plain = variants[PLAIN]
    changed = {name: change for name, change in variants.items() if name != PLAIN}
    jobs = [(n, f"{PLAIN} {k}", seconds, plain) for k in range(repeats) for n in names]
    jobs += [(n, variant, seconds, change) for variant, change in changed.items() for n in names]
    found: list[Ran] = []
    context = multiprocessing.get_context("forkserver")
    with context.Pool(processes, maxtasksperchild=1) as pool:
        for ran in pool.imap_unordered(_run, jobs):
            if ran is None:
                continue
            found.append(ran)
            if out is not None:
                with out.open("a") as file:
                    print(json.dumps(asdict(ran)), file=file)
    return found


@dataclass(frozen=True)
class Change:
    """How a variant differs from the unchanged solver, over all models."""

    variant: str
    proofs: int
    better_energies: int
    worse_energies: int
    better_bounds: int
    worse_bounds: int
    time: float


def compared(found: Iterable[Ran]) -> list[Change]:
    """One line per variant: proofs, values outside the range of the unchanged runs, and times."""
    rows = list(found)
    plain = [r for r in rows if r.variant.startswith(PLAIN)]
    models = sorted({r.model for r in plain})
    usual = {m: [r for r in plain if r.model == m] for m in models}
    changes = []
    for variant in dict.fromkeys(r.variant for r in rows):
        own = {r.model: r for r in rows if r.variant == variant}
        changes.append(_change(variant, own, usual))
    return changes


def _change(variant: str, own: dict[str, Ran], usual: dict[str, list[Ran]]) -> Change:
    proofs, energies, bounds, ratios = 0, [0, 0], [0, 0], []
    for model, ran in own.items():
        known = [r for r in usual[model] if r.variant != variant] or usual[model]
        proofs += int(ran.proved) - round(np.mean([r.proved for r in known]))
        low, high = min(r.energy for r in known), max(r.energy for r in known)
        energies[0] += ran.energy < low - SAME * abs(low)
        energies[1] += ran.energy > high + SAME * abs(high)
        low, high = min(r.bound for r in known), max(r.bound for r in known)
        bounds[0] += ran.bound > high + SAME * abs(high)
        bounds[1] += ran.bound < low - SAME * abs(low)
        if ran.proved and all(r.proved for r in known):
            ratios.append(ran.seconds / np.median([r.seconds for r in known]))
    time_ratio = float(np.exp(np.mean(np.log(ratios)))) if ratios else math.nan
    return Change(variant, proofs, *energies, *bounds, time_ratio)


def table(changes: list[Change]) -> str:
    """The changes as a table."""
    header = ["variant", "proofs", "energies better", "worse", "bounds better", "worse", "time"]
    rows = [
        [
            c.variant, f"{c.proofs:+d}", str(c.better_energies), str(c.worse_energies),
            str(c.better_bounds), str(c.worse_bounds), f"{c.time:.2f}",
        ]
        for c in changes
    ]  # fmt: skip
    return markdown(header, rows)

"""A stored run: the points of all trials with every bit, and the seconds in another file."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from softmap.app.experiments.entries import Method
from softmap.app.experiments.plan import FIGURE3
from softmap.app.experiments.problems import Graph
from softmap.app.experiments.trials import Point, Results, Unit
from softmap.errors import FormatError
from softmap.io.atomic import replacing
from softmap.io.store import write_arrays

FLOATS = ("primal", "returned", "bound", "exchanged")


def save_run(results: Results, folder: Path) -> list[Path]:
    """Write run.npz and seconds.npz; the second differs from run to run.

    Parameters
    ----------
    results : dict of Unit to list of Point
        The results; units are written in their order. Equal results give equal bytes of run.npz.
    folder : Path
        Where to write them.
    """
    checks = {unit.checks: None for unit in results}
    number = {each: k for k, each in enumerate(checks)}
    units = [
        (u.figure, u.graph.n, u.graph.labels, u.graph.seed, u.method.method, u.method.form, u.eta,
         u.trial, number[u.checks])
        for u in results
    ]  # fmt: skip
    points = [point for unit in results for point in results[unit]]
    paths = [folder / "run.npz", folder / "seconds.npz"]
    arrays: dict[str, Any] = {"units": _text(units), "checks": _text(list(checks))}
    arrays["work"] = np.array([p.work for p in points], dtype=np.int64)
    arrays |= {name: np.array([getattr(p, name) for p in points]) for name in FLOATS}
    with replacing(paths[0]) as file:
        write_arrays(file, arrays, compress=True)
    timed = [p.seconds for unit in results if unit.figure == FIGURE3 for p in results[unit]]
    with replacing(paths[1]) as file:
        write_arrays(file, {"seconds": np.array(timed, dtype=np.float32)}, compress=True)
    return paths


def load_run(folder: Path) -> Results:
    """Read what `save_run` wrote; seconds are NaN but in Figure 3.

    Raises `FormatError` if a file is not of a stored run.
    """
    path = folder / "run.npz"
    try:
        with np.load(path) as stored:
            arrays = {name: stored[name] for name in ("work", *FLOATS)}
            checks = [tuple(each) for each in json.loads(stored["checks"].tobytes())]
            rows = json.loads(stored["units"].tobytes())
        with np.load(folder / "seconds.npz") as stored:
            timed = stored["seconds"].astype(np.float64)
    except (ValueError, KeyError) as error:
        raise FormatError(f"not a stored run of `softmap reproduce`: {error}", str(path)) from error
    units = [
        Unit(figure, Graph(n, labels, seed), Method(method, form), eta, trial, checks[k])
        for figure, n, labels, seed, method, form, eta, trial, k in rows
    ]
    in_figure3 = np.array([unit.figure == FIGURE3 for unit in units for _ in unit.checks], bool)
    if len(in_figure3) != len(arrays["work"]) or in_figure3.sum() != len(timed):
        message = f"{len(arrays['work'])} points of trials with {len(in_figure3)}"
        raise FormatError(f"not a stored run of `softmap reproduce`: {message}", str(path))
    seconds = np.full(len(in_figure3), np.nan)
    seconds[in_figure3] = timed
    columns = [each.tolist() for each in (arrays["work"], seconds, *(arrays[k] for k in FLOATS))]
    ends = np.cumsum([0, *(len(unit.checks) for unit in units)]).tolist()
    return {
        unit: [
            Point(updates, *values)
            for updates, *values in zip(
                unit.checks, *(column[begin:end] for column in columns), strict=True
            )
        ]
        for unit, (begin, end) in zip(units, pairwise(ends), strict=True)
    }


def _text(content: object) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.frombuffer(json.dumps(content, ensure_ascii=False).encode(), dtype=np.uint8)

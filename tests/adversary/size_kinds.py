"""Trials of models beyond enumeration, of files that are made to be costly, and of environments.

Each is a function of random numbers that says which promise was broken, as in kinds.py; None if
none was.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import lzma
import math
import os
import resource
import tempfile
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix

import softmap
from adversary.proofs import random_model
from softmap.app.cli.app import main
from support.hostile_proofs import KINDS as HOSTILE
from support.hostile_proofs import write_hostile

__all__ = ["SIZE_KINDS"]

SECONDS = 20.0  # of the processor, for what takes one
MEMORY = 256 << 20  # bytes, beside those of a process that has done nothing


# --- models beyond enumeration --------------------------------------------------------------------


def integer_optimum(counts: list[int], parts: list[Any]) -> float | None:
    """The least cost by a solver of integer programs; None if no labelling is allowed.

    Parameters
    ----------
    counts : list of int
        The number of labels of each variable.
    parts : list
        Factors of one and two variables as (scope, table), and constraints as
        (scope, weights by label, least sum, largest sum).
    """
    start = np.cumsum([0, *counts])
    sizes = [math.prod(table.shape) for _, table, *more in parts if not more and table.ndim == 2]
    n = int(start[-1]) + sum(sizes)
    cost, top, rows = np.zeros(n), np.ones(n), list[tuple[dict[int, float], float, float]]()
    rows += [(dict.fromkeys(range(start[i], start[i + 1]), 1.0), 1, 1) for i in range(len(counts))]
    first = int(start[-1])
    for scope, table, *ends in parts:
        if ends:
            row = {start[i] + a: float(w) for i, own in zip(scope, table, strict=True)
                   for a, w in enumerate(own)}  # fmt: skip
            rows.append((row, ends[0], ends[1]))
            continue
        at = first + np.arange(table.size).reshape(table.shape)
        if table.ndim == 1:
            at = start[scope[0]] + np.arange(table.size)
        else:
            first += table.size
            for axis, i in enumerate(scope):
                for a in range(table.shape[axis]):
                    row = dict.fromkeys(at.take(a, axis=axis).tolist(), 1.0)
                    rows.append((row | {int(start[i]) + a: -1.0}, 0, 0))
        cost[at.ravel()] += np.where(np.isfinite(table), table, 0.0).ravel()
        top[at.ravel()] *= np.isfinite(table).ravel()
    entries = [(k, at, w) for k, (row, *_) in enumerate(rows) for at, w in row.items()]
    k, at, weights = (np.array(column) for column in zip(*entries, strict=True))
    matrix = csr_matrix((weights, (k, at)), shape=(len(rows), n))
    limits = LinearConstraint(matrix, [row[1] for row in rows], [row[2] for row in rows])
    found = milp(cost, integrality=np.ones(n), bounds=Bounds(0, top), constraints=limits)
    if found.status == 2:
        return None
    assert found.status == 0, found.message
    return float(found.fun)


def _mid_sized(rng: np.random.Generator) -> str | None:
    """Models of 8 to 30 variables with whole costs, against integer programming."""
    n = int(rng.integers(8, 31))
    counts = rng.integers(2, 5, n).tolist()
    parts: list[Any] = [((i,), rng.integers(0, 9, d).astype(float)) for i, d in enumerate(counts)]
    hard = 0.15 if rng.random() < 0.5 else 0.0
    for _ in range(int(n * rng.uniform(0.8, 1.6))):
        i, j = sorted(rng.permutation(n)[:2].tolist())
        table = rng.integers(0, 9, (counts[i], counts[j])).astype(float)
        parts.append(((i, j), np.where(rng.random(table.shape) < hard, math.inf, table)))
    factors: list[Any] = list(parts)
    for _ in range(int(rng.integers(0, 3))):
        scope = rng.permutation(n)[: int(rng.integers(4, n))].tolist()
        weights = rng.integers(1, 5, len(scope))
        middle = float(sum(w * (counts[i] - 1) / 2 for i, w in zip(scope, weights, strict=True)))
        low, high = math.floor(middle - rng.integers(0, 6)), math.ceil(middle)
        factors.append(softmap.Linear(scope, weights.tolist(), low=low, high=high))
        rows = [w * np.arange(counts[i]) for i, w in zip(scope, weights, strict=True)]
        parts.append((scope, rows, low, high))
    best = integer_optimum(counts, parts)
    model = softmap.Model.from_factors(counts, factors)
    try:
        result = softmap.solve(model, threads=1, time_limit=float(rng.choice([0.2, 5.0])))
    except softmap.InfeasibleModel:
        return None if best is None else "a feasible model called infeasible"
    if best is None:
        return "labels of a model without any" if result.found else None
    if result.bound > best + 1e-6 or (result.found and result.energy < best - 1e-6):
        return f"bound {result.bound!r}, energy {result.energy!r}, optimum {best!r}"
    if result.status is softmap.Status.OPTIMAL and abs(result.energy - best) > 1e-6:
        return f"{result.energy!r} is called optimal, {best!r} is"
    return None if softmap.verify(result).holds else "verify rejects"


# --- costly files ---------------------------------------------------------------------------------


def _bomb(rng: np.random.Generator, path: Path) -> Path:
    """A file of almost nothing that holds up to 100 MB, in one of the compressions."""
    text = (b"\0", b"1 ", b"MARKOV\n", b"9", b"\n", b'{"a":[', b"p wcsp ")[rng.integers(7)]
    size = int(10 ** rng.uniform(5, 8))
    content = text * (size // len(text))
    way = int(rng.integers(5))
    if way < 3:
        pack: Any = (gzip.compress, lzma.compress, bz2.compress)[way]
        levels = ({"compresslevel": 1}, {"preset": 0}, {"compresslevel": 1})[way]
        path.write_bytes(pack(content, **levels))
        return path
    kinds = (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    with zipfile.ZipFile(path, "w", kinds[rng.integers(3)]) as archive:
        head = np.lib.format.magic(1, 0) + b"v\0{'descr': '<i8', 'fortran_order': False, 'shape': ("
        body = head + str(size // 8).encode() + b",), }"
        body = body.ljust(127) + b"\n" + content if rng.random() < 0.7 else content
        archive.writestr(str(rng.choice(["header.npy", "unary.npy", "format.npy"])), body)
    return path


def _hostile(rng: np.random.Generator) -> str | None:
    """Packed bombs, and proof files that ask for much: refused in little time and memory."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "x"
        if rng.random() < 0.4:
            kind = "a bomb"
            action: Callable[[], Any] = _reader(rng, _bomb(rng, path.with_suffix(".npz")))
        else:
            kind = str(rng.choice([*HOSTILE]))
            size = int(10 ** rng.uniform(2, 4.5))
            model = write_hostile(path, kind, size, compressed=bool(rng.random() < 0.5))
            action = lambda: softmap.verify(model, proof=path, effort=0.1)  # noqa: E731
        return _within(kind, action)


def _reader(rng: np.random.Generator, path: Path) -> Callable[[], Any]:
    model = softmap.generators.random_tree(5, seed=1)
    readers: list[Callable[[], Any]] = [
        lambda: softmap.read(path), lambda: softmap.load_result(path),
        lambda: softmap.verify(path), lambda: softmap.resume(path, model, max_work=1),
        lambda: softmap.verify(model, proof=path),
    ]  # fmt: skip
    return readers[rng.integers(len(readers))]


def _within(kind: str, action: Callable[[], Any]) -> str | None:
    """What is wrong with an action on a file that is costly: its time, or its memory."""
    began = time.process_time()
    tracemalloc.start()
    try:
        action()
    except softmap.SoftmapError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    spent = time.process_time() - began
    if spent > SECONDS:
        return f"{kind}: {spent:.0f} s"
    return f"{kind}: {peak >> 20} MB" if peak > MEMORY else None


# --- environments ---------------------------------------------------------------------------------


@contextlib.contextmanager
def _environment(rng: np.random.Generator, folder: Path) -> Iterator[str]:
    """Variables, limits and folders as users may have them; yields what was changed, in words."""
    some: dict[str, str | None] = {
        "HOME": None, "TMPDIR": str(folder / "missing"), "COLUMNS": str(rng.integers(0, 200)),
        "TERM": "dumb", "NO_COLOR": "1", "LC_ALL": "C", "LANG": "tr_TR.UTF-8", "TZ": "nowhere",
        "XDG_CACHE_HOME": "/dev/null", "SOFTMAP_CUDA": "none", "PYTHONHASHSEED": "1",
        "OMP_NUM_THREADS": "0", "PATH": "", "USER": None,
    }  # fmt: skip
    chosen = [name for name in some if rng.random() < 0.3]
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = rng.random() < 0.2
    with mock.patch.dict(os.environ), mock.patch.object(tempfile, "tempdir", None):
        for name in chosen:
            os.environ.pop(name, None)
            if (value := some[name]) is not None:
                os.environ[name] = value
        try:
            if few:
                resource.setrlimit(resource.RLIMIT_NOFILE, (64, files[1]))
            yield ", ".join([*chosen, *(["few files"] if few else [])])
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, files)


def _elsewhere(rng: np.random.Generator) -> str | None:
    """The command gives the same answer in whatever environment."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        softmap.write(random_model(rng), folder / "m.npz")
        words = ["solve", str(folder / "m.npz"), "--json", "--no-progress", "--max-work", "2000"]
        words += ["--proof", str(folder / "proof")] if rng.random() < 0.5 else []
        plain = _answer(words)
        with _environment(rng, folder) as changed:
            other = _answer(words)
    return None if plain == other else f"{changed}: {plain}, then {other}"


def _answer(words: list[str]) -> tuple[Any, ...]:
    """The exit code of the command, and the numbers that it prints."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()):
        code = main(words)
    lines = text.getvalue().strip().splitlines()
    facts = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
    return code, *(facts.get(name) for name in ("status", "energy", "bound", "labels"))


SIZE_KINDS: dict[str, Callable[[np.random.Generator], str | None]] = {
    "mid-sized": _mid_sized,
    "hostile files": _hostile,
    "environments": _elsewhere,
}

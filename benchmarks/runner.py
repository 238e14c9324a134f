"""Run tasks in workers, judge what comes back, climb the tolerances until the gap is certified."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.certify import certify
from benchmarks.instances import ROOT
from benchmarks.peers import PEERS, Answer
from softmap.model import Model
from softmap.relaxation.gaps import gap_unit

LADDER = 2.0  # times its limit that all tolerances of a method get together
GRACE = 30.0  # seconds beyond its limit that a method gets to prepare and to hand over


@dataclass(frozen=True)
class Limits:
    """Seconds per run and threads."""

    time_limit: float = 60.0
    threads: int = 2


def attempts(
    instance: str, model: Model, method: str, gap: float, limits: Limits
) -> Iterator[dict[str, Any]]:
    """One row per tolerance tried, until one certifies the gap or the time is used up."""
    spent = 0.0
    for factor in PEERS[method].ladder:
        task: dict[str, Any] = {
            "instance": instance,
            "fingerprint": model.fingerprint(),
            "method": method,
            "gap": gap,
            "tolerance": gap * factor,
            "time_limit": limits.time_limit,
            "threads": limits.threads,
        }
        row = task | run_task(task, model)
        row["reached"] = row["lp_gap"] <= gap
        yield row
        spent += row["seconds"]
        if row["reached"] or spent >= LADDER * limits.time_limit or "cpu_seconds" not in row:
            return


def run_task(task: dict[str, Any], model: Model) -> dict[str, Any]:
    """Run one worker to its end or its limit, and judge its answer."""
    with tempfile.TemporaryDirectory() as folder:
        asked, given = Path(folder, "task.json"), Path(folder, "result.json")
        asked.write_text(json.dumps(task))
        command = [sys.executable, "-m", "benchmarks.worker", str(asked), str(given)]
        failure = _wait(command, task)
        if failure or not given.is_file():
            return _nothing(failure or "no result", task)
        figures = json.loads(given.read_text())
        with np.load(given.with_suffix(".npz")) as arrays:
            found = dict(arrays)
    answer = Answer(found.get("lam"), found.get("nodes"), "", labels=found.get("labels"))
    certified = certify(model, answer)
    return figures | {
        "bound": certified.bound,
        "primal": certified.primal,
        "energy": certified.energy,
        "lp_gap": certified.lp_gap,
        "map_gap": certified.map_gap,
    }


def _wait(command: list[str], task: dict[str, Any]) -> str | None:
    """Run a command; a sentence where it failed, else None."""
    environment = os.environ | {"OMP_NUM_THREADS": str(task["threads"])}
    limit = 2 * task["time_limit"] + GRACE
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, timeout=limit, capture_output=True, text=True
        )
    except subprocess.TimeoutExpired:
        return f"ended after {limit:.0f} s without an answer"
    if done.returncode:
        errors = re.findall(r"^[\w.]*(?:Error|Exception|Killed)\b.*", done.stderr, re.MULTILINE)
        return errors[-1] if errors else f"exit code {done.returncode}"
    return None


def _nothing(reason: str, task: dict[str, Any]) -> dict[str, Any]:
    infinite = dict.fromkeys(("primal", "energy", "lp_gap", "map_gap"), float("inf"))
    return infinite | {"bound": float("-inf"), "seconds": task["time_limit"], "status": reason}


def best_bracket(
    instance: str, model: Model, methods: list[str], gap: float, limits: Limits
) -> tuple[float, float, str]:
    """Highest bound and lowest primal over methods, until they agree to `gap`."""
    bound, primal, used = float("-inf"), float("inf"), ""
    for method in methods:
        for row in attempts(instance, model, method, gap, limits):
            if row["bound"] > bound or row["primal"] < primal:
                used = method
            bound, primal = max(bound, row["bound"]), min(primal, row["primal"])
        if primal - bound <= gap * gap_unit(bound):
            break
    return bound, primal, used

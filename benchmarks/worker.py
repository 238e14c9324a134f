"""One method on one instance in a process of its own: `python -m benchmarks.worker TASK RESULT`.

A process of its own gives honest peak memory, keeps libraries apart that cannot live together, and
can be ended when it overruns its time.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.instances import INSTANCES
from benchmarks.memory import peak_megabytes, reset_peak
from benchmarks.peers import PEERS, Settings


def run(task: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Prepare off the clock, solve on it; figures and arrays."""
    peer = PEERS[task["method"]]
    prepare = peer.prepare()
    model = INSTANCES[task["instance"]].build()
    settings = Settings(task["gap"], task["tolerance"], task["time_limit"], task["threads"])
    if model.fingerprint() != task["fingerprint"]:
        raise ValueError("the generators or readers have changed since the benchmark began")
    reset_peak()
    before = peak_megabytes()
    began = time.perf_counter()
    solve = prepare(model, settings)
    wall, cpu = time.perf_counter(), time.process_time()
    answer = solve()
    figures = {
        "seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - cpu,
        "prepare_seconds": wall - began,
        "memory_mb": peak_megabytes() - before,
        "model_mb": model.network.nbytes / 1e6,
        "edges": model.m,
        "status": answer.status,
        "iterations": answer.iterations,
        "work": answer.work,
        "trace": answer.trace,
    }
    arrays = {"lam": answer.lam, "nodes": answer.nodes, "labels": answer.labels}
    return figures, {name: a for name, a in arrays.items() if a is not None}


def main() -> None:
    """Read the task, run it, store what came out."""
    task_path, result_path = Path(sys.argv[1]), Path(sys.argv[2])
    figures, arrays = run(json.loads(task_path.read_text()))
    np.savez(result_path.with_suffix(".npz"), **arrays)
    result_path.write_text(json.dumps(figures))
    # some libraries keep threads that wait for ever
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()

"""What passes over parts cost: run as `mpiexec -n P python -m benchmarks.distributed`.

Prints one JSON line: processor time per pass in compiled loops and in exchanges (which includes
waiting), bytes sent per pass beside the cut, memory and start-up, all from the first process or
summed over all of them.
"""

from __future__ import annotations

import json
import resource
import time
from typing import Any

import typer

BEGAN = time.perf_counter()


def main(side: int = 400, labels: int = 8, parts: int = 16, passes: int = 10) -> None:
    from mpi4py import MPI

    from softmap import generators
    from softmap.model.partition import partition
    from softmap.parts.cut import cut_model
    from softmap.parts.passes import PartsPasses
    from softmap.parts.team import Team

    comm = MPI.COMM_WORLD
    loaded = time.perf_counter()
    model = generators.potts_grid(side, side, labels)
    part = partition(model, parts)
    team = Team(comm, parts)
    whole, pieces = cut_model(model, part, team.mine)
    owner = team.owner[part][model.edges]
    between = int((owner[:, 0] != owner[:, 1]).sum())
    fingerprint = whole.fingerprint[:8]
    del model
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    cut = time.process_time()
    run = PartsPasses(team, whole, pieces, 1)
    planned = time.process_time() - cut
    spent = {"compute": 0.0, "exchange": 0.0}
    _watch(run, spent)
    run.run(2, 100.0)
    spent["compute"] = spent["exchange"] = 0.0
    began = time.perf_counter()
    run.run(passes, 100.0)
    run.settle()
    wall = (time.perf_counter() - began) / passes
    figures = {
        "compute": spent["compute"] / passes,
        "exchange": spent["exchange"] / passes,
        "bytes": run.halo_bytes,
        "planning": planned,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "part_mb": sum(p.model.network.nbytes for p in pieces) / 2**20,
        "before_mb": before / 1024,
    }
    gathered = comm.gather(figures, root=0)
    if comm.rank == 0:
        total = {name: sum(each[name] for each in gathered) for name in figures}
        facts: dict[str, Any] = {
            "processes": comm.size, "parts": parts, "side": side, "labels": labels,
            "model": fingerprint, "cut": between, "wall_per_pass": wall,
            "start": loaded - BEGAN, "most_compute": max(g["compute"] for g in gathered),
            "cut_bytes": between * labels * 8,
        }  # fmt: skip
        print(json.dumps(facts | {f"total_{name}": value for name, value in total.items()}))


def _watch(run: Any, spent: dict[str, float]) -> None:
    """Add up the processor time of loops and of exchanges."""

    def timed(name: str, function: Any) -> Any:
        def call(*arguments: Any) -> None:
            began = time.thread_time()
            function(*arguments)
            spent[name] += time.thread_time() - began

        return call

    for chains in run.chains.values():
        chains.half_pass = timed("compute", chains.half_pass)
        chains.extrapolate = timed("compute", chains.extrapolate)
    for exchange in run._exchanges.values():
        exchange.run = timed("exchange", exchange.run)


if __name__ == "__main__":
    typer.run(main)

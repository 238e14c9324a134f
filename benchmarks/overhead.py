"""What parts cost one process: passes over 1, 2, … parts against those of `softmap.solve`.

`python -m benchmarks.overhead`: turn and turn about in one process, processor time of one thread;
prints the ratio of the least times and the median of the ratios of each turn.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import typer


def main(side: int = 600, labels: int = 8, turns: int = 9, eta: float = 100.0) -> None:
    from softmap import generators
    from softmap.methods.sweeps.chains import Chains
    from softmap.model.partition import partition
    from softmap.parts.cut import cut_model
    from softmap.parts.passes import PartsPasses
    from softmap.parts.team import Team

    model = generators.potts_grid(side, side, labels)
    chains = Chains(model, 1)
    messages = chains.start(None)
    work: dict[int, Callable[[], None]] = {
        0: lambda: chains.passes(messages, 1, eta, momentum=True)
    }
    for parts in (1, 2, 4, 8, 16):
        whole, pieces = cut_model(model, partition(model, parts))
        run = PartsPasses(Team(None, parts), whole, pieces, 1)
        work[parts] = _one(run, eta)
    spent: dict[int, list[float]] = {parts: [] for parts in work}
    for turn in range(turns + 1):
        for parts, call in work.items():
            began = time.thread_time()
            call()
            if turn:
                spent[parts].append(time.thread_time() - began)
    for parts, seconds in spent.items():
        least = min(seconds) / min(spent[0])
        ratios = np.array(seconds) / np.array(spent[0])
        print(f"{parts:3d} parts: {1e3 * min(seconds):.1f} ms, {least:.3f}, median ratio "
              f"{statistics.median(ratios):.3f}")  # fmt: skip


def _one(run: object, eta: float) -> Callable[[], None]:
    def call() -> None:
        run.run(1, eta)  # type: ignore[attr-defined]
        run.settle()  # type: ignore[attr-defined]

    return call


if __name__ == "__main__":
    typer.run(main)

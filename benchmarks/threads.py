"""How passes and runs scale with threads: python -m benchmarks.threads [options].

Three tables, each printed as soon as its rows are known:

    passes    seconds of one pass by threads, gigabytes per second that it moves, and their share of
              the copy bandwidth of as many threads, measured in the same run
    runs      seconds to an LP gap by threads
    sections  of the run with the most threads: seconds by function outside the passes

On a machine with 16 cores, alone on it:

    python -m benchmarks.threads                           all passes; runs with 16 threads: 120 s
    python -m benchmarks.threads --models potts --runs 1,16 --seconds 90    time to a gap: 100 s
    python -m benchmarks.threads --models dense --runs 1,4,16 --seconds 60  the same: 80 s
    python -m benchmarks.threads --models graph6 --runs 1,16 --seconds 60   the same: 60 s
    python -m benchmarks.threads --small                   everything on small models: some seconds

`--out FILE` adds all rows to a file of JSON lines.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import softmap
from benchmarks.passes import ETA
from benchmarks.summary import markdown
from softmap import core, generators
from softmap.machine import usable_cores
from softmap.methods.sweeps.chains import Chains
from softmap.methods.sweeps.loops import Messages
from softmap.methods.sweeps.planning import aligned
from softmap.model import Model
from softmap.relaxation.consistency import tighten

Row = dict[str, Any]
LISTED = 14  # functions in the table of sections


def random_graph(edges: int, labels: int = 3, seed: int = 0) -> Model:
    """A random graph with about this many edges and 13 of them at a node; all tables are ±1."""
    rng = np.random.default_rng(seed)
    n = max(2, edges * 2 // 13)
    first, last = np.sort(rng.integers(n, size=(2, edges)), axis=0)
    key = np.unique(first[first < last] * n + last[first < last])
    pairs = np.stack([key // n, key % n], axis=1)
    tables = rng.choice([-1.0, 1.0], size=(len(pairs), labels, labels))
    return Model(rng.uniform(-0.01, 0.01, (n, labels)), pairs, softmap.Tables(tables))


def models(*, small: bool) -> dict[str, Callable[[], Model]]:
    """The models by name."""
    by = 8 if small else 1
    return {
        "potts": lambda: generators.potts_grid(1024 // by, 1024 // by, 16),
        "dense": lambda: generators.random_grid(512 // by, 512 // by, 8),
        "graph6": lambda: random_graph(10**6 // by**2),
        "graph7": lambda: random_graph(10**7 // by**2),
    }


class Copying:
    """The copy bandwidth of some threads, each of which copies its own part of an array."""

    def __init__(self, megabytes: int = 512) -> None:
        self._from, self._to = np.ones(megabytes << 17), np.ones(megabytes << 17)

    def bandwidth(self, threads: int, repeats: int = 3) -> float:
        """Gigabytes read and written per second."""
        cuts = np.linspace(0, len(self._from), threads + 1).astype(int)
        parts = list(pairwise(cuts))

        def copy(part: tuple[int, int]) -> None:
            np.copyto(self._to[slice(*part)], self._from[slice(*part)])

        with ThreadPoolExecutor(threads) as pool:
            taken = least(lambda: list(pool.map(copy, parts)), repeats + 1)
        return 2 * self._from.nbytes / taken / 1e9


def least(work: Callable[[], object], repeats: int) -> float:
    """The smallest of some wall times of a function."""
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return min(taken)


@dataclass
class Pass:
    """Passes with momentum over one model, with any number of threads."""

    chains: Chains
    state: Messages

    @classmethod
    def over(cls, model: Model) -> Pass:
        """Plan the passes over a model; messages are 0."""
        chains = Chains(tighten(model), usable_cores())
        return cls(chains, chains.start(None))

    def __post_init__(self) -> None:
        plan = self.chains.plan
        self._theta, self._dot = aligned(plan.cost_size), np.zeros(len(plan.blocks))

    def run(self, threads: int) -> None:
        """One pass: two messages per edge."""
        state, loops = self.state, self.chains.loops
        arrays = core.ChainArrays(
            state.msg, state.drift, self._theta, state.shift, self._dot, state.clock
        )
        core.passes(loops.layout, self.chains.plan.native, arrays, 2, ETA, True, threads)

    @property
    def moved(self) -> int:
        """Bytes that one pass moves if each half pass loads every cache line once.

        Each half pass reads all messages, the node costs and the tables, and writes the messages
        of one direction and the shares of the nodes. Momentum reads and writes the messages into
        early endpoints once more, and its drift, in single precision, in both half passes.
        """
        plan, state = self.chains.plan, self.state
        halves = 2 * (state.msg.nbytes + plan.unary.nbytes + plan.table.nbytes + self._theta.nbytes)
        early = plan.back_size * state.msg.itemsize
        return int(halves + state.msg.nbytes + 2 * early + 4 * state.drift.nbytes)


def passes(name: str, model: Model, threads: list[int], copying: dict[int, float]) -> Iterator[Row]:
    """One row by number of threads."""
    work = Pass.over(model)
    work.run(max(threads))
    one = 0.0
    for count in threads:
        taken = least(lambda n=count: work.run(n), 4)  # type: ignore[misc]
        one = one or taken * threads[0]
        speed = work.moved / taken / 1e9
        yield {
            "model": name,
            "threads": count,
            "levels": len(work.chains.plan.row_start) - 1,
            "ms per pass": 1e3 * taken,
            "speed-up": one / taken,
            "GB/s": speed,
            "of copying": speed / copying[count],
        }


def run(name: str, model: Model, threads: int, options: argparse.Namespace) -> tuple[Row, Any]:
    """The time to an LP gap, and where it went."""
    profile = cProfile.Profile()
    began, used = time.perf_counter(), time.process_time()
    profile.enable()
    found = softmap.solve(
        model, goal="lp", lp_gap=options.gap, threads=threads, time_limit=options.seconds,
    )  # fmt: skip
    profile.disable()
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    stats: Any = pstats.Stats(profile)
    inside = sum(row[2] for place, row in stats.stats.items() if _in_passes(place))
    gap = (found.primal - found.bound) / abs(found.bound)
    return {
        "model": name,
        "threads": threads,
        "seconds": seconds,
        "CPU seconds": cpu,
        "passes": round(found.sweeps),
        "in passes": inside,
        "outside": seconds - inside,
        "LP gap": gap,
    }, stats


def _in_passes(place: tuple[str, int, str]) -> bool:
    """Whether a function of a profile is the call of the compiled passes of a run."""
    return place[0].endswith("sweeps/chains.py") and place[2] == "_soft_passes"


def sections(name: str, seconds: float, stats: Any) -> Iterator[Row]:
    """The functions outside the passes with the most time of their own, compiled calls included."""
    rows = [(row[2], row[0], place) for place, row in stats.stats.items() if not _in_passes(place)]
    for own, calls, (file, _, function) in sorted(rows, reverse=True)[:LISTED]:
        where = "/".join(Path(file).parts[-2:])
        yield {
            "model": name,
            "function": f"{where} {function}",
            "calls": calls,
            "seconds": own,
            "share": own / seconds,
        }


def numbers(text: str) -> list[int]:
    """Numbers with commas between them, those that this machine has cores for."""
    return [int(part) for part in text.split(",") if part and int(part) <= usable_cores()]


def parsed() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--models", default="potts,dense,graph6,graph7", help="names, comma between"
    )
    parser.add_argument("--threads", default="1,2,4,8,16", help="for passes; '' for no passes")
    parser.add_argument("--runs", default=None, help="threads of runs; all cores by default")
    parser.add_argument("--gap", type=float, default=1e-3, help="LP gap of runs")
    parser.add_argument("--seconds", type=float, default=20.0, help="time limit of each run")
    parser.add_argument("--small", action="store_true", help="small models, to try this program")
    parser.add_argument("--out", type=Path, help="file for JSON lines")
    return parser.parse_args()


def show(title: str, rows: list[Row], out: Path | None) -> None:
    """Print rows as a table, and add them to a file."""
    if not rows:
        return
    shown = [[f"{v:.3g}" if isinstance(v, float) else str(v) for v in r.values()] for r in rows]
    print(markdown(list(rows[0]), shown), flush=True)
    if out:
        with out.open("a") as file:
            file.writelines(json.dumps({"what": title} | row) + "\n" for row in rows)


def main() -> None:
    """All tables, model by model."""
    options = parsed()
    threads = numbers(options.threads)
    runs = [usable_cores()] if options.runs is None else numbers(options.runs)
    copies = Copying(64 if options.small else 512)
    copying = {count: copies.bandwidth(count) for count in threads}
    del copies
    show(
        "copying", [{"threads": t, "copy GB/s": speed} for t, speed in copying.items()], options.out
    )
    makers = models(small=options.small)
    for name in options.models.split(","):
        model = makers[name]()
        if threads:
            rows = list(passes(name, model, threads, copying))
            show("passes", rows, options.out)
        for count in runs:
            row, stats = run(name, model, count, options)
            show("runs", [row], options.out)
        if runs:
            show("sections", list(sections(name, row["seconds"], stats)), options.out)


if __name__ == "__main__":
    main()

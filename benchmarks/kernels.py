"""How fast a pass is: each row a ratio of two times taken in turns in one run, with its target.

`python -m benchmarks.kernels [--out FILE] [--largest EDGES]`
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.instances import INSTANCES, ROOT
from benchmarks.memory import peak_megabytes, reset_peak
from benchmarks.passes import Passes
from benchmarks.summary import markdown
from softmap import core, generators
from softmap.model import Model

VALUES = 2_000_000  # exponentials per pass in the comparisons with exponentials alone
# design, section 6: milliseconds of a C++ TRW-S sweep
CPP_SWEEP = {"er1000": 0.4, "potts64": 0.5, "rand128": 3.2, "trunc256": 43.0}
FIRST = """
import time
began = time.perf_counter()
import softmap
softmap.solve(softmap.generators.potts_grid(8, 8, 3))
first = time.perf_counter() - began
began = time.perf_counter()
softmap.solve(softmap.generators.potts_grid(8, 8, 3))
print(first - (time.perf_counter() - began))
"""


@dataclass(frozen=True)
class Line:
    """One ratio and what it should be at most (or, for a speed-up, at least)."""

    what: str
    measured: float
    target: float
    unit: str = "×"
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the target is reached."""
        return self.measured >= self.target if self.at_least else self.measured <= self.target


def in_turns(
    *works: Callable[[], object],
    repeats: int = 9,
    clock: Callable[[], float] = time.thread_time,
) -> list[float]:
    """Least time of each, taken in turns so that a busy moment hits all of them.

    The default clock counts this thread's own time only, which a busy machine disturbs least; work
    on several threads needs the wall's.
    """

    def seconds(work: Callable[[], object]) -> float:
        began = clock()
        work()
        return clock() - began

    taken = [[seconds(work) for work in works] for _ in range(repeats)]
    return [min(column) for column in zip(*taken, strict=True)]


def exp_floor(count: int) -> Callable[[], object]:
    """Our own vectorised exp over so many values: numpy's is not vectorised on every machine."""
    values, out = np.random.default_rng(0).uniform(-20.0, 0.0, count), np.empty(count)
    return lambda: core.exponentials(values, out)


def dense() -> Iterator[Line]:
    """A pass over dense tables against exp over its 2·m·d² entries."""
    for d in (2, 3, 4, 8, 16, 32):
        side = max(8, round((VALUES / (4 * d * d)) ** 0.5))
        model = generators.random_grid(side, side, d)
        one, floor = in_turns(Passes(model, threads=1).run, exp_floor(2 * model.m * d * d))
        yield Line(f"pass, tables, d = {d}, / exp of 2·m·d²", one / floor, 1.5 if d >= 8 else 3.0)


def structured() -> Iterator[Line]:
    """A pass over structured potentials against exp over 2·m·d values."""
    for name, generator in (("Potts", generators.potts_grid), ("linear", generators.stereo_grid)):
        for d in (4, 8, 16, 32):
            side = max(8, round((VALUES / (4 * d)) ** 0.5))
            model = generator(side, side, d)
            one, floor = in_turns(Passes(model, threads=1).run, exp_floor(2 * model.m * d))
            yield Line(f"pass, {name}, d = {d}, / exp of 2·m·d", one / floor, 5.0)


def threads() -> Iterator[Line]:
    """Two threads against one."""
    models = {
        "tables, d = 4": generators.random_grid(256, 256, 4),
        "tables, d = 16": generators.random_grid(96, 96, 16),
        "Potts, d = 8": generators.potts_grid(256, 256, 8),
        "random graph": generators.erdos_renyi(10000, 3),
    }
    for name, model in models.items():
        runs = [Passes(model, threads=count).run for count in (1, 2)]
        one, two = in_turns(*runs, repeats=25, clock=time.perf_counter)
        yield Line(f"two threads, {name}", one / two, 1.6, at_least=True)


def scaling(largest: int) -> Iterator[Line]:
    """Time per edge as a Potts grid of 4 labels grows."""
    base = 0.0
    for edges in (10**4, 10**5, 10**6, 10**7):
        if edges > largest:
            return
        side = round((edges / 2) ** 0.5)
        model = generators.potts_grid(side, side, 4)
        (taken,) = in_turns(Passes(model, threads=1).run, repeats=5)
        base = base or taken / model.m
        yield Line(f"time per edge, {model.m:,} edges / 10⁴", taken / model.m / base, 2.0)


def trws() -> Iterator[Line]:
    """Our TRW-S against the C++ one of the design, on this machine as it is."""
    for name, milliseconds in CPP_SWEEP.items():
        model = INSTANCES[name].build()
        (taken,) = in_turns(Passes(model, threads=1, hard=True).run)
        yield Line(f"TRW-S sweep, {name}, / C++", 1e3 * taken / milliseconds, 1.5)


def memory() -> Iterator[Line]:
    """Peak memory of a solve, the model included, against the model's own arrays."""
    for name in ("tables", "potts"):
        ratio = _output([sys.executable, "-m", "benchmarks.kernels", "--memory-of", name])
        yield Line(f"peak memory / model, {name}", ratio, 2.5)


def first_solve() -> Iterator[Line]:
    """Import and first solve in a new process, beyond what the same solve takes later."""
    command = [sys.executable, "-c", FIRST]
    yield Line("first solve, overhead", min(_output(command) for _ in range(3)), 1.0, unit="s")


def _output(command: list[str]) -> float:
    """The number a new process prints last."""
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, check=True)
    return float(done.stdout.decode().split()[-1])


def _memory_of(name: str) -> float:
    from softmap import solve

    solve(generators.potts_grid(3, 3, 3), time_limit=0.2)
    solve(generators.random_grid(3, 3, 3), time_limit=0.2)
    reset_peak()
    before = peak_megabytes()
    model = _large(name)
    solve(model, time_limit=5.0, lp_gap=1e-3)
    return (peak_megabytes() - before) / (model.network.nbytes / 1e6)


def _large(name: str) -> Model:
    if name == "tables":
        return generators.random_grid(300, 300, 16)
    return generators.potts_grid(1000, 1000, 8)


def main() -> None:
    """All rows, printed as they come, then as a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--largest", type=int, default=10**7)
    parser.add_argument("--only", default="", help="names of groups, comma between")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_of:
        print(_memory_of(options.memory_of))
        return
    groups: dict[str, Callable[[], Iterator[Line]]] = {
        "dense": dense,
        "structured": structured,
        "threads": threads,
        "scaling": lambda: scaling(options.largest),
        "trws": trws,
        "memory": memory,
        "first": first_solve,
    }
    chosen = options.only.split(",") if options.only else list(groups)
    lines = []
    for name in chosen:
        for line in groups[name]():
            print(f"{line.what:45} {line.measured:8.2f}{line.unit} {line.met}", flush=True)
            lines.append(line)
    print(table(lines))
    if options.out:
        rows = (json.dumps(asdict(line) | {"met": line.met}) for line in lines)
        options.out.write_text("\n".join(rows) + "\n")


def table(lines: list[Line]) -> str:
    """The rows as Markdown."""
    body = [
        [
            line.what,
            f"{line.measured:.2f} {line.unit}",
            f"{'≥' if line.at_least else '≤'} {line.target:g} {line.unit}",
            "yes" if line.met else "no",
        ]
        for line in lines
    ]
    return markdown(["what", "measured", "to reach", "reached"], body)


if __name__ == "__main__":
    main()

"""Wide label spaces and large pictures: python -m benchmarks.wide [WHAT ...] [--out FILE].

Each WHAT prints one table and, with --out, adds its rows to a file of JSON lines. Everything is a
ratio within one run, or seconds of processor time: machines are busy.

    checks    one check over one pass, truncated linear, by labels
    labels    nanoseconds of one pass per edge and label, Potts and truncated linear
    pixels    one pass per pixel, and a run to an LP gap of 1e-3, Potts with 4 labels, by pixels
    shares    the part of a run to an LP gap of 1e-3 that checks and labels take, by instance
    energies  energies of anneal and trws, both with our search for labels, after equal time
    picture   450 × 375 pixels, 64 and 32 labels: gaps by time, α-expansion and TRW-S beside it
    memory    peak over an idle process, 1,000 × 1,000 Potts with 4 labels
    large     2,000 × 2,000 Potts with 4 labels to an LP gap of 1e-3
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import softmap
from benchmarks.instances import FOLDER, INSTANCES
from benchmarks.memory import peak_megabytes, reset_peak
from benchmarks.peers.expansion import expansion
from softmap.generators import grid_edges, potts_grid
from softmap.methods.policy import Ask
from softmap.methods.sweeps.anneal import Anneal
from softmap.model import Model
from softmap.relaxation.consistency import tighten
from softmap.run.judge import Judge
from softmap.subsolvers.passes.passes import Passes

Row = dict[str, Any]
SIDES = {4: 160, 16: 96, 64: 64, 256: 32}  # of a grid with so many labels
THREADS = 2


def grid(labels: int, potts: bool = False) -> Model:
    """A random grid with so many labels."""
    side, rng = SIDES[labels], np.random.default_rng(0)
    edges = grid_edges(side, side)
    weights = rng.uniform(0.05, 0.3, len(edges))
    near = max(2.0, np.sqrt(labels))
    potential = softmap.Potts(weights) if potts else softmap.TruncatedLinear(weights, near)
    return tighten(Model(rng.random((side * side, labels)), edges, potential))


def least(work: Callable[[], object], repeats: int = 5) -> float:
    """The least seconds that something took."""
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return min(taken)


def checks() -> Iterator[Row]:
    """What checks ask, over one pass, at the first η and at thirty times that."""
    for labels in (16, 64, 256):
        model = grid(labels)
        for factor in (1.0, 30.0):
            method = Anneal(threads=THREADS)
            state = method.init(model, None, 0)
            state.eta *= factor
            method.step(state, 5)
            method.step(state, 20)  # from here on, bounds are polished
            judge = Judge.of(model, THREADS)
            row: Row = {"labels": labels, "eta": round(state.eta, 1)}
            for ask in Ask:
                look = judge.bound if ask is Ask.BOUND else judge.look
                passes, asked = [], []
                for _ in range(5):
                    passes.append(least(lambda m=method, s=state: m.step(s, 1), 1))  # type: ignore[misc]
                    asked.append(
                        least(lambda m=method, s=state, a=ask, f=look: f(m.answer(s, a)), 1)  # type: ignore[misc]
                    )
                row[f"{ask.name.lower()} / pass"] = min(asked) / min(passes)
            yield row


def labels() -> Iterator[Row]:
    """Nanoseconds of one pass per edge and label."""
    for family in ("potts", "truncated linear"):
        for count in SIDES:
            model = grid(count, potts=family == "potts")
            method = Anneal(threads=1)
            state = method.init(model, None, 0)
            method.step(state, 2)
            seconds = least(lambda m=method, s=state: m.step(s, 1))  # type: ignore[misc]
            yield {
                "family": family,
                "labels": count,
                "ns per edge and label": 1e9 * seconds / (model.m * count),
            }


def pixels() -> Iterator[Row]:
    """Microseconds per pixel of one pass and of a run to 1e-3, on one thread."""
    for side in (32, 64, 128, 256, 512, 1024):
        model = potts_grid(side, side, 4, seed=0)
        began = time.process_time()
        found = softmap.solve(model, goal="lp", lp_gap=1e-3, threads=1)
        whole = time.process_time() - began
        method, tight = Anneal(threads=1), tighten(model)
        state = method.init(tight, None, 0)
        method.step(state, 2)
        seconds = least(lambda m=method, s=state: m.step(s, 1))  # type: ignore[misc]
        yield {"pixels": model.n, "passes": round(found.sweeps),
               "µs per pixel, one pass": 1e6 * seconds / model.n,
               "µs per pixel, all of the run": 1e6 * whole / model.n}  # fmt: skip


class _Timed:
    """Seconds inside a method of a class, while it is watched."""

    def __init__(self, owner: type, name: str) -> None:
        self.owner, self.name, self.seconds = owner, name, 0.0

    def __enter__(self) -> _Timed:
        self._plain = getattr(self.owner, self.name)

        def timed(*args: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return self._plain(*args, **named)
            finally:
                self.seconds += time.perf_counter() - began

        setattr(self.owner, self.name, timed)
        return self

    def __exit__(self, *_: object) -> None:
        setattr(self.owner, self.name, self._plain)


def shares() -> Iterator[Row]:
    """The part of a run that checks and labels take, of what they and passes take together."""
    for name, instance in INSTANCES.items():
        model = instance.build()
        with _Timed(Passes, "_check") as judging, _Timed(Anneal, "step") as passing:
            found = softmap.solve(model, goal="lp", lp_gap=1e-3, threads=THREADS, time_limit=30)
        part = judging.seconds / (judging.seconds + passing.seconds)
        yield {"instance": name, "passes": round(found.sweeps), "seconds": found.seconds,
               "share of judging": part}  # fmt: skip


def energies(seconds: float = 3.0) -> Iterator[Row]:
    """Energies after equal time, by instance."""
    for name, instance in INSTANCES.items():
        model = instance.build()
        row: Row = {"instance": name}
        for method in ("anneal", "trws"):
            found = softmap.solve(
                model, method=method, goal="labels", threads=THREADS, time_limit=seconds
            )
            row |= {method: found.energy, f"{method} seconds": found.seconds}
        yield row | {"not worse": row["anneal"] <= row["trws"] + 1e-9 * abs(row["trws"])}


def stereo(count: int) -> Model:
    """The teddy pair where the data folder is there, else random matching costs of its size."""
    pair = FOLDER / "images-stereo" / "teddy" if FOLDER else Path("nowhere")
    if (pair / "im2.png").is_file():
        from softmap.app.vision import demos

        options = demos.DemoOptions(left=pair / "im2.png", right=pair / "im6.png", labels=count)
        made = demos.build("stereo", options).model
        weights = made.potentials[0].arrays()["weights"]
        return made.replace(potentials=[softmap.TruncatedLinear(weights, count / 8)])
    return softmap.generators.stereo_grid(375, 450, count, truncation=count / 8, seed=0)


def picture() -> Iterator[Row]:
    """Gaps by time; then energies after the processor time that α-expansion took."""
    for count in (32, 64):
        model = stereo(count)
        began = time.process_time()
        peer = expansion(model)
        allowed = time.process_time() - began
        if peer is not None:
            yield _energy(count, "α-expansion", allowed, float(model.energy(peer[0])))
        for method in ("anneal", "trws"):
            began = time.process_time()
            found = softmap.solve(
                model, method=method, goal="labels", threads=THREADS, time_limit=allowed / THREADS
            )
            used = time.process_time() - began
            yield _energy(count, method, used, found.energy) | {"bound": found.bound}
            for gap in (1e-2, 1e-3):
                rows = [r for r in found.trace if r.energy - r.bound <= gap * abs(r.bound)]
                seconds = rows[0].seconds if rows else float("nan")
                yield {"labels": count, "method": method, "gap": gap, "seconds": seconds}


def _energy(count: int, method: str, seconds: float, energy: float) -> Row:
    return {"labels": count, "method": method, "CPU seconds": seconds, "energy": energy}


def memory() -> Iterator[Row]:
    """In a process of its own."""
    code = "from benchmarks.wide import peak; print(peak())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    yield {"peak / 128 MB": float(done.stdout) / 128.0}


def peak() -> float:
    """Megabytes over an idle process that building and solving takes."""
    softmap.solve(potts_grid(8, 8, 4, seed=0), goal="lp", max_work=10_000)
    idle = peak_megabytes()
    reset_peak()
    model = potts_grid(1000, 1000, 4, seed=0)
    softmap.solve(model, goal="lp", threads=THREADS, max_work=2 * model.m * 40)
    return peak_megabytes() - idle


def large() -> Iterator[Row]:
    """Four million variables."""
    model = potts_grid(2000, 2000, 4, seed=0)
    found = softmap.solve(model, goal="lp", lp_gap=1e-3, threads=THREADS)
    yield {"pixels": model.n, "passes": round(found.sweeps), "seconds": found.seconds,
           "status": found.status.name, "gigabytes": peak_megabytes() / 1e3}  # fmt: skip


WHATS = {f.__name__: f for f in (checks, labels, pixels, shares, energies, picture, memory, large)}


def main() -> None:
    """Run what is asked for, or everything."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="*", choices=[*WHATS, []], default=[])
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    for what in given.what or WHATS:
        for row in WHATS[what]():
            named = {"what": what} | row
            print(
                "  ".join(
                    f"{k}: {v:.4g}" if isinstance(v, float) else f"{k}: {v}"
                    for k, v in named.items()
                ),
                flush=True,
            )
            if given.out:
                with given.out.open("a") as file:
                    file.write(json.dumps(named) + "\n")


if __name__ == "__main__":
    main()

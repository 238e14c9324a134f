"""How runs on a GPU keep time limits, and where the time of a first run goes.

    python -m benchmarks.gpu.limits [--models tree potts ...] [--limits 0.1 0.3 1 3]

For each model a process that has not imported CuPy is forked for every row, so that driver, device
and kernels start in it:

- `cold`: no kernel was ever compiled; the next run in the same process is the row `again`.
- `stored`: a first run as well, but all kernels are in the cache on disk.
- `warm`: a later run in a process in which all is loaded.

A row has the seconds that the call took, by how much it was late, the passes it made (0: an answer
of the host alone), and for the first two how long the process took to exit. Then follow the phases
of a first run, cold and stored: the seconds of each, the longest one, when it began, and the times
at which Python's other threads could not run for more than 20 ms.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from functools import partial

import numpy as np

import softmap
from benchmarks.gpu import instances
from benchmarks.limits import ALLOWED
from softmap.methods.cuda import cupy_device

MODELS = {
    "tree": partial(softmap.generators.random_tree, 10, 3, seed=1),  # 10 nodes
    "potts": partial(instances.potts, 512, 8),
    "dense": partial(instances.dense, 512, 8),
    "random1": partial(instances.random_graph, 1_000_000),
    "random4": partial(instances.random_graph, 4_000_000),
}
CACHES = ("SOFTMAP_CACHE", "CUPY_CACHE_DIR", "CUDA_CACHE_PATH")
PHASES = {
    "softmap.drive.loop": (
        "Run.__init__", "Run._first_answer", "Run._finished", "Problem.of", "Record.result",
    ),
    "softmap.subsolvers.passes.passes": ("Passes.set_up", "Passes._advance", "Passes._check"),
    "softmap.subsolvers.passes.decode": ("Decode.__call__",),
    "softmap.run.best": ("Best.offer_lam", "Best.offer_labels", "energy_of"),
    "softmap.methods.cuda.cupy_device": (
        "_usable_cupy", "CupyDevice.__init__", "CupyDevice.upload", "CupyDevice.fetch",
        "CupyDevice.recorded", "Compiler.begin", "Compiler._make", "Kernels._compiled",
        "Kernels._loaded",
    ),
    "softmap.methods.cuda.arena": (
        "Arena.__init__", "Tiling.of", "TileLinks.of", "_Raw.__init__", "_Raw.by_slot",
        "_Raw.representable", "Arena._arrange_costs", "Arena._arrange_tables", "Arena._offsets",
        "Arena.lam", "Arena.by_node", "Arena.labels",
    ),
    "softmap.methods.cuda.engine": (
        "DeviceEngine.__init__", "DeviceEngine.start", "DeviceEngine.record", "DeviceEngine.look",
        "DeviceEngine.passes", "Levels.__init__",
    ),
    "softmap.methods.cuda.anneal": ("CudaAnneal._started", "DeviceJudge.look"),
}  # fmt: skip


def forked(work):
    """What `work()` returns in a forked process, and the seconds that the process took to exit."""
    read, write = os.pipe()
    sys.stdout.flush()
    if not (child := os.fork()):
        os.close(read)
        try:
            found = work()
        except Exception as error:  # the other rows are worth having all the same
            found = {"failed": f"{type(error).__name__}: {error}"}
        with os.fdopen(write, "w") as pipe:
            json.dump(found | {"ended": time.perf_counter()}, pipe)
        sys.exit()  # as a program exits: threads are joined
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    found = json.loads(text or '{"failed": "no answer", "ended": 0}')
    found["exit"] = time.perf_counter() - found.pop("ended")
    return found | ({"failed": f"exit status {status}"} if status else {})


FOLDERS: list[str] = []


def new_folder():
    """An empty folder, which `main` removes; a forked process must not."""
    FOLDERS.append(tempfile.mkdtemp())
    return FOLDERS[-1]


def use_caches(folder):
    """Let CuPy and softmap keep compiled kernels in a folder."""
    os.environ.update(dict.fromkeys(CACHES, folder))


def timed(run, limit):
    """The facts of one run."""
    began = time.perf_counter()
    found = run(time_limit=limit)
    clock = time.perf_counter() - began
    return {"limit": limit, "clock": clock, **summary(found)}


def summary(found):
    """What a run has found."""
    if isinstance(found, softmap.transport.Transport):
        gap = (found.cost - found.bound) / max(abs(found.bound), 1e-300)
        return {"passes": found.trace[-1].passes if found.trace else 0, "gap": gap, "status": ""}
    if not hasattr(found, "status"):  # a batch, whose results are made when they are read
        rows = [found[k] for k in range(0, len(found), max(1, len(found) // 10))]
        worst = max(row.relative_gap(row.gap) for row in rows)
        return {"passes": max(row.sweeps for row in rows), "gap": worst,
                "status": ",".join(sorted({row.status.name for row in rows}))}  # fmt: skip
    gap = found.relative_gap(found.gap)
    return {"passes": found.sweeps, "gap": gap, "status": found.status.name}


def show(name, kind, row):
    """Print a row."""
    if "failed" in row:
        print(f"{name:9} {kind:12} FAILED {row['failed']}", flush=True)
        return
    late = row["clock"] - row["limit"]
    kept = late <= max(ALLOWED[0] * row["limit"], ALLOWED[1])
    exits = f"{row['exit']:7.2f}" if "exit" in row else "       "
    print(
        f"{name:9} {kind:12} {row['limit']:6.2f} {row['clock']:7.3f} {late:+8.3f} {exits} "
        f"{row['passes']:8.0f} {row['gap']:9.2g}  {row['status']}{'' if kept else '  LATE'}",
        flush=True,
    )


def cold(run, limit, folder):
    """A run before any kernel was compiled, and the next one."""
    use_caches(folder)
    return {"first": timed(run, limit), "again": timed(run, limit)}


def stored(run, limit, folder):
    """A first run with all kernels on disk."""
    use_caches(folder)
    return timed(run, limit)


def warm(runs, limits, folder):
    """Runs after one without a limit, which compiles and loads everything."""
    use_caches(folder)
    rows = {}
    for goal, run, whole in runs:
        began = time.perf_counter()
        whole()
        rows[f"whole {goal}"] = time.perf_counter() - began
        while any(kernels.compiler.running() for kernels in cupy_device.Kernels.known.values()):
            time.sleep(0.01)
        for limit in limits:
            rows[f"warm {goal} {limit}"] = timed(run, limit)
    return rows


def rows_of(name, runs, limits):
    """Print the rows of a model; `runs` are names, functions of a limit, and whole runs."""
    folder = new_folder()
    found = forked(partial(warm, runs, limits, folder))
    if "failed" in found:
        show(name, "warm", found)
    for kind, row in found.items():
        if kind.startswith("whole"):
            print(f"{name:9} {kind}: the first run, without a limit, took {row:.2f} s")
        elif isinstance(row, dict):
            show(name, kind.rsplit(" ", 1)[0], row)
    _, run, _ = runs[0]
    for limit in limits:
        show(name, "stored", forked(partial(stored, run, limit, folder)))
    for limit in limits:
        found = forked(partial(cold, run, limit, new_folder()))
        first = {"failed": found["failed"]} if "failed" in found else found["first"]
        show(name, "cold", first | {"exit": found["exit"]})
        if "again" in found:
            show(name, "again", found["again"])


# --- where the time of a first run goes -----------------------------------------------------------


class Clock:
    """The seconds of functions: calls, total, longest call, and when the first one began."""

    def __init__(self):
        self.rows, self.began, self.held, self.running = {}, time.perf_counter(), [], True

    def watch(self):
        """Replace all functions of `PHASES`."""
        for module, names in PHASES.items():
            home = importlib.import_module(module)
            for name in names:
                owner, _, attribute = name.rpartition(".")
                self._replace(getattr(home, owner) if owner else home, attribute, name)

    def _replace(self, owner, attribute, name):
        if not hasattr(owner, attribute):
            print(f"there is no {name} any more")
            return
        made = isinstance(vars(owner).get(attribute), classmethod | staticmethod)
        plain = getattr(owner, attribute)

        def measured(*given, **named):
            began = time.perf_counter()
            try:
                return plain(*given, **named)
            finally:
                self.note(name, began, time.perf_counter() - began)

        setattr(owner, attribute, staticmethod(measured) if made else measured)

    def note(self, name, began, seconds):
        """Add a call."""
        row = self.rows.setdefault(name, [0, 0.0, 0.0, began - self.began])
        row[0], row[1], row[2] = row[0] + 1, row[1] + seconds, max(row[2], seconds)

    def beat(self):
        """Note when this thread could not run for long."""
        last = time.perf_counter()
        while self.running:
            time.sleep(0.002)
            now = time.perf_counter()
            if now - last > 0.02:
                self.held.append((last - self.began, now - last))
            last = now


def phases(model, goal, folder, limit):
    """The phases of a first run."""
    use_caches(folder)
    clock = Clock()
    clock.watch()
    clock.began = began = time.perf_counter()
    beat = threading.Thread(target=clock.beat)
    beat.start()
    version = "none"
    if os.environ.get(cupy_device.SWITCH) != "host":
        version = importlib.import_module("cupy").__version__
        clock.note("import cupy", began, time.perf_counter() - began)
    try:
        softmap.solve(model, backend="cuda", goal=goal, time_limit=limit)
    finally:
        clock.running = False
        beat.join()
    clock.note("the whole run", began, time.perf_counter() - began)
    return {"rows": clock.rows, "held": clock.held, "cupy": version}


def show_phases(name, kind, found):
    """Print the phases of a run."""
    if "failed" in found:
        print(f"{name} {kind}: FAILED {found['failed']}", flush=True)
        return
    print(f"{name}, {kind}, CuPy {found['cupy']}: phase, calls, seconds, longest, first begins at")
    for phase, (calls, total, longest, first) in found["rows"].items():
        print(f"  {phase:26} {calls:6} {total:8.3f} {longest:8.3f} {first:8.3f}")
    worst = sorted(found["held"], key=lambda one: -one[1])[:8]
    text = ", ".join(f"{seconds:.3f} at {at:.3f}" for at, seconds in sorted(worst))
    print(f"  other threads could not run for: {text or 'never more than 0.02'}", flush=True)


# --- what is run ----------------------------------------------------------------------------------


def solving(model):
    """The runs of a model: for labels, and of the relaxation."""
    return [
        (goal, partial(softmap.solve, model, backend="cuda", goal=goal, gap=0.0, lp_gap=0.0),
         partial(softmap.solve, model, backend="cuda", goal="lp", max_work=40 * model.m))
        for goal in ("map", "lp")
    ]  # fmt: skip


def batches(count=300):
    """Runs of many small models at once."""
    models = [softmap.generators.erdos_renyi(100, 3, seed=seed) for seed in range(count)]
    run = partial(softmap.solve_batch, models, backend="cuda", goal="lp")
    return [("lp", partial(run, lp_gap=0.0, gap=0.0), partial(run, lp_gap=1e-3))]


def plans(size=2000):
    """Runs of transport between two distributions."""
    rng = np.random.default_rng(0)
    a, b = rng.random((2, size))
    points = rng.random((2, size, 2))
    costs = ((points[0][:, None] - points[1][None]) ** 2).sum(axis=2)
    run = partial(softmap.transport.sinkhorn, a / a.sum(), b / b.sum(), costs, backend="cuda")
    return [("plan", partial(run, gap=1e-9), partial(run, gap=1e-3))]


def main() -> None:
    """Print all rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    every = [*MODELS, "batch", "transport"]
    parser.add_argument("--models", nargs="+", default=every, choices=every)
    parser.add_argument("--limits", type=float, nargs="+", default=[0.1, 0.3, 1.0, 3.0])
    parser.add_argument("--only", choices=["rows", "phases"])
    given = parser.parse_args()
    if given.only != "phases":
        print("model     kind          limit   clock     late    exit   passes       gap  status")
    for name in given.models:
        if name in MODELS:
            began = time.perf_counter()
            model = MODELS[name]()
            print(f"{name}: {model.n} nodes, {model.m} edges, built in "
                  f"{time.perf_counter() - began:.1f} s", flush=True)  # fmt: skip
        runs = {"batch": batches, "transport": plans}.get(name, lambda: solving(model))  # noqa: B023
        if given.only != "phases":
            rows_of(name, runs(), given.limits)
        if name in MODELS and given.only != "rows":
            folder = new_folder()
            for kind, limit in (("cold", 6.0), ("stored", 3.0)):
                work = partial(phases, model, "map", folder, limit)
                show_phases(name, kind, forked(work))


if __name__ == "__main__":
    main()
    for folder in FOLDERS:
        shutil.rmtree(folder, ignore_errors=True)

"""Measure the CUDA backend on the device at hand: `python -m benchmarks.gpu.run OUT.json`.

Prints a JSON object per measurement and writes all of them, with date, versions and device.
"""

from __future__ import annotations

import datetime
import gc
import json
import os
import platform
import sys
import time
import traceback
from pathlib import Path

import numpy as np

import softmap
from benchmarks.gpu import instances
from softmap.methods.base import make
from softmap.methods.cuda import DeviceEngine, describe, find_device
from softmap.relaxation.gaps import cost_scale

SIDE, LABELS = 1024, 16
CPU_THREADS = 2


def _seconds(work, device, repeat=7):
    times = []
    for _ in range(repeat):
        device.synchronize()
        began = time.perf_counter()
        work()
        device.synchronize()
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def facts():
    import cupy

    return {
        "date": datetime.date.today().isoformat(),
        "softmap": softmap.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cupy": cupy.__version__,
        "device": describe(),
        "loops": os.environ.get("SOFTMAP_CPU") or softmap.core.available()[-1],
    }


def copy_bandwidth():
    """Bytes read and written per second by a copy within the device."""
    device = find_device()
    source, target = (device.zeros(1 << 29, np.float32) for _ in range(2))
    seconds = _seconds(lambda: device.copy(source, target), device)
    return {"bytes_per_s": 2 * source.nbytes / seconds}


def bytes_of_pass(model, dtype=np.float32):
    """What a pass with momentum has to move: each number that it needs once per half pass.

    Forward: costs, all messages, `prev` of those from later ends, tables; the new messages.
    Backward: costs, all messages, tables, the old messages and `prev`; both anew.
    """
    item = np.dtype(dtype).itemsize
    messages = int(model.network.half_offset[-1])
    tables = int(model.network.edge_offset[-1]) if model.potentials[0].family == "tables" else 0
    half = messages // 2  # into one end of every edge
    forward = model.unary.size + messages + half + tables + half
    backward = model.unary.size + messages + tables + 2 * half + 2 * half
    return item * (forward + backward)


def operations_of_pass(model):
    """Additions, products, comparisons, exponentials and logarithms of a pass, each as one.

    A node adds up what it receives. Along an edge, a sender takes its own share off; then dense
    tables take five operations per pair of labels, and the closed forms a dozen (Potts) or two
    dozen (truncated linear) per label.
    """
    messages = int(model.network.half_offset[-1])
    family = model.potentials[0].family
    each = {"potts": 12, "truncated-linear": 24}
    if family == "tables":
        sent = 2 * 5 * int(model.network.edge_offset[-1])
    else:
        sent = each[family] * messages
    return 2 * messages + 4 * messages + sent + 6 * (messages // 2)


def passes(model):
    """Seconds per pass and per look, with the share of the copy bandwidth that a pass reaches."""
    device = find_device()
    began = time.perf_counter()
    engine = DeviceEngine(model, device, "float32")
    engine.start()
    device.synchronize()
    out = {
        "setup_s": time.perf_counter() - began,
        "levels": len(engine.arena.tiling.level_start) - 1,
    }
    out |= {"shape": engine.arena.shape.name, "bytes": bytes_of_pass(model)}
    out["operations"] = operations_of_pass(model)
    scale = cost_scale(model)
    for name, eta in (("mild", 100.0 / scale), ("cold", 2700.0 / scale)):
        engine.clock.set_eta(eta, 10.0)
        engine.passes(20)
        out[f"pass_s_{name}"] = _seconds(lambda: engine.passes(20), device) / 20
        engine.look()
        out[f"look_s_{name}"] = _seconds(engine.look, device)
    return out


def certify(model, gap, most=60.0):
    """Time to a certified relative LP gap; the second of two runs, when all is compiled."""
    for _ in range(2):
        began = time.perf_counter()
        rows = []
        generator = softmap.iterate(model, backend="cuda", goal="lp", lp_gap=gap, gap=0.0)
        for snapshot in generator:
            rows.append((snapshot.sweeps, snapshot.seconds, _gap(snapshot)))
            if rows[-1][2] <= gap or snapshot.seconds > most:
                break
        wall = time.perf_counter() - began
        generator.close()
        del generator
        gc.collect()
    return {"lp_gap": gap, "found": rows[-1][2], "passes": rows[-1][0], "loop_s": rows[-1][1],
            "with_setup_s": wall, "rows": rows}  # fmt: skip


def _gap(row):
    return (row.primal - row.bound) / abs(row.bound)


def on_the_processor(model, passes_needed):
    """Seconds that passes of our CPU solver take, times how many the device needed; no checks."""
    method = make("anneal", threads=CPU_THREADS)
    state = method.init(model, None, 0)
    method.step(state, 1)
    began = time.perf_counter()
    method.step(state, 2)
    each = (time.perf_counter() - began) / 2
    return {"threads": CPU_THREADS, "pass_s": each, "seconds": passes_needed * each}


def batch(count=1000):
    """The paper's problems, n = 100, to a certified 1e-3: all at once, and one by one."""
    options = {"goal": "lp", "lp_gap": 1e-3, "gap": 0.0}
    for _ in range(3):  # of models that nobody has seen, each time
        models = [softmap.generators.erdos_renyi(100, 3, seed=seed) for seed in range(count)]
        began = time.perf_counter()
        results = softmap.solve_batch(models, backend="cuda", **options)
        total = time.perf_counter() - began
        results = list(results)
        with_results = time.perf_counter() - began
    some = list(range(0, count, max(1, count // 50)))
    began = time.perf_counter()
    alone = [softmap.solve(models[k], threads=1, **options) for k in some]
    each = (time.perf_counter() - began) / len(some)
    sweeps = [r.sweeps for r in results]
    return {
        "models": count, "seconds": total, "with_results_s": with_results,
        "loop_s": max(r.seconds for r in results),
        "setup_s": results[0].setup_seconds, "passes_mean": float(np.mean(sweeps)),
        "passes_most": max(sweeps), "closed": sum(r.status.name == "LP_GAP" for r in results),
        "cpu_each_s": each, "ratio": each * count / total, "cores": on_cores(count, options),
        "verified": all(softmap.verify(r).holds for r in results[:20]),
        "bounds_apart": max(abs(results[k].bound - r.bound) / abs(r.bound)
                            for k, r in zip(some, alone, strict=True)),
    }  # fmt: skip


def by_core(cpus):
    """Processors as the system counts them, one of each core first: a core may count twice."""
    at = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
    alike = {cpu: Path(at.format(cpu)) for cpu in cpus}
    core = {cpu: path.read_text() if path.is_file() else cpu for cpu, path in alike.items()}
    turn = {cpu: [core[k] for k in cpus if k < cpu].count(core[cpu]) for cpu in cpus}
    return sorted(cpus, key=turn.__getitem__)


def on_cores(count, options):
    """Seconds of the same batch on some cores of the processor: all, two, and one of them."""
    seconds, every = {}, by_core(sorted(os.sched_getaffinity(0)))
    for cores in sorted({1, 2, len(every)}, reverse=True):
        models = [softmap.generators.erdos_renyi(100, 3, seed=seed) for seed in range(count)]
        os.sched_setaffinity(0, every[:cores])
        began = time.perf_counter()
        softmap.solve_batch(models, threads=cores, **options)
        seconds[str(cores)] = time.perf_counter() - began
        os.sched_setaffinity(0, every)
    return seconds


def layer(members=8, side=32, labels=8, eta=2.0):
    """`soft_map` and its gradient, for tensors of PyTorch on the device and on the processor."""
    import torch

    rng = np.random.default_rng(0)
    edges = instances.edges_of_grid(side, side)
    shapes = (members, side * side, labels), (members, len(edges), labels, labels)
    arrays = [rng.standard_normal(shape) for shape in shapes]
    out, found = {"members": members, "side": side, "labels": labels, "eta": eta}, {}
    for place in ("cuda", "cpu"):
        for _ in range(2 if place == "cuda" else 1):  # the first one loads kernels
            tensors = [torch.tensor(a, device=place, requires_grad=True) for a in arrays]
            began = time.perf_counter()
            nodes, _ = softmap.soft_map(*tensors, edges, eta)
            (nodes**2).sum().backward()
            torch.cuda.synchronize()
            out[f"{place}_s"] = time.perf_counter() - began
        found[place] = nodes.detach().cpu(), tensors[0].grad.cpu()
    out["apart"] = max(float((a - b).abs().max()) for a, b in zip(*found.values(), strict=True))
    return out


def large(side=4096, labels=64):
    """A stereo-like picture of 17 million pixels."""
    began = time.perf_counter()
    model = instances.stereo(side, side, labels, 8.0)
    made = time.perf_counter() - began
    return {"model_s": made} | certify_once(model, 1e-3)


def certify_once(model, gap):
    began = time.perf_counter()
    rows = []
    for snapshot in softmap.iterate(model, backend="cuda", goal="lp", lp_gap=gap, gap=0.0):
        rows.append((snapshot.sweeps, snapshot.seconds, _gap(snapshot)))
        print(rows[-1], flush=True)
        if rows[-1][2] <= gap or snapshot.seconds > 60.0:
            break
    return {"lp_gap": gap, "found": rows[-1][2], "passes": rows[-1][0], "loop_s": rows[-1][1],
            "with_setup_s": time.perf_counter() - began, "rows": rows}  # fmt: skip


class Log:
    """Measurements, written after each."""

    def __init__(self, path):
        self.path, self.found = Path(path), {"facts": facts()}

    def add(self, name, measure, *arguments):
        began = time.perf_counter()
        try:
            self.found[name] = measure(*arguments)
        except Exception:  # the others are worth having all the same
            self.found[name] = {"failed": traceback.format_exc()[-1500:]}
        took = time.perf_counter() - began
        print(json.dumps({name: self.found[name]}), f"# {took:.1f} s", flush=True)
        self.path.write_text(json.dumps(self.found, indent=1) + "\n")
        _free()


def _free():
    import cupy

    gc.collect()
    cupy.get_default_memory_pool().free_all_blocks()


def main(path, wanted):
    log = Log(path)
    log.add("copy", copy_bandwidth)
    kinds = {
        "potts": (instances.potts, (1e-3, 1e-4)),
        "linear": (lambda: instances.stereo(SIDE, SIDE), (1e-3,)),
        "dense": (instances.dense, (1e-3,)),
        "random": (instances.random_graph, ()),
    }
    for name, (built, gaps) in kinds.items():
        if wanted and name not in wanted:
            continue
        model = built()
        log.add(f"{name} pass", passes, model)
        for gap in gaps:
            log.add(f"{name} {gap:g}", certify, model, gap)
        if gaps and name != "linear":
            done = log.found[f"{name} {gaps[0]:g}"]
            if "rows" in done:
                log.add(f"{name} processor", on_the_processor, model, done["passes"])
        del model
    if not wanted or "batch" in wanted:
        log.add("batch", batch)
    if not wanted or "layer" in wanted:
        log.add("layer", layer)
    if not wanted or "large" in wanted:
        log.add("large", large)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

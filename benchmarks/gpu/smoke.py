"""Everything once, quickly: does it run, is it right, how fast is it. Prints JSON lines."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

import softmap
from benchmarks.gpu import instances
from softmap.cuda import Engine, HostDevice, describe, find_device

LOG = []


def say(**facts):
    LOG.append(facts)
    print(json.dumps(facts), flush=True)


def section(function, *arguments, **options):
    began = time.perf_counter()
    try:
        function(*arguments, **options)
    except Exception:
        say(failed=function.__name__, arguments=str(arguments), error=traceback.format_exc()[-1800:])
    print(f"# {function.__name__} {arguments} {time.perf_counter() - began:.1f} s", flush=True)
    import gc

    import cupy

    gc.collect()
    cupy.get_default_memory_pool().free_all_blocks()
    (Path(os.environ.get("OUT", ".")) / "smoke.json").write_text(json.dumps(LOG, indent=1))


def bandwidth():
    import cupy

    a = cupy.ones(1 << 29, cupy.float32)
    b = cupy.empty_like(a)
    best = min(_timed(lambda: b.data.copy_from_device_async(a.data, a.nbytes)) for _ in range(5))
    say(copy_TB_per_s=2 * a.nbytes / best / 1e12)


def _timed(work):
    import cupy

    cupy.cuda.Device().synchronize()
    began = time.perf_counter()
    work()
    cupy.cuda.Device().synchronize()
    return time.perf_counter() - began


def agreement():
    """The device and the host on small models: the same text, nearly the same numbers."""
    g = softmap.generators
    rng = np.random.default_rng(0)
    edges = g.grid_edges(12, 13)
    costs = rng.normal(size=(156, 5))
    models = {
        "potts": g.potts_grid(20, 21, 3, seed=1),
        "tables": g.random_grid(20, 21, 3, seed=1),
        "linear": softmap.Model(costs, edges, softmap.TruncatedLinear(rng.random(len(edges)), 2.0)),
        "quadratic": softmap.Model(
            costs, edges, softmap.TruncatedQuadratic(rng.random(len(edges)), 3.0)
        ),
        "random": g.erdos_renyi(100, 3, seed=2),
        "ragged": g.ragged_constrained(30, seed=1),
    }
    device, host = find_device(), HostDevice()
    for name, model in models.items():
        for dtype in ("float32", "float64") if name in ("potts", "ragged") else ("float32",):
            for eta in (20.0, 3000.0):
                found = []
                for place in (device, host):
                    engine = Engine(model, place, dtype, averaging=True)
                    engine.start()
                    engine.set_eta(eta, 10.0)
                    engine.passes(11)
                    look = engine.look()
                    found.append((look, engine.lam(engine.msg, 0), engine.lam(engine.polished, 1)))
                one, other = found
                off = float(np.abs(one[1] - other[1]).max())
                from softmap.solving.judge import Judge

                judge = Judge(softmap.arc_consistency(model) if False else model, 1)
                proved = judge._bound(one[2])
                say(agree=name, dtype=dtype, eta=eta, messages=off, bound=one[0].bound - other[0].bound,
                    primal=one[0].primals[0] - other[0].primals[0], below=bool(one[0].bound <= proved),
                    loose=proved - one[0].bound, shape=engine.arena.shape.name)


def passes(name, make, nominal):
    began = time.perf_counter()
    model = make()
    made = time.perf_counter()
    device = find_device()
    engine = Engine(model, device, "float32", averaging=False, keeping=False)
    engine.start()
    engine.set_eta(100.0, 10.0)
    device.synchronize()
    ready = time.perf_counter()
    facts = {"passes": name, "model_s": made - began, "setup_s": ready - made,
             "levels": len(engine._levels), "tiles": engine.arena.tiles, "spread": engine.arena.tiling.spread,
             "shape": engine.arena.shape.name, "bytes": engine.arena.bytes_needed()}
    for eta in (100.0, 3000.0):
        engine.set_eta(eta, 10.0)
        engine.passes(5)
        device.synchronize()
        times = []
        for _ in range(7):
            t = time.perf_counter()
            engine.passes(10)
            device.synchronize()
            times.append((time.perf_counter() - t) / 10)
        facts[f"pass_ms_{engine.heat.name.lower()}_{eta:g}"] = 1e3 * float(np.median(times))
        engine.look()
        times = []
        for _ in range(5):
            t = time.perf_counter()
            found = engine.look()
            times.append(time.perf_counter() - t)
        facts[f"look_ms_{eta:g}"] = 1e3 * float(np.median(times))
        facts[f"gap_{eta:g}"] = (min(found.primals) - found.bound) / abs(found.bound)
    facts["nominal_GB"] = nominal / 1e9
    profile(engine, facts)
    say(**facts)


def profile(engine, facts):
    """Time of each kernel of a look, and of the levels of a pass."""
    device = engine.device
    original, spent = device.launch, {}

    def launch(kernel, threads, arguments):
        device.synchronize()
        t = time.perf_counter()
        original(kernel, threads, arguments)
        device.synchronize()
        key = kernel.split("<")[0] + ("" if "half" not in kernel else kernel[kernel.index("<") :])
        spent.setdefault(key, []).append(time.perf_counter() - t)

    device.launch = launch
    engine._judge(False)
    engine._pass(engine.heat)
    del device.launch
    facts["kernels_us"] = {k: [len(v), round(1e6 * sum(v))] for k, v in spent.items()}


def certify(name, make, gaps):
    model = make()
    for gap in gaps:
        for again in range(2):
            began = time.perf_counter()
            result = softmap.solve(model, backend="cuda", goal="lp", lp_gap=gap, gap=0.0, time_limit=60.0)
            total = time.perf_counter() - began
        say(certify=name, lp_gap=gap, status=result.status.name, seconds=result.seconds,
            setup=result.setup_seconds, total=total, passes=result.sweeps, found=result.lp_gap / abs(result.bound),
            rows=[[r.sweeps, round(r.seconds, 4), r.eta, (r.primal - r.bound) / abs(r.bound)] for r in result.trace])


def variant(name, make, **settings):
    """Pass times with other choices of what the backend decides by itself."""
    from softmap.cuda import cupy_device, shapes, tiling

    before = shapes.SPLIT, cupy_device.CupyDevice.block, tiling.CYCLE
    shapes.SPLIT = settings.get("split", before[0])
    cupy_device.CupyDevice.block = settings.get("block", before[1])
    tiling.CYCLE = settings.get("cycle", before[2])
    try:
        device = find_device()
        engine = Engine(make, device, "float32")
        engine.start()
        engine.set_eta(settings.get("eta", 100.0), 10.0)
        engine.passes(10)
        device.synchronize()
        times = []
        for _ in range(7):
            t = time.perf_counter()
            engine.passes(20)
            device.synchronize()
            times.append((time.perf_counter() - t) / 20)
        say(variant=name, settings=str(settings), ms=1e3 * float(np.median(times)), best=1e3 * min(times))
    finally:
        shapes.SPLIT, cupy_device.CupyDevice.block, tiling.CYCLE = before


def batch(count=1000):
    models = [softmap.generators.erdos_renyi(100, 3, seed=seed) for seed in range(count)]
    options = {"goal": "lp", "lp_gap": 1e-3, "gap": 0.0}
    for again in range(3):
        began = time.perf_counter()
        results = softmap.solve_batch(models, backend="cuda", **options)
        total = time.perf_counter() - began
        say(batch=count, total=total, loop=max(r.seconds for r in results), setup=results[0].setup_seconds,
            most_passes=max(r.sweeps for r in results), mean_passes=float(np.mean([r.sweeps for r in results])),
            closed=sum(r.status.name == "LP_GAP" for r in results))
    some = models[:: max(1, count // 50)]
    began = time.perf_counter()
    ones = [softmap.solve(model, threads=1, **options) for model in some]
    each = (time.perf_counter() - began) / len(some)
    say(batch_cpu_each=each, ratio=each * count / total, cpu_passes=float(np.mean([r.sweeps for r in ones])))
    off = [abs(results[k * max(1, count // 50)].bound - r.bound) / abs(r.bound) for k, r in enumerate(ones)]
    say(batch_bound_off=float(max(off)), verified=all(bool(softmap.verify(r)) for r in results[:10]))
    import cProfile
    import pstats

    profile = cProfile.Profile()
    profile.enable()
    softmap.solve_batch(models, backend="cuda", **options)
    profile.disable()
    pstats.Stats(profile).sort_stats("tottime").print_stats(18)


def main():
    print(describe(), flush=True)
    small = "--small" in sys.argv
    side = 64 if small else 1024
    n, m = side * side, 2 * side * (side - 1)
    section(bandwidth)
    one = n * 16 * 4
    if "--second" in sys.argv:
        return second(side, n, m, one)
    section(passes, "potts", lambda: instances.potts(side), 20 * one)
    section(certify, "potts", lambda: instances.potts(side), (1e-3, 1e-4))
    section(agreement)
    section(passes, "linear", lambda: instances.stereo(side, side), 20 * one)
    section(passes, "dense", lambda: instances.dense(side), 20 * one + 2 * m * 1024)
    section(certify, "dense", lambda: instances.dense(side), (1e-3,))
    section(passes, "random", lambda: instances.random_graph(20_000 if small else 10_000_000), 0)
    return None


def second(side, n, m, one):
    section(batch)
    section(certify, "potts", lambda: instances.potts(side), (1e-3, 1e-4))
    model = instances.potts(side)
    tables, linear, potts = 0, 2, 1
    for settings in ({}, {"split": (potts,)}, {"block": 64}, {"block": 256}, {"cycle": 8}, {"cycle": 32},
                     {"split": (potts,), "block": 256}, {"eta": 3000.0}):
        section(variant, "potts", model, **settings)
    model = instances.stereo(side, side)
    for settings in ({}, {"split": ()}, {"block": 64}):
        section(variant, "linear", model, **settings)
    model = instances.dense(side)
    section(passes, "dense", lambda: model, 20 * one + 2 * m * 1024)
    for settings in ({"block": 64}, {"block": 256}, {"split": ()}):
        section(variant, "dense", model, **settings)
    section(certify, "dense", lambda: model, (1e-3,))
    del model
    section(passes, "random", lambda: instances.random_graph(10_000_000), 0)


if __name__ == "__main__":
    main()

"""Transport beside POT and OTT: CPU seconds to a true accuracy, on one thread.

    python -m benchmarks.transport pair 1000
    python -m benchmarks.transport barycentre 10 1000

The accuracy is that of a feasible plan: plans of POT and OTT are rounded to exact marginals outside
the time measured, as ours are inside it. They get the largest regularisation that reaches the
accuracy, which no user knows beforehand; ours anneals. POT's network simplex is the exact oracle,
and the fastest on one edge. Needs `pip install pot ott-jax`.
"""

from __future__ import annotations

import os
import sys
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import numpy as np

import softmap
from softmap import transport
from softmap.relaxation.transport import nearest_coupling

ACCURACIES = (1e-2, 1e-3)
MOST = 120.0  # CPU seconds of one run of a peer


def seconds(function):
    start = time.process_time()
    return function(), time.process_time() - start


def table(name, found):
    print(f"{name:28}" + "".join(f"{value:>14}" for value in found), flush=True)


def ours(marginals, edges, costs, true):
    """CPU seconds until the cost is within each accuracy, and until that is certified."""
    began, rows = time.process_time(), []

    def note(moment):
        rows.append((time.process_time() - began, moment.cost / true - 1, moment.bound))

    found = transport.multimarginal(marginals, edges, costs, gap=min(ACCURACIES), on_moment=note)
    reached = [next((t for t, e, _ in rows if e <= a), np.nan) for a in ACCURACIES]
    certified = [
        next((t for t, e, b in rows if (1 + e) * true - b <= a * b), np.nan) for a in ACCURACIES
    ]
    return found, reached, certified


def ladder(run, cost_of, true, spread, regs):
    """CPU seconds of the first regularisation, from large to small, that reaches each accuracy."""
    reached = dict.fromkeys(ACCURACIES, "-")
    for reg in regs:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plan, taken = seconds(lambda reg=reg: run(reg * spread))
        error = cost_of(plan) / true - 1 if np.isfinite(plan).all() else np.inf
        for accuracy in ACCURACIES:
            if reached[accuracy] == "-" and error <= accuracy:
                reached[accuracy] = f"{taken:.2f}"
        if "-" not in reached.values() or taken > MOST:
            break
    return list(reached.values())


def pair(d, peers):
    import ot

    rng = np.random.default_rng(1)
    x, y = rng.random((d, 2)), rng.random((d, 2)) * [1.0, 0.7]
    cost = ((x[:, None] - y[None]) ** 2).sum(axis=-1)
    a, b = rng.dirichlet(np.ones(d)), rng.dirichlet(np.ones(d))
    true, exact = seconds(lambda: ot.emd2(a, b, cost, numItermax=10**8))
    print(f"one edge, {d} x {d}, squared distances in the plane; CPU seconds to a true accuracy")
    table("", ACCURACIES)
    table("POT network simplex (exact)", [f"{exact:.2f}"] * 2)
    _, reached, certified = ours([a, b], [[0, 1]], [cost], true)
    table("softmap", [f"{t:.2f}" for t in reached])
    table("softmap, certified", [f"{t:.2f}" for t in certified])
    regs, spread = 10.0 ** -np.arange(2.0, 5.1, 0.5), cost.max()

    def cost_of(plan):
        return float((nearest_coupling(plan[None], a[None], b[None])[0] * cost).sum())

    def pot(method):
        options = {"method": method, "numItermax": 20_000, "stopThr": 1e-6}
        return lambda reg: ot.sinkhorn(a, b, cost, reg, **options)

    for method in ("sinkhorn", "sinkhorn_log", "sinkhorn_epsilon_scaling"):
        if method in peers:
            table(f"POT {method}", ladder(pot(method), cost_of, true, spread, regs))
    if "ott" in peers:
        table("OTT sinkhorn", ladder(ott_run(a, b, cost), cost_of, true, spread, regs))


def ott_run(a, b, cost):
    import jax

    jax.config.update("jax_enable_x64", True)
    from ott.geometry import geometry
    from ott.solvers import linear

    solve = jax.jit(
        lambda reg: (
            linear.solve(
                geometry.Geometry(cost_matrix=cost, epsilon=reg), a=a, b=b, max_iterations=20_000
            ).matrix
        )
    )

    solve(float(cost.max())).block_until_ready()  # compiled before the clock starts
    return lambda reg: np.asarray(solve(float(reg)))


def bumps(count, d, seed=1):
    rng, x = np.random.default_rng(seed), np.arange(d) / d
    spots, widths = rng.uniform(0.1, 0.9, (count, 2, 1)), rng.uniform(0.02, 0.1, (count, 2, 1))
    mass = np.exp(-0.5 * ((x - spots) / widths) ** 2).sum(axis=1) + 1e-6
    return mass / mass.sum(axis=1, keepdims=True)


def barycentre(count, d, peers):
    import ot

    masses, x = bumps(count, d), np.arange(d) / d
    edges, marginals = [[k, count] for k in range(count)], [*masses, d]
    family = softmap.TruncatedLinear(1 / d / count, d)
    best = transport.multimarginal(marginals, edges, family, gap=1e-4, time_limit=300)
    true = best.cost
    print(f"barycentre of {count} marginals, {d} labels, |x - y|, within {best.relative_gap:.0e}")
    table("", ACCURACIES)
    _, reached, certified = ours(marginals, edges, family, true)
    table("softmap, family", [f"{t:.2f}" for t in reached])
    table("softmap, family, certified", [f"{t:.2f}" for t in certified])
    cost = np.abs(x[:, None] - x)
    if count * d <= 20_000:
        _, reached, _ = ours(marginals, edges, cost / count, true)
        table("softmap, tables", [f"{t:.2f}" for t in reached])

    def cost_of(p):
        return float(np.mean([ot.wasserstein_1d(x, x, m, p / p.sum(), p=1) for m in masses]))

    regs = 10.0 ** -np.arange(1.0, 4.1, 0.5)
    for method in ("sinkhorn", "sinkhorn_log", "sinkhorn_stabilized"):
        if method in peers:
            options = {"method": method, "numItermax": 20_000, "stopThr": 1e-6}
            run = lambda reg, o=options: ot.barycenter(masses.T, cost, reg, **o)  # noqa: E731
            table(f"POT barycenter {method}", ladder(run, cost_of, true, 1.0, regs))


def main():
    what, *sizes = sys.argv[1:]
    counts = [int(size) for size in sizes if size.isdigit()]
    peers = [size for size in sizes if not size.isdigit()]
    peers = peers or ["sinkhorn", "sinkhorn_log", "sinkhorn_stabilized", "ott"]
    {"pair": pair, "barycentre": barycentre}[what](*counts, peers)


if __name__ == "__main__":
    main()

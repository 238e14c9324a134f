"""Transport beside POT, OTT and HiGHS: seconds to a true accuracy.

    python -m benchmarks.transport                       # everything, what is missing is left out
    python -m benchmarks.transport pair 1000 sinkhorn    # one problem, some peers
    MOST=300 python -m benchmarks.transport pair 10000   # up to 300 seconds of each run of a peer
    python -m benchmarks.transport line 10000            # costs by family, no tables
    python -m benchmarks.transport pair 10000 gpu        # on a CUDA device, all peers there, too
    python -m benchmarks.transport barycentre 10 1000
    python -m benchmarks.transport squared 10 1000       # a barycentre by squared distances
    python -m benchmarks.transport tree 10 100

On the CPU seconds are those of the process, on one thread; on a GPU they are wall seconds. The
accuracy is that of a feasible plan: plans of POT and OTT are rounded to exact marginals outside the
time measured, as ours are inside it. They get the largest regularisation that reaches the accuracy,
which no user knows beforehand, and as many iterations as fit into MOST seconds; ours anneals. POT's
network simplex is the exact oracle, and the fastest on one edge of up to about a thousand labels.
Needs `pip install pot ott-jax`; with `gpu` CuPy, and `jax[cuda12]` or `jax[cuda13]`.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from functools import partial

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
if "gpu" not in sys.argv:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np

import softmap
from softmap import transport
from softmap.relaxation.transport import nearest_coupling

ACCURACIES = (1e-2, 1e-3)
PEERS = ("sinkhorn", "sinkhorn_log", "sinkhorn_stabilized", "ott")
MOST = float(os.environ.get("MOST", 60.0))  # seconds of one run of a peer
GPU = "gpu" in sys.argv
clock = time.perf_counter if GPU else time.process_time


def seconds(function):
    start = clock()
    return function(), clock() - start


def table(name, found):
    print(f"{name:32}" + "".join(f"{value:>14}" for value in found), flush=True)


def ours(name, marginals, edges, costs, true, certify=True):
    """Print seconds until the cost is within each accuracy, and until that is certified."""
    backend = "cuda" if GPU else "cpu"
    if GPU:  # CuPy loads its libraries
        transport.sinkhorn([0.5, 0.5], [0.5, 0.5], np.eye(2), backend=backend)
    began, rows = clock(), []

    def note(moment):
        rows.append((clock() - began, moment.cost / true - 1, moment.bound))

    transport.multimarginal(
        marginals, edges, costs, gap=min(ACCURACIES), on_snapshot=note, backend=backend
    )
    reached = [next((t for t, e, _ in rows if e <= a), np.nan) for a in ACCURACIES]
    table(name, [f"{t:.2f}" for t in reached])
    certified = [
        next((t for t, e, b in rows if (1 + e) * true - b <= a * b), np.nan) for a in ACCURACIES
    ]
    if certify:
        table(f"{name}, certified", [f"{t:.2f}" for t in certified])


def ladder(run, cost_of, true, spread, regs):
    """Seconds of the first regularisation, from large to small, that reaches each accuracy."""
    reached, best = dict.fromkeys(ACCURACIES, ""), np.inf
    for reg in regs:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plan, taken = seconds(lambda reg=reg: run(reg * spread))
        error = cost_of(plan) / true - 1 if np.isfinite(plan).all() else np.inf
        best = min(best, error)
        for accuracy in ACCURACIES:
            if not reached[accuracy] and error <= accuracy:
                reached[accuracy] = f"{taken:.2f}"
        if all(reached.values()) or taken > 0.8 * MOST:
            break
    return [found or f"- ({best:.1%})" for found in reached.values()]


def pair(d, peers):
    """One edge: squared distances in the plane."""
    import ot

    rng = np.random.default_rng(1)
    x, y = rng.random((d, 2)), rng.random((d, 2)) * [1.0, 0.7]
    cost = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1) - 2 * x @ y.T
    a, b = rng.dirichlet(np.ones(d)), rng.dirichlet(np.ones(d))
    print(f"\none edge, {d} x {d}, squared distances in the plane")
    table("", ACCURACIES)
    true, exact = seconds(lambda: ot.emd2(a, b, cost, numItermax=10**8))
    table("POT network simplex (exact)", [f"{exact:.2f}"] * 2)
    ours("softmap", [a, b], [[0, 1]], [cost], true)
    regs = 10.0 ** -np.arange(2.0, 5.1, 0.5)

    def cost_of(plan):
        return float((nearest_coupling(plan[None], a[None], b[None])[0] * cost).sum())

    for method in peers:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = ott_run(a, b, cost) if method == "ott" else pot_run(a, b, cost, method)
        name = "OTT sinkhorn" if method == "ott" else f"POT {method}"
        table(name, ladder(run, cost_of, true, cost.max(), regs))


def fitting(run):
    """Iterations of a peer that fit into MOST seconds, by the time of ten."""
    run(10)
    _, taken = seconds(lambda: run(10))
    return int(np.clip(10 * MOST / max(taken, 1e-9), 100, 20_000))


def pot_run(a, b, cost, method):
    import ot

    held, fetched = [a, b, cost], np.asarray
    if GPU:
        import cupy

        held, fetched = [cupy.asarray(array) for array in held], cupy.asnumpy

    def run(reg, count):
        return fetched(ot.sinkhorn(*held, reg, method, numItermax=count, stopThr=1e-6))

    most = fitting(lambda count: run(float(cost.max()), count))
    return lambda reg: run(reg, most)


def ott_run(a, b, cost):
    import jax

    jax.config.update("jax_enable_x64", True)
    from ott.geometry import geometry
    from ott.solvers import linear

    held = [jax.numpy.asarray(array) for array in (a, b, cost)]

    @partial(jax.jit, static_argnums=1)
    def solve(reg, count, a, b, cost):
        shape = geometry.Geometry(cost_matrix=cost, epsilon=reg)
        return linear.solve(shape, a=a, b=b, max_iterations=count).matrix

    def run(reg, count):
        return np.asarray(solve(float(reg), count, *held))

    most = fitting(lambda count: run(cost.max(), count))
    run(cost.max(), most)  # compiled before the clock starts
    return lambda reg: run(reg, most)


def line(d, _peers):
    """One edge on a line: costs by family."""
    a, b = bumps(2, d)
    families = {
        "Potts": softmap.Potts(1.0),
        "|x - y|": softmap.TruncatedLinear(1 / d, d),
        "|x - y| up to 0.1": softmap.TruncatedLinear(1 / d, d / 10),
        "squared": softmap.TruncatedQuadratic(1 / d**2, d**2),
        "squared up to 0.1": softmap.TruncatedQuadratic(1 / d**2, d**2 / 100),
    }
    print(f"\none edge, {d} x {d}, costs by family")
    table("", ACCURACIES)
    for name, family in families.items():
        true = transport.sinkhorn(a, b, family, gap=1e-5).cost
        ours(f"softmap, {name}", [a, b], [[0, 1]], family, true)


def bumps(count, d, seed=1):
    rng, x = np.random.default_rng(seed), np.arange(d) / d
    spots, widths = rng.uniform(0.1, 0.9, (count, 2, 1)), rng.uniform(0.02, 0.1, (count, 2, 1))
    mass = np.exp(-0.5 * ((x - spots) / widths) ** 2).sum(axis=1) + 1e-6
    return mass / mass.sum(axis=1, keepdims=True)


def barycentre(count, d, peers, power=1):
    """A star whose centre is free: |x - y| on a line, or its square."""
    import ot

    masses, x = bumps(count, d), np.arange(d) / d
    edges, marginals = [[k, count] for k in range(count)], [*masses, d]
    distance = softmap.TruncatedLinear if power == 1 else softmap.TruncatedQuadratic
    family = distance(1 / d**power / count, d**power)
    best = transport.multimarginal(marginals, edges, family, gap=1e-4, time_limit=300)
    true = best.cost
    costs = f"|x - y|^{power}, within {best.relative_gap:.0e}"
    print(f"\nbarycentre of {count} marginals, {d} labels, {costs}")
    table("", ACCURACIES)
    if not GPU:
        ours("softmap, family", marginals, edges, family, true)
    cost = np.abs(x[:, None] - x) ** power
    if GPU or count * d <= 20_000:
        ours("softmap, tables", marginals, edges, cost / count, true, certify=False)

    def cost_of(p):
        return float(np.mean([ot.wasserstein_1d(x, x, m, p / p.sum(), p=power) for m in masses]))

    regs = 10.0 ** -np.arange(1.0, 4.1, 0.5)
    for method in [peer for peer in peers if peer != "ott"]:
        options = {"method": method, "numItermax": 20_000, "stopThr": 1e-6}
        table(f"POT {method}", ladder(bary_run(masses, cost, options), cost_of, true, 1.0, regs))


def bary_run(masses, cost, options):
    import ot

    if not GPU:
        return lambda reg: ot.barycenter(masses.T, cost, reg, **options)
    import cupy

    held = cupy.asarray(masses.T), cupy.asarray(cost)
    cupy.asnumpy(ot.barycenter(*held, 1.0, **options))
    return lambda reg: cupy.asnumpy(ot.barycenter(*held, reg, **options))


def tree(count, d, _peers):
    """A random tree whose leaves have marginals: random costs in the plane, beside HiGHS."""
    rng = np.random.default_rng(2)
    inner = max(1, count - 2)
    edges = [[int(rng.integers(i)), i] for i in range(1, inner)]
    used = np.bincount(np.ravel(edges).astype(int), minlength=inner) if edges else np.zeros(1, int)
    homes = [i for i in range(inner) for _ in range(max(0, 3 - int(used[i])))][:count]
    homes += [int(rng.integers(inner)) for _ in range(count - len(homes))]
    edges += [[home, inner + k] for k, home in enumerate(homes)]
    spots = rng.random((inner + count, d, 2))
    tables = [((spots[i][:, None] - spots[j]) ** 2).sum(axis=-1) for i, j in edges]
    marginals = [d] * inner + list(rng.dirichlet(np.ones(d), size=count))
    print(f"\ntree of {count} marginals and {inner} free nodes, {d} labels, {len(edges)} tables")
    table("", ACCURACIES)
    true, taken = seconds(lambda: by_highs(marginals, edges, tables))
    table("HiGHS (exact)", [f"{taken:.2f}"] * 2)
    ours("softmap", marginals, edges, tables, true)


def by_highs(marginals, edges, tables):
    """The optimum of the linear program over the plans of the edges."""
    from scipy.optimize import linprog
    from scipy.sparse import eye, hstack, kron, vstack

    d, m = len(tables[0]), len(edges)
    rows, right = [], []
    sums = kron(eye(d), np.ones((1, d))), kron(np.ones((1, d)), eye(d))
    first = {}
    for e, pair_ in enumerate(edges):
        for side, i in enumerate(pair_):
            blocks = [None] * m
            blocks[e] = sums[side]
            value = marginals[i] if np.ndim(marginals[i]) else np.zeros(d)
            if np.ndim(marginals[i]) == 0 and i not in first:
                first[i] = e, side
                continue
            if np.ndim(marginals[i]) == 0:
                other, at = first[i]
                blocks[other] = -sums[at]
            empty = [d * d if b is None else None for b in blocks]
            rows.append(
                hstack(
                    [_zeros(d, k) if b is None else b for b, k in zip(blocks, empty, strict=True)]
                )
            )
            right.append(value)
    cost = np.concatenate([t.ravel() for t in tables])
    found = linprog(cost, A_eq=vstack(rows).tocsr(), b_eq=np.concatenate(right), method="highs")
    return found.fun


def _zeros(rows, cols):
    from scipy.sparse import csr_matrix

    return csr_matrix((rows, cols))


ALL = {
    False: """pair 1000, pair 10000 sinkhorn sinkhorn_log ott, line 10000,
        barycentre 10 1000 sinkhorn sinkhorn_log, barycentre 100 1000 sinkhorn,
        barycentre 1000 1000 sinkhorn, squared 10 1000 sinkhorn, squared 100 1000 sinkhorn,
        tree 10 50, tree 30 50""",
    True: "pair 1000, pair 10000, barycentre 10 1000 sinkhorn, barycentre 100 1000 sinkhorn",
}


def one(words):
    what, *sizes = words
    counts = [int(size) for size in sizes if size.isdigit()]
    peers = [size for size in sizes if size in PEERS] or PEERS
    squared = partial(barycentre, power=2)
    run = {"pair": pair, "line": line, "barycentre": barycentre, "squared": squared, "tree": tree}
    run[what](*counts, peers)


def main():
    words = [word for word in sys.argv[1:] if word != "gpu"]
    print("wall seconds on a GPU" if GPU else "CPU seconds, one thread", "to a true accuracy")
    for problem in [words] if words else map(str.split, ALL[GPU].split(",")):
        one(problem)


if __name__ == "__main__":
    main()

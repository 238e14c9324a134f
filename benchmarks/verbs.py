"""How well every verb keeps a time limit: python -m benchmarks.verbs [--only TEXT]
[--limits 0.1 0.3 1] [--threads T].

Every pair of a verb and a model runs in a process of its own, first once without time, for the
imports. One line per pair and limit: the seconds and the processor seconds of the call, and how
much the limit was overrun. On a busy machine the processor seconds with one thread count.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import softmap
from benchmarks.limits import ALLOWED

Call = Callable[[float], object]
HARD = 90.0  # seconds after which a process is ended


def _random(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def _dense() -> softmap.Model:
    """A complete graph of 2,000 nodes."""
    n = 2000
    edges = np.stack(np.triu_indices(n, 1), axis=1)
    weights = _random().normal(size=len(edges))
    return softmap.Model(_random(2).normal(size=(n, 2)), edges, softmap.Potts(weights))


def _wide(tables: bool = False) -> softmap.Model:
    """5,000 labels: a cycle of lines, or two tables."""
    d = 5000
    if tables:
        unary = _random().uniform(size=(3, d))
        return softmap.Model(unary, [[0, 1], [1, 2]], _random(2).uniform(size=(2, d, d)))
    n = 40
    edges = [[i, (i + k) % n] for i in range(n) for k in (1, 7)]
    potential = softmap.TruncatedLinear(np.full(len(edges), 0.01), 1.0)
    return softmap.Model(_random().uniform(size=(n, d)), edges, potential)


def _factors(arity: int, count: int, labels: int) -> softmap.Model:
    rng, n = _random(), 60
    scopes = [rng.choice(n, arity, replace=False) for _ in range(count)]
    factors = [(tuple(map(int, s)), rng.uniform(size=(labels,) * arity)) for s in scopes]
    return softmap.Model.from_factors([labels] * n, factors)


def _linear() -> softmap.Model:
    """Sums over 600 variables of two labels."""
    n, rng = 600, _random()
    return softmap.Model.from_factors(
        [2] * n, [((i,), rng.normal(size=2)) for i in range(n)]
        + [softmap.Linear(range(n), rng.integers(1, 30, n).tolist(), high=2000)],
    )  # fmt: skip


def _assignment(n: int = 60) -> softmap.Model:
    """A quadratic assignment problem."""
    rng = _random()
    flow, far = (np.triu(rng.integers(0, 10, (n, n)), 1) for _ in range(2))
    flow, far = flow + flow.T, far + far.T
    text = f"{n}\n" + "\n".join(" ".join(map(str, r)) for r in [*flow, *far])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "random.dat"
        path.write_text(text)
        return softmap.read(path)


def models() -> dict[str, Callable[[], softmap.Model]]:
    """Models that are small, large, dense, of many labels, of high arity, and permutations."""
    make = softmap.generators
    return {
        "paper 100": lambda: make.erdos_renyi(100, 3, seed=1),
        "Potts 1000²": lambda: make.potts_grid(1000, 1000, 4, seed=1),
        "random 10⁶": lambda: make.erdos_renyi(1_000_000, 3, seed=1),
        "complete 2000": _dense,
        "5,000 labels": _wide,
        "5,000 labels, tables": lambda: _wide(tables=True),
        "factors of 8": lambda: _factors(8, 40, 3),
        "factors of 3": lambda: _factors(3, 300, 6),
        "sums of 600": _linear,
        "permutation 60": _assignment,
    }


def on_models() -> dict[str, Callable[[softmap.Model, dict[str, Any]], Call]]:
    """Verbs that take a model."""

    def solve(**given: Any) -> Callable[[softmap.Model, dict[str, Any]], Call]:
        return lambda model, more: (
            lambda limit: softmap.solve(model, time_limit=limit, **given, **more)
        )

    def iterated(model: softmap.Model, more: dict[str, Any]) -> Call:
        return lambda limit: list(softmap.iterate(model, time_limit=limit, **more))

    def resumed(model: softmap.Model, more: dict[str, Any]) -> Call:
        path = Path(tempfile.mkdtemp()) / "run.npz"
        softmap.solve(model, time_limit=0.3, checkpoint=path, **more)

        def call(limit: float) -> object:
            return softmap.resume(path, model, time_limit=0.3 + limit, **more)

        return call

    def stored(model: softmap.Model, more: dict[str, Any]) -> Call:
        path = Path(tempfile.mkdtemp()) / "run.npz"
        return lambda limit: softmap.solve(model, time_limit=limit, checkpoint=path, **more)

    def proved(model: softmap.Model, more: dict[str, Any]) -> Call:
        path = Path(tempfile.mkdtemp()) / "proof"
        return lambda limit: softmap.solve(model, time_limit=limit, proof=path, **more)

    def summed(model: softmap.Model, _: dict[str, Any]) -> Call:
        half = model.variable_names[: len(model.variable_names) // 2] if model.names else None
        over = list(range(model.network.num_variables // 2)) if half is None else list(half)
        return lambda limit: softmap.marginal_map(model, over, time_limit=limit)

    def ranked(**given: Any) -> Callable[[softmap.Model, dict[str, Any]], Call]:
        return lambda model, more: (
            lambda limit: softmap.solve_mbest(model, 5, time_limit=limit, **given, **more)
        )

    return {
        **{f"goal {g}": solve(goal=g) for g in ("map", "lp", "labels", "optimal")},
        **{f"method {m}": solve(method=m) for m in ("trws", "mplp")},
        "iterate": iterated, "resume": resumed, "checkpoint": stored, "proof": proved,
        "sum_over": summed,
        "log Z": lambda model, _: lambda limit: softmap.log_partition_bounds(
            model, time_limit=limit
        ),
        "mbest": ranked(), "diverse": ranked(diversity=3),
        "lp": lambda model, _: lambda limit: softmap.lp.solve(model, time_limit=limit or 0.01),
    }  # fmt: skip


def others() -> dict[str, Callable[[dict[str, Any]], Call]]:
    """Verbs that do not take one model."""

    def batch(more: dict[str, Any]) -> Call:
        models = [softmap.generators.erdos_renyi(100, 3, seed=k) for k in range(5)]
        return lambda limit: softmap.solve_batch(models, time_limit=limit / 5, **more)

    def many(more: dict[str, Any]) -> Call:
        models = {f"m{k}": softmap.generators.erdos_renyi(100, 3, seed=k) for k in range(5)}

        def call(limit: float) -> object:
            return list(softmap.solve_many(models, time_limit=limit / 5, **more))

        return call

    def transport(n: int, free: int) -> Callable[[dict[str, Any]], Call]:
        def made(_: dict[str, Any]) -> Call:
            rng = _random()
            a, b = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(n))
            costs = rng.uniform(size=(n, n))
            if not free:
                return lambda limit: softmap.transport.sinkhorn(a, b, costs, time_limit=limit)
            given = [*rng.dirichlet(np.ones(n), size=free), n]
            edges = [[k, free] for k in range(free)]
            return lambda limit: softmap.transport.multimarginal(
                given, edges, costs, time_limit=limit
            )

        return made

    def decoder(_: dict[str, Any]) -> Call:
        rng = _random()
        checks = [sorted(rng.choice(600, 6, replace=False).tolist()) for _ in range(300)]
        matrix = np.zeros((300, 600), dtype=np.uint8)
        for row, some in zip(matrix, checks, strict=True):
            row[some] = 1
        found = softmap.codes.Decoder(matrix, probabilities=np.full(600, 0.12))
        syndrome = rng.integers(0, 2, 300)
        return lambda limit: found.decode(syndrome, time_limit=limit or 0.01)

    def stereo(more: dict[str, Any]) -> Call:
        left = _random().integers(0, 255, (500, 700)).astype(np.uint8)
        return lambda limit: softmap.stereo(
            left, np.roll(left, 5, axis=1), 32, time_limit=limit, progress=False, **more
        )

    def denoise(more: dict[str, Any]) -> Call:
        image = _random().integers(0, 255, (400, 400)).astype(np.uint8)
        return lambda limit: softmap.denoise(image, time_limit=limit, progress=False, **more)

    def segment(more: dict[str, Any]) -> Call:
        image = _random().integers(0, 255, (700, 900, 3)).astype(np.uint8)
        return lambda limit: softmap.segment(image, 4, time_limit=limit, progress=False, **more)

    return {
        "solve_batch of 5": batch, "solve_many of 5": many,
        "sinkhorn 1000²": transport(1000, 0), "sinkhorn 4000²": transport(4000, 0),
        "barycentre 3 × 1000": transport(1000, 3),
        "decoder": decoder, "stereo": stereo, "denoise": denoise, "segment": segment,
    }  # fmt: skip


def _cases() -> list[tuple[str, str]]:
    return [(v, m) for v in on_models() for m in models()] + [(v, "") for v in others()]


def _timed(verb: str, of: str, limits: list[float], threads: int, out: Any) -> None:
    warnings.simplefilter("ignore")
    more = {"threads": threads}
    try:
        call = on_models()[verb](models()[of](), more) if of else others()[verb](more)
        call(0.0)
        for limit in limits:
            began, used = time.perf_counter(), time.process_time()
            call(limit)
            out.put((limit, time.perf_counter() - began, time.process_time() - used, ""))
    except Exception as error:
        out.put((0.0, 0.0, 0.0, f"{type(error).__name__}: {error}"[:70]))


def main() -> None:
    """Time every verb under each limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limits", type=float, nargs="+", default=[0.1, 0.3, 1.0])
    parser.add_argument("--only", default="")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    print("verb             model                 limit   clock     cpu  overrun")
    over = 0
    for verb, of in _cases():
        if given.only not in f"{verb}, {of}":
            continue
        out = context.Queue()
        child = context.Process(
            target=_timed, args=(verb, of, given.limits, given.threads, out), daemon=True
        )
        child.start()
        child.join(HARD)
        hung = child.is_alive()
        child.kill()
        while not out.empty():
            limit, clock, used, error = out.get()
            least = min(clock, used) if given.threads == 1 else clock
            late = least - limit
            kept = not error and late <= max(ALLOWED[0] * limit, ALLOWED[1])
            over += not kept
            print(
                f"{verb:16} {of:20} {limit:6.2f} {clock:7.3f} {used:7.3f} {late:+8.3f}"
                f"{'' if kept else '  OVERRUN'} {error}",
                flush=True,
            )
        if hung:
            over += 1
            print(f"{verb:16} {of:20} ended after {HARD:g} s  OVERRUN", flush=True)
    print(f"{over} overrun")


if __name__ == "__main__":
    main()

"""How well time limits are kept: python -m benchmarks.limits [--backend cuda] [--limits 0.1 1 10].

One line per model and limit: the seconds that a clock beside the run measured, and by how much the
limit was overrun. Models have from ten to four million nodes and edges.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import softmap

ALLOWED = (0.05, 0.05)  # of the limit, or seconds: the larger of the two


def models() -> dict[str, Callable[[], softmap.Model]]:
    """Pictures, random graphs and trees of growing size."""
    make = softmap.generators
    return {
        "tree, 10 nodes": partial(make.random_tree, 10, 3, seed=1),
        "paper's law, 300 nodes": partial(make.erdos_renyi, 300, 3, seed=1),
        "random grid 100²": partial(make.random_grid, 100, 100, 4, seed=1),
        "stereo 400², 16 labels": partial(make.stereo_grid, 400, 400, 16, seed=1),
        "paper's law, 10⁵ nodes": partial(make.erdos_renyi, 100_000, 3, seed=1),
        "Potts 1150², 4 labels": partial(make.potts_grid, 1150, 1150, 4, seed=1),
        "Potts 1450², 3 labels": partial(make.potts_grid, 1450, 1450, 3, seed=1),
    }


def main() -> None:
    """Time every model under each limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limits", type=float, nargs="+", default=[0.1, 0.3, 1.0, 3.0, 10.0])
    parser.add_argument("--goals", nargs="+", default=["map", "lp"])
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--threads", type=int)
    given = parser.parse_args()
    over = 0
    options = {"backend": given.backend, "threads": given.threads}
    print("model                    goal  limit   clock  overrun        gap  status")
    for name, make in models().items():
        model = make()
        softmap.solve(model, time_limit=0.0, **options)  # imports, and kernels of a device
        for goal in given.goals:
            for limit in given.limits:
                began = time.perf_counter()
                found = softmap.solve(model, goal=goal, time_limit=limit, **options)
                clock = time.perf_counter() - began
                kept = clock - limit <= max(ALLOWED[0] * limit, ALLOWED[1])
                over += not kept
                gap = found.relative_gap(found.gap)
                print(
                    f"{name:24} {goal:4} {limit:6.2f} {clock:7.3f} {clock - limit:+8.3f} "
                    f"{gap:10.3g}  {found.status.name}{'' if kept else '  OVERRUN'}",
                    flush=True,
                )
    print(f"{over} overrun")


if __name__ == "__main__":
    main()

"""How well time limits are kept: python -m benchmarks.limits [--size 400] [--labels 16].

Prints, per method and limit, the seconds of set-up, those that a clock beside the run measured for
all of it, and by how much the limit was overrun.
"""

from __future__ import annotations

import argparse
import time

import softmap

ALLOWED = (0.05, 0.2)  # of the limit, or seconds: the larger of the two


def main() -> None:
    """Time a truncated-linear grid under each limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=400)
    parser.add_argument("--labels", type=int, default=16)
    parser.add_argument("--limits", type=float, nargs="+", default=[0.5, 1.0, 2.0, 5.0])
    parser.add_argument("--methods", nargs="+", default=["anneal", "trws"])
    parser.add_argument("--goals", nargs="+", default=["map", "lp"])
    given = parser.parse_args()
    model = softmap.generators.stereo_grid(given.size, given.size, given.labels, seed=1)
    softmap.solve(model, time_limit=0.0)
    print("method     goal  limit   set-up  clock  overrun        gap  status")
    for method in given.methods:
        for goal in given.goals:
            for limit in given.limits:
                began = time.perf_counter()
                found = softmap.solve(model, method=method, goal=goal, time_limit=limit)
                clock = time.perf_counter() - began
                over = clock - limit
                kept = "" if over <= max(ALLOWED[0] * limit, ALLOWED[1]) else "  OVERRUN"
                gap = found.relative_gap(found.gap)
                print(
                    f"{method:10} {goal:4} {limit:6.2f} {found.setup_seconds:8.2f} {clock:6.2f} "
                    f"{over / limit:7.1%} {gap:10.3g}  {found.status.name}{kept}"
                )


if __name__ == "__main__":
    main()

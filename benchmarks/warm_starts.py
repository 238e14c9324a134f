"""A sequence of models whose costs change a little, each solved cold and from the one before.

    python -m benchmarks.warm_starts [--models 50] [--change 0.001] [--goal map]

All unary costs change by normal noise of `change` times the scale of the costs, from each model to
the next. Cold and warm runs stop as a user's would. What counts is the time until the warm run has
the relative gap that the cold run ended with, and whether its labels cost more in the end. On a
busy machine, processor time says more than the clock.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

import softmap
from softmap.relaxation.gaps import cost_scale

MODELS = {
    "random grid 24 x 24, 4 labels": lambda: softmap.generators.random_grid(24, 24, 4, seed=1),
    "Potts grid 32 x 32, 6 labels": lambda: softmap.generators.potts_grid(32, 32, 6, seed=1),
    "stereo grid 24 x 32, 12 labels": lambda: softmap.generators.stereo_grid(24, 32, 12, seed=2),
    "Potts grid 96 x 96, 8 labels": lambda: softmap.generators.potts_grid(96, 96, 8, seed=1),
    "random graph of 300, 3 labels": lambda: softmap.generators.erdos_renyi(300, 3, seed=1),
}


def sequence(first: softmap.Model, count: int, change: float, seed: int = 0):
    """Models that wander off from the first one."""
    rng, scale = np.random.default_rng(seed), cost_scale(first)
    model = first
    for _ in range(count):
        noise = rng.normal(0.0, change * scale, model.unary.shape)
        model = model.replace(unary=model.unary + noise)
        yield model


def reached(result: softmap.Result, gap: float, column: str) -> float:
    """Seconds until a run had this relative gap, set-up included; infinity if it never had."""
    for row in result.trace:
        if result.relative_gap(max(0.0, getattr(row, column) - row.bound)) <= gap * (1 + 1e-9):
            return row.seconds + result.setup_seconds
    whole = result.lp_gap if column == "primal" else result.gap
    late = result.relative_gap(whole) <= gap * (1 + 1e-9)
    return result.seconds + result.setup_seconds if late else float("inf")


def compare(name: str, options: argparse.Namespace) -> dict[str, object]:
    """One sequence: sums of seconds, and how often labels were worse or better than cold."""
    settings = {"goal": options.goal, "lp_gap": options.lp_gap, "threads": options.threads}
    first = MODELS[name]()
    earlier = softmap.solve(first, **settings)
    column = "primal" if options.goal == "lp" else "energy"
    found = {"cold": 0.0, "warm": 0.0, "to_gap": 0.0, "missed": 0, "worse": 0, "better": 0}
    sweeps, processor = {"cold": 0.0, "warm": 0.0}, {"cold": 0.0, "warm": 0.0}
    for model in sequence(first, options.models, options.change):
        began = time.process_time()
        cold = softmap.solve(model, **settings)
        between = time.process_time()
        warm = softmap.solve(model, warm_start=earlier, **settings)
        processor["cold"] += between - began
        processor["warm"] += time.process_time() - between
        gap = cold.lp_gap if column == "primal" else cold.gap
        wanted = max(cold.relative_gap(gap), options.lp_gap if column == "primal" else 1e-6)
        seconds = reached(warm, wanted, column)
        whole = warm.seconds + warm.setup_seconds
        found["missed"] += seconds == float("inf")
        found["to_gap"] += whole if seconds == float("inf") else seconds
        found["cold"] += cold.seconds + cold.setup_seconds
        found["warm"] += whole
        rounding = 1e-9 * abs(cold.energy)
        found["worse"] += warm.energy > cold.energy + rounding
        found["better"] += warm.energy < cold.energy - rounding
        sweeps["cold"] += cold.sweeps
        sweeps["warm"] += warm.sweeps
        earlier = warm
    return {"model": name, "change": options.change, "goal": options.goal, **found,
            "sweeps": {k: round(v) for k, v in sweeps.items()},
            "processor": {k: round(v, 2) for k, v in processor.items()},
            "faster": round(found["cold"] / found["to_gap"], 2)}  # fmt: skip


def main() -> None:
    """Run the sequences and print one JSON object for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=50)
    parser.add_argument("--change", type=float, default=0.001)
    parser.add_argument("--goal", choices=("map", "lp"), default="map")
    parser.add_argument("--lp-gap", type=float, default=1e-4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="part of a model's name")
    options = parser.parse_args()
    for name in MODELS:
        if options.only in name:
            print(json.dumps(compare(name, options)), flush=True)


if __name__ == "__main__":
    main()

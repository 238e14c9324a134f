"""Messages of factors over many variables: time per variable as their number grows.

`python -m benchmarks.factors [--most 100000] [--json FILE]`. For each factor over k variables, one
pass sends every message of its tables forward and backward, soft (at a finite temperature) and
hard; seconds are processor time of one thread, best of three, per variable. `growth` is the largest
of a row over the first. Building the model is measured once.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import softmap
from softmap.methods.sweeps.chains import Chains
from softmap.relaxation.consistency import tighten

KINDS: dict[str, Callable[[int], softmap.model.many.Many]] = {
    "AtMostOne": lambda k: softmap.AtMostOne(range(k)),
    "Parity": lambda k: softmap.Parity(range(k)),
    "Cardinality, convex": lambda k: softmap.Cardinality(
        range(k), 1, 0.01 * (np.arange(k + 1.0) - k / 3) ** 2
    ),
    "Cardinality, at most a third": lambda k: softmap.Cardinality(
        range(k), 1, np.where(np.arange(k + 1) > k / 3, np.inf, 0.0)
    ),
    "Cardinality, concave": lambda k: softmap.Cardinality(range(k), 1, np.sqrt(np.arange(k + 1.0))),
}
SIZES = (10, 30, 100, 300, 1000, 10_000, 100_000)


def microseconds(engine: Chains, eta: float, k: int) -> float:
    """Processor time of one pass, per variable."""
    state = engine.start(None)
    count = max(1, 20_000 // k)
    engine.passes(state, count, eta, momentum=False)
    spent = []
    for _ in range(3):
        begin = time.process_time()
        engine.passes(state, count, eta, momentum=False)
        spent.append(time.process_time() - begin)
    return 1e6 * min(spent) / (count * k)


def row(name: str, k: int) -> dict[str, Any]:
    """One factor over k variables with random costs."""
    rng = np.random.default_rng(k)
    begin = time.process_time()
    unary = [((i,), costs) for i, costs in enumerate(rng.normal(size=(k, 2)))]
    model = softmap.Model.from_factors([2] * k, [*unary, KINDS[name](k)])
    built = time.process_time() - begin
    engine = Chains(tighten(model), 1)
    return {
        "factor": name, "k": k, "built_us": 1e6 * built / k, "costs": len(model.unary) / k,
        "soft_us": microseconds(engine, 10.0, k), "hard_us": microseconds(engine, np.inf, k),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=100_000)
    parser.add_argument("--json")
    args = parser.parse_args()
    sizes = [k for k in SIZES if k <= args.most]
    rows = []
    print("| factor | messages | " + " | ".join(f"k = {k:,}" for k in sizes) + " | growth |")
    print("| --- " * (len(sizes) + 3) + "|")
    for name in KINDS:
        own = [row(name, k) for k in sizes]
        rows += own
        for kind in ("soft", "hard"):
            found = [r[f"{kind}_us"] for r in own]
            cells = " | ".join(f"{x:.2f}" for x in found)
            growth = max(found) / found[0]
            print(f"| {name} | {kind} | {cells} | {growth:.1f} |", flush=True)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()

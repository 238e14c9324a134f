"""Labellings and proofs on the paper's random graphs, beside toulbar2, one thread.

`python -m benchmarks.paper_law [--sizes 100 200 400] [--seeds 10] [--seconds 60] [--alone]`: one
row per model; `--alone` leaves toulbar2 out.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import softmap
from benchmarks.peers import toulbar2
from softmap import generators


def theirs(model: softmap.Model, seconds: float) -> str:
    """The better of toulbar2's two forms, as cells of the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.uai"
        softmap.write(model, path)
        found = [toulbar2.by_command([path], seconds), toulbar2.by_package(path, seconds)]
    entries = [
        one for one in found if one is not None and len(one.labels) == model.network.num_variables
    ]
    if not entries:
        return "-"
    best = min(entries, key=lambda one: float(model.energy(np.array(one.labels))))
    energy = float(model.energy(np.array(best.labels)))
    proof = f"{best.seconds:.1f} s" if best.proved else f"gap {best.short / abs(energy):.2%}"
    return f"toulbar2 {energy:.4f} {proof}"


def main() -> None:
    """Solve and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 200, 400])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--alone", action="store_true")
    given = parser.parse_args()
    for n in given.sizes:
        proved, gaps = 0, []
        for seed in range(given.seeds):
            model = generators.erdos_renyi(n, seed=seed)
            found = softmap.solve(model, time_limit=given.seconds, threads=1)
            done = found.status in (softmap.Status.OPTIMAL, softmap.Status.GAP)
            proved += done
            gaps.append(found.relative_gap(found.gap))
            proof = f"{found.seconds:.1f} s" if done else f"gap {gaps[-1]:.3%}"
            other = "" if given.alone else theirs(model, given.seconds)
            print(f"{n} {seed} {found.energy:.4f} {found.bound:.4f} {proof}  {other}", flush=True)
        print(f"n = {n}: {proved} of {given.seeds} proved, worst gap {max(gaps):.3%}", flush=True)


if __name__ == "__main__":
    main()

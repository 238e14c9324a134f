"""
A model from a file
===================

Models of the inference competitions come as UAI files: text with a table of non-negative numbers
per factor. We write one, read it, fix two variables, and compare two methods on it.
"""

# %%
# Make a file
# -----------
# A ring of 150 variables with chords. Tables hold *potentials*: larger is better, 0 is forbidden.

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np

import softmap

n, labels = 150, 4
rng = np.random.default_rng(7)
pairs = [(i, (i + step) % n) for step in (1, 7, 31) for i in range(n)]
lines = ["MARKOV", str(n), " ".join([str(labels)] * n), str(len(pairs))]
lines += [f"2 {i} {j}" for i, j in pairs]
for _ in pairs:
    table = rng.uniform(0.05, 1.0, labels * labels)
    lines += [str(labels * labels), " ".join(f"{p:.4f}" for p in table)]

with TemporaryDirectory() as folder:
    path = Path(folder, "ring.uai")
    path.write_text("\n".join(lines) + "\n")
    model = softmap.read(path, evidence={0: 1, 75: 2})
print(model)

# %%
# Two methods
# -----------
# softmap's own, and TRW-S, a classic that is fast at first and then may stop short of the best
# bound.

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for k, method in enumerate(("anneal", "trws")):
    result = softmap.solve(model, method=method, goal="lp", time_limit=2, lp_gap=1e-5)
    trace = result.trace.columns()
    axes.plot(trace["sweeps"], trace["bound"], f"C{k}o-", markersize=4, label=f"{method}: bound")
    axes.plot(trace["sweeps"], trace["energy"], f"C{k}s:", markersize=4, label=f"{method}: energy")
    print(f"{method:>7}: bound {result.bound:.5f}, energy {result.energy:.5f}; {result.status}")
axes.set(xlabel="sweeps", ylabel="cost, -log of the product of potentials", xscale="log")
axes.legend(frameon=False)

# %%
# The labels that evidence fixed are kept.

print(result.labels[[0, 75]])

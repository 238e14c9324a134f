"""
When the relaxation is not enough
=================================

On frustrated models the linear relaxation leaves a gap. Clusters of variables that are coupled more
strictly, and exact search, close it.
"""

# %%
# A frustrated grid
# -----------------
# Neighbours want to agree or to differ at random: not all wishes can be granted.

import matplotlib.pyplot as plt
import numpy as np

import softmap

rng = np.random.default_rng(3)
edges = softmap.generators.grid_edges(12, 12)
weights = rng.normal(size=len(edges))
model = softmap.Model.grid(rng.normal(0, 0.45, (12, 12, 2)), softmap.Potts(weights))

# %%
# The relaxation alone, and all stages
# ------------------------------------

relaxed = softmap.solve(model, goal="lp")
whole = softmap.solve(model, time_limit=10)
for result in (relaxed, whole):
    print(f"energy {result.energy:.4f}, bound {result.bound:.4f}, by {result.proof}")

doubt = 1 - relaxed.node_marginals.reshape(12, 12, 2).max(axis=2)
figure, axes = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
shown = axes[0].imshow(doubt, cmap="Reds", vmin=0, vmax=0.5)
axes[0].set(title="where the relaxation is fractional", xticks=[], yticks=[])
figure.colorbar(shown, ax=axes[0])
columns = whole.trace.columns()
axes[1].plot(columns["seconds"], columns["energy"], "o-", color="#b2182b", label="energy")
axes[1].plot(columns["seconds"], columns["bound"], "^--", color="#2166ac", label="bound")
axes[1].set(title="energy and bound", xlabel="seconds")
axes[1].legend()

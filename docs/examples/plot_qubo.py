"""
A QUBO: the largest cut of a graph
==================================

Quadratic problems over zeros and ones are models with two labels. Here: divide the vertices of a
graph so that as many edges as possible run between the two sides.
"""

# %%
# The problem as a model
# ----------------------
# An edge whose ends differ costs -1: a Potts cost with a negative weight. The energy is minus the
# number of edges that are cut.

import matplotlib.pyplot as plt
import numpy as np

import softmap

rng = np.random.default_rng(1)
place = rng.uniform(size=(36, 2))
apart = np.linalg.norm(place[:, None] - place[None], axis=2)
edges = np.argwhere(np.triu((apart > 0) & (apart < 0.28)))
model = softmap.Model(np.zeros((36, 2)), edges, softmap.Potts(-1.0))

# %%
# A proof that no cut is larger
# -----------------------------

result = softmap.solve(model, time_limit=10)
print(f"{-result.energy:.0f} of {len(edges)} edges are cut; no cut has over {-result.bound:.2f}")
print(result.proof)

plt.figure(figsize=(4.5, 3.5), layout="constrained")
for a, b in edges:
    same = result.labels[a] == result.labels[b]
    plt.plot(*place[[a, b]].T, color="crimson" if same else "0.75", linewidth=1, zorder=1)
plt.scatter(*place.T, c=result.labels, cmap="coolwarm", zorder=2)
plt.title("edges that are not cut are red")
plt.axis("off")

"""
Side chains of a protein
========================

Every residue of a protein can take a few shapes (rotamers). Each has a cost of its own, and shapes
of residues that touch may clash. The best combination is what protein design programs look for.
"""

# %%
# A made-up protein
# -----------------
# Residues along a folded chain; those that come near each other have a table of costs. Numbers of
# rotamers differ from residue to residue, so the tables do, too.

import matplotlib.pyplot as plt
import numpy as np

import softmap

rng = np.random.default_rng(5)
steps = rng.normal(size=(40, 3))
place = np.cumsum(steps / np.linalg.norm(steps, axis=1, keepdims=True), axis=0)
apart = np.linalg.norm(place[:, None] - place[None], axis=2)
i, j = np.nonzero(np.triu(apart < 2.2, 1))
rotamers = rng.integers(3, 10, 40)

own = [rng.gamma(1.0, 1.0, count) for count in rotamers]
clashes = [
    np.where(rng.random((rotamers[a], rotamers[b])) < 0.25, 20.0, 0.0)
    + rng.normal(0, 0.6, (rotamers[a], rotamers[b]))
    for a, b in zip(i, j, strict=True)
]
model = softmap.Model(own, np.stack([i, j], axis=1), clashes)
print(model)

# %%
# The best shapes
# ---------------

result = softmap.solve(model, time_limit=10)
alone = np.array([np.argmin(costs) for costs in own])
print(f"each residue by itself: {model.energy(alone):.1f}")
print(f"together: {result.energy:.3f}, and no combination is below {result.bound:.3f}")

plt.figure(figsize=(6, 3.6), layout="constrained")
for a, b in zip(i, j, strict=True):
    plt.plot(place[[a, b], 0], place[[a, b], 1], color="0.8", linewidth=0.8, zorder=1)
plt.scatter(place[:, 0], place[:, 1], c=result.labels, cmap="tab10", s=60, zorder=2)
plt.title("contacts, and the rotamer of each residue")
plt.axis("equal")
plt.axis("off")

"""
Which point is which?
=====================

Points were turned, shaken and shuffled among others. A matching gives each its own partner so that
distances are kept: a hard constraint, and a cost for every pair of points.
"""

# %%
# The model
# ---------
# A variable per point, a label per possible partner. Two points with the same
# partner cost infinity.

import matplotlib.pyplot as plt
import numpy as np

import softmap

rng = np.random.default_rng(2)
before = rng.uniform(size=(9, 2))
angle = 0.5
turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
order = rng.permutation(11)
after = np.vstack([before @ turn.T + rng.normal(0, 0.01, (9, 2)), rng.uniform(size=(2, 2))])[order]

i, j = np.triu_indices(9, 1)
old = np.linalg.norm(before[i] - before[j], axis=1)
new = np.linalg.norm(after[:, None] - after[None], axis=2)
costs = np.abs(old[:, None, None] - new)
costs[:, np.arange(11), np.arange(11)] = np.inf
model = softmap.Model(np.zeros((9, 11)), np.stack([i, j], axis=1), costs)

# %%
# The matching
# ------------

result = softmap.solve(model, time_limit=5)
right = order[result.labels] == np.arange(9)
print(f"{right.sum()} of 9 partners are right; {result.status}")

shift = np.array([1.5, 0.0])
plt.figure(figsize=(6, 3.6), layout="constrained")
for k, partner in enumerate(result.labels):
    plt.plot(*np.stack([before[k], after[partner] + shift]).T, color="0.7", linewidth=0.8)
plt.scatter(*before.T, s=60, label="before")
plt.scatter(*(after + shift).T, marker="^", s=60, label="after")
plt.axis("off")
plt.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, frameon=False)

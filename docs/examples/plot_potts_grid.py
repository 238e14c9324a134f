"""
Energy and bound meet
=====================

A grid of variables with random preferences, whose neighbours like to agree: the standard small
test. We watch the energy of the best labelling come down and the bound come up.
"""

# %%
# The model
# ---------
# Every variable of a 48 x 48 grid has eight labels with random costs between 0 and 1. Neighbours
# with different labels pay 0.3 (a *Potts* cost).

import matplotlib.pyplot as plt
import numpy as np

import softmap

rng = np.random.default_rng(0)
rows, columns, labels = 48, 48, 8
edges = softmap.generators.grid_edges(rows, columns)
unary = rng.uniform(size=(rows * columns, labels))
model = softmap.Model(unary, edges, softmap.Potts(np.full(len(edges), 0.3)))
print(model)

# %%
# Solve it
# --------
# There are 8 to the power of 2304 labellings. The result says how good ours is at worst.

result = softmap.solve(model, lp_gap=1e-4)
print(f"energy {result.energy:.4f}, bound {result.bound:.4f}")
print(f"proved within {100 * result.relative_gap(result.gap):.2g} % of the best")
print(result.status)

# %%
# The labelling, and the proof as it was made
# -------------------------------------------

trace = result.trace.columns()
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.imshow(result.labels.reshape(rows, columns), cmap="viridis")
left.set(title="the labelling", xticks=[], yticks=[])
for name, style in {"energy": "o-", "primal": "s--", "bound": "^-."}.items():
    right.plot(trace["sweeps"], trace[name], style, label=name)
right.set(xlabel="sweeps over the graph", ylabel="cost", title="from both sides")
right.legend(frameon=False)

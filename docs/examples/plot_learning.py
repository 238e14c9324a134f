"""
Learning how much borders should cost
=====================================

A few labelled pictures tell how strong the smoothing ought to be. The structured perceptron solves
the model with the present weights, compares with the truth, and corrects the weights; warm starts
make the repeated solving quick.
"""

# %%
# Labelled pictures
# -----------------

import matplotlib.pyplot as plt
import numpy as np

import softmap
from softmap.demos.scenes import regions

rng = np.random.default_rng(0)
truths = [regions(rng, 16, 5, 3) for _ in range(4)]
seen = [np.eye(3)[t] + rng.normal(0, 0.9, (16, 16, 3)) for t in truths]
edges = softmap.generators.grid_edges(16, 16)


def features(labels, evidence):
    """What the weights are multiplied by: the evidence used up, and the borders drawn."""
    flat = labels.ravel()
    data = -np.take_along_axis(evidence.reshape(-1, 3), flat[:, None], axis=1).sum()
    return np.array([data, (flat[edges[:, 0]] != flat[edges[:, 1]]).sum()])


# %%
# Solve, compare, correct
# -----------------------

weights, earlier, errors, path = np.array([1.0, 0.0]), [None] * 4, [], []
for _ in range(12):
    wrong, change = 0.0, np.zeros(2)
    for k, (truth, evidence) in enumerate(zip(truths, seen, strict=True)):
        model = softmap.Model.grid(-weights[0] * evidence, softmap.Potts(max(weights[1], 0.0)))
        earlier[k] = softmap.solve(model, goal="lp", lp_gap=1e-3, warm_start=earlier[k])
        change += features(earlier[k].labels, evidence) - features(truth, evidence)
        wrong += (earlier[k].labels != truth).mean() / 4
    weights = np.maximum(weights + 0.002 * change, 0.0)
    errors.append(wrong)
    path.append(weights[1] / weights[0])
print(f"wrong pixels: {100 * errors[0]:.1f} % at first, {100 * min(errors):.1f} % at best")

figure, axes = plt.subplots(1, 2, figsize=(7, 2.6), layout="constrained")
axes[0].plot(100 * np.array(errors))
axes[0].set(xlabel="step", ylabel="wrong pixels (%)")
axes[1].plot(path)
axes[1].set(xlabel="step", ylabel="cost of a border")

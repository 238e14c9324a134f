"""
Barycentres and bridges between distributions
=============================================

`softmap.transport` couples the nodes of a graph whose marginals are given or free. Here are a
barycentre of three distributions, under two costs, and a path between two of them.
"""

# %%
# A star with a free centre
# -------------------------

import matplotlib.pyplot as plt
import numpy as np

import softmap
from softmap import transport

d = 200
x = np.arange(d)


def bump(*spots):
    mass = sum(np.exp(-0.5 * ((x - spot) / 6) ** 2) for spot in spots) + 1e-6
    return mass / mass.sum()


ends = [bump(30, 60), bump(90, 130), bump(110, 170)]
star = [[0, 3], [1, 3], [2, 3]]
costs = {
    "squared distance": softmap.TruncatedQuadratic(1 / 3 / d**2, d**2),
    "distance up to 20": softmap.TruncatedLinear(1 / 3 / d, 20),
}
centres = {name: transport.multimarginal([*ends, d], star, cost) for name, cost in costs.items()}
for name, found in centres.items():
    print(f"{name:18} cost {found.cost:.5f}, at least {found.bound:.5f}")
    assert found.relative_gap <= 1e-3

# %%
# A path with free nodes in between
# ---------------------------------

steps = 8
chain = [[k, k + 1] for k in range(steps)]
path = transport.multimarginal(
    [ends[0], *[d] * (steps - 1), ends[2]], chain, softmap.TruncatedQuadratic(1 / d**2, d**2)
)

# %%
# What came out
# -------------

figure, axes = plt.subplots(1, 3, figsize=(12, 3.2), layout="constrained")
for mass in ends:
    axes[0].fill_between(x, mass, alpha=0.2, color="gray")
for name, found in centres.items():
    axes[0].plot(x, found.marginals[3], label=name)
axes[0].legend()
axes[0].set(title="barycentres")
for k, mass in enumerate(path.marginals):
    axes[1].plot(x, mass + 0.02 * k, color=plt.cm.viridis(k / steps))
axes[1].set(title="a path", yticks=[])
trace = centres["squared distance"].trace
axes[2].semilogx([m.eta for m in trace], [m.cost for m in trace], label="cost of the plan")
axes[2].semilogx([m.eta for m in trace], [m.bound for m in trace], label="certified bound")
axes[2].tick_params(which="minor", labelbottom=False)
axes[2].set(title="both sides, level by level", xlabel="η")
axes[2].legend()

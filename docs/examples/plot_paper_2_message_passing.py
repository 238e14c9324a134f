"""
Paper, section 2: edge and star updates
=======================================

The smoothed dual of a small model, minimised block by block. An update of an edge (EMP) makes one
marginal of one edge agree with its variable; an update of a star (SMP) does so for all edges of a
variable at once.
"""

# %%
# The dual
# --------
# L(λ) is convex and smooth. Its gradient is the disagreement of the marginals, and -L(λ) is a lower
# bound on the smoothed optimum for every λ.

import matplotlib.pyplot as plt
import numpy as np

import softmap
from softmap.methods.marginals import smoothed_optimum

model = softmap.generators.random_grid(4, 4, 3, seed=0)
eta = 5.0
dual = softmap.SmoothedDual(model, eta)
print(f"-L(0) = {-dual.value(np.zeros(model.network.half_size)):.4f}")

# %%
# Updates at random
# -----------------
# A snapshot after every update; a star of four edges counts as four messages.

optimum = smoothed_optimum(model, eta).value
figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
for method, style in (("emp", "-"), ("smp", "--")):
    run = softmap.paper.snapshots(model, method=method, eta=eta, updates=400, every=4)
    rows = [(s.work, optimum - s.smoothed) for s in run if s.updates]
    axes.semilogy(*zip(*rows, strict=True), style, label=method.upper())
    print(f"{method}: {rows[-1][1]:.2e} below the optimum after {rows[-1][0]} messages")
axes.set(xlabel="messages", ylabel="smoothed optimum + L(λ)", title="Randomised updates")
axes.legend()

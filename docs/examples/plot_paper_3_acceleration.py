"""
Paper, section 3: acceleration
==============================

Momentum over the same blocks: Algorithms 2 and 3 combine each update with a second sequence of
multipliers, as Nesterov's method does for gradients.
"""

# %%
# Four methods, the same number of updates
# ----------------------------------------
# The theorems bound the number of updates in the worst case, where momentum needs fewer. On this
# small grid, star updates without momentum are ahead, and momentum does not lower L in every step.

import matplotlib.pyplot as plt

import softmap
from softmap.methods.marginals import smoothed_optimum

model = softmap.generators.random_grid(4, 4, 3, seed=1)
figure, panels = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained", sharey=True)
for axes, eta in zip(panels, (2.0, 50.0), strict=True):
    optimum = smoothed_optimum(model, eta).value
    for method in ("emp", "accel-emp", "smp", "accel-smp"):
        run = softmap.paper.snapshots(model, method=method, eta=eta, updates=1500, every=25)
        rows = [(s.updates, max(optimum - s.smoothed, 1e-12)) for s in run if s.updates]
        axes.semilogy(*zip(*rows, strict=True), label=method)
    axes.set(title=f"η = {eta:g}", xlabel="updates")
panels[0].set(ylabel="smoothed optimum + L(λ)")
panels[1].legend()

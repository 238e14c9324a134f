"""
Paper, section 4: the price of smoothing
========================================

The main results need an η that is large enough: the smoothed optimum differs from the optimum of
the linear program by at most the largest entropy divided by η.
"""

# %%
# The error and its bound
# -----------------------
# The entropy of n variables and m edges with d labels is at most (n + 2 m) log d.

import matplotlib.pyplot as plt
import numpy as np

import softmap
from softmap.methods.marginals import smoothed_optimum

model = softmap.generators.random_grid(4, 4, 3, seed=2)
program = softmap.lp.solve(model).value
etas = np.geomspace(1, 100, 7)
error = np.array([program - smoothed_optimum(model, eta).value for eta in etas])
largest = (model.n + 2 * model.m) * np.log(3) / etas
print("the error is within its bound:", bool(np.all((error >= -1e-9) & (error <= largest))))

figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
axes.loglog(etas, largest, "--", label="bound: largest entropy / η")
axes.loglog(etas, error, "o-", label="LP optimum - smoothed optimum")
axes.set(xlabel="η", title="Smoothing error")
axes.legend()

"""
Paper, section 6: the experiments in small
==========================================

The bound on the linear program over the number of updates, on a grid of random costs. The command
``softmap reproduce`` runs the experiments in their full size.
"""

# %%
# What each method proves
# -----------------------
# Each snapshot has the best bound so far, rounded down.

import matplotlib.pyplot as plt

import softmap

model = softmap.generators.random_grid(6, 6, 3, seed=4)
program = softmap.lp.solve(model).value
figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
for method in ("emp", "smp", "accel-emp", "accel-smp"):
    result = softmap.paper.solve(model, method=method, eta=100.0, updates=4000, every=100)
    columns = result.trace.columns()
    axes.plot(columns["work"], columns["lp_bound"], label=method)
    print(f"{method:9}  bound {result.lp_bound:8.3f} of {program:.3f}")
passes = softmap.solve(model, goal="lp").trace.columns()
axes.plot(passes["work"], passes["lp_bound"], "k.-", label="anneal (softmap's default)")
axes.axhline(program, color="gray", linewidth=0.8)
axes.set(xlabel="messages", ylabel="lower bound", title="Bounds on the LP optimum")
axes.legend()

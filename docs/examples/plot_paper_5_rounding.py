"""
Paper, section 5: rounding to labels
====================================

If the linear program has one optimal point, and this point is a labelling, then the marginals of
the smoothed problem determine this labelling once η is large enough.
"""

# %%
# From marginals to labels
# ------------------------
# Each variable takes its most probable label. On a tree the relaxation is tight.

import matplotlib.pyplot as plt
import numpy as np

import softmap
from softmap.methods.marginals import smoothed_optimum

model = softmap.generators.random_tree(40, 3, seed=3)
best = softmap.solve(model)
etas = np.geomspace(0.1, 100, 12)
wrong, least = [], []
for eta in etas:
    nodes = smoothed_optimum(model, eta).nodes.reshape(-1, 3)
    wrong.append(int((nodes.argmax(axis=1) != best.labels).sum()))
    least.append(nodes.max(axis=1).min())
print("variables with another label:", wrong)

figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
axes.semilogx(etas, wrong, "o-", label="variables with another label")
axes.set(xlabel="η", ylabel="variables", title="Rounded marginals and the optimal labelling")
other = axes.twinx()
other.semilogx(etas, least, "^--", color="#2166ac", label="least certain variable")
other.set(ylabel="largest marginal", ylim=(0, 1.05))
figure.legend(loc="outside lower center", ncols=2)

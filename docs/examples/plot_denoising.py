"""
Taking the noise off a picture
==============================

Each pixel has one of 24 grey levels. It should be close to what was seen, and neighbours should be
close to each other, but a sharp step between two objects must not cost more than a
mild one: the *truncated quadratic* cost.
"""

# %%
# A picture, and the same with noise
# ----------------------------------

import matplotlib.pyplot as plt
import numpy as np

import softmap

size, levels = 56, 24
y, x = np.mgrid[0:size, 0:size] / size
clean = 40 + 60 * y
clean[(x - 0.35) ** 2 + (y - 0.4) ** 2 < 0.06] = 200
clean[(np.abs(x - 0.7) < 0.15) & (np.abs(y - 0.65) < 0.2)] = 130
noisy = clean + np.random.default_rng(1).normal(0, 25, clean.shape)

# %%
# The model
# ---------
# The cost of a grey level is its squared distance to what was seen. A step of more than 40 grey
# values between neighbours costs as much as one of 40.

grey = np.linspace(0, 255, levels)
unary = np.minimum((noisy.reshape(-1, 1) - grey) ** 2, 80**2) / 1000
edges = softmap.generators.grid_edges(size, size)
step = grey[1] - grey[0]
smooth = softmap.TruncatedQuadratic(np.full(len(edges), 2 * step**2 / 1000), (40 / step) ** 2)
model = softmap.Model(unary, edges, smooth)
result = softmap.solve(model, lp_gap=1e-3)
restored = grey[result.labels].reshape(size, size)

print(f"relative gap {result.relative_gap(result.gap):.1e}: {result.status}")
print(f"error {np.std(noisy - clean):.1f} grey values before, {np.std(restored - clean):.1f} after")

# %%
# What came out
# -------------

figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
for axis, picture, title in zip(
    axes, (clean, noisy, restored), ("clean", "noisy", "restored"), strict=True
):
    axis.imshow(picture, cmap="gray", vmin=0, vmax=255)
    axis.set(title=title, xticks=[], yticks=[])

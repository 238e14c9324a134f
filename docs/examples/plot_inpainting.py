"""
Filling in what is missing
==========================

A scratch over a noisy picture: `softmap.denoise` takes a mask of pixels that are not known, and
paints them in from their surroundings.
"""

# %%
# A picture with a scratch
# ------------------------

import matplotlib.pyplot as plt
import numpy as np

import softmap
from softmap.app.vision.scenes import regions

rng = np.random.default_rng(7)
clean = np.array([40.0, 110.0, 180.0, 230.0])[regions(rng, 48, 9, 4)]
noisy = np.clip(clean + rng.normal(0, 15, clean.shape), 0, 255)
row, column = np.mgrid[:48, :48]
scratch = (np.abs(row - column) < 2) | (np.abs(row - 30) < 1)
noisy[scratch] = 255

# %%
# One call
# --------

found = softmap.denoise(noisy, mask=scratch, levels=24, time_limit=5)
error = np.abs(found.image - clean)
print(f"mean error {error.mean():.1f}, under the scratch {error[scratch].mean():.1f} grey levels")
print(f"proved within {100 * found.relative_gap:.2g} % of the best")

figure, axes = plt.subplots(1, 3, figsize=(8, 2.8), layout="constrained")
pictures = {"given": noisy, "found": found.image, "true": clean}
for panel, (title, picture) in zip(axes, pictures.items(), strict=True):
    panel.imshow(picture, cmap="gray", vmin=0, vmax=255)
    panel.set(title=title, xticks=[], yticks=[])

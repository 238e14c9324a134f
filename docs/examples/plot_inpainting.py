"""
Filling in what is missing
==========================

A photograph with noise and scratches: `softmap.denoise` takes a mask of the pixels that are not
known, and fills them in from their surroundings.
"""

# %%
# A damaged photograph
# --------------------
# The portrait of Grace Hopper by James S. Davis, US Navy, is in the public domain. matplotlib
# brings it along.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import cbook

import softmap

path = cbook.get_sample_data("grace_hopper.jpg", asfileobj=False)
photo = plt.imread(path) @ [0.299, 0.587, 0.114]
clean = photo[130:380:2, 130:380:2]
rng = np.random.default_rng(1)
y, x = np.mgrid[:125, :125]
scratched = (np.abs(y - x) < 2) | (np.abs(y - 80 + 8 * np.sin(x / 9)) < 2) | (np.abs(x - 95) < 2)
damaged = np.clip(clean + rng.normal(0, 15, clean.shape), 0, 255)
damaged[scratched] = 255

# %%
# One call
# --------

found = softmap.denoise(damaged, mask=scratched, time_limit=10)
error = np.abs(found.image - clean)
print(f"mean error {error.mean():.1f}, under scratches {error[scratched].mean():.1f} grey levels")
print(f"proved within {100 * found.result.relative_gap(found.result.gap):.2g} % of the optimum")

figure, axes = plt.subplots(1, 2, figsize=(7, 3.7), layout="constrained")
for panel, (title, image) in zip(
    axes, {"given": damaged, "found": found.image}.items(), strict=True
):
    panel.imshow(image, cmap="gray", vmin=0, vmax=255)
    panel.set(title=title, xticks=[], yticks=[])

"""
Depth from two pictures
=======================

Near things are shifted more between two eyes. `softmap.stereo` finds the shift of every pixel, and
proves how far the answer can be from the best one.
"""

# %%
# Two made-up views
# -----------------
# Rectangles in front of a slanted wall, with noise in both pictures.

import matplotlib.pyplot as plt
import numpy as np

import softmap
from softmap.app.vision.scenes import stereo_pair

left, right, truth = stereo_pair(np.random.default_rng(3), 48, 10)

# %%
# One call
# --------

found = softmap.stereo(left, right, 10, time_limit=5)
off = np.abs(found.image - truth) > 1
print(f"{100 * off.mean():.1f} % of the pixels are off by more than one")
print(f"the labelling is proved to be within {100 * found.relative_gap:.2g} % of the best")

figure, axes = plt.subplots(1, 3, figsize=(9, 2.6), layout="constrained")
pictures = {"left picture": left, "disparities found": found.image, "true ones": truth}
for panel, (title, picture) in zip(axes, pictures.items(), strict=True):
    panel.imshow(picture, cmap="gray" if title.startswith("left") else "viridis")
    panel.set(title=title, xticks=[], yticks=[])

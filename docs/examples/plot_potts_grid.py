"""
Energy and bound meet
=====================

Regions of a photograph: neighbouring pixels with different labels pay a *Potts* cost. While softmap
solves the model, the energy comes down and the bound comes up.
"""

# %%
# The model
# ---------
# The portrait of Grace Hopper by James S. Davis, US Navy, is in the public domain. Each pixel gets
# one of six colours: the nearest one costs least.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import cbook

import softmap

path = cbook.get_sample_data("grace_hopper.jpg", asfileobj=False)
photo = plt.imread(path)[20:480:4, 60:460:4].astype(float)
colours = np.array(
    [(20, 20, 35), (60, 105, 170), (35, 40, 90), (235, 230, 230), (220, 160, 130), (150, 60, 50)]
)
costs = ((photo[:, :, None] - colours) ** 2).sum(axis=-1) / 2000
model = softmap.Model.grid(costs, softmap.Potts(1.5))
print(model)

# %%
# Solve it
# --------
# There are 6 to the power of 11,500 labellings. The result says how good ours is at worst.

result = softmap.solve(model)
print(f"energy {result.energy:.4f}, bound {result.bound:.4f}")
print(f"proved within {100 * result.relative_gap(result.gap):.2g} % of the optimum")
print(result.status)

# %%
# The labelling
# -------------

figure, axes = plt.subplots(1, 2, figsize=(7, 4.2), layout="constrained")
for panel, (title, image) in zip(
    axes, {"photograph": photo, "labelling": colours[result.labels]}.items(), strict=True
):
    panel.imshow(image.astype(np.uint8))
    panel.set(title=title, xticks=[], yticks=[])

# %%
# The proof as it was made
# ------------------------

trace = result.trace.columns()
figure, panel = plt.subplots(figsize=(7, 3.4), layout="constrained")
panel.plot(trace["seconds"], trace["energy"], "o-", color="#b2182b", label="energy")
panel.plot(trace["seconds"], trace["bound"], "^--", color="#2166ac", label="bound")
panel.set(xlabel="seconds", ylabel="cost")
panel.ticklabel_format(useOffset=False)
panel.legend(frameon=False)

"""
Taking the noise off an MRI scan
================================

Each pixel has one of 32 grey levels. It should be close to what was measured, and neighbours should
be close to each other. A sharp step between two tissues must not cost more than a mild one: that is
the *truncated quadratic* cost.
"""

# %%
# A slice of a head, and the same with noise
# ------------------------------------------
# The slice is part of matplotlib's sample data.

import gzip

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import cbook

import softmap

with gzip.open(cbook.get_sample_data("s1045.ima.gz", asfileobj=False)) as file:
    measured = np.frombuffer(file.read(), np.uint16).reshape(256, 256)
clean = np.clip(measured[20:230:2, 20:200:2] / np.percentile(measured, 99.5), 0, 1) * 255
noisy = clean + np.random.default_rng(1).normal(0, 25, clean.shape)

# %%
# The model
# ---------
# The cost of a grey level is its squared distance to what was measured. A step of more than 60 grey
# levels between neighbours costs as much as one of 60.

grey = np.linspace(0, 255, 32)
unary = np.minimum((noisy[..., None] - grey) ** 2, 80**2) / 1000
step = grey[1] - grey[0]
smooth = softmap.TruncatedQuadratic(0.5 * step**2 / 1000, (60 / step) ** 2)
result = softmap.solve(softmap.Model.grid(unary, smooth), gap=1e-3, lp_gap=1e-3, time_limit=10)
restored = grey[result.labels]

print(f"proved within {100 * result.relative_gap(result.gap):.2g} % of the optimum")
print(f"error {np.std(noisy - clean):.1f} grey levels before, {np.std(restored - clean):.1f} after")

# %%
# The result
# ----------

figure, axes = plt.subplots(1, 2, figsize=(7, 3.8), layout="constrained")
for panel, (title, image) in zip(axes, {"noisy": noisy, "restored": restored}.items(), strict=True):
    panel.imshow(image, cmap="gray", vmin=0, vmax=255)
    panel.set(title=title, xticks=[], yticks=[])

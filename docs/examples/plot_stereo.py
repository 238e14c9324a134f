"""
Depth from two photographs
==========================

Near things are shifted more between two eyes. `softmap.stereo` finds the shift of every pixel, the
*disparity*, and proves how far the answer can be from the optimum.
"""

# %%
# A scene with known depth
# ------------------------
# Three balls on a floor in front of a wall, seen by two cameras. Rendering the scene by ray tracing
# gives the true disparities as well.

import matplotlib.pyplot as plt
import numpy as np
from scipy import ndimage

import softmap

rows, columns, focal, baseline = 108, 144, 150.0, 0.5
light = np.array([-0.5, 0.8, -0.4]) / np.linalg.norm([-0.5, 0.8, -0.4])
balls = [  # centre, radius, colour
    ((-1.3, -0.3, 5.2), 0.7, (0.85, 0.35, 0.25)),
    ((0.2, -0.5, 4.2), 0.5, (0.3, 0.6, 0.85)),
    ((1.5, 0.0, 6.2), 1.0, (0.9, 0.75, 0.3)),
]
rng = np.random.default_rng(0)
grain = ndimage.gaussian_filter(rng.normal(size=(256, 256)), 1.0, mode="wrap")
grain = 0.5 + 0.5 * grain / np.abs(grain).max()


def texture(a, b, scale):
    """Grain of a surface at coordinates (a, b)."""
    return ndimage.map_coordinates(grain, [a * scale, b * scale], order=1, mode="grid-wrap")


def sphere(origin, direction, centre, radius):
    """Distance along rays at which they meet a ball; infinity where they miss it."""
    to = origin - np.array(centre)
    half = (direction * to).sum(axis=-1)
    root = half**2 - (to**2).sum(axis=-1) + radius**2
    distance = -half - np.sqrt(np.maximum(root, 0))
    return np.where((root > 0) & (distance > 1e-3), distance, np.inf)


def view(eye):
    """The image from a camera at (eye, 0, 0), and the depth of every pixel."""
    y, x = np.mgrid[:rows, :columns]
    ray = np.stack([(x - columns / 2) / focal, (rows / 2 - y) / focal, np.ones_like(x)], axis=-1)
    length = np.linalg.norm(ray, axis=-1)
    ray = ray / length[..., None]
    origin = np.array([eye, 0.0, 0.0])
    floor = np.where(ray[..., 1] < 0, -1.0 / np.minimum(ray[..., 1], -1e-9), np.inf)
    distance = np.stack(
        [floor, 8.0 / ray[..., 2], *(sphere(origin, ray, c, r) for c, r, _ in balls)]
    )
    hit, near = distance.argmin(axis=0), distance.min(axis=0)
    point = origin + near[..., None] * ray
    normal, colour = np.zeros_like(ray), np.zeros_like(ray)
    normal[hit == 0], normal[hit == 1] = (0, 1, 0), (0, 0, -1)
    colour[hit == 0] = (0.75, 0.7, 0.62)
    colour[hit == 1] = (0.6, 0.68, 0.66)
    grains = np.where(
        hit == 0,
        texture(point[..., 0], point[..., 2], 14.0),
        texture(point[..., 0] + 9, point[..., 1] + 3 * point[..., 2], 14.0),
    )
    for k, (centre, radius, ink) in enumerate(balls, start=2):
        normal[hit == k] = (point[hit == k] - np.array(centre)) / radius
        colour[hit == k] = ink
    shadow = np.min([sphere(point + 1e-2 * normal, light, c, r) for c, r, _ in balls], axis=0)
    lit = np.clip((normal * light).sum(axis=-1), 0, 1) * np.where(np.isfinite(shadow), 0.15, 1.0)
    shade = (0.35 + 0.65 * lit) * (0.45 + 0.9 * grains)
    return np.clip(255 * colour * shade[..., None], 0, 255), near * ray[..., 2]


left, depth = view(-baseline / 2)
right, _ = view(baseline / 2)
noise = np.random.default_rng(1)
left, right = (image + noise.normal(0, 4, image.shape) for image in (left, right))
truth = focal * baseline / depth

# %%
# One call
# --------

found = softmap.stereo(left, right, 28, time_limit=10)
seen_by_both = np.arange(columns) >= truth
off = np.abs(found.labels - truth)[seen_by_both] > 1
print(f"{100 * off.mean():.1f} % of the pixels in both images are off by more than one")
print(f"proved within {100 * found.result.relative_gap(found.result.gap):.2g} % of the optimum")

figure, axes = plt.subplots(1, 2, figsize=(7, 2.9), layout="constrained")
axes[0].imshow(np.clip(left, 0, 255).astype(np.uint8))
axes[0].set(title="left image", xticks=[], yticks=[])
axes[1].imshow(found.labels, cmap="viridis")
axes[1].set(title="disparity: near is bright", xticks=[], yticks=[])

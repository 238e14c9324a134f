"""A colour picture in a few regions: Potts weights that are small where colours change."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softmap.demos.base import Demo, DemoOptions, accuracy
from softmap.demos.scenes import regions
from softmap.generators import grid_edges
from softmap.model import Model
from softmap.model.potentials import Potts
from softmap.plotting import load_image, save_image
from softmap.vision.regions import cluster, colour_costs, contrast

__all__ = ["build"]

Colours = NDArray[np.float64]


def build(options: DemoOptions) -> Demo:
    """Each pixel belongs to one of a few colours; borders are cheap where the colour changes."""
    labels = options.labels or 6
    picture, truth, palette = _picture(options, labels)
    rows, columns = picture.shape[:2]
    edges = grid_edges(rows, columns)
    flat = picture.reshape(-1, 3)
    if palette is None:
        palette = cluster(flat, labels, options.seed)
    unary = colour_costs(flat, palette)
    model = Model(unary, edges, Potts(contrast(flat, edges))).with_shape((rows, columns))
    centres = palette
    return Demo(
        story=f"Each of {rows} × {columns} pixels belongs to one of {labels} colours.",
        model=model,
        draw_input=lambda path: save_image(picture.astype(np.uint8), path),
        draw_labelling=lambda x, path: save_image(
            centres[x].reshape(picture.shape).astype(np.uint8), path
        ),
        picture=picture,
        score=None if truth is None else accuracy(truth, "pixels"),
    )


def _picture(
    options: DemoOptions, labels: int
) -> tuple[Colours, NDArray[np.int64] | None, Colours | None]:
    if options.image is not None:
        return load_image(options.image, options.size or 200).astype(float), None, None
    size = options.size or 96
    rng = np.random.default_rng(options.seed)
    truth = regions(rng, size, 3 * labels, labels)
    palette = rng.uniform(40, 215, (labels, 3))
    picture = np.clip(palette[truth] + rng.normal(0, 45, (size, size, 3)), 0, 255)
    return picture, truth, palette

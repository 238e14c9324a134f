"""A noisy map of regions, cleaned by a Potts model."""

from __future__ import annotations

import numpy as np

from softmap.demos.base import Demo, DemoOptions, accuracy
from softmap.demos.scenes import regions
from softmap.generators import grid_edges
from softmap.model import Model
from softmap.model.potentials import Potts
from softmap.plotting import save_labelling

__all__ = ["build"]


def build(options: DemoOptions) -> Demo:
    """Regions seen through noise: neighbours are likely, but not certain, to agree."""
    size, labels = options.size or 64, options.labels or 8
    rng = np.random.default_rng(options.seed)
    truth = regions(rng, size, 3 * labels, labels)
    evidence = np.eye(labels)[truth] + rng.normal(0, 1.4, (size, size, labels))
    edges = grid_edges(size, size)
    weights = rng.uniform(1.2, 1.8, len(edges))
    model = Model(-evidence.reshape(-1, labels), edges, Potts(weights)).with_shape((size, size))
    noisy = evidence.argmax(axis=-1)
    return Demo(
        story=f"Each of {size} × {size} pixels has one of {labels} labels, seen through noise.",
        model=model,
        draw_input=lambda path: save_labelling(noisy, labels, path, "the likeliest label by pixel"),
        draw_labelling=lambda x, path: save_labelling(
            x.reshape(size, size), labels, path, "the labelling found"
        ),
        score=accuracy(truth, "pixels"),
    )

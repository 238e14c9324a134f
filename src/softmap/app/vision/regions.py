"""Segmentation of images: Potts weights that are smaller across strong contrast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap import Model, Potts
from softmap.app.vision.blocks import BLOCK, edge_values, row_blocks
from softmap.app.vision.picture import Picture, begun
from softmap.app.vision.preparing import Prepared, enlarged
from softmap.app.vision.source import Image, Source
from softmap.arguments import count, not_negative
from softmap.errors import ModelError
from softmap.extend import core, directions, integers, neighbours

COLOURS = 5  # colours by which the markers of one label are described
SAMPLE = 5000  # pixels whose colours are clustered


def segment(
    image: ArrayLike,
    num_labels: int = 2,
    *,
    smoothness: float = 1.0,
    markers: ArrayLike | None = None,
    connectivity: int = 8,
    seed: int = 0,
    **options: Any,
) -> Picture:
    """Segment an image into regions of similar colour with short boundaries.

    Parameters
    ----------
    image : array (rows, columns) or (rows, columns, 3), str or Path
        The image, or an image file. The segmented image has its type and its range.
    num_labels : int, default 2
        Number of labels; each has one colour.
    smoothness : float
        Weight of the boundary cost; 0 assigns the nearest colour to each pixel.
    markers : int array (rows, columns), optional
        Known labels of pixels, for example of scribbles with the mouse; -1 at other pixels. A label
        with markers fits pixels whose colour is near that of some of its markers.
    connectivity : 4 or 8
        Number of neighbours of a pixel.
    seed : int
        Random seed of the clustering.
    **options
        Options of `solve`. By default, the run ends at a gap of 0.1 % or after 8 seconds;
        `Picture.improve` continues it. The time limit holds for all of the work: if it is short for
        a large image, blocks of pixels share a label (`Picture.side`).

    Returns
    -------
    Picture
        The labelled image and the result of the run.

    Examples
    --------
    >>> import numpy as np, softmap
    >>> photo = np.repeat([[40.0, 200.0]], 8, axis=0).repeat(6, axis=1)
    >>> found = softmap.segment(photo + np.random.default_rng(0).normal(0, 20, photo.shape))
    >>> len(np.unique(found.labels[:, :6])), len(np.unique(found.labels))
    (1, 2)
    """
    options, limit = begun(segment, options)
    source = Source.of(image)
    number = count("num_labels", num_labels, 2, 1 << 20)
    known = None if markers is None else _markers(markers, source.shape, number)
    weight = not_negative("smoothness", smoothness)
    directions(2, connectivity)  # raises for another number
    colours = Colours.of(source, number, known, seed)
    palette = source.restored(colours.centres.reshape(number, *source.given.shape[2:]))

    def build(side: int, deadline: core.Deadline) -> Prepared:
        small = source.reduced(side)
        marked = None if known is None else known[::side, ::side]
        costs = colours.costs(small, marked, deadline)
        model = region_model(small, costs, weight, connectivity=connectivity, deadline=deadline)
        return Prepared(model, lambda found: enlarged(palette[found], side, source.shape))

    return Picture.of(build, source, options, limit)


def region_model(
    source: Source,
    costs: Image,
    smoothness: float = 1.0,
    *,
    connectivity: int = 8,
    deadline: core.Deadline | None = None,
) -> Model:
    """Return the segmentation model of an image, given the cost of each pixel and label.

    Raises `core.OutOfTime` if the deadline passes.
    """
    deadline = deadline or core.Deadline()
    edges = neighbours(source.shape, connectivity, deadline)
    weights = contrast(source, connectivity, deadline)
    weights *= smoothness
    return Model(costs, edges, Potts(weights)).with_shape(source.shape)


def contrast_weights(image: ArrayLike, *, connectivity: int = 4) -> Image:
    """Return a weight in 0..1 for each edge of a grid: small where the image changes.

    The weight of neighbours i and j is `exp(-|I_i - I_j|² / (2 mean))`, with the mean of all
    `|I_i - I_j|²`, as is usual for graph cuts. The order of edges is that of `Model.grid`.

    Parameters
    ----------
    image : array (rows, columns) or (rows, columns, 3), str or Path
        The image, or an image file.
    connectivity : 4 or 8
        Number of neighbours of a pixel.

    Examples
    --------
    >>> import numpy as np, softmap
    >>> photo = np.repeat([[40.0, 200.0]], 2, axis=0)
    >>> weights = softmap.contrast_weights(photo)
    >>> costs = np.abs(photo[..., None] - [50, 180])
    >>> softmap.solve(softmap.Model.grid(costs, softmap.Potts(90 * weights))).labels.tolist()
    [[0, 1], [0, 1]]
    """
    return _likeness(Source.of(image), connectivity, core.Deadline())


def _markers(markers: Any, shape: tuple[int, ...], labels: int) -> NDArray[np.int64]:
    known = integers(markers, "markers")
    if known.shape != shape:
        raise ModelError(f"markers must have the shape of the picture, {shape}, not {known.shape}")
    if known.max() >= labels:
        raise ModelError(
            f"markers: {known.max()} is outside 0..{labels - 1}; -1 means not known, 0 is a label"
        )
    if known.min() >= 0:
        raise ModelError("markers: every pixel has a label; expected -1 where it is not known")
    return known


@dataclass(frozen=True)
class Colours:
    """The colours of the labels.

    Attributes
    ----------
    centres : float64 array (labels, channels)
        The mean colour of each label.
    marked : dict
        For each label with markers, the colours that they have.
    """

    centres: Image
    marked: dict[int, Image]

    @classmethod
    def of(cls, source: Source, labels: int, known: NDArray[np.int64] | None, seed: int) -> Colours:
        """Cluster the colours of an image; those of its markers, if there are any."""
        rng = np.random.default_rng(seed)
        total = source.shape[0] * source.shape[1]
        chosen = rng.choice(total, min(total, SAMPLE), replace=False)
        centres, marked = _clustered(source.pixels(chosen), labels), {}
        fixed = np.zeros(0, np.int64) if known is None else known[known >= 0]
        for label in np.flatnonzero(np.bincount(fixed)).tolist():
            pixels = source.pixels(np.flatnonzero(known == label))
            centres[label] = pixels.mean(axis=0)
            marked[label] = cluster(pixels, min(COLOURS, len(pixels)), seed)
        return cls(centres, marked)

    def costs(
        self, source: Source, known: NDArray[np.int64] | None, deadline: core.Deadline
    ) -> Image:
        """Return the cost of each pixel and label, as `colour_costs`; markers keep their labels.

        Raises `core.OutOfTime` if the deadline passes.
        """
        (rows, columns), labels = source.shape, len(self.centres)
        costs, total = np.empty((rows, columns, labels)), 0.0
        for first, last in row_blocks(source.shape, labels, deadline):
            flat = source.rows(first, last).reshape(-1, source.channels)
            squares = distance(flat, self.centres)
            for label, colours in self.marked.items():
                squares[:, label] = distance(flat, colours).min(axis=1)
            total += float(squares.min(axis=1).sum())
            costs[first:last] = squares.reshape(last - first, columns, labels)
        unit = _variance(total / (rows * columns), source.channels)
        for first, last in row_blocks(source.shape, labels, deadline):
            costs[first:last] /= unit
        if known is not None:
            row, column = np.nonzero(known >= 0)
            costs[row, column] = np.inf
            costs[row, column, known[row, column]] = 0.0
        return costs.reshape(rows * columns, labels)


def colour_costs(squares: Image, channels: int) -> Image:
    """Return negative log-likelihoods: squared distance / (2 · variance within clusters)."""
    return squares / _variance(float(squares.min(axis=1).mean()), channels)


def _variance(mean: float, channels: int) -> float:
    """Return twice the variance within clusters, given the mean squared distance."""
    return 2.0 * mean / channels + 1e-9


def cluster(flat: Image, count: int, seed: int) -> Image:
    """Return the centres of `count` colour clusters of a sample of pixels."""
    rng = np.random.default_rng(seed)
    return _clustered(flat[rng.choice(len(flat), min(len(flat), SAMPLE), replace=False)], count)


def _clustered(sample: Image, count: int, rounds: int = 20) -> Image:
    """Return the centres of `count` clusters (k-means from a spread-out start)."""
    centres = sample[:1]
    while len(centres) < count:
        far = distance(sample, centres).min(axis=1)
        centres = np.vstack([centres, sample[np.argmax(far)]])
    for _ in range(rounds):
        nearest = distance(sample, centres).argmin(axis=1)
        used = np.flatnonzero(np.bincount(nearest))  # np.unique imports numpy.ma
        centres[used] = [sample[nearest == k].mean(axis=0) for k in used]
    return centres


def distance(flat: Image, centres: Image) -> Image:
    """Return the squared distance of each pixel to each centre."""
    squares: Image = -2.0 * centres @ flat.T
    squares += (centres**2).sum(axis=1)[:, None]
    squares += np.einsum("pc,pc->p", flat, flat)
    return np.maximum(squares, 0.0, out=squares).T


def contrast(source: Source, connectivity: int, deadline: core.Deadline) -> Image:
    """Return Potts weights between 0.8 and 2.5, smallest across the strongest contrast."""
    weights = _likeness(source, connectivity, deadline)
    weights *= 1.7
    weights += 0.8
    return weights


def _likeness(source: Source, connectivity: int, deadline: core.Deadline) -> Image:
    """Return `exp(-difference² / (2 mean difference²))` of the ends of each edge."""
    squares = edge_values(source, connectivity, _squared, deadline)
    if len(squares):
        factor = -1.0 / (2.0 * float(squares.mean()) + 1e-9)
        for first in range(0, len(squares), BLOCK):
            deadline.require()
            part = squares[first : first + BLOCK]
            part *= factor
            np.exp(part, out=part)
    return squares


def _squared(first: Image, second: Image) -> Image:
    difference = first - second
    difference *= difference
    total: Image = difference.sum(axis=0)
    return total

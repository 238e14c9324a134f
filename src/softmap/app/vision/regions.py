"""Segmentation of images: Potts weights that are smaller across strong contrast."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap import Model, Potts, generators
from softmap.app.vision.picture import Picture, begun
from softmap.app.vision.source import Image, Source
from softmap.arguments import count, not_negative
from softmap.errors import ModelError
from softmap.extend import integers

COLOURS = 5  # colours by which the markers of one label are described


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
        `Picture.improve` continues it.

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
    given = source.grey
    flat = given.reshape(given.shape[0] * given.shape[1], -1)
    number = count("num_labels", num_labels, 2, 1 << 20)
    known = None if markers is None else _markers(markers, given.shape[:2], number)
    centres = cluster(flat, number, seed)
    costs = colour_costs(distance(flat, centres), flat.shape[1])
    if known is not None:
        costs = _marked_costs(flat, centres, known, seed)
        centres = _marked_means(flat, centres, known)
    weight = not_negative("smoothness", smoothness)
    model = region_model(given, costs, weight, connectivity=connectivity)

    def paint(found: NDArray[np.int64]) -> NDArray[Any]:
        return source.restored(centres[found].reshape(given.shape))

    return Picture.of(model, source, paint, options, limit)


def region_model(
    picture: Image, costs: Image, smoothness: float = 1.0, *, connectivity: int = 8
) -> Model:
    """Return the segmentation model of an image, given the cost of each pixel and label."""
    shape = picture.shape[:2]
    edges = generators.grid_edges(shape[0], shape[1], connectivity)
    flat = picture.reshape(shape[0] * shape[1], -1)
    return Model(costs, edges, Potts(smoothness * contrast(flat, edges))).with_shape(shape)


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
    given = Source.of(image).grey
    flat = given.reshape(given.shape[0] * given.shape[1], -1)
    return _likeness(flat, generators.grid_edges(given.shape[0], given.shape[1], connectivity))


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
    return known.reshape(-1)


def _marked_means(flat: Image, centres: Image, known: NDArray[np.int64]) -> Image:
    """Return the mean colour of the markers of each label; labels without markers keep theirs."""
    means = centres.copy()
    for label in np.unique(known[known >= 0]):
        means[label] = flat[known == label].mean(axis=0)
    return means


def _marked_costs(flat: Image, centres: Image, known: NDArray[np.int64], seed: int) -> Image:
    """Return the cost of each label: the distance to the nearest colour of its markers."""
    squares = distance(flat, centres)
    for label in np.unique(known[known >= 0]):
        marked = flat[known == label]
        colours = cluster(marked, min(COLOURS, len(marked)), seed)
        squares[:, label] = distance(flat, colours).min(axis=1)
    costs = colour_costs(squares, flat.shape[1])
    fixed = known >= 0
    labels = np.arange(len(centres))
    costs[fixed] = np.where(labels == known[fixed][:, None], 0.0, np.inf)
    return costs


def colour_costs(squares: Image, channels: int) -> Image:
    """Return negative log-likelihoods: squared distance / (2 · variance within clusters)."""
    return squares / (2.0 * float(squares.min(axis=1).mean()) / channels + 1e-9)


def cluster(flat: Image, count: int, seed: int, rounds: int = 20) -> Image:
    """Return the centres of `count` colour clusters (k-means from a spread-out start)."""
    rng = np.random.default_rng(seed)
    sample = flat[rng.choice(len(flat), min(len(flat), 5000), replace=False)]
    centres = sample[:1]
    while len(centres) < count:
        far = distance(sample, centres).min(axis=1)
        centres = np.vstack([centres, sample[np.argmax(far)]])
    for _ in range(rounds):
        nearest = distance(sample, centres).argmin(axis=1)
        used = np.unique(nearest)
        centres[used] = [sample[nearest == k].mean(axis=0) for k in used]
    return centres


def distance(flat: Image, centres: Image) -> Image:
    """Return the squared distance of each pixel to each centre."""
    squares: Image = (flat**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1)
    return np.maximum(squares - 2 * flat @ centres.T, 0.0)


def contrast(flat: Image, edges: NDArray[np.int64]) -> Image:
    """Return Potts weights between 0.8 and 2.5, smallest across the strongest contrast."""
    return 0.8 + 1.7 * _likeness(flat, edges)


def _likeness(flat: Image, edges: NDArray[np.int64]) -> Image:
    """Return `exp(-difference² / (2 mean difference²))` of the ends of each edge."""
    first, second = edges.T
    difference = np.zeros(len(edges))
    for channel in np.ascontiguousarray(flat.T):  # three times as fast as rows of all channels
        difference += (channel[first] - channel[second]) ** 2
    return np.exp(-difference / (2.0 * difference.mean() + 1e-9)) if len(edges) else difference

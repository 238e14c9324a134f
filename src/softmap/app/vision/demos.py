"""Demos: synthetic models, or models made from the user's images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap import Model, Potts, generators, plotting
from softmap.app.vision.depth import at_the_end, stereo_model
from softmap.app.vision.landscape import damaged, landscape
from softmap.app.vision.noise import Restoration, has_colours
from softmap.app.vision.patches import Mask, measured, noise_of
from softmap.app.vision.picture import shaped
from softmap.app.vision.regions import cluster, colour_costs, distance, region_model
from softmap.app.vision.source import BYTE, Image, Source
from softmap.errors import OptionError

Labels = NDArray[np.int64]
Pixels = NDArray[np.uint8]
NAMES = ("photo", "potts", "stereo", "denoise", "segment", "matching")


@dataclass(frozen=True)
class DemoOptions:
    """The options of a demo; None selects its default."""

    size: int | None = None
    labels: int | None = None
    seed: int = 0
    image: Path | None = None
    left: Path | None = None
    right: Path | None = None
    truth: Path | None = None
    truth_scale: float | None = None


@dataclass(frozen=True)
class Demo:
    """A model with a description, a score, and images of its input and of a labelling."""

    story: str
    model: Model
    shown: Pixels
    """Image of the input."""
    paint: Callable[[Labels], Pixels]
    """Maps a flat labelling to an image."""
    score: Callable[[Labels], str] | None = None
    picture: NDArray[Any] | None = None
    """The input image of the report, if there is one."""
    remark: Callable[[Labels], str | None] | None = None
    """Maps a flat labelling to a warning about it, if any."""
    options: dict[str, Any] = field(default_factory=dict)
    """Options of `solve`."""


def build(name: str, options: DemoOptions | None = None) -> Demo:
    """Build the demo of this name."""
    if name not in NAMES:
        raise OptionError(f"there is no demo {name!r}; there are {', '.join(NAMES)}")
    options = options or DemoOptions()
    if options.labels is not None and options.labels < 2:
        raise OptionError(f"--labels {options.labels}: a demo needs at least 2 labels")
    if options.size is not None and options.size < 4:
        raise OptionError(f"--size {options.size}: a demo needs a size of at least 4")
    makers = (_photo, _potts, _stereo, _denoise, _segment, _matching)
    return dict(zip(NAMES, makers, strict=True))[name](options)


def _accuracy(truth: Labels, what: str) -> Callable[[Labels], str]:
    """Return a score: the percentage of labels that equal the truth."""

    def score(labels: Labels) -> str:
        right = float((labels == truth.ravel()).mean())
        return f"{100 * right:.1f} % of the {what} are right"

    return score


def _potts(options: DemoOptions) -> Demo:
    """Noisy regions with a Potts prior: neighbouring pixels are likely to agree."""
    size, labels = options.size or 64, options.labels or 8
    rng = np.random.default_rng(options.seed)
    truth = regions(rng, size, 3 * labels, labels)
    evidence = np.eye(labels)[truth] + rng.normal(0, 1.4, (size, size, labels))
    edges = generators.grid_edges(size, size)
    weights = rng.uniform(1.2, 1.8, len(edges))
    model = Model(-evidence.reshape(-1, labels), edges, Potts(weights)).with_shape((size, size))
    noisy = evidence.argmax(axis=-1)
    colours = plotting.palette(labels)
    return Demo(
        story=f"Each of {size} × {size} pixels has one of {labels} labels, seen through noise.",
        model=model,
        shown=colours[noisy],
        paint=lambda x: colours[x.reshape(size, size)],
        score=_accuracy(truth, "pixels"),
    )


def _stereo(options: DemoOptions) -> Demo:
    """The disparity of each pixel between the left and the right image."""
    left, right, truth = _pair(options)
    labels = options.labels or 16
    rows, columns = left.shape[:2]
    model = stereo_model(Source(left, BYTE), Source(right, BYTE), labels)
    return Demo(
        story=f"Each of {rows} × {columns} pixels has one of {labels} disparities.",
        model=model,
        shown=plotting.as_bytes(left),
        paint=lambda x: plotting.palette(labels)[x.reshape(rows, columns)],
        picture=left,
        score=None if truth is None else _bad_pixels(truth),
        remark=lambda x: _more_labels(left, right, x, labels),
    )


def _more_labels(left: Image, right: Image, found: Labels, labels: int) -> str | None:
    remark = at_the_end(Source(left, BYTE), Source(right, BYTE), found, labels)
    return None if remark is None else f"{remark}: --labels {2 * labels} allows for nearer things"


def _pair(options: DemoOptions) -> tuple[Image, Image, Image | None]:
    if options.left is None and options.right is None:
        rng = np.random.default_rng(options.seed)
        left, right, disparity = stereo_pair(rng, options.size or 96, options.labels or 16)
        return left, right, disparity.astype(float)
    if options.left is None or options.right is None:
        raise OptionError("stereo needs both pictures: --left and --right")
    left, right = (
        plotting.load_image(options.left).astype(float),
        plotting.load_image(options.right).astype(float),
    )
    if left.shape != right.shape:
        raise OptionError(f"the pictures differ in size: {left.shape[:2]} and {right.shape[:2]}")
    return left, right, _truth(options, left.shape[:2])


def _truth(options: DemoOptions, shape: tuple[int, ...]) -> Image | None:
    """Return the true disparities of the left image, from a grey image of scaled disparities.

    By default, disp2.png beside im2.png is used, as in the folders of Middlebury.
    """
    assert options.left is not None
    usual = options.left.with_name(options.left.name.replace("im", "disp"))
    path = options.truth or (usual if usual != options.left and usual.is_file() else None)
    if path is None:
        return None
    grey = plotting.load_image(path)[..., 0]
    if grey.shape != shape:
        raise OptionError(f"{path} has size {grey.shape}, the pictures have {shape}")
    scale = options.truth_scale or float(np.gcd.reduce(np.unique(grey).astype(np.int64)))
    if scale <= 1 and options.truth_scale is None:
        return None
    return np.asarray(grey / scale)


def _bad_pixels(truth: Image) -> Callable[[Labels], str]:
    """Return a score: the percentage of pixels with known truth (> 0) off by more than one."""
    known = truth.ravel() > 0

    def score(labels: Labels) -> str:
        off = np.abs(labels - truth.ravel())[known] > 1.0
        return f"{100 * float(off.mean()):.1f} % of the pixels are off by more than one disparity"

    return score


def _photo(options: DemoOptions) -> Demo:
    """A photograph with noise and scratches, restored."""
    rows = options.size or 120
    clean = landscape(rows, 3 * rows // 2, options.seed)
    noisy, scratched = damaged(clean, options.seed)
    return _restored(noisy, clean, options.labels or 16, hidden=scratched)


def _denoise(options: DemoOptions) -> Demo:
    """Denoising with truncated linear smoothness, which preserves edges."""
    clean, noisy, shrunk = _noisy(options)
    return _restored(noisy, clean, options.labels or 32, note=shrunk)


def _restored(
    noisy: Image, clean: Image | None, levels: int, hidden: Mask | None = None, note: str = ""
) -> Demo:
    """Return the demo that removes the noise of an image, and fills hidden pixels."""
    data = measured(noisy, noise_of(noisy, hidden), hidden)
    restoration = Restoration(data, np.linspace(0, 255, levels), 0.4)
    what = "grey levels" if noisy.ndim == 2 else "levels in each of three channels"
    rows, columns = noisy.shape[:2]

    def paint(x: Labels) -> NDArray[np.uint8]:
        return plotting.as_bytes(restoration.values(shaped(x, noisy.shape[:2])))

    return Demo(
        story=f"Each of {rows} × {columns} pixels has one of {levels} {what}.{note}",
        model=restoration.model(),
        shown=plotting.as_bytes(noisy),
        paint=paint,
        picture=noisy,
        score=None if clean is None else _error(clean, noisy, paint),
        options={"initial": restoration.start(), **restoration.options},
    )


def _noisy(options: DemoOptions) -> tuple[Image | None, Image, str]:
    """Return the clean image if known, the noisy image, and a note if it was reduced."""
    if options.image is not None:
        picture, shrunk = _loaded(options.image, options.size or 256)
        return None, picture if has_colours(picture) else picture[..., 0], shrunk
    size = options.size or 96
    rng = np.random.default_rng(options.seed)
    shade = np.linspace(0, 60, size)[:, None] + np.linspace(0, 40, size)[None, :]
    clean = rng.permutation(np.linspace(20, 150, 9))[regions(rng, size, 9, 9)] + shade
    return clean, np.clip(clean + rng.normal(0, 25, clean.shape), 0, 255), ""


def _loaded(path: Path, longest: int) -> tuple[Image, str]:
    """Read an image, reduced to a longest side, and a note if it was reduced."""
    picture = plotting.load_image(path, longest).astype(float)
    rows, columns = plotting.image_size(path)
    if max(rows, columns) <= longest:
        return picture, ""
    largest = max(rows, columns)
    sentence = f" It was made smaller, from {rows} × {columns}: --size {largest} keeps its size."
    return picture, sentence


def _error(clean: Image, noisy: Image, paint: Callable[[Labels], Pixels]) -> Callable[..., str]:
    """Return a score: the root mean square distance to the clean image, before and after."""

    def score(labels: Labels) -> str:
        before, after = _rms(noisy - clean), _rms(paint(labels) - clean)
        return f"root mean square error of {after:.1f} grey levels, {before:.1f} before"

    return score


def _rms(difference: Image) -> float:
    return float(np.sqrt((difference**2).mean()))


def _segment(options: DemoOptions) -> Demo:
    """Segmentation by a few colours; boundaries cost less across strong contrast."""
    labels = options.labels or 6
    picture, truth, palette, shrunk = _painted(options, labels)
    rows, columns = picture.shape[:2]
    centres = cluster(picture.reshape(-1, 3), labels, options.seed) if palette is None else palette
    costs = colour_costs(distance(picture.reshape(-1, 3), centres), 3)
    model = region_model(Source(picture, BYTE), costs, connectivity=4)
    return Demo(
        story=f"Each of {rows} × {columns} pixels belongs to one of {labels} colours.{shrunk}",
        model=model,
        shown=plotting.as_bytes(picture),
        paint=lambda x: plotting.as_bytes(centres[x].reshape(picture.shape)),
        picture=picture,
        score=None if truth is None else _accuracy(truth, "pixels"),
    )


def _painted(options: DemoOptions, labels: int) -> tuple[Image, Labels | None, Image | None, str]:
    if options.image is not None:
        picture, shrunk = _loaded(options.image, options.size or 200)
        return picture, None, None, shrunk
    size = options.size or 96
    rng = np.random.default_rng(options.seed)
    truth = regions(rng, size, 3 * labels, labels)
    palette = rng.uniform(40, 215, (labels, 3))
    picture = np.clip(palette[truth] + rng.normal(0, 45, (size, size, 3)), 0, 255)
    return picture, truth, palette, ""


def _matching(options: DemoOptions) -> Demo:
    """Point matching that preserves distances; no two points have the same partner."""
    count, extra = options.size or 14, 3
    rng = np.random.default_rng(options.seed)
    left, right, truth = _clouds(rng, count, extra)
    i, j = np.triu_indices(count, 1)
    before = np.linalg.norm(left[i] - left[j], axis=1)
    after = np.linalg.norm(right[:, None] - right[None, :], axis=2)
    distortion = np.minimum(np.abs(before[:, None, None] - after), 0.5)
    distortion[:, np.arange(len(right)), np.arange(len(right))] = np.inf
    unary = rng.uniform(0, 0.05, (count, len(right)))
    model = Model(unary, np.stack([i, j], axis=1), distortion)
    return Demo(
        story=f"{count} points, moved and shuffled among {count + extra}: each has one partner.",
        model=model,
        shown=plotting.matching_image(left, right, None),
        paint=lambda x: plotting.matching_image(left, right, x),
        score=_accuracy(truth, "partners"),
    )


def _clouds(rng: np.random.Generator, count: int, extra: int) -> tuple[Image, Image, Labels]:
    """Return points, the same points rotated, perturbed and shuffled, and the true match."""
    left = rng.uniform(0, 1, (count, 2))
    angle = rng.uniform(-0.6, 0.6)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    moved = left @ turn.T + rng.normal(0, 0.02, left.shape)
    others = rng.uniform(moved.min(axis=0), moved.max(axis=0), (extra, 2))
    order = rng.permutation(count + extra)
    right = np.vstack([moved, others])[order]
    return left, right, np.argsort(order)[:count].astype(np.int64)


def regions(rng: np.random.Generator, size: int, count: int, labels: int) -> NDArray[np.int64]:
    """Return a random Voronoi map: each pixel has the label of the nearest of `count` points."""
    points = rng.uniform(0, size, (count, 2))
    rows, columns = np.mgrid[0:size, 0:size]
    distance = (rows[..., None] - points[:, 0]) ** 2 + (columns[..., None] - points[:, 1]) ** 2
    nearest: NDArray[np.int64] = np.argmin(distance, axis=-1)
    return nearest % labels


def textured(rng: np.random.Generator, rows: int, columns: int) -> Image:
    """Return a random texture with detail at two scales, in 0..255."""
    fine = rng.uniform(0, 255, (rows, columns))
    coarse = rng.uniform(0, 255, (rows // 4 + 1, columns // 4 + 1))
    coarse = coarse.repeat(4, axis=0).repeat(4, axis=1)[:rows, :columns]
    return 0.5 * fine + 0.5 * coarse


def stereo_pair(
    rng: np.random.Generator, size: int, labels: int
) -> tuple[Image, Image, NDArray[np.int64]]:
    """Return two views of textured rectangles before a slanted wall, and the left disparities."""
    rows, columns = size, size + size // 3
    slant = np.round(np.linspace(1, labels / 3, rows)).astype(np.int64)
    disparity = np.repeat(slant[:, None], columns, axis=1)
    for depth in np.sort(rng.integers(labels // 2, labels, 5)):
        top, side = rng.integers(0, rows // 2), rng.integers(0, columns // 2)
        height, width = rng.integers(rows // 5, rows // 2), rng.integers(columns // 6, columns // 3)
        disparity[top : top + height, side : side + width] = depth
    right = textured(rng, rows, columns)
    seen_at = np.arange(columns)[None, :] - disparity
    left = np.take_along_axis(right, np.maximum(seen_at, 0), axis=1)
    outside = seen_at < 0
    left[outside] = rng.uniform(0, 255, int(outside.sum()))
    return left + rng.normal(0, 8, left.shape), right + rng.normal(0, 8, right.shape), disparity

"""Images and graphs for pages, notebooks and terminals, as PNG (by Pillow) and SVG."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Colours = NDArray[np.uint8]
Pixel = TypeVar("Pixel", np.uint8, np.float64)

# Brightness increases monotonically, so that the order of labels is visible in grey as well.
STOPS = np.array([
    (45, 10, 85), (60, 70, 140), (40, 115, 142), (30, 155, 135), (95, 195, 95), (185, 220, 45),
    (253, 235, 90),
], dtype=float)  # fmt: skip


def palette(count: int) -> Colours:
    """Colours of labels that have an order: 0..count-1, evenly spaced from dark to bright."""
    at = np.linspace(0, len(STOPS) - 1, max(count, 2))
    mixed = [np.interp(at, np.arange(len(STOPS)), STOPS[:, channel]) for channel in range(3)]
    return np.stack(mixed, axis=1).round().astype(np.uint8)


def nominal(count: int) -> Colours:
    """Colours of labels that have no order: distinct hues, alternately bright and dark."""
    k = np.arange(max(count, 2))
    hue = (0.58 + 0.618034 * k) % 1.0
    value = np.where(k % 3 == 0, 0.78, np.where(k % 3 == 1, 0.95, 0.58))
    chroma = value * np.where(k % 2 == 0, 0.72, 0.52)
    ramp = np.abs((hue[:, None] * 6 + np.array([0.0, 4.0, 2.0])) % 6 - 3) - 1
    mixed = value[:, None] - chroma[:, None] * (1 - np.clip(ramp, 0, 1))
    return np.round(255 * mixed).astype(np.uint8)


def reduced(image: NDArray[Pixel], longest: int) -> NDArray[Pixel]:
    """The image with every k-th row and column, so that no side exceeds `longest` pixels."""
    every = max(1, -(-max(image.shape[:2]) // longest))
    return image[::every, ::every]


def as_bytes(picture: NDArray[Any]) -> Colours:
    """Convert values in 0..255 to bytes, (rows, columns) or (rows, columns, 3), without alpha."""
    whole: Colours = np.clip(np.round(picture), 0, 255).astype(np.uint8)
    if whole.ndim == 3 and whole.shape[2] < 3:
        return whole[..., 0]
    return whole[..., :3] if whole.ndim == 3 else whole


def washed(colours: Colours, part: float = 0.7) -> Colours:
    """Convert an image to pale grey, as a background; `part` is the fraction of white."""
    grey = colours.reshape(*colours.shape[:2], -1)[..., :3].mean(axis=2)
    pale = np.round(part * 255 + (1 - part) * grey).astype(np.uint8)
    return np.repeat(pale[..., None], 3, axis=2)


def tinted(colours: Colours, strength: NDArray[np.float64]) -> Colours:
    """Overlay an image with dark red; strength 0 keeps a pixel unchanged, 1 covers it."""
    part = np.clip(strength, 0.0, 1.0)[..., None]
    return np.round((1 - part) * colours + part * np.array([160, 10, 35])).astype(np.uint8)


def image_uri(colours: Colours) -> str:
    """A grey (rows, columns) or colour (rows, columns, 3) image as the source of an `<img>`."""
    return "data:image/png;base64," + base64.b64encode(png(colours)).decode()


def png(colours: Colours) -> bytes:
    """The bytes of a PNG file; an image of at most 256 colours is stored with a palette."""
    from PIL import Image  # imported late: most runs draw nothing

    image, file = Image.fromarray(np.ascontiguousarray(colours)), io.BytesIO()
    if image.mode == "RGB" and image.getcolors(256) is not None:
        image = image.convert("P", palette=Image.Palette.ADAPTIVE)
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DrawingSizes:
    """Sizes of a drawing, in pixels."""

    width: int = 640
    height: int = 400
    margin: int = 34
    radius: float = 13.0
    """Radius of a variable in a drawing with few dots."""
    small: float = 6.0
    """Radius of a factor, and of a variable in a drawing with many dots."""
    crowded: int = 48
    """Number of dots from which dots are small and carry no text."""
    rounds: int = 60
    """Number of steps of the layout."""


SIZES = DrawingSizes()


@dataclass(frozen=True)
class Dot:
    """One node of a drawing."""

    fill: tuple[int, int, int]
    """Red, green and blue, 0 to 255."""
    inside: str = ""
    """Text in the dot: the label."""
    above: str = ""
    """Text above the dot: the name."""
    title: str = ""
    """Text that appears when the pointer rests on the dot."""
    doubt: float = 0.0
    """Strength of the red ring around the dot, between 0 and 1."""
    factor: bool = False
    """Whether the node is a factor, drawn as a square."""


def positions(count: int, edges: NDArray[np.integer]) -> Floats:
    """Return positions of nodes in the unit square whose distances resemble graph distances.

    The layout minimises the stress: the weighted sum of squared differences between distances in
    the plane and distances along edges. Each round is one step of stress majorisation.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import shortest_path

    if count < 2:
        return np.full((count, 2), 0.5)
    ones = np.ones(len(edges))
    graph = coo_array((ones, (edges[:, 0], edges[:, 1])), shape=(count, count)).tocsr()
    apart = shortest_path(graph, directed=False, unweighted=True)
    reach = apart[np.isfinite(apart)].max()
    apart[~np.isfinite(apart)] = reach + 1.0  # components are placed side by side
    weight = np.zeros_like(apart)
    np.divide(1.0, apart**2, out=weight, where=apart > 0)
    weighted = np.diag(weight.sum(axis=1)) - weight
    inverse = np.linalg.pinv(weighted)
    place = _circle(count) * apart.max() / 2
    for _ in range(SIZES.rounds):
        lengths = np.linalg.norm(place[:, None] - place[None], axis=2)
        ratio = np.zeros_like(lengths)
        np.divide(weight * apart, lengths, out=ratio, where=lengths > 1e-9)
        place = inverse @ ((np.diag(ratio.sum(axis=1)) - ratio) @ place)
    return _upright(place)


def _circle(count: int) -> Floats:
    """Initial positions: a circle, slightly perturbed to break symmetries."""
    angle = 2 * np.pi * np.arange(count) / count
    noise = np.random.default_rng(0).normal(0, 0.05, (count, 2))
    return np.stack([np.cos(angle), np.sin(angle)], axis=1) + noise


def _upright(place: Floats) -> Floats:
    """Rotate the longest direction to the horizontal, and scale to the unit square."""
    centred = place - place.mean(axis=0)
    turned = centred @ np.linalg.svd(centred, full_matrices=False)[2].T
    low, size = turned.min(axis=0), np.maximum(np.ptp(turned, axis=0), 1e-9)
    flat = size < 1e-6 * size.max()  # all nodes are on one line, as in a path
    return np.where(flat, 0.5, (turned - low) / size)


def graph_svg(dots: Sequence[Dot], edges: NDArray[np.integer], words: str) -> str:
    """Return the drawing as SVG text; `words` is the description for screen readers."""
    inner = np.array([SIZES.width - 2 * SIZES.margin, SIZES.height - 2 * SIZES.margin])
    place = SIZES.margin + positions(len(dots), edges) * inner
    few = len(dots) <= SIZES.crowded
    lines = "".join(
        f'<line x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}"/>'
        for a, b in zip(place[edges[:, 0]], place[edges[:, 1]], strict=True)
    )
    nodes = "".join(_node(dot, x, y, few) for dot, (x, y) in zip(dots, place.tolist(), strict=True))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZES.width} {SIZES.height}" '
        f'width="{SIZES.width}" role="img" aria-label="{escape(words)}" '
        'font-family="system-ui, sans-serif" font-size="11" text-anchor="middle">'
        f'<rect width="{SIZES.width}" height="{SIZES.height}" fill="#fff"/>'
        f'<g stroke="#b4b8bd" stroke-width="1.2">{lines}</g>{nodes}</svg>'
    )


def _node(dot: Dot, x: float, y: float, few: bool) -> str:
    red, green, blue = dot.fill
    fill = f"rgb({red},{green},{blue})"
    ink = "#fff" if 0.3 * red + 0.59 * green + 0.11 * blue < 128 else "#000"
    size = SIZES.radius if few and not dot.factor else SIZES.small
    ring = ""
    if dot.doubt > 0:
        ring = (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size + 4:.1f}" fill="none" stroke="#c8102e" '
            f'stroke-width="4" stroke-opacity="{0.35 + 0.65 * min(1.0, dot.doubt):.2f}"/>'
        )
    if dot.factor:
        shape = (
            f'<rect x="{x - size:.1f}" y="{y - size:.1f}" width="{2 * size:.1f}" '
            f'height="{2 * size:.1f}" fill="{fill}" stroke="#555"/>'
        )
    else:
        shape = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}" fill="{fill}" stroke="#555"/>'
    text = ""
    if few and dot.inside:
        text += (
            f'<text x="{x:.1f}" y="{y + 4:.1f}" fill="{ink}" font-weight="600">'
            f"{escape(dot.inside)}</text>"
        )
    if few and dot.above:
        text += (
            f'<text x="{x:.1f}" y="{y - size - 7:.1f}" fill="#333" stroke="#fff" '
            f'stroke-width="3" paint-order="stroke">{escape(dot.above)}</text>'
        )
    title = f"<title>{escape(dot.title)}</title>" if dot.title else ""
    return f"<g>{title}{ring}{shape}{text}</g>"

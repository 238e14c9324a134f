"""A graph as an SVG drawing: positions by stress majorisation, dots for variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

__all__ = ["Dot", "graph_svg", "positions"]

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

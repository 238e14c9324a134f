"""Images in and out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import FormatError, MissingExtra
from softmap.io.atomic import replacing
from softmap.plotting.figure import figure

__all__ = ["draw_labelling", "load_image", "save_image", "save_labelling", "save_matching"]

Pixels = NDArray[np.uint8]
Labels = NDArray[np.int64]


def load_image(path: Path | str, longest: int | None = None) -> Pixels:
    """Read a picture as (rows, columns, 3) bytes, made smaller if a side exceeds `longest`."""
    image_module = _pillow()
    try:
        with image_module.open(path) as image:
            if longest is not None and max(image.size) > longest:
                image.draft("RGB", (longest, longest))
                image = image.convert("RGB")
                image.thumbnail((longest, longest))
            return np.array(image.convert("RGB"), dtype=np.uint8)
    except FileNotFoundError:
        raise
    except (OSError, SyntaxError, image_module.DecompressionBombError) as error:
        raise FormatError(f"not a picture that can be read ({error})", path=path) from error


def save_image(pixels: Pixels, path: Path | str, enlarge_to: int = 256) -> None:
    """Write grey (rows, columns) or colour (rows, columns, 3) bytes; small pictures enlarged."""
    factor = max(1, enlarge_to // max(pixels.shape[:2]))
    enlarged = pixels.repeat(factor, axis=0).repeat(factor, axis=1)
    with replacing(path) as file:
        _pillow().fromarray(np.ascontiguousarray(enlarged)).save(file, format="PNG")


def save_labelling(labels: Labels, num_labels: int, path: Path | str, title: str = "") -> None:
    """A labelling of a grid, with a colour bar that is monotone in grey, too."""
    rows, columns = labels.shape
    height = max(2.0, min(6.0, 5.2 * rows / columns))
    with figure(path, 6.4, height) as (axes,):
        draw_labelling(labels, num_labels, axes)
        axes.set(title=title)


def draw_labelling(labels: Labels, num_labels: int, axes: Any) -> None:
    """A labelling of a grid on a pair of axes."""
    shown = axes.imshow(labels, cmap="viridis", vmin=0, vmax=max(1, num_labels - 1))
    axes.set(xticks=[], yticks=[])
    axes.figure.colorbar(shown, ax=axes, label="label")


def save_matching(
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    match: Labels | None,
    path: Path | str,
    title: str = "",
) -> None:
    """Two sets of points in the plane, side by side, joined where matched (-1: not matched)."""
    shift = np.array([1.25 * np.ptp(np.vstack([left, right])[:, 0]), 0.0])
    with figure(path, 7.5, 3.8) as (axes,):
        pairs = [] if match is None else [(i, int(j)) for i, j in enumerate(match) if j >= 0]
        for i, j in pairs:
            ends = np.stack([left[i], right[j] + shift])
            axes.plot(ends[:, 0], ends[:, 1], color="0.6", linewidth=0.8, zorder=1)
        axes.scatter(*left.T, color="#2166ac", marker="o", zorder=2)
        axes.scatter(*(right + shift).T, color="#b2182b", marker="^", zorder=2)
        axes.set(title=title, xticks=[], yticks=[], aspect="equal")


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingExtra("Reading and writing pictures", "plot") from error
    return Image

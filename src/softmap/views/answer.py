"""The labelling on a terminal: the states of a small model, or a thumbnail of an image."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from softmap import Model
from softmap.views.drawing import Colours
from softmap.views.drawn import is_image, label_image, state_name, variable_name
from softmap.views.subject import Subject

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class AnswerLimits:
    """Limits of the display of a labelling on a terminal."""

    variables: int = 64
    """Largest number of variables whose labels are printed."""
    columns: int = 80
    """Largest width of a thumbnail, in characters; at most the width of the terminal."""
    lines: int = 24
    """Largest height of a thumbnail, in lines of two rows of pixels each."""


LIMITS = AnswerLimits()


def print_answer(console: Console, result: Subject) -> None:
    """Print the labels of a small model, or a thumbnail of an image.

    A thumbnail is drawn only on a terminal with 24-bit colour, never into a file or a pipe.
    Nothing is printed if no labelling was found.
    """
    if not math.isfinite(result.energy):
        return
    model, labels = result.model, np.asarray(result.labels).reshape(-1)
    colourful = console.color_system == "truecolor" and not console.no_color
    if is_image(model.network) and console.is_terminal and colourful:
        _print_thumbnail(console, label_image(model.network, labels))
    elif len(labels) <= LIMITS.variables:
        console.print(labels_in_words(model, labels))


def labels_in_words(model: Model, labels: NDArray[np.int64]) -> str:
    """Return labels as text: `name = state` lines, rows of a grid, or one line of numbers."""
    if model.names is not None:
        pairs = [
            f"{variable_name(model.network, i)} = {state_name(model.network, i, int(x))}"
            for i, x in enumerate(labels)
        ]
        return "labels  " + ", ".join(pairs)
    rows = labels.reshape(model.shape if is_image(model.network) else (1, -1))
    width = len(str(int(labels.max())))
    lines = [" ".join(f"{x:{width}}" for x in row) for row in rows.tolist()]
    return "labels  " + "\n        ".join(lines)


def _print_thumbnail(console: Console, colours: Colours) -> None:
    from rich.text import Text

    for line in half_blocks(colours, min(LIMITS.columns, console.width)):
        text = Text(end="\n")
        for upper, lower in line:
            above = "rgb({},{},{})".format(*upper)
            text.append(
                "▀", above if lower is None else f"{above} on rgb({{}},{{}},{{}})".format(*lower)
            )
        console.print(text)


Colour = tuple[int, int, int]


def half_blocks(colours: Colours, columns: int) -> list[list[tuple[Colour, Colour | None]]]:
    """Reduce an image to lines of characters, each two pixels high.

    Each character has the colours of its upper and its lower pixel. The lower colour is None in the
    last line if the number of pixel rows is odd.
    """
    rows, wide = colours.shape[:2]
    scale = max(1.0, wide / columns, rows / (2 * LIMITS.lines))
    i = (np.arange(max(1, int(rows / scale))) * scale).astype(int)
    j = (np.arange(max(1, int(wide / scale))) * scale).astype(int)
    small = [[tuple(pixel) for pixel in row] for row in colours[np.ix_(i, j)].tolist()]
    lines = []
    for k in range(0, len(small), 2):
        below = small[k + 1] if k + 1 < len(small) else [None] * len(j)
        lines.append(list(zip(small[k], below, strict=True)))
    return lines

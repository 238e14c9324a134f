"""A matplotlib figure without global state, and without matplotlib until it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from softmap.errors import MissingExtra
from softmap.io.atomic import replacing

__all__ = ["figure"]


@contextmanager
def figure(path: Path | str, width: float, height: float, panels: int = 1) -> Iterator[list[Any]]:
    """Yield the axes of a row of panels; write the picture at the end."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("A picture", "plot") from error
    drawing = Figure(figsize=(width, height), dpi=120, layout="constrained")
    yield list(drawing.subplots(1, panels, squeeze=False)[0])
    with replacing(path) as file:
        drawing.savefig(file, format=Path(path).suffix.lstrip(".") or "png")

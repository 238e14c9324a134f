"""A matplotlib figure without global state, and without matplotlib until it is asked for."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from softmap.errors import MissingExtra
from softmap.io.atomic import replacing

__all__ = ["drawing_for", "empty_figure", "figure"]


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


def empty_figure(width: float, height: float) -> Any:
    """A figure that notebooks show when it is the value of a cell."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("A picture", "plot") from error

    class Shown(Figure):
        """A figure with a picture for notebooks, as those of pyplot have."""

        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            self.savefig(buffer, format="png")
            return buffer.getvalue()

    return Shown(figsize=(width, height), dpi=100, layout="constrained")


@contextmanager
def drawing_for(paths: Sequence[Path], width: float, height: float, style: Any) -> Iterator[Any]:
    """Yield an empty figure in a style of its own; write it to all paths, the same bytes always."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("A picture", "plot") from error
    with matplotlib.rc_context(style):
        drawing = Figure(figsize=(width, height), layout="constrained")
        yield drawing
        for path in paths:
            metadata = {"Date": None} if path.suffix == ".svg" else {}
            with replacing(path) as file:
                drawing.savefig(file, format=path.suffix[1:], dpi=130, metadata=metadata)

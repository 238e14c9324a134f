"""Plots and images; the only module that uses matplotlib (the extra `plot`)."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from softmap.errors import FormatError, OptionError, needs_extra
from softmap.extend.store import replacing
from softmap.views.curves import Chart, comparison_charts, gaps_chart, values_chart
from softmap.views.drawing import as_bytes, palette
from softmap.views.notebook import picture_html
from softmap.views.subject import Subject

__all__ = [
    "as_bytes", "image_size", "load_image", "matching_image", "pair_figure", "palette",
    "picture_html", "result_figure", "save_comparison", "save_convergence", "save_image",
    "save_labelling", "write_picture",
]  # fmt: skip


def _matplotlib() -> Any:
    with needs_extra("A picture", "plot"):
        import matplotlib.figure
    return matplotlib


@contextmanager
def figure(path: Path | str, width: float, height: float, panels: int = 1) -> Iterator[list[Any]]:
    """Yield the axes of a row of panels; write the figure to `path` at the end."""
    drawing = _matplotlib().figure.Figure((width, height), dpi=120, layout="constrained")
    yield list(drawing.subplots(1, panels, squeeze=False)[0])
    with replacing(path) as file:
        drawing.savefig(file, format=Path(path).suffix.lstrip(".") or "png")


def empty_figure(width: float, height: float) -> Any:
    """Return an empty figure that notebooks display as the value of a cell."""

    class Shown(_matplotlib().figure.Figure):  # type: ignore[misc]
        """A figure that notebooks can display, as those of pyplot."""

        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            self.savefig(buffer, format="png")
            return buffer.getvalue()

    return Shown(figsize=(width, height), dpi=100, layout="constrained")


@contextmanager
def drawing_for(paths: Sequence[Path], width: float, height: float, style: Any) -> Iterator[Any]:
    """Yield an empty figure in a given style; write it to all paths, reproducibly byte by byte."""
    matplotlib = _matplotlib()
    with matplotlib.rc_context(style):
        drawing = matplotlib.figure.Figure((width, height), layout="constrained")
        yield drawing
        for path in paths:
            metadata = {"Date": None} if path.suffix == ".svg" else {}
            with replacing(path) as file:
                drawing.savefig(file, format=path.suffix[1:], dpi=130, metadata=metadata)
            drawing.set_layout_engine(None)  # all files keep the layout of the first


# One array per column of a trace: seconds, work, bound, primal, energy, ...
Columns = Mapping[str, NDArray[Any]]


def save_convergence(trace: Columns, path: Path | str, title: str = "") -> None:
    """Save a chart of energy, primal and bound against time, and of the gaps between them."""
    from softmap.views.charts import chart_image

    write_picture(chart_image(values_chart(trace, title), gaps_chart(trace)), path)


DASHES = {"solid": "-", "dash": "--", "dashdot": "-."}
MARKS = {"circle": "o", "square": "s", "triangle": "^"}


def draw_chart(chart: Chart, axes: Any, ylabel: str) -> None:
    """Draw a chart on a pair of axes of matplotlib; marks are on some of the points only."""
    for line in chart.lines:
        style, count = line.drawn, len(line.y)
        axes.plot(
            chart.x if line.x is None else line.x, line.y, DASHES[style.dash], label=line.name,
            color=style.colour, marker=MARKS[style.mark], markersize=4,
            markevery=max(1, count // 10),
        )  # fmt: skip
    axes.set(xlabel=chart.xlabel, ylabel=ylabel, title=chart.title)
    if chart.logs[1]:
        axes.set_yscale("log")
    else:
        axes.set_ylim(chart.window)
        axes.ticklabel_format(axis="y", useOffset=False)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)


def save_comparison(traces: Mapping[str, Columns], path: Path | str) -> None:
    """Save a chart of bound (solid) and energy (dashed) of several methods, by time and work."""
    from softmap.views.charts import chart_image

    write_picture(chart_image(*comparison_charts(traces)), path)


Pixels = NDArray[np.uint8]
Labels = NDArray[np.int64]


def image_size(path: Path | str) -> tuple[int, int]:
    """Return the rows and columns of an image file without decoding it."""
    with Image.open(path) as image:
        columns, rows = image.size
    return rows, columns


def load_image(path: Path | str, longest: int | None = None) -> Pixels:
    """Read an image as (rows, columns, 3) bytes; reduce it if a side exceeds `longest` pixels.

    Grey values of 16 bits are divided by 257. Palettes, CMYK and images of one bit are converted.
    Images of floating-point values and images with transparent pixels raise a `FormatError`.
    """
    try:
        with Image.open(path) as image:
            if longest is not None:
                image.draft("RGB", (longest, longest))
            reduced = _opaque(image, path)
            if longest is not None:
                reduced.thumbnail((longest, longest))
            return np.array(reduced, dtype=np.uint8)
    except FileNotFoundError:
        raise
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise FormatError(f"not an image that can be read ({error})", path=path) from error


def _opaque(image: Any, path: Path | str) -> Any:
    """Return an image of any mode as RGB, if nothing is lost but digits."""
    if image.mode == "F":
        raise FormatError("floating-point pixels: give their array, in 0..1 or 0..255", path=path)
    if image.mode.startswith("I"):  # integers of 16 or 32 bits; Pillow would clip them to 255
        values = np.asarray(image).astype(np.int64)
        if values.min() < 0 or values.max() > 65535:
            raise FormatError("pixels of more than 16 bits", path=path)
        image = Image.fromarray(np.round(values / 257).astype(np.uint8))
    layered = image.mode in ("LA", "La", "PA", "RGBA", "RGBa") or "transparency" in image.info
    if layered and np.asarray(image.convert("RGBA"))[..., 3].min() < 255:
        raise FormatError("some pixels are transparent: put them on a background", path=path)
    return image.convert("RGB")


def enlarged(pixels: Pixels, size: int = 480) -> Pixels:
    """Return an image as colours, with each pixel repeated if both sides stay within `size`."""
    colours = pixels if pixels.ndim == 3 else np.repeat(pixels[..., None], 3, axis=2)
    factor = max(1, size // max(pixels.shape[:2]))
    return colours.repeat(factor, axis=0).repeat(factor, axis=1)


def save_image(pixels: Pixels, path: Path | str) -> None:
    """Write a grey (rows, columns) or colour (rows, columns, 3) image; enlarge a small one."""
    write_picture(enlarged(pixels, 256), Path(path))


def write_picture(picture: NDArray[Any], path: Path | str) -> Path:
    """Write an image with values in 0..255, and return its path; the suffix selects the format."""
    with replacing(path) as file:
        form = picture_format(Path(path))
        Image.fromarray(np.ascontiguousarray(as_bytes(picture))).save(file, format=form)
    return Path(path)


def picture_format(path: Path) -> str:
    """Return Pillow's name of the format of a suffix; PNG without a suffix."""
    known: dict[str, str] = Image.registered_extensions()
    form = known.get(path.suffix.lower(), None if path.suffix else "PNG")
    if form is None:
        raise OptionError(f"{path}: expected the suffix of a picture, such as .png or .jpg")
    return form


def save_labelling(labels: Labels, num_labels: int, path: Path | str) -> None:
    """Save an image of a labelling of a grid, from dark (label 0) to bright."""
    save_image(palette(num_labels)[labels], path)


def draw_labelling(labels: Labels, num_labels: int, axes: Any) -> None:
    """Draw a labelling of a grid on a pair of axes."""
    from matplotlib.ticker import MaxNLocator

    shown = axes.imshow(labels, cmap="viridis", vmin=0, vmax=max(1, num_labels - 1))
    axes.set(xticks=[], yticks=[])
    rows, columns = labels.shape
    bar = axes.figure.colorbar(shown, ax=axes, label="label", shrink=min(1.0, rows / columns))
    bar.locator = MaxNLocator(integer=True)
    bar.update_ticks()


def pair_figure(given: NDArray[Any], found: NDArray[Any]) -> Any:
    """Return a figure of two images, with values in 0..255, side by side."""
    rows, columns = given.shape[:2]
    figure = empty_figure(9.0, max(2.0, min(9.0, 4.4 * rows / columns + 0.4)))
    for axes, picture, title in zip(
        figure.subplots(1, 2), (given, found), ("given", "found"), strict=True
    ):
        axes.imshow(as_bytes(picture), cmap="gray", vmin=0, vmax=255)
        axes.set(title=title, xticks=[], yticks=[])
    return figure


def result_figure(result: Subject, path: Path | None = None) -> Any:
    """Return a figure with the labelling (of a 2-D grid), energy and bound, and the gaps."""
    shape = result.model.shape
    picture = shape is not None and len(shape) == 2
    figure = empty_figure(12.0 if picture else 8.5, 3.6)
    axes = list(figure.subplots(1, 3 if picture else 2))
    if picture:
        count = int(result.model.num_labels.max())
        axes[0].set(title="labelling")
        draw_labelling(np.asarray(result.labels).reshape(shape), count, axes.pop(0))
    values, gaps = axes
    trace = result.trace.columns()
    draw_chart(values_chart(trace, "energy, primal and bound"), values, "cost")
    draw_chart(gaps_chart(trace), gaps, "relative to the bound")
    if path is not None:
        with replacing(path) as file:
            figure.savefig(file, format=path.suffix.lstrip(".") or "png")
    return figure


def matching_image(
    left: NDArray[np.float64], right: NDArray[np.float64], match: NDArray[np.int64] | None
) -> Pixels:
    """Return an image of two point sets side by side, with lines between matched points.

    `match[i]` is the right point matched to left point i, -1 for none.
    """
    shift = np.array([1.25 * np.ptp(np.vstack([left, right])[:, 0]), 0.0])
    both = np.vstack([left, right + shift])
    low, size = both.min(axis=0), np.ptp(both, axis=0).max()
    fine, width, margin = 3, 760, 20
    scale = (width - 2 * margin) / size
    height = int(2 * margin + scale * np.ptp(both[:, 1]))

    def place(point: NDArray[np.float64]) -> tuple[float, float]:
        x, y = fine * (margin + scale * (point - low))
        return float(x), float(height * fine - y)

    image = Image.new("RGB", (width * fine, height * fine), "white")
    draw = ImageDraw.Draw(image)
    for i, j in enumerate([] if match is None else match.tolist()):
        if j >= 0:
            draw.line([place(left[i]), place(right[j] + shift)], fill="#999999", width=fine)
    for points, colour in ((left, "#2166ac"), (right + shift, "#b2182b")):
        for point in points:
            x, y = place(point)
            draw.ellipse([x - 5 * fine, y - 5 * fine, x + 5 * fine, y + 5 * fine], fill=colour)
    return np.array(image.resize((width, height), Image.Resampling.LANCZOS), dtype=np.uint8)

"""What a page shows of a grid, as PNG files made by the standard library alone."""

from __future__ import annotations

import base64
import struct
import zlib
from collections import Counter
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import ModelError
from softmap.model.potentials.base import numbers
from softmap.views.subject import Subject

__all__ = [
    "clusters",
    "data_uri",
    "nominal",
    "palette",
    "photo_png",
    "photo_uri",
    "pictures",
    "png",
    "shade_uri",
]

# From dark to bright without a turn, so that it reads the same in grey.
STOPS = np.array(
    [
        (45, 10, 85),
        (60, 70, 140),
        (40, 115, 142),
        (30, 155, 135),
        (95, 195, 95),
        (185, 220, 45),
        (253, 235, 90),
    ],
    dtype=float,
)


def palette(count: int) -> NDArray[np.uint8]:
    """Colours of labels 0..count-1, evenly spaced from dark to bright."""
    at = np.linspace(0, len(STOPS) - 1, max(count, 2))
    mixed = [np.interp(at, np.arange(len(STOPS)), STOPS[:, channel]) for channel in range(3)]
    return np.stack(mixed, axis=1).round().astype(np.uint8)


def nominal(count: int) -> NDArray[np.uint8]:
    """Colours of labels that have no order: hues far apart, by turns bright and dark."""
    k = np.arange(max(count, 2))
    hue = (0.58 + 0.618034 * k) % 1.0
    value = np.where(k % 3 == 0, 0.78, np.where(k % 3 == 1, 0.95, 0.58))
    chroma = value * np.where(k % 2 == 0, 0.72, 0.52)
    ramp = np.abs((hue[:, None] * 6 + np.array([0.0, 4.0, 2.0])) % 6 - 3) - 1
    mixed = value[:, None] - chroma[:, None] * (1 - np.clip(ramp, 0, 1))
    return np.round(255 * mixed).astype(np.uint8)


def png(labels: NDArray[np.int64], num_labels: int, inks: NDArray[np.uint8] | None = None) -> bytes:
    """The bytes of an 8-bit indexed PNG; beyond 256 labels neighbours share a colour."""
    colours = min(max(num_labels, 2), 256)
    index = labels if num_labels <= 256 else labels * 255 // (num_labels - 1)
    rows, columns = labels.shape
    inks = palette(colours) if inks is None else inks[:colours]
    return _file(index.reshape(rows, columns, 1), 3, inks.tobytes())


def _file(pixels: NDArray[np.integer], kind: int, inks: bytes = b"") -> bytes:
    """A PNG of 8 bits per channel: grey (0), colour (2) or indexed (3)."""
    rows, columns, channels = pixels.shape
    # every row of a PNG starts with the number of its filter, 0: none
    lines = np.zeros((rows, columns * channels + 1), dtype=np.uint8)
    lines[:, 1:] = pixels.reshape(rows, -1)
    header = struct.pack(">IIBBBBB", columns, rows, 8, kind, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"PLTE", inks), (b"IDAT", zlib.compress(lines.tobytes(), 9))]
    kept = [(name, body) for name, body in [*chunks, (b"IEND", b"")] if body or name == b"IEND"]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, body) for name, body in kept)


def _chunk(kind: bytes, body: bytes) -> bytes:
    check = zlib.crc32(kind + body)
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", check)


def _uri(content: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(content).decode()


def data_uri(
    labels: NDArray[np.int64], num_labels: int, inks: NDArray[np.uint8] | None = None
) -> str:
    """A labelling, to be put into a page."""
    return _uri(png(labels, num_labels, inks))


def photo_png(picture: NDArray[Any]) -> bytes:
    """The bytes of a PNG of a grey or colour picture in 0..255."""
    shown = np.clip(np.round(picture), 0, 255).astype(np.uint8)
    if shown.ndim == 2 or shown.shape[2] == 1:
        return _file(shown.reshape(*shown.shape[:2], 1), 0)
    return _file(shown[..., :3], 2)


def photo_uri(picture: NDArray[Any], longest: int = 640) -> str:
    """A grey or colour picture in 0..255, made smaller by leaving out pixels where it is large."""
    every = max(1, -(-max(picture.shape[:2]) // longest))
    return _uri(photo_png(picture[::every, ::every]))


def shade_uri(values: NDArray[np.float64]) -> str:
    """Numbers between 0 and 1 as shades from white to dark red."""
    part = np.clip(values, 0.0, 1.0)[..., None]
    return _uri(
        _file(np.round((1 - part) * 255 + part * np.array([140, 10, 30])).astype(np.uint8), 2)
    )


@dataclass(frozen=True)
class PictureLimits:
    """What pictures and lists of a page show."""

    fractional: float = 1e-3
    """A variable whose largest LP value is further from 1 than this is in doubt."""
    listed: int = 12
    """Clusters named in the page."""
    named: int = 24
    """Labels that have a swatch of their own."""


SHOWN = PictureLimits()


def pictures(result: Subject, given: Any = None) -> str:
    """The picture that was given, the labelling, and where the relaxation leaves doubt."""
    shape = result.model.shape
    photo = None if given is None else _photo(given)
    if shape is None or len(shape) != 2:
        return "" if photo is None else _section([_figure(photo, "What was given", "")])
    figures = [] if photo is None else [_figure(photo, "What was given", "")]
    figures += [_labelling(result, shape), _doubt(result, shape)]
    return _section([figure for figure in figures if figure])


def _section(figures: list[str]) -> str:
    return (
        '<section aria-labelledby="h-labelling"><h2 id="h-labelling">Labelling</h2>'
        f'<div class="pictures">{"".join(figures)}</div></section>'
    )


def _figure(uri: str, words: str, below: str) -> str:
    return (
        f'<figure class="labelling"><img alt="{escape(words)}" src="{uri}">'
        f"<figcaption>{escape(words)}{below}</figcaption></figure>"
    )


def _photo(given: Any) -> str:
    picture = numbers(given, "picture")
    if (
        picture.ndim not in (2, 3)
        or not picture.size
        or picture.shape[2:] not in ((), (1,), (3,), (4,))
    ):
        raise ModelError(
            f"picture must have shape (rows, columns) or (rows, columns, 3), not {picture.shape}"
        )
    if not np.isfinite(picture).all():
        raise ModelError("picture must be finite numbers")
    return photo_uri(picture)


def _labelling(result: Subject, shape: tuple[int, ...]) -> str:
    """Labels without an order have colours far apart; others run from dark to bright."""
    model, labels = result.model, np.asarray(result.labels).reshape(shape)
    count = int(model.num_labels[: model.num_visible].max())
    ordered = any(p.family.startswith("truncated") for p in model.potentials)
    words = f"The labelling, {shape[0]} rows by {shape[1]} columns"
    if ordered or count > 256:
        inks = palette(min(count, 32))
        colours = ",".join(f"rgb({r},{g},{b})" for r, g, b in inks.tolist())
        below = (
            '<span class="scale"><span>label 0</span><span class="bar" '
            f'style="background:linear-gradient(to right,{colours})"></span>'
            f"<span>{count - 1}</span></span>"
        )
        return _figure(data_uri(labels, count), words, below)
    inks = nominal(count)
    swatches = "".join(
        f'<span><i style="background:rgb({r},{g},{b})"></i>{k}</span>'
        for k, (r, g, b) in enumerate(inks[: min(count, SHOWN.named)].tolist())
    )
    return _figure(
        data_uri(labels, count, inks), words, f'<span class="swatches">{swatches}</span>'
    )


def _doubt(result: Subject, shape: tuple[int, ...]) -> str:
    """Where the relaxation is fractional: 1 minus the largest LP value of each pixel."""
    model = result.model
    begin = model.node_offset[: model.num_visible + 1]
    largest = np.maximum.reduceat(result.node_marginals[: begin[-1]], begin[:-1])
    doubt = np.clip(1.0 - largest, 0.0, 1.0)
    unsure = int((doubt > SHOWN.fractional).sum())
    if not unsure:
        return ""
    words = f"Doubt: the relaxation is fractional at {unsure:,} of {doubt.size:,} pixels"
    return _figure(shade_uri(np.sqrt(doubt).reshape(shape)), words, "")


def clusters(result: Subject) -> str:
    """Which clusters the bound of a tightened run rests on, on the picture where there is one."""
    scopes = result.proof.clusters
    if not scopes:
        return ""
    sizes = Counter(len(scope) for scope in scopes)
    kinds = ", ".join(f"{number:,} of {size}" for size, number in sorted(sizes.items()))
    listed = "; ".join(", ".join(map(str, scope)) for scope in scopes[: SHOWN.listed])
    more = "; …" if len(scopes) > SHOWN.listed else ""
    return (
        '<section aria-labelledby="h-clusters"><h2 id="h-clusters">Clusters</h2>'
        f"<p>The bound rests on {len(scopes):,} clusters of variables ({kinds}), which are coupled "
        f"more strictly than the relaxation does. The first of them: {listed}{more}.</p>"
        f"{_cover(result, scopes)}</section>"
    )


def _cover(result: Subject, scopes: tuple[tuple[int, ...], ...]) -> str:
    shape = result.model.shape
    if shape is None or len(shape) != 2:
        return ""
    members = np.concatenate([np.asarray(scope, dtype=np.int64) for scope in scopes])
    visible = result.model.num_visible
    held: NDArray[np.int64] = np.bincount(members, minlength=visible)[:visible]
    most = int(held.max())
    uri = shade_uri(np.sqrt(held / max(1, most)).reshape(shape))
    words = f"Where the clusters lie: up to {most} at one pixel"
    return f'<div class="pictures">{_figure(uri, words, "")}</div>'

"""A labelling of a grid as a picture in the page: a PNG with a palette, standard library only."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

__all__ = ["data_uri", "nominal", "palette", "photo_uri", "png", "shade_uri"]

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


def photo_uri(picture: NDArray[np.float64], longest: int = 640) -> str:
    """A grey or colour picture in 0..255, made smaller by leaving out pixels where it is large."""
    every = max(1, -(-max(picture.shape[:2]) // longest))
    small = np.clip(np.round(picture[::every, ::every]), 0, 255).astype(np.uint8)
    if small.ndim == 2 or small.shape[2] == 1:
        return _uri(_file(small.reshape(*small.shape[:2], 1), 0))
    return _uri(_file(small[..., :3], 2))


def shade_uri(values: NDArray[np.float64]) -> str:
    """Numbers between 0 and 1 as shades from white to dark red."""
    part = np.clip(values, 0.0, 1.0)[..., None]
    return _uri(
        _file(np.round((1 - part) * 255 + part * np.array([140, 10, 30])).astype(np.uint8), 2)
    )

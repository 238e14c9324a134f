"""Labellings, photographs and heat maps as PNG files, and the colours of labels."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["as_bytes", "image_uri", "nominal", "palette", "png", "reduced", "tinted", "washed"]

Colours = NDArray[np.uint8]
Pixel = TypeVar("Pixel", np.uint8, np.float64)

# Brightness increases monotonically, so that the order of labels is visible in grey as well.
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
    rows, columns = colours.shape[:2]
    if colours.ndim == 2:
        return _file(rows, columns, 0, colours)
    packed = colours.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], dtype=np.uint32)
    inks, index = np.unique(packed, return_inverse=True)
    if len(inks) > 256:
        return _file(rows, columns, 2, colours)
    table = np.stack([inks >> 16, inks >> 8 & 255, inks & 255], axis=1).astype(np.uint8)
    return _file(rows, columns, 3, index.astype(np.uint8), table.tobytes())


def _file(rows: int, columns: int, kind: int, pixels: Colours, inks: bytes = b"") -> bytes:
    """A PNG of 8 bits per channel: grey (0), colour (2) or indexed (3)."""
    flat = pixels.reshape(rows, -1)
    # every row of a PNG starts with the number of its filter; 0 is no filter
    lines = np.zeros((rows, flat.shape[1] + 1), dtype=np.uint8)
    lines[:, 1:] = flat
    header = struct.pack(">IIBBBBB", columns, rows, 8, kind, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"PLTE", inks), (b"IDAT", zlib.compress(lines.tobytes(), 9))]
    kept = [(name, body) for name, body in [*chunks, (b"IEND", b"")] if body or name == b"IEND"]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, body) for name, body in kept)


def _chunk(kind: bytes, body: bytes) -> bytes:
    check = zlib.crc32(kind + body)
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", check)

"""A labelling of a grid as a picture in the page: a PNG with a palette, standard library only."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

__all__ = ["data_uri", "palette", "png"]

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


def png(labels: NDArray[np.int64], num_labels: int) -> bytes:
    """The bytes of an 8-bit indexed PNG; beyond 256 labels neighbours share a colour."""
    colours = min(max(num_labels, 2), 256)
    index = labels if num_labels <= 256 else labels * 255 // (num_labels - 1)
    rows, columns = labels.shape
    # every row of a PNG starts with the number of its filter, 0: none
    lines = np.zeros((rows, columns + 1), dtype=np.uint8)
    lines[:, 1:] = index
    header = struct.pack(">IIBBBBB", columns, rows, 8, 3, 0, 0, 0)
    chunks = (
        (b"IHDR", header),
        (b"PLTE", palette(colours).tobytes()),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, body) for kind, body in chunks)


def _chunk(kind: bytes, body: bytes) -> bytes:
    check = zlib.crc32(kind + body)
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", check)


def data_uri(labels: NDArray[np.int64], num_labels: int) -> str:
    """The picture, to be put into a page."""
    return "data:image/png;base64," + base64.b64encode(png(labels, num_labels)).decode()

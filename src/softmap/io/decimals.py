"""Decimal numbers to float64 in bulk: the one hot loop of all text formats.

Short decimals are what large files are made of: one exact division or product makes each of them,
in the compiled core. What has too many digits for that goes through numpy's own parser.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softmap import core

__all__ = ["PAD", "parse_decimals", "token_bounds"]

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

PAD = 1


def parse_decimals(text: bytes) -> Floats | None:
    """Numbers separated by whitespace; None if anything else is in between."""
    values = np.empty(len(text) // 2 + 1)
    count, others = core.decimals(text, values)
    if count < 0:
        return _by_numpy(text)
    values = values[:count].copy()
    if others:
        number, begin, end = others[0::3], others[1::3], others[2::3]
        words = [text[a:b] for a, b in zip(begin, end, strict=True)]
        rest = _by_numpy(b" ".join(words), len(words))
        if rest is None:
            return None
        values[number] = rest
    return values


def token_bounds(text: bytes) -> tuple[NDArray[np.uint8], Places, Places]:
    """The text with `PAD` blanks in front, and where its tokens begin and end in there."""
    data = np.frombuffer(b" " * PAD + text + b" ", dtype=np.uint8)
    control = data - np.uint8(9)  # 9 to 13 are whitespace, other control characters are not
    inside = (control > 4) & (data != 32)
    change = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    return data, change[0::2], change[1::2]


def _by_numpy(text: bytes, count: int | None = None) -> Floats | None:
    if count is None:
        count = len(text.split())
    if count == 0:
        return np.zeros(0)
    try:
        values = np.fromstring(text, dtype=np.float64, sep=" ", count=-1)
    except (ValueError, DeprecationWarning):
        return None
    return values if len(values) == count else None

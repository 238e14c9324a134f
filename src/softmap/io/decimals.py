"""Decimal numbers to float64 in bulk: the one hot loop of all text formats."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["parse_decimals"]


def parse_decimals(text: bytes) -> NDArray[np.float64] | None:
    """Numbers separated by whitespace; None if anything else is in between."""
    count = _count(text)
    if count == 0:
        return np.zeros(0)
    try:
        values = np.fromstring(text, dtype=np.float64, sep=" ", count=-1)
    except (ValueError, DeprecationWarning):
        return None
    return values if len(values) == count else None


def _count(text: bytes) -> int:
    """Number of whitespace-separated tokens."""
    inside = np.frombuffer(text, dtype=np.uint8) > 32
    if not inside.size:
        return 0
    return int(inside[0]) + int(np.count_nonzero(inside[1:] & ~inside[:-1]))

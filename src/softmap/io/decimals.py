"""Decimal numbers to float64 in bulk: the one hot loop of all text formats.

Short plain decimals are what large files are made of. Their characters are gathered eight to a
64-bit word, and whole arrays of words are turned into numbers at once: the point is shifted out,
digits are summed in parallel inside the words, and one exact division per number is left. What has
an exponent, or too many digits to be exact that way, goes through numpy's own parser.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["PAD", "parse_decimals", "token_bounds"]

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
Places = NDArray[np.intp]

_SMALL = 256  # texts below are not worth the set-up
PAD = 16
_POWERS = 10.0 ** np.arange(17)


def _each(byte: int) -> np.uint64:
    """A word with this byte in all eight places."""
    return np.uint64(byte * 0x0101010101010101)


_ZEROS, _POINTS, _ONES, _TOPS = _each(0x30), _each(0x2E), _each(0x01), _each(0x80)
_HIGH_HALVES, _CARRY = _each(0xF0), _each(0x06)
_U1, _U7, _U8, _U16, _U32, _U56 = (np.uint64(k) for k in (1, 7, 8, 16, 32, 56))


def parse_decimals(text: bytes) -> Floats | None:
    """Numbers separated by whitespace; None if anything else is in between."""
    if len(text) < _SMALL or text.count(b"e") > len(text) // 20:
        return _by_numpy(text)
    data, start, end = token_bounds(text)
    if not len(start):
        return np.zeros(0)
    length = end - start
    simple = length <= 16
    if np.count_nonzero(simple) < 0.7 * len(simple):
        return _by_numpy(text, len(simple))
    values, exact = _plain(data, end, np.minimum(length, 16))
    slow = np.flatnonzero(~(exact & simple))
    if not len(slow):
        return values
    if len(slow) > 0.3 * len(start):
        return _by_numpy(text, len(start))
    places = zip((start[slow] - PAD).tolist(), (end[slow] - PAD).tolist(), strict=True)
    rest = _by_numpy(b" ".join([text[a:b] for a, b in places]), len(slow))
    if rest is None:
        return None
    values[slow] = rest
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


def _plain(
    data: NDArray[np.uint8], end: Places, length: Places
) -> tuple[Floats, NDArray[np.bool_]]:
    """Values of `[-]digits[.digits]` of at most 16 characters, and where they are right."""
    negative = data[end - length] == ord("-")
    last = _word(data, end, np.minimum(length, 8), negative & (length <= 8))
    digits = length - negative
    if length.max() <= 8:
        last, scale, point, fits = _without_point(last)
        value = _number(last).astype(np.float64)
    else:
        first = _word(data, end - 8, np.maximum(length - 8, 0), negative & (length > 8))
        first, last, scale, point, fits = _without_point_of_two(first, last)
        fits &= _all_digits(first)
        value = _number(first).astype(np.float64) * 1e8
        value += _number(last)
    fits &= _all_digits(last)
    digits -= point
    fits &= (digits > 0) & (digits < 16)
    value /= _POWERS[scale]
    return np.negative(value, out=value, where=negative), fits


def _word(
    data: NDArray[np.uint8], end: Places, length: Places, negative: NDArray[np.bool_]
) -> Words:
    """The last `length` characters before `end`, first one lowest, zeros in front; no sign."""
    at = np.ndarray((len(data) - 7,), np.dtype("<u8"), data.data, strides=(1,))
    word: Words = at[end - 8].astype(np.uint64, copy=False)
    shift = ((8 - length) << 3).astype(np.uint64)
    keep = np.left_shift(~np.uint64(0), np.minimum(shift, np.uint64(63)))
    keep[length == 0] = 0
    word = (word & keep) | (_ZEROS & ~keep)
    # turns the minus sign (0x2d) into a zero (0x30)
    return word ^ (negative.astype(np.uint64) * np.uint64(0x1D) << np.minimum(shift, _U56))


def _point(word: Words) -> Words:
    """The top bit of every byte that is a point (and perhaps of invalid ones above it)."""
    x = word ^ _POINTS
    return (x - _ONES) & ~x & _TOPS


def _split(point: Words) -> tuple[Words, Words]:
    """Masks of the bytes after and before the point."""
    return ~((point << _U1) - _U1), (point >> _U7) - _U1


def _without_point(word: Words) -> tuple[Words, NDArray[np.intp], Words, NDArray[np.bool_]]:
    """The digits closed up, how many came after the point, whether there was one, and only one."""
    point = _point(word)
    after, before = _split(point)
    closed = np.where(point == 0, word, (word & after) | ((word & before) << _U8) | np.uint64(0x30))
    scale = (np.bitwise_count(after) >> 3).astype(np.intp)
    return closed, scale, point != 0, (point & (point - _U1)) == 0


def _without_point_of_two(
    first: Words, last: Words
) -> tuple[Words, Words, NDArray[np.intp], Words, NDArray[np.bool_]]:
    """The same for sixteen characters in two words."""
    ahead, far, early, one = _without_point(first)
    point = _point(last)
    after, before = _split(point)
    late = point != 0
    closed = (last & after) | ((last & before) << _U8) | (first >> _U56)
    scale = (np.bitwise_count(after) >> 3).astype(np.intp)
    scale[early] = far[early] + 8
    first = np.where(late, (first << _U8) | np.uint64(0x30), ahead)
    one &= ((point & (point - _U1)) == 0) & ~(early & late)
    return first, np.where(late, closed, last), scale, early | late, one


def _all_digits(word: Words) -> NDArray[np.bool_]:
    high = (word & _HIGH_HALVES) == _ZEROS
    return high & (((word + _CARRY) & _HIGH_HALVES) == _ZEROS)


def _number(word: Words) -> Words:
    """Eight digits, first one lowest, to a number: pairs, then fours, then all."""
    word = word - _ZEROS
    word = word * np.uint64(10) + (word >> _U8)
    mask = np.uint64(0x000000FF000000FF)
    low = (word & mask) * np.uint64(0x000F424000000064)
    high = ((word >> _U16) & mask) * np.uint64(0x0000271000000001)
    return (low + high) >> _U32

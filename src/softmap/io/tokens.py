"""Conversion of numbers in text to arrays; line numbers are computed only for errors.

Large files mostly hold short decimals. The compiled core converts each by one exact division or
product. Numbers with too many digits for that are converted by numpy's parser.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.errors import FormatError, ModelError
from softmap.io.limits import LIMITS
from softmap.io.streams import Content
from softmap.model.potentials.base import Costs, Ints

Places = NDArray[np.intp]

LARGEST = 2**53  # all integers up to this are exact in float64
_COMMENT = re.compile(rb"(?m)^[ \t]*c(?![^\s])[^\n]*|#[^\n]*")


def parse_decimals(text: bytes) -> Costs | None:
    """Return the numbers of a text separated by whitespace; None if it contains anything else."""
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


def _token_bounds(text: bytes) -> tuple[NDArray[np.uint8], Places, Places]:
    """Return the text with a blank in front, and the start and end of its tokens."""
    data = np.frombuffer(b" " + text + b" ", dtype=np.uint8)
    control = data - np.uint8(9)  # 9 to 13 are whitespace, other control characters are not
    inside = (control > 4) & (data != 32)
    change = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    return data, change[0::2], change[1::2]


def _by_numpy(text: bytes, count: int | None = None) -> Costs | None:
    if count is None:
        count = len(text.split())
    if count == 0:
        return np.zeros(0)
    try:
        values = np.fromstring(text, dtype=np.float64, sep=" ", count=-1)
    except (ValueError, DeprecationWarning):
        return None
    return values if len(values) == count else None


def plain_numbers(text: bytes) -> Costs | None:
    """Return all numbers of a text of blanks and numbers, converted in pieces; else None."""
    parts, at = [], 0
    while at < len(text):
        end = min(at + LIMITS.text_bytes, len(text))
        while end < len(text) and not text[end - 1 : end].isspace():
            end += 1
            if end - at > 2 * LIMITS.text_bytes:
                return None
        values = parse_decimals(text[at:end])
        if values is None:
            return None
        parts.append(values)
        at = end
    return np.concatenate(parts) if parts else np.zeros(0)


SMALLEST = 2.0**-1022  # smaller numbers have fewer digits as float64, or none
_DECIMAL = re.compile(rb"([+-]?)([0-9]*\.?[0-9]*)(?:[eE]([+-]?[0-9]+))?")
_WIDE = Context(prec=30, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


def small_logs(text: bytes, values: Costs) -> tuple[Places, Costs]:
    """Return the logarithms of the numbers of a text that are too small for float64.

    Parameters
    ----------
    text : bytes
        Numbers separated by whitespace.
    values : float64 array
        Its numbers as `parse_decimals` returns them, none of them negative.

    Returns
    -------
    places : int array
        The indices of decimals that are not 0 but below 2^-1022 as float64.
    logs : float64 array
        Their natural logarithms; NaN for negative ones, which float64 takes for -0.
    """
    small = np.flatnonzero(values < SMALLEST)
    if not len(small):
        return small, np.zeros(0)
    data, begin, end = _token_bounds(text)
    digits = np.cumsum((data > ord("0")) & (data <= ord("9")))
    small = small[digits[end[small] - 1] > digits[begin[small] - 1]]  # the others are 0
    words = [text[a - 1 : b - 1] for a, b in zip(begin[small], end[small], strict=True)]
    logs = np.array([_decimal_log(word) for word in words], dtype=np.float64)
    kept = logs != -np.inf
    return small[kept], logs[kept]


def _decimal_log(word: bytes) -> float:
    """Return the logarithm of a decimal, -inf for 0; a finite number for any other decimal."""
    match = _DECIMAL.fullmatch(word)
    mantissa = _WIDE.create_decimal(match[2].decode() or "0") if match else Decimal(0)
    if match is None or not mantissa:
        return -math.inf
    if match[1] == b"-":
        return math.nan
    exponent = _WIDE.create_decimal((match[3] or b"0").decode())
    log = float(_WIDE.fma(exponent, _WIDE.ln(Decimal(10)), _WIDE.ln(mantissa)))
    return max(log, -sys.float_info.max)


def quote(token: bytes) -> str:
    """Return a token for an error message, shortened and printable."""
    text = token[:40].decode("utf-8", "backslashreplace")
    return repr(text + ("..." if len(token) > 40 else ""))


def skip_comments(data: bytes) -> bytes:
    """Replace `# ...` and lines that begin with the word `c` by blanks; line numbers stay."""
    if b"#" in data or data[:1] == b"c" or re.search(rb"\n[ \t]*c(?!\S)", data):
        return _COMMENT.sub(b"", data)
    return data


def _pieces(data: bytes, start: int) -> Iterator[tuple[int, int]]:
    """Yield pieces as (begin, end), cut at whitespace."""
    space = re.compile(rb"\s")
    while start < len(data):
        end = start + LIMITS.text_bytes
        if end >= len(data):
            yield start, len(data)
            return
        found = space.search(data, end, end + LIMITS.word_bytes)
        yield start, found.end() if found else len(data)
        start = found.end() if found else len(data)


class Numbers:
    """The numbers of a text from byte `start` on, with a cursor.

    `whole` and `wholes` check numbers and advance; every error names the line and what was
    expected.
    """

    def __init__(self, content: Content, start: int = 0) -> None:
        self.content = content
        self.start = start
        self.at = 0
        parts = [self._parse(begin, end) for begin, end in _pieces(content.data, start)]
        self._counts = [len(part) for part in parts]
        self.values: Costs = np.concatenate(parts) if parts else np.zeros(0)
        self._whole: NDArray[np.int64] | None = None

    def _parse(self, begin: int, end: int) -> Costs:
        piece = self.content.data[begin:end]
        # a piece without whitespace to cut at contains a word that is too long for a number
        longest = LIMITS.text_bytes + LIMITS.word_bytes
        values = parse_decimals(piece) if len(piece) <= longest else None
        if values is None:
            self._reject(piece, begin)
        return values

    def _reject(self, piece: bytes, begin: int) -> NoReturn:
        for match in re.finditer(rb"\S+", piece):
            word = match.group()
            if len(word) >= LIMITS.word_bytes or parse_decimals(word) is None:
                line = self.content.data.count(b"\n", 0, begin + match.start()) + 1
                raise self.content.error("a number", quote(word), line)
        raise self.content.error("numbers")

    def __len__(self) -> int:
        return len(self.values)

    @property
    def left(self) -> int:
        """The number of numbers that have not been read yet."""
        return len(self.values) - self.at

    def line(self, index: int) -> int | None:
        """Return the line of number `index` (the last line if there are fewer numbers)."""
        data = self.content.data
        seen = 0
        if not data:
            return None
        for begin, end in _pieces(data, self.start):
            _, starts, _ = _token_bounds(data[begin:end])
            if seen + len(starts) > index:
                return data.count(b"\n", 0, begin + int(starts[index - seen]) - 1) + 1
            seen += len(starts)
        return data.rstrip().count(b"\n") + 1

    def small_logs(self, first: int) -> tuple[Places, Costs]:
        """Return indices and logarithms of numbers too small for float64, from one number on."""
        places, logs, at = [np.zeros(0, np.intp)], [np.zeros(0)], 0
        pieces = _pieces(self.content.data, self.start)
        for (begin, end), count in zip(pieces, self._counts, strict=True):
            values = self.values[at : at + count]
            if at + count > first and values.min() < SMALLEST:
                place, log = small_logs(self.content.data[begin:end], values)
                places.append(at + place)
                logs.append(log)
            at += count
        place, log = np.concatenate(places), np.concatenate(logs)
        return place[place >= first], log[place >= first]

    def fail(self, index: int, expected: str) -> FormatError:
        """Return the error for number `index`; the caller raises it."""
        if index < len(self.values):
            found = f"{self.values[index]:.17g}"
        else:
            found = "the end of the file"
        return self.content.error(expected, found, self.line(index))

    def whole(self, what: str, least: int = 0, most: int = LARGEST) -> int:
        """Return the next number, an integer within bounds."""
        if self.at >= len(self.values):
            raise self.fail(self.at, what)
        value = self.values[self.at]
        if not (least <= value <= most and value == int(value)):
            bounds = f" ({least} to {most})" if most < LARGEST else f" (at least {least})"
            raise self.fail(self.at, what + bounds)
        self.at += 1
        return int(value)

    def wholes(
        self, count: int, what: str, least: int = 0, most: int = LARGEST
    ) -> NDArray[np.int64]:
        """Return the next `count` numbers, integers within bounds."""
        if count > self.left:
            message = f"{count} {what} (only {self.left} numbers are left)"
            raise self.fail(len(self.values), message)
        part = self.values[self.at : self.at + count]
        good = (part >= least) & (part <= most)
        good &= np.floor(part) == part
        if not good.all():
            bounds = f" ({least} to {most})" if most < LARGEST else f" (at least {least})"
            raise self.fail(self.at + int(np.argmin(good)), what + bounds)
        self.at += count
        return part.astype(np.int64)

    def whole_numbers(self) -> NDArray[np.int64]:
        """Return all numbers as integers, large ones cut at 2^62; raise an error for others."""
        if self._whole is None:
            wrong = np.floor(self.values) != self.values
            if wrong.any():
                raise self.fail(int(np.argmax(wrong)), "a whole number")
            self._whole = np.clip(self.values, -(2.0**62), 2.0**62).astype(np.int64)
        return self._whole

    def finish(self, after: str) -> None:
        """Raise an error if any number is left."""
        if self.left:
            raise self.fail(self.at, f"the end of the file after {after}")


def gather(costs: Costs, start: Ints, size: int) -> Costs:
    """Return the rows `costs[start : start + size]`, gathered in pieces to keep the index small."""
    out = np.empty((len(start), size))
    step = max(1, LIMITS.gathered // size)
    for row in range(0, len(start), step):
        place = start[row : row + step, None] + np.arange(size)
        np.take(costs, place, out=out[row : row + step])
    return out


def gather_transposed(costs: Costs, start: Ints, shape: tuple[int, int]) -> Costs:
    """Return tables of one shape that are stored in column-major order, gathered in pieces."""
    rows, cols = shape
    out = np.empty((len(start), rows, cols))
    step = max(1, LIMITS.gathered // (rows * cols))
    for row in range(0, len(start), step):
        part = gather(costs, start[row : row + step], rows * cols)
        out[row : row + step] = part.reshape(-1, cols, rows).transpose(0, 2, 1)
    return out


def whole_cost(cost: float, form: str) -> int:
    """Return a whole cost of at most 2^53 as int; raise `ModelError` for another cost."""
    if cost != round(cost) or abs(cost) > LARGEST:
        raise ModelError(
            f"{form} holds whole numbers up to 2^53, not {cost:g}: give a scale that makes them "
            "whole, or choose .cfn or .uai.LG"
        )
    return int(cost)

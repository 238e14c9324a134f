"""Whitespace-separated numbers to one array, in bulk; line numbers only when something is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from softmap.errors import FormatError
from softmap.io.decimals import PAD, parse_decimals, token_bounds
from softmap.io.streams import Content

__all__ = ["Numbers", "quote", "skip_comments"]

CHUNK = 1 << 17
_LONGEST = 1 << 12
_COMMENT = re.compile(rb"(?m)^[ \t]*c(?![^\s])[^\n]*|#[^\n]*")
LARGEST = 2**53


def quote(token: bytes) -> str:
    """A token for an error message: short, printable."""
    text = token[:40].decode("utf-8", "backslashreplace")
    return repr(text + ("..." if len(token) > 40 else ""))


def skip_comments(data: bytes) -> bytes:
    """Blank out `# ...` and lines that begin with a lone `c`; line numbers stay."""
    if b"#" in data or data[:1] == b"c" or re.search(rb"\n[ \t]*c(?!\S)", data):
        return _COMMENT.sub(b"", data)
    return data


def _pieces(data: bytes, start: int) -> Iterator[tuple[int, int]]:
    """Cut into pieces at whitespace: (begin, end) pairs."""
    space = re.compile(rb"\s")
    while start < len(data):
        end = start + CHUNK
        if end >= len(data):
            yield start, len(data)
            return
        found = space.search(data, end, end + _LONGEST)
        yield start, found.end() if found else len(data)
        start = found.end() if found else len(data)


class Numbers:
    """The numbers of a text after byte `start`, read one after the other.

    `whole` and `wholes` check and advance; every error names the line and what was expected.
    """

    def __init__(self, content: Content, start: int = 0, hint: str = "") -> None:
        self.content = content
        self.start = start
        self.hint = hint
        self.at = 0
        parts = [self._parse(begin, end) for begin, end in _pieces(content.data, start)]
        self.values: NDArray[np.float64] = np.concatenate(parts) if parts else np.zeros(0)

    def _parse(self, begin: int, end: int) -> NDArray[np.float64]:
        piece = self.content.data[begin:end]
        # a piece that could not be cut holds a word no number is as long as
        values = parse_decimals(piece) if len(piece) <= CHUNK + _LONGEST else None
        if values is None:
            self._reject(piece, begin)
        return values

    def _reject(self, piece: bytes, begin: int) -> NoReturn:
        for match in re.finditer(rb"\S+", piece):
            word = match.group()
            if len(word) >= _LONGEST or parse_decimals(word) is None:
                line = self.content.data.count(b"\n", 0, begin + match.start()) + 1
                message = f"expected a number, found {quote(word)}{self.hint}"
                raise FormatError(message, self.content.name, line, expected="a number")
        raise FormatError("expected numbers", self.content.name, expected="numbers")

    def __len__(self) -> int:
        return len(self.values)

    @property
    def left(self) -> int:
        """How many numbers have not been read yet."""
        return len(self.values) - self.at

    def line(self, index: int) -> int | None:
        """The line of number `index` (the last line if there are fewer)."""
        data = self.content.data
        seen = 0
        if not data:
            return None
        for begin, end in _pieces(data, self.start):
            _, starts, _ = token_bounds(data[begin:end])
            if seen + len(starts) > index:
                return data.count(b"\n", 0, begin + int(starts[index - seen]) - PAD) + 1
            seen += len(starts)
        return data.rstrip().count(b"\n") + 1

    def fail(self, index: int, expected: str) -> FormatError:
        """The error for number `index`; to be raised by the caller."""
        if index < len(self.values):
            found = f"{self.values[index]:.17g}"
        else:
            found = "the end of the file"
        message = f"expected {expected}, found {found}"
        return FormatError(message, self.content.name, self.line(index), expected=expected)

    def whole(self, what: str, least: int = 0, most: int = LARGEST) -> int:
        """One whole number within bounds."""
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
        """`count` whole numbers within bounds."""
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

    def finish(self, after: str) -> None:
        """Nothing may follow."""
        if self.left:
            raise self.fail(self.at, f"the end of the file after {after}")

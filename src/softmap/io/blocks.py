"""Texts of named blocks with brackets (BIF, NET): a cursor over words and signs."""

from __future__ import annotations

import re

import numpy as np

from softmap.errors import FormatError
from softmap.io.assembly import Costs
from softmap.io.decimals import parse_decimals
from softmap.io.streams import Content
from softmap.io.tokens import quote

__all__ = ["Blocks", "blank_comments", "plain_numbers"]

_WORD = re.compile(rb"""\s*(?:"([^"\n]*)"|([{}()\[\],;|])|([^\s{}()\[\],;|"]+))""")
_SKIP = re.compile(rb"\s*")
_PIECE = 1 << 17


def blank_comments(data: bytes, line_mark: bytes, pair: tuple[bytes, bytes] | None = None) -> bytes:
    """Replace comments by blanks; the line numbers stay. Linear, whatever is left open."""
    if line_mark in data:
        data = re.sub(re.escape(line_mark) + rb"[^\n]*", b" ", data)
    if pair is None or pair[0] not in data:
        return data
    parts, at = [], 0
    while (begin := data.find(pair[0], at)) >= 0:
        end = data.find(pair[1], begin + 2)
        end = len(data) if end < 0 else end + 2
        parts += [data[at:begin], b" " + b"\n" * data.count(b"\n", begin, end)]
        at = end
    return b"".join([*parts, data[at:]])


def plain_numbers(text: bytes) -> Costs | None:
    """All numbers of a text of blanks and numbers, some at a time; None if there is more."""
    parts, at = [], 0
    while at < len(text):
        end = min(at + _PIECE, len(text))
        while end < len(text) and not text[end - 1 : end].isspace():
            end += 1
            if end - at > 2 * _PIECE:
                return None
        values = parse_decimals(text[at:end])
        if values is None:
            return None
        parts.append(values)
        at = end
    return np.concatenate(parts) if parts else np.zeros(0)


class Blocks:
    """A cursor; every error names the line."""

    def __init__(self, content: Content, data: bytes) -> None:
        self.content = content
        self.data = data
        self.at = 0

    def line(self) -> int:
        """The line of the next word."""
        begin = _SKIP.match(self.data, self.at)
        assert begin is not None
        return self.data.count(b"\n", 0, begin.end()) + 1

    def error(self, expected: str) -> FormatError:
        """An error at the cursor; to be raised by the caller."""
        match = _WORD.match(self.data, self.at)
        found = quote(match.group().strip()) if match else "the end of the file"
        if not match and (rest := self.data[self.at : self.at + 60].strip()):
            found = quote(rest)
        message = f"expected {expected}, found {found}"
        return FormatError(message, self.content.name, self.line(), expected=expected)

    def done(self) -> bool:
        """Whether only blanks are left."""
        begin = _SKIP.match(self.data, self.at)
        return begin is not None and begin.end() == len(self.data)

    def sign(self, sign: bytes) -> bool:
        """Whether this sign comes next; if so, step over it."""
        match = _WORD.match(self.data, self.at)
        if match is None or match[2] != sign:
            return False
        self.at = match.end()
        return True

    def expect(self, sign: bytes) -> None:
        """This very sign."""
        if not self.sign(sign):
            raise self.error(repr(sign.decode()))

    def word(self, expected: str) -> str:
        """A name, quoted or not."""
        match = _WORD.match(self.data, self.at)
        if match is None or match[2] is not None:
            raise self.error(expected)
        self.at = match.end()
        name = match[1] if match[1] is not None else match[3]
        return name.decode("utf-8", "backslashreplace")

    def words(self, closing: bytes, expected: str) -> list[str]:
        """Names up to a closing sign, with or without commas."""
        found = []
        while not self.sign(closing):
            found.append(self.word(expected))
            self.sign(b",")
        return found

    def until(self, sign: bytes, expected: str) -> bytes:
        """The text up to a sign, which is stepped over."""
        end = self.data.find(sign, self.at)
        if end < 0:
            raise self.error(expected)
        text = self.data[self.at : end]
        self.at = end + 1
        return text

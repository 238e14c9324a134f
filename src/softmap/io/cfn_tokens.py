"""Relaxed JSON, token by token: quotes, commas and colons may be missing, brackets are alike."""

from __future__ import annotations

import re

import numpy as np

from softmap.errors import FormatError
from softmap.io.streams import Content
from softmap.io.tokens import parse_decimals, quote
from softmap.model.potentials.base import Costs

__all__ = ["Tokens"]

_COMMENT = re.compile(rb"(?m)^#[^\n]*")
_TOKEN = re.compile(rb"""[\s,:]*(?:"([^"\n]*)"|([\[{])|([\]}])|([^\s,:"\[\]{}]+))""")
_SKIP = re.compile(rb"[\s,:]*")
_LIST_END = re.compile(rb"[\[\]{}]")
_PLAIN = bytes.maketrans(b',:"', b"   ")
_PAIR = {b"{": b"}", b"[": b"]"}


class Tokens:
    """A cursor over the text; every error names the line."""

    def __init__(self, content: Content) -> None:
        self.content = content
        self.data = _COMMENT.sub(b"", content.data) if b"#" in content.data else content.data
        self.at = 0

    def line(self) -> int:
        """The line of the next token."""
        return self.data.count(b"\n", 0, _SKIP.match(self.data, self.at).end()) + 1  # type: ignore[union-attr]

    def error(self, expected: str, found: str | None = None) -> FormatError:
        """An error at the cursor; to be raised by the caller."""
        if found is None:
            match = _TOKEN.match(self.data, self.at)
            found = quote(match.group().strip(b" \t\r\n,:")) if match else "the end of the file"
        else:
            found = quote(found.encode())
        message = f"expected {expected}, found {found}"
        return FormatError(message, self.content.name, self.line(), expected=expected)

    def _next(self, group: int, expected: str) -> bytes:
        match = _TOKEN.match(self.data, self.at)
        if match is None or match[group] is None:
            raise self.error(expected)
        self.at = match.end()
        return match[group]

    def peek(self) -> str | None:
        """The next word, if it is one."""
        match = _TOKEN.match(self.data, self.at)
        word = (match[1] if match[1] is not None else match[4]) if match else None
        return None if word is None else word.decode("utf-8", "backslashreplace")

    def text(self, expected: str) -> str:
        """A word, quoted or not."""
        word = self.peek()
        if word is None:
            raise self.error(expected)
        self.at = _TOKEN.match(self.data, self.at).end()  # type: ignore[union-attr]
        return word

    def word(self, expected: str) -> None:
        """This very word."""
        if self.peek() != expected:
            raise self.error(f"{expected!r}")
        self.text(expected)

    def number(self, expected: str) -> float:
        """One number."""
        before = self.at
        values = parse_decimals(self.text(expected).encode())
        if values is None or len(values) != 1 or np.isnan(values[0]):
            self.at = before
            raise self.error(expected)
        return float(values[0])

    def after_colon(self) -> bool:
        """Whether a colon follows: the last word was a name."""
        skipped = _SKIP.match(self.data, self.at)
        return skipped is not None and b":" in skipped.group()

    def at_opening(self) -> bool:
        """Whether a bracket opens next."""
        match = _TOKEN.match(self.data, self.at)
        return match is not None and match[2] is not None

    def opening(self, expected: str) -> bytes:
        """An opening bracket; returns the one that closes it."""
        return _PAIR[self._next(2, expected)]

    def closes(self, closing: bytes) -> bool:
        """Whether the bracket closes here; if so, step over it."""
        match = _TOKEN.match(self.data, self.at)
        if match is None:
            raise self.error(f"{closing.decode()!r}")
        if match[3] is None:
            return False
        if match[3] != closing:
            raise self.error(f"{closing.decode()!r}")
        self.at = match.end()
        return True

    def end(self) -> None:
        """The last bracket, which files in use forget, and nothing after it."""
        if self.peek() is not None or self.at_opening():
            raise self.error("'}' at the end")
        match = _TOKEN.match(self.data, self.at)
        self.at = match.end() if match else self.at
        if _SKIP.match(self.data, self.at).end() != len(self.data):  # type: ignore[union-attr]
            raise self.error("the end of the file")

    def _list(self) -> bytes:
        """The inside of a flat list, in one piece."""
        closing = self.opening("'['")
        found = _LIST_END.search(self.data, self.at)
        if found is None or found.group() != closing:
            self.at = found.start() if found else len(self.data)
            raise self.error(f"{closing.decode()!r}")
        inside = self.data[self.at : found.start()]
        self.at = found.end()
        return inside

    def numbers(self, expected: str) -> Costs:
        """A flat list of numbers, in bulk."""
        before = self.at
        values = parse_decimals(self._list().translate(_PLAIN))
        if values is None:
            self.at = before
            raise self.error(expected, "something that is not a number")
        return values

    def rows(self, labels: list[dict[str, int]]) -> Costs:
        """A flat list `label ... label cost label ...`, labels by name or number, as rows."""
        before = self.at
        inside = self._list()
        values = None
        if not any(labels):
            values = parse_decimals(inside.translate(_PLAIN))
        if values is None:
            values = self._named(inside, labels)
        if values is None or len(values) % (len(labels) + 1):
            self.at = before
            raise self.error(f"rows of {len(labels)} labels and a cost", "something else")
        return values.reshape(-1, len(labels) + 1)

    @staticmethod
    def _words(inside: bytes) -> list[bytes] | None:
        """All words of a list; None where a quote does not close."""
        words, at = [], 0
        end = len(inside.rstrip(b" \t\r\n\v\f,:"))
        while at < end:
            match = _TOKEN.match(inside, at)
            if match is None:
                return None
            words.append(match[1] if match[1] is not None else match[4])
            at = match.end()
        return words

    def _named(self, inside: bytes, labels: list[dict[str, int]]) -> Costs | None:
        words = self._words(inside)
        if words is None:
            return None
        width = len(labels) + 1
        columns = []
        for k, known in enumerate([*labels, {}]):
            part = words[k::width]
            lookup = {w: known.get(w.decode("utf-8", "backslashreplace")) for w in set(part)}
            texts = {w: w if i is None else b"%d" % i for w, i in lookup.items()}
            values = parse_decimals(b" ".join(texts[w] for w in part))
            if values is None or len(values) != len(part):
                return None
            columns.append(values)
        if len({len(c) for c in columns}) > 1:
            return None
        return np.column_stack(columns).ravel()

"""Parity-check matrices in MacKay's `alist` format."""

from __future__ import annotations

import numpy as np

from softmap.io.streams import Content, Source, load
from softmap.io.tokens import parse_decimals, quote
from softmap.model import Model
from softmap.model.factors import Assembly
from softmap.model.model import assembled
from softmap.model.potentials.base import Ints

_HEAD = 4  # lines before those of the columns


def parse_alist(content: Content) -> Model:
    """Return the words of a code as a model: one variable per bit, all of cost 0.

    Each check is a parity. Costs are added by `Model.replace`; `softmap.codes.Decoder` decodes
    without a model.
    """
    checks, bits = parse_checks(content)
    assembly = Assembly(np.full(bits, 2))
    members = np.array([bit for row in checks for bit in row], dtype=np.int64)
    start = np.cumsum([0, *map(len, checks)])
    assembly.add_parities(members, start, np.zeros(len(checks), dtype=np.int64))
    return assembled(assembly.pieces())


def read_checks(source: Source) -> tuple[list[list[int]], int]:
    """Return the bits of each check, and the number of bits, of an alist file.

    Parameters
    ----------
    source : path, "-" or binary file
    """
    return parse_checks(load(source))


def parse_checks(content: Content) -> tuple[list[list[int]], int]:
    """Return the bits of each check, and the number of bits, of an alist file given as bytes."""
    lines = _NumberLines(content)
    bits, checks = lines.counts(0, 2, "the numbers of columns and rows")
    lines.expect(bits, checks)
    lines.counts(1, 2, "the largest weights of a column and of a row")
    weights = lines.counts(2, bits, "the weight of each column")
    heights = lines.counts(3, checks, "the weight of each row")
    bit, check = lines.ones(_HEAD, weights, checks)
    row, column = lines.ones(_HEAD + bits, heights, bits)
    order = np.argsort(check, kind="stable")  # of each row, in the order of the bits
    again = np.lexsort((column, row))
    found = np.stack([check[order], bit[order]])
    given = np.stack([row[again], column[again]])
    same = found.shape == given.shape and np.array_equal(found, given)
    if not same:
        ends = np.cumsum(heights)
        both = [np.split(pairs[1], ends[:-1]) for pairs in (given, found)]
        at = next(
            (k for k, (a, b) in enumerate(zip(*both, strict=True)) if a.tolist() != b.tolist()), 0
        )
        message = f"the ones of row {at + 1}, as the columns list them"
        raise lines.error(_HEAD + bits + at, message)
    return [part.tolist() for part in np.split(found[1], np.cumsum(heights)[:-1])], bits


class _NumberLines:
    """The lines of an alist file, with their numbers for messages."""

    def __init__(self, content: Content) -> None:
        self.content = content
        lines = enumerate(content.data.split(b"\n"), 1)
        self.all = [(number, line) for number, line in lines if not line.lstrip().startswith(b"#")]
        self.filled = [(number, line) for number, line in self.all if line.strip()]
        if len(self.filled) < _HEAD:
            raise content.error("an alist file of at least four lines", f"{len(self.filled)}")
        self.lines = self.filled

    def expect(self, bits: int, checks: int) -> None:
        """Take empty lines for empty lists if there are fewer other lines than lists."""
        if bits < 1:
            raise self.error(0, "at least one column")
        need = _HEAD + bits + checks
        if len(self.filled) < need:
            self.lines = self.all
        if len(self.lines) < need:
            found = f"{len(self.filled)} lines"
            raise self.content.error(f"{need} lines ({bits} columns, {checks} rows)", found)

    def error(self, at: int, expected: str) -> Exception:
        number, line = self.lines[at]
        return self.content.error(expected, quote(line.strip()[:80]), number)

    def numbers(self, at: int) -> list[int]:
        words = self.lines[at][1].split()
        if not all(word.isdigit() and len(word) < 10 for word in words):
            raise self.error(at, "whole numbers that are not negative")
        return list(map(int, words))

    def counts(self, at: int, size: int, what: str) -> list[int]:
        found = self.numbers(at)
        if len(found) != size:
            raise self.error(at, f"{what} ({size} numbers)")
        return found

    def ones(self, first: int, weights: list[int], most: int) -> tuple[Ints, Ints]:
        """Return the number of the line and the place of each one; lines list them from 1."""
        count = len(weights)
        text = b" ; ".join(line for _, line in self.lines[first : first + count])
        values = parse_decimals(text.replace(b";", b"-1"))
        if (
            values is not None
            and ((values >= -1) & (values <= most) & (np.floor(values) == values)).all()
        ):
            line = np.cumsum(values == -1)
            kept = values > 0
            owner, places = line[kept], values[kept].astype(np.int64) - 1
            right = np.array_equal(np.bincount(owner, minlength=count), weights)
            if right and len(np.unique(owner * most + places)) == len(places):
                return owner, places
        for at, weight in enumerate(weights):
            self.members(first + at, weight, most)
        raise self.error(first, "lists of numbers")

    def members(self, at: int, weight: int, most: int) -> list[int]:
        """Return the places, from 0, that a line lists from 1; zeros pad the line."""
        found = [place - 1 for place in self.numbers(at) if place]
        if len(found) != weight or len(set(found)) != weight or max(found, default=0) >= most:
            raise self.error(at, f"{weight} different numbers from 1 to {most}")
        return found

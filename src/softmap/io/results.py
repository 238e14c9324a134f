"""Labellings and evidence: `.MPE` files, solutions of QAPLIB, and observed labels."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import FormatError, ModelError
from softmap.io.atomic import write_text
from softmap.io.streams import Content, Source, load, open_content
from softmap.io.tokens import Numbers, quote, skip_comments
from softmap.model.potentials.base import integers

__all__ = [
    "format_labels", "parse_evidence", "parse_labels", "parse_sln", "read_evidence", "read_labels",
    "read_sln", "write_labels",
]  # fmt: skip


_HEADER = re.compile(rb"\s*(\S+)")
_BEGIN = re.compile(rb"-BEGIN-")


def parse_labels(data: bytes | Content) -> NDArray[np.int64]:
    """Labels of all variables.

    The header may be `MPE` or `MAP`, and the line `1` of the older form may stand before the
    labels. Of several solutions (separated by `-BEGIN-`) the last one counts.
    """
    content = open_content(data)
    content.data = skip_comments(content.data)
    header = _HEADER.match(content.data)
    if header is None or header[1].upper() not in (b"MPE", b"MAP"):
        found = "the end of the file" if header is None else quote(header[1])
        message = f"expected MPE or MAP, found {found}"
        raise FormatError(message, content.name, 1, expected="MPE or MAP")
    start = header.end()
    for mark in _BEGIN.finditer(content.data):
        start = mark.end()
    again = re.compile(rb"\s*(?:MPE|MAP)\b", re.IGNORECASE).match(content.data, start)
    numbers = Numbers(content, again.end() if again else start)
    if len(numbers) > 1 and numbers.values[0] == 1 and len(numbers) == 2 + numbers.values[1]:
        numbers.at = 1
    n = numbers.whole("the number of variables", 0)
    labels = numbers.wholes(n, "labels", 0, 2**31 - 1)
    numbers.finish("the labels")
    return labels


def read_labels(source: Source) -> NDArray[np.int64]:
    """Labels of all variables, from a file."""
    return parse_labels(load(source))


def format_labels(labels: ArrayLike) -> str:
    """The text of an `.MPE` file; a labelling of a grid is written row by row."""
    array = integers(labels, "labels")
    if array.ndim < 1:
        raise ModelError(f"labels must be a list of integers, not {array.dtype} {array.shape}")
    array = array.reshape(-1)
    return "MPE\n" + " ".join(map(str, (len(array), *array.tolist()))) + "\n"


def write_labels(labels: ArrayLike, target: Source) -> None:
    """Write a labelling as the competitions expect it (`<model>.uai.MPE`)."""
    write_text(target, [format_labels(labels)])


def parse_sln(data: bytes | Content) -> tuple[NDArray[np.int64], float]:
    """The labels of a QAPLIB solution (`n value permutation`, numbered from 1), and its value."""
    content = open_content(data)
    content.data = content.data.replace(b",", b" ")
    numbers = Numbers(content)
    n = numbers.whole("the size of the permutation", 1, 2**31 - 1)
    if not numbers.left:
        raise numbers.fail(len(numbers), "the value of the solution")
    value = float(numbers.values[1])
    numbers.at += 1
    labels = numbers.wholes(n, "entries of the permutation", 1, n) - 1
    numbers.finish("the permutation")
    if len(np.unique(labels)) != n:
        raise FormatError(f"expected each of 1 to {n} once", content.name, expected="a permutation")
    return labels, value


def read_sln(source: Source) -> tuple[NDArray[np.int64], float]:
    """Labels and value of a QAPLIB solution."""
    return parse_sln(load(source))


def parse_evidence(data: bytes | Content) -> dict[int, int]:
    """Observed labels by variable.

    The text holds `k v1 x1 ... vk xk`, on one line (2014 and later) or on several (2008), or, in
    the older layout, first the number of samples and then each sample so. Where both readings fit,
    the newer one counts. Several samples are taken if they say the same.
    """
    content = open_content(data)
    content.data = skip_comments(content.data)
    numbers = Numbers(content)
    if len(numbers) == 0:
        raise FormatError("expected the number of observed variables", content.name, 1)
    tokens = numbers.wholes(len(numbers), "counts, variables and labels", 0, 2**31 - 1)
    if len(tokens) == 1 + 2 * tokens[0]:
        return _pairs(numbers, tokens[1:], {})
    return _samples(numbers, tokens)


def read_evidence(source: Source) -> dict[int, int]:
    """Observed labels by variable, from a file."""
    return parse_evidence(load(source))


def _samples(numbers: Numbers, tokens: NDArray[np.int64]) -> dict[int, int]:
    found: dict[int, int] = {}
    at = 1
    for _ in range(int(tokens[0])):
        if at >= len(tokens) or at + 2 * int(tokens[at]) >= len(tokens):
            raise _unreadable(numbers, tokens)
        end = at + 1 + 2 * int(tokens[at])
        _pairs(numbers, tokens[at + 1 : end], found)
        at = end
    if at != len(tokens):
        raise _unreadable(numbers, tokens)
    return found


def _unreadable(numbers: Numbers, tokens: NDArray[np.int64]) -> FormatError:
    return FormatError(
        f"expected {tokens[0]} pairs of variable and label, or {tokens[0]} samples of them; "
        f"found {len(tokens) - 1} more numbers",
        numbers.content.name,
        numbers.line(0),
        expected="pairs of variable and label",
    )


def _pairs(numbers: Numbers, tokens: NDArray[np.int64], found: dict[int, int]) -> dict[int, int]:
    for i, x in tokens.reshape(-1, 2).tolist():
        if found.setdefault(i, x) != x:
            message = f"variable {i} is observed as {found[i]} and as {x}"
            raise FormatError(message, numbers.content.name, expected="one label per variable")
    return found

"""Labellings in the competitions' form: `MPE`, then the number of variables and their labels."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import FormatError, ModelError
from softmap.io.atomic import write_text
from softmap.io.streams import Content, Source, load, open_content
from softmap.io.tokens import Numbers, quote, skip_comments
from softmap.model.potentials.base import integers

__all__ = ["format_labels", "parse_labels", "read_labels", "write_labels"]

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

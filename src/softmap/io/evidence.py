"""Evidence files: which variables are observed, and their labels. Three dialects, told apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softmap.errors import FormatError
from softmap.io.streams import Content, Source, load, open_content
from softmap.io.tokens import Numbers, skip_comments

__all__ = ["parse_evidence", "read_evidence"]


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

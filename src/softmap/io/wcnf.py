"""WCNF: weighted clauses, of both dialects (`p wcnf` with a top, and `h` for hard ones)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from softmap.errors import FormatError, ModelError
from softmap.io.assembly import Costs, Ints
from softmap.io.atomic import write_text
from softmap.io.factors import factors_of
from softmap.io.literals import Conjunctions
from softmap.io.streams import Content, Source, load, open_content
from softmap.io.tokens import LARGEST, Numbers, quote
from softmap.model import Model, checked_model
from softmap.model.potentials.base import scale_factor

__all__ = ["format_wcnf", "parse_wcnf", "read_wcnf", "write_wcnf"]

_HEAD = re.compile(rb"(?m)^[ \t]*p[ \t]+(\S+)([^\n]*)$")
_COMMENT = re.compile(rb"(?m)^[ \t]*c(?:[ \t\r][^\n]*)?$")
_OPENING = re.compile(rb"(?:c(?:[ \t\r][^\n]*+)?\n)*+")
_HARD = b"-1"  # stands for h, where only a weight can stand


def parse_wcnf(data: bytes | Content) -> Model:
    """Model from the text of a WCNF file: one variable with two labels for each number.

    Label 1 is true. Every soft clause that does not hold costs its weight; hard ones must hold.
    Clauses of more than six literals become chains, whose running variables come after the file's.
    """
    content = open_content(data)
    text = content.data
    opening = _OPENING.match(text)
    if opening is not None and opening.end():
        text = b"\n" * text.count(b"\n", 0, opening.end()) + text[opening.end() :]
    if b"\nc" in text or b"\n " in text or b"\n\t" in text:
        text = _COMMENT.sub(b"", text)
    n, top, start = _header(content, text)
    hard = 0
    if top is None:
        hard = text.count(b"h", start)
        text = text[:start] + text[start:].replace(b"h", _HARD)
    inner = Content(text, content.name)
    inner.size = content.size
    numbers = Numbers(inner, start)
    del text
    first, last, weight = _clauses(numbers, top, hard)
    return _model(numbers, first, last, weight, n, inner)


def read_wcnf(source: Source) -> Model:
    """Model from a WCNF file."""
    return parse_wcnf(load(source))


def _header(content: Content, text: bytes) -> tuple[int | None, float | None, int]:
    """Variables, the weight of hard clauses (None: they are marked), and where clauses begin."""
    head = _HEAD.search(text[: 1 << 20])
    if head is None:
        return None, None, 0
    line = text.count(b"\n", 0, head.start()) + 1
    words = head[2].split()
    sound = all(re.fullmatch(rb"\d{1,30}", w) for w in words) and 2 <= len(words) <= 3
    if head[1] != b"wcnf" or not sound:
        expected = "'p wcnf variables clauses top'"
        message = f"expected {expected}, found {quote(head.group().strip())}"
        raise FormatError(message, content.name, line, expected=expected)
    top = float(int(words[2])) if len(words) == 3 else np.inf
    return int(words[0]), top, head.end()


def _clauses(numbers: Numbers, top: float | None, hard: int) -> tuple[Ints, Ints, Costs]:
    """Where the literals of each clause begin and end, and its weight."""
    values = numbers.values
    last = np.flatnonzero(values == 0)
    if len(values) and (not len(last) or last[-1] != len(values) - 1):
        raise numbers.fail(len(values), "0 at the end of a clause")
    begin = np.append(0, last[:-1] + 1) if len(last) else last
    if (empty := begin == last).any():
        raise numbers.fail(int(begin[np.argmax(empty)]), "the weight of a clause (more than 0)")
    weight = values[begin]
    if top is None:
        marked = weight == -1.0
        if np.count_nonzero(marked) != hard:
            raise numbers.fail(int(begin[np.argmax(weight <= 0)]), "weights, or h, before clauses")
        weight[marked] = np.inf
    else:
        weight[weight >= top] = np.inf
    if (bad := ~(weight > 0)).any():
        raise numbers.fail(int(begin[np.argmax(bad)]), "the weight of a clause (more than 0)")
    return begin + 1, last, weight


def _model(
    numbers: Numbers, first: Ints, last: Ints, weight: Costs, n: int | None, content: Content
) -> Model:
    values, most = numbers.values, 2**31 - 1 if n is None else n
    values[first - 1] = 0.0  # weights, which are known by now
    sound = max(values.max(initial=0.0), -values.min(initial=0.0)) <= most
    whole: Ints = values.astype(np.int64) if sound else np.zeros(0, np.int64)
    good = whole == values if sound else np.abs(values) <= most
    if not good.all():
        limit = "" if n is None else f" (at most {n})"
        raise numbers.fail(int(np.argmin(good)), f"the number of a variable{limit}")
    if n is None:
        n = int(max(whole.max(initial=0), -whole.min(initial=0)))
    if n < 1:
        raise FormatError("expected at least one variable", content.name)
    content.release()
    found = Conjunctions(n, content)
    size = last - first
    for k in np.unique(size).tolist():
        which = np.flatnonzero(size == k)
        literals = whole[first[which][:, None] + np.arange(k)]
        found.add(-literals, weight[which])  # a clause fails where all its literals do
    return found.model()


def write_wcnf(model: Model, target: Source, *, scale: float = 1.0) -> None:
    """Write a WCNF file; costs times `scale` must be whole numbers."""
    write_text(target, format_wcnf(model, scale=scale))


def format_wcnf(model: Model, *, scale: float = 1.0) -> Iterator[str]:
    """Text of a WCNF file (with `h`), in pieces: a clause for each entry of each table.

    Variables must have two labels each. Tables are shifted to start at zero; their sum becomes two
    clauses of which one always fails, and must not be negative.
    """
    scale = scale_factor(scale)
    factors = factors_of(checked_model(model), zeros=False)
    if (model.num_labels[: model.num_variables] != 2).any():
        raise ModelError("WCNF holds variables with two labels only")
    rest = factors.constant * scale
    lines = []
    for scope, table in zip(factors.scopes, factors.tables, strict=True):
        costs = table * scale
        least = min(0.0, float(costs.min()))
        rest += least
        for place in np.argwhere(costs != least).tolist():
            cost = float(costs[tuple(place)]) - least
            literals = [-(i + 1) if x else i + 1 for i, x in zip(scope, place, strict=True)]
            lines.append(_clause(cost, literals))
    if rest < 0:
        raise ModelError(f"WCNF holds no negative costs, but the least possible sum is {rest:g}")
    yield f"c softmap: {model.num_variables} variables\n"
    lines += [_clause(rest, [1]), _clause(rest, [-1])] if rest else []
    n = model.num_variables
    yield f"h {n} -{n} 0\n"  # says how many variables there are
    yield from lines


def _clause(cost: float, literals: list[int]) -> str:
    if cost != np.inf and (cost != round(cost) or cost > LARGEST):
        raise ModelError(
            f"WCNF holds whole weights up to 2^53, not {cost:g}: give a scale that makes them "
            "whole, or choose .cfn or .uai.LG"
        )
    weight = "h" if cost == np.inf else str(int(cost))
    return f"{weight} {' '.join(map(str, literals))} 0\n"

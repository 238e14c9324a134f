"""Quadratic problems as lists `i j w`: `.qpbo`, `.qubo`, coordinates (`.coo`), cuts (`.mc`)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from softmap.errors import FormatError, ModelError
from softmap.io.assembly import Costs, Ints
from softmap.io.atomic import write_text
from softmap.io.quadratic import quadratic_model, quadratic_of, written
from softmap.io.streams import Content, Source, load, open_content
from softmap.io.tokens import Numbers, skip_comments
from softmap.model import Model

__all__ = [
    "format_coo", "format_maxcut", "format_qpbo", "format_qubo",
    "parse_coo", "parse_maxcut", "parse_qpbo", "parse_qubo",
    "read_coo", "read_maxcut", "read_qpbo", "read_qubo",
    "write_coo", "write_maxcut", "write_qpbo", "write_qubo",
]  # fmt: skip

_MOST = 2**31 - 1
_QUBO = re.compile(
    rb"(?m)^[ \t]*p[ \t]+qubo[ \t]+\S+[ \t]+(\d{1,10})[ \t]+(\d{1,15})[ \t]+(\d{1,15})"
)
_OFFSET = re.compile(rb"(?m)^(?:c|#)[ \t]*offset=(\S{1,40})[ \t\r]*$")
_VARTYPE = re.compile(rb"(?m)^#[ \t]*vartype[ \t]*=[ \t]*(\S{1,40})")


def _triples(numbers: Numbers, count: int, n: int, base: int) -> tuple[Ints, Costs]:
    """`count` rows `i j w`: pairs numbered from 0, and weights."""
    if 3 * count > numbers.left:
        raise numbers.fail(len(numbers), f"{count} lines 'i j w'")
    rows = numbers.values[numbers.at : numbers.at + 3 * count].reshape(count, 3)
    ends = rows[:, :2]
    good = (ends >= base) & (ends < n + base) & (ends == np.floor(ends))
    if not good.all():
        bad = int(np.argmin(good.ravel()))
        place = numbers.at + 3 * (bad // 2) + bad % 2
        raise numbers.fail(place, f"a variable {base} to {n - 1 + base}")
    numbers.at += 3 * count
    return ends.astype(np.int64) - base, rows[:, 2].copy()


def parse_qpbo(data: bytes | Content) -> Model:
    """Model from the text of a `.qpbo` file: `N M`, then |M| lines `i j w` from variable 1 on.

    Each line stands for both entries of a symmetric matrix: off the diagonal, w counts twice.
    N < 0: the values are 1 (label 0) and -1 (label 1). M < 0: the sum is maximised, so that
    energies have the other sign.
    """
    numbers = Numbers(open_content(data))
    n = numbers.whole("the number of variables (negative: of spins)", -_MOST, _MOST)
    if n == 0:
        raise numbers.fail(0, "at least one variable")
    m = numbers.whole("the number of lines (negative: maximise)", -(2**53))
    pairs, weight = _triples(numbers, abs(m), abs(n), 1)
    numbers.finish("the last line")
    with np.errstate(over="ignore"):  # what is too large is refused with the model's other costs
        weight[pairs[:, 0] != pairs[:, 1]] *= 2.0
    return quadratic_model(
        abs(n), pairs, weight if m >= 0 else -weight, numbers.content, spins=n < 0
    )


def parse_qubo(data: bytes | Content) -> Model:
    """Model from the text of a `.qubo` file: `p qubo 0 n diagonals pairs`, then lines `i j w`.

    A comment `c offset=w` is a constant.
    """
    content = open_content(data)
    head = _QUBO.search(content.data)
    if head is None:
        expected = "a line 'p qubo topology nodes diagonals pairs'"
        raise FormatError(f"expected {expected}, found none", content.name, expected=expected)
    offset = _offset(content)
    body = b" " * 8 + content.data[head.end() :]
    lines = content.data.count(b"\n", 0, head.end())
    inner = Content(b"\n" * lines + skip_comments(body), content.name)
    inner.size = content.size
    numbers = Numbers(inner)
    n, diagonals, count = (int(x) for x in head.groups())
    if not 1 <= n <= _MOST:
        raise FormatError(f"expected at least one node, found {n}", content.name, lines + 1)
    pairs, weight = _triples(numbers, diagonals + count, n, 0)
    numbers.finish("the last line")
    return _plus(quadratic_model(n, pairs, weight, inner), offset)


def parse_coo(data: bytes | Content) -> Model:
    """Model from lines `i j w` (coordinates of a matrix, from variable 0 on).

    A comment `# vartype=SPIN` says that the values are -1 (label 0) and 1 (label 1), where `i i w`
    is a linear term; a comment `# offset=w` is a constant.
    """
    content = open_content(data)
    kind = _VARTYPE.search(content.data)
    name = kind[1].upper() if kind else b"BINARY"
    if name not in (b"BINARY", b"SPIN"):
        raise FormatError("expected vartype BINARY or SPIN", content.name, expected="a vartype")
    offset = _offset(content)
    content.data = skip_comments(content.data)
    numbers = Numbers(content)
    if len(numbers) % 3 or not len(numbers):
        raise numbers.fail(len(numbers), "lines 'i j w'")
    ends = numbers.values.reshape(-1, 3)[:, :2]
    largest = ends.max()
    n = int(largest) + 1 if 0 <= largest < _MOST else _MOST
    pairs, weight = _triples(numbers, len(numbers) // 3, n, 0)
    if name == b"BINARY":
        return _plus(quadratic_model(n, pairs, weight, content), offset)
    own = pairs[:, 0] == pairs[:, 1]
    model = quadratic_model(n, pairs[~own], weight[~own], content, spins=True)  # refuses absurd n
    fields = np.bincount(pairs[own, 0], weight[own], n)
    unary = np.column_stack([-fields, fields])
    return _plus(model.replace(unary=unary), offset)


def parse_maxcut(data: bytes | Content) -> Model:
    """Model from the text of a `.mc` or `.rud` file: `n m`, then m lines `i j w` or `i j`.

    The largest cut has the least energy: minus the weights between different labels.
    """
    numbers = Numbers(open_content(data))
    n = numbers.whole("the number of nodes", 1, _MOST)
    m = numbers.whole("the number of edges")
    if numbers.left == 2 * m and m:
        rows = np.ones((m, 3))
        rows[:, :2] = numbers.values[numbers.at :].reshape(m, 2)
        numbers.values = np.concatenate([numbers.values[: numbers.at], rows.ravel()])
    pairs, weight = _triples(numbers, m, n, 1)
    numbers.finish("the last edge")
    loops = pairs[:, 0] == pairs[:, 1]  # never cut
    content = numbers.content
    # w [x ≠ y] = w/2 - (w/2) s t for spins s, t
    model = quadratic_model(n, pairs[~loops], weight[~loops] / 2, content, spins=True)
    return model.replace(constant=0.0)


def _offset(content: Content) -> float:
    found = _OFFSET.search(content.data)
    try:
        value = float(found[1]) if found else 0.0
    except ValueError:
        value = np.nan
    if not abs(value) <= 1e300:
        line = content.data.count(b"\n", 0, found.start()) + 1 if found else None
        raise FormatError("expected a number after 'offset='", content.name, line)
    return value


def _plus(model: Model, offset: float) -> Model:
    return model.replace(constant=model.constant + offset) if offset else model


def read_qpbo(source: Source) -> Model:
    """Model from a `.qpbo` file."""
    return parse_qpbo(load(source))


def read_qubo(source: Source) -> Model:
    """Model from a `.qubo` file."""
    return parse_qubo(load(source))


def read_coo(source: Source) -> Model:
    """Model from a file of coordinates."""
    return parse_coo(load(source))


def read_maxcut(source: Source) -> Model:
    """Model from a `.mc` or `.rud` file."""
    return parse_maxcut(load(source))


def _rows(pairs: Ints, weight: Costs, base: int) -> Iterator[str]:
    for (i, j), w in zip(pairs.tolist(), weight.tolist(), strict=True):
        yield f"{i + base} {j + base} {written(w)}\n"


def _parts(model: Model, form: str) -> tuple[Ints, Costs, Ints, Costs, float]:
    """Diagonal and pairs, of which the last variable is always named."""
    found = quadratic_of(model, form)
    kept = found.linear != 0
    kept[-1] |= form == "COO"
    own = np.flatnonzero(kept)
    diagonal = np.column_stack([own, own])
    return diagonal, found.linear[own], found.pairs, found.weight, found.constant


def _require_no_constant(constant: float, form: str, drop: object) -> None:
    if constant and not drop:
        raise ModelError(
            f"{form} has no constant, but this model needs {constant:g}: "
            "write with drop_constant=True, or choose .qubo or .coo"
        )


def write_qpbo(model: Model, target: Source, *, drop_constant: bool = False) -> None:
    """Write a `.qpbo` file; a constant is refused, or dropped if asked for."""
    write_text(target, format_qpbo(model, drop_constant=drop_constant))


def format_qpbo(model: Model, *, drop_constant: bool = False) -> Iterator[str]:
    """Text of a `.qpbo` file, in pieces."""
    own, linear, pairs, weight, constant = _parts(model, "QPBO")
    _require_no_constant(constant, "QPBO", drop_constant)
    yield f"{model.n} {len(own) + len(pairs)}\n"
    yield from _rows(own, linear, 1)
    yield from _rows(pairs, weight / 2, 1)


def write_qubo(model: Model, target: Source) -> None:
    """Write a `.qubo` file; a constant becomes a comment that `read` understands."""
    write_text(target, format_qubo(model))


def format_qubo(model: Model) -> Iterator[str]:
    """Text of a `.qubo` file, in pieces."""
    own, linear, pairs, weight, constant = _parts(model, "QUBO")
    if constant:
        yield f"c offset={written(constant)}\n"
    yield f"p qubo 0 {model.n} {len(own)} {len(pairs)}\n"
    yield from _rows(own, linear, 0)
    yield from _rows(pairs, weight, 0)


def write_coo(model: Model, target: Source) -> None:
    """Write coordinates; a constant becomes a comment that `read` understands."""
    write_text(target, format_coo(model))


def format_coo(model: Model) -> Iterator[str]:
    """Text of a file of coordinates, in pieces."""
    own, linear, pairs, weight, constant = _parts(model, "COO")
    yield "# vartype=BINARY\n"
    if constant:
        yield f"# offset={written(constant)}\n"
    yield from _rows(own, linear, 0)
    yield from _rows(pairs, weight, 0)


def write_maxcut(model: Model, target: Source, *, drop_constant: bool = False) -> None:
    """Write a `.mc` file; the costs must be of pairs that differ, or agree, only."""
    write_text(target, format_maxcut(model, drop_constant=drop_constant))


def format_maxcut(model: Model, *, drop_constant: bool = False) -> Iterator[str]:
    """Text of a `.mc` file, in pieces."""
    found = quadratic_of(model, "MaxCut")
    halves = np.bincount(found.pairs.ravel(), np.repeat(found.weight, 2), model.n) / 2
    scale = np.abs(found.weight).max(initial=1.0)
    if (np.abs(found.linear + halves) > 1e-9 * scale).any():
        raise ModelError("MaxCut holds costs of pairs that differ only, no costs of single labels")
    _require_no_constant(found.constant, "MaxCut", drop_constant)
    yield f"{model.n} {len(found.pairs)}\n"
    yield from _rows(found.pairs, found.weight / 2, 1)

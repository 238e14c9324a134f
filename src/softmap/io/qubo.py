"""Quadratic problems as lists `i j w`: `.qpbo`, `.qubo`, coordinates (`.coo`), cuts (`.mc`).

They are quadratic functions of variables with two labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from softmap.errors import ModelError
from softmap.io.factors import require_binary, require_pairwise
from softmap.io.limits import LIMITS
from softmap.io.streams import Content
from softmap.io.tokens import LARGEST, Numbers, skip_comments
from softmap.model import Model, Network
from softmap.model.potentials.base import Costs, Ints
from softmap.model.quadratic import merged, quadratic_parts


@dataclass(frozen=True)
class Quadratic:
    """The function `constant + Σ linear[i] x_i + Σ weight[k] x_i x_j` of labels x in {0, 1}."""

    linear: Costs
    pairs: Ints
    weight: Costs
    constant: float = 0.0


def _quadratic_model(
    n: int, pairs: Ints, weight: Costs, content: Content, *, spins: bool = False
) -> Model:
    """Return the model that minimises the sum of `weight[k] v_i v_j` over all pairs.

    Pairs may repeat, and i may equal j. The values v are the labels 0 and 1, or, for `spins`, 1
    (label 0) and -1 (label 1).
    """
    content.reserve(2 * n + LIMITS.quadratic_edge * len(weight))
    if np.isnan(weight).any() or np.isinf(weight).any():
        raise content.error("finite weights")
    content.check(np.abs(weight))
    content.release()
    values = (1.0, -1.0) if spins else (0.0, 1.0)
    unary, groups, constant = quadratic_parts(np.zeros(n), pairs, weight, values)
    return Model(unary, None, groups, constant=constant)


def quadratic_of(model: Network, form: str) -> Quadratic:
    """Return the quadratic function of a model with two labels and finite pairwise costs."""
    require_pairwise(model, form)
    require_binary(model, form)
    unary = model.unary.reshape(-1, 2)
    tables = [p.stack(np.arange(len(p)), 2, 2) for p in model.potentials]
    stacked = np.concatenate([np.zeros((0, 2, 2)), *tables])
    if not (np.isfinite(unary).all() and np.isfinite(stacked).all()):
        raise ModelError(f"{form} holds finite costs only, no hard constraints")
    linear = unary[:, 1] - unary[:, 0]
    ends = model.edges.astype(np.int64)
    linear += np.bincount(ends[:, 0], stacked[:, 1, 0] - stacked[:, 0, 0], model.n)
    linear += np.bincount(ends[:, 1], stacked[:, 0, 1] - stacked[:, 0, 0], model.n)
    both = stacked[:, 0, 0] + stacked[:, 1, 1] - stacked[:, 0, 1] - stacked[:, 1, 0]
    pairs, weight = merged(model.n, ends[:, 0], ends[:, 1], both)
    constant = model.constant + float(unary[:, 0].sum() + stacked[:, 0, 0].sum())
    return Quadratic(linear, pairs, weight, constant)


def _written(value: float) -> str:
    """Return a number as round-trip text; integers have no decimal point."""
    return str(int(value)) if value == int(value) and abs(value) < LARGEST else repr(value)


# --- the formats --------------------------------------------------------------------------------


_QUBO = re.compile(
    rb"(?m)^[ \t]*p[ \t]+qubo[ \t]+\S+[ \t]+(\d{1,10})[ \t]+(\d{1,15})[ \t]+(\d{1,15})"
)
_OFFSET = re.compile(rb"(?m)^(?:c|#)[ \t]*offset=(\S{1,40})[ \t\r]*$")
_VARTYPE = re.compile(rb"(?m)^#[ \t]*vartype[ \t]*=[ \t]*(\S{1,40})")


def _triples(numbers: Numbers, count: int, n: int, base: int) -> tuple[Ints, Costs]:
    """Read `count` rows `i j w`; return pairs numbered from 0, and weights."""
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


def parse_qpbo(content: Content) -> Model:
    """Return the model of a `.qpbo` file: `N M`, then |M| lines `i j w`; variables start at 1.

    Each line is both entries of a symmetric matrix: off the diagonal, w counts twice. If N < 0, the
    values are 1 (label 0) and -1 (label 1). If M < 0, the sum is maximised, and energies have the
    opposite sign.
    """
    numbers = Numbers(content)
    n = numbers.whole("the number of variables (negative: of spins)", 1 - 2**31, 2**31 - 1)
    if n == 0:
        raise numbers.fail(0, "at least one variable")
    m = numbers.whole("the number of lines (negative: maximise)", -(2**53))
    pairs, weight = _triples(numbers, abs(m), abs(n), 1)
    numbers.finish("the last line")
    with np.errstate(over="ignore"):  # too large weights are rejected with the model's costs
        weight[pairs[:, 0] != pairs[:, 1]] *= 2.0
    return _quadratic_model(
        abs(n), pairs, weight if m >= 0 else -weight, numbers.content, spins=n < 0
    )


def parse_qubo(content: Content) -> Model:
    """Return the model of a `.qubo` file: `p qubo 0 n diagonals pairs`, then lines `i j w`.

    A comment `c offset=w` is a constant.
    """
    head = _QUBO.search(content.data)
    if head is None:
        raise content.error("a line 'p qubo topology nodes diagonals pairs'", "none")
    offset = _offset(content)
    body = b" " * 8 + content.data[head.end() :]
    lines = content.data.count(b"\n", 0, head.end())
    inner = content.replaced(b"\n" * lines + skip_comments(body))
    numbers = Numbers(inner)
    n, diagonals, count = (int(x) for x in head.groups())
    if not 1 <= n < 2**31:
        raise content.error("at least one node", n, lines + 1)
    pairs, weight = _triples(numbers, diagonals + count, n, 0)
    numbers.finish("the last line")
    return _plus(_quadratic_model(n, pairs, weight, inner), offset)


def parse_coo(content: Content) -> Model:
    """Return the model of lines `i j w` (coordinates of a matrix; variables start at 0).

    With a comment `# vartype=SPIN` the values are -1 (label 0) and 1 (label 1), and `i i w` is a
    linear term. A comment `# offset=w` is a constant.
    """
    kind = _VARTYPE.search(content.data)
    name = kind[1].upper() if kind else b"BINARY"
    if name not in (b"BINARY", b"SPIN"):
        raise content.error("vartype BINARY or SPIN")
    offset = _offset(content)
    content.data = skip_comments(content.data)
    numbers = Numbers(content)
    if len(numbers) % 3 or not len(numbers):
        raise numbers.fail(len(numbers), "lines 'i j w'")
    ends = numbers.values.reshape(-1, 3)[:, :2]
    largest = ends.max()
    n = int(largest) + 1 if 0 <= largest < 2**31 - 1 else 2**31 - 1
    pairs, weight = _triples(numbers, len(numbers) // 3, n, 0)
    if name == b"BINARY":
        return _plus(_quadratic_model(n, pairs, weight, content), offset)
    own = pairs[:, 0] == pairs[:, 1]
    model = _quadratic_model(n, pairs[~own], weight[~own], content, spins=True)  # checks n, too
    fields = np.bincount(pairs[own, 0], weight[own], n)
    unary = np.column_stack([-fields, fields])
    return _plus(model.replace(unary=unary), offset)


def parse_maxcut(content: Content) -> Model:
    """Return the model of a `.mc` or `.rud` file: `n m`, then m lines `i j w` or `i j`.

    The energy is minus the weight of the cut, so that the maximum cut has the lowest energy.
    """
    numbers = Numbers(content)
    n = numbers.whole("the number of nodes", 1, 2**31 - 1)
    m = numbers.whole("the number of edges")
    if numbers.left == 2 * m and m:
        rows = np.ones((m, 3))
        rows[:, :2] = numbers.values[numbers.at :].reshape(m, 2)
        numbers.values = np.concatenate([numbers.values[: numbers.at], rows.ravel()])
    pairs, weight = _triples(numbers, m, n, 1)
    numbers.finish("the last edge")
    loops = pairs[:, 0] == pairs[:, 1]  # a loop is never cut
    content = numbers.content
    # w [x ≠ y] = w/2 - (w/2) s t for spins s, t
    model = _quadratic_model(n, pairs[~loops], weight[~loops] / 2, content, spins=True)
    return model.replace(constant=0.0)


def _offset(content: Content) -> float:
    found = _OFFSET.search(content.data)
    try:
        value = float(found[1]) if found else 0.0
    except ValueError:
        value = np.nan
    if not abs(value) <= 1e300:
        line = content.data.count(b"\n", 0, found.start()) + 1 if found else None
        raise content.error("a number after 'offset='", line=line)
    return value


def _plus(model: Model, offset: float) -> Model:
    return model.replace(constant=model.constant + offset) if offset else model


def _rows(pairs: Ints, weight: Costs, base: int) -> Iterator[str]:
    for (i, j), w in zip(pairs.tolist(), weight.tolist(), strict=True):
        yield f"{i + base} {j + base} {_written(w)}\n"


def _parts(model: Network, form: str) -> tuple[Ints, Costs, Ints, Costs, float]:
    """Return diagonal and pairs; in COO the last variable always occurs, to declare the size."""
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


def format_qpbo(model: Network, *, drop_constant: bool = False) -> Iterator[str]:
    """Yield the text of a `.qpbo` file, in pieces."""
    own, linear, pairs, weight, constant = _parts(model, "QPBO")
    _require_no_constant(constant, "QPBO", drop_constant)
    yield f"{model.n} {len(own) + len(pairs)}\n"
    yield from _rows(own, linear, 1)
    yield from _rows(pairs, weight / 2, 1)


def format_qubo(model: Network) -> Iterator[str]:
    """Yield the text of a `.qubo` file, in pieces."""
    own, linear, pairs, weight, constant = _parts(model, "QUBO")
    if constant:
        yield f"c offset={_written(constant)}\n"
    yield f"p qubo 0 {model.n} {len(own)} {len(pairs)}\n"
    yield from _rows(own, linear, 0)
    yield from _rows(pairs, weight, 0)


def format_coo(model: Network) -> Iterator[str]:
    """Yield the text of a `.coo` file, in pieces."""
    own, linear, pairs, weight, constant = _parts(model, "COO")
    yield "# vartype=BINARY\n"
    if constant:
        yield f"# offset={_written(constant)}\n"
    yield from _rows(own, linear, 0)
    yield from _rows(pairs, weight, 0)


def format_maxcut(model: Network, *, drop_constant: bool = False) -> Iterator[str]:
    """Yield the text of a `.mc` file, in pieces."""
    found = quadratic_of(model, "MaxCut")
    halves = np.bincount(found.pairs.ravel(), np.repeat(found.weight, 2), model.n) / 2
    scale = np.abs(found.weight).max(initial=1.0)
    if (np.abs(found.linear + halves) > 1e-9 * scale).any():
        raise ModelError("MaxCut holds costs of pairs that differ only, no costs of single labels")
    _require_no_constant(found.constant, "MaxCut", drop_constant)
    yield f"{model.n} {len(found.pairs)}\n"
    yield from _rows(found.pairs, found.weight / 2, 1)

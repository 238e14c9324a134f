"""UAI: `MARKOV` and `BAYES` networks as potentials, as logarithms (`.LG`), or as costs."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Literal

import numpy as np

from softmap.errors import ModelError, OptionError, shown
from softmap.io.factors import Factors, factors_of
from softmap.io.limits import LIMITS
from softmap.io.streams import Content
from softmap.io.tokens import Numbers, gather, quote, skip_comments
from softmap.model import Model, Network
from softmap.model.factors import Assembly
from softmap.model.model import assembled
from softmap.model.potentials.base import LARGEST_COST, Costs, Ints, beyond, largest
from softmap.model.tables import SIZES

Values = Literal["potential", "log", "cost"]
_HEADER = re.compile(rb"\s*(\S+)")


def parse_uai(content: Content, *, values: Values = "potential") -> Model:
    """Return the model of a UAI file.

    Parameters
    ----------
    content : Content
        The file.
    values : {"potential", "log", "cost"}, default "potential"
        Meaning of the tables: potentials (cost = -log), their logarithms, or costs.
    """
    _check_values(values)
    content.data = skip_comments(content.data)
    header = _HEADER.match(content.data)
    if header is None or header[1].upper() not in (b"MARKOV", b"BAYES"):
        found = "the end of the file" if header is None else quote(header[1])
        raise content.error("MARKOV or BAYES", found, 1)
    numbers = Numbers(content, header.end())
    num_labels, scopes, arity = _preamble(numbers)
    start, size = _tables(numbers, num_labels, scopes, arity)
    _to_costs(numbers, int(start[0]) if len(start) else len(numbers), values)
    content.release()
    return _assemble(numbers.values, num_labels, _Layout(scopes, arity, start, size), content)


def _check_values(values: object) -> None:
    """Raise `OptionError` unless `values` is a valid option."""
    if not isinstance(values, str) or values not in ("potential", "log", "cost"):
        raise OptionError(f"values must be 'potential', 'log' or 'cost', not {shown(values)}")


class _Layout:
    """The positions of the factors' scopes and tables in the array of numbers."""

    def __init__(self, scopes: Ints, arity: Ints, start: Ints, size: Ints) -> None:
        self.scopes, self.arity, self.start, self.size = scopes, arity, start, size
        self.scope_start = np.cumsum(arity) - arity

    def scope(self, which: Ints, arity: int) -> Ints:
        """Return the scopes of factors of one arity, one row each."""
        rows: Ints = self.scopes[self.scope_start[which][:, None] + np.arange(arity)]
        return rows


def _preamble(numbers: Numbers) -> tuple[Ints, Ints, Ints]:
    """Return the label counts, all scopes concatenated, and the arities."""
    n = numbers.whole("the number of variables", 1, 2**31 - 1)
    num_labels = numbers.wholes(n, "label counts", 1)
    total = sum(num_labels.tolist()) if n < 4096 else float(num_labels.sum(dtype=np.float64))
    numbers.content.reserve(int(total), numbers.line(1))
    m = numbers.whole("the number of factors", 0)
    if m > numbers.left:
        raise numbers.fail(len(numbers), f"{m} factors (only {numbers.left} numbers are left)")
    begin = numbers.at
    arity = _arities(numbers, m, n)
    heads = begin + np.cumsum(arity + 1) - (arity + 1)
    numbers.at = begin
    block = numbers.wholes(int(arity.sum()) + m, "variables of a scope", 0)
    scopes = np.delete(block, heads - begin)
    if (bad := scopes >= n).any():
        place = np.delete(np.arange(begin, numbers.at), heads - begin)[np.argmax(bad)]
        raise numbers.fail(int(place), f"a variable of a scope (0 to {n - 1})")
    _reject_repeats(numbers, scopes, arity, heads)
    return num_labels, scopes, arity


def _arities(numbers: Numbers, m: int, n: int) -> Ints:
    """Return the arity of each factor, which is the first number of its scope."""
    values = numbers.values.data
    at, end = numbers.at, len(numbers)
    arity = np.zeros(m, dtype=np.int64)
    for f in range(m):
        if at >= end or not (0 <= (k := values[at]) <= n and k == int(k)):
            raise numbers.fail(at, f"the number of variables of factor {f} (0 to {n})")
        arity[f] = k
        at += 1 + int(k)
    if at > end:
        raise numbers.fail(end, f"the scope of factor {m - 1}")
    return arity


def _reject_repeats(numbers: Numbers, scopes: Ints, arity: Ints, heads: Ints) -> None:
    layout = _Layout(scopes, arity, heads, arity)
    for k in sorted(set(arity[arity > 1].tolist())):
        which = np.flatnonzero(arity == k)
        ordered = np.sort(layout.scope(which, k), axis=1)
        twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
        if twice.any():
            place = int(heads[which[np.argmax(twice)]])
            raise numbers.fail(place, "a scope that names no variable twice, of arity")


def _tables(numbers: Numbers, num_labels: Ints, scopes: Ints, arity: Ints) -> tuple[Ints, Ints]:
    """Return the start and the number of entries of each table."""
    m = len(arity)
    logs = np.add.reduceat(np.append(np.log2(num_labels[scopes]), 0.0), _starts(arity))
    logs[arity == 0] = 0.0
    if m and logs.max() > np.log2(len(numbers)) + 0.5:
        f = int(np.argmax(logs))
        raise numbers.fail(len(numbers), f"the {2.0 ** logs[f]:.6g} entries of table {f}")
    size = np.multiply.reduceat(np.append(num_labels[scopes], 1), _starts(arity))
    size[arity == 0] = 1
    last = numbers.at + np.cumsum(size + 1)
    start = last - size
    bad = np.flatnonzero(start - 1 >= len(numbers))
    known = start[: bad[0]] if len(bad) else start
    wrong = numbers.values[known - 1] != size[: len(known)]
    if wrong.any():
        f = int(np.argmax(wrong))
        raise numbers.fail(int(start[f]) - 1, f"{size[f]}, the number of entries of table {f}")
    if m and last[-1] > len(numbers):
        f = int(np.argmax(last > len(numbers)))
        raise numbers.fail(len(numbers), f"the {size[f]} entries of table {f}")
    numbers.at = int(last[-1]) if m else numbers.at
    numbers.finish("the last table")
    return start, size


def _starts(arity: Ints) -> Ints:
    starts: Ints = np.cumsum(arity) - arity
    return starts


def _to_costs(numbers: Numbers, begin: int, values: Values) -> None:
    """Convert the tables to costs, in place (counts in between are overwritten)."""
    part = numbers.values[begin:]
    if not part.size:
        return
    low, high = part.min(), part.max()
    least = 0.0 if values == "potential" else -np.inf
    expected = {
        "potential": "a potential (finite, not negative; see values='log' or 'cost')",
        "log": "a logarithm of a potential (a number or -inf)",
        "cost": "a cost (a number or inf)",
    }[values]
    if np.isnan(low) or low < least or (high if values != "cost" else -low) == np.inf:
        wrong = np.isnan(part) | (part < least)
        wrong |= part == (-np.inf if values == "cost" else np.inf)
        raise numbers.fail(begin + int(np.argmax(wrong)), expected)
    if values == "potential":
        small, logs = numbers.small_logs(begin)
        if np.isnan(logs).any():
            raise numbers.fail(int(small[np.argmax(np.isnan(logs))]), expected)
        with np.errstate(divide="ignore"):
            np.log(part, out=part)
        numbers.values[small] = logs
    if values != "cost":
        np.subtract(0.0, part, out=part)
    if largest(part) > LARGEST_COST:
        place = begin + int(np.argmax(beyond(part)))
        raise numbers.fail(place, f"a cost within ±{LARGEST_COST:g}")


def _assemble(costs: Costs, num_labels: Ints, layout: _Layout, content: Content) -> Model:
    assembly = Assembly(num_labels)
    for f in np.flatnonzero(layout.arity == 0):
        assembly.add_constant(costs[layout.start[f]])
    for d, which in _by(layout.size, np.flatnonzero(layout.arity == 1)):
        assembly.add_unaries(layout.scope(which, 1)[:, 0], gather(costs, layout.start[which], d))
    _add_pairs(assembly, costs, layout)
    for f in np.flatnonzero(layout.arity > 2):
        k = int(layout.arity[f])
        content.check_arity(k)
        scope = layout.scope(np.array([f]), k)[0]
        part = costs[layout.start[f] : layout.start[f] + layout.size[f]]
        assembly.add_factor(scope.tolist(), part.reshape(num_labels[scope]))
    return assembled(assembly.pieces())


def _add_pairs(assembly: Assembly, costs: Costs, layout: _Layout) -> None:
    pairs = np.flatnonzero(layout.arity == 2)
    edges = layout.scope(pairs, 2)
    shapes = assembly.num_labels[edges]
    code = shapes[:, 0] * (1 << 31) + shapes[:, 1]
    batches = list(_by(code, np.arange(len(pairs))))
    if len(batches) <= SIZES.uniform_groups:
        for _, which in batches:
            rows, cols = (int(s) for s in shapes[which[0]])
            tables = gather(costs, layout.start[pairs[which]], rows * cols)
            assembly.add_tables(edges[which], tables.reshape(-1, rows, cols))
        return
    places = zip(layout.start[pairs].tolist(), shapes.tolist(), strict=True)
    views = [costs[at : at + r * c].reshape(r, c) for at, (r, c) in places]
    assembly.add_tables(edges, views)


def _by(keys: Ints, which: Ints) -> Iterator[tuple[int, Ints]]:
    """Yield the members of `which` in batches of equal key."""
    for key in sorted(set(keys[which].tolist())):  # np.unique would import masked arrays
        yield key, which[keys[which] == key]


# --- writing ------------------------------------------------------------------------------------


def format_uai(model: Network, *, values: Values = "potential") -> Iterator[str]:
    """Yield the text of a UAI file, in pieces.

    Potentials are exp(-cost). A table whose costs are outside the range of exp is shifted, and the
    shift becomes a factor without variables. Entries that still underflow become zeros, with a
    warning. `ModelError` is raised if the constant would need too many such factors; logarithms and
    costs have no such limit.
    """
    _check_values(values)
    factors = factors_of(model)
    tables = [table.ravel() for table in factors.tables]
    scopes = list(factors.scopes)
    if values == "potential":
        tables, scopes = _potentials(tables, scopes, factors)
    elif factors.constant:
        tables, scopes = [np.array([factors.constant]), *tables], [(), *scopes]
    labels = " ".join(map(str, model.num_labels[: model.num_variables].tolist()))
    yield f"MARKOV\n{model.num_variables}\n{labels}\n{len(scopes)}\n"
    for scope in scopes:
        yield " ".join(map(str, (len(scope), *scope))) + "\n"
    for table in tables:
        out = table if values != "log" else 0.0 - table
        yield f"\n{table.size}\n{' '.join(map(repr, out.tolist()))}\n"


def _potentials(
    tables: list[Costs], scopes: list[tuple[int, ...]], factors: Factors
) -> tuple[list[Costs], list[tuple[int, ...]]]:
    out: list[Costs] = []
    rest, lost = factors.constant, 0
    for table in tables:
        finite = table[np.isfinite(table)]
        shift = 0.0
        if finite.size and np.abs(finite).max() > LIMITS.safe_exponent:
            shift = float(finite.min())
            rest += shift
        exponent = shift - table
        lost += int(((exponent < LIMITS.smallest_exponent) & (exponent > -np.inf)).sum())
        out.append(np.exp(exponent))
    if lost:
        warnings.warn(
            f"{lost} entries underflow as potentials; write logarithms (.LG) to keep them",
            stacklevel=4,
        )
    needed = np.ceil(abs(rest) / LIMITS.safe_exponent)
    if needed > LIMITS.constant_factors + LIMITS.constant_factors_per_table * len(tables):
        raise ModelError(
            f"potentials cannot hold exp({-rest:.6g}), the part of the costs common to all "
            "labellings: write logarithms (.uai.LG), costs (values='cost') or .npz instead"
        )
    pieces = int(needed)
    constant = [np.exp(np.array([-rest / max(pieces, 1)]))] * pieces
    return [*constant, *out], [()] * pieces + scopes

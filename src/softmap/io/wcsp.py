"""WCSP: non-negative integer costs, default cost plus tuples, shared tables, an upper bound.

A global cost function is a word among the numbers, followed by its parameters.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from softmap.errors import FormatError, ModelError
from softmap.io.factors import factors_of
from softmap.io.global_costs import (
    COMPARATORS,
    COMPARISONS,
    GLOBALS,
    METRICS,
    Global,
    add_global,
    fields,
)
from softmap.io.limits import LIMITS
from softmap.io.streams import Content
from softmap.io.tokens import LARGEST, Numbers, quote
from softmap.model import Model, Network
from softmap.model.factors import Assembly
from softmap.model.model import assembled
from softmap.model.potentials.base import Costs, Ints, scale_factor

_NAME = re.compile(rb"\s*(\S+)")


def parse_wcsp(content: Content) -> Model:
    """Return the model of a WCSP file; costs of at least the upper bound are forbidden."""
    name = _NAME.match(content.data)
    if name is None:
        raise content.error("'name variables labels functions upper-bound'", "nothing", 1)
    return _WcspReader(Numbers(_words_as_numbers(content, name.end()), name.end())).model()


class _WcspReader:
    """Reader of the functions of a file."""

    def __init__(self, numbers: Numbers, depth: int = 0) -> None:
        self.numbers, self.depth = numbers, depth
        n = numbers.whole("the number of variables", 1, 2**31 - 1)
        most = numbers.whole("the largest number of labels", 1)
        self.functions = numbers.whole("the number of functions")
        self.top = numbers.whole("the upper bound", 0, 2**200)
        sizes = np.abs(numbers.wholes(n, "domain sizes", -most, most))  # negative for intervals
        if not sizes.all():
            raise numbers.fail(numbers.at - n + int(np.argmin(sizes)), "a domain size (at least 1)")
        self.num_labels: Ints = sizes
        self.sizes: list[int] = sizes.tolist()
        self.whole = numbers.whole_numbers()
        self.content = numbers.content
        self.content.take(int(self.num_labels.sum()))
        self.assembly = Assembly(self.num_labels)
        self.declared: list[Costs] = []

    def model(self) -> Model:
        self._functions()
        self.numbers.finish("the last function")
        self.numbers.content.release()
        return assembled(self.assembly.pieces())

    def functions_of_model(self) -> Model:
        """Return the model of a network inside another, whose numbers go on after it."""
        self._functions()
        return assembled(self.assembly.pieces())

    def _functions(self) -> None:
        if self.functions > self.numbers.left:
            raise self.numbers.fail(len(self.numbers), f"{self.functions} functions")
        for _ in range(self.functions):
            self._function()

    def _function(self) -> None:
        numbers = self.numbers
        n = len(self.num_labels)
        arity = numbers.whole("the arity of a function", -n, n)
        scope = [numbers.whole("a variable of a scope", 0, n - 1) for _ in range(abs(arity))]
        if len(set(scope)) < len(scope):
            raise numbers.fail(numbers.at - 1, "a scope that names no variable twice")
        default = numbers.whole("a default cost, or -1 before a global cost function", -1, 2**200)
        if default == -1:
            self._global(scope)
            return
        count = numbers.whole("the number of tuples", -len(self.declared))
        if count < 0:
            table = self._known(scope, -count)
            self.assembly.add_shared(scope, table)
            return
        table = self._table(scope, float(default), count)
        if arity < 0:
            self.declared.append(table)
            self.assembly.add_shared(scope, table)
        else:
            self.assembly.add_factor(scope, table)

    def _global(self, scope: list[int]) -> None:
        numbers, at = self.numbers, self.numbers.at
        sizes = self._shape(scope)
        name = _peek(numbers)
        if name not in GLOBALS or name == "cfnconstraint":
            raise numbers.fail(at, f"a global cost function ({', '.join(GLOBALS)})")
        if not scope or (name in COMPARISONS and len(scope) != 2):
            raise numbers.fail(at, f"{'two variables' if scope else 'variables'} before {name!r}")
        numbers.at += 1
        found = Global(name, scope, sizes)
        if name == "wcsp":
            for key in ("lb", "ub", "duplicatehard", "strongduality"):
                found.given[key] = numbers.whole(f"{key} of 'wcsp'", 0, 2**200)
            numbers.at += 1  # its name
            if self.depth == LIMITS.list_depth:
                raise numbers.fail(at, f"at most {self.depth} networks inside each other")
            found.model = _WcspReader(numbers, self.depth + 1).functions_of_model()
        else:
            _WcspParameters(numbers, found).read()
        self.content.take(found.size())
        try:
            add_global(found, float(self.top), self.assembly, self.content.take)
        except ModelError as error:
            raise FormatError(str(error), numbers.content.name, numbers.line(at)) from error

    def _shape(self, scope: list[int]) -> tuple[int, ...]:
        return tuple([self.sizes[i] for i in scope])

    def _known(self, scope: list[int], number: int) -> Costs:
        table = self.declared[number - 1]
        if table.shape != self._shape(scope):
            expected = f"a table of shape {self._shape(scope)}"
            found = f"table {number} has shape {table.shape}"
            raise self.numbers.fail(self.numbers.at - 1, f"{expected} ({found})")
        return table

    def _table(self, scope: list[int], default: float, count: int) -> Costs:
        numbers = self.numbers
        if len(scope) > LIMITS.axes:
            numbers.content.check_arity(len(scope), numbers.line(numbers.at - 1))
        shape = self._shape(scope)
        self.content.take(math.prod(shape))
        width = len(shape) + 1
        if count * width > numbers.left:
            raise numbers.fail(len(numbers), f"{count} tuples of {width} numbers")
        begin = numbers.at
        table = np.full(shape, default)
        if shape:
            labels = self.whole[begin : begin + count * width].reshape(count, width)[:, :-1]
            try:
                place = np.ravel_multi_index(tuple(labels.T), shape)
            except ValueError:
                good = (labels >= 0) & (labels < np.array(shape))
                bad = divmod(int(np.argmin(good)), len(shape))
                wrong = begin + bad[0] * width + bad[1]
                raise numbers.fail(wrong, "a label of the scope") from None
            table.reshape(-1)[place] = numbers.values[
                begin + width - 1 : begin + count * width : width
            ]
        elif count:
            table[...] = numbers.values[begin + count - 1]
        if table.size and table.min() < 0:
            costs = numbers.values[begin + width - 1 : begin + count * width : width]
            raise numbers.fail(
                begin + width - 1 + width * int(np.argmax(costs < 0)), "a cost (at least 0)"
            )
        numbers.at += count * width
        table[table >= self.top] = np.inf
        return table


# --- global cost functions ----------------------------------------------------------------------


_FIRST = 1 << 20  # word k is coded as the number -(_FIRST + k)
_WORD = re.compile(rb"(?<![^\s])(?:[A-Za-z][A-Za-z_]*+|[<>=!]=|[<>=])(?![^\s])")
_NESTED = re.compile(rb"(?<![^\s])(wcsp(?:\s+-?\d+){4}\s+)(\S+)")  # the name of an inner network
_GLUED = re.compile(rb"(?<=\d)(?=-1\s+[a-z])")  # toulbar2 reads 29-1 as two numbers
_ONE_LINE = re.compile(rb"(?<![^\s])(?:gcc|alldiff)[ \t][^\n]*")  # may say less than it could
_END = "end-of-line"
_WORDS = (*GLOBALS, *METRICS, *COMPARATORS, _END)
_CODES = {word.encode(): b"%d" % -(_FIRST + k) for k, word in enumerate(_WORDS)}


def _words_as_numbers(content: Content, start: int) -> Content:
    """Replace each known word by a number; raise `FormatError` for other words."""
    if _WORD.search(content.data, start) is None:
        return content

    def coded(match: re.Match[bytes]) -> bytes:
        if match.group() in (b"inf", b"nan", b"infinity"):
            return match.group()
        if match.group() not in _CODES:
            known = ", ".join(GLOBALS)
            message = f"expected a number or one of {known}, found {quote(match.group())}"
            line = text.count(b"\n", 0, match.start()) + content.data.count(b"\n", 0, start) + 1
            raise FormatError(message, content.name, line, expected=known)
        return _CODES[match.group()]

    text = _GLUED.sub(b" ", _NESTED.sub(rb"\g<1>0", content.data[start:]))
    text = _ONE_LINE.sub(lambda match: match.group() + b" " + _CODES[_END.encode()], text)
    return content.replaced(content.data[:start] + _WORD.sub(coded, text))


def _peek(numbers: Numbers) -> str:
    """Return the next word; nothing if the next token is a number."""
    code = -float(numbers.values[numbers.at]) - _FIRST if numbers.left else -1.0
    return _WORDS[int(code)] if 0 <= code < len(_WORDS) else ""  # code may be infinite


class _WcspParameters:
    """Reader of the parameters of a global cost function, in the order of the file."""

    def __init__(self, numbers: Numbers, found: Global) -> None:
        self.numbers, self.found = numbers, found
        self.place = {v: t for t, v in enumerate(found.scope)}

    def read(self) -> None:
        """Read what `PARAMETERS` lists; some functions have an order of their own."""
        found, given = self.found, self.found.given
        if found.name == "ssame":
            given["cost"] = self.item("c")
            counts = [self.count(len(found.scope)) for _ in range(2)]
            for i, count in enumerate(counts):
                given[f"vars{i + 1}"] = [self.item("V") for _ in range(count)]
            return
        while rest := fields(found):
            name, shape = rest[0]
            if name == "terminals":
                self._rules()
            elif name == "deltacosts" and _peek(self.numbers) == _END:
                given[name] = []
            else:
                given[name] = self.value(shape)
        if _peek(self.numbers) == _END:
            self.numbers.at += 1

    def value(self, shape: str) -> Any:
        """Return a parameter of this shape; see `PARAMETERS`."""
        inner = shape[1:-1]
        if shape[0] == "(":
            return [self.value(inner) for _ in self.found.scope]
        if shape[0] == "[":
            return [self.value(inner) for _ in range(self.count(self.numbers.left))]
        row = [self.item(letter) for letter in shape]
        return row if len(row) > 1 else row[0]

    def count(self, most: int) -> int:
        return self.numbers.whole(f"the length of a list of {self.found.name}", 0, most)

    def item(self, letter: str) -> Any:
        numbers, name = self.numbers, self.found.name
        if letter == "k":
            word = _peek(numbers)
            if word not in METRICS and word not in COMPARATORS:
                known = ", ".join((*METRICS, *COMPARATORS))
                raise numbers.fail(numbers.at, f"how {name} is measured ({known})")
            numbers.at += 1
            return word
        if letter == "V":
            place = self.place.get(numbers.whole("a variable of the scope"))
            if place is None:
                raise numbers.fail(numbers.at - 1, "a variable of the scope")
            return place
        if letter == "n":
            return numbers.whole(f"a number of {name}", -(2**40), 2**40)
        if letter == "v":
            return numbers.whole(f"a value of {name}", 0, 2**31 - 1)
        return numbers.whole(f"a cost of {name}", 0 if letter == "c" else -(2**200), 2**200)

    def _rules(self) -> None:
        """Read the rules of a grammar: a kind, symbols, and a weight if the kind is 2 or 3."""
        terminals: list[Any] = []
        others: list[Any] = []
        for _ in range(self.count(self.numbers.left)):
            kind = self.numbers.whole("a kind of rule", 0, 3)
            row = self.value(("nn", "nnn", "nnc", "nnnc")[kind])
            (others if kind % 2 else terminals).append(row)
        self.found.given.update(terminals=terminals, non_terminals=others)


# --- writing ------------------------------------------------------------------------------------


def format_wcsp(model: Network, *, scale: float = 1.0) -> Iterator[str]:
    """Yield the text of a WCSP file, in pieces.

    The format has only non-negative integers. Tables are shifted to a minimum of zero; the sum of
    the shifts becomes a function without variables, which must not be negative.
    """
    scale = scale_factor(scale)
    factors = factors_of(model, zeros=False)
    tables: list[Costs] = []
    rest = factors.constant * scale
    top = 1.0
    for table in factors.tables:
        costs = table * scale
        finite = costs[np.isfinite(costs)]
        least = float(finite.min()) if finite.size else 0.0
        if least < 0:
            costs, rest = costs - least, rest + least
            finite = finite - least
        top += float(finite.max()) if finite.size else 0.0
        tables.append(costs)
    _require_whole([np.array([rest]), *tables], top + rest, scale)
    top += rest
    count = len(tables) + 1
    counts = model.num_labels[: model.num_variables].tolist()
    yield f"softmap {len(counts)} {max(counts)} {count} {int(top)}\n"
    yield " ".join(map(str, counts)) + f"\n0 {int(rest)} 0\n"
    for scope, costs in zip(factors.scopes, tables, strict=True):
        yield _function_text(scope, costs, top)


def _require_whole(tables: list[Costs], top: float, scale: float) -> None:
    for costs in tables:
        finite = costs[np.isfinite(costs)]
        if (broken := finite[np.round(finite) != finite]).size:
            raise ModelError(
                f"WCSP holds whole costs only, not {broken[0]:.10g} (scale {scale:g}): "
                "give a scale that makes all of them whole, or write .cfn or .uai.LG instead"
            )
    if tables[0][0] < 0:
        raise ModelError(
            f"WCSP holds no negative costs, but the least possible sum is {tables[0][0]:g}: "
            "write .cfn or .uai.LG instead"
        )
    if top > LARGEST:
        raise ModelError("the costs are too large for the whole numbers of WCSP")


def _function_text(scope: tuple[int, ...], costs: Costs, top: float) -> str:
    """Return the text of a function: the most frequent cost as default, the others as tuples."""
    whole = np.where(np.isfinite(costs), costs, top).astype(np.int64)
    values, counts = np.unique(whole, return_counts=True)
    default = int(values[np.argmax(counts)])
    where = np.argwhere(whole != default)
    rows = np.column_stack([where, whole[tuple(where.T)]]).tolist()
    head = " ".join(map(str, (len(scope), *scope, default, len(rows))))
    return head + "\n" + "".join(" ".join(map(str, row)) + "\n" for row in rows)

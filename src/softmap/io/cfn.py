"""CFN: cost functions in relaxed JSON, with names, decimals and an upper (or lower) bound.

Global cost functions are given as `type: name, params: {...}`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from softmap.errors import FormatError, ModelError
from softmap.io.factors import factors_of, warn_of_lost_names
from softmap.io.global_costs import (
    COMPARATORS,
    COMPARISONS,
    GLOBALS,
    METRICS,
    PARAMETERS,
    WCSP_ONLY,
    Global,
    add_global,
    fields,
)
from softmap.io.limits import LIMITS
from softmap.io.streams import Content
from softmap.io.tokens import parse_decimals, quote
from softmap.model import Model, Network
from softmap.model.factors import Assembly
from softmap.model.model import assembled
from softmap.model.potentials.base import Costs

_COMMENT = re.compile(rb"(?m)^#[^\n]*|//[^\n]*")
_TOKEN = re.compile(rb"""[\s,:]*(?:"([^"\n]*)"|([\[{])|([\]}])|([^\s,:"\[\]{}]+))""")
_SKIP = re.compile(rb"[\s,:]*")
# name: {scope: [...], costs: [...]}, with names of one word
_PLAIN_FUNCTION = re.compile(
    rb"""[\s,:]*"?([^\s,:"\[\]{}]++)"?[\s,:]*\{[\s,:]*"?scope"?[\s,:]*"""
    rb"""\[((?:\s|,|"[^\s",:]*+"|[^\s,:"\[\]{}])*+)\]"""
    rb"""[\s,:]*"?costs"?[\s,:]*\[([^\[\]{}]*+)\][\s,:]*\}"""
)
_LIST_END = re.compile(rb"[\[\]{}]")
_PLAIN = bytes.maketrans(b',:"', b"   ")
_PAIR = {b"{": b"}", b"[": b"]"}


class Tokens:
    """A cursor over the text; every error names the line."""

    def __init__(self, content: Content) -> None:
        self.content = content
        self.data = content.data
        if b"#" in self.data or b"//" in self.data:
            self.data = _COMMENT.sub(b"", self.data)
        self.at = 0

    def line(self) -> int:
        """The line of the next token."""
        return self.data.count(b"\n", 0, _SKIP.match(self.data, self.at).end()) + 1  # type: ignore[union-attr]

    def error(self, expected: str, found: str | None = None) -> FormatError:
        """Return an error at the cursor; the caller raises it."""
        if found is None:
            match = _TOKEN.match(self.data, self.at)
            found = quote(match.group().strip(b" \t\r\n,:")) if match else "the end of the file"
        else:
            found = quote(found.encode())
        return self.content.error(expected, found, self.line())

    def _next(self, group: int, expected: str) -> bytes:
        match = _TOKEN.match(self.data, self.at)
        if match is None or match[group] is None:
            raise self.error(expected)
        self.at = match.end()
        return match[group]

    def peek(self) -> str | None:
        """Return the next word, or None if the next token is not a word."""
        match = _TOKEN.match(self.data, self.at)
        word = (match[1] if match[1] is not None else match[4]) if match else None
        return None if word is None else word.decode("utf-8", "backslashreplace")

    def text(self, expected: str) -> str:
        """Return the next word, quoted or not."""
        word = self.peek()
        if word is None:
            raise self.error(expected)
        self.at = _TOKEN.match(self.data, self.at).end()  # type: ignore[union-attr]
        return word

    def word(self, expected: str) -> None:
        """Skip this word, or raise an error."""
        if self.peek() != expected:
            raise self.error(f"{expected!r}")
        self.text(expected)

    def number(self, expected: str) -> float:
        """Return the next number."""
        before = self.at
        values = parse_decimals(self.text(expected).encode())
        if values is None or len(values) != 1 or np.isnan(values[0]):
            self.at = before
            raise self.error(expected)
        return float(values[0])

    def after_colon(self) -> bool:
        """Whether the last word was followed by a colon, and so was a name."""
        skipped = _SKIP.match(self.data, self.at)
        return skipped is not None and b":" in skipped.group()

    def at_opening(self) -> bool:
        """Whether the next token is an opening bracket."""
        match = _TOKEN.match(self.data, self.at)
        return match is not None and match[2] is not None

    def opening(self, expected: str) -> bytes:
        """Skip an opening bracket; return the matching closing bracket."""
        return _PAIR[self._next(2, expected)]

    def closes(self, closing: bytes) -> bool:
        """Whether the closing bracket comes next; if so, skip it."""
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
        """Skip the last bracket, which some files lack; nothing may follow it."""
        if self.peek() is not None or self.at_opening():
            raise self.error("'}' at the end")
        match = _TOKEN.match(self.data, self.at)
        self.at = match.end() if match else self.at
        if _SKIP.match(self.data, self.at).end() != len(self.data):  # type: ignore[union-attr]
            raise self.error("the end of the file")

    def _list(self) -> bytes:
        """Return the text inside a flat list."""
        closing = self.opening("'['")
        found = _LIST_END.search(self.data, self.at)
        if found is None or found.group() != closing:
            self.at = found.start() if found else len(self.data)
            raise self.error(f"{closing.decode()!r}")
        inside = self.data[self.at : found.start()]
        self.at = found.end()
        return inside

    def numbers(self, expected: str) -> Costs:
        """Return a flat list of numbers as an array."""
        before = self.at
        values = parse_decimals(self._list().translate(_PLAIN))
        if values is None:
            self.at = before
            raise self.error(expected, "something that is not a number")
        return values

    def rows(self, labels: list[dict[str, int]]) -> Costs:
        """Return a flat list `label ... label cost label ...` as rows; labels by name or number."""
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

    def plain_function(self) -> tuple[str, list[str], bytes] | None:
        """Return name, scope and costs of a function if it has these and nothing else."""
        match = _PLAIN_FUNCTION.match(self.data, self.at)
        if match is None:
            return None
        self.at = match.end()
        words = match[2].translate(_PLAIN).decode("utf-8", "backslashreplace").split()
        return match[1].decode("utf-8", "backslashreplace"), words, match[3].translate(_PLAIN)

    @staticmethod
    def _words(inside: bytes) -> list[bytes] | None:
        """Return all words of a list; None if a quote is not closed."""
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


def parse_cfn(content: Content) -> Model:
    """Return the model of a CFN file; costs of at least the bound `mustbe` are forbidden."""
    return _CfnReader(Tokens(content)).model()


@dataclass
class _Function:
    """A cost function of the file; its table may be defined later."""

    name: str
    scope: list[int]
    table: Costs | None
    shares: str | None
    at: int
    found: Global | None = None


class _CfnReader:
    """Reader of problem, variables and functions, in this order; punctuation is optional."""

    def __init__(self, tokens: Tokens, depth: int = 0) -> None:
        self.tokens, self.depth = tokens, depth
        self.sign, self.bound = 1.0, math.inf
        self.labels: list[dict[str, int]] = []
        self.variables: dict[str, int] = {}
        self.num_labels: list[int] = []
        self.functions: list[_Function] = []

    def model(self) -> Model:
        self.body()
        self.tokens.end()
        self.tokens.content.release()
        return self._named(self.assemble())

    def body(self) -> None:
        """Read everything up to the last bracket."""
        tokens = self.tokens
        tokens.opening("'{' at the beginning")
        self._problem()
        tokens.word("variables")
        closing = tokens.opening("'{' or '[' after 'variables'")
        while not tokens.closes(closing):
            self._variable()
        if not self.num_labels:
            raise tokens.error("at least one variable")
        tokens.word("functions")
        closing = tokens.opening("'{' or '[' after 'functions'")
        while not tokens.closes(closing):
            self._function()

    def _problem(self) -> None:
        tokens = self.tokens
        tokens.word("problem")
        closing = tokens.opening("'{' after 'problem'")
        while not tokens.closes(closing):
            key = tokens.text("a field of the problem")
            value = tokens.text(f"the value of {key!r}")
            if key == "mustbe":
                self._mustbe(value)

    def _mustbe(self, value: str) -> None:
        match = re.fullmatch(r"\s*([<>])\s*([-+]?[0-9.]+|inf)\s*", value)
        try:
            bound = float(match[2]) if match else math.nan
        except ValueError:
            bound = math.nan
        if match is None or math.isnan(bound):
            raise self.tokens.error('a bound such as "<12.10" or ">-3.5"', value)
        self.sign = 1.0 if match[1] == "<" else -1.0
        self.bound = self.sign * bound

    def _variable(self) -> None:
        """Read `name: count` or `name: [labels]`, or the same without a name in an array."""
        tokens = self.tokens
        name = str(len(self.num_labels))
        if not tokens.at_opening():
            first = tokens.text("a variable")
            if tokens.after_colon() or not re.fullmatch(r"-?\d+", first):
                name = first
            else:
                return self._domain(name, first)
        if tokens.at_opening():
            closing = tokens.opening("labels")
            known: dict[str, int] = {}
            while not tokens.closes(closing):
                label = tokens.peek()
                if label in known:
                    raise tokens.error("a label that the variable does not have yet")
                known[tokens.text("a label")] = len(known)
            return self._add_variable(name, len(known), known)
        return self._domain(name, tokens.text("a label count"))

    def _domain(self, name: str, count: str) -> None:
        if not re.fullmatch(r"\d{1,15}", count):
            raise self.tokens.error("the number of labels (at least 1)", count)
        self._add_variable(name, int(count), {})

    def _add_variable(self, name: str, count: int, labels: dict[str, int]) -> None:
        if count < 1:
            raise self.tokens.error("at least one label")
        if name in self.variables:
            raise self.tokens.error("a new variable name", name)
        self.variables[name] = len(self.num_labels)
        self.num_labels.append(count)
        self.labels.append(labels)
        self.tokens.content.take(count)

    def _function(self) -> None:
        """Read `name: {scope: [...], costs: [...]}`; a sparse function has a `defaultcost`."""
        tokens = self.tokens
        at = tokens.at
        if (plain := tokens.plain_function()) is not None:
            name, words, inside = plain
            scope = [self.variable(word) for word in words]
            shape = tuple([self.num_labels[i] for i in scope])
            values = parse_decimals(inside) if min(scope, default=-1) >= 0 else None
            sound = len(set(scope)) == len(scope) < LIMITS.axes
            if sound and values is not None and len(values) == math.prod(shape):
                tokens.content.take(len(values))
                table = np.asarray(self.sign * values).reshape(shape)
                self.functions.append(_Function(name, scope, table, None, at))
                return
            tokens.at = at  # what is wrong is said below
        name = f"#{len(self.functions)}" if tokens.at_opening() else tokens.text("a function name")
        closing = tokens.opening(f"'{{' of function {name!r}")
        tokens.word("scope")
        scope = self._scope()
        default = None
        if tokens.peek() == "defaultcost":
            tokens.word("defaultcost")
            default = tokens.number("a default cost")
        function = _Function(name, scope, None, None, at)
        if tokens.peek() == "type":
            self._global(function)
        else:
            self._costs(function, default)
        if not tokens.closes(closing):
            raise tokens.error(f"the end of function {name!r}")
        self.functions.append(function)

    def _costs(self, function: _Function, default: float | None) -> None:
        tokens, scope = self.tokens, function.scope
        tokens.word("costs")
        if tokens.at_opening():
            tokens.content.check_arity(len(scope))
            function.table = self._table(scope, default)
        else:
            function.shares = tokens.text("costs, or the name of a function to share them with")

    def _global(self, function: _Function) -> None:
        """Read `type: name, params: {...}`; its costs are computed after all functions are read."""
        tokens = self.tokens
        tokens.word("type")
        name = tokens.peek()
        known = [word for word in GLOBALS if word not in WCSP_ONLY]
        if name not in known:
            raise tokens.error(f"one of {', '.join(known)}")
        sizes = [self.num_labels[i] for i in function.scope]
        if not sizes or (name in COMPARISONS and len(sizes) != 2):
            raise tokens.error(f"{'two variables' if sizes else 'variables'} of {name!r}")
        function.found = Global(tokens.text("a type"), function.scope, sizes)
        tokens.word("params")
        _CfnParameters(self, function.found).read()
        tokens.content.take(function.found.size())

    def inner(self) -> Model:
        """Return the model of a network inside a function."""
        if self.depth == LIMITS.list_depth:
            raise self.tokens.error(f"at most {self.depth} networks inside each other")
        reader = _CfnReader(self.tokens, self.depth + 1)
        reader.body()
        closing = self.tokens.closes(b"}")
        if not closing:
            raise self.tokens.error("'}' after the functions of a network")
        return reader.assemble()

    def variable(self, word: str) -> int:
        """Return the number of a variable given by name or number; -1 if there is none."""
        i = self.variables.get(word, -1)
        if i < 0 and word.isdecimal() and len(word) < 10 and int(word) < len(self.num_labels):
            i = int(word)
        return i

    def _scope(self) -> list[int]:
        tokens = self.tokens
        scope: list[int] = []
        seen: set[int] = set()
        closing = tokens.opening("'[' of a scope")
        while not tokens.closes(closing):
            word = tokens.text("a variable")
            if (i := self.variable(word)) < 0:
                raise tokens.error("a variable", word)
            if i in seen:
                raise tokens.error("a scope that names no variable twice", word)
            scope.append(i)
            seen.add(i)
        return scope

    def _table(self, scope: list[int], default: float | None) -> Costs:
        shape = tuple(self.num_labels[i] for i in scope)
        self.tokens.content.take(math.prod(shape))
        if default is None:
            values = self.tokens.numbers(f"{math.prod(shape)} costs")
            if len(values) != math.prod(shape):
                raise self.tokens.error(f"{math.prod(shape)} costs", f"{len(values)} of them")
            return np.asarray(self.sign * values).reshape(shape)
        table = np.full(shape, self.sign * default)
        rows = self.tokens.rows([self.labels[i] for i in scope])
        if len(rows):
            place = rows[:, :-1]
            if not ((place >= 0) & (place < np.array(shape)) & (place == np.floor(place))).all():
                raise self.tokens.error("labels of the variables of the scope")
            table[tuple(place.astype(np.int64).T)] = self.sign * rows[:, -1]
        return table

    def assemble(self) -> Model:
        """Return the model of the functions."""
        tables = _resolved(self)
        top = self._forbid({id(t): t for _, t, _ in tables}.values())
        assembly = Assembly(np.array(self.num_labels))
        for function, table, is_shared in tables:
            if is_shared:
                assembly.add_shared(function.scope, table)
            else:
                assembly.add_factor(function.scope, table)
        self._add_globals(assembly, top)
        return assembled(assembly.pieces())

    def _named(self, model: Model) -> Model:
        """Return the model with the names of the file; numbers do not count as names."""
        if not any(self.labels) and all(name == str(i) for name, i in self.variables.items()):
            return model
        return model.with_names(list(self.variables), [list(own) or None for own in self.labels])

    def _add_globals(self, assembly: Assembly, top: float) -> None:
        for function in self.functions:
            if function.found is None:
                continue
            try:
                add_global(function.found, top, assembly, self.tokens.content.take)
            except ModelError as error:
                self.tokens.at = function.at
                line = self.tokens.line()
                raise FormatError(str(error), self.tokens.content.name, line) from error

    def _forbid(self, tables: Iterable[Costs]) -> float:
        """Forbid costs that no solution better than the bound can have; return their threshold.

        Without negative costs the threshold is the bound. It is larger if negative costs of other
        functions could compensate.
        """
        lists = list(tables)
        for table in lists:
            self.tokens.content.check(table)
        least = [min(0.0, float(table.min())) for table in lists]
        total = sum(least)
        for table, own in zip(lists, least, strict=True):
            if table.max() + (total - own) >= self.bound:
                table[table + (total - own) >= self.bound] = np.inf
        return self.bound - total


def _resolved(reader: _CfnReader) -> list[tuple[_Function, Costs, bool]]:
    """Return the table of every function, and whether several functions share it."""
    targets = {f.shares for f in reader.functions if f.shares is not None}
    owners: dict[str, list[_Function]] = {}
    for function in reader.functions:
        if function.table is not None and function.name in targets:
            owners.setdefault(function.name, []).append(function)
    found = []
    for function in reader.functions:
        if function.found is not None:
            continue
        name = function.name
        owner: _Function | None = function
        if function.shares:
            owner = _owner(function, owners.get(function.shares, []))
        shape = tuple(reader.num_labels[i] for i in function.scope)
        if owner is None or owner.table is None or owner.table.shape != shape:
            reader.tokens.at = function.at
            expected = f"costs of shape {shape}, or the name of a function that has them"
            raise reader.tokens.error(f"function {name!r} to have {expected}", function.shares)
        found.append((function, owner.table, bool(function.shares) or name in targets))
    return found


def _owner(function: _Function, known: list[_Function]) -> _Function | None:
    """Return the function whose table is shared: the next one of that name in the file."""
    later = [owner for owner in known if owner.at > function.at]
    return next(iter(later), known[-1] if known else None)


# --- global cost functions ----------------------------------------------------------------------


class _CfnParameters:
    """Reader of the parameters of a global cost function, by name."""

    def __init__(self, reader: _CfnReader, found: Global) -> None:
        self.reader, self.tokens, self.found = reader, reader.tokens, found
        self.place = {i: t for t, i in enumerate(found.scope)}

    def read(self) -> None:
        tokens, found = self.tokens, self.found
        raw: dict[str, Any] = {}
        closing = tokens.opening("'{' of parameters")
        if found.name in COMPARISONS:
            names = iter([name for name, _ in fields(found)])
            while not tokens.closes(closing):
                raw[next(names, "more")] = self._raw(1)
        while found.name not in COMPARISONS and not tokens.closes(closing):
            key = tokens.text("a parameter")
            if key == "cfn" and found.name == "cfnconstraint":
                found.model = self.reader.inner()
            elif key in raw or key not in _names(found):
                raise tokens.error(f"one of {', '.join(_names(found))} of {found.name!r}", key)
            else:
                raw[key] = self._raw(1)
        while rest := fields(found):
            name, shape = rest[0]
            if name not in raw and name not in _OPTIONAL:
                raise tokens.error(f"{name!r} among the parameters of {found.name!r}", "none")
            found.given[name] = self.value(shape, raw.pop(name, []))
        if raw:
            raise tokens.error(f"no more parameters of {found.name!r}", next(iter(raw)))
        if found.name == "cfnconstraint" and found.model is None:
            raise tokens.error("'cfn' among the parameters of 'cfnconstraint'", "none")

    def _raw(self, depth: int) -> Any:
        tokens = self.tokens
        if not tokens.at_opening():
            return tokens.text("a value")
        if depth > LIMITS.list_depth:
            raise tokens.error(f"at most {LIMITS.list_depth} brackets inside each other")
        closing, items = tokens.opening("'['"), []
        while not tokens.closes(closing):
            items.append(self._raw(depth + 1))
        return items

    def value(self, shape: str, raw: Any) -> Any:
        """Return a parameter of this shape; see `PARAMETERS`."""
        if shape[0] not in "([" and len(shape) == 1:
            return self.item(shape, raw, None)
        wanted = {"(": len(self.found.scope), "[": None}.get(shape[0], len(shape))
        if not isinstance(raw, list) or wanted not in (None, len(raw)):
            length = "" if wanted is None else f" of {wanted}"
            raise self.tokens.error(f"lists{length} in {self.found.name!r}", str(raw)[:40])
        if shape[0] in "([":
            return [self.value(shape[1:-1], part) for part in raw]
        row: list[Any] = []
        for letter, part in zip(shape, raw, strict=True):
            row.append(self.item(letter, part, row[0] if shape[0] == "V" and row else None))
        return row

    def item(self, letter: str, word: Any, place: int | None) -> Any:
        """Return a word, number, variable or label (by name or number)."""
        scope, reader = self.found.scope, self.reader
        if not isinstance(word, str):
            raise self.tokens.error(f"a number or a word of {self.found.name!r}", "a list")
        if letter == "k":
            if word not in METRICS and word not in COMPARATORS:
                raise self.tokens.error(f"one of {', '.join((*METRICS, *COMPARATORS))}", word)
            return word
        if letter == "V":
            i = self.place.get(reader.variable(word))
            if i is None:
                raise self.tokens.error("a variable of the scope", word)
            return i
        if letter == "v":
            label = reader.labels[scope[place or 0]].get(word)
            return self._whole(word, 0, 2**31 - 1) if label is None else label
        if letter == "n":
            return self._whole(word, -(2**40), 2**40)
        cost = reader.sign * self._number(word)
        if letter == "c" and cost < 0:
            raise self.tokens.error(f"a cost of at least 0 of {self.found.name!r}", word)
        return cost

    def _number(self, word: str) -> float:
        values = parse_decimals(word.encode())
        if values is None or len(values) != 1 or np.isnan(values[0]):
            raise self.tokens.error(f"a number of {self.found.name!r}", word)
        return float(values[0])

    def _whole(self, word: str, least: int, most: int) -> int:
        value = self._number(word)
        if not (least <= value <= most and value == int(value)):
            raise self.tokens.error(f"a whole number from {least} to {most}", word)
        return int(value)


_OPTIONAL = ("exceptedvalues", "deltacosts", "duplicatehard", "strongduality")


def _names(found: Global) -> list[str]:
    return [part.split(":")[0] for part in PARAMETERS[found.name].split()]


# --- writing ------------------------------------------------------------------------------------


def format_cfn(model: Network) -> Iterator[str]:
    """Yield the text of a CFN file, in pieces: dense tables, shortest round-trip decimals."""
    factors = factors_of(model, zeros=False)
    top = 1.0 + max(0.0, model.constant)
    decimals = 1
    texts = []
    for table in [np.array([model.constant]), *factors.tables]:
        finite = table[np.isfinite(table)]
        top += float(np.abs(finite).max(initial=0.0))
        words = [_decimal(x) for x in table.ravel().tolist()]
        decimals = max(decimals, *(len(w) - w.find(".") - 1 for w in words if "." in w), 1)
        texts.append(", ".join(words))
    yield f'{{"problem": {{"name": "softmap", "mustbe": "<{2 * top:.{decimals}f}"}},\n'
    names, domains = _variables(model)
    pairs = zip(names, domains, strict=True)
    yield '"variables": {' + ", ".join(f'"{name}": {domain}' for name, domain in pairs) + "},\n"
    yield '"functions": {\n'
    scopes: list[tuple[int, ...]] = [(), *factors.scopes]
    for k, (scope, text) in enumerate(zip(scopes, texts, strict=True)):
        members = ", ".join(f'"{names[i]}"' for i in scope)
        comma = ",\n" if k else ""
        yield f'{comma}"f{k}": {{"scope": [{members}], "costs": [{text}]}}'
    yield "\n}}\n"


_NAME = re.compile(r"[^\s\"\\]*[^\s\"\\\d-][^\s\"\\]*")  # a number would be read as an index


def _variables(model: Network) -> tuple[list[str], list[str]]:
    """Return names and domains: the model's names if the format can hold all of them."""
    counts = model.num_labels[: model.num_variables].tolist()
    numbered = [f"x{i}" for i in range(len(counts))]
    plain = [str(d) for d in counts]
    if model.names is None:
        return numbered, plain
    names = [*model.names.variables, *numbered[len(model.names.variables) :]]  # chain variables
    if not _holds(names) or len(set(names)) < len(names):
        warn_of_lost_names(next((name for name in names if not _holds([name])), names[-1]))
        return numbered, plain
    lost = [state for own in model.names.states for state in own or () if not _holds([state])]
    if lost:
        warn_of_lost_names(lost[0])
    states = zip(plain, model.names.states, strict=False)
    domains = [
        "[" + ", ".join(f'"{state}"' for state in own) + "]" if own and _holds(own) else count
        for count, own in states
    ]
    return [*map(str, names)], [*domains, *plain[len(domains) :]]


def _holds(names: Sequence[object]) -> bool:
    return all(isinstance(name, str) and _NAME.fullmatch(name) for name in names)


def _decimal(cost: float) -> str:
    """Return a cost in positional notation: the format has no exponents."""
    if cost == np.inf:
        return "inf"
    return np.format_float_positional(cost, trim="0")

"""CFN: cost functions in relaxed JSON, with names, decimals and an upper (or lower) bound.

Global cost functions are given as `type: name, params: {...}`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from softmap.errors import FormatError, ModelError
from softmap.io.factors import factors_of
from softmap.io.global_costs import GLOBALS, METRICS, Global, factors_of_global, global_size
from softmap.io.limits import LIMITS
from softmap.io.streams import Content
from softmap.io.tokens import parse_decimals, quote
from softmap.model import Model
from softmap.model.factors import Assembly
from softmap.model.potentials.base import Costs

_COMMENT = re.compile(rb"(?m)^#[^\n]*")
_TOKEN = re.compile(rb"""[\s,:]*(?:"([^"\n]*)"|([\[{])|([\]}])|([^\s,:"\[\]{}]+))""")
_SKIP = re.compile(rb"[\s,:]*")
_LIST_END = re.compile(rb"[\[\]{}]")
_PLAIN = bytes.maketrans(b',:"', b"   ")
_PAIR = {b"{": b"}", b"[": b"]"}

_WCSP_ONLY = ("knapsackp", "gcc", "clique")  # knapsackp is the name of knapsackv there


class Tokens:
    """A cursor over the text; every error names the line."""

    def __init__(self, content: Content) -> None:
        self.content = content
        self.data = _COMMENT.sub(b"", content.data) if b"#" in content.data else content.data
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

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.sign, self.bound = 1.0, math.inf
        self.labels: list[dict[str, int]] = []
        self.variables: dict[str, int] = {}
        self.num_labels: list[int] = []
        self.functions: list[_Function] = []
        self.entries = 0

    def model(self) -> Model:
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
        tokens.end()
        return self._assemble()

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
        self._reserve(count)

    def _reserve(self, entries: int) -> None:
        self.entries += entries
        self.tokens.content.reserve(self.entries)

    def _function(self) -> None:
        """Read `name: {scope: [...], costs: [...]}`; a sparse function has a `defaultcost`."""
        tokens = self.tokens
        at = tokens.at
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
        sizes = [self.num_labels[i] for i in function.scope]
        found = _read_global(self.tokens, function.scope, sizes, self.variables, self.labels)
        if self.sign < 0 and found.metric != "hard" and not found.weights:
            raise self.tokens.error("costs of a sum to be minimised", found.name)
        self._reserve(global_size(found))
        function.found = found

    def _scope(self) -> list[int]:
        tokens = self.tokens
        scope: list[int] = []
        seen: set[int] = set()
        closing = tokens.opening("'[' of a scope")
        while not tokens.closes(closing):
            word = tokens.text("a variable")
            i = self.variables.get(word, -1)
            if i < 0 and word.isdecimal() and len(word) < 10 and int(word) < len(self.num_labels):
                i = int(word)
            if i < 0:
                raise tokens.error("a variable", word)
            if i in seen:
                raise tokens.error("a scope that names no variable twice", word)
            scope.append(i)
            seen.add(i)
        return scope

    def _table(self, scope: list[int], default: float | None) -> Costs:
        shape = tuple(self.num_labels[i] for i in scope)
        self._reserve(math.prod(shape))
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

    def _assemble(self) -> Model:
        self.tokens.content.release()
        tables = self._resolve()
        top = self._forbid({id(t): t for _, t, _ in tables}.values())
        assembly = Assembly(np.array(self.num_labels))
        for function, table, is_shared in tables:
            if is_shared:
                assembly.add_shared(function.scope, table)
            else:
                assembly.add_factor(function.scope, table)
        self._add_globals(assembly, top)
        return self._named(Model.from_pieces(assembly.pieces()))

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
                factors = factors_of_global(function.found, top)
            except ModelError as error:
                self.tokens.at = function.at
                line = self.tokens.line()
                raise FormatError(str(error), self.tokens.content.name, line) from error
            for factor in factors:
                assembly.add_many(factor)

    def _resolve(self) -> list[tuple[_Function, Costs, bool]]:
        """Return the table of every function, and whether several functions share it."""
        targets = {f.shares for f in self.functions if f.shares is not None}
        owners: dict[str, list[_Function]] = {}
        for function in self.functions:
            if function.table is not None and function.name in targets:
                owners.setdefault(function.name, []).append(function)
        found = []
        for function in self.functions:
            if function.found is not None:
                continue
            name = function.name
            owner: _Function | None = function
            if function.shares:
                owner = self._owner(function, owners.get(function.shares, []))
            shape = tuple(self.num_labels[i] for i in function.scope)
            if owner is None or owner.table is None or owner.table.shape != shape:
                self.tokens.at = function.at
                expected = f"costs of shape {shape}, or the name of a function that has them"
                raise self.tokens.error(f"function {name!r} to have {expected}", function.shares)
            found.append((function, owner.table, bool(function.shares) or name in targets))
        return found

    def _owner(self, function: _Function, known: list[_Function]) -> _Function | None:
        """Return the function whose table is shared: the next one of that name in the file."""
        later = [owner for owner in known if owner.at > function.at]
        return next(iter(later), known[-1] if known else None)

    def _forbid(self, tables: Iterable[Costs]) -> float:
        """Forbid costs that no solution better than the bound can have; return their threshold.

        Without negative costs the threshold is the bound. It is larger if negative costs of other
        functions could compensate.
        """
        lists = list(tables)
        for table in lists:
            self.tokens.content.check(table)
        least = [min(0.0, float(table.min())) for table in lists]
        for table, own in zip(lists, least, strict=True):
            table[table + (sum(least) - own) >= self.bound] = np.inf
        return self.bound - sum(least)


# --- global cost functions ----------------------------------------------------------------------


_KEYS = frozenset((
    "metric", "cost", "bounds", "vars1", "vars2", "starts", "ends", "transitions", "nb_states",
    "min", "max", "values", "capacity", "weights", "weightedvalues",
))  # fmt: skip


def _read_global(
    tokens: Tokens,
    scope: Sequence[int],
    sizes: Sequence[int],
    variables: Mapping[str, int],
    labels: Sequence[Mapping[str, int]],
) -> Global:
    """Read a global cost function, from the word `type` on."""
    tokens.word("type")
    name = tokens.peek()
    known = [word for word in GLOBALS if word not in _WCSP_ONLY]
    if name not in known:
        raise tokens.error(f"one of {', '.join(known)}")
    found = Global(tokens.text("a type"), scope, sizes)
    if not scope:
        raise tokens.error(f"variables of {name!r}")
    tokens.word("params")
    return _Parameters(tokens, found, variables, labels).read()


class _Parameters:
    """The parameters of a global cost function, by name."""

    def __init__(
        self,
        tokens: Tokens,
        found: Global,
        variables: Mapping[str, int],
        labels: Sequence[Mapping[str, int]],
    ) -> None:
        self.tokens, self.found = tokens, found
        self.variables, self.labels = variables, labels
        self.given: dict[str, Any] = {}

    def read(self) -> Global:
        tokens, found = self.tokens, self.found
        closing = tokens.opening("'{' of parameters")
        while not tokens.closes(closing):
            key = tokens.peek()
            if key not in _KEYS:
                raise tokens.error(f"a parameter of {found.name!r}")
            tokens.text("a parameter")
            self.given[key] = self._value(1)
        if found.name.startswith("knapsack"):
            self._knapsack()
        else:
            if found.name != "ssame":
                found.metric = self._metric()
            found.cost = self._number(self._need("cost"), least=0.0)
            self._others()
        return found

    def _value(self, depth: int) -> Any:
        tokens = self.tokens
        if not tokens.at_opening():
            return tokens.text("a value")
        if depth > LIMITS.list_depth:
            raise tokens.error(f"at most {LIMITS.list_depth} brackets inside each other")
        closing, items = tokens.opening("'['"), []
        while not tokens.closes(closing):
            items.append(self._value(depth + 1))
        return items

    def _need(self, key: str, kind: type = str) -> Any:
        value = self.given.get(key)
        if not isinstance(value, kind):
            raise self.tokens.error(f"{key!r} among the parameters of {self.found.name!r}", "none")
        return value

    def _metric(self) -> str:
        metric: str = self._need("metric")
        if metric not in METRICS:
            raise self.tokens.error(f"one of {', '.join(METRICS)}", metric)
        return metric

    def _number(self, word: Any, least: float = -1e15, most: float = 1e15) -> float:
        try:
            value = float(word)
        except (TypeError, ValueError):
            value = float("nan")
        if not least <= value <= most:
            raise self.tokens.error(f"a number of {self.found.name!r}", str(word))
        return value

    def _whole(self, word: Any, least: int = 0, most: int = 2**31 - 1) -> int:
        value = self._number(word, least, most)
        if value != int(value):
            raise self.tokens.error("a whole number", str(word))
        return int(value)

    def _label(self, word: Any, i: int) -> int:
        """Return a label of variable i, given by name or number."""
        known = self.labels[i].get(word) if isinstance(word, str) else None
        return self._whole(word) if known is None else known

    def _row(self, row: Any, *widths: int) -> list[Any]:
        if not isinstance(row, list) or len(row) not in widths:
            raise self.tokens.error(f"rows of {widths[0]} in {self.found.name!r}", str(row)[:40])
        return row

    def _knapsack(self) -> None:
        """Read a weight of label 1 per variable, or triples of variable, label and weight."""
        found = self.found
        found.capacity = self._number(self._need("capacity"))
        found.weights = [[0] * d for d in found.sizes]
        if found.name == "knapsack":
            weights = self._row(self._need("weights", list), len(found.scope))
            for row, word in zip(found.weights, weights, strict=True):
                row[1:2] = [self._whole(word, -(2**40), 2**40)][: len(row) - 1]
            return
        place = {i: t for t, i in enumerate(found.scope)}
        for triple in self._need("weightedvalues", list):
            name, value, weight = self._row(triple, 3)
            i = self.variables.get(str(name), -1)
            if i not in place:
                raise self.tokens.error("a variable of the scope", str(name))
            x = self._label(value, i)
            if x >= found.sizes[place[i]]:
                raise self.tokens.error("a label of the variable", str(value))
            found.weights[place[i]][x] = self._whole(weight, -(2**40), 2**40)

    def _others(self) -> None:
        found, name = self.found, self.found.name
        first = found.scope[0]
        if "gcc" in name:
            wide = 5 if found.metric == "wdec" else 3
            for row in self._need("bounds", list):
                value, *rest = self._row(row, wide)
                numbers = [self._number(x, 0.0) for x in rest]
                found.bounds.append([float(self._label(value, first)), *numbers])
        elif "among" in name:
            found.values = [self._label(x, first) for x in self._need("values", list)]
            found.bounds = [[self._number(self._need(key), 0.0) for key in ("min", "max")]]
        elif name == "ssame":
            one, other = (self._variables(key) for key in ("vars1", "vars2"))
            if len(one) != len(other) or sorted(one + other) != sorted(found.scope):
                raise self.tokens.error("two lists of the same length, of all variables", "others")
            found.parts = one, other
        elif "regular" in name:
            self._automaton()

    def _variables(self, key: str) -> list[int]:
        words = self._need(key, list)
        return [self.variables.get(str(w), -1) for w in words]

    def _automaton(self) -> None:
        found, first = self.found, self.found.scope[0]
        found.states = self._whole(self._need("nb_states"), 1, 2**15)
        last = found.states - 1
        found.starts = [self._whole(x, 0, last) for x in self._need("starts", list)]
        found.ends = [self._whole(x, 0, last) for x in self._need("ends", list)]
        for row in self._need("transitions", list):
            before, value, after = self._row(row, 3)
            ends = [self._whole(x, 0, last) for x in (before, after)]
            found.transitions.append([ends[0], self._label(value, first), ends[1]])


# --- writing ------------------------------------------------------------------------------------


def format_cfn(model: Model) -> Iterator[str]:
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


def _variables(model: Model) -> tuple[list[str], list[str]]:
    """Return names and domains: the model's names if the format can hold all of them."""
    counts = model.num_labels[: model.num_variables].tolist()
    numbered = [f"x{i}" for i in range(len(counts))]
    called = model.names
    if called is None or not _holds(called.variables):
        return numbered, [str(d) for d in counts]
    rest = numbered[len(called.variables) :]  # chain variables
    if set(rest) & set(called.variables):
        return numbered, [str(d) for d in counts]
    states = [*called.states, *([None] * len(rest))]
    domains = [
        str(d) if own is None or not _holds(own) else "[" + ", ".join(f'"{s}"' for s in own) + "]"
        for own, d in zip(states, counts, strict=True)
    ]
    return [*map(str, called.variables), *rest], domains


def _holds(names: Sequence[object]) -> bool:
    return all(isinstance(name, str) and _NAME.fullmatch(name) for name in names)


def _decimal(cost: float) -> str:
    """Return a cost in positional notation: the format has no exponents."""
    if cost == np.inf:
        return "inf"
    return np.format_float_positional(cost, trim="0")

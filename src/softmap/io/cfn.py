"""CFN: cost functions in relaxed JSON, with names, decimals and an upper (or lower) bound."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from softmap.errors import FormatError, ModelError
from softmap.io.assembly import Assembly, Costs, check_range
from softmap.io.cfn_globals import read_global
from softmap.io.cfn_tokens import Tokens
from softmap.io.global_costs import Global, factors_of_global, global_size
from softmap.io.limits import check_arity, check_entries
from softmap.io.shared import SharedCollector
from softmap.io.streams import Content, Source, load, open_content
from softmap.model import Model

__all__ = ["parse_cfn", "read_cfn"]


def parse_cfn(data: bytes | Content) -> Model:
    """Model from the text of a CFN file; costs from the bound `mustbe` on are forbidden."""
    return _Reader(Tokens(open_content(data))).model()


def read_cfn(source: Source) -> Model:
    """Model from a CFN file."""
    return parse_cfn(load(source))


@dataclass
class _Function:
    """A cost function as the file gives it, before its (possibly later) table is known."""

    scope: list[int]
    table: Costs | None
    shares: str | None
    at: int
    found: Global | None = None


class _Reader:
    """Problem, variables, functions: the order is fixed, the punctuation is not."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.sign, self.bound = 1.0, math.inf
        self.labels: list[dict[str, int]] = []
        self.variables: dict[str, int] = {}
        self.num_labels: list[int] = []
        self.functions: dict[str, _Function] = {}
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
        """`name: count`, `name: [labels]`, or the same without names in an array."""
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
        content = self.tokens.content
        check_entries(self.entries, content.size, content.name)

    def _function(self) -> None:
        """`name: {scope: [...], costs: [...]}`, `defaultcost` in between for a sparse one."""
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
        function = _Function(scope, None, None, at)
        if tokens.peek() == "type":
            self._global(function)
        else:
            self._costs(function, default)
        if not tokens.closes(closing):
            raise tokens.error(f"the end of function {name!r}")
        if name in self.functions:
            raise tokens.error("a new function name", name)
        self.functions[name] = function

    def _costs(self, function: _Function, default: float | None) -> None:
        tokens, scope = self.tokens, function.scope
        tokens.word("costs")
        if tokens.at_opening():
            check_arity(len(scope), tokens.content.name)
            function.table = self._table(scope, default)
        else:
            function.shares = tokens.text("costs, or the name of a function to share them with")

    def _global(self, function: _Function) -> None:
        """`type: name, params: {...}`; what it costs is known when all functions are."""
        sizes = [self.num_labels[i] for i in function.scope]
        found = read_global(self.tokens, function.scope, sizes, self.variables, self.labels)
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
        content = self.tokens.content
        content.release()
        tables = self._resolve()
        top = self._forbid({id(t): t for _, t, _ in tables}.values())
        assembly = Assembly(np.array(self.num_labels), content.name)
        shared = SharedCollector(assembly)
        for function, table, is_shared in tables:
            if is_shared:
                shared.add(function.scope, table)
            else:
                assembly.add_factor(function.scope, table)
        shared.flush()
        self._add_globals(assembly, top)
        return assembly.build()

    def _add_globals(self, assembly: Assembly, top: float) -> None:
        for function in self.functions.values():
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
        """The table of every function, and whether another function uses it as well."""
        targets = {f.shares for f in self.functions.values() if f.shares is not None}
        found = []
        for name, function in self.functions.items():
            if function.found is not None:
                continue
            owner = self.functions.get(function.shares) if function.shares else function
            shape = tuple(self.num_labels[i] for i in function.scope)
            if owner is None or owner.table is None or owner.table.shape != shape:
                self.tokens.at = function.at
                expected = f"costs of shape {shape}, or the name of a function that has them"
                raise self.tokens.error(f"function {name!r} to have {expected}", function.shares)
            found.append((function, owner.table, bool(function.shares) or name in targets))
        return found

    def _forbid(self, tables: Iterable[Costs]) -> float:
        """Forbid what cannot be part of a solution better than the bound; from where, for others.

        Without negative costs that is every cost from the bound on; negative ones of other
        functions may still make up for it.
        """
        lists = list(tables)
        for table in lists:
            if np.isnan(table).any() or (table == -np.inf).any():
                raise FormatError("expected costs, found NaN or -inf", self.tokens.content.name)
            check_range(table, self.tokens.content.name)
        least = [min(0.0, float(table.min())) for table in lists]
        for table, own in zip(lists, least, strict=True):
            table[table + (sum(least) - own) >= self.bound] = np.inf
        return self.bound - sum(least)

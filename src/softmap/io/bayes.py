"""Bayesian networks: conversion between named conditional tables and models."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import zip_longest

import numpy as np

from softmap.errors import FormatError, FormatWarning, ModelError
from softmap.io.factors import factors_of, warn_of_lost_names
from softmap.io.streams import Content
from softmap.io.tokens import plain_numbers, quote, small_logs
from softmap.model import Model, Network
from softmap.model.factors import Assembly
from softmap.model.model import assembled
from softmap.model.potentials.base import Costs

_PROBABILITIES = "probabilities (finite, not negative)"


@dataclass(frozen=True)
class Conditional:
    """The distribution of one variable given its parents, as -log; the child's axis comes last."""

    child: int
    parents: tuple[int, ...]
    costs: Costs


@dataclass
class BayesNetwork:
    """The content of a file: names, states, and one table per variable.

    Every error names the file and the current line.
    """

    content: Content
    line: Callable[[], int | None] = lambda: None
    variables: dict[str, int] = field(default_factory=dict)
    states: list[tuple[str, ...]] = field(default_factory=list)
    tables: dict[int, Conditional] = field(default_factory=dict)
    entries: int = 0
    checked: int = 0

    def error(self, expected: str, found: str) -> FormatError:
        """Return the error "expected ..., found ..."; the caller raises it."""
        shown = quote(found.encode("utf-8", "backslashreplace"))
        return self.content.error(expected, shown, self.line())

    def add_variable(self, name: str, states: Sequence[str]) -> None:
        """Add a variable with its states, in order."""
        if name in self.variables:
            raise self.error("a new variable name", name)
        if not states:
            raise self.error("at least one state", name)
        if len(set(states)) != len(states):
            again = next(s for k, s in enumerate(states) if s in states[:k])
            raise self.error(f"a state that {name!r} does not have yet", again)
        self.variables[name] = len(self.states)
        self.states.append(tuple(states))

    def number(self, name: str) -> int:
        """Return the number of the variable with this name."""
        if name not in self.variables:
            raise self.error("the name of a variable", name)
        return self.variables[name]

    def scope(
        self, child: str, parents: Sequence[str]
    ) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """Return the child, its parents, and the shape of the table (child last)."""
        i = self.number(child)
        others = tuple(self.number(name) for name in parents)
        if len({i, *others}) <= len(others):
            raise self.error("parents that are named once, without the child", child)
        if i in self.tables:
            raise self.error("one table for each variable", child)
        self.content.check_arity(len(others) + 1)
        shape = tuple(len(self.states[j]) for j in (*others, i))
        self.entries += math.prod(shape)
        if self.entries > 2 * self.checked:  # finding the available memory is slow: do it rarely
            self.content.reserve(self.entries)
            self.checked = self.entries
        return i, others, shape

    def add_table(self, i: int, parents: tuple[int, ...], table: Costs) -> None:
        """Add the probabilities of `i` given its parents; they need not sum to one exactly."""
        self.add_costs(i, parents, self._minus_logs(table))

    def add_costs(self, i: int, parents: tuple[int, ...], costs: Costs) -> None:
        """Add -log of the probabilities of `i` given its parents."""
        self.tables[i] = Conditional(i, parents, costs)

    def add_text(
        self, i: int, parents: tuple[int, ...], shape: tuple[int, ...], text: bytes
    ) -> None:
        """Add a table given as text; the child's states vary fastest."""
        expected = f"{math.prod(shape)} probabilities of {list(self.variables)[i]!r}"
        self.add_costs(i, parents, self.costs(text, math.prod(shape), expected).reshape(shape))

    def costs(self, text: bytes, count: int, expected: str) -> Costs:
        """Return -log of the probabilities of a text; the error says that `expected` were."""
        values = plain_numbers(text)
        if values is None or len(values) != count:
            found = "something else" if values is None else f"{len(values)} numbers"
            raise self.error(expected, found)
        costs = self._minus_logs(values)
        small, logs = small_logs(text, values)
        if np.isnan(logs).any():
            raise self.error(_PROBABILITIES, "a negative number")
        costs[small] = 0.0 - logs
        return costs

    def _minus_logs(self, values: Costs) -> Costs:
        low, high = values.min(), values.max()
        if not (low >= 0 and high < np.inf):
            raise self.error(_PROBABILITIES, f"{low if not low >= 0 else high:g}")
        with np.errstate(divide="ignore"):
            costs: Costs = 0.0 - np.log(values)
        return costs

    def model(self) -> Model:
        """Return the model with names; costs are -log of the probabilities."""
        if not self.states:
            raise self.content.error("at least one variable")
        self.line = lambda: None
        missing = [name for name, i in self.variables.items() if i not in self.tables]
        if missing:
            raise self.error("a table of probabilities for each variable", missing[0])
        self.content.reserve(sum(map(len, self.states)))
        num_labels = np.array([len(states) for states in self.states])
        assembly = Assembly(num_labels)
        self.content.release()
        for part in self.tables.values():
            assembly.add_factor((*part.parents, part.child), part.costs)
        return assembled(assembly.pieces()).with_names(list(self.variables), self.states)


def conditionals(model: Network) -> list[Conditional]:
    """Return the conditional tables of a model that is a Bayesian network, leaves first.

    A variable is a leaf if it is in one factor only and its probabilities sum to one; that factor
    is its conditional distribution. Leaves are removed until no variable remains. If there is no
    leaf before that, the model is not a Bayesian network.
    """
    factors = factors_of(model, zeros=False)
    parts = dict(enumerate(zip(factors.scopes, factors.tables, strict=True)))
    if abs(factors.constant) > 1e-9:
        raise ModelError("not a Bayesian network: its constant is not zero")
    for k in [k for k, (_, table) in parts.items() if not table.any()]:
        del parts[k]
    member: dict[int, set[int]] = {i: set() for i in range(model.num_variables)}
    for k, (scope, _) in parts.items():
        for i in scope:
            member[i].add(k)
    sure = [i for i in member if model.num_labels[i] == 1 and not member[i]]
    found = [Conditional(i, (), np.zeros(1)) for i in sure]
    left = dict.fromkeys(i for i in member if i not in set(sure))
    while left:
        leaf = next((i for i in left if len(member[i]) == 1 and _sums(i, parts, member)), None)
        if leaf is None:
            raise ModelError("not a Bayesian network: no factor is a conditional distribution")
        (k,) = member[leaf]
        scope, table = parts.pop(k)
        for i in scope:
            member[i].discard(k)
        del left[leaf]
        parents = tuple(i for i in scope if i != leaf)
        found.append(Conditional(leaf, parents, np.moveaxis(table, scope.index(leaf), -1)))
    if parts:
        raise ModelError("not a Bayesian network: more factors than variables")
    return found


def in_order(parts: Sequence[Conditional]) -> list[Conditional]:
    """Return the tables with parents before their children, else in the order of the variables.

    A `FormatWarning` is given if a variable has a parent that comes after it.
    """
    own = {part.child: part for part in parts}
    missing = {part.child: set(part.parents) for part in parts}
    children: dict[int, list[int]] = {i: [] for i in own}
    for part in parts:
        for parent in part.parents:
            children[parent].append(part.child)
    ready = [i for i in own if not missing[i]]
    heapify(ready)
    order = []
    while ready:
        i = heappop(ready)
        order.append(i)
        for child in children[i]:
            missing[child].discard(i)
            if not missing[child]:
                heappush(ready, child)
    if order != sorted(order):
        moved = next(k for k, i in enumerate(order) if k != i)
        message = (
            "the variables have other numbers in the file, which lists parents before their "
            f"children: variable {order[moved]} is number {moved} there"
        )
        warnings.warn(FormatWarning(message), stacklevel=4)
    return [own[i] for i in order]


Part = tuple[tuple[int, ...], Costs]


def _sums(i: int, parts: dict[int, Part], member: dict[int, set[int]]) -> bool:
    (k,) = member[i]
    scope, table = parts[k]
    with np.errstate(over="ignore"):
        return bool(np.allclose(np.exp(-table).sum(axis=scope.index(i)), 1.0, atol=1e-6))


def names_of(
    model: Network, variables: re.Pattern[str], states: re.Pattern[str]
) -> tuple[list[str], list[list[str]]]:
    """Return the names of variables and states: the model's, if the format can hold all of them.

    Otherwise they are x0, x1, ... and s0, s1, ..., with a `FormatWarning`. The patterns match the
    names that can be held.
    """
    counts = model.num_labels[: model.num_variables].tolist()
    plain = [[f"s{x}" for x in range(d)] for d in counts]
    called = [f"x{i}" for i in range(len(counts))]
    if model.names is None:
        return called, plain
    names = [str(name) for name in model.names.variables]
    names += called[len(names) :]  # chain variables
    own = [list(map(str, a or b)) for a, b in zip_longest(model.names.states, plain)]
    lost = [name for name in names if not variables.fullmatch(name)]
    lost += [state for row in own for state in row if not states.fullmatch(state)]
    lost += [name for rows in (names, *own) for name in _repeated(rows)]
    if not lost:
        return names, own
    warn_of_lost_names(lost[0])
    return called, plain


def _repeated(names: list[str]) -> list[str]:
    return [] if len(set(names)) == len(names) else [n for n in names if names.count(n) > 1][:1]

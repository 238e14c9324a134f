"""Bayesian networks: conversion between named conditional tables and models."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from softmap.errors import FormatError, ModelError
from softmap.io.factors import factors_of
from softmap.io.streams import Content
from softmap.io.tokens import plain_numbers, quote
from softmap.model import Model, checked_model
from softmap.model.factors import Assembly
from softmap.model.potentials.base import Costs


@dataclass(frozen=True)
class Conditional:
    """The distribution of one variable given its parents; the child's axis comes last."""

    child: int
    parents: tuple[int, ...]
    table: Costs


@dataclass
class Network:
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
        low, high = table.min(), table.max()
        if not (low >= 0 and high < np.inf):
            found = f"{low if not low >= 0 else high:g}"
            raise self.error("probabilities (finite, not negative)", found)
        self.tables[i] = Conditional(i, parents, table)

    def add_text(
        self, i: int, parents: tuple[int, ...], shape: tuple[int, ...], text: bytes
    ) -> None:
        """Add a table given as text; the child's states vary fastest."""
        values = plain_numbers(text)
        if values is None or len(values) != math.prod(shape):
            name = list(self.variables)[i]
            found = "something else" if values is None else f"{len(values)} numbers"
            raise self.error(f"{math.prod(shape)} probabilities of {name!r}", found)
        self.add_table(i, parents, values.reshape(shape))

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
            with np.errstate(divide="ignore"):
                costs = 0.0 - np.log(part.table)
            assembly.add_factor((*part.parents, part.child), costs)
        return Model.from_pieces(assembly.pieces()).with_names(list(self.variables), self.states)


def conditionals(model: Model) -> list[Conditional]:
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


Part = tuple[tuple[int, ...], Costs]


def _sums(i: int, parts: dict[int, Part], member: dict[int, set[int]]) -> bool:
    (k,) = member[i]
    scope, table = parts[k]
    return bool(np.allclose(np.exp(-table).sum(axis=scope.index(i)), 1.0, atol=1e-6))


def names_of(
    model: Model, variables: re.Pattern[str], states: re.Pattern[str]
) -> tuple[list[str], list[list[str]]]:
    """Return the names of variables and states: the model's, if the format can hold all of them.

    Otherwise they are x0, x1, ... and s0, s1, ... The patterns match the names that can be held.
    """
    checked_model(model)
    counts = model.num_labels[: model.num_variables].tolist()
    plain = [[f"s{x}" for x in range(d)] for d in counts]
    if model.names is not None and len(model.names.variables) == len(counts):
        names = [str(name) for name in model.names.variables]
        own = [list(map(str, a or b)) for a, b in zip(model.names.states, plain, strict=True)]
        every = all(states.fullmatch(state) for row in own for state in row)
        if every and all(variables.fullmatch(name) for name in names):
            return names, own
    return [f"x{i}" for i in range(len(counts))], plain

"""WCSP: non-negative integer costs, default cost plus tuples, shared tables, an upper bound."""

from __future__ import annotations

import math
import re

import numpy as np

from softmap.errors import FormatError
from softmap.io.assembly import Assembly, Costs, Ints
from softmap.io.global_costs import global_size
from softmap.io.limits import MOST_AXES, check_arity, check_entries
from softmap.io.shared import SharedCollector
from softmap.io.streams import Content, Source, load, open_content
from softmap.io.tokens import Numbers
from softmap.io.wcsp_globals import read_global, words_as_numbers
from softmap.model import Model

__all__ = ["parse_wcsp", "read_wcsp"]

_NAME = re.compile(rb"\s*(\S+)")


def parse_wcsp(data: bytes | Content) -> Model:
    """Model from the text of a WCSP file; costs from the upper bound on are forbidden."""
    content = open_content(data)
    name = _NAME.match(content.data)
    if name is None:
        message = "expected 'name variables labels functions upper-bound', found nothing"
        raise FormatError(message, content.name, 1, expected="a header")
    return _Reader(Numbers(words_as_numbers(content, name.end()), name.end())).model()


def read_wcsp(source: Source) -> Model:
    """Model from a WCSP file."""
    return parse_wcsp(load(source))


class _Reader:
    """Walks over the functions of a file."""

    def __init__(self, numbers: Numbers) -> None:
        self.numbers = numbers
        n = numbers.whole("the number of variables", 1, 2**31 - 1)
        most = numbers.whole("the largest number of labels", 1)
        self.functions = numbers.whole("the number of functions")
        self.top = numbers.whole("the upper bound", 0, 2**200)
        if numbers.left and numbers.values[numbers.at] < 0:
            raise numbers.fail(numbers.at, "a domain size (interval variables are not supported)")
        self.num_labels = numbers.wholes(n, "domain sizes", 1, most)
        self.entries = int(self.num_labels.sum())
        self._check_size()
        self.assembly = Assembly(self.num_labels, numbers.content.name)
        self.shared = SharedCollector(self.assembly)
        self.declared: list[Costs] = []

    def _check_size(self) -> None:
        content = self.numbers.content
        check_entries(self.entries, content.size, content.name, None)

    def model(self) -> Model:
        if self.functions > self.numbers.left:
            raise self.numbers.fail(len(self.numbers), f"{self.functions} functions")
        for _ in range(self.functions):
            self._function()
        self.numbers.finish("the last function")
        self.numbers.content.release()
        self.shared.flush()
        return self.assembly.build()

    def _function(self) -> None:
        numbers = self.numbers
        n = len(self.num_labels)
        arity = numbers.whole("the arity of a function", -n, n)
        scope = numbers.wholes(abs(arity), "variables of a scope", 0, n - 1)
        if len(set(scope.tolist())) < len(scope):
            raise numbers.fail(numbers.at - 1, "a scope that names no variable twice")
        default = numbers.whole("a default cost, or -1 before a global cost function", -1, 2**200)
        if default == -1:
            self._global(scope.tolist())
            return
        count = numbers.whole("the number of tuples", -len(self.declared))
        if count < 0:
            table = self._known(scope, -count)
            self.shared.add(scope.tolist(), table)
            return
        table = self._table(scope, float(default), count)
        if arity < 0:
            self.declared.append(table)
            self.shared.add(scope.tolist(), table)
        else:
            self.assembly.add_factor(scope.tolist(), table)

    def _global(self, scope: list[int]) -> None:
        numbers = self.numbers
        if not scope:
            raise numbers.fail(numbers.at, "variables of a global cost function")
        sizes = self.num_labels[scope].tolist()
        found, factors = read_global(numbers, scope, sizes, float(self.top))
        self.entries += global_size(found)
        self._check_size()
        for factor in factors:
            self.assembly.add_many(factor)

    def _known(self, scope: Ints, number: int) -> Costs:
        table = self.declared[number - 1]
        if table.shape != tuple(self.num_labels[scope].tolist()):
            expected = f"a table of shape {tuple(self.num_labels[scope].tolist())}"
            raise self.numbers.fail(self.numbers.at - 1, f"{expected}, which table {number} is not")
        return table

    def _table(self, scope: Ints, default: float, count: int) -> Costs:
        numbers = self.numbers
        if len(scope) > MOST_AXES:
            check_arity(len(scope), numbers.content.name, numbers.line(numbers.at - 1))
        shape = tuple(self.num_labels[scope].tolist())
        self.entries += math.prod(shape)
        self._check_size()
        width = len(shape) + 1
        if count * width > numbers.left:
            raise numbers.fail(len(numbers), f"{count} tuples of {width} numbers")
        begin = numbers.at
        block = numbers.values[begin : begin + count * width].reshape(count, width)
        good = (block >= 0) & (np.floor(block) == block)
        good &= block < np.array([*shape, np.inf])
        if not good.all():
            raise numbers.fail(begin + int(np.argmin(good)), "a label of the scope or a whole cost")
        numbers.at += count * width
        table = np.full(shape, default)
        if shape:
            table[tuple(block[:, :-1].astype(np.int64).T)] = block[:, -1]
        elif count:
            table[...] = block[-1, 0]
        table[table >= self.top] = np.inf
        return table

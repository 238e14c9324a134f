"""QAPLIB: quadratic assignment (`.dat`) as a model of n variables with n labels, and `.sln`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from softmap.arguments import flag
from softmap.errors import FormatError
from softmap.io.assembly import Assembly, Costs, check_range
from softmap.io.limits import check_entries
from softmap.io.streams import Content, Source, load, open_content
from softmap.io.tokens import Numbers
from softmap.model import Model
from softmap.model.many import AllDifferent
from softmap.model.potentials import SharedTables

__all__ = ["parse_qap", "parse_sln", "read_qap", "read_sln"]

_EDGE = 8  # memory of a pair beside its table, in costs of eight bytes


def parse_qap(data: bytes | Content, *, one_to_one: bool = False) -> Model:
    """Model from the text of a QAPLIB file: n, then two n × n matrices A and B.

    The label of variable i is p(i), from 0 on; a labelling costs `Σ A[i, j] B[p(i), p(j)]`, and no
    label may be used twice. Pairs with equal entries of A share a table. `one_to_one` adds an
    `AllDifferent` to the forbidden pairs: the same energies, a tighter bound; its running variables
    come after the others.
    """
    together = flag("one_to_one", one_to_one)
    numbers = Numbers(open_content(data))
    content = numbers.content
    n = numbers.whole("the size n of the matrices", 1, 2**31 - 1)
    if numbers.left != 2 * n * n:
        expected = f"{2 * n * n} numbers (two matrices of {n} x {n})"
        found = f"{numbers.left} numbers"
        raise FormatError(f"expected {expected}, found {found}", content.name, expected=expected)
    both = numbers.values[1:].reshape(2, n, n)
    if not np.isfinite(both).all():
        place = 1 + int(np.argmin(np.isfinite(both.ravel())))
        raise numbers.fail(place, "finite entries")
    check_range(np.abs(both), content.name)
    flow, distance = both
    i, j = np.triu_indices(n, 1)
    pairs, index = np.unique(np.column_stack([flow[i, j], flow[j, i]]), axis=0, return_inverse=True)
    check_entries(len(pairs) * n * n + _EDGE * len(i) + n * n, content.size, content.name)
    content.release()
    with np.errstate(over="ignore"):
        tables = pairs[:, :1, None] * distance + pairs[:, 1:, None] * distance.T
        unary = np.outer(flow.diagonal(), distance.diagonal())
    _check_products(tables, content)
    _check_products(unary, content)
    tables[:, np.arange(n), np.arange(n)] = np.inf
    assembly = Assembly(np.full(n, n), content.name)
    assembly.unary += unary.ravel()
    assembly.add_potential(np.column_stack([i, j]), SharedTables(tables, index))
    if together:
        assembly.add_many(AllDifferent(np.arange(n)))
    return assembly.build()


def _check_products(costs: Costs, content: Content) -> None:
    """A product too large for a float must not pass for a hard constraint."""
    if not np.isfinite(costs).all():
        raise FormatError("products of entries are not within the range of floats", content.name)


def read_qap(source: Source, *, one_to_one: bool = False) -> Model:
    """Model from a QAPLIB file; see `parse_qap`."""
    return parse_qap(load(source), one_to_one=one_to_one)


def parse_sln(data: bytes | Content) -> tuple[NDArray[np.int64], float]:
    """The labels of a QAPLIB solution (`n value permutation`, numbered from 1), and its value."""
    content = open_content(data)
    content.data = content.data.replace(b",", b" ")
    numbers = Numbers(content)
    n = numbers.whole("the size of the permutation", 1, 2**31 - 1)
    if not numbers.left:
        raise numbers.fail(len(numbers), "the value of the solution")
    value = float(numbers.values[1])
    numbers.at += 1
    labels = numbers.wholes(n, "entries of the permutation", 1, n) - 1
    numbers.finish("the permutation")
    if len(np.unique(labels)) != n:
        raise FormatError(f"expected each of 1 to {n} once", content.name, expected="a permutation")
    return labels, value


def read_sln(source: Source) -> tuple[NDArray[np.int64], float]:
    """Labels and value of a QAPLIB solution."""
    return parse_sln(load(source))

"""QAPLIB: quadratic assignment (`.dat`) as a model of n variables with n labels."""

from __future__ import annotations

import numpy as np

from softmap.arguments import flag
from softmap.errors import FormatError
from softmap.io.limits import LIMITS
from softmap.io.streams import Content
from softmap.io.tokens import Numbers
from softmap.model import Model
from softmap.model.factors import Assembly
from softmap.model.many import AllDifferent
from softmap.model.model import assembled
from softmap.model.potentials import SharedTables
from softmap.model.potentials.base import Costs


def _first_entry(content: Content, left: int, n: int) -> int:
    """Return the place of the first entry in a file of one more number, the published value."""
    one_more = left == 2 * n * n + 1
    lines = content.data.strip().splitlines() if one_more else []
    if lines and len(lines[0].split()) == 2:
        return 2
    if lines and len(lines[-1].split()) == 1:
        return 1
    expected = f"{2 * n * n} numbers (two matrices of {n} x {n})"
    raise content.error(expected, f"{left} numbers")


def parse_qap(content: Content, *, one_to_one: bool = False) -> Model:
    """Return the model of a QAPLIB file: n, then two n × n matrices A and B.

    A published value, after n on its line or alone on the last line, is not used.

    The label of variable i is p(i), from 0; the energy is `Σ A[i, j] B[p(i), p(j)]`. No label may
    be used twice. Pairs with equal entries of A share a table. `one_to_one` adds an `AllDifferent`
    to the forbidden pairs: the energies are the same, the bound is tighter. Its chain variables
    come last.
    """
    together = flag("one_to_one", one_to_one)
    numbers = Numbers(content)
    content = numbers.content
    n = numbers.whole("the size n of the matrices", 1, 2**31 - 1)
    first = 1 if numbers.left == 2 * n * n else _first_entry(content, numbers.left, n)
    both = numbers.values[first : first + 2 * n * n].reshape(2, n, n)
    if not np.isfinite(both).all():
        place = first + int(np.argmin(np.isfinite(both.ravel())))
        raise numbers.fail(place, "finite entries")
    content.check(np.abs(both))
    flow, distance = both
    i, j = np.triu_indices(n, 1)
    pairs, index = np.unique(np.column_stack([flow[i, j], flow[j, i]]), axis=0, return_inverse=True)
    index = index.reshape(-1)  # a column in NumPy 2.0.0
    entries = len(pairs) * n * n + LIMITS.assignment_edge * len(i) + n * n
    content.reserve(entries)
    content.release()
    with np.errstate(over="ignore"):
        tables = pairs[:, :1, None] * distance + pairs[:, 1:, None] * distance.T
        unary = np.outer(flow.diagonal(), distance.diagonal())
    _check_products(tables, content)
    _check_products(unary, content)
    tables[:, np.arange(n), np.arange(n)] = np.inf
    assembly = Assembly(np.full(n, n))
    assembly.add_flat_unary(unary.ravel())
    assembly.add_potential(np.column_stack([i, j]), SharedTables(tables, index))
    if together:
        assembly.add_many(AllDifferent(np.arange(n)))
    return assembled(assembly.pieces())


def _check_products(costs: Costs, content: Content) -> None:
    """Raise `FormatError` if a product overflows: it must not become a hard constraint."""
    if not np.isfinite(costs).all():
        raise FormatError("products of entries are not within the range of floats", content.name)

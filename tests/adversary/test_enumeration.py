"""The fast enumeration of the campaigns against a plain one, and the tables of factors."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import softmap
from adversary.making import picture, trial
from adversary.promises import optimum
from adversary.proofs import energies, random_model
from adversary.proofs import optimum as least_of_model
from adversary.specs import Spec
from support.exact_sums import all_costs


def slow_optimum(spec: Spec) -> tuple[float, Fraction | None]:
    """The least energy of float costs, rounded once, and the least one in real numbers."""
    exact = cache(lambda k, x, y: spec.edges[k].exact(x, y))  # a pair is in many labellings
    own = cache(lambda i, x: Fraction(spec.unary[i][x]))
    ends = [edge.ends for edge in spec.edges]
    rounded, least = math.inf, None
    for x in spec.labellings():
        terms = spec.terms(x)
        if math.inf in terms:
            continue
        rounded = min(rounded, math.fsum(terms))
        paid = [own(i, x[i]) for i in range(len(x))]
        paid += [exact(k, x[i], x[j]) for k, (i, j) in enumerate(ends)]
        total = sum(paid, Fraction(spec.constant))
        least = total if least is None else min(least, total)
    return rounded, least


@pytest.mark.parametrize("part", range(4))
def test_the_optimum_of_specs(part):
    for seed in range(40 * part, 40 * part + 40):
        spec = (picture if seed % 5 == 0 else trial)(seed).spec
        assert optimum(spec) == slow_optimum(spec), seed


def slow_energies(model: softmap.Model) -> dict[tuple[int, ...], Fraction]:
    found, model = {}, model.network
    tables = [model.table(e) for e in range(model.m)]
    for x in itertools.product(*(range(d) for d in model.num_labels[: model.num_variables])):
        states = np.concatenate([x, model.auxiliaries.states(np.array(x))]).astype(int)
        terms = [model.constant, *model.unary[model.node_offset[:-1] + states].tolist()]
        terms += [float(t[tuple(states[e])]) for t, e in zip(tables, model.edges, strict=True)]
        if np.isfinite(terms).all():
            found[x] = sum(map(Fraction, terms), Fraction(0))
    return found


def test_the_energies_of_models():
    for seed in range(60):
        model = random_model(np.random.default_rng(seed))
        expected = slow_energies(model)
        assert energies(model) == expected, seed
        assert least_of_model(model) == min(expected.values(), default=None)


def test_sums_that_no_word_holds():
    """Sums beyond 64 bits, and products that no float holds, are exact."""
    tiny, third = 5e-324, 1 / 3
    found = all_costs([2, 1], [((0,), [1e300, tiny]), ((1, 0), [[third, 1e-9]], third)], 1.0)
    first = Fraction(1e300) + Fraction(third) ** 2 + 1
    second = Fraction(tiny) + Fraction(1e-9) * Fraction(third) + 1
    assert dict(found.each()) == {(0, 0): first, (1, 0): second}
    assert found.least == second
    large = all_costs([1, 1, 1], [((i,), [2.0**61 + 512]) for i in range(3)])
    assert large.least == 3 * (2**61 + 512)


def test_how_much_labellings_cost_more():
    for table in ([[3.0, math.inf], [0.5, 1e-3]], [[1e200, math.inf], [0.1, -1e-200]]):
        found = all_costs([2, 2], [((0, 1), table)]).above_least()
        least = Fraction(table[1][1])
        more = [[float(Fraction(v) - least) if v < math.inf else v for v in row] for row in table]
        np.testing.assert_array_equal(found, more)

"""Searches over few and many labels per variable, with factors of three variables."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import softmap
from softmap.labels.exact import ExactSearch


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_a_search_finds_and_proves_the_least_energy(seed, presolve):
    """Domains of 1 to 6 labels are on both sides of the largest that is read as a whole."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, 6).tolist()
    pairs = [pair for pair in itertools.combinations(range(6), 2) if rng.random() < 0.7]
    triples = [three for three in itertools.combinations(range(6), 3) if rng.random() < 0.3]
    factors = []
    for scope in [(i,) for i in range(6)] + pairs + triples:
        table = rng.integers(0, 12, [sizes[i] for i in scope]) / 4.0
        if len(scope) > 1:
            table = np.where(rng.random(table.shape) < 0.1, np.inf, table)
        factors.append((scope, table))
    spread = [[sizes[i] if i in scope else 1 for i in range(6)] for scope, _ in factors]
    total = np.zeros(sizes)  # the energy of every labelling
    for shape, (_, table) in zip(spread, factors, strict=True):
        total = total + table.reshape(shape)
    least = total.min()
    model = softmap.Model.from_factors(sizes, factors)
    found = ExactSearch(model.network, dp_limit=0.0, presolve=presolve).run()
    assert found.complete
    if np.isinf(least):
        assert found.infeasible
    else:
        assert found.energy == model.energy(found.labels) == least
        assert least - 1e-6 <= found.lower_bound <= least

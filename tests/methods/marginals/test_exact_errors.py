"""Exact marginals at large η: normalised, with a bound on their errors, or refused."""

from __future__ import annotations

import itertools
from decimal import Decimal, localcontext

import numpy as np
import pytest

import softmap


def _random(seed: int) -> tuple[softmap.Model, float]:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 5))
    edges = [pair for pair in itertools.combinations(range(n), 2) if rng.random() < 0.6]
    unary = rng.normal(size=(n, 3)) + float(rng.choice([0, 1e6, -1e12]))
    tables = softmap.Tables(rng.normal(size=(len(edges), 3, 3)))
    model = softmap.Model(unary, edges, tables) if edges else softmap.Model(unary)
    return model, 10.0 ** rng.uniform(-1, 14)


def _weights(model: softmap.Model, eta: float) -> dict[tuple[int, ...], Decimal]:
    """The probabilities of all labellings."""
    every = [*itertools.product(*map(range, model.num_labels.tolist()))]
    costs = [
        sum(map(Decimal, model.network.cost_terms(list(x)).tolist()), Decimal(0)) for x in every
    ]
    weights = [(-(cost - min(costs)) * Decimal(eta)).exp() for cost in costs]
    total = sum(weights)
    return {x: weight / total for x, weight in zip(every, weights, strict=True)}


@pytest.mark.filterwarnings("ignore::softmap.ConvergenceWarning")
def test_errors_are_within_their_bound() -> None:
    made = 0
    for seed in range(25):
        model, eta = _random(seed)
        try:
            found = softmap.exact_marginals(model, eta)
        except softmap.OptionError:
            continue
        made += 1
        with localcontext() as context:
            context.prec = 50
            weights = _weights(model, eta)
            for i in range(model.n):
                for label, p in enumerate(found.of(i).tolist()):
                    true = sum(w for x, w in weights.items() if x[i] == label)
                    if true > Decimal("1e-290"):
                        assert abs(Decimal(p) / true - 1) <= Decimal(found.error)
    assert made > 12


@pytest.mark.parametrize("eta", [1e6, 1e8, 1e10, 1e12, 1e14, 1e16, 1e18, 1e20])
def test_marginals_sum_to_one_or_are_refused(eta: float) -> None:
    """Sums were 1.016 at η = 1e14, and 0 at 1e20."""
    rng = np.random.default_rng(15)
    edges = [[0, 1], [1, 2], [2, 3], [0, 4]]
    unary, pairs = rng.normal(size=(5, 3)), rng.normal(size=(4, 3, 3))
    model = softmap.Model(unary, edges, softmap.Tables(pairs))
    if eta >= 1e14:
        with pytest.raises(softmap.OptionError, match=r"eta=.*rounding errors"):
            softmap.exact_marginals(model, eta)
        return
    if eta >= 1e10:
        with pytest.warns(softmap.ConvergenceWarning, match="relative rounding errors"):
            found = softmap.exact_marginals(model, eta)
    else:
        found = softmap.exact_marginals(model, eta)
    assert found.error < 1.0
    assert np.allclose(found.nodes.reshape(5, 3).sum(axis=1), 1.0, rtol=1e-15, atol=0)
    assert np.allclose(found.edges.reshape(4, 9).sum(axis=1), 1.0, rtol=1e-15, atol=0)


def test_a_constant_costs_no_accuracy() -> None:
    model = softmap.generators.potts_grid(3, 3, 3, seed=1)
    moved = model.replace(unary=model.unary + 2.0**40, constant=1e15)
    one, other = (softmap.exact_marginals(each, 3.0) for each in (model, moved))
    assert other.error < 1e-11
    assert np.allclose(one.nodes, other.nodes, atol=1e-3)

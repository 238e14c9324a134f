"""The search branches where the bound rises: against brute force, with and without a proof log."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softmap
from adversary.proofs import optimum
from softmap import core, generators
from softmap.labels.exact import ExactSearch
from softmap.relaxation.flat import flat_lam
from softmap.verification import Verdict
from support.oracles import brute_force
from support.strategies import models


@given(models(), st.integers(0, 3))
def test_the_optimum_is_that_of_brute_force(model, seed):
    least = brute_force(model)[0]
    labels = np.random.default_rng(seed).integers(
        0, model.network.num_labels[: model.network.num_variables]
    )
    known = labels if np.isfinite(model.energy(labels)) else None
    found = ExactSearch(
        model.network, incumbent=known, presolve=False, ascent=False, dp_limit=0.0
    ).run()
    assert found.complete
    if not np.isfinite(least):
        assert found.infeasible
        return
    assert found.energy == pytest.approx(least, rel=1e-9, abs=1e-9)
    assert Fraction(found.lower_bound) <= optimum(model)  # `least` is rounded


@given(models(), st.integers(1, 3))
def test_short_slices_end(model, backtracks):
    """Also if a slice ends before the root of a component has been propagated."""
    search = ExactSearch(model.network, presolve=False, ascent=False, dp_limit=0.0)
    search.run(backtrack_limit=backtracks)
    for _ in range(1000):
        # more than a first probe takes
        found = search.run(backtrack_limit=25, deadline=core.Deadline(1.0))
        assert found.nodes < 10_000
        if found.complete:
            break
    assert found.infeasible or found.energy == pytest.approx(brute_force(model)[0], abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_random_graphs_of_the_paper_with_a_proof_that_is_checked(seed, tmp_path):
    """Probes of branches leave no trace in the log, and change nothing that it proves."""
    model = generators.erdos_renyi(40, 3, c=1.6, seed=seed)
    relaxed = softmap.solve(model, goal="lp", lp_gap=1e-2, threads=1)
    start = {
        "incumbent": relaxed.labels,
        "lam": flat_lam(model.network, relaxed.lam),
        "dp_limit": 0.0,
    }
    plain = ExactSearch(model.network, **start).run()
    logged = ExactSearch(model.network, **start, log=tmp_path / "log").run()
    assert plain.complete
    assert plain.nodes == logged.nodes > 0
    assert plain.energy == logged.energy
    path = tmp_path / "proof"
    result = softmap.solve(model, threads=1, proof=path)
    assert result.status is softmap.Status.OPTIMAL
    assert result.energy == pytest.approx(plain.energy, rel=1e-9)
    assert softmap.verify(result, model, proof=path).verdict is Verdict.CHECKED


def test_few_nodes_on_random_graphs_of_the_paper():
    """Branching by conflicts needed 13,000 nodes for these three."""
    nodes = 0
    for seed in (10, 13, 15):
        model = generators.erdos_renyi(100, 3, seed=seed)
        relaxed = softmap.solve(model, goal="lp", lp_gap=1e-3, threads=1)
        lam = flat_lam(model.network, relaxed.lam)
        nodes += ExactSearch(model.network, incumbent=relaxed.labels, lam=lam).run().nodes
    assert nodes < 6_000

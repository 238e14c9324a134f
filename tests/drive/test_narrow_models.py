"""Models of small width are solved by variable elimination, before long iterations."""

import numpy as np
import pytest

import softmap
from softmap.relaxation.flat import elimination_order, flatten
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.subsolvers.search.eliminate import Eliminate
from softmap.verification import Verdict
from support.stage_runs import suits


def test_the_entries_of_a_tree_are_those_of_its_edges():
    model = softmap.generators.random_tree(30, 4, seed=1)
    assert elimination_order(model.network, 1e9).entries == 29 * 16 + 4


def test_a_narrow_model_whose_relaxation_is_loose_is_proved():
    """A 5 × 400 spin glass: no pass closes its gap, an elimination over five rows does."""
    rng = np.random.default_rng(4)
    edges = softmap.generators.grid_edges(5, 400)
    weights = rng.normal(size=len(edges))
    tables = weights[:, None, None] * np.array([[1.0, -1.0], [-1.0, 1.0]])
    model = softmap.Model(rng.normal(size=(2000, 2)) * 0.1, edges, tables)
    assert elimination_order(model.network, 1e9).entries < 5e5
    result = softmap.solve(model, threads=1)
    assert result.status is softmap.Status.OPTIMAL
    assert result.proof.kind == "search"
    assert result.sweeps < 20


def network(seed, labels=15):
    """A chain of three factors of four variables each, with large tables."""
    rng = np.random.default_rng(seed)
    shape = (labels,) * 4
    factors = [((k, k + 1, k + 2, k + 3), rng.normal(size=shape)) for k in range(3)]
    return softmap.Model.from_factors([labels] * 6, factors), [table for _, table in factors]


def test_factors_with_large_tables_are_eliminated_before_any_pass(tmp_path):
    model, (a, b, c) = network(1, labels=12)
    assert model.network.unary.size > 3 * 12**4
    # dynamic programming by hand, over the last variable, then over the first one
    rest = b[..., None] + c[None]
    best = ((a.min(axis=0)[..., None] + rest.min(axis=-1)).min(axis=0)).min()
    result = softmap.solve(model, threads=1, proof=tmp_path / "proof")
    assert result.sweeps == 0
    assert result.status is softmap.Status.OPTIMAL
    assert result.energy == pytest.approx(best, rel=1e-12)
    assert result.bound <= result.energy
    assert softmap.verify(result, model, proof=tmp_path / "proof").verdict is Verdict.CHECKED


@pytest.mark.parametrize("options", [{"goal": "lp"}, {"goal": "labels"}, {"method": "trws"}])
def test_other_goals_and_methods_start_with_passes(options):
    problem = Problem.of(network(2)[0])
    assert suits(Eliminate, problem)
    assert not suits(Eliminate, problem, Options(**options))


def test_small_tables_start_with_passes():
    assert not suits(Eliminate, Problem.of(network(3, labels=4)[0]))


def test_an_order_of_a_model_is_that_of_its_factors():
    model = network(4, labels=3)[0]
    a, b = elimination_order(model.network, 1e9), elimination_order(flatten(model.network), 1e9)
    assert (a.entries, a.variables.tolist()) == (b.entries, b.variables.tolist())

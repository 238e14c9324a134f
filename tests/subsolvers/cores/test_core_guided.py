"""The stage of core-guided search: what it offers, and what it leaves to the others."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import softmap
from softmap.drive.prooffile import ProofFile
from softmap.model import Model
from softmap.run.best import Best
from softmap.run.budget import Budget
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.subsolver import Share
from softmap.subsolvers.cores.cores import CoreNumbers, Cores
from softmap.subsolvers.search.eliminate import EliminationNumbers
from softmap.subsolvers.search.search_numbers import SearchNumbers
from softmap.tuning import Tuning
from softmap.verification import Verdict
from support.proof_files import taken_apart
from support.stage_runs import suits

DEFAULT = Options()


def _cover(n: int, seed: int) -> Model:
    """The least cover of random triples: the LP pays a third of each variable."""
    rng = np.random.default_rng(seed)
    scopes = [rng.choice(n, 3, replace=False).tolist() for _ in range(4 * n)]
    factors = [((i,), [0.0, float(w)]) for i, w in enumerate(rng.integers(1, 4, n))]
    return Model.from_factors([2] * n, [*factors, *map(softmap.Or, scopes)])


def _slices(model: Model, proof: ProofFile | None = None, options: Options = DEFAULT) -> Best:
    """The best after slices of the stage alone, until it has ended."""
    problem = Problem.of(model)
    best, stage = Best(problem), Cores.make(problem, options)
    assert stage is not None
    active = True
    while active:
        active = stage(best, Share(Budget(), work=20_000, proof=proof)).active
    return best


@pytest.mark.parametrize("seed", range(3))
def test_the_stage_proves_the_optimum_by_itself(seed: int) -> None:
    model = _cover(12, seed)
    every = itertools.product(range(2), repeat=12)
    least = min(model.energy(np.array(labels)) for labels in every)
    best = _slices(model)
    assert best.problem.bound_back(best.bound) == best.problem.cost_back(best.energy) == least
    assert best.evidence.kind == "cores"
    assert best.evidence.stated
    assert best.evidence.log is None


def test_with_a_proof_file_the_stage_offers_bounds_as_long_as_their_proof_is_kept(
    tmp_path: Path,
) -> None:
    proof, model = ProofFile(tmp_path / "run.proof"), _cover(12, 0)
    best = _slices(model, proof)
    assert best.bound == best.energy
    assert best.evidence.log is not None
    best = _slices(model, proof, Options(tuning=Tuning(CoreNumbers(logged=200))))
    proof.close()
    assert best.found
    assert best.bound < best.energy


@pytest.mark.parametrize("seed", range(3))
def test_a_run_by_cores_writes_a_proof_that_is_checked(tmp_path: Path, seed: int) -> None:
    model, path = _cover(24, seed), tmp_path / "run.proof"
    # neither branch and bound nor elimination
    alone = Tuning(SearchNumbers(entries=0), EliminationNumbers(states=10**9))
    result = softmap.solve(model, goal="optimal", proof=path, tuning=alone)
    assert result.status is softmap.Status.OPTIMAL
    assert result.proof.kind == "cores"
    found = softmap.verify(result, proof=path)
    assert found.verdict is Verdict.CHECKED
    kinds = {name for name, _ in taken_apart(path)[1]}
    assert "CORE" in kinds


def test_a_run_with_cores_claims_nothing_false() -> None:
    model = _cover(40, 3)
    result = softmap.solve(model, goal="optimal")
    assert result.status is softmap.Status.OPTIMAL
    assert softmap.verify(result).holds


@pytest.mark.parametrize(("labels", "hard"), [(3, True), (2, False)])
def test_other_models_are_left_to_other_stages(labels: int, hard: bool) -> None:
    cost = np.inf if hard else 1.0
    tables = [((i, i + 1), np.where(np.eye(labels), cost, 0.0)) for i in range(5)]
    model = Model.from_factors([labels] * 6, tables)
    assert not suits(Cores, Problem.of(model))


def test_pigeons_without_holes_are_refused() -> None:
    factors = [softmap.Linear([4 * i + j for j in range(4)], [1] * 4, low=1) for i in range(5)]
    factors += [softmap.AtMostOne([4 * i + j for i in range(5)]) for j in range(4)]
    with pytest.raises(softmap.InfeasibleModel):
        _slices(Model.from_factors([2] * 20, factors))

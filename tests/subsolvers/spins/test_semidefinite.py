"""When the semidefinite bound is computed."""

from __future__ import annotations

import sys
from itertools import combinations

import numpy as np

import softmap
from softmap.run.best import Best
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.subsolvers.spins.semidefinite import Semidefinite
from softmap.subsolvers.spins.spin_numbers import SpinNumbers
from softmap.tuning import Tuning
from support.stage_runs import planned, suits


def test_scipy_is_not_imported_within_a_short_limit(monkeypatch):
    """The import takes longer than such a run, and nothing can interrupt it."""
    pairs = list(combinations(range(12), 2))
    weights = np.random.default_rng(0).normal(size=len(pairs))
    problem = Problem.plain(softmap.Model(np.zeros((12, 2)), pairs, softmap.Potts(weights)).network)
    monkeypatch.delitem(sys.modules, "scipy.linalg", raising=False)
    assert not suits(Semidefinite, problem, Options(time_limit=0.1))
    assert suits(Semidefinite, problem, Options(time_limit=60.0))
    assert suits(Semidefinite, problem, Options())
    monkeypatch.setitem(sys.modules, "scipy.linalg", sys)
    assert suits(Semidefinite, problem, Options(time_limit=0.1))


def test_what_is_not_imported_yet_waits_until_it_takes_a_small_part_of_the_run(monkeypatch):
    pairs = list(combinations(range(12), 2))
    tables = softmap.Tables(np.random.default_rng(0).normal(size=(len(pairs), 3, 3)))
    problem = Problem.plain(softmap.Model(np.zeros((12, 3)), pairs, tables).network)
    stage = Semidefinite(problem, Options(time_limit=60.0))
    best = Best(problem)
    monkeypatch.setitem(sys.modules, "scipy.linalg", sys)
    later = planned(stage, best, bound_seconds=1e-4).begin
    monkeypatch.delitem(sys.modules, "scipy.linalg")
    assert planned(stage, best, bound_seconds=1e-4).begin == later + SpinNumbers().import_seconds


def test_many_labels_are_bounded_up_to_a_size_and_only_if_there_are_many_pairs():
    pairs = list(combinations(range(9), 2))
    unary = np.zeros((9, 3))
    unary[:4, 2] = np.inf  # 23 possible labels of 9 variables
    for edges, most, applies in ((pairs, 15, True), (pairs, 14, False), (pairs[:27], 15, False)):
        tables = softmap.Tables(np.zeros((len(edges), 3, 3)))
        problem = Problem.plain(softmap.Model(unary, edges, tables).network)
        options = Options(tuning=Tuning(SpinNumbers(indicators=most)))
        assert suits(Semidefinite, problem, options) is applies

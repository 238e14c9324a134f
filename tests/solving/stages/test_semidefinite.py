"""When the semidefinite bound is computed."""

from __future__ import annotations

import sys
from itertools import combinations

import numpy as np

import softmap
from softmap.solving.options import Options
from softmap.solving.problem import Problem
from softmap.solving.stage import Estimates
from softmap.solving.stages.semidefinite import Semidefinite
from softmap.tuning import TUNING, Tuning
from support.stage_runs import suits


def test_scipy_is_not_imported_within_a_short_limit(monkeypatch):
    """The import takes longer than such a run, and nothing can interrupt it."""
    pairs = list(combinations(range(12), 2))
    weights = np.random.default_rng(0).normal(size=len(pairs))
    problem = Problem.plain(softmap.Model(np.zeros((12, 2)), pairs, softmap.Potts(weights)))
    monkeypatch.delitem(sys.modules, "scipy.linalg", raising=False)
    assert not Semidefinite(problem, Options(time_limit=0.1)).applies()
    assert Semidefinite(problem, Options(time_limit=60.0)).applies()
    assert Semidefinite(problem, Options()).applies()
    monkeypatch.setitem(sys.modules, "scipy.linalg", sys)
    assert Semidefinite(problem, Options(time_limit=0.1)).applies()


def test_what_is_not_imported_yet_waits_until_it_takes_a_small_part_of_the_run(monkeypatch):
    pairs = list(combinations(range(12), 2))
    tables = softmap.Tables(np.random.default_rng(0).normal(size=(len(pairs), 3, 3)))
    problem = Problem.plain(softmap.Model(np.zeros((12, 3)), pairs, tables))
    stage = Semidefinite(problem, Options(time_limit=60.0))
    assert stage.applies()
    known = Estimates(bound=1e-4, energy=0.0)
    monkeypatch.setitem(sys.modules, "scipy.linalg", sys)
    later = stage.begin(known)
    monkeypatch.delitem(sys.modules, "scipy.linalg")
    assert stage.begin(known) == later + TUNING.spins_import


def test_many_labels_are_bounded_up_to_a_size_and_only_if_there_are_many_pairs():
    pairs = list(combinations(range(9), 2))
    unary = np.zeros((9, 3))
    unary[:4, 2] = np.inf  # 23 possible labels of 9 variables
    for edges, most, applies in ((pairs, 15, True), (pairs, 14, False), (pairs[:27], 15, False)):
        tables = softmap.Tables(np.zeros((len(edges), 3, 3)))
        problem = Problem.plain(softmap.Model(unary, edges, tables))
        options = Options(tuning=Tuning(dense_variables=3 * most))
        assert suits(Semidefinite, problem, options) is applies

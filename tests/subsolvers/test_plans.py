"""Plans change nothing, and a warm start runs the subsolvers that the cold run runs."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

import softmap
from softmap.run.best import Best
from softmap.run.options import Options
from softmap.run.problem import Problem
from softmap.run.subsolver import Board, Occasion, Once, Outcome, Seen, View
from softmap.subsolvers.cores.cores import Cores
from softmap.subsolvers.labels.label_numbers import ExpansionNumbers
from softmap.subsolvers.permutations.permute import PermutationNumbers, Permute
from softmap.subsolvers.registry import Place, kinds
from softmap.subsolvers.search.eliminate import EliminationNumbers
from softmap.tuning import Tuning
from support.permutations import permutation_model, random_factors
from support.stage_runs import planned

# elimination and expansion moves of small models
SMALL = Tuning(EliminationNumbers(states=1_000), ExpansionNumbers(variables=100))
KINDS = (*kinds(Place.BEFORE, Place.BESIDE),)


def _dense(labels: int) -> softmap.Model:
    rng = np.random.default_rng(7)
    pairs = [(i, j) for i in range(9) for j in range(i)]
    shape = (len(pairs), labels, labels)
    return softmap.Model(rng.normal(size=(9, labels)), pairs, rng.normal(size=shape))


def _clauses() -> softmap.Model:
    rng, factors = np.random.default_rng(5), []
    for _ in range(60):
        table = np.zeros((2, 2, 2))
        table[tuple(rng.integers(0, 2, 3))] = rng.integers(1, 9)
        factors.append((rng.choice(12, 3, replace=False).tolist(), table))
    return softmap.Model.from_factors([2] * 12, factors)


def _chain_of_large_tables() -> softmap.Model:
    rng = np.random.default_rng(5)
    scopes = [(0, 1, 2, 3, 4), (4, 5, 6, 7, 8)]
    return softmap.Model.from_factors([4] * 9, [(s, rng.normal(size=(4,) * 5)) for s in scopes])


def _assignment() -> softmap.Model:
    costs = [((i,), np.random.default_rng(i).normal(size=6)) for i in range(6)]
    return softmap.Model.from_factors([6] * 6, [*costs, softmap.AllDifferent(range(6))])


def _grid(labels: int, size: int) -> softmap.Model:
    unary = np.random.default_rng(1).normal(size=(size, size, labels))
    return softmap.Model.grid(unary, softmap.Potts(0.4))


MODELS = {
    "two labels": lambda: _dense(2),
    "three labels": lambda: _dense(3),
    "clauses": _clauses,
    "large tables": _chain_of_large_tables,
    "assignment": _assignment,
    "permutation": lambda: permutation_model(*random_factors(np.random.default_rng(202))),
    "submodular": lambda: _grid(2, 9),
    "image": lambda: _grid(4, 12),
    "forest": lambda: softmap.generators.random_tree(9, 3, seed=1),
}


@functools.cache
def _model(name: str) -> softmap.Model:
    return MODELS[name]()


def _called(monkeypatch, model, **options):
    """The kinds that a run calls if none of them does anything, without a clock."""
    called = set()

    def nothing(self, best, share):
        called.add(type(self))
        return Outcome(active=False, ran=False)

    with monkeypatch.context() as patched:
        for kind in KINDS:
            patched.setattr(kind, "__call__", nothing)
        softmap.solve(model, threads=1, gap=0.0, max_work=10**8, tuning=SMALL, **options)
    return called


COLD: dict[str, set[type]] = {}


@pytest.mark.parametrize("name", MODELS)
def test_a_warm_start_runs_the_subsolvers_that_the_cold_run_runs(name, monkeypatch):
    """The earlier result is a poor one, so that it proves nothing."""
    model = _model(name)
    first = softmap.paper.solve(model, threads=1, goal="lp", updates=1)
    COLD[name] = _called(monkeypatch, model)
    assert _called(monkeypatch, model, warm_start=first) >= COLD[name]


def test_the_models_of_these_tests_run_every_subsolver(monkeypatch):
    for name in MODELS:
        if name not in COLD:
            COLD[name] = _called(monkeypatch, _model(name))
    assert set.union(*COLD.values()) == set(KINDS)


@pytest.mark.parametrize("seconds", [None, 1.0])
@pytest.mark.parametrize("name", MODELS)
def test_plans_change_nothing_and_need_no_call_before(name, seconds):
    model, options = _model(name), Options(time_limit=seconds, tuning=SMALL)
    problem = Problem.of(model)
    best = Best(problem)
    best.offer_zero()
    best.offer_labels(np.zeros(model.network.num_variables, dtype=np.int64))
    seen = Seen(5, 5, 5.0, 1.0, lambda: best.lam)
    for kind in KINDS:
        subsolver = kind.make(problem, options)
        if subsolver is None:
            continue
        for board in (Board(), Board(seen=seen)):
            for occasion in Occasion:
                view = View(best, board, 1e-3, 1.0, occasion)
                before = {k: v for k, v in vars(subsolver).items() if k.startswith("_")}
                values, kind_of_proof = best.values, best.evidence.kind
                labels, lam, point = best.labels, best.lam.copy(), best.point
                plan = subsolver.plan(view)
                assert subsolver.plan(view) == plan
                assert plan is None or plan.why
                after = vars(subsolver)
                assert all(after[k] is v for k, v in before.items())
                assert (best.values, best.evidence.kind) == (values, kind_of_proof)
                assert best.labels is labels
                assert best.point is point
                assert np.array_equal(best.lam, lam)
                if isinstance(subsolver, Once):
                    assert (plan is None) == (occasion is not Occasion.TURN)


def test_cores_are_urgent_from_the_first_plan_on_and_after_an_earlier_result():
    """Where the first check of the relaxation takes long beside the limit."""
    problem = Problem.of(_clauses())
    cores, best = Cores.make(problem, Options(time_limit=1.0)), Best(problem)
    assert cores is not None
    recalled = Seen(0, 0, 0.0, 1.0, lambda: best.lam)
    for board in (Board(), Board(seen=recalled)):
        assert planned(cores, best, board, slow=True).urgent
        assert not planned(cores, best, board, slow=False).urgent
    checked = Board(seen=Seen(5, 5, 5.0, 1.0, lambda: best.lam))
    assert not planned(cores, best, checked, slow=True).urgent


@pytest.mark.parametrize("spent", [0.0, 0.4, 0.6, 3.0, 1e3])
def test_a_partial_matching_has_at_most_the_least_part_of_the_time(spent):
    """Beside the relaxation, which often proves more; without a limit, it comes at the end."""
    problem = Problem.of(_model("permutation"))
    best = Best(problem)
    for last in (False, True):
        board = Board(seen=Seen(5, 5, 5.0, 1.0, lambda: best.lam, last=last))
        for limit in (None, 1e4):
            permute = Permute(problem, Options(time_limit=limit), [0])
            now = permute._begun + spent
            plan = permute.plan(View(best, board, now=now))
            numbers = PermutationNumbers()
            part = numbers.slice <= numbers.partial_share * spent
            assert (plan is not None) == (last if limit is None else part)
            assert permute.plan(View(best, now=now)) is None
    assert math.isinf(best.lp_bound)

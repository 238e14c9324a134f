"""Every sentence of the README's guarantee, read as a law over random models, goals and limits."""

import re

import numpy as np
import pytest
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

import softmap
from softmap.relaxation.bounds import dual_bound
from support.data import ROOT
from support.oracles import brute_force
from support.strategies import models

README = (ROOT / "README.md").read_text("utf-8")
SECTION = README.split("## The guarantee")[1].split("\n## ")[0]
SENTENCES = re.split(r"(?<=[.])\s+(?=[A-Z`])", " ".join(SECTION.split()))


class Case:
    """A run, and the two optima that it speaks of."""

    def __init__(self, model, result, seed):
        self.model, self.result, self.seed = model, result, seed
        self.optimum = brute_force(model)[0]
        self.lp = softmap.lp.solve(model).value
        size = max(1.0, abs(self.optimum), abs(self.lp))
        self.slack = 1e-6 * size  # of HiGHS, and of sums in another order

    def below(self, low, high):
        assert low <= high + self.slack


def costs_are_minimised(case):
    case.below(case.optimum, case.result.energy)
    best = softmap.solve(case.model, goal="optimal", gap=1e-9)
    assert best.energy == pytest.approx(case.optimum, abs=case.slack)


def whatever_stops_a_run(case):
    result = case.result
    if result.found:
        assert result.energy == case.model.energy(result.labels)
    case.below(result.bound, case.optimum)
    case.below(case.lp, result.primal)
    if np.isfinite(result.primal):
        nodes = result.node_marginals
        sums = np.add.reduceat(nodes, case.model.network.node_offset[:-1])
        assert np.allclose(sums, 1.0, atol=1e-9)
        assert (nodes >= -1e-12).all()


def the_bound_of_the_relaxation(case):
    result = case.result
    case.below(result.lp_bound, case.lp)
    case.below(case.lp, case.optimum)
    assert result.lp_bound <= result.bound


def it_comes_from_the_dual(case):
    result, model = case.result, case.model
    assert result.lam.dtype == np.float64
    if np.isfinite(result.lp_bound):
        tight = softmap.arc_consistency(model)
        outer = model.replace(unary=np.where(tight, model.unary, np.inf))
        assert dual_bound(outer, result.lam) == pytest.approx(result.lp_bound, abs=case.slack)
    messages = np.random.default_rng(case.seed).normal(size=model.network.half_size)
    case.below(dual_bound(model, messages), case.lp)


def the_proof_says_which(case):
    result = case.result
    if result.bound > case.lp + case.slack:
        assert result.proof.kind in ("tightened", "search")
    if result.proof.kind == "relaxation":
        assert result.bound == result.lp_bound


def the_gap(case):
    result = case.result
    assert result.gap == max(0.0, result.energy - result.bound)
    case.below(result.energy - case.optimum, result.gap)
    if result.gap == 0:
        assert result.energy == pytest.approx(case.optimum, abs=case.slack)


def the_gap_of_the_relaxation(case):
    result = case.result
    assert result.lp_gap == max(0.0, result.primal - result.lp_bound)
    case.below(result.primal - case.lp, result.lp_gap)
    case.below(case.lp - result.lp_bound, result.lp_gap)
    # the rest of the gap of labels that are optimal, under a relaxation that is solved
    if result.lp_gap <= case.slack and result.energy <= case.optimum + case.slack:
        rest = result.energy - result.lp_bound
        assert rest == pytest.approx(case.optimum - case.lp, abs=4 * case.slack)


LAWS = {
    "softmap minimises costs.": costs_are_minimised,
    "Whatever stops a run": whatever_stops_a_run,
    "`result.lp_bound` is a lower bound on the LP optimum": the_bound_of_the_relaxation,
    "`lp_bound` is the value of the unsmoothed dual": it_comes_from_the_dual,
    "`bound` may be above the LP optimum": the_proof_says_which,
    "`gap = energy − bound`": the_gap,
    "`lp_gap = primal − lp_bound`": the_gap_of_the_relaxation,
}


def test_every_sentence_has_a_law():
    assert len(SENTENCES) == len(LAWS)
    for sentence, beginning in zip(SENTENCES, LAWS, strict=True):
        assert sentence.startswith(beginning), sentence


@given(
    model=models(hard=True),
    goal=st.sampled_from(["map", "lp", "labels", "optimal"]),
    limit=st.sampled_from([{}, {"max_work": 0}, {"max_work": 40}, {"time_limit": 0}, {"gap": 0.5}]),
    seed=st.integers(0, 2**16),
)
@settings(max_examples=100, deadline=None)
def test_the_guarantee_holds(model, goal, limit, seed):
    assume(np.isfinite(brute_force(model)[0]))
    case = Case(model, softmap.solve(model, goal=goal, seed=seed, **limit), seed)
    for beginning, law in LAWS.items():
        note(f"the sentence: {beginning}")
        law(case)


@given(models(hard=True), st.sampled_from(["map", "optimal"]))
@settings(max_examples=25, deadline=None)
def test_the_progress_line_speaks_of_the_relaxation(model, goal):
    """A search that has closed the gap has not solved the LP."""
    assume(np.isfinite(brute_force(model)[0]))
    lp = softmap.lp.solve(model).value
    for snapshot in softmap.iterate(model, goal=goal):
        slack = 1e-6 * max(1.0, abs(lp))
        assert snapshot.lp_bound <= lp + slack
        assert snapshot.lp_gap == max(0.0, snapshot.primal - snapshot.lp_bound)
        assert lp - snapshot.lp_bound <= snapshot.lp_gap + slack

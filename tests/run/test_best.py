"""`Best`: offers never make it worse, and what is stored of it is all of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import softmap
from softmap.relaxation.polytope import PrimalPoint
from softmap.run.best import Best
from softmap.run.evidence import Stated
from softmap.run.problem import Problem
from softmap.subsolvers.clusters.cluster_evidence import ClusterEvidence

MODEL = softmap.generators.random_grid(3, 3, 3, seed=2)
OPTIMUM = softmap.solve(MODEL, goal="optimal").energy
KINDS = ("lam", "lp bound", "bound", "point", "labels")
OFFERS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 2**32 - 1)), max_size=10)


def offer(best: Best, kind: str, seed: int) -> None:
    """Offer something true: λ, bounds below the optimum, points, labels."""
    rng, model = np.random.default_rng(seed), best.problem.model
    lam = rng.normal(scale=0.3, size=model.half_size)
    if kind == "lam":
        best.offer_lam(lam)
    elif kind == "lp bound":
        best.offer_lp_bound(softmap.relaxation.bounds.dual_bound(model, lam) - 1e-3, lambda: lam)
    elif kind == "bound":
        value = OPTIMUM - rng.exponential()
        stated = Stated(value=value, nodes=int(rng.integers(99)))
        best.offer_bound(rng.choice([stated, ClusterEvidence(value=value)]))
    elif kind == "point":
        nodes = np.concatenate([rng.dirichlet(np.ones(d)) for d in model.num_labels])
        point = PrimalPoint(model, nodes)
        best.offer_point(point.make().cost, point)
    else:
        best.offer_labels(rng.integers(0, 3, model.n))


def values(best: Best) -> dict[str, Any]:
    return {
        "bound": best.bound, "lp_bound": best.lp_bound, "energy": best.energy,
        "primal": best.primal, "gaps": best.gaps(), "evidence": repr(best.evidence),
        "tight": best.tight, "labels": best.labels.tolist(), "lam": best.lam.tolist(),
        "point": best.point and best.point.node_marginals().tolist(),
    }  # fmt: skip


def offered(offers: list[tuple[str, int]]) -> Best:
    best = Best(Problem.plain(MODEL.network))
    for kind, seed in offers:
        offer(best, kind, seed)
    return best


@given(OFFERS)
def test_offers_are_monotone_and_what_is_kept_is_true(offers):
    best = Best(Problem.plain(MODEL.network))
    for kind, seed in offers:
        before = best.bound, best.lp_bound, -best.energy, -best.point_cost, -best.gap
        offer(best, kind, seed)
        after = best.bound, best.lp_bound, -best.energy, -best.point_cost, -best.gap
        assert all(new >= old for new, old in zip(after, before, strict=True))
        assert best.lp_bound <= best.bound <= OPTIMUM + 1e-9 <= best.energy + 2e-9
        if best.found:
            assert best.energy == MODEL.energy(best.labels)
        if np.isfinite(best.lp_bound):
            assert best.lp_bound <= softmap.relaxation.bounds.dual_bound(MODEL.network, best.lam)


@given(OFFERS, OFFERS)
def test_restoring_what_was_stored_is_the_identity(offers, later):
    """Also for offers that come afterwards, and whatever was known before."""
    best, other = offered(offers), offered(later)
    kept = best.snapshot()
    other.restore(kept)
    assert values(other) == values(best)
    again = other.snapshot()
    assert again.keys() == kept.keys()
    assert all(again[name] is kept[name] or again[name] == kept[name] for name in kept)
    for kind, seed in later:
        offer(best, kind, seed)
        offer(other, kind, seed)
        assert values(other) == values(best)


@given(OFFERS)
def test_a_bound_without_records_is_set_aside_and_not_lost(offers):
    best = offered(offers)
    other = Best(Problem.plain(MODEL.network))
    other.restore(best.snapshot(), recorded=True)
    if best.evidence.stated:
        assert other.bound == best.lp_bound
        assert other.take_unrecorded()
    assert (other.bound, repr(other.evidence)) == (best.bound, repr(best.evidence))
    assert not other.take_unrecorded()

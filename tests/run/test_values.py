"""Best values: whatever is offered in whatever order, the best of each kind is kept."""

import math

from hypothesis import given
from hypothesis import strategies as st

from softmap.run.trace import Status
from softmap.run.values import BestValues, RelativeGaps, Tolerances

NUMBERS = st.floats(-10, 10)
OFFERS = st.lists(st.tuples(st.sampled_from(["bound", "point", "labels"]), NUMBERS), max_size=12)


def offered(offers, cutoff=math.inf):
    best = BestValues(lambda bound: 1.0, lam=None, labels=None, cutoff=cutoff)
    for kind, value in offers:
        if kind == "bound":
            best.offer_lp_bound(value, ("lam", value))
        elif kind == "point":
            best.offer_point(value, ("point", value))
        else:
            best.offer_labelling(("labels", value), value, ("point", value))
    return best


@given(OFFERS)
def test_the_best_of_each_kind_is_kept_with_what_belongs_to_it(offers):
    best = offered(offers)
    of = {kind: [v for k, v in offers if k == kind] for kind in ("bound", "point", "labels")}
    assert best.bound == best.lp_bound == max(of["bound"], default=-math.inf)
    assert best.energy == min(of["labels"], default=math.inf)
    assert best.point_cost == min(of["point"] + of["labels"], default=math.inf)
    assert best.lam == (("lam", best.bound) if of["bound"] else None)
    assert best.labels == (("labels", best.energy) if of["labels"] else None)
    assert best.point == (("point", best.point_cost) if of["point"] + of["labels"] else None)
    assert best.tight == bool(of["labels"] and best.energy <= min(of["point"], default=math.inf))
    assert best.primal <= best.energy


@given(OFFERS, NUMBERS, st.tuples(st.floats(0, 5), st.floats(0, 5)))
def test_a_run_stops_only_for_a_gap_within_its_tolerance(offers, cutoff, asked):
    best, tolerances = offered(offers, cutoff), Tolerances(*asked)
    status = best.met(tolerances)
    upper = min(best.energy, cutoff)
    if status in (Status.OPTIMAL, Status.GAP, Status.NONE_BELOW):
        assert upper - best.bound <= tolerances.gap
        assert (status is Status.NONE_BELOW) == (best.energy > cutoff)
    elif status is Status.LP_GAP:
        assert best.point_cost - best.lp_bound <= tolerances.lp_gap
    else:
        assert status is None
        assert best.gaps() > RelativeGaps(tolerances.lp_gap, -1.0)
        assert upper - best.bound > tolerances.gap


def test_the_first_labels_are_kept_even_if_they_break_hard_constraints():
    best = offered([])
    assert not best.offer_labelling("broken", math.inf)
    assert (best.labels, best.found) == ("broken", False)
    assert best.offer_labelling("sound", 1.0)
    assert not best.offer_labelling("worse", 2.0)
    assert (best.labels, best.found) == ("sound", True)

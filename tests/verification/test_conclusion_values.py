"""Conclusions of proof files one by one: what is one, what it needs, and what it says."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import softmap
from softmap.verification.conclusion import OPTIMAL, Conclusion, What, exact_energy
from softmap.verification.records import Rejected


def read(kind, values, energy: Fraction | None = Fraction(7), hard: bool = False) -> Conclusion:
    bits = np.array(values, np.float64).view(np.int64)
    return Conclusion.of((np.array(kind, np.int64), bits), energy, hard)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ([], [1.0]), ([0, 0], [1.0]), ([1, 1], [1.0]), ([4], [1.0]), ([-1], [1.0]), ([0], []),
        ([0], [1.0, 2.0]), ([1], []), ([2], [1.0]), ([3], [1.0]), ([3], [1.0, 2.0, 3.0]),
        ([0], [math.nan]), ([0], [math.inf]), ([0], [-math.inf]), ([3], [1.0, math.nan]),
    ],
)  # fmt: skip
def test_what_is_no_conclusion(kind, values):
    with pytest.raises(Rejected, match="kind of the conclusion"):
        read(kind, values, hard=kind == [2])


def test_conclusions_that_need_other_records():
    for kind, values, energy, hard in (
        ([0], [1.0], None, True), ([1], [1.0], Fraction(1), True), ([3], [1.0, 0.0], None, True),
        ([2], [], None, False), ([1], [1.0], None, False),
    ):  # fmt: skip
        with pytest.raises(Rejected, match="do not suffice"):
            read(kind, values, energy, hard)


def test_gaps_are_not_negative():
    for kind, values in (([1], [-1.0]), ([3], [5.0, -1.0])):
        with pytest.raises(Rejected, match="negative"):
            read(kind, values)
    assert read([0], [-3.0], None).needed == -3
    assert read([1], [0.0]).needed == 7
    assert read([3], [-5.0, 0.0], None).needed == -5


def test_what_conclusions_need_and_when_they_hold():
    for found, needed in (
        (read([0], [2.5]), Fraction(5, 2)), (read([1], [2.5]), Fraction(9, 2)),
        (read([3], [4.0, 1.5]), Fraction(5, 2)),
    ):  # fmt: skip
        assert found.needed == needed
        assert found.holds(needed)
        assert not found.holds(needed - Fraction(1, 10**30))
    assert Conclusion(What.WITHIN, (Fraction(1),), None).needed == 0
    never = read([2], [], None, hard=True)
    assert never.needed == 0
    assert never.holds(Fraction(1, 10**30))
    assert not never.holds(Fraction(0))


@pytest.mark.parametrize("sign", [1, -1])
def test_which_labellings_are_optimal(sign):
    energy = Fraction(sign * 2**40)
    last = OPTIMAL * 2**40  # exactly the tolerance
    assert read([1], [last], energy).optimal
    assert not read([1], [math.nextafter(last, math.inf)], energy).optimal
    assert read([1], [0.0], Fraction(0)).optimal
    assert not read([1], [1e-300], Fraction(0)).optimal
    assert not read([0], [0.0], energy).optimal
    assert not read([3], [0.0, 0.0], energy).optimal
    assert not Conclusion(What.WITHIN, (Fraction(0),), None).optimal


def test_what_conclusions_say():
    large = Fraction(2**40)
    for found, said in (
        (read([2], [], None, hard=True), "no labelling satisfies the hard constraints"),
        (read([0], [2.5]), "no labelling costs less than 2.5"),
        (read([3], [4.0, 0.0]), "no labelling costs less than 4.0"),
        (read([3], [4.0, 1.5]), "no labelling costs less than 4.0 by more than 1.5"),
        (read([1], [0.0]), "the labelling is optimal"),
        (read([1], [0.5]), "the labelling is within 0.5 of the optimum"),
        (read([1], [0.5], large), "the labelling is optimal, as within 0.5 of the optimum"),
    ):
        assert str(found) == said


def models() -> list[softmap.Model]:
    """Pairs; a factor of three variables; a constraint with running sums."""
    rng = np.random.default_rng(1)
    pair, three = rng.integers(0, 9, (2, 3)), rng.integers(0, 9, (2, 3, 2))
    sums = softmap.Linear(range(3), [np.arange(2), np.arange(3), np.arange(2)], low=1, high=3)
    rows = [np.arange(2) * (k + 1) for k in range(7)]
    long = [((0, 6), pair[:, :2]), softmap.Linear(range(7), rows, low=3, high=20)]
    found = [
        softmap.Model.from_factors([2, 3, 2], [((0, 1), pair), *more])
        for more in ([], [((0, 1, 2), three)], [sums], [((0, 1, 2), three), sums])
    ]
    return [*found, softmap.Model.from_factors([2] * 7, long)]


@pytest.mark.parametrize("which", range(5))
def test_costs_of_labellings_are_those_of_the_model(which):
    model, forbidden = models()[which], 0
    assert (len(model.network.running) > 0) == (which == 4)
    for labels in itertools.product(
        *map(range, model.network.num_labels[: model.network.num_visible].tolist())
    ):
        given, cost = np.array(labels), float(model.energy(np.array(labels)))
        if math.isfinite(cost):
            assert exact_energy(model.network, given) == Fraction(cost)
            continue
        forbidden += 1
        with pytest.raises(Rejected, match="violates"):
            exact_energy(model.network, given)
    assert (forbidden > 0) == (which > 1)


@pytest.mark.parametrize(
    "labels", [[0, 0], [0, 0, 0, 0], [-1, 0, 0], [0, 0, -1], [2, 0, 0], [0, 3, 0], [[0, 0, 0]]]
)
def test_other_labels_have_no_cost(labels):
    with pytest.raises(Rejected, match="one label for each"):
        exact_energy(models()[0].network, np.array(labels))

"""Parallel runs, a few of each kind; repeats.py repeats them, `make sanitize` looks for races."""

from __future__ import annotations

import pytest

import softmap
from faults.repeats import KINDS

pytestmark = pytest.mark.threads


@pytest.mark.parametrize("kind", KINDS)
def test_four_threads_give_the_answer_of_one(kind):
    for seed in (0, 1):
        assert KINDS[kind](seed, 4) == KINDS[kind](seed, 1)


def test_labels_are_searched_for_on_four_threads():
    model = softmap.generators.potts_grid(12, 12, 4, seed=1)
    result = softmap.solve(model, goal="labels", threads=4, max_work=200_000)
    assert softmap.verify(result).holds

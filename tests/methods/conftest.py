"""What tests of methods share."""

import pytest

from softmap.relaxation import dual


@pytest.fixture
def stacked_once(monkeypatch):
    """The tables of a model's edges are stacked once, not at each look at its smoothed dual.

    On small models, stacking them takes longer than what the dual does with them.
    """
    stack, made = dual.edge_batches, {}

    def batches(model):
        if id(model) not in made:
            made[id(model)] = model, list(stack(model))  # while it is here, no other has its id
        return made[id(model)][1]

    monkeypatch.setattr(dual, "edge_batches", batches)

"""What an array holds beside its numbers: masks, and gradients to be recorded."""

from __future__ import annotations

import numpy as np
import pytest

import softmap
from softmap import Model

MASKED = {
    "unary": lambda a: Model(a),
    "unary, rows": lambda a: Model([[0.0, 1.0], a[0]]),
    "grid": lambda a: Model.grid(a[None]),
    "replace": lambda a: Model(np.zeros((2, 2))).replace(unary=a),
    "tables": lambda a: softmap.Tables(a[None]),
    "weights": lambda a: softmap.Potts(a[0]),
    "pairwise": lambda a: Model(np.zeros((2, 2)), [[0, 1]], a),
    "edges": lambda a: Model(np.zeros((2, 2)), a.astype(int), softmap.Potts([1.0, 1.0])),
    "costs": lambda a: Model.from_factors([2, 2], [((0, 1), a)]),
    "labels": lambda a: Model(np.zeros((2, 2))).energy(a.astype(int)[0]),
    "qubo": lambda a: Model.from_qubo(a),
    "masses": lambda a: softmap.transport.sinkhorn(a[0], [0.5, 0.5], np.zeros((2, 2))),
    "pixels": lambda a: softmap.segment(a, 2),
}


@pytest.mark.parametrize("name", MASKED)
def test_masked_entries_are_not_taken_for_numbers(name):
    values = np.ma.MaskedArray([[0.0, 1.0], [1.0, 0.0]], mask=[[True, False], [False, False]])
    with pytest.raises((softmap.ModelError, softmap.OptionError), match="masked"):
        MASKED[name](values)


def test_a_masked_array_without_masked_entries_is_an_array():
    values = np.ma.MaskedArray([[0.0, 1.0], [1.0, 0.0]])
    model = Model(values, [[0, 1]], np.ma.MaskedArray([[0.0, 1.0], [1.0, 0.0]]))
    assert type(model.unary) is np.ndarray
    assert model.energy(np.ma.MaskedArray([1, 1])) == 1.0


class Recorded(np.ndarray):
    """As a tensor of PyTorch by whose entries a loss is differentiated."""

    requires_grad = True


TRACED = {
    "unary": lambda a: Model(a),
    "rows": lambda a: Model([a[0], a[1]]),
    "grid": lambda a: Model.grid(a[None]),
    "replace": lambda a: Model(np.zeros((2, 2))).replace(unary=a),
    "pairwise": lambda a: Model(np.zeros((2, 2)), [[0, 1]], a),
    "costs": lambda a: Model.from_factors([2, 2], [((0, 1), a)]),
}


@pytest.mark.parametrize("name", TRACED)
def test_a_gradient_is_not_lost_in_silence(name):
    with pytest.raises(softmap.ModelError, match="requires a gradient"):
        TRACED[name](np.zeros((2, 2)).view(Recorded))

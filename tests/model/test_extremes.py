"""The smallest and the largest finite costs of nodes."""

import numpy as np
import pytest
from hypothesis import given

from softmap import core
from support.strategies import models


@given(models())
def test_extremes_are_those_of_the_finite_costs(model):
    low, high = model.extremes()
    for i in range(model.n):
        costs = model.unary_of(i)
        finite = costs[np.isfinite(costs)]
        assert low[i] == finite.min(initial=finite[0] if len(finite) else 0.0)
        assert high[i] == finite.max(initial=finite[0] if len(finite) else 0.0)


def test_a_node_without_finite_costs_has_extremes_0():
    low, high = np.ones((2, 3))
    costs = np.array([np.inf, np.inf, -2.0, np.inf, 5.0])
    core.finite_extremes(np.array([0, 2, 4, 5]), costs, low, high)
    assert (low.tolist(), high.tolist()) == ([0.0, -2.0, 5.0], [0.0, -2.0, 5.0])
    with pytest.raises(ValueError, match="node 2 has no costs"):
        core.finite_extremes(np.array([0, 2, 4, 6]), costs, low, high)

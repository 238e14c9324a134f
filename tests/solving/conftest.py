"""What several tests of runs solve."""

from __future__ import annotations

import pytest

from softmap import Model, generators, lp


@pytest.fixture(scope="package")
def problem() -> tuple[Model, float]:
    """A random graph whose gaps no method closes to the last bit, and its LP optimum."""
    model = generators.erdos_renyi(40, 3, seed=9)
    return model, lp.solve(model).value

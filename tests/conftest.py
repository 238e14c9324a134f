"""Set up before any test module is imported: plots without a screen, hypothesis profiles."""

import math
import os
import signal
import sys

import pytest
from hypothesis import HealthCheck, settings

from softmap import Model, generators, lp

os.environ.setdefault("MPLBACKEND", "Agg")

# Machines that run tests are shared: no deadline makes sense.
_COMMON = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
settings.register_profile("default", max_examples=25, derandomize=True, **_COMMON)
_MANY = int(os.environ.get("EXAMPLES", "1000"))
settings.register_profile("thorough", max_examples=_MANY, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


# A shell's background job ignores Ctrl-C, and so would the tests that press it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """The examples in docstrings are those of src: here, only functions and classes are tests."""
    return [found for found in (yield) if type(found) is pytest.Module]


@pytest.fixture(autouse=True)
def no_press_yet():
    """Tests that press Ctrl-C follow each other quickly: none counts as the second press."""
    module = sys.modules.get("softmap.run.budget")
    if module is not None:
        module.Interrupts.last = -math.inf


@pytest.fixture(scope="session")
def problem() -> tuple[Model, float]:
    """A random graph whose gaps no method closes to the last bit, and its LP optimum."""
    model = generators.erdos_renyi(40, 3, seed=9)
    return model, lp.solve(model).value

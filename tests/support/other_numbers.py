"""Other default numbers, also for code that no run hands its numbers to."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

from softmap import tuning
from softmap.methods.sweeps.chains import ChainNumbers
from softmap.tuning import Numbers


def by_default(*groups: Numbers) -> AbstractContextManager[Any]:
    """Let these groups be the default ones."""
    return mock.patch.dict(tuning._DEFAULTS, {type(group): group for group in groups})


def large_models() -> AbstractContextManager[Any]:
    """Treat each model as a large one: the best bound takes the memory of momentum."""
    return by_default(ChainNumbers(spare=0))

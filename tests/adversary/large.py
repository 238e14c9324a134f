"""The ways of large models and idle cores, for small ones: as if no size were too small."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

from softmap.algorithms.pace import Pace
from softmap.algorithms.sweeps import chains, coarser
from softmap.solving import meanwhile, run

SEVERAL = property(lambda pace: len(pace._choices) > 1)
WAYS = (
    (chains, "SPARE", 0),  # the best bound takes the memory of momentum
    (chains, "LARGE", 0),  # messages in single precision prove bounds by themselves
    (run, "LARGE", 0),  # λ is handed out as what it is made of
    (coarser, "LEAST", 5),  # pictures of more than one block begin with these,
    (coarser, "TIED", 0.0),  # whatever their costs are
    (Pace, "prefers_one", SEVERAL),  # passes leave a core idle where there are several,
    (meanwhile, "LONG", 0.0),  # and go on beside every check
)


@contextmanager
def as_if_large() -> Iterator[None]:
    """Runs within take the ways of large models."""
    with ExitStack() as changes:
        for owner, name, value in WAYS:
            changes.enter_context(mock.patch.object(owner, name, value))
        yield

"""The ways of large models and idle cores, for small ones: as if no size were too small."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from softmap.methods.sweeps.anneal import AnnealNumbers
from softmap.methods.sweeps.chains import ChainNumbers
from softmap.run.memory import MemoryEstimate
from support.other_numbers import by_default

LARGE = (
    # the best bound takes the memory of momentum
    ChainNumbers(spare=0),
    # λ is handed out as what it is made of
    MemoryEstimate(lazy_entries=0, returned_entries=0),
    # images of more than one block begin with their blocks
    AnnealNumbers(coarse_pixels=5, coarse_tied=0.0),
)


@contextmanager
def as_if_large() -> Iterator[None]:
    """Runs within take the ways of large models."""
    with by_default(*LARGE):
        yield

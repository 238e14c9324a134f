"""The ways of large models and idle cores, for small ones: as if no size were too small."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from unittest import mock

from softmap.methods.sweeps import anneal, chains
from softmap.solving.options import Options
from softmap.tuning import TUNING

LAZY = replace(TUNING, lazy_entries=0)
WAYS = (
    # the best bound takes the memory of momentum
    (chains, "CHAINS", replace(chains.CHAINS, spare=0)),
    # λ is handed out as what it is made of
    (Options, "tuning", property(lambda _: LAZY, lambda *_: None)),
    # pictures of more than one block begin with these, whatever their costs are
    (anneal, "TUNING", replace(TUNING, coarse_pixels=5, coarse_tied=0.0)),
)


@contextmanager
def as_if_large() -> Iterator[None]:
    """Runs within take the ways of large models."""
    with ExitStack() as changes:
        for owner, name, value in WAYS:
            changes.enter_context(mock.patch.object(owner, name, value))
        yield

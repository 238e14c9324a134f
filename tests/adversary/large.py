"""The ways of large models and idle cores, for small ones: as if no size were too small."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from unittest import mock

from softmap.methods.sweeps import chains
from softmap.run.options import Options
from softmap.tuning import TUNING

PAGE = replace(TUNING, lazy_entries=0, coarse_pixels=5, coarse_tied=0.0)
WAYS = (
    # the best bound takes the memory of momentum
    (chains, "CHAINS", replace(chains.CHAINS, spare=0)),
    # λ is handed out as what it is made of; images of more than one block begin with their blocks
    (Options, "tuning", property(lambda _: PAGE, lambda *_: None)),
)


@contextmanager
def as_if_large() -> Iterator[None]:
    """Runs within take the ways of large models."""
    with ExitStack() as changes:
        for owner, name, value in WAYS:
            changes.enter_context(mock.patch.object(owner, name, value))
        yield

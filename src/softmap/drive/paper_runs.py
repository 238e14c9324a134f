"""Runs of the paper's methods: with the options that its experiments need, beside those of `solve`.

`softmap.paper` hands them on.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

from softmap.drive import solve as runs
from softmap.model import Model
from softmap.run.options import Options, with_options
from softmap.run.result import Result
from softmap.run.trace import Snapshot

__all__ = ["resume", "snapshots", "solve"]


@with_options(Options)
def solve(model: Model, options: Options) -> Result:
    """Run a method of the paper, or any other one, at a fixed η or for a number of updates.

    Parameters
    ----------
    model : Model
        The model whose energy is minimised.
    eta : float, optional
        Inverse temperature. The paper's methods require it and keep it fixed. "anneal" starts from
        it; by default it is chosen from the costs.
    updates : int, optional
        Stop after this many updates: passes, or single updates of a randomised method. A method
        other than "anneal" does all updates even if the gaps are closed earlier.
    every : int, optional
        Check after this many updates, and call `on_snapshot`. By default the interval grows with
        the run; with `updates`, a method other than "anneal" makes about 40 checks.
    **options
        The options of `softmap.solve`, with the same meaning and defaults.

    Returns
    -------
    Result
        The best labelling, bound and primal point, whatever stopped the run.

    Examples
    --------
    >>> import softmap
    >>> model = softmap.generators.potts_grid(5, 5, 3, seed=1)
    >>> run = softmap.paper.solve(model, method="accel-smp", eta=50.0, updates=200, goal="lp")
    >>> run.method, run.bound <= run.energy
    ('accel-smp', True)
    """
    return runs.run_to_end(model, options)


@with_options(Options)
def snapshots(model: Model, options: Options) -> Generator[Snapshot, None, Result]:
    """Run `solve` of this module as a generator of snapshots, one per check.

    Parameters
    ----------
    model : Model
        The model whose energy is minimised.
    **options
        The options of `softmap.paper.solve`.

    Yields
    ------
    Snapshot
        The current bound, energy and best labelling.

    Returns
    -------
    Result
        The result, as the value of the generator's `StopIteration`.

    Examples
    --------
    >>> import softmap
    >>> model = softmap.generators.potts_grid(5, 5, 3, seed=1)
    >>> run = softmap.paper.snapshots(model, method="smp", eta=50.0, updates=100, every=25)
    >>> [snapshot.updates for snapshot in run]
    [25, 50, 75, 100]
    """
    return runs.steps(model, options)


def resume(path: str | Path, model: Model, *, updates: int | None = None, **limits: Any) -> Result:
    """Continue a stored run of `softmap.paper.solve` up to a number of updates.

    Parameters
    ----------
    path : str or Path
        The checkpoint.
    model : Model
        The model of the run that was stopped.
    updates : int, optional
        Stop after this many updates in all; by default that of the stored run.
    **limits
        Options that a checkpoint does not store: `time_limit`, `max_work`, `checkpoint`, ...

    Returns
    -------
    Result
        The result, as of `softmap.paper.solve`.
    """
    return runs.resumed(path, model, {"updates": updates}, limits)

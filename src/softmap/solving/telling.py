"""What a run tells while it goes on: to the logger "softmap", and to people who asked for it."""

from __future__ import annotations

import logging
from collections.abc import Generator
from typing import TYPE_CHECKING

from softmap.solving.result import Result
from softmap.solving.run import Run
from softmap.solving.trace import Snapshot, Status

if TYPE_CHECKING:
    from softmap.views.watching import Watching

__all__ = ["begin", "left", "say", "shown"]

LOG = logging.getLogger("softmap")
LOG.addHandler(logging.NullHandler())


def begin(run: Run) -> Watching | None:
    """Say that a run begins, and make what shows it, where that is asked for."""
    options = run.options
    LOG.info("solving %r by %s, goal %s", run.given, options.method, options.goal)
    if not options.verbose and not options.progress:
        return None
    from softmap.views.watching import Watching

    limits = {"time_limit": options.time_limit, "gap": options.gap}
    return Watching(verbose=options.verbose, progress=options.progress, limits=limits)


def shown(
    stages: Generator[Snapshot, None, Status], watching: Watching | None
) -> Generator[Snapshot, None, Status]:
    """The snapshots of a run, each logged and shown."""
    while True:
        try:
            snapshot = next(stages)
        except StopIteration as stop:
            status: Status = stop.value
            return status
        if LOG.isEnabledFor(logging.DEBUG):
            LOG.debug("%s", snapshot.row)
        if watching is not None:
            watching(snapshot)
        try:
            yield snapshot
        except KeyboardInterrupt as error:
            stages.throw(error)


def say(result: Result, watching: Watching | None) -> None:
    """Tell how a run has ended."""
    LOG.info("%r after %.3g s: %s", result, result.seconds, result.status)
    if watching is not None:
        watching.end(result)


def left(result: Result) -> KeyboardInterrupt:
    """What a second Ctrl-C within a second raises."""
    error = KeyboardInterrupt("Ctrl-C was pressed twice")
    error.result = result  # type: ignore[attr-defined]
    return error

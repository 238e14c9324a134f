"""Messages of a run, and the momentum over passes."""

from __future__ import annotations

from dataclasses import dataclass

from softmap.methods.base import Floats

__all__ = ["CLOCK", "Messages"]

CLOCK = (0.0, 0.0, -1.0)  # as `Messages.clock` begins


@dataclass
class Messages:
    """M = -λ along the chains, and the momentum over passes.

    `msg` is the result of the last pass, `prev` what momentum compares it with (empty: momentum
    begins anew); `clock` holds Nesterov's t, the number of restarts and the last product that
    decides on them, `shift` what the last half pass took off each edge. Messages sent forward, and
    what was taken off them, may have been `overwritten` by a bound.
    """

    msg: Floats
    prev: Floats
    clock: Floats
    shift: Floats
    overwritten: bool = False

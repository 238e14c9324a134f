"""Messages of a sweeping method, and the running average of the marginals of its passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from softmap.methods.base import Floats

__all__ = ["CLOCK", "Messages", "Sampling", "sampled_by_turns"]


@dataclass(frozen=True)
class Averaging:
    """How marginals are averaged over passes.

    Attributes
    ----------
    every : int
        Passes between samples of the averaged marginals.
    recent : float
        Sample k counts like k**recent: about the last tenth of all passes.
    """

    every: int = 5
    recent: float = 8.0


AVERAGING = Averaging()


@dataclass(frozen=True)
class Sampling:
    """Where the samples of a run stand before some passes, and what is to be done after a few.

    Attributes
    ----------
    passes, samples : int
        So far; a sample is due whenever `passes` has become a multiple of `AVERAGING.every`.
    longest : float
        What Nesterov's t is cut to then.
    before, mean : float arrays over `model.node_offset`
        The average so far, and where it is written to; of length 0 where nothing is averaged, or
        no sample is due.
    """

    passes: int
    samples: int
    longest: float
    before: Floats
    mean: Floats

    def after(self, count: int) -> tuple[int, int]:
        """Passes and samples after `count` passes."""
        passes = self.passes + count
        taken = passes // AVERAGING.every - self.passes // AVERAGING.every if len(self.mean) else 0
        return passes, self.samples + taken


def sampled_by_turns(engine: Any, state: Any, count: int, eta: float, sampling: Sampling) -> None:
    """`count` passes of an engine with momentum, turn by turn: what `core.sampled_passes` does."""
    passes, samples, mean = sampling.passes, sampling.samples, sampling.mean
    mean[:] = sampling.before
    while count > 0:
        now = min(count, AVERAGING.every - passes % AVERAGING.every)
        engine.passes(state, now, eta, momentum=True)
        passes, count = passes + now, count - now
        if passes % AVERAGING.every:
            return
        state.clock[0] = min(state.clock[0], sampling.longest)
        if len(mean):
            samples += 1
            mean += (engine.nodes(state.msg, eta) - mean) * (
                (AVERAGING.recent + 1.0) / (samples + AVERAGING.recent)
            )


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

"""Single passes over a model, as the solvers make them, ready to be timed."""

from __future__ import annotations

import math

from softmap.methods.sweeps.chains import Chains
from softmap.model import Model
from softmap.relaxation.consistency import tighten

ETA = 100.0


class Passes:
    """Chain passes with momentum (the annealed solver's), or hard ones (TRW-S) with `hard`."""

    def __init__(self, model: Model, threads: int, *, hard: bool = False) -> None:
        self._chains = Chains(tighten(model), threads)
        self._state = self._chains.start(None)
        self._hard = hard
        self.run()  # load the kernels

    def run(self) -> None:
        """One pass: two messages per edge."""
        eta = math.inf if self._hard else ETA
        self._chains.passes(self._state, 1, eta, momentum=not self._hard)

"""What a proof file concludes, and the exact cost of the labelling in it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from softmap.model import Network
from softmap.verification.exact import exact_sum, float_below
from softmap.verification.records import Ints, Rejected

OPTIMAL = 1e-9  # a labelling counts as optimal up to this fraction of its cost


class What(Enum):
    """The kinds of conclusions; the value is the number in the file, and of real numbers."""

    BOUND = 0, 1
    WITHIN = 1, 1
    INFEASIBLE = 2, 0
    NONE_BELOW = 3, 2


@dataclass(frozen=True)
class Conclusion:
    """The conclusion of a proof file.

    Attributes
    ----------
    what : What
        BOUND: no labelling costs less than the number. WITHIN: the labelling of the file costs at
        most the number more than the optimum. INFEASIBLE: no labelling has finite cost. NONE_BELOW:
        no labelling costs less than the first number minus the second.
    numbers : tuple of Fraction
        The numbers of the conclusion.
    energy : Fraction or None
        The exact cost of the labelling of the file, if it has one.
    """

    what: What
    numbers: tuple[Fraction, ...]
    energy: Fraction | None

    @classmethod
    def of(cls, record: tuple[Ints, Ints], energy: Fraction | None, hard: bool) -> Conclusion:
        """Return the conclusion of a record; raise `Rejected` if there is none such."""
        kind, bits = record
        values = np.ascontiguousarray(bits, dtype=np.int64).view(np.float64).tolist()
        kinds = {one.value: one for one in What}
        what = kinds.get((int(kind[0]) if len(kind) == 1 else -1, len(values)))
        if what is None or not all(map(math.isfinite, values)):
            raise Rejected("the kind of the conclusion is unknown")
        if hard is not (what is What.INFEASIBLE) or (what is What.WITHIN and energy is None):
            raise Rejected("the records before the conclusion do not suffice for it")
        if what in (What.WITHIN, What.NONE_BELOW) and values[-1] < 0:
            raise Rejected("the gap of the conclusion is negative")
        return cls(what, tuple(map(Fraction, values)), energy)

    @property
    def needed(self) -> Fraction:
        """The lower bound from which the conclusion follows; of infeasibility, a larger one."""
        if self.what is What.BOUND:
            return self.numbers[0]
        if self.what is What.WITHIN and self.energy is not None:
            return self.energy - self.numbers[0]
        return self.numbers[0] - self.numbers[1] if self.what is What.NONE_BELOW else Fraction(0)

    def holds(self, bound: Fraction) -> bool:
        """Whether the conclusion follows from a lower bound on all labellings."""
        return bound > 0 if self.what is What.INFEASIBLE else bound >= self.needed

    @property
    def optimal(self) -> bool:
        """Whether the labelling of the file is optimal, up to the tolerance `OPTIMAL`."""
        if self.what is not What.WITHIN or self.energy is None:
            return False
        return self.numbers[0] <= Fraction(OPTIMAL) * abs(self.energy)

    def __str__(self) -> str:
        if self.what is What.INFEASIBLE:
            return "no labelling satisfies the hard constraints"
        numbers = [f"{float_below(one)!r}" for one in self.numbers]
        if self.what is What.BOUND:
            return f"no labelling costs less than {numbers[0]}"
        if self.what is What.NONE_BELOW:
            less = f" by more than {numbers[1]}" if self.numbers[1] else ""
            return f"no labelling costs less than {numbers[0]}{less}"
        if not self.numbers[0]:
            return "the labelling is optimal"
        word = "optimal, as " if self.optimal else ""
        return f"the labelling is {word}within {numbers[0]} of the optimum"


def energy_terms(model: Network, labels: NDArray[np.int64]) -> list[float]:
    """List the cost terms of a labelling of the variables; their sum is the energy."""
    states = model.complete(np.asarray(labels, dtype=np.int64))
    terms: list[float] = [model.constant, *model.unary[model.node_offset[:-1] + states].tolist()]
    for first, last, potential in model.groups():
        ends = states[model.edges[first:last]]
        terms += np.asarray(potential.value(np.arange(last - first), *ends.T)).tolist()
    return terms


def exact_energy(model: Network, labels: Ints) -> Fraction:
    """The exact cost of a labelling; raise `Rejected` if it is none or violates a constraint."""
    counts = model.visible_counts
    if labels.shape != counts.shape or ((labels < 0) | (labels >= counts)).any():
        raise Rejected("expected one label for each variable")
    terms = energy_terms(model, labels)
    if not all(map(math.isfinite, terms)):
        raise Rejected("the labelling violates a hard constraint")
    return exact_sum(terms)

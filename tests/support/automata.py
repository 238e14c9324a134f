"""The cost of labels of a factor over many variables, read along its automata."""

from __future__ import annotations

import math
from collections.abc import Sequence

from softmap.model.many import Many


def cost_of(factor: Many, labels: Sequence[int], sizes: Sequence[int]) -> float:
    """The cost of labels, given in the order of the variables."""
    place = {v: t for t, v in enumerate(factor.variables)}
    total = 0.0
    for automaton in factor.automata(sizes):
        state = 0
        for t, (v, moves) in enumerate(zip(automaton.variables, automaton.moves, strict=True)):
            x = labels[place[v]]
            if automaton.prices is not None and state >= 0:
                total += float(automaton.prices[t][state, x])
            state = int(moves[state, x]) if state >= 0 else -1
        total += float(automaton.costs[state]) if state >= 0 else math.inf
    return total

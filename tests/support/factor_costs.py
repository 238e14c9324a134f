"""The cost of a labelling of a factor over many variables: a twin that reads its automata."""

from __future__ import annotations

import math

from softmap.model.many import Linear


def cost_of(factor, labels, sizes):
    """The cost of labels, given in the order of the variables of the factor."""
    if isinstance(factor, Linear):
        rows, least = factor.shifted(sizes)
        total = least + sum(int(row[x]) for row, x in zip(rows, labels, strict=True))
        return 0.0 if factor.low <= total <= factor.high else factor.penalty
    total, place = 0.0, {v: t for t, v in enumerate(factor.variables)}
    for automaton in factor.automata(sizes):
        state = 0
        for t, (v, moves) in enumerate(zip(automaton.variables, automaton.moves, strict=True)):
            x = labels[place[v]]
            if automaton.prices is not None and state >= 0:
                total += float(automaton.prices[t][state, x])
            state = int(moves[state, x]) if state >= 0 else -1
        total += float(automaton.costs[state]) if state >= 0 else math.inf
    return total

"""Factors over many variables whose cost is computed by reading the labels one after the other."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from softmap.errors import ModelError
from softmap.io.limits import LIMITS
from softmap.model.many import Automaton, Many
from softmap.model.potentials.base import Costs, Ints

Step = Callable[[int, Any, int], tuple[Hashable, float] | None]


class Layered(Many):
    """The smallest automaton, with its own states after each variable, of a step function.

    Parameters
    ----------
    name : str
        Of the function, for messages.
    variables : sequence of int
        In the order in which they are read.
    sizes : sequence of int
        Their label counts.
    start : hashable
        The state before the first variable.
    step : function of a place, a state and a label
        Returns the next state and the cost of this step; None if it is forbidden.
    final : function of a state
        Returns the cost of ending in it.
    """

    def __init__(
        self,
        name: str,
        variables: Sequence[int],
        sizes: Sequence[int],
        start: Hashable,
        step: Step,
        final: Callable[[Any], float],
    ) -> None:
        super().__init__(variables)
        states: list[Hashable] = [start]
        self.moves: list[Ints] = []
        self.prices: list[Costs] = []
        total = 0
        for t, d in enumerate(sizes):
            after: dict[Hashable, int] = {}
            moves, prices = np.full((len(states), d), -1), np.zeros((len(states), d))
            for s, state in enumerate(states):
                for x in range(d):
                    found = step(t, state, x)
                    if found is not None and found[1] < np.inf:
                        moves[s, x] = after.setdefault(found[0], len(after))
                        prices[s, x] = found[1]
            total += len(after) * d
            if total > LIMITS.layered_states:
                raise ModelError(
                    f"{name} over {len(sizes)} variables needs an automaton of more than "
                    f"{LIMITS.layered_states} states and labels"
                )
            self.moves.append(moves)
            self.prices.append(prices)
            states = list(after)
        self._merge(np.array([final(state) for state in states], dtype=np.float64))

    def _merge(self, costs: Costs) -> None:
        """Merge states with the same costs of all continuations; drop those without any."""
        kept, kinds = np.unique(costs, return_inverse=True)
        if dead := len(kept) > 0 and kept[-1] == np.inf:
            kept = kept[:-1]
        kinds = np.where(kinds == len(kept), -1, kinds) if dead else kinds
        self.costs = kept if len(kept) else np.full(1, np.inf)
        for t in reversed(range(len(self.moves))):
            moves = np.append(kinds, -1)[self.moves[t]]
            prices = np.where(moves >= 0, self.prices[t], 0.0)
            both = np.concatenate([moves, prices], axis=1)
            alive = (moves >= 0).any(axis=1) | (t == 0)
            _, first, inverse = np.unique(
                both[alive], axis=0, return_index=True, return_inverse=True
            )
            self.moves[t], self.prices[t] = moves[alive][first], prices[alive][first]
            kinds = np.full(len(moves), -1)
            kinds[alive] = inverse.reshape(-1)
            if not len(first):  # nothing can follow
                self.moves[t] = np.full((1, moves.shape[1]), -1)
                self.prices[t] = np.zeros((1, moves.shape[1]))

    @property
    def entries(self) -> int:
        """The number of entries of its tables."""
        after = [len(moves) for moves in self.moves[1:]] + [1]
        return sum(moves.size * n for moves, n in zip(self.moves, after, strict=True))

    def automata(self, sizes: Sequence[int]) -> list[Automaton]:
        """Return one automaton."""
        prices = self.prices if any(p.any() for p in self.prices) else None
        return [Automaton(self.variables, list(self.moves), self.costs, prices)]

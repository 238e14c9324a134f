"""What the messages of all parts prove, by sums over the parts in their order.

A bound is a sum of numbers that are each certainly low enough, added up so that the sum is, too;
it does not depend on who owns which part. No process sees the messages of another one's parts
beyond its halo.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.distributed.engines import Engines
from softmap.distributed.passes import Passes

__all__ = ["Arrays", "Finding", "Proofs", "Question", "look"]

Floats = NDArray[np.float64]
Arrays = Mapping[int, Floats]  # by part


class Question(IntEnum):
    """What a check asks for; see `softmap.solving.checking`."""

    GLIMPSE = 0  # a bound, and node marginals
    SKETCH = 1  # the point over the current marginals, too
    ALL = 2  # the bound after a hard pass, the point over the averaged marginals, too


class Lazily(Mapping[int, Floats]):
    """Arrays by part, made when they are looked at."""

    def __init__(self, numbers: Engines, make: Callable[[int], Floats]) -> None:
        self._numbers, self._make = list(numbers), make

    def __getitem__(self, number: int) -> Floats:
        return self._make(number)

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


class Proofs(Lazily):
    """λ of a bound by part: right at own nodes and own edges; fetched from devices when needed."""

    def __init__(self, chains: Engines, held: dict[int, Floats | None], kept: bool = False) -> None:
        super().__init__(chains, self._found)
        self._chains, self._held, self._kept = chains, held, kept

    def _found(self, number: int) -> Floats:
        lam = self._held[number]
        if lam is None:
            lam = self._held[number] = self._chains[number].fetched(self._kept)
        return lam

    def let_go(self, number: int) -> Floats:
        """λ of a part, for the last time."""
        lam = self._found(number)
        self._held[number] = None
        return lam

    def keep(self) -> Proofs:
        """The same, to be looked at after more passes."""
        for number, lam in self._held.items():
            if lam is None:
                self._chains[number].keep()
        return Proofs(self._chains, self._held.copy(), kept=True)


@dataclass(frozen=True, eq=False)
class Finding:
    """What one look at the messages found; numbers are of the whole model.

    Attributes
    ----------
    bound, smoothed
        Lower bound by `lam`; value of the regularised dual.
    primals
        Cost of the point over the current node marginals, and over their average if there is one;
        empty where no point was asked for.
    edge_entropy, node_entropy, slack
        Of the current marginals; see `softmap.algorithms.base.Verdict`.
    lam, nodes : by part
        λ (right at own nodes and own edges) and node marginals.
    """

    bound: float
    primals: tuple[float, ...]
    edge_entropy: float
    slack: float
    smoothed: float
    node_entropy: float
    lam: Proofs
    nodes: Arrays


def look(passes: Passes, eta: float, question: Question, averaged: bool, hard: int) -> Finding:
    """Judge where the messages stand. All processes call this together.

    `averaged` says whether there is an average of marginals, `hard` how many hard passes go before
    a bound; both matter where everything is asked for only.
    """
    whole = question is Question.ALL
    for chains in passes.chains.values():
        chains.measure(eta)
    if question is Question.GLIMPSE:
        rows = {number: [np.nan] * 6 for number in passes.chains}
        for chains in passes.chains.values():
            chains.glimpsed()
    else:
        rows = _point(passes, averaged and whole)
    polished, held = passes.polished(hard if whole else 0), {}
    for number, chains in passes.chains.items():
        bound, held[number] = chains.prove(polished.pop(number))
        rows[number].append(bound)
    return _finding(passes, rows, held, question, averaged)


def _point(passes: Passes, averaged: bool) -> dict[int, list[float]]:
    """The terms of a point of the polytope, by part."""
    arrays = {number: each.boundary(averaged) for number, each in passes.chains.items()}
    for k in range(max(map(len, arrays.values()), default=0)):
        passes.halo.states({number: listed[k] for number, listed in arrays.items()})
    arrays.clear()
    return {number: each.priced(averaged) for number, each in passes.chains.items()}


def _finding(
    passes: Passes, rows: dict[int, list[float]], held: dict[int, Floats | None],
    question: Question, averaged: bool,
) -> Finding:  # fmt: skip
    chains, constant = passes.chains, passes.whole.constant
    table = passes.team.table(list(rows.values()), 7)

    def total(column: int, extra: float = 0.0) -> float:
        return float(core.careful_sum(np.append(table[:, column], extra)))

    primals = [total(0, constant)] if question > Question.GLIMPSE else []
    if question is Question.ALL and averaged:
        primals.append(total(3, constant))
    return Finding(
        bound=float(core.lower_sum(np.append(table[:, 6], constant))),
        primals=tuple(primals),
        edge_entropy=total(1),
        slack=total(2),
        smoothed=total(4, constant),
        node_entropy=total(5),
        lam=Proofs(chains, held),
        nodes=Lazily(chains, lambda number: chains[number].marginals()),
    )

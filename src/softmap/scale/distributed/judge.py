"""What the messages of all parts prove, by sums over the parts in their order.

A bound is a sum of numbers that are each certainly low enough, added up so that the sum is, too;
it does not depend on who owns which part. No process sees the messages of another one's parts
beyond its halo.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.methods.policy import Ask
from softmap.scale.distributed.passes import Passes

__all__ = ["Judgement", "bound_of", "judge"]

Floats = NDArray[np.float64]
Arrays = dict[int, Floats]  # by part


@dataclass(frozen=True, eq=False)
class Judgement:
    """What the messages stand for; numbers are of the whole model.

    Attributes
    ----------
    bound, smoothed
        Lower bound by `lam`; value of the regularised dual.
    primals
        Cost of the point over the current node marginals, and over their average if there is one;
        empty where no point was asked for.
    edge_entropy, node_entropy, slack
        Of the current marginals; see `softmap.methods.base.Verdict`.
    lam, nodes : by part
        λ (right at own nodes and own edges) and node marginals.
    """

    bound: float
    primals: tuple[float, ...]
    edge_entropy: float
    slack: float
    smoothed: float
    node_entropy: float
    lam: Arrays
    nodes: Arrays


def judge(passes: Passes, eta: float, ask: Ask, averaged: bool, hard: int) -> Judgement:
    """Judge where the messages stand. All processes call this together.

    Parameters
    ----------
    averaged : bool
        Whether there is an average of marginals; it is priced where everything is asked for.
    hard : int
        Hard passes before the bound, where everything is asked for.
    """
    averaged = averaged and ask is Ask.EVERYTHING
    shares = {number: each.shares(each.msg) for number, each in passes.chains.items()}
    if ask is Ask.BOUND:
        rows = {number: [np.nan] * 6 for number in shares}
        nodes = {k: passes.chains[k].soft_nodes(shares.pop(k), eta)[0] for k in list(shares)}
    else:
        rows, nodes = _points(passes, eta, shares, averaged)
    lam, messages = {}, passes.hard(hard if ask is Ask.EVERYTHING else 0)
    for number, chains in passes.chains.items():
        lam[number] = chains.lam(messages.pop(number))
        rows[number].append(chains.bound(lam[number]))
    priced = (ask > Ask.BOUND) + averaged
    return _summed(passes, rows, lam, nodes, priced)


def _points(
    passes: Passes, eta: float, shares: Arrays, averaged: bool
) -> tuple[dict[int, list[float]], Arrays]:
    """Terms of the points, by part, and node marginals; `shares` are used up."""
    passes.boundary.states(shares)
    means: Arrays = {}
    if averaged:
        for number, chains in passes.chains.items():
            means[number] = np.zeros(chains.part.model.unary.size)
            means[number][: chains.own_states] = chains.mean
        passes.boundary.states(means)
    rows, nodes = {}, {}
    for number, chains in passes.chains.items():
        share = shares.pop(number)
        nodes[number], entropy, minima = chains.soft_nodes(share, eta)
        coupling = chains.couplings(share)
        del share
        row = chains.point_terms(coupling, eta, nodes[number])
        row.append(chains.point_terms(coupling, eta, means.pop(number))[0] if averaged else np.nan)
        rows[number] = [*row, chains.smoothed(minima), chains.node_entropy(entropy)]
    return rows, nodes


def _summed(
    passes: Passes, rows: dict[int, list[float]], lam: Arrays, nodes: Arrays, priced: int
) -> Judgement:
    constant = passes.whole.constant
    table = passes.team.table(list(rows.values()), 7)

    def total(column: int, extra: float = 0.0) -> float:
        return float(core.careful_sum(np.append(table[:, column], extra)))

    return Judgement(
        bound=_lower_sum(passes, table[:, 6]),
        primals=tuple(total(column, constant) for column in (0, 3)[:priced]),
        edge_entropy=total(1),
        slack=total(2),
        smoothed=total(4, constant),
        node_entropy=total(5),
        lam=lam,
        nodes=nodes,
    )


def bound_of(passes: Passes, lam: Arrays) -> float:
    """The lower bound that λ proves. All processes call this together."""
    rows = [[chains.bound(lam[number])] for number, chains in passes.chains.items()]
    return _lower_sum(passes, passes.team.table(rows, 1)[:, 0])


def _lower_sum(passes: Passes, bounds: Floats) -> float:
    return float(core.lower_sum(np.append(bounds, passes.whole.constant)))

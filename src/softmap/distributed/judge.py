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
from softmap.distributed.passes import Arrays, Passes

__all__ = ["Finding", "look"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Finding:
    """What one look at the messages found; numbers are of the whole model.

    Attributes
    ----------
    bound, smoothed
        Lower bound by `lam`; value of the regularised dual.
    primals
        Cost of the point over the current node marginals, and over their average if there is one.
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
    lam: Arrays
    nodes: Arrays


def look(passes: Passes, eta: float, averaged: bool, count: int) -> Finding:
    """Judge where the messages stand after `count` passes. All processes call this together."""
    shares = {number: each.shares(each.msg) for number, each in passes.chains.items()}
    passes.halo.states(shares)
    means = _means(passes) if averaged else {}
    rows, nodes = {}, {}
    for number, chains in passes.chains.items():
        nodes[number], entropy, minima = chains.soft_nodes(shares[number], eta)
        coupling, own = chains.couplings(shares[number]), chains.part.own
        row = chains.point_terms(coupling, eta, nodes[number])
        row.append(chains.point_terms(coupling, eta, means[number])[0] if averaged else np.inf)
        row.append(core.careful_sum(chains.smoothed_terms(minima)))
        row.append(float((chains.surplus[:own] * entropy[:own]).sum()))
        rows[number] = row
    shares.clear()  # memory for what follows
    means.clear()
    lam = _bounding(passes, count)
    for number, chains in passes.chains.items():
        rows[number].append(core.lower_sum(chains.bound_terms(lam[number])))
    return _finding(passes, list(rows.values()), lam, nodes, averaged)


def _means(passes: Passes) -> Arrays:
    """Averages of the marginals of all nodes, the halo's included."""
    means = {}
    for number, chains in passes.chains.items():
        means[number] = np.zeros(chains.part.model.unary.size)
        means[number][: chains.own_states] = chains.mean
    passes.halo.states(means)
    return means


def _bounding(passes: Passes, count: int) -> Arrays:
    polished, lam = passes.polished(count), {}
    for number, chains in passes.chains.items():
        msg = polished.pop(number)
        lam[number] = chains.lam(msg, chains.shares(msg))
    return lam


def _finding(
    passes: Passes, rows: list[list[float]], lam: Arrays, nodes: Arrays, averaged: bool
) -> Finding:
    table, constant = passes.team.table(rows, 7), passes.whole.constant

    def total(column: int, extra: float = 0.0) -> float:
        return float(core.careful_sum(np.append(table[:, column], extra)))

    primals = [total(0, constant)] + ([total(3, constant)] if averaged else [])
    return Finding(
        bound=float(core.lower_sum(np.append(table[:, 6], constant))),
        primals=tuple(primals),
        edge_entropy=total(1),
        slack=total(2),
        smoothed=total(4, constant),
        node_entropy=total(5),
        lam=lam,
        nodes=nodes,
    )

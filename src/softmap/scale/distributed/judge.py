"""Checks of a distributed run: cost statistics, arc consistency, bound and primal point.

A bound is a sum of terms rounded down, and the sum is rounded down as well. It does not depend on
which process owns which part. No process reads messages of other parts beyond its halo.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.errors import InfeasibleModel, ModelError
from softmap.methods.policy import Ask
from softmap.methods.sweeps.anneal import easily_coupled
from softmap.model.layout import layout
from softmap.relaxation.gaps import cost_steps
from softmap.scale.distributed.halo import Boundary
from softmap.scale.distributed.parts import Part
from softmap.scale.distributed.passes import Passes
from softmap.scale.distributed.team import Team

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Survey:
    """Statistics of the costs of the whole model.

    Attributes
    ----------
    scale : float
        Mean range of costs within one table; see `softmap.relaxation.dual.cost_scale`.
    step : float
        A typical difference between costs; see `softmap.relaxation.gaps.cost_step`.
    averaging : bool
        Whether averaged marginals are evaluated.
    """

    scale: float
    step: float
    averaging: bool


def survey(team: Team, parts: list[Part]) -> Survey:
    """Compute the statistics of the costs of all parts."""
    table = team.table([_row(part) for part in parts], 7)
    widths, count, largest = table[:, 0].sum(), table[:, 1].sum(), table[:, 2].max()
    inverse, steps = table[:, 3].sum(), table[:, 4].sum()
    scale = float(widths / count) if count else float(largest) or 1.0
    # only `softmap.solve` rescales costs of extreme magnitude
    if not 2.0**-40 < scale < 2.0**40 or largest > 2.0**600:
        raise ModelError(
            f"costs of a typical range of {scale:.3g} and up to {largest:.3g}: multiply all costs "
            "by a number that brings them near 1 before the model is cut into parts"
        )
    easy = bool((table[:, 5] <= table[:, 6]).all() and (table[:, 6] > 0).any())
    return Survey(scale, float(steps / inverse) if inverse else 0.0, easy)


def _row(part: Part) -> list[float]:
    """Ranges and steps of the tables of own nodes and edges, and whether edges are easy."""
    model = part.model
    mine = np.concatenate([np.arange(model.n) < part.own, part.counted])
    (low, high), step = model.extremes(), cost_steps(model)[mine]
    width, size = (high - low)[mine], np.maximum(np.abs(low), np.abs(high))[mine]
    width, step = width[width > 0], step[(step > 0) & np.isfinite(step)]
    edges = float(model.m > 0)
    return [
        float(width.sum()), float(len(width)), float(size.max()),
        float((1 / step).sum()), float(len(step)), edges, edges * easily_coupled(model),
    ]  # fmt: skip


def tightened(team: Team, parts: list[Part]) -> list[Part]:
    """Return the parts with cost +inf on every state that arc consistency removes.

    Every part removes states of its own nodes and exchanges its halo, until no part changes.
    """
    if not team.table([[part.model.has_forbidden] for part in parts], 1).any():
        return parts
    boundary = Boundary(team, parts)
    allowed = {part.number: np.isfinite(part.model.unary) for part in parts}
    changed = True
    while changed:
        rows = []
        for part in parts:
            empty = _empty(part, allowed[part.number])
            if empty < 0:
                empty = core.arc_consistency(layout(part.model), allowed[part.number])
            node = int(part.nodes[empty]) if empty >= 0 else -1
            rows.append([node])
        if (stuck := int(team.table(rows, 1).max())) >= 0:
            raise InfeasibleModel(
                "no labelling has finite cost: hard constraints leave variable "
                f"{stuck} without a state; look at the +inf costs around it",
                stuck,
            )
        earlier = {number: mask.copy() for number, mask in allowed.items()}
        masks = {number: mask.astype(np.float64) for number, mask in allowed.items()}
        boundary.states(masks)
        for number, mask in masks.items():
            allowed[number] &= mask > 0
        news = [[not np.array_equal(earlier[n], allowed[n])] for n in allowed]
        changed = bool(team.table(news, 1).any())
    return [_with(part, allowed[part.number]) for part in parts]


def _empty(part: Part, allowed: NDArray[np.bool_]) -> int:
    """Return a node of the part without states, or -1."""
    kept = np.logical_or.reduceat(allowed, part.model.node_offset[:-1])
    return -1 if kept.all() else int(np.argmin(kept))


def _with(part: Part, allowed: NDArray[np.bool_]) -> Part:
    unary = np.where(allowed, part.model.unary, np.inf)
    return replace(part, model=part.model.replace(unary=unary))


Arrays = dict[int, Floats]  # by part


@dataclass(frozen=True, eq=False)
class Judgement:
    """The values that a check computes from the messages, for the whole model.

    Attributes
    ----------
    bound : float
        The lower bound that `lam` proves.
    smoothed : float
        The value of the regularised dual.
    primals : list of float
        Cost of the point over the current node marginals, and over their average if there is one;
        empty if no point was requested.
    edge_entropy, node_entropy, slack : float
        Values at the current marginals; see `softmap.methods.base.Verdict`.
    lam : dict from int to float64 array
        λ by part, valid at own nodes and own edges.
    nodes : dict from int to float64 array
        Node marginals by part.
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
    """Check the bound, and the point if requested; collective call of all processes.

    Parameters
    ----------
    passes : Passes
        The messages of this process's parts.
    eta : float
        The inverse temperature η.
    ask : Ask
        What to compute.
    averaged : bool
        Whether there is an average of marginals; a full check evaluates its cost.
    hard : int
        Number of hard passes before the bound in a full check.
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
    """Cost terms of the points, by part, and node marginals; `shares` is overwritten."""
    passes.boundary.states(shares)
    means: Arrays = {}
    if averaged:
        for number, chains in passes.chains.items():
            means[number] = np.zeros(chains.part.model.unary.size)
            means[number][: chains.part.own_states] = chains.mean
        passes.boundary.states(means)
    rows, nodes = {}, {}
    for number, chains in passes.chains.items():
        share = shares.pop(number)
        nodes[number], entropy, minima = chains.soft_nodes(share, eta)
        coupling = chains.loops.couplings(chains.msg, share)
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
    """The lower bound that λ proves; collective call of all processes."""
    rows = [[chains.bound(lam[number])] for number, chains in passes.chains.items()]
    return _lower_sum(passes, passes.team.table(rows, 1)[:, 0])


def _lower_sum(passes: Passes, bounds: Floats) -> float:
    return float(core.lower_sum(np.append(bounds, passes.whole.constant)))

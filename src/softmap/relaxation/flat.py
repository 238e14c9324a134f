"""Models as factor tables, without auxiliary nodes, and orders of variable elimination for them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.model import Model
from softmap.model.potentials.base import Costs, Ints
from softmap.relaxation.bounds import lower_tables


@dataclass(frozen=True)
class FlatModel:
    """Variables with unary costs, and factors of two or more variables as row-major tables."""

    num_labels: Ints
    unary: Costs
    scope_start: Ints
    scope: Ints
    tables: Costs
    constant: float

    @cached_property
    def native(self) -> core.FlatModel:
        """The arrays as compiled searches take them, checked once."""
        return core.FlatModel(
            self.num_labels, self.unary, self.scope_start, self.scope, self.tables, self.constant
        )


@dataclass(frozen=True)
class EliminationOrder:
    """An order of variable elimination, and the size of its tables.

    Attributes
    ----------
    entries : float
        Number of table entries in all, those of the eliminated variables included; +inf if it
        exceeds a limit.
    stored : float
        Number of entries of all results.
    variables : int64 array
        The variables in the order of elimination; empty if `entries` is +inf.
    """

    entries: float
    stored: float
    variables: Ints

    @property
    def found(self) -> bool:
        """Whether the tables are within the limit."""
        return math.isfinite(self.entries)


def flatten(model: Model) -> FlatModel:
    """Return the model with each auxiliary node replaced by the factor that it represents.

    Costs that are products are rounded down, so a lower bound of the flat model is a lower bound of
    the model.
    """
    n, aux = model.num_variables, model.auxiliaries
    pairs = np.flatnonzero((model.edges < n).all(axis=1))
    split = int(model.node_offset[n])
    rises = np.diff(aux.stride) > 0
    rises[aux.start[1:-1] - 1] = False  # members are in the order of the axes of their table
    if rises.any():
        raise ValueError("the strides of an auxiliary node must not increase")
    arity = np.concatenate([np.full(len(pairs), 2), np.diff(aux.start)]).astype(np.int64)
    scopes = [model.edges[pairs].astype(np.int64).ravel(), aux.member]
    tables, joint = lower_tables(model, pairs), model.unary[split:]
    return FlatModel(
        model.num_labels[:n].astype(np.int64),
        np.ascontiguousarray(model.unary[:split], float),
        np.concatenate([[0], np.cumsum(arity)]).astype(np.int64),
        np.concatenate(scopes).astype(np.int64),
        np.concatenate([tables, joint]) if joint.size else tables,
        float(model.constant),
    )


def flat_lam(model: Model, lam: NDArray[np.float64]) -> Costs:
    """Return λ of the half-edges as one block per variable in the scope of each flat factor."""
    n = model.num_variables
    if not len(model.auxiliaries):  # then there are edges between variables only, in this order
        return np.array(lam, dtype=np.float64)
    tied = (model.edges >= n).any(axis=1)
    pairs = np.flatnonzero(~tied)
    ties = np.flatnonzero(tied)
    member = 2 * ties + (model.edges[ties, 0] >= n)
    halves = np.concatenate([np.stack([2 * pairs, 2 * pairs + 1], axis=1).ravel(), member])
    sizes = np.diff(model.half_offset)[halves]
    begin = np.cumsum(sizes) - sizes
    return lam[np.repeat(model.half_offset[halves] - begin, sizes) + np.arange(sizes.sum())]


def elimination_order(
    model: Model | FlatModel,
    limit: float,
    deadline: core.Deadline | None = None,
    tries: int = 30,
) -> EliminationOrder:
    """Return the best of several greedy elimination orders.

    Parameters
    ----------
    model : Model or FlatModel
        The model. The factors of a `Model` are not computed.
    limit : float
        Largest number of table entries. The search for an order stops where it is exceeded.
    deadline : core.Deadline, optional
        When to stop; the best order so far is returned, if there is one.
    tries : int, default 30
        Largest number of greedy orders.
    """
    if isinstance(model, Model):
        n, aux = model.num_variables, model.auxiliaries
        pairs = model.edges[(model.edges < n).all(axis=1)].astype(np.int64)
        start = np.concatenate([2 * np.arange(len(pairs)), 2 * len(pairs) + aux.start])
        scope = np.concatenate([pairs.ravel(), aux.member]).astype(np.int64)
        shape = model.num_labels[:n].astype(np.int64), start.astype(np.int64), scope
    else:
        shape = model.num_labels, model.scope_start, model.scope
    entries, stored, order = core.elimination_order(*shape, limit, deadline, tries)
    return EliminationOrder(entries, stored, np.array(order, np.int64))


def live_entries(model: FlatModel, order: EliminationOrder) -> float:
    """Return how many entries of results are needed at one time, if used ones are freed."""
    return core.live_entries(model.num_labels, model.scope_start, model.scope, order.variables)

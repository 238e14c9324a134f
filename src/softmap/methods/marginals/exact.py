"""Exact marginals and log Z by variable elimination, for trees and models of small treewidth."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.arguments import count, positive
from softmap.errors import InfeasibleModel, OptionError
from softmap.machine import available_memory, usable_cores
from softmap.model import Model, checked_model
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import Floats
from softmap.relaxation.flat import EliminationOrder, FlatModel, elimination_order, flatten


@dataclass(frozen=True)
class EliminationLimits:
    """Limits of variable elimination.

    Attributes
    ----------
    entries : int
        Largest number of table entries in all.
    entry_bytes : int
        Memory per stored table entry, in bytes.
    """

    entries: int = 500_000_000
    entry_bytes: int = 12


ELIMINATION = EliminationLimits()


@dataclass(frozen=True, eq=False)
class ExactMarginals:
    """The marginals of the Gibbs distribution `p(x) = exp(-η energy(x)) / Z`.

    Attributes
    ----------
    model : Model
    eta : float
        Inverse temperature η.
    nodes : float64 array
        Node marginals, flat over `model.node_offset`.
    edges : float64 array
        Edge marginals, flat over `model.edge_offset`.
    log_partition : float
        log Z, the constant of the model included.
    """

    model: Model
    eta: float
    nodes: Floats
    edges: Floats
    log_partition: float

    def of(self, i: int) -> Floats:
        """Return the marginal of node `i`."""
        return self.nodes[self.model.node_slice(i)]


def exact_marginals(
    model: Model, eta: float = 1.0, *, entries: int = ELIMINATION.entries
) -> ExactMarginals:
    """Return the exact marginals of the Gibbs distribution `exp(-η energy(x)) / Z`, and log Z.

    Variables are eliminated in a greedy order (bucket elimination), on all cores.

    Parameters
    ----------
    model : Model
    eta : float, default 1
        Inverse temperature η, in units of 1 / cost.
    entries : int, optional
        Largest number of table entries in all. If more are needed, an `OptionError` is raised.

    Returns
    -------
    ExactMarginals

    Examples
    --------
    >>> import softmap
    >>> model = softmap.Model([[0.0, 1.0], [0.0, 0.0]], [[0, 1]], softmap.Potts([0.0]))
    >>> softmap.exact_marginals(model).of(0).round(3).tolist()
    [0.731, 0.269]
    """
    model = tighten(checked_model(model))
    eta, entries = positive("eta", eta), count("entries", entries, 1)
    order = elimination_order(model, entries)
    if not order.found:
        raise OptionError(
            f"entries={entries}: variable elimination needs more table entries for this model; "
            "softmap.log_partition_bounds works for models of any width"
        )
    if not _fits(order):
        raise OptionError(
            f"variable elimination needs {order.stored:.3g} stored table entries for this model, "
            "more than the memory available; softmap.log_partition_bounds needs less"
        )
    sums = _Sums(model, eta, order)
    total = sums.log_partition()
    return ExactMarginals(model, eta, *sums.marginals(), total)


def exact_log_partition(model: Model, eta: float, entries: int) -> float | None:
    """Return log Z of a model without unsupported states, or None if that takes more entries."""
    order = elimination_order(model, entries)
    return _Sums(model, eta, order).log_partition() if order.found and _fits(order) else None


def _fits(order: EliminationOrder) -> bool:
    available = available_memory()
    return available is None or ELIMINATION.entry_bytes * order.stored <= available


class _Sums:
    """The sums over all labellings: log Z first, then the marginals."""

    def __init__(self, model: Model, eta: float, order: EliminationOrder) -> None:
        self.model, self.eta, self.flat = model, eta, flatten(model)
        flat = self.flat
        # the smallest cost of each table is subtracted, so that the others keep their digits
        unary, taken = _logs(flat.unary, _ends(flat.num_labels), eta)
        tables, more = _logs(flat.tables, _ends(_sizes(flat)), eta)
        self.taken = np.concatenate([[model.constant], taken, more])
        logs = replace(flat, unary=unary, tables=tables, constant=0.0)
        self.native = core.LogSums(logs.native, order.variables, usable_cores())

    def log_partition(self) -> float:
        """Return log Z, the constant of the model included."""
        self.native.up(core.Deadline())  # looks for Ctrl-C
        total = float(self.native.log_sum)
        if math.isinf(total):
            raise InfeasibleModel("no labelling has finite cost: log Z is -inf")
        return total - self.eta * float(core.careful_sum(self.taken))

    def marginals(self) -> tuple[Floats, Floats]:
        """Return the marginals of nodes and edges, after `log_partition`."""
        self.native.down(core.Deadline())  # looks for Ctrl-C
        variables, factors = self.native.marginals()
        model, sizes = self.model, _sizes(self.flat)
        pairs = (model.edges < model.num_variables).all(axis=1)
        split = int(sizes[: pairs.sum()].sum())
        nodes = np.concatenate([variables, factors[split:]])
        edges = np.empty(int(model.edge_offset[-1]))
        edges[np.repeat(pairs, np.diff(model.edge_offset))] = factors[:split]
        for e in np.flatnonzero(~pairs).tolist():  # an auxiliary node decides its neighbour's label
            belief = nodes[model.node_slice(int(model.edges[e, 0]))]
            allowed = np.isfinite(model.table(e))
            begin, end = model.edge_offset[e : e + 2]
            edges[begin:end] = np.where(allowed, belief[:, None], 0.0).ravel()
        return nodes, edges


def _sizes(flat: FlatModel) -> NDArray[np.int64]:
    """Return the number of entries of each factor."""
    if len(flat.scope_start) < 2:
        return np.zeros(0, np.int64)
    return np.multiply.reduceat(flat.num_labels[flat.scope], flat.scope_start[:-1])


def _ends(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)])


def _logs(costs: Floats, offset: NDArray[np.int64], eta: float) -> tuple[Floats, Floats]:
    """Return -η times the costs above the smallest one of each block, and the smallest ones."""
    if not len(costs):
        return costs, np.zeros(0)
    least = np.minimum.reduceat(costs, offset[:-1])
    least = np.where(np.isfinite(least), least, 0.0)
    return -eta * (costs - np.repeat(least, np.diff(offset))), least


def log_sum(table: Floats, axis: int) -> Floats:
    """Return the logarithm of the sum of exponentials over an axis."""
    top = table.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        sums: Floats = np.log(np.exp(table - top).sum(axis=axis)) + np.squeeze(top, axis=axis)
    return sums

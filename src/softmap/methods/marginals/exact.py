"""Exact marginals and log Z by variable elimination, for trees and models of small treewidth."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softmap import core
from softmap.arguments import count, positive
from softmap.errors import ConvergenceWarning, InfeasibleModel, OptionError
from softmap.machine import available_memory, usable_cores
from softmap.methods.marginals.tables import EPS, LogTables, table_sizes
from softmap.model import Model, Network
from softmap.model.potentials.base import offsets
from softmap.relaxation.consistency import tighten
from softmap.relaxation.dual import Floats
from softmap.relaxation.flat import EliminationOrder, elimination_order, live_entries


@dataclass(frozen=True)
class EliminationLimits:
    """Limits of variable elimination.

    Attributes
    ----------
    streamed : int
        Largest number of table entries if tables are freed as soon as they are used: a few minutes
        of work.
    entry_bytes : int
        Memory per stored table entry, in bytes.
    told : float
        Relative rounding error of marginals from which on a warning is given.
    """

    streamed: int = 4_000_000_000
    entry_bytes: int = 12
    told: float = 1e-3


ELIMINATION = EliminationLimits()


@dataclass(frozen=True, eq=False)
class ExactMarginals:
    """The marginals of the Gibbs distribution `p(x) = exp(-η energy(x)) / Z`.

    Attributes
    ----------
    model : Network
    eta : float
        Inverse temperature η.
    nodes : float64 array
        Node marginals, flat over `model.node_offset`.
    edges : float64 array
        Edge marginals, flat over `model.edge_offset`.
    log_partition : float
        log Z, the constant of the model included.
    error : float
        A bound on the relative rounding error of marginals that do not underflow.
    """

    model: Network
    eta: float
    nodes: Floats
    edges: Floats
    log_partition: float
    error: float = 0.0

    def __repr__(self) -> str:
        return f"ExactMarginals({self.model}, eta={self.eta:g}, log Z {self.log_partition:.10g})"

    def of(self, i: int) -> Floats:
        """Return the marginal of node `i`."""
        return self.nodes[self.model.node_slice(i)]


MOST_ENTRIES = 500_000_000  # table entries of exact marginals, by default


def exact_marginals(
    model: Model | Network, eta: float = 1.0, *, entries: int = MOST_ENTRIES
) -> ExactMarginals:
    """Return the exact marginals of the Gibbs distribution `exp(-η energy(x)) / Z`, and log Z.

    Variables are eliminated in a greedy order (bucket elimination), on all cores. Rounding errors
    grow with η times the differences of costs: `error` of the result bounds them, a
    `ConvergenceWarning` tells of more than 0.1 %, and an `OptionError` is raised if they may exceed
    the marginals.

    Parameters
    ----------
    model : Model or Network
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
    network = tighten(model)
    eta, entries = positive("eta", eta), count("entries", entries, 1)
    order = elimination_order(network, entries)
    if not order.found:
        raise OptionError(
            f"entries={entries}: variable elimination needs more table entries for this model; "
            "softmap.log_partition_bounds works for models of any width"
        )
    if not _fits(order.stored):
        raise OptionError(
            f"variable elimination needs {order.stored:.3g} stored table entries for this model, "
            "more than the memory available; softmap.log_partition_bounds needs less"
        )
    sums = _Sums(network, eta, order)
    total, error = sums.log_partition(), sums.error()
    if not error < 1.0:
        raise OptionError(
            f"eta={eta:g}: rounding errors of its products with the costs may be larger than the "
            f"marginals (bound: {error:.2g}); expected a smaller eta"
        )
    if error > ELIMINATION.told:
        message = f"eta={eta:g}: marginals may have relative rounding errors of {error:.2g}"
        warnings.warn(ConvergenceWarning(message), stacklevel=2)
    return ExactMarginals(network, eta, *sums.marginals(), total, error)


def exact_log_partition(
    logs: LogTables, entries: float, deadline: core.Deadline
) -> tuple[float, float] | None:
    """Return log Z and a bound on its rounding error, by elimination that keeps no used table.

    None if it takes more entries in all, more memory at one time than there is, or more time.
    """
    order = elimination_order(logs.flat, entries, deadline)
    if not order.found or not _fits(live_entries(logs.flat, order)):
        return None
    native = core.LogSums(logs.flat.native, order.variables, usable_cores(), keep=False)
    if not native.up(deadline):
        return None
    total = float(native.log_sum) + logs.shift
    if math.isinf(total):
        return -math.inf, 0.0
    return total, 2 * (float(native.error) + logs.error + EPS * (abs(total) + abs(logs.shift)))


def _fits(entries: float) -> bool:
    available = available_memory()
    return available is None or ELIMINATION.entry_bytes * entries <= available


class _Sums:
    """The sums over all labellings: log Z first, then the marginals."""

    def __init__(self, model: Network, eta: float, order: EliminationOrder) -> None:
        self.model, self.logs = model, LogTables.of(model, eta)
        self.native = core.LogSums(self.logs.flat.native, order.variables, usable_cores())

    def log_partition(self) -> float:
        """Return log Z, the constant of the model included."""
        self.native.up(core.Deadline())  # looks for Ctrl-C
        total = float(self.native.log_sum)
        if math.isinf(total):
            raise InfeasibleModel("no labelling has finite cost: log Z is -inf")
        return total + self.logs.shift

    def error(self) -> float:
        """Return a bound on the relative error of marginals, after `log_partition`.

        A marginal is a quotient of two sums. Each has the errors of the tables, and those of sums
        in both directions; what was subtracted from the tables cancels.
        """
        return 2 * (self.logs.entry_error + 2 * float(self.native.error))

    def marginals(self) -> tuple[Floats, Floats]:
        """Return the marginals of nodes and edges, after `log_partition`."""
        self.native.down(core.Deadline())  # looks for Ctrl-C
        variables, factors = self.native.marginals()
        model, sizes = self.model, table_sizes(self.logs.flat)
        pairs = (model.edges < model.num_variables).all(axis=1)
        split = int(sizes[: pairs.sum()].sum())
        nodes = _normalised(np.concatenate([variables, factors[split:]]), model.node_offset)
        edges = np.empty(model.edge_size)
        edges[np.repeat(pairs, np.diff(model.edge_offset))] = _normalised(
            factors[:split], offsets(np.diff(model.edge_offset)[pairs])
        )
        for e in np.flatnonzero(~pairs).tolist():  # an auxiliary node decides its neighbour's label
            belief = nodes[model.node_slice(int(model.edges[e, 0]))]
            allowed = np.isfinite(model.table(e))
            begin, end = model.edge_offset[e : e + 2]
            edges[begin:end] = np.where(allowed, belief[:, None], 0.0).ravel()
        return nodes, edges


def _normalised(marginals: Floats, offset: NDArray[np.int64]) -> Floats:
    """Return blocks of marginals that sum to 1, each."""
    if not len(marginals):
        return marginals
    return marginals / np.repeat(np.add.reduceat(marginals, offset[:-1]), np.diff(offset))

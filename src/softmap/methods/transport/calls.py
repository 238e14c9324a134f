"""The calls of `softmap.transport`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from numpy.typing import ArrayLike

from softmap import core
from softmap.arguments import not_negative, wrong
from softmap.errors import ModelError
from softmap.machine import usable_cores
from softmap.methods.transport.problem import TransportProblem
from softmap.methods.transport.results import LADDER, Ladder, Moment, Transport
from softmap.methods.transport.run import TransportRun
from softmap.model.potentials import Potential
from softmap.model.potentials.base import numbers


def sinkhorn(
    a: ArrayLike,
    b: ArrayLike,
    costs: Any,
    *,
    gap: float = 1e-3,
    time_limit: float | None = None,
    threads: int | None = None,
    backend: str = "cpu",
) -> Transport | list[Transport]:
    """Transport between two distributions, annealed until the certified gap is reached.

    Parameters
    ----------
    a : array (n,) or (batch, n)
        Masses of the sources, with sum 1.
    b : array (m,) or (batch, m)
        Masses of the targets, with sum 1.
    costs : array (n, m) or (batch, n, m), or Potential
        Finite costs; a `Potts`, `TruncatedLinear` or `TruncatedQuadratic` between the positions of
        masses needs no table.
    gap : float, default 1e-3
        Relative gap between cost and bound at which to stop.
    time_limit : float, optional
        Seconds per problem; the best plan and bound so far are then returned.
    threads : int, optional
        Members of a batch that are solved at the same time; all cores by default.
    backend : {"cpu", "cuda"}, default "cpu"
        Where messages and plans are computed; as in `multimarginal`.

    Returns
    -------
    Transport, or list of Transport for a batch
        Plan, cost and bound.

    Examples
    --------
    >>> from softmap import transport
    >>> found = transport.sinkhorn([0.5, 0.5], [0.25, 0.75], [[0.0, 1.0], [1.0, 0.0]])
    >>> round(found.cost, 6), found.bound <= found.cost, found.plan().round(3).tolist()
    (0.25, True, [[0.25, 0.25], [0.0, 0.5]])
    """
    first, second = numbers(a, "a"), numbers(b, "b")
    table = costs if isinstance(costs, Potential) else numbers(costs, "costs")
    stacked = not isinstance(table, Potential) and table.ndim == 3
    if first.ndim == second.ndim == 1 and not stacked:
        return _one((first, second, table), gap, time_limit, backend)
    size = max(len(x) for x in (first, second) if x.ndim == 2) if not stacked else len(table)
    if any(x.ndim == 2 and len(x) != size for x in (first, second)):
        raise ModelError(f"a of {first.shape} and b of {second.shape} are not one batch")
    tasks = [
        (
            first if first.ndim == 1 else first[k],
            second if second.ndim == 1 else second[k],
            numbers(costs, "costs")[k] if stacked else table,
        )
        for k in range(size)
    ]
    workers = (threads or usable_cores()) if backend == "cpu" else 1
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda task: _one(task, gap, time_limit, backend), tasks))


def _one(task: Any, gap: float, time_limit: float | None, backend: str) -> Transport:
    a, b, table = task
    edge = table if isinstance(table, Potential) else [table]
    return multimarginal([a, b], [[0, 1]], edge, gap=gap, time_limit=time_limit, backend=backend)


def multimarginal(
    marginals: Sequence[Any],
    edges: ArrayLike,
    costs: Any,
    *,
    unary: Sequence[Any] | None = None,
    gap: float = 1e-3,
    time_limit: float | None = None,
    on_moment: Callable[[Moment], Any] | None = None,
    ladder: Ladder = LADDER,
    backend: str = "cpu",
) -> Transport:
    """Transport along the edges of a graph whose nodes have given or free marginals.

    The linear program: over marginals of nodes and plans of edges that agree with them, minimise
    the sum of all costs. On a tree its optimum is that of multi-marginal transport with the sum of
    the edge costs; on a graph with cycles it is a relaxation, a lower bound (`Transport.tree`).

    Parameters
    ----------
    marginals : sequence of arrays, integers or None
        Per node the given masses, with sum 1, or for a free node its number of labels. None needs
        tables as costs.
    edges : int array (m, 2)
        Pairs of nodes.
    costs : Potential, array (d, d), array (m, d, d), or list of arrays
        Finite costs of the edges: a family (all messages of `Potts` and `TruncatedLinear` take
        O(d), those of `TruncatedQuadratic` O(d times its reach)), one table for all edges, or one
        table per edge.
    unary : sequence of arrays or None, optional
        Finite costs of the labels of each node.
    gap : float, default 1e-3
        Relative gap between cost and bound at which to stop.
    time_limit : float, optional
        Seconds; the best plan and bound so far are then returned.
    on_moment : function, optional
        Called with each `Moment`; the run stops if it returns False.
    ladder : Ladder, optional
        How η rises.
    backend : {"cpu", "cuda"}, default "cpu"
        Where messages and plans are computed, in double precision; "cuda" needs CuPy and expands
        families to tables. The bound is always computed on the host, from the costs and λ.

    Returns
    -------
    Transport
        Plan, cost and bound.

    Examples
    --------
    The barycentre of two points on a line, at equal weights:

    >>> import numpy as np
    >>> from softmap import TruncatedQuadratic, transport
    >>> ends = [np.eye(9)[0], np.eye(9)[8]]
    >>> found = transport.multimarginal([*ends, 9], [[0, 2], [1, 2]], TruncatedQuadratic(0.5, 99))
    >>> found.tree, int(found.marginals[2].argmax()), round(found.cost, 2)
    (True, 4, 16.0)
    """
    limit = core.Deadline(
        math.inf if time_limit is None else not_negative("time_limit", time_limit)
    )
    if backend not in ("cpu", "cuda"):
        raise wrong("backend", backend, "'cpu' or 'cuda'")
    problem = TransportProblem.of(marginals, edges, costs, unary)
    run = TransportRun(problem, ladder, not_negative("gap", gap), limit, on_moment, backend)
    run.start()
    run.climb()
    return run.result()

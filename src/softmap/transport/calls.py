"""The calls of `softmap.transport`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from numpy.typing import ArrayLike

from softmap.arguments import count, not_negative, time_limit_of, wrong
from softmap.errors import ConvergenceWarning, ModelError
from softmap.extend import Potential, core, machine, numbers, plain, requires_gradient
from softmap.hints import suggesting
from softmap.transport.problem import TransportProblem, listed, masses
from softmap.transport.results import (
    LADDER,
    Ladder,
    Moment,
    Transport,
    TransportStatus,
)
from softmap.transport.run import TransportRun

ROUNDED = 1e-8  # gap beside the ranges of all costs that counts as a rounding error


@suggesting
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
        masses needs no table. One with several weights is that of a batch.
    gap : float, default 1e-3
        Relative gap between cost and bound at which to stop.
    time_limit : float, optional
        Seconds per problem, on a GPU for the whole batch; the best plan and bound so far are then
        returned.
    threads : int, optional
        Members of a batch that are solved at the same time; all cores by default. On a GPU all
        members are.
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
    limit = core.Deadline(time_limit_of(time_limit))  # set-up included, if there is no batch
    _refuse_gradients(a=a, b=b, costs=costs)
    members, batch = _members(a, b, costs)
    parts = [TransportProblem.pairs([member]) for member in members]
    together = machine.usable_cores() if threads is None else count("threads", threads, 1)
    if not batch:
        return _solve(parts[0], gap, limit, backend)[0]
    if backend != "cpu":
        union = TransportProblem.pairs(members, costs if isinstance(costs, Potential) else None)
        return _solve(union, gap, limit, backend, parts=parts)
    return _each(parts, gap, time_limit_of(time_limit), together)


def _each(
    parts: list[TransportProblem], gap: float, time_limit: float, threads: int
) -> list[Transport]:
    """Return the transport of each problem; an exception, such as Ctrl-C, ends all of them."""
    limit = core.Deadline()
    with ThreadPoolExecutor(threads) as pool:
        try:
            return list(
                pool.map(lambda part: _solve(part, gap, limit.within(time_limit))[0], parts)
            )
        except BaseException:
            limit.stop()
            raise


def _members(a: ArrayLike, b: ArrayLike, costs: Any) -> tuple[list[Any], bool]:
    """Return pairs of masses with their costs, and whether they were given as a batch."""
    first, second, family = plain(a), plain(b), isinstance(costs, Potential)
    table = costs if family else numbers(costs, "costs")
    if not family and table.ndim not in (2, 3):
        raise ModelError(f"costs must be a table, or one per member of a batch, not {table.shape}")
    shapes = numbers(first, "a").shape, numbers(second, "b").shape
    many_costs = len(costs) > 1 if family else table.ndim > 2
    several = len(shapes[0]) > 1, len(shapes[1]) > 1, many_costs
    given = (first, second, table)
    sizes = {len(part) for part, many in zip(given, several, strict=True) if many}
    if len(sizes) > 1:
        raise ModelError(f"a of {shapes[0]}, b of {shapes[1]} and costs are not one batch")
    size = sizes.pop() if sizes else 1

    def column(values: Any, name: str, many: bool) -> list[Any]:
        if many:
            return [masses(part, f"{name}[{k}]") for k, part in enumerate(values)]
        return [masses(values, name)] * size

    columns = [
        column(first, "a", several[0]),
        column(second, "b", several[1]),
        _split(table) if many_costs else [table] * size,
    ]
    return list(zip(*columns, strict=True)), any(several)


def _split(costs: Any) -> list[Any]:
    return [
        costs.take([k]) if isinstance(costs, Potential) else costs[k] for k in range(len(costs))
    ]


@suggesting
def multimarginal(
    marginals: Sequence[Any],
    edges: ArrayLike,
    costs: Any,
    *,
    unary: Sequence[Any] | None = None,
    gap: float = 1e-3,
    time_limit: float | None = None,
    on_snapshot: Callable[[Moment], Any] | None = None,
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
        Finite costs of the edges: a family (messages of `Potts` and `TruncatedLinear` take O(d),
        those of `TruncatedQuadratic` about O(d log d)), one table for all edges, or one table per
        edge.
    unary : sequence of arrays or None, optional
        Finite costs of the labels of each node.
    gap : float, default 1e-3
        Relative gap between cost and bound at which to stop.
    time_limit : float, optional
        Seconds; the best plan and bound so far are then returned.
    on_snapshot : function, optional
        Called with each `Moment`; the run stops if it returns False.
    ladder : Ladder, optional
        How η rises.
    backend : {"cpu", "cuda"}, default "cpu"
        Where messages and plans are computed; "cuda" needs CuPy. The bound is always computed on
        the host, from the costs and λ.

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
    limit = core.Deadline(time_limit_of(time_limit))
    given = listed("marginals", marginals)
    _refuse_gradients(**{f"marginals[{i}]": part for i, part in enumerate(given)}, costs=costs)
    problem = TransportProblem.of(given, edges, costs, unary)
    return _solve(problem, gap, limit, backend, on_snapshot=on_snapshot, ladder=ladder)[0]


def _refuse_gradients(**given: Any) -> None:
    """Raise `ModelError` for tensors that require a gradient: the result would not have one."""
    for name, values in given.items():
        if requires_gradient(values):
            raise ModelError(
                f"{name} requires a gradient, which transport does not record: give "
                "detached arrays, or call softmap.learn.transport_cost; the gradient by a "
                "marginal is found.potentials, by the costs of edge e found.plan(e)"
            )


def _solve(
    problem: TransportProblem,
    gap: float,
    limit: core.Deadline,
    backend: str = "cpu",
    ladder: Ladder = LADDER,
    **options: Any,
) -> list[Transport]:
    """Return the transport of a problem, or of each of its parts (`options` of `TransportRun`)."""
    if backend not in ("cpu", "cuda"):
        raise wrong("backend", backend, "'cpu' or 'cuda'")
    run = TransportRun(problem, ladder, not_negative("gap", gap), limit, backend=backend, **options)
    run.start()
    run.climb()
    results = run.results()
    # where the optimum is 0, no relative gap is small
    least = ROUNDED * float(problem.ranges.sum())
    ends = (TransportStatus.STALLED, TransportStatus.PRECISION)
    missed = [one for one in results if one.status in ends and one.gap > least]
    if missed:
        worst = max(missed, key=lambda one: one.relative_gap)
        warnings.warn(
            f"transport: {worst.status}: the relative gap is {worst.relative_gap:.2g}, "
            f"not {gap:.2g}",
            ConvergenceWarning,
            stacklevel=4,
        )
    return results

"""The best labelling that differs from each of some earlier ones in at least d variables.

First, a Lagrangian: every agreement with an earlier labelling costs ν. Its dual is a bound, and its
labels may be diverse enough. If a gap remains, an exact search follows, with counters of the
differences as additional variables.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from softmap import core
from softmap.labels.exact import solve_exact
from softmap.model.potentials.base import Costs, Ints
from softmap.relaxation.flat import FlatModel
from softmap.relaxation.gaps import CLOSED

__all__ = ["next_diverse"]

EPS = np.finfo(float).eps


@dataclass(frozen=True)
class DiverseLimits:
    """The effort of the search for diverse labellings."""

    prices: int = 14  # values of ν, each with at most this part of the time left; D115, D128
    rate: int = 100_000  # most table entries of counters per second left; D115, D128
    entries: int = 60_000_000  # most table entries of counters; D51


DIVERSE = DiverseLimits()


def next_diverse(
    flat: FlatModel, earlier: list[Ints], distance: int, deadline: core.Deadline
) -> tuple[Ints | None, float]:
    """Return diverse labels (or None), and a lower bound on the energy of all diverse labellings.

    The bound is +inf if it is proved that no diverse labelling of finite cost exists.
    """
    if distance > len(earlier[0]):  # chain variables do not count
        return None, np.inf
    best, bound = _by_prices(flat, earlier, distance, deadline)
    size = len(earlier) * int(flat.num_labels.sum()) * (distance + 1) ** 2
    if deadline.passed or size > min(DIVERSE.entries, DIVERSE.rate * deadline.left):
        return best, bound
    counted = _with_counters(flat, earlier, distance)
    start = None if best is None else _with_counts(best, earlier, distance)
    found = solve_exact(counted, incumbent=start, deadline=deadline, relative_gap=CLOSED)
    if found.infeasible:
        return None, np.inf
    labels = best if found.labels is None else found.labels[: len(flat.num_labels)]
    return labels, max(bound, found.lower_bound)


# --- prices ---------------------------------------------------------------------------------------


def _by_prices(
    flat: FlatModel, earlier: list[Ints], distance: int, deadline: core.Deadline
) -> tuple[Ints | None, float]:
    """Bisect on ν: labels are diverse enough above some ν, and not below it."""
    best, energy, bound = None, np.inf, -np.inf
    low, high = 0.0, np.inf
    finite = flat.tables[np.isfinite(flat.tables)]
    price = max(float(np.ptp(finite)) if finite.size else 0.0, 1e-3)
    for _ in range(DIVERSE.prices):
        if deadline.passed:
            break
        end = deadline.within(deadline.left / DIVERSE.prices)
        labels, cost, proved = _at_price(flat, earlier, distance, price, end)
        bound = max(bound, proved)
        far = labels is not None and min(_differences(labels, x) for x in earlier) >= distance
        if far and cost < energy:
            best, energy = labels, cost
        low, high = (low, price) if far else (price, high)
        price = 2 * price if np.isinf(high) else (low + high) / 2
        if energy - bound <= CLOSED * abs(bound):
            break
    return best, bound


def _at_price(
    flat: FlatModel, earlier: list[Ints], distance: int, price: float, deadline: core.Deadline
) -> tuple[Ints | None, float, float]:
    """Return labels of the Lagrangian, their energy without ν, and the bound that ν proves.

    A diverse labelling agrees with each earlier one in at most n - d variables.
    """
    n = len(earlier[0])
    start = (np.cumsum(flat.num_labels) - flat.num_labels)[:n]
    unary = flat.unary.copy()
    for labels in earlier:
        unary[start + labels] += price
    found = solve_exact(replace(flat, unary=unary), deadline=deadline, relative_gap=CLOSED)
    paid = price * len(earlier) * (n - distance)
    sizes = np.abs(unary[np.isfinite(unary)])
    slack = 4 * EPS * (n * len(earlier) * sizes.max(initial=0.0) + paid + abs(found.lower_bound))
    proved = found.lower_bound - paid - slack
    if found.labels is None:
        return None, np.inf, proved
    agreeing = sum(n - _differences(found.labels, x) for x in earlier)
    return found.labels, found.energy - price * agreeing, proved


def _differences(one: Ints, other: Ints) -> int:
    return int((one[: len(other)] != other).sum())


# --- counters -------------------------------------------------------------------------------------


def _with_counters(flat: FlatModel, earlier: list[Ints], distance: int) -> FlatModel:
    """Return the model with counters c_i = min(d, differences in variables 0..i); the last is d."""
    n = len(earlier[0])
    labels, unary = [flat.num_labels], [flat.unary]
    scopes, tables, arity = [flat.scope], [flat.tables], [np.diff(flat.scope_start)]
    for k, other in enumerate(earlier):
        first = len(flat.num_labels) + n * k
        for i in range(n):
            table = _step(int(flat.num_labels[i]), int(other[i]), distance)
            scope = [i, first + i] if i == 0 else [first + i - 1, i, first + i]
            tables.append((table[0] if i == 0 else table).ravel())
            scopes.append(np.array(scope))
            arity.append(np.array([len(scope)]))
        ends = np.zeros((n, distance + 1))
        ends[-1, :distance] = np.inf
        labels.append(np.full(n, distance + 1))
        unary.append(ends.ravel())
    return FlatModel(
        np.concatenate(labels).astype(np.int64),
        np.concatenate(unary),
        np.concatenate([[0], np.cumsum(np.concatenate(arity))]).astype(np.int64),
        np.concatenate(scopes).astype(np.int64),
        np.concatenate(tables),
        flat.constant,
    )


def _step(num_labels: int, label: int, distance: int) -> Costs:
    """Return the transition table of a counter: 0 for the right next count, else +inf."""
    table = np.full((distance + 1, num_labels, distance + 1), np.inf)
    for x in range(num_labels):
        before = np.arange(distance + 1)
        table[before, x, np.minimum(distance, before + (x != label))] = 0.0
    return table


def _with_counts(labels: Ints, earlier: list[Ints], distance: int) -> Ints:
    counts = [np.minimum(distance, np.cumsum(labels[: len(other)] != other)) for other in earlier]
    return np.concatenate([labels, *counts]).astype(np.int64)

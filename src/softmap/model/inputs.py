"""Input of users: each array is checked once and flattened; errors name the wrong entry."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import ModelError, shown
from softmap.model.potentials import Potential, Potts, SharedTables, Tables
from softmap.model.potentials.base import (
    LARGEST_COST,
    RANGE,
    Costs,
    Ints,
    beyond,
    compact,
    frozen,
    integers,
    largest,
    numbers,
    offsets,
    plain,
    refuse_gradient,
    single,
)

LARGEST_SUM = 1e306  # limit of the sum of all |costs|: energies and bounds stay finite

Pairwise = Potential | ArrayLike | Sequence[ArrayLike]
Group = tuple[ArrayLike, Potential]


def within(counts: Ints) -> Ints:
    """Return 0..count-1 for each of the counts, concatenated."""
    places: Ints = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return places


def places_in(ordered: Ints, wanted: Ints) -> Ints:
    """Return the place of each number in an ascending array, -1 where it is not in it."""
    if not len(ordered):
        return np.full(wanted.shape, -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    return np.where(ordered[at] == wanted, at, -1)


def finite_number(value: Any, name: str) -> float:
    """Return the value as a finite float, or raise a `ModelError` that names it."""
    try:
        if isinstance(value, str | bytes | bytearray):
            raise TypeError("text is not a number")
        number = float(value)
    except Exception as error:  # the conversion methods of a value may raise any error
        raise ModelError(f"{name} must be a number, not {shown(value)}") from error
    if not np.isfinite(number):
        raise ModelError(f"{name} must be finite, not {number}")
    if abs(number) > LARGEST_COST:
        raise ModelError(f"{name} must be within ±{LARGEST_COST:g}, not {number}")
    return number


def checked_number(given: Any, count: int, what: str) -> int:
    """Return an integer in `0..count - 1`, or raise a `ModelError` that says `what` it is."""
    try:
        number = operator.index(given)
    except TypeError as error:
        raise ModelError(f"{what} must be a number, not {shown(given)}") from error
    if not 0 <= number < count:
        raise ModelError(f"{what} {shown(number)} is outside 0..{count - 1}")
    return number


# --- variables ----------------------------------------------------------------------------------


class FlatUnary(NamedTuple):
    """Unary costs that are flat already, as file readers have them: no list of a million rows."""

    costs: Costs
    num_labels: Ints


def flat_unary(unary: ArrayLike | Sequence[ArrayLike]) -> tuple[Costs, Ints]:
    """Return the concatenated costs of all variables, and the label counts."""
    if not isinstance(unary, FlatUnary):
        unary = _plain(unary, "unary")
    if isinstance(unary, FlatUnary):
        flat, num_labels = frozen(unary.costs), unary.num_labels
    elif isinstance(unary, np.ndarray) and unary.dtype != object:
        flat, num_labels = _from_array(unary)
    elif isinstance(unary, Mapping):
        raise ModelError("unary is a mapping; Model.from_factors takes variables with names")
    elif isinstance(unary, str | bytes) or not np.iterable(unary):
        raise ModelError(f"unary must be an array or a list of arrays, not {shown(unary)}")
    else:
        flat, num_labels = _from_rows(list(unary))
    if num_labels.min() < 1:
        raise ModelError(
            f"variable {int(np.argmin(num_labels))} has no labels; every variable needs one or more"
        )
    _reject_bad_unary(flat, num_labels)
    return flat, compact(frozen(num_labels, np.int64))


def _plain(values: Any, name: str) -> Any:
    refuse_gradient(values, name)
    try:
        return plain(values)
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from error
    except Exception as error:  # the conversion methods of a value may raise any error
        raise ModelError(f"{name} must be an array of numbers: {error}") from error


def _from_array(unary: NDArray[Any]) -> tuple[Costs, Ints]:
    if unary.ndim != 2:
        hint = "; see Model.grid" if unary.ndim > 2 else ""
        raise ModelError(f"unary must have shape (variables, labels), not {unary.shape}{hint}")
    if not len(unary):
        raise ModelError("a model needs at least one variable")
    num_labels = np.full(len(unary), unary.shape[1], dtype=np.int64)
    return frozen(numbers(unary, "unary")).reshape(-1), num_labels


def _from_rows(given: list[Any]) -> tuple[Costs, Ints]:
    if not given:
        raise ModelError("a model needs at least one variable")
    rows = [numbers(row, f"unary[{i}]") for i, row in enumerate(given)]
    for i, row in enumerate(rows):
        if row.ndim != 1:
            raise ModelError(f"unary[{i}] must be a list of costs, one per label")
    return frozen(np.concatenate(rows)), np.array([len(r) for r in rows], dtype=np.int64)


def _reject_bad_unary(flat: Costs, num_labels: Ints) -> None:
    """Raise `ModelError` for NaN, -inf and costs outside the range."""
    # min propagates NaN, so that no temporary array is needed
    low = flat.min()
    sound = not np.isnan(low) and low != -np.inf
    if sound and largest(flat, low) <= LARGEST_COST:
        return
    offset = offsets(num_labels)
    place = int(np.argmax(beyond(flat) if sound else np.isnan(flat) | (flat == -np.inf)))
    i = int(np.searchsorted(offset, place, side="right")) - 1
    raise ModelError(
        f"unary cost of variable {i}, label {place - offset[i]}, is {flat[place]}; {RANGE}"
    )


def other_unary(unary: ArrayLike | Sequence[ArrayLike], num_labels: Ints) -> Costs:
    """Return new costs for variables with these label counts.

    `unary` is flat, or has one of the forms that `flat_unary` takes.
    """
    if isinstance(unary, np.ndarray) and unary.ndim == 1 and unary.dtype != object:
        flat = frozen(numbers(unary, "unary"))
        if len(flat) != num_labels.sum():
            raise ModelError(f"unary must hold {num_labels.sum()} costs, not {len(flat)}")
        _reject_bad_unary(flat, num_labels)
        return flat
    flat, found = flat_unary(unary)
    if not np.array_equal(found, num_labels):
        raise ModelError("unary must have the label counts of the model it replaces")
    return flat


# --- edges --------------------------------------------------------------------------------------


def edge_groups(
    edges: ArrayLike | None, pairwise: Any, n: int
) -> tuple[NDArray[np.int32], tuple[Potential, ...], Ints]:
    """Return the edges of all groups, one potential per group, and the start of each group."""
    parts = [_fitted(_checked_edges(e, n), p) for e, p in _parts(edges, pairwise)]
    for array, potential in parts:
        if len(array) != len(potential):
            raise ModelError(f"{len(array)} edges were given for {potential!r}")
    kept = [(a, p) for a, p in parts if len(a)]
    arrays = [a for a, _ in kept] or [np.zeros((0, 2), np.int32)]
    joined = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    start = offsets(np.array([len(a) for a, _ in kept], dtype=np.int64))
    return frozen(joined, np.int32), tuple(p for _, p in kept), start


def _fitted(edges: NDArray[np.int32], potential: Potential) -> tuple[Any, Potential]:
    """Repeat a potential given as one number or one table for all edges."""
    spread = potential.alike and len(edges) != len(potential)
    return edges, potential.spread(len(edges)) if spread else potential


def _parts(edges: ArrayLike | None, pairwise: Any) -> list[tuple[ArrayLike, Potential]]:
    if pairwise is None:
        if edges is not None and np.size(plain(edges)):
            raise ModelError("edges need costs: give a potential or tables as pairwise")
        return []
    if single(pairwise):  # the price of two different labels
        pairwise = Potts(pairwise)
    if isinstance(pairwise, Potential):
        return [(() if edges is None else edges, pairwise)]
    pairwise = _plain(pairwise, "pairwise")
    pairs = isinstance(pairwise, list | tuple) and any(_is_pair(p) for p in pairwise)
    if edges is not None and not pairs:
        table = _one_table(pairwise)
        return [(edges, Tables(pairwise) if table is None else SharedTables([table], 0))]
    if edges is not None:
        raise ModelError("pairwise is a list of (edges, potential) pairs: pass edges=None")
    return groups_of(pairwise, "without edges, pairwise")


def _one_table(pairwise: Any) -> Costs | None:
    """Return the table for all edges if a single one was given, else None."""
    if isinstance(pairwise, str | bytes):
        return None
    if not isinstance(pairwise, np.ndarray):
        rows = pairwise if isinstance(pairwise, list | tuple) else ()
        if not rows or not all(_is_row(row) for row in rows):
            return None
    array = numbers(pairwise, "pairwise")
    return array if array.ndim == 2 else None


def _is_row(row: Any) -> bool:
    try:
        return np.ndim(plain(row)) == 1
    except Exception:  # the conversion methods of a value may raise any error
        return False


def groups_of(given: Any, name: str = "groups") -> list[Group]:
    """Return a checked list of (edges, potential)."""
    if not isinstance(given, list | tuple) or not all(_is_pair(p) for p in given):
        raise ModelError(f"{name} must be a list of (edges, potential) pairs, not {shown(given)}")
    return [(e, p) for e, p in given]


def _is_pair(part: Any) -> bool:
    return isinstance(part, list | tuple) and len(part) == 2 and isinstance(part[1], Potential)


def checked_reach(potential: Potential, ends: tuple[Ints, Ints], first: int) -> float:
    """Return a bound on |finite cost| over a group of edges, the first of which is edge `first`."""
    with np.errstate(over="ignore"):  # products of weights and entries
        reach = potential.largest(*ends)
        if reach <= LARGEST_COST:
            return reach
        low, high = potential.extremes(*ends)
    sizes = np.maximum(np.abs(low), np.abs(high))
    if (bad := ~(sizes <= LARGEST_COST)).any():
        k = int(np.argmax(bad))
        raise ModelError(
            f"{type(potential).__name__}: edge {first + k} has a cost of size {sizes[k]:.3g}; "
            f"{RANGE}"
        )
    return float(sizes.max(initial=0.0))


def checked_potentials(given: Any) -> tuple[Potential, ...]:
    """Return the potentials, one per group, as a tuple."""
    if not isinstance(given, list | tuple) or not all(isinstance(p, Potential) for p in given):
        raise ModelError(f"potentials must be a list of potentials, not {shown(given)}")
    return tuple(given)


def _checked_edges(edges: ArrayLike, n: int) -> NDArray[np.int32]:
    array = _whole_numbers(edges)
    if array.size == 0:
        return np.zeros((0, 2), dtype=np.int32)
    if array.ndim != 2 or array.shape[1] != 2:
        hint = ": transpose it" if array.ndim == 2 and array.shape[0] == 2 else ""
        raise ModelError(f"edges must have shape (edges, 2), not {array.shape}{hint}")
    if array.min() < 0 or array.max() >= n:
        e = int(np.argmax(((array < 0) | (array >= n)).any(axis=1)))
        raise ModelError(f"edge {e} is {tuple(array[e].tolist())}; variables are 0..{n - 1}")
    loops = array[:, 0] == array[:, 1]
    if loops.any():
        e = int(np.argmax(loops))
        raise ModelError(
            f"edge {e} joins variable {array[e, 0]} to itself; add its diagonal costs to the "
            "unary costs of that variable instead"
        )
    return array.astype(np.int32, copy=False)


def _whole_numbers(edges: ArrayLike) -> NDArray[Any]:
    # 32-bit edges are used as they are, without a 64-bit copy
    if type(edges) is np.ndarray and edges.dtype.kind in "iu":
        return edges
    return integers(edges, "edges")


# --- labels -------------------------------------------------------------------------------------


def checked_labels(
    labels: ArrayLike, num_labels: Ints, shape: tuple[int, ...] | None = None
) -> Ints:
    """Return a labelling, or a batch of labellings, as int64.

    A labelling may also have the `shape` of the grid.
    """
    n = len(num_labels)
    given = integers(labels, "labels")
    if shape is not None and given.shape[-len(shape) :] == shape:
        given = given.reshape(*given.shape[: -len(shape)], n)
    if given.shape[-1:] != (n,) or given.ndim > 2:
        grid = "" if shape is None else f", {shape}"
        raise ModelError(f"labels must have shape ({n},){grid} or (batch, {n}), not {given.shape}")
    bad = (given < 0) | (given >= num_labels)
    if bad.any():
        place = tuple(np.argwhere(bad)[0])
        i = int(place[-1])
        raise ModelError(f"label {given[place]} of variable {i} is outside 0..{num_labels[i] - 1}")
    return given


def checked_evidence(evidence: Mapping[int, int], num_labels: Ints) -> list[tuple[int, int]]:
    """Return the evidence as pairs (variable, label), each in range."""
    if not isinstance(evidence, Mapping):
        raise ModelError(
            f"evidence must map variable numbers to labels, which {shown(evidence)} does not"
        )
    pairs = []
    for variable, label in evidence.items():
        try:
            i, x = operator.index(variable), operator.index(label)
        except TypeError as error:
            raise ModelError(
                f"evidence: {shown(variable)} -> {shown(label)} must be a variable number and a "
                "label number"
            ) from error
        if not 0 <= i < len(num_labels):
            raise ModelError(f"evidence: variable {shown(i)} is outside 0..{len(num_labels) - 1}")
        if not 0 <= x < num_labels[i]:
            raise ModelError(
                f"evidence: label {shown(x)} of variable {i} is outside 0..{num_labels[i] - 1}"
            )
        pairs.append((i, x))
    return pairs

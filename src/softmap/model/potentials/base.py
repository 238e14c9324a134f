"""What every potential family can do. One object holds the costs of one group of edges."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import ModelError
from softmap.model.softmin import softmin

__all__ = [
    "Costs",
    "Ints",
    "KernelData",
    "Potential",
    "finite_extremes",
    "frozen",
    "integers",
    "least_steps",
    "numbers",
    "per_edge",
    "places",
]

Costs = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class KernelData:
    """Flat arrays of one group, as the compiled kernels want them; None where not used.

    `kind` names the header in `src/core/families` that reads them, one of `softmap.core.KINDS`.
    `offset[k]` (or `stride * k`) is where edge k begins in `table` (or `maps`); `weight` scales it.
    """

    kind: str
    weight: Costs | None = None
    truncation: Costs | None = None
    offset: Ints | None = None
    stride: int = 0
    table: Costs | None = None
    maps: NDArray[np.int32] | None = None


def frozen(array: ArrayLike, dtype: Any = np.float64) -> NDArray[Any]:
    """A read-only contiguous view (a copy only where dtype or layout ask for one)."""
    view = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view


def _array(values: Any, name: str) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{name} must be an array with rows of one length: {error}") from error


def numbers(values: Any, name: str) -> Costs:
    """A float64 array of real numbers (no copy of one that is), or a `ModelError` with the name."""
    array = _array(values, name)
    if array.dtype.kind not in "biufO":
        raise ModelError(f"{name} must be real numbers, not {array.dtype}")
    try:
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{name} must be real numbers: {error}") from error


def integers(values: Any, name: str) -> Ints:
    """An int64 array of whole numbers (no copy of one that is), or a `ModelError` with the name."""
    array = _array(values, name)
    if array.dtype.kind not in "iu" and array.size:
        raise ModelError(f"{name} must be integers, not {array.dtype}")
    return array.astype(np.int64, copy=False)


def per_edge(values: ArrayLike, name: str) -> Costs:
    """A read-only 1-D float array, one value per edge, without NaN or -inf."""
    array = frozen(np.atleast_1d(numbers(values, name)))
    if array.ndim != 1:
        raise ModelError(f"{name} must be one number per edge, not an array of {array.shape}")
    if (bad := np.isnan(array) | (array == -np.inf)).any():
        k = int(np.argmax(bad))
        raise ModelError(f"{name}[{k}] is {array[k]}; expected a number or +inf")
    return array


def places(index: ArrayLike) -> NDArray[Any]:
    """An index array; an empty list counts as one of integers."""
    chosen = np.atleast_1d(np.asarray(index))
    return chosen if chosen.size else np.zeros(0, dtype=np.int64)


def finite_extremes(costs: Costs) -> tuple[float, float]:
    """Least and greatest finite entry, or (0, 0)."""
    finite = costs[np.isfinite(costs)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


def least_steps(flat: Costs, start: Ints) -> Costs:
    """Difference of the two lowest distinct costs of each block; +inf or NaN if there are not two.

    Blocks begin at `start` and hold at least one cost each.
    """
    low = np.minimum.reduceat(flat, start)
    sizes = np.diff(np.append(start, flat.size))
    second = np.minimum.reduceat(np.where(flat > np.repeat(low, sizes), flat, np.inf), start)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(second - low)


class Potential(ABC):
    """Costs of a group of edges: an immutable value with a few verbs.

    A new family implements `__len__`, `value`, `take`, `scaled` and `arrays`; everything else has a
    correct default through dense tables, to be overridden where the family can do better.
    """

    family: ClassVar[str]

    @abstractmethod
    def __len__(self) -> int:
        """Number of edges in the group."""

    @abstractmethod
    def value(self, k: Any, x: Any, y: Any) -> Costs:
        """Cost of edges `k` at labels `x` (first end) and `y` (second end), broadcast together."""

    @abstractmethod
    def take(self, index: ArrayLike) -> Potential:
        """The same family for the edges `index` of this group."""

    @abstractmethod
    def scaled(self, factor: float) -> Potential:
        """All costs times a positive factor."""

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that define it, by name: for files and fingerprints."""

    def check(self, rows: Ints, cols: Ints) -> None:
        """Raise `ModelError` if the group does not fit ends with `rows` and `cols` labels."""
        if len(self) != len(rows):
            raise ModelError(
                f"{type(self).__name__} holds {len(self)} edges, but {len(rows)} were given"
            )

    def as_table(self, k: int, rows: int, cols: int) -> Costs:
        """Dense (rows, cols) costs of edge `k`."""
        return self.stack(np.array([k]), rows, cols)[0]

    def stack(self, k: ArrayLike, rows: int, cols: int) -> Costs:
        """Dense costs of edges `k`, all of one shape: (len(k), rows, cols)."""
        x, y = np.arange(rows)[:, None], np.arange(cols)[None, :]
        return self.value(np.asarray(k)[:, None, None], x, y)

    def factors(self, k: Ints, rows: int, cols: int) -> tuple[Costs, Costs]:
        """What `stack` is the rounded product of: weights of edges `k`, and a stack of tables."""
        return np.ones(len(k)), self.stack(k, rows, cols)

    def soft_message(self, k: int, side: int, a: Costs, eta: float, d_out: int) -> Costs:
        """Soft minimum over the far end: `-(1/η) log Σ_x exp(-η (a(x) + C(x, ·)))`.

        `side` is the end that receives; `a` are costs on the labels of the other end.
        """
        return softmin(self._incoming(k, side, a, d_out), eta)

    def hard_message(self, k: int, side: int, a: Costs, d_out: int) -> Costs:
        """Minimum over the far end, `min_x a(x) + C(x, ·)`: `soft_message` as η → ∞."""
        least: Costs = self._incoming(k, side, a, d_out).min(axis=1)
        return least

    def _incoming(self, k: int, side: int, a: Costs, d_out: int) -> Costs:
        rows, cols = (d_out, len(a)) if side == 0 else (len(a), d_out)
        table = self.as_table(k, rows, cols)
        return (table if side == 0 else table.T) + a

    def has_forbidden(self) -> bool:
        """Whether any cost is +inf."""
        arrays = self.arrays().values()
        return any(a.dtype.kind == "f" and a.max(initial=0.0) == np.inf for a in arrays)

    def extremes(self, rows: Ints, cols: Ints) -> tuple[Costs, Costs]:
        """Least and greatest finite cost of every edge (0 where it has none)."""
        pairs = [
            finite_extremes(self.as_table(k, int(rows[k]), int(cols[k]))) for k in range(len(self))
        ]
        low, high = np.array(pairs).reshape(-1, 2).T
        return low, high

    def steps(self, rows: Ints, cols: Ints) -> Costs:
        """Difference of the two lowest distinct costs of every edge; +inf or NaN without two."""
        tables = [self.as_table(k, int(rows[k]), int(cols[k])).ravel() for k in range(len(self))]
        start = np.cumsum([0, *(t.size for t in tables[:-1])])
        return least_steps(np.concatenate(tables), start)

    def kernel_data(self, rows: Ints, cols: Ints) -> KernelData:
        """Arrays for the compiled kernels: dense tables unless the family has a kind of its own."""
        tables = [self.as_table(k, int(rows[k]), int(cols[k])).ravel() for k in range(len(self))]
        offset = np.zeros(len(self) + 1, dtype=np.int64)
        np.cumsum(rows * cols, out=offset[1:])
        flat = np.concatenate(tables) if tables else np.zeros(0)
        return KernelData("tables", offset=offset[:-1], table=flat)

    def tile_key(self, rows: Ints, cols: Ints) -> Ints:
        """Which edges may be computed side by side: those with equal keys; -1: none with any."""
        return np.zeros(len(self), dtype=np.int64)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} edges)"

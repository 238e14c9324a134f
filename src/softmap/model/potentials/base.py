"""`Potential`, the base class of all families: one object holds the costs of a group of edges."""

from __future__ import annotations

import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap.errors import ModelError, shown

Floats = NDArray[np.float64]


def softmin(cost: Floats, eta: float) -> Floats:
    """Return the soft minimum over the last axis; +inf if all costs are +inf."""
    least = cost.min(axis=-1)
    shift = np.where(np.isfinite(least), least, 0.0)
    with np.errstate(divide="ignore"):
        sums = np.log(np.exp(-eta * (cost - shift[..., None])).sum(axis=-1))
    return np.asarray(shift - sums / eta)


def softmin_by_block(cost: Floats, starts: NDArray[np.int64], eta: float) -> Floats:
    """Return the soft minimum of each block of a flat array; every block has a finite cost."""
    least = np.minimum.reduceat(cost, starts)
    counts = np.diff(np.append(starts, len(cost)))
    mass = np.add.reduceat(np.exp(-eta * (cost - np.repeat(least, counts))), starts)
    return np.asarray(least - np.log(mass) / eta)


Costs = NDArray[np.float64]
Ints = NDArray[np.int64]

# Finite costs have at most this absolute value: sums of a million of them stay finite.
LARGEST_COST = 1e300
RANGE = f"expected a number or +inf (forbidden), numbers within ±{LARGEST_COST:g}"


@dataclass(frozen=True)
class KernelData:
    """Flat arrays of one group of edges, as the compiled kernels read them; None if not used.

    Attributes
    ----------
    kind : str
        The header in `src/core/families` that reads the arrays, one of `softmap.core.KINDS`.
    weight : float64[edges]
        Factor of each edge.
    truncation : float64[edges]
        Largest distance of each edge.
    offset : int64[edges]
        Start of each edge in `table` or `maps`; None means `stride * k` for edge `k`.
    stride : int
        Distance between two edges in `table` if `offset` is None.
    table : float64 array
        Concatenated tables, each row-major.
    maps : int32 array
        Concatenated maps of projections.
    """

    kind: str
    weight: Costs | None = None
    truncation: Costs | None = None
    offset: Ints | None = None
    stride: int = 0
    table: Costs | None = None
    maps: NDArray[np.int32] | None = None


def frozen(array: ArrayLike, dtype: Any = np.float64) -> NDArray[Any]:
    """Return a read-only contiguous view; a copy only if dtype or layout differ."""
    view = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view


def plain(values: Any) -> Any:
    """Convert an array of pandas, xarray, JAX or PyTorch to numpy; others are left unchanged.

    Raises `ModelError` for a masked array with masked entries, whose numbers mean nothing.
    """
    if type(values) is np.ndarray:
        return values
    if isinstance(values, np.ndarray):
        if np.any(getattr(values, "mask", False)):
            raise ModelError(
                "it is a masked array with masked entries; fill them, see its `filled`"
            )
        return np.asarray(values)
    if hasattr(values, "detach") and hasattr(values, "cpu"):  # PyTorch: drop gradients, leave GPU
        values = values.detach().cpu()
    if not hasattr(values, "__array__") or not hasattr(values, "shape"):
        return values
    array = np.asarray(values)
    if array.dtype.kind == "V" and array.dtype.names is None:  # bfloat16 and the like, of JAX
        array = array.astype(np.float32)
    return array


def single(values: Any) -> bool:
    """Whether the value is a single number, not an array."""
    return isinstance(values, int | float | np.number) or getattr(values, "shape", None) == ()


def _array(values: Any, name: str) -> NDArray[Any]:
    try:
        return np.asarray(plain(values))
    except ModelError as error:
        raise ModelError(f"{name}: {error}") from error
    except Exception as error:  # of any type: the value's conversion methods may raise anything
        raise ModelError(f"{name} must be an array with rows of one length: {error}") from error


def numbers(values: Any, name: str) -> Costs:
    """Return a float64 array; raise a `ModelError` that names it if it is not real numbers.

    A float64 array is not copied.
    """
    array = _array(values, name)
    if array.dtype.kind not in "biufO":
        raise ModelError(f"{name} must be real numbers, not {array.dtype}")
    if array.dtype.kind == "O" and any(isinstance(x, str | bytes) for x in array.flat):
        raise ModelError(f"{name} must be real numbers, not text")
    try:
        with np.errstate(over="ignore"):
            floats = array.astype(np.float64, copy=False)
        # A large number must not silently become +inf, which means forbidden.
        wide = array.dtype.kind == "O" or array.dtype.itemsize > 8
        lost = bool(wide and (np.isinf(floats) & (array != floats)).any())
    except Exception as error:  # of any type: conversion methods of objects may raise anything
        raise ModelError(f"{name} must be real numbers: {error}") from error
    if lost:
        raise ModelError(f"{name} holds a number beyond the range of float64")
    return floats


def integers(values: Any, name: str) -> Ints:
    """Return an int64 array; raise a `ModelError` that names it if it is not integers.

    An int64 array is not copied.
    """
    array = _array(values, name)
    if array.dtype.kind not in "iu" and array.size:
        raise ModelError(f"{name} must be integers, not {array.dtype}")
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise ModelError(f"{name}: {array.max()} is too large for an integer of 64 bits")
    return array.astype(np.int64, copy=False)


def requires_gradient(values: Any) -> bool:
    """Whether PyTorch or JAX differentiate by the values, or by an entry of a list of them."""
    jax = sys.modules.get("jax")
    if isinstance(values, list | tuple) and (jax is not None or "torch" in sys.modules):
        return any(map(requires_gradient, values))
    traced = jax is not None and isinstance(values, jax.core.Tracer)
    return traced or getattr(values, "requires_grad", False) is True


def refuse_gradient(values: Any, name: str) -> None:
    """Raise `ModelError` for tensors that PyTorch or JAX differentiate by, or a list of them."""
    rows = values if isinstance(values, list | tuple) else (values,)
    if any(requires_gradient(row) for row in rows if not isinstance(row, list | tuple)):
        raise ModelError(
            f"{name} requires a gradient, which a Model does not keep: give detached arrays, or "
            "call softmap.soft_map, which is differentiable"
        )


def per_edge(values: ArrayLike, name: str, most: float = LARGEST_COST) -> Costs:
    """Return a read-only float64 array with one value per edge, without NaN or -inf.

    Finite values must be at most `most` in absolute value.
    """
    array = frozen(np.atleast_1d(numbers(values, name)))
    if array.ndim != 1:
        raise ModelError(f"{name} must be one number per edge, not an array of {array.shape}")
    low = array.min(initial=np.inf)  # propagates NaN, so that no temporary array is needed
    if np.isnan(low) or low == -np.inf:
        k = int(np.argmax(np.isnan(array) | (array == -np.inf)))
        raise ModelError(f"{name}[{k}] is {array[k]}; expected a number or +inf")
    if largest(array, low) > most:
        k = int(np.argmax(beyond(array)))
        raise ModelError(f"{name}[{k}] is {array[k]}; {RANGE}")
    return compact(array)


COMPARED = 1 << 10  # entries that are compared before all are


def compact(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only flat array; if all entries are equal, a view of one of them."""
    few = array[:COMPARED]
    if array.size > 1 and (few == few[0]).all() and (array == array[0]).all():
        return np.broadcast_to(array[:1].copy(), array.shape)
    return array


def offsets(sizes: Ints) -> Ints:
    """Return the start of each block in their concatenation, and the end of the last one."""
    offset = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offset[1:])
    offset.flags.writeable = False
    return offset


def is_one_value(array: NDArray[Any]) -> bool:
    """Whether all entries of a flat array are one number in memory."""
    return array.size == 1 or array.strides == (0,)


def largest(costs: Costs, least: float | None = None) -> float:
    """Return the largest |finite cost|; `least`, if given, is the smallest cost.

    The costs hold no NaN and no -inf.
    """
    if not costs.size:
        return 0.0
    low = float(costs.min()) if least is None else float(least)
    high = float(costs.max())
    if high == np.inf:
        high = float(costs.max(where=costs < np.inf, initial=-np.inf))
        low = min(low, high)
    return max(abs(low), abs(high)) if np.isfinite(high) else 0.0


def beyond(costs: Costs) -> NDArray[np.bool_]:
    """Return a mask of the finite costs that are too large."""
    return np.isfinite(costs) & (np.abs(costs) > LARGEST_COST)


def places(index: ArrayLike, count: int) -> Ints:
    """Return edge indices in 0..count-1, given indices or a boolean mask."""
    chosen = np.atleast_1d(_array(index, "index"))
    if chosen.dtype == bool and chosen.shape == (count,):
        return np.flatnonzero(chosen)
    chosen = integers(chosen, "index")
    if chosen.ndim != 1 or (chosen.size and not -count <= chosen.min() <= chosen.max() < count):
        raise ModelError(f"index must list edges of 0..{count - 1}, not {shown(index)}")
    return chosen


def times(costs: Costs, factor: Any) -> Costs:
    """Return the costs times a positive finite factor; raise `ModelError` on overflow."""
    number = scale_factor(factor)
    with np.errstate(over="ignore"):
        scaled = costs * number
    if (lost := np.isinf(scaled) & np.isfinite(costs)).any():
        cost = costs[lost][0]
        raise ModelError(f"a cost of {cost} times {number} is beyond the range of float64")
    return scaled


def scale_factor(factor: Any) -> float:
    """Return a positive finite factor as a float, or raise `ModelError`."""
    try:
        number = float(factor)
    except Exception as error:  # of any type: the value's conversion methods may raise anything
        raise ModelError(f"factor must be a positive number, not {shown(factor)}") from error
    if not 0 < number < np.inf:
        raise ModelError(f"factor must be a positive number, not {number}")
    return number


def finite_extremes(costs: Costs) -> tuple[float, float]:
    """Return the smallest and largest finite entry, or (0, 0) if there is none."""
    finite = costs[np.isfinite(costs)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)


def least_steps(flat: Costs, start: Ints) -> Costs:
    """Return the difference of the two smallest distinct costs of each block.

    The result is +inf or NaN for a block without two distinct costs. Blocks begin at `start` and
    hold at least one cost each.
    """
    low = np.minimum.reduceat(flat, start)
    sizes = np.diff(np.append(start, flat.size))
    second = np.minimum.reduceat(np.where(flat > np.repeat(low, sizes), flat, np.inf), start)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(second - low)


class Potential(ABC):
    """The costs of a group of edges, as an immutable object.

    A new family implements `__len__`, `value`, `take`, `scaled` and `arrays`. All other methods
    have a default that uses dense tables; a family overrides them to be faster.
    """

    family: ClassVar[str]
    alike = False  # whether one number or table was given for all edges of the group

    def __new__(cls, *values: Any, **named: Any) -> Any:
        """Return a potential; one for `soft_map` alone if an argument requires a gradient."""
        if any(map(requires_gradient, (*values, *named.values()))):
            given = inspect.signature(cls.__init__).bind(None, *values, **named).arguments
            return Differentiable(cls, {k: v for k, v in given.items() if k != "self"})
        return super().__new__(cls)

    @abstractmethod
    def __len__(self) -> int:
        """The number of edges in the group."""

    @abstractmethod
    def value(self, k: Any, x: Any, y: Any) -> Costs:
        """Return the cost of edges `k` at labels `x` (first endpoint) and `y` (second endpoint).

        `k`, `x` and `y` are broadcast together.
        """

    @abstractmethod
    def take(self, index: ArrayLike) -> Potential:
        """Return the potential of the edges `index` of this group."""

    @abstractmethod
    def scaled(self, factor: float) -> Potential:
        """Return the potential with all costs multiplied by a positive factor (see `times`)."""

    @abstractmethod
    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that define the potential, by name; files and fingerprints use them."""

    def spread(self, count: int) -> Potential:
        """Return the potential of a single edge repeated for `count` edges."""
        return self.take(np.zeros(count, dtype=np.int64))

    def check(self, rows: Ints, cols: Ints) -> None:
        """Raise `ModelError` if the group does not fit endpoints with `rows` and `cols` labels."""
        if len(self) != len(rows):
            raise ModelError(
                f"{type(self).__name__} holds {len(self)} edges, but {len(rows)} were given"
            )

    def as_table(self, k: int, rows: int, cols: int) -> Costs:
        """Return the dense costs (rows, cols) of edge `k`."""
        return self.stack(np.array([k]), rows, cols)[0]

    def stack(self, k: ArrayLike, rows: int, cols: int) -> Costs:
        """Return the dense costs of edges `k` as an array (len(k), rows, cols)."""
        x, y = np.arange(rows)[:, None], np.arange(cols)[None, :]
        return self.value(np.asarray(k)[:, None, None], x, y)

    def factors(self, k: Ints, rows: int, cols: int) -> tuple[Costs, Costs]:
        """Return weights of edges `k` and a stack of tables whose rounded product is `stack`."""
        return np.ones(len(k)), self.stack(k, rows, cols)

    def has_forbidden(self) -> bool:
        """Whether any cost is +inf."""
        arrays = self.arrays().values()
        return any(a.dtype.kind == "f" and a.max(initial=0.0) == np.inf for a in arrays)

    def largest(self, rows: Ints, cols: Ints) -> float:
        """Return an upper bound on |finite cost| over all edges."""
        low, high = self.extremes(rows, cols)
        return float(max(np.abs(low).max(initial=0.0), np.abs(high).max(initial=0.0)))

    def extremes(self, rows: Ints, cols: Ints) -> tuple[Costs, Costs]:
        """Return the smallest and largest finite cost of every edge (0 if it has none)."""
        pairs = [
            finite_extremes(self.as_table(k, int(rows[k]), int(cols[k]))) for k in range(len(self))
        ]
        low, high = np.array(pairs).reshape(-1, 2).T
        return low, high

    def extreme_pieces(self, rows: Ints, cols: Ints, size: int) -> Iterator[tuple[Costs, Costs]]:
        """Yield `extremes` for `size` edges at a time."""
        low, high = self.extremes(rows, cols)
        for first in range(0, len(self), size):
            yield low[first : first + size], high[first : first + size]

    def steps(self, rows: Ints, cols: Ints) -> Costs:
        """Return the difference of the two smallest distinct costs of every edge.

        It is +inf or NaN for an edge without two distinct costs.
        """
        tables = [self.as_table(k, int(rows[k]), int(cols[k])).ravel() for k in range(len(self))]
        start = np.cumsum([0, *(t.size for t in tables[:-1])])
        return least_steps(np.concatenate(tables), start)

    def kernel_data(self, rows: Ints, cols: Ints) -> KernelData:
        """Return the arrays for the compiled kernels; dense tables by default."""
        tables = [self.as_table(k, int(rows[k]), int(cols[k])).ravel() for k in range(len(self))]
        offset = np.zeros(len(self) + 1, dtype=np.int64)
        np.cumsum(rows * cols, out=offset[1:])
        flat = np.concatenate(tables) if tables else np.zeros(0)
        return KernelData("tables", offset=offset[:-1], table=flat)

    def tile_key(self, rows: Ints, cols: Ints) -> Ints:
        """Return one key per edge: edges with equal keys can be updated together (SIMD).

        Key -1 marks an edge that is updated alone.
        """
        return np.zeros(len(self), dtype=np.int64)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} edge{'s' * (len(self) != 1)})"


class Differentiable(Potential):
    """A potential whose arguments require a gradient: `soft_map` differentiates by them.

    It has no costs in NumPy, so that no model loses the gradient silently.

    Parameters
    ----------
    of : type
        The family, such as `Potts`.
    given : dict
        The arguments of the family by name; some are tensors or arrays with a gradient.
    """

    family = "differentiable"

    def __init__(self, of: type[Potential], given: dict[str, Any]) -> None:
        self.of, self.given = of, given

    def __repr__(self) -> str:
        return f"{self.of.__name__} with a gradient"

    def _no_costs(self, *_: Any, **__: Any) -> Any:
        raise ModelError(
            f"the arguments of {self.of.__name__} require a gradient, which only soft_map and "
            "perturbed_map compute: detach them for a model"
        )

    __len__ = arrays = _no_costs
    value = take = scaled = spread = _no_costs

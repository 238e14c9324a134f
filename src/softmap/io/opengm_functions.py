"""The function types of OpenGM, each with its own serialisation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from softmap.errors import FormatError
from softmap.io.limits import LIMITS, check_arity, check_range
from softmap.io.streams import Content
from softmap.io.tokens import gather, gather_transposed
from softmap.model.factors import Assembly
from softmap.model.potentials import Potts, SharedTables, TruncatedLinear, TruncatedQuadratic
from softmap.model.potentials.base import Costs, Ints

__all__ = ["FUNCTION_TYPES", "Functions", "record_starts"]


class Functions(ABC):
    """All functions of one type; subclasses add batches of factors if possible."""

    parameters: ClassVar[int]

    def __init__(self, indices: Ints, values: Costs, count: int, content: Content) -> None:
        self.content = content
        self.count = count
        self.values = values
        if values.size and not values.min() > -np.inf:  # NaN too
            raise self.error("found NaN or -inf; expected numbers or inf")
        check_range(values, content.name)
        self.parse(indices)

    def error(self, message: str) -> FormatError:
        """Return an error that names the file and the function type."""
        return FormatError(f"{type(self).__name__}: {message}", self.content.name)

    def __len__(self) -> int:
        return self.count

    @abstractmethod
    def parse(self, indices: Ints) -> None:
        """Parse the stored indices; raise if they do not fit the values."""

    @abstractmethod
    def check_shapes(self, functions: Ints, shapes: Ints) -> None:
        """Raise unless function `functions[k]` has shape `shapes[k]`."""

    @abstractmethod
    def dense(self, function: int, shape: tuple[int, ...]) -> Costs:
        """Return the table of one function."""

    def entries(self, functions: Ints, shapes: Ints) -> int:
        """Return the number of costs of these factors in the model."""
        with np.errstate(over="ignore"):
            return int(min(shapes.astype(np.float64).prod(axis=1).sum(), 2.0**62))

    def add_to(self, assembly: Assembly, functions: Ints, scopes: Ints) -> None:
        """Add factors of one arity; a function used twice is shared."""
        arity = scopes.shape[1]
        used = np.flatnonzero(_used(functions, len(self)))
        index = (np.cumsum(_used(functions, len(self))) - 1)[functions]
        if arity == 2 and len(used) < len(index):
            shapes = _first_shapes(assembly.num_labels[scopes], index, len(used))
            tables = [self.dense(int(f), s) for f, s in zip(used, shapes, strict=True)]
            assembly.add_potential(scopes, SharedTables(tables, index))
            return
        check_arity(arity, self.content.name)
        for f, scope in zip(functions.tolist(), scopes, strict=True):
            shape = tuple(assembly.num_labels[scope].tolist())
            assembly.add_factor(scope.tolist(), self.dense(f, shape))


def _used(functions: Ints, count: int) -> NDArray[np.bool_]:
    """Return a mask of the functions (of `count`) that occur."""
    mask = np.zeros(count, dtype=bool)
    mask[functions] = True
    return mask


def _first_shapes(shapes: Ints, index: Ints, count: int) -> list[tuple[int, ...]]:
    first = np.zeros(count, dtype=np.int64)
    first[index[::-1]] = np.arange(len(index))[::-1]
    return [tuple(s) for s in shapes[first].tolist()]


class Shaped(Functions):
    """Function types whose indices are `[d, shape...]`, possibly followed by more."""

    def parse(self, indices: Ints) -> None:
        self.start = record_starts(indices, self.count, 0, 1, self.content, type(self).__name__)
        self.indices = indices
        self.dims = indices[self.start]
        self._place_values()

    def _place_values(self) -> None:
        self._expect(self.parameters * self.count)

    def _expect(self, count: float) -> None:
        if len(self.values) != count:
            raise self.error(f"expected {count:.0f} values, found {len(self.values)}")

    def check_shapes(self, functions: Ints, shapes: Ints) -> None:
        arity = shapes.shape[1]
        if (self.dims[functions] != arity).any():
            raise self.error(f"a factor of {arity} variables uses a function of another order")
        own = self.indices[self.start[functions][:, None] + 1 + np.arange(arity)]
        wrong = (own != shapes).any(axis=1)
        if wrong.any():
            k = int(np.argmax(wrong))
            expected = tuple(shapes[k].tolist())
            found = tuple(own[k].tolist())
            raise self.error(f"function {functions[k]}: expected shape {expected}, found {found}")


class Explicit(Shaped):
    """Dense tables, first index fastest."""

    def _place_values(self) -> None:
        sizes = np.ones(self.count)
        for d in np.flatnonzero(np.bincount(self.dims)).tolist():
            which = np.flatnonzero(self.dims == d)
            shapes = self.indices[self.start[which][:, None] + 1 + np.arange(d)]
            sizes[which] = shapes.astype(np.float64).prod(axis=1)
        self._expect(sizes.sum())
        self.size = sizes.astype(np.int64)
        self.place = np.cumsum(self.size) - self.size

    def dense(self, function: int, shape: tuple[int, ...]) -> Costs:
        at = int(self.place[function])
        return self.values[at : at + int(self.size[function])].reshape(shape[::-1]).T

    def entries(self, functions: Ints, shapes: Ints) -> int:
        return int(self.size[_used(functions, len(self))].sum())

    def add_to(self, assembly: Assembly, functions: Ints, scopes: Ints) -> None:
        arity, sizes = scopes.shape[1], self.size[functions]
        shapes = assembly.num_labels[scopes]
        alike = (shapes == shapes[:1]).all()
        once = _used(functions, len(self)).sum() == len(functions)
        if arity == 1 or (arity == 2 and alike and once):
            for size in np.flatnonzero(np.bincount(sizes)).tolist():
                which = np.flatnonzero(sizes == size)
                place = self.place[functions[which]]
                if arity == 1:
                    assembly.add_unaries(scopes[which, 0], gather(self.values, place, size))
                else:
                    shape = int(shapes[0, 0]), int(shapes[0, 1])
                    tables = gather_transposed(self.values, place, shape)
                    assembly.add_tables(scopes[which], tables)
            return
        super().add_to(assembly, functions, scopes)


class Constant(Shaped):
    """One value for all entries."""

    parameters = 1

    def dense(self, function: int, shape: tuple[int, ...]) -> Costs:
        return np.full(shape, self.values[function])

    def entries(self, functions: Ints, shapes: Ints) -> int:
        if np.isfinite(self.values[functions]).all():
            return 0
        return super().entries(functions, shapes)

    def add_to(self, assembly: Assembly, functions: Ints, scopes: Ints) -> None:
        values = self.values[functions]
        if np.isfinite(values).all():
            assembly.add_constant(float(values.sum()))
        else:
            super().add_to(assembly, functions, scopes)


class PottsN(Shaped):
    """One value if all labels agree, another otherwise."""

    parameters = 2

    def dense(self, function: int, shape: tuple[int, ...]) -> Costs:
        equal, other = self.values[2 * function : 2 * function + 2]
        table = np.full(shape, other)
        diagonal = np.arange(min(shape, default=1))
        table[(diagonal,) * len(shape)] = equal
        return table


class PottsG(Shaped):
    """One value per partition of the variables into groups of equal labels."""

    def _place_values(self) -> None:
        if self.count and self.dims.max() > LIMITS.partition_variables:
            most = LIMITS.partition_variables
            raise self.error(f"order {self.dims.max()} is too large; expected at most {most}")
        sizes = np.array([_bell(int(d)) for d in self.dims], dtype=np.int64)
        self._expect(float(sizes.sum()))
        self.place = np.cumsum(sizes) - sizes

    def dense(self, function: int, shape: tuple[int, ...]) -> Costs:
        labels = np.indices(shape).reshape(len(shape), -1)
        return self.values[self.place[function] + _partition(labels)].reshape(shape)


def _bell(d: int) -> int:
    """Return the number of partitions of d elements (the Bell number)."""
    row = [1]
    for _ in range(d - 1):
        following = [row[-1]]
        for x in row:
            following.append(following[-1] + x)
        row = following
    return row[-1]


def _partition(labels: Ints) -> Ints:
    """Return the number of the partition of each column.

    Bit k of a code says whether pair k agrees; pairs (i, j), i < j, are enumerated with j
    outermost, as in OpenGM. Partitions are numbered by increasing code.
    """
    d = len(labels)
    pairs = [(i, j) for j in range(1, d) for i in range(j)]
    code = np.zeros(labels.shape[1], dtype=np.int64)
    for bit, (i, j) in enumerate(pairs):
        code += (labels[i] == labels[j]).astype(np.int64) << bit
    return np.searchsorted(_codes(d), code)


def _codes(d: int) -> Ints:
    """Return the codes of all partitions of d elements, increasing."""
    blocks: list[list[int]] = [[]]
    for _ in range(d):
        blocks = [[*b, g] for b in blocks for g in range(max(b, default=-1) + 2)]
    pairs = [(i, j) for j in range(1, d) for i in range(j)]
    codes = [sum((b[i] == b[j]) << bit for bit, (i, j) in enumerate(pairs)) for b in blocks]
    return np.sort(np.array(codes, dtype=np.int64))


class Sparse(Functions):
    """A default value and exceptions, keyed by position (first index fastest)."""

    def parse(self, indices: Ints) -> None:
        self.records: list[tuple[tuple[int, ...], Ints, Costs]] = []
        at = value_at = 0
        for _ in range(self.count):
            d = int(indices[at]) if at < len(indices) else len(indices)
            end = at + 2 + d
            if end > len(indices):
                raise self.error("the indices end early; expected order, shape, count, keys")
            shape, filled = tuple(indices[at + 1 : end - 1].tolist()), int(indices[end - 1])
            keys = indices[end : end + filled]
            values = self.values[value_at : value_at + 1 + filled]
            if len(keys) != filled or len(values) != 1 + filled:
                raise self.error(f"expected {filled} keys and {filled + 1} values, found fewer")
            self.records.append((shape, keys, values))
            at, value_at = end + filled, value_at + 1 + filled
        if at != len(indices) or value_at != len(self.values):
            raise self.error("numbers are left over after the last function")

    def check_shapes(self, functions: Ints, shapes: Ints) -> None:
        for f, shape in zip(functions.tolist(), shapes.tolist(), strict=True):
            own, keys, _ = self.records[f]
            if own != tuple(shape):
                raise self.error(f"function {f}: expected shape {tuple(shape)}, found {own}")
            if len(keys) and float(keys.max()) >= np.prod(own, dtype=np.float64):
                raise self.error(f"function {f}: key {keys.max()} lies outside its shape {own}")

    def dense(self, function: int, shape: tuple[int, ...]) -> Costs:
        _, keys, values = self.records[function]
        table = np.full(int(np.prod(shape, dtype=np.int64)), values[0])
        table[keys] = values[1:]
        return table.reshape(shape[::-1]).T


def record_starts(
    stream: Ints, count: int, head: int, fixed: int, content: Content, what: str
) -> Ints:
    """Return the starts of records of length `fixed + stream[start + head]`.

    The records must fill the stream. Runs of records of equal length are processed in blocks.
    """
    at = done = 0
    block = 1
    starts = np.empty(min(count, len(stream)), dtype=np.int64)
    while done < len(starts):
        if at + head >= len(stream):
            break
        length = fixed + int(stream[at + head])
        block = min(block, len(starts) - done, max(1, (len(stream) - at) // length))
        heads = stream[at + head : at + head + block * length : length]
        same = heads == heads[0]
        run = len(heads) if same.all() else int(np.argmin(same))
        starts[done : done + run] = at + length * np.arange(run)
        block = 2 * block if run == len(heads) else max(1, run // 2)
        at += run * length
        done += run
    if done < count or at != len(stream):
        message = f"{what}: {count} records do not fill the {len(stream)} numbers stored"
        raise FormatError(message, content.name, expected=f"{count} records")
    return starts


class Pairwise(Functions):
    """Function types over two variables, with indices `[s0, s1]` and a few parameters."""

    def parse(self, indices: Ints) -> None:
        if len(indices) != 2 * self.count:
            raise self.error(f"expected {2 * self.count} shape numbers, found {len(indices)}")
        if len(self.values) != self.parameters * self.count:
            expected = self.parameters * self.count
            raise self.error(f"expected {expected} values, found {len(self.values)}")
        self.shapes = indices.reshape(-1, 2)
        self.table = self.values.reshape(-1, self.parameters)
        self.check_parameters()

    def check_parameters(self) -> None:
        """Raise an error for meaningless parameters."""
        if not np.isfinite(self.values).all():
            raise self.error("parameters must be finite")

    def check_shapes(self, functions: Ints, shapes: Ints) -> None:
        if shapes.shape[1] != 2 or (self.shapes[functions] != shapes).any():
            raise self.error("a factor uses a function of another shape")

    def entries(self, functions: Ints, shapes: Ints) -> int:
        return len(functions)


class Distance(Pairwise):
    """`weight * min(distance, truncation)`; the values are [truncation, weight] or [weight]."""

    potential: ClassVar[type[TruncatedLinear] | type[TruncatedQuadratic]]

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.parameters == 2 and self.count and self.table[:, 0].min() < 0:
            raise self.error(f"expected a truncation of at least 0, found {self.table[:, 0].min()}")

    def dense(self, function: int, shape: tuple[int, ...]) -> Costs:
        return self._of(np.array([function])).as_table(0, *shape)

    def _of(self, functions: Ints) -> TruncatedLinear | TruncatedQuadratic:
        cut = self.table[functions, 0] if self.parameters == 2 else np.full(len(functions), np.inf)
        return self.potential(self.table[functions, -1], cut)

    def add_to(self, assembly: Assembly, functions: Ints, scopes: Ints) -> None:
        assembly.add_potential(scopes, self._of(functions))


class AbsoluteDifference(Distance):
    """`w |a - b|`."""

    parameters, potential = 1, TruncatedLinear


class TruncatedAbsoluteDifference(Distance):
    """`w min(|a - b|, T)`."""

    parameters, potential = 2, TruncatedLinear


class SquaredDifference(Distance):
    """`w (a - b)²`."""

    parameters, potential = 1, TruncatedQuadratic


class TruncatedSquaredDifference(Distance):
    """`w min((a - b)², T)`."""

    parameters, potential = 2, TruncatedQuadratic


class PottsPair(Pairwise):
    """One value if the labels agree, another if they differ."""

    parameters = 2

    def check_parameters(self) -> None:
        """Do nothing: values are costs, which were checked before."""

    def dense(self, function: int, shape: tuple[int, ...]) -> Costs:
        equal, other = self.table[function]
        return np.where(np.equal.outer(np.arange(shape[0]), np.arange(shape[1])), equal, other)

    def entries(self, functions: Ints, shapes: Ints) -> int:
        if np.isfinite(self.table[functions, 0]).all():
            return len(functions)
        return super(Pairwise, self).entries(functions, shapes)

    def add_to(self, assembly: Assembly, functions: Ints, scopes: Ints) -> None:
        equal, other = self.table[functions].T
        if not np.isfinite(equal).all():
            super().add_to(assembly, functions, scopes)
            return
        assembly.add_constant(float(equal.sum()))
        assembly.add_potential(scopes, Potts(other - equal))


FUNCTION_TYPES: dict[int, type[Functions]] = {
    0: Explicit,
    1: Sparse,
    2: AbsoluteDifference,
    3: TruncatedAbsoluteDifference,
    4: SquaredDifference,
    5: TruncatedSquaredDifference,
    6: PottsPair,
    7: PottsN,
    8: Constant,
    11: PottsG,
}

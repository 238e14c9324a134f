"""OpenGM's functions of any arity, each with its own serialisation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from softmap.errors import FormatError
from softmap.io.assembly import Assembly, Costs, Ints, check_range, gather, gather_transposed
from softmap.io.limits import check_arity
from softmap.io.streams import Content
from softmap.model.potentials import SharedTables

__all__ = ["Constant", "Explicit", "Functions", "PottsG", "PottsN", "Sparse", "record_starts"]


class Functions(ABC):
    """All functions of one type; subclasses add whole batches of factors where they can."""

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
        """An error that names the file and the type of function."""
        return FormatError(f"{type(self).__name__}: {message}", self.content.name)

    def __len__(self) -> int:
        return self.count

    @abstractmethod
    def parse(self, indices: Ints) -> None:
        """Take the stored indices apart; raise if they and the values do not fit together."""

    @abstractmethod
    def check_shapes(self, functions: Ints, shapes: Ints) -> None:
        """Raise unless function `functions[k]` has shape `shapes[k]`."""

    @abstractmethod
    def dense(self, function: int, shape: tuple[int, ...]) -> Costs:
        """The table of one function."""

    def entries(self, functions: Ints, shapes: Ints) -> int:
        """How many costs these factors will take in the model."""
        with np.errstate(over="ignore"):
            return int(min(shapes.astype(np.float64).prod(axis=1).sum(), 2.0**62))

    def add_to(self, assembly: Assembly, functions: Ints, scopes: Ints) -> None:
        """Add factors of one arity; functions used twice stay shared."""
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
    """Which of `count` functions occur."""
    mask = np.zeros(count, dtype=bool)
    mask[functions] = True
    return mask


def _first_shapes(shapes: Ints, index: Ints, count: int) -> list[tuple[int, ...]]:
    first = np.zeros(count, dtype=np.int64)
    first[index[::-1]] = np.arange(len(index))[::-1]
    return [tuple(s) for s in shapes[first].tolist()]


class Shaped(Functions):
    """Types that store `[d, shape...]`, possibly more, before their values."""

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
    """One value where all labels agree, another elsewhere."""

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
        if self.count and self.dims.max() > 8:
            raise self.error(f"order {self.dims.max()} is too large; expected at most 8")
        sizes = np.array([_bell(int(d)) for d in self.dims], dtype=np.int64)
        self._expect(float(sizes.sum()))
        self.place = np.cumsum(sizes) - sizes

    def dense(self, function: int, shape: tuple[int, ...]) -> Costs:
        labels = np.indices(shape).reshape(len(shape), -1)
        return self.values[self.place[function] + _partition(labels)].reshape(shape)


def _bell(d: int) -> int:
    """Number of partitions of d elements (the Bell triangle)."""
    row = [1]
    for _ in range(d - 1):
        following = [row[-1]]
        for x in row:
            following.append(following[-1] + x)
        row = following
    return row[-1]


def _partition(labels: Ints) -> Ints:
    """Number of the partition of each column: bit k of a code says whether a pair agrees.

    The codes of the possible partitions, in increasing order, number them; pairs (i, j), i < j,
    are counted with j outermost, as OpenGM does.
    """
    d = len(labels)
    pairs = [(i, j) for j in range(1, d) for i in range(j)]
    code = np.zeros(labels.shape[1], dtype=np.int64)
    for bit, (i, j) in enumerate(pairs):
        code += (labels[i] == labels[j]).astype(np.int64) << bit
    return np.searchsorted(_codes(d), code)


def _codes(d: int) -> Ints:
    """Codes of all partitions of d elements, increasing."""
    blocks: list[list[int]] = [[]]
    for _ in range(d):
        blocks = [[*b, g] for b in blocks for g in range(max(b, default=-1) + 2)]
    pairs = [(i, j) for j in range(1, d) for i in range(j)]
    codes = [sum((b[i] == b[j]) << bit for bit, (i, j) in enumerate(pairs)) for b in blocks]
    return np.sort(np.array(codes, dtype=np.int64))


class Sparse(Functions):
    """A default and exceptions, keyed by position (first index fastest)."""

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
    """Where records begin that are `fixed + stream[start + head]` long; they must fill the stream.

    Records of equal length come in runs: a run is recognised a block at a time.
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

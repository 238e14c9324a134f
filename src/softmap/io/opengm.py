"""HDF5 files of OpenGM: functions by type, and factors that share them."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from softmap.errors import FormatError, needs_extra
from softmap.io.limits import LIMITS
from softmap.io.streams import Content
from softmap.io.tokens import gather, gather_transposed
from softmap.model import Model, Network
from softmap.model.factors import Assembly
from softmap.model.model import assembled
from softmap.model.potentials import (
    Potential,
    Potts,
    SharedTables,
    TruncatedLinear,
    TruncatedQuadratic,
)
from softmap.model.potentials.base import Costs, Ints


def parse_opengm(content: Content) -> Model:
    """Return the model of an OpenGM HDF5 file (its group `gm`, or its only group)."""
    arrays = dict(_arrays(content))
    content.release()
    header = _header(arrays, content)
    num_labels = _states(arrays, int(header[2]), content)
    types = _functions(arrays, header, content)
    factors = _factors(arrays, int(header[3]), len(types), content)
    arrays.clear()  # frees the larger part of the file; the scopes were copied
    return _assemble(num_labels, types, factors, content)


def _arrays(content: Content) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the one-dimensional datasets of the model's group, by name."""
    with needs_extra("reading OpenGM files", "opengm"):
        import h5py
    if not content.data.startswith(b"\x89HDF\r\n\x1a\n"):
        raise content.error("an HDF5 file")
    try:
        with h5py.File(io.BytesIO(content.data), "r") as file:
            group = _model_group(file, content)
            for key in group:
                node = _node(group, key, content)
                if key.startswith("function-id-"):
                    for part in ("indices", "values"):
                        yield f"{key}/{part}", _dataset(_node(node, part, content), content)
                elif key in ("header", "numbers-of-states", "factors"):
                    yield key, _dataset(node, content)
    except FormatError:
        raise
    except Exception as error:  # h5py raises exceptions of many types
        raise FormatError(f"damaged HDF5 file: {error}", content.name) from error


def _model_group(file: Any, content: Content) -> Any:
    if "header" in file:
        return file
    names = [
        n for n in file if hasattr(node := _node(file, n, content), "keys") and "header" in node
    ]
    if len(names) != 1 and "gm" not in names:
        raise content.error("one group with a header (usually 'gm')", len(names))
    return file["gm" if "gm" in names else names[0]]


def _node(group: Any, key: str, content: Content) -> Any:
    """Return a member of a group; links to other files are not followed."""
    if hasattr(group.get(key, getlink=True), "filename"):
        raise content.error(f"data in {key}", "a link to another file")
    return group[key]


def _dataset(node: Any, content: Content) -> NDArray[Any]:
    if hasattr(node, "keys") or node.dtype.kind not in "iuf" or len(node.shape or ()) > 1:
        raise content.error(f"a list of numbers in {node.name}")
    if node.external or node.is_virtual:
        raise content.error(f"data in {node.name}", "another file's")
    if node.nbytes > 64 * content.size:
        content.reserve(node.size)
        most = f"at most {8 * content.size} numbers in {node.name}, by the size of the file"
        raise content.error(most, node.size)
    return np.atleast_1d(node[()])


def _header(arrays: dict[str, NDArray[Any]], content: Content) -> list[int]:
    """Return the header: [2, 0, variables, factors, types, (id, count)..., value type].

    Old files lack the value type.
    """
    header: list[int] = _wholes(arrays, "header", content).tolist()
    if len(header) < 5 or len(header) not in (5 + 2 * header[4], 6 + 2 * header[4]):
        raise content.error("5 numbers in the header, and two per function type", len(header))
    if header[0] != 2:
        raise content.error("version 2 in the header", header[0])
    return header


def _get(arrays: dict[str, NDArray[Any]], key: str, content: Content) -> NDArray[Any]:
    if key not in arrays:
        raise content.error(f"a dataset {key!r}", ", ".join(arrays) or "none")
    return arrays[key]


def _wholes(arrays: dict[str, NDArray[Any]], key: str, content: Content) -> Ints:
    array = _get(arrays, key, content)
    if array.dtype.kind == "f" or (array.size and (array.max() > 2**62 or array.min() < 0)):
        raise content.error(f"whole numbers in {key}")
    return array.view(np.int64) if array.dtype == np.uint64 else array.astype(np.int64)


def _states(arrays: dict[str, NDArray[Any]], n: int, content: Content) -> Ints:
    labels = _wholes(arrays, "numbers-of-states", content)
    if len(labels) != n or n == 0:
        raise content.error(f"{max(n, 1)} label counts in numbers-of-states", len(labels))
    if labels.min() < 1:
        raise content.error(f"at least one label of variable {np.argmin(labels)}", "none")
    content.reserve(sum(labels.tolist()))
    return labels


def _functions(
    arrays: dict[str, NDArray[Any]], header: list[int], content: Content
) -> list[Functions]:
    """Return one object per function type, in the order of the header."""
    found = []
    for t in range(header[4]):
        number, count = header[5 + 2 * t], header[6 + 2 * t]
        kind = FUNCTION_TYPES.get(number - 16000)
        if kind is None:
            known = ", ".join(f"{16000 + k}" for k in FUNCTION_TYPES)
            raise content.error(f"a function type of {known}", f"{number}, which is not supported")
        empty = count == 0
        key = f"function-id-{number}"
        indices = np.zeros(0, np.int64) if empty else _wholes(arrays, f"{key}/indices", content)
        values = np.zeros(0) if empty else _get(arrays, f"{key}/values", content)
        found.append(kind(indices, values.astype(np.float64, copy=False), count, content))
    return found


def _factors(
    arrays: dict[str, NDArray[Any]], count: int, types: int, content: Content
) -> list[tuple[int, Ints, Ints]]:
    """Return the factors by arity: (type, functions, scopes), with one row per factor."""
    stream = _wholes(arrays, "factors", content) if count else np.zeros(0, np.int64)
    if count > len(stream):
        raise content.error(f"{count} factors", f"{len(stream)} numbers in factors")
    if len(stream) and stream.max() < 2**31:
        stream = stream.astype(np.int32)
        del arrays["factors"]
    start = record_starts(stream, count, 2, 3, content, "factors")
    kinds, order = stream[start + 1], stream[start + 2]
    if count and kinds.max() >= types:
        raise content.error(f"factors of function types 0 to {types - 1}", kinds.max())
    batches = []
    for arity in np.flatnonzero(np.bincount(order)).tolist():
        for t in range(types):
            at = start[(order == arity) & (kinds == t)]
            if len(at):
                scopes = stream[at[:, None] + (3 + np.arange(arity))]
                batches.append((t, stream[at].astype(np.int64), scopes.astype(np.int64)))
    return batches


def _assemble(
    num_labels: Ints,
    types: list[Functions],
    factors: list[tuple[int, Ints, Ints]],
    content: Content,
) -> Model:
    assembly = Assembly(num_labels)
    for t, functions, scopes in factors:
        _check_scopes(scopes, len(num_labels), content)
        kind = types[t]
        if len(functions) and functions.max() >= len(kind):
            raise content.error(f"functions 0 to {len(kind) - 1} of type {t}", functions.max())
        kind.check_shapes(functions, num_labels[scopes])
        content.take(kind.entries(functions, num_labels[scopes]))
        kind.add_to(assembly, functions, scopes)
    return assembled(assembly.pieces())


def _check_scopes(scopes: Ints, n: int, content: Content) -> None:
    if scopes.size and scopes.max() >= n:
        raise content.error(f"factors over variables 0 to {n - 1}", scopes.max())
    ordered = np.sort(scopes, axis=1) if scopes.shape[1] > 2 else scopes
    if (ordered[:, 1:] == ordered[:, :-1]).any():
        raise FormatError("a factor names a variable twice", content.name)


# --- writing ------------------------------------------------------------------------------------


_EXPLICIT, _TRUNCATED_ABSOLUTE, _TRUNCATED_SQUARED, _POTTS = 16000, 16003, 16005, 16006


def format_opengm(model: Network) -> list[bytes]:
    """Return the bytes of an OpenGM HDF5 file."""
    with needs_extra("writing OpenGM files", "opengm"):
        import h5py
    writer = _Writer()
    if model.constant:
        writer.add(_EXPLICIT, (), [0], [model.constant])
    for i in range(model.num_variables):
        writer.add_table((i,), model.unary_of(i))
    for first, last, potential in model.groups():
        _add_group(writer, model, model.edges[first:last].astype(np.int64), potential)
    for scope, table in model.factors():
        writer.add_table(scope, table)
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        writer.store(file.create_group("gm"), model.num_labels[: model.num_variables])
    return [buffer.getvalue()]


def _add_group(writer: _Writer, model: Network, edges: Ints, potential: Potential) -> None:
    for k, (i, j) in enumerate(edges.tolist()):
        if i >= model.num_variables:
            continue  # a joint factor is written instead of its auxiliary node
        shape = [int(model.num_labels[i]), int(model.num_labels[j])]
        scope: tuple[int, ...] = (i, j)
        if isinstance(potential, Potts | TruncatedLinear | TruncatedQuadratic):
            if i > j:  # these costs are symmetric: sort the endpoints
                scope, shape = (j, i), shape[::-1]
            kind, values = _parameters(potential, k, max(shape))
            writer.add(kind, scope, shape, values, (kind, *shape, *values))
        else:
            key = None
            if isinstance(potential, SharedTables):
                key = (id(potential), int(potential.index[k]), float(potential.weights[k]), i < j)
            writer.add_table(scope, potential.as_table(k, *shape), key)


def _parameters(potential: Any, k: int, labels: int) -> tuple[int, list[float]]:
    weight = float(potential.weights[k])
    if isinstance(potential, Potts):
        return _POTTS, [0.0, weight]
    linear = isinstance(potential, TruncatedLinear)
    reach = float(labels if linear else labels**2)
    cut = min(float(potential.truncation[k]), reach)
    return (_TRUNCATED_ABSOLUTE if linear else _TRUNCATED_SQUARED), [cut, weight]


class _Writer:
    """Collects functions by type and factors that refer to them."""

    def __init__(self) -> None:
        self.indices: dict[int, list[int]] = {}
        self.values: dict[int, list[Costs]] = {}
        self.counts: dict[int, int] = {}
        self.known: dict[Any, int] = {}
        self.factors: list[tuple[int, int, tuple[int, ...]]] = []

    def add_table(self, scope: tuple[int, ...], table: Costs, key: Any = None) -> None:
        """Add a dense factor; OpenGM requires its variables in increasing order."""
        order = np.argsort(scope)
        ordered = table.transpose(order)
        indices = [ordered.ndim, *ordered.shape]
        self.add(_EXPLICIT, tuple(scope[a] for a in order), indices, ordered.ravel(order="F"), key)

    def add(
        self, kind: int, scope: tuple[int, ...], indices: list[int], values: Any, key: Any = None
    ) -> None:
        """Add a factor; functions with the same key are stored once."""
        number = self.known.get(key) if key is not None else None
        if number is None:
            number = self.counts.get(kind, 0)
            self.counts[kind] = number + 1
            self.indices.setdefault(kind, []).extend(indices)
            self.values.setdefault(kind, []).append(np.asarray(values, dtype=np.float64))
            if key is not None:
                self.known[key] = number
        self.factors.append((number, kind, scope))

    def _factor_numbers(self, kinds: list[int]) -> Iterator[int]:
        for number, kind, scope in self.factors:
            yield from (number, kinds.index(kind), len(scope), *scope)

    def store(self, group: Any, num_labels: Ints) -> None:
        """Write the datasets."""
        kinds = sorted(self.counts)
        types = [x for kind in kinds for x in (kind, self.counts[kind])]
        header = [2, 0, len(num_labels), len(self.factors), len(kinds), *types, 1]
        group["header"] = np.array(header, dtype=np.uint64)
        group["numbers-of-states"] = num_labels.astype(np.uint64)
        for kind in kinds:
            part = group.create_group(f"function-id-{kind}")
            part["indices"] = np.array(self.indices[kind], dtype=np.uint64)
            part["values"] = np.concatenate(self.values[kind])
        group["factors"] = np.fromiter(self._factor_numbers(kinds), dtype=np.uint64)


class Functions(ABC):
    """All functions of one type; subclasses add batches of factors if possible."""

    parameters: ClassVar[int]

    def __init__(self, indices: Ints, values: Costs, count: int, content: Content) -> None:
        self.content = content
        self.count = count
        self.values = values
        if values.size and not values.min() > -np.inf:  # NaN too
            raise self.error("found NaN or -inf; expected numbers or inf")
        content.check(values)
        self.parse(indices)

    def error(self, message: str) -> FormatError:
        """Return an error that names the file and the function type."""
        return FormatError(f"{type(self).__name__}: {message}", self.content.name)

    def expect(self, count: float) -> None:
        """Raise unless there are this many values."""
        if len(self.values) != count:
            raise self.error(f"expected {count:.0f} values, found {len(self.values)}")

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
        mask = _used(functions, len(self))
        used, index = np.flatnonzero(mask), (np.cumsum(mask) - 1)[functions]
        if arity == 2 and len(used) < len(index):
            shapes = _first_shapes(assembly.num_labels[scopes], index, len(used))
            tables = [self.dense(int(f), s) for f, s in zip(used, shapes, strict=True)]
            assembly.add_potential(scopes, SharedTables(tables, index))
            return
        self.content.check_arity(arity)
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
        self.expect(self.parameters * self.count)

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
        self.expect(sizes.sum())
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
        self.expect(float(sizes.sum()))
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
        raise content.error(f"{count} records in {what}", f"{len(stream)} numbers, which differ")
    return starts


class PairFunctions(Functions):
    """Function types over two variables, with indices `[s0, s1]` and a few parameters."""

    def parse(self, indices: Ints) -> None:
        if len(indices) != 2 * self.count:
            raise self.error(f"expected {2 * self.count} shape numbers, found {len(indices)}")
        self.expect(self.parameters * self.count)
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


class Distance(PairFunctions):
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


class PottsPair(PairFunctions):
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
        return super(PairFunctions, self).entries(functions, shapes)

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

"""HDF5 files of OpenGM: functions by type, and factors that share them."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import FormatError, MissingExtra
from softmap.io.factors import joint_factors
from softmap.io.limits import check_entries
from softmap.io.opengm_functions import FUNCTION_TYPES, Functions, record_starts
from softmap.io.streams import Content, open_content
from softmap.model import Model
from softmap.model.factors import Assembly
from softmap.model.potentials import (
    Potential,
    Potts,
    SharedTables,
    TruncatedLinear,
    TruncatedQuadratic,
)
from softmap.model.potentials.base import Costs, Ints

__all__ = ["format_opengm", "parse_opengm"]


def parse_opengm(data: bytes | Content) -> Model:
    """Return the model of an OpenGM HDF5 file (its group `gm`, or its only group)."""
    content = open_content(data)
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
    try:
        import h5py
    except ImportError as error:
        raise MissingExtra("reading OpenGM files", "opengm") from error
    if not content.data.startswith(b"\x89HDF\r\n\x1a\n"):
        raise FormatError("expected an HDF5 file", content.name, expected="an HDF5 file")
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
        raise FormatError(f"not a sound HDF5 file: {error}", content.name) from error


def _model_group(file: Any, content: Content) -> Any:
    if "header" in file:
        return file
    names = [n for n in file if _is_group(node := _node(file, n, content)) and "header" in node]
    if len(names) != 1 and "gm" not in names:
        message = f"expected one group with a header (usually 'gm'), found {len(names)}"
        raise FormatError(message, content.name, expected="the group 'gm'")
    return file["gm" if "gm" in names else names[0]]


def _is_group(node: Any) -> bool:
    return hasattr(node, "keys")


def _node(group: Any, key: str, content: Content) -> Any:
    """Return a member of a group; links to other files are not followed."""
    if hasattr(group.get(key, getlink=True), "filename"):
        raise FormatError(f"{key}: expected data, found a link to another file", content.name)
    return group[key]


def _dataset(node: Any, content: Content) -> NDArray[Any]:
    if _is_group(node) or node.dtype.kind not in "iuf" or len(node.shape or ()) > 1:
        expected = "a list of numbers"
        raise FormatError(f"{node.name}: expected {expected}", content.name, expected=expected)
    if node.external or node.is_virtual:
        raise FormatError(f"{node.name}: expected data, found another file's", content.name)
    if node.nbytes > 64 * content.size:
        check_entries(node.size, content.size, content.name)
        raise FormatError(
            f"{node.name}: {node.size} numbers do not fit into a file of {content.size} bytes",
            content.name,
        )
    return np.atleast_1d(node[()])


def _header(arrays: dict[str, NDArray[Any]], content: Content) -> list[int]:
    """Return the header: [2, 0, variables, factors, types, (id, count)..., value type].

    Old files lack the value type.
    """
    header: list[int] = _wholes(arrays, "header", content).tolist()
    if len(header) < 5 or len(header) not in (5 + 2 * header[4], 6 + 2 * header[4]):
        raise FormatError(
            f"header: expected 5 numbers and two for each function type, found {len(header)}",
            content.name,
        )
    if header[0] != 2:
        message = f"header: expected version 2, found {header[0]}"
        raise FormatError(message, content.name, expected="version 2")
    return header


def _get(arrays: dict[str, NDArray[Any]], key: str, content: Content) -> NDArray[Any]:
    if key not in arrays:
        message = f"expected a dataset {key!r}, found {', '.join(arrays) or 'none'}"
        raise FormatError(message, content.name, expected=f"a dataset {key!r}")
    return arrays[key]


def _wholes(arrays: dict[str, NDArray[Any]], key: str, content: Content) -> Ints:
    array = _get(arrays, key, content)
    if array.dtype.kind == "f" or (array.size and (array.max() > 2**62 or array.min() < 0)):
        raise FormatError(f"{key}: expected whole numbers", content.name, expected="whole numbers")
    return array.view(np.int64) if array.dtype == np.uint64 else array.astype(np.int64)


def _states(arrays: dict[str, NDArray[Any]], n: int, content: Content) -> Ints:
    labels = _wholes(arrays, "numbers-of-states", content)
    if len(labels) != n or n == 0:
        message = f"numbers-of-states: expected {max(n, 1)} label counts, found {len(labels)}"
        raise FormatError(message, content.name)
    if labels.min() < 1:
        message = f"variable {np.argmin(labels)}: expected at least one label, found none"
        raise FormatError(message, content.name, expected="at least one label")
    check_entries(sum(labels.tolist()), content.size, content.name)
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
            message = f"function type {number} is not supported; expected one of {known}"
            raise FormatError(message, content.name, expected=f"one of {known}")
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
        message = f"factors: expected {count} factors, found {len(stream)} numbers"
        raise FormatError(message, content.name)
    if len(stream) and stream.max() < 2**31:
        stream = stream.astype(np.int32)
        del arrays["factors"]
    start = record_starts(stream, count, 2, 3, content, "factors")
    kinds, order = stream[start + 1], stream[start + 2]
    if count and kinds.max() >= types:
        message = f"factors: function type number {kinds.max()}, expected 0 to {types - 1}"
        raise FormatError(message, content.name)
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
    entries = 0
    for t, functions, scopes in factors:
        _check_scopes(scopes, len(num_labels), content)
        kind = types[t]
        if len(functions) and functions.max() >= len(kind):
            message = f"function {functions.max()} of type {t}, expected 0 to {len(kind) - 1}"
            raise FormatError(message, content.name)
        kind.check_shapes(functions, num_labels[scopes])
        entries += kind.entries(functions, num_labels[scopes])
        check_entries(entries, content.size, content.name)
        kind.add_to(assembly, functions, scopes)
    return Model.from_pieces(assembly.pieces())


def _check_scopes(scopes: Ints, n: int, content: Content) -> None:
    if scopes.size and scopes.max() >= n:
        message = f"a factor names variable {scopes.max()}, expected 0 to {n - 1}"
        raise FormatError(message, content.name, expected=f"0 to {n - 1}")
    ordered = np.sort(scopes, axis=1) if scopes.shape[1] > 2 else scopes
    if (ordered[:, 1:] == ordered[:, :-1]).any():
        raise FormatError("a factor names a variable twice", content.name)


# --- writing ------------------------------------------------------------------------------------


_EXPLICIT, _TRUNCATED_ABSOLUTE, _TRUNCATED_SQUARED, _POTTS = 16000, 16003, 16005, 16006


def format_opengm(model: Model) -> list[bytes]:
    """Return the bytes of an OpenGM HDF5 file."""
    try:
        import h5py
    except ImportError as error:
        raise MissingExtra("writing OpenGM files", "opengm") from error
    writer = _Writer()
    if model.constant:
        writer.add(_EXPLICIT, (), [0], [model.constant])
    for i in range(model.num_variables):
        writer.add_table((i,), model.unary_of(i))
    for first, last, potential in model.groups():
        _add_group(writer, model, model.edges[first:last].astype(np.int64), potential)
    for scope, table in joint_factors(model):
        writer.add_table(scope, table)
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        writer.store(file.create_group("gm"), model.num_labels[: model.num_variables])
    return [buffer.getvalue()]


def _add_group(writer: _Writer, model: Model, edges: Ints, potential: Potential) -> None:
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

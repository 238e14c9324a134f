"""OpenGM's HDF5 files: functions by type, factors that share them."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.errors import FormatError, MissingExtra, ModelError
from softmap.io.assembly import Assembly, Ints
from softmap.io.limits import check_entries
from softmap.io.opengm_functions import FUNCTION_TYPES
from softmap.io.opengm_tables import Functions, record_starts
from softmap.io.streams import Content, Source, load, open_content
from softmap.model import Model

__all__ = ["parse_opengm", "read_opengm"]


def parse_opengm(data: bytes | Content) -> Model:
    """Model from the bytes of an OpenGM HDF5 file (the group `gm`, or the only one there is)."""
    content = open_content(data)
    arrays = dict(_arrays(content))
    content.release()
    header = _header(arrays, content)
    num_labels = _states(arrays, int(header[2]), content)
    types = _functions(arrays, header, content)
    factors = _factors(arrays, int(header[3]), len(types), content)
    arrays.clear()  # the scopes are out of them, and they are the larger part of the file
    return _assemble(num_labels, types, factors, content)


def read_opengm(source: Source) -> Model:
    """Model from an OpenGM HDF5 file."""
    return parse_opengm(load(source))


def _arrays(content: Content) -> Iterator[tuple[str, NDArray[Any]]]:
    """The one-dimensional datasets of the model's group, by name."""
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
    except Exception as error:  # h5py raises what its C library suggests, of any type
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
    """A member of a group; links to other files are not followed."""
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
    """[2, 0, variables, factors, types, (id, count)..., value type]; old files lack the last."""
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
    """One object per function type, in the order of the header's list."""
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
    """Factors by arity: (type, functions, scopes) with one row per factor."""
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
    assembly = Assembly(num_labels, content.name)
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
        try:
            kind.add_to(assembly, functions, scopes)
        except ModelError as error:
            raise FormatError(str(error), content.name) from error
    return assembly.build()


def _check_scopes(scopes: Ints, n: int, content: Content) -> None:
    if scopes.size and scopes.max() >= n:
        message = f"a factor names variable {scopes.max()}, expected 0 to {n - 1}"
        raise FormatError(message, content.name, expected=f"0 to {n - 1}")
    ordered = np.sort(scopes, axis=1) if scopes.shape[1] > 2 else scopes
    if (ordered[:, 1:] == ordered[:, :-1]).any():
        raise FormatError("a factor names a variable twice", content.name)

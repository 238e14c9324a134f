"""OpenGM's HDF5 files, the writing half: families by their own type, shared tables shared."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np

from softmap.errors import MissingExtra
from softmap.io.assembly import Costs, Ints
from softmap.io.atomic import write_bytes
from softmap.io.factors import joint_factors
from softmap.io.streams import Source
from softmap.model import Model, checked_model
from softmap.model.potentials import (
    Potential,
    Potts,
    SharedTables,
    TruncatedLinear,
    TruncatedQuadratic,
)

__all__ = ["format_opengm", "write_opengm"]

_EXPLICIT, _TRUNCATED_ABSOLUTE, _TRUNCATED_SQUARED, _POTTS = 16000, 16003, 16005, 16006


def write_opengm(model: Model, target: Source) -> None:
    """Write an OpenGM HDF5 file (the group `gm`)."""
    write_bytes(target, [format_opengm(model)])


def format_opengm(model: Model) -> bytes:
    """Bytes of an OpenGM HDF5 file."""
    try:
        import h5py
    except ImportError as error:
        raise MissingExtra("writing OpenGM files", "opengm") from error
    writer = _Writer()
    if checked_model(model).constant:
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
    return buffer.getvalue()


def _add_group(writer: _Writer, model: Model, edges: Ints, potential: Potential) -> None:
    for k, (i, j) in enumerate(edges.tolist()):
        if i >= model.num_variables:
            continue  # a joint factor is written instead of its auxiliary node
        shape = [int(model.num_labels[i]), int(model.num_labels[j])]
        scope: tuple[int, ...] = (i, j)
        if isinstance(potential, Potts | TruncatedLinear | TruncatedQuadratic):
            if i > j:  # these costs are symmetric
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
        """Add a dense factor; OpenGM wants its variables in increasing order."""
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

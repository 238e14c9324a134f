"""softmap's own format: the arrays of a model in a NumPy archive without pickles."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.arguments import flag
from softmap.errors import FormatError, FormatWarning, ModelError, SoftmapError
from softmap.io.factors import warn_of_lost_names
from softmap.io.store import packed, unpacked
from softmap.io.streams import Content
from softmap.model import Auxiliaries, Model, Network, raised
from softmap.model.lowered_checks import with_required
from softmap.model.lowered_factors import required_from_arrays
from softmap.model.lowered_nodes import NO_RUNNING, Running
from softmap.model.model import assembled, pieces_of
from softmap.model.names import Names
from softmap.model.potentials import FAMILIES, Potential, Projection, SharedTables, Tables
from softmap.model.stored import is_storable, pieces_arrays, pieces_from_arrays

FORMAT = "softmap-model-1"
FORMAT_CONSTRAINTS = "softmap-model-2"  # with factors over many variables as they were given


def format_npz(model: Model, *, compress: bool = True) -> list[memoryview]:
    """Return the bytes of an archive; potential families, auxiliary nodes and shape are kept."""
    return [packed(model_arrays(model), compress=flag("compress", compress))]


def parse_npz(content: Content) -> Model:
    """Return the model of an archive given as bytes."""
    return model_from_arrays(unpacked(content, "a model"), content.name)


def model_from_arrays(arrays: dict[str, NDArray[Any]], name: object) -> Model:
    """Return the model of the arrays of `model_arrays`; errors name the file `name`."""
    try:
        return _from_arrays(arrays, name)
    except FormatError:
        raise
    except SoftmapError as error:
        raise FormatError(str(error), name) from error
    except (ValueError, IndexError, TypeError, OverflowError, MemoryError) as error:
        raise FormatError(f"the arrays do not fit together: {error}", name) from error


def model_arrays(model: Model | Network) -> dict[str, Any]:
    """Return all arrays that define a model, by name.

    A model has its constraints as they were given; a network, and a model with constraints of other
    families, has the nodes and edges that they are lowered to.
    """
    said = pieces_of(model) if isinstance(model, Model) else None
    if said is None or not is_storable(said):
        network = model.network if isinstance(model, Model) else model
        arrays, potentials = network.arrays(), list(network.potentials)
        arrays["format"] = np.array(FORMAT)
    else:
        arrays, potentials = pieces_arrays(said)
        arrays["format"] = np.array(FORMAT_CONSTRAINTS)
    arrays["shape"] = np.array(model.shape or (), dtype=np.int64)
    arrays["families"] = np.array([p.family for p in potentials], dtype=np.str_)
    if model.names is not None and (text := _names_text(model.names)) is not None:
        arrays["names"] = np.array(text)
    for g, potential in enumerate(potentials):
        for name, array in potential.arrays().items():
            arrays[f"{g}.{name}"] = array
    return arrays


def _from_arrays(arrays: dict[str, NDArray[Any]], name: object) -> Model:
    def need(key: str) -> NDArray[Any]:
        if key not in arrays:
            if "header" in arrays:  # an archive of `Result.save`, or a checkpoint
                message = "expected a model, found a saved result: softmap.load_result reads it, "
                raise FormatError(message + "softmap verify RESULT MODEL checks it", name)
            message = f"expected an array {key!r}, found {', '.join(arrays) or 'none'}"
            raise FormatError(message, name, expected=f"an array {key!r}")
        return arrays[key]

    if (form := str(need("format"))) == FORMAT_CONSTRAINTS:
        return _with_constraints(arrays, name)
    if form != FORMAT:
        message = f"expected the format {FORMAT!r} or {FORMAT_CONSTRAINTS!r}, found {form[:40]!r}"
        raise FormatError(message, name, expected=f"{FORMAT} or {FORMAT_CONSTRAINTS}")
    num_labels = need("num_labels").astype(np.int64)
    if num_labels.ndim != 1 or (num_labels < 1).any() or num_labels.sum() != need("unary").size:
        raise FormatError("unary does not have one cost for each label in num_labels", name)
    start = need("group_start").astype(np.int64)
    families = [str(f) for f in need("families")]
    if len(start) != len(families) + 1:
        raise FormatError(f"expected {len(start) - 1} families of potentials", name)
    groups = []
    for g, family in enumerate(families):
        potential = _potential(family, _group_arrays(arrays, g), name)
        groups.append((need("edges")[start[g] : start[g + 1]], potential))
    flat = need("unary").reshape(-1)
    if num_labels.size and (num_labels == num_labels[0]).all():  # avoids a list of rows
        rows: Any = flat.reshape(len(num_labels), -1)
    else:
        rows = np.split(flat, np.cumsum(num_labels)[:-1])
    network = Network(rows, None, groups, constant=float(need("constant")))
    return _with_structure(network, arrays, int(need("num_variables")), name)


def _with_constraints(arrays: dict[str, NDArray[Any]], name: object) -> Model:
    """Return a model whose factors over many variables are held as they were given."""
    families = [str(f) for f in arrays["families"]]

    def potential(g: int) -> Potential:
        return _potential(families[g], _group_arrays(arrays, g), name)

    try:
        model = assembled(pieces_from_arrays(arrays, potential))
    except KeyError as error:
        raise FormatError(f"expected an array {error}", name) from error
    return _described(model, arrays)


def _group_arrays(arrays: dict[str, NDArray[Any]], g: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of the potential of a group."""
    return {k.partition(".")[2]: a for k, a in arrays.items() if k.startswith(f"{g}.")}


def _described(model: Model, arrays: dict[str, NDArray[Any]]) -> Model:
    """Return the model with its names and the shape of its grid."""
    shape = arrays["shape"].tolist() if "shape" in arrays else []
    if "names" in arrays:
        model = _with_names(model, str(arrays["names"]))
    return model.with_shape(shape) if shape else model


def _potential(family: str, arrays: dict[str, NDArray[Any]], name: object) -> Potential:
    if family not in FAMILIES:
        known = ", ".join(FAMILIES)
        message = f"potential family {family!r}; expected one of {known}"
        raise FormatError(message, name, expected=f"one of {known}")
    try:
        if family == Tables.family:
            return Tables(_tables(arrays))
        if family == SharedTables.family:
            return SharedTables(_tables(arrays), arrays["index"], arrays["weights"])
        if family == Projection.family:
            maps = np.split(arrays["flat"], np.cumsum(arrays["sizes"])[:-1])
            return Projection(maps, arrays["num_labels"], arrays["index"])
        return FAMILIES[family](**arrays)
    except KeyError as error:
        message = f"expected an array {error} of the {family} potentials"
        raise FormatError(message, name) from error


def _tables(arrays: dict[str, NDArray[Any]]) -> NDArray[Any] | list[NDArray[Any]]:
    flat, rows, cols = (arrays[k] for k in ("flat", "rows", "cols"))
    if len(rows) and (rows == rows[0]).all() and (cols == cols[0]).all():
        return flat.reshape(len(rows), int(rows[0]), int(cols[0]))
    pieces = np.split(flat, np.cumsum(rows * cols)[:-1])
    return [p.reshape(r, c) for p, r, c in zip(pieces, rows, cols, strict=True)]


def _with_structure(
    network: Network, arrays: dict[str, NDArray[Any]], num_variables: int, name: object
) -> Model:
    """Restore auxiliary nodes, chain variables, factors over many and the shape of the grid."""
    if num_variables != network.n:
        empty = np.zeros(0, dtype=np.int64)
        parts = [arrays.get(f"aux.{k}", empty) for k in ("start", "member", "stride")]
        if len(parts[0]) != network.n - num_variables + 1:
            raise FormatError("the auxiliary variables do not fit the model", name)
        network = network.with_auxiliaries(Auxiliaries(*parts))
    if "running.start" in arrays:
        names = NO_RUNNING.arrays()
        network = network.with_running_variables(Running(*(arrays[f"running.{k}"] for k in names)))
    if "required.kind" in arrays:
        network = _with_required(network, arrays, name)
    return _described(raised(network), arrays)


def _with_required(network: Network, arrays: dict[str, NDArray[Any]], name: object) -> Network:
    """Restore the factors over many variables that the tables of the model imply.

    If they do not, another version of softmap may have made other chains of them. The model without
    them has the same energies, and a fingerprint of its own.
    """
    part = {k.partition(".")[2]: a for k, a in arrays.items() if k.startswith("required.")}
    factors, chained = required_from_arrays(part, network.num_labels)
    try:
        return with_required(network, factors, chained)
    except ModelError as error:
        message = f"{name}: {error}: the factors over many variables are kept as tables only"
        warnings.warn(FormatWarning(message), stacklevel=2)
        return network


def _names_text(names: Names) -> str | None:
    """Return the names as JSON; None, with a warning, if one is neither text nor an integer."""
    every = [*names.variables, *(state for row in names.states if row for state in row)]
    if lost := [name for name in every if not isinstance(name, str | int)]:
        warn_of_lost_names(lost[0])
        return None
    return json.dumps({"variables": names.variables, "states": names.states})


def _with_names(model: Model, text: str) -> Model:
    try:
        held = json.loads(text)
        return model.with_names(held["variables"], held["states"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"names: {error}") from error

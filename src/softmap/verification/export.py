"""The integer model of a proof file, written for the checker that is proved in Coq (theorems/)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmap.io.atomic import replacing
from softmap.model import Network
from softmap.verification.integers import Flat, flat_model

FORMAT, VERSION = "softmap integer model", 2

Floats = NDArray[np.float64]


def export_model(path: str | Path, model: Network) -> None:
    """Write the integer model of a model as JSON (docs/proofs.md)."""
    with replacing(Path(path)) as out:
        out.write(json.dumps(integer_model(model)).encode())


def integer_model(model: Network) -> dict[str, Any]:
    """Return the costs of a model as exact multiples of one power of two.

    Parameters
    ----------
    model : Network
        The model that a proof file refers to. Its costs are those of the checker of proof files:
        labels that arc consistency rules out are forbidden, and a product of a weight and a table
        entry is rounded down to a float64.

    Returns
    -------
    dict
        `exponent` and the integers `constant`, `unary` and `factors`; a cost is its integer times
        2**exponent, and None if it is forbidden. A factor with rounded products has two lists:
        `costs`, for bounds, and `energies`, rounded to nearest, for the energy of a labelling.
        `edges` has the factor and the axis of each edge.
    """
    flat = flat_model(model)
    tables = [*flat.unary, *(table for _, table in flat.factors), np.array([model.constant])]
    paid = _paid(model, flat)
    exponent = min((_exponent(table) for table in (*tables, *paid.values())), default=0)
    count = len(flat.unary)
    scopes = [list(scope) for scope, _ in flat.factors]
    whole = [_integers(table.ravel(), exponent) for table in tables]
    factors = [
        {"scope": scope, "costs": costs}
        for scope, costs in zip(scopes, whole[count:-1], strict=True)
    ]
    for number, table in paid.items():
        factors[number]["energies"] = _integers(table.ravel(), exponent)
    return {
        "format": FORMAT,
        "version": VERSION,
        "model": model.fingerprint(),
        "exponent": exponent,
        "constant": whole[-1][0],
        "unary": whole[:count],
        "factors": factors,
        "edges": _edges(model, scopes),
    }


def _paid(model: Network, flat: Flat) -> dict[int, Floats]:
    """The costs in energies of the factors whose costs in bounds are rounded down, by number."""
    inner = np.flatnonzero((model.edges < model.num_variables).all(axis=1))  # the first factors
    tables = {number: model.table(e) for number, e in enumerate(inner.tolist())}
    return {
        number: table
        for number, table in tables.items()
        if not np.array_equal(table, flat.factors[number][1])
    }


def _parts(costs: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Odd integers, or 0, and exponents whose powers of two they multiply."""
    mantissa, exponent = np.frexp(costs)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    zeros = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    zeros = np.where(whole == 0, 0, zeros)
    return whole >> zeros, exponent.astype(np.int64) - 53 + zeros


def _exponent(costs: Floats) -> int:
    """The largest exponent, at most 0, of a power of two that divides all finite costs."""
    used = costs[np.isfinite(costs) & (costs != 0)]
    return int(_parts(used)[1].min(initial=0))


def _integers(costs: Floats, exponent: int) -> list[int | None]:
    finite = np.isfinite(costs)
    whole, power = _parts(np.where(finite, costs, 0.0))
    rows = zip(finite.tolist(), whole.tolist(), power.tolist(), strict=True)
    return [(k << (e - exponent) if k else 0) if ok else None for ok, k, e in rows]


def _edges(model: Network, scopes: list[list[int]]) -> list[tuple[int, int | None]]:
    """The factor of each edge, and its axis if the factor has an auxiliary node."""
    n, pairs = model.num_variables, int((model.edges < model.num_variables).all(axis=1).sum())
    edges: list[tuple[int, int | None]] = []
    number = 0
    for first, second in model.edges.tolist():
        if first < n:
            edges.append((number, None))
            number += 1
        else:  # from an auxiliary node to a variable
            factor = pairs + first - n
            edges.append((factor, scopes[factor].index(second)))
    return edges

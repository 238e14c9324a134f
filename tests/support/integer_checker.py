"""The rules of DUAL, LABELS and CONCLUDE in fractions, on the model that `--export` writes.

An oracle for models of variables and pairs: it follows docs/proofs.md and theorems/Statement.v, and
shares nothing with `softmap.verification`.
"""

from __future__ import annotations

import itertools
import math
import struct
from fractions import Fraction
from typing import Any

__all__ = ["integer_verdict"]

Verdict = tuple[str, int | None]
Integers = list[int | None]
REJECTED: Verdict = ("rejected", None)


def real(bits: int) -> Fraction | None:
    """The float of 64 bits as a fraction; None if it is not finite."""
    (value,) = struct.unpack("<d", struct.pack("<q", bits))
    return Fraction(value) if math.isfinite(value) else None


def integer_verdict(model: dict[str, Any], records: list[tuple[str, list[list[int]]]]) -> Verdict:
    """The verdict on a log of DUAL, and of a conclusion, and its bound in units of the model."""
    arrays, units = dict(records), Fraction(2) ** model["exponent"]
    lam = [real(x) for x in arrays["DUAL"][2]]
    sizes = [len(costs) for costs in model["unary"]]
    halves = [v for factor, _ in model["edges"] for v in model["factors"][factor]["scope"]]
    if None in lam or len(lam) != sum(sizes[v] for v in halves):
        return REJECTED
    found = dual_value(model, [x / units for x in lam if x is not None], sizes)
    bound = math.ceil(found)
    energy = paid(model, arrays["LABELS"][0]) if "LABELS" in arrays else None
    if "LABELS" in arrays and energy is None:
        return REJECTED
    if "CONCLUDE" not in arrays:
        return "bound", bound
    (what,), numbers = arrays["CONCLUDE"][0], [real(x) for x in arrays["CONCLUDE"][1]]
    if None in numbers:
        return REJECTED
    (number,) = (x / units for x in numbers if x is not None)
    if what == 0:
        return ("bound", bound) if number <= found else REJECTED
    if energy is None or number < 0 or energy > found + number:
        return REJECTED
    return ("optimal" if energy == bound else "between"), bound


def dual_value(model: dict[str, Any], lam: list[Fraction], sizes: list[int]) -> Fraction:
    """The sum of the least reduced costs of all variables and pairs, and the constant."""
    reduced = [[None if c is None else Fraction(c) for c in costs] for costs in model["unary"]]
    total, at = Fraction(model["constant"]), 0
    for number, _ in model["edges"]:
        factor = model["factors"][number]
        i, j = factor["scope"]
        first, second = lam[at : at + sizes[i]], lam[at + sizes[i] : at + sizes[i] + sizes[j]]
        at += sizes[i] + sizes[j]
        pairs = itertools.product(range(sizes[i]), range(sizes[j]))
        total += min(
            cost + first[a] + second[b]
            for cost, (a, b) in zip(factor["costs"], pairs, strict=True)
            if cost is not None and reduced[i][a] is not None and reduced[j][b] is not None
        )
        for variable, amounts in ((i, first), (j, second)):
            reduced[variable] = [
                None if c is None else c - x
                for c, x in zip(reduced[variable], amounts, strict=True)
            ]
    return total + sum(min(c for c in costs if c is not None) for costs in reduced)


def paid(model: dict[str, Any], labels: list[int]) -> int | None:
    """The energy of a labelling in units; None if it is none, or costs +∞."""
    sizes = [len(costs) for costs in model["unary"]]
    if len(labels) != len(sizes) or any(not 0 <= x < d for x, d in zip(labels, sizes, strict=True)):
        return None
    terms = [model["constant"], *(u[x] for u, x in zip(model["unary"], labels, strict=True))]
    for factor in model["factors"]:
        i, j = factor["scope"]
        terms.append(factor.get("energies", factor["costs"])[labels[i] * sizes[j] + labels[j]])
    return None if None in terms else sum(terms)

"""What a `Decoder` is made of: checks, costs and observables of matrices, models and files."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from softmap import io
from softmap.codes.checks import Bytes
from softmap.codes.parity import ParityCode
from softmap.errors import OptionError
from softmap.extend import Costs, numbers
from softmap.extend.store import uncompressed


@dataclass(frozen=True, eq=False)
class Errors:
    """Independent errors: the checks that each violates, its cost, the observables it flips.

    Attributes
    ----------
    checks : list of sequences of int
        The errors of each check.
    costs : float64[errors]
        log (1 - p) / p of each error; +inf if it is impossible, -inf if it is certain.
    observables : uint8[errors, observables]
    """

    checks: list[Any]
    costs: Costs
    observables: Bytes


def errors_of(code: Any, probabilities: ArrayLike | None, ratios: ArrayLike | None) -> Errors:
    """Return the errors of a code as `Decoder` takes it."""
    if (found := detectors_of(code)) is not None:
        if probabilities is not None or ratios is not None:
            raise OptionError("a detector error model has probabilities of its own")
        return _of_detectors(found)
    known = code if isinstance(code, ParityCode) else _read_code(code)
    costs = _costs(known.num_bits, probabilities, ratios)
    return Errors(list(known.checks), costs, np.zeros((known.num_bits, 0), np.uint8))


def detectors_of(code: Any) -> io.Detectors | None:
    """Return the detector error model of a model, a circuit or their file; None for a code."""
    if isinstance(code, io.Detectors):
        return code
    stim = sys.modules.get("stim")  # an object of stim's exists only if stim is imported
    if stim is not None and isinstance(code, stim.Circuit):
        code = code.detector_error_model()
    if stim is not None and isinstance(code, stim.DetectorErrorModel):
        return io.read_detectors(BytesIO(str(code).encode()))
    if not isinstance(code, str | PathLike):
        return None
    alist = uncompressed(Path(code)).suffix.lower() == ".alist"
    return None if alist else io.read_detectors(code)


def _read_code(code: Any) -> ParityCode:
    path = isinstance(code, str | PathLike)
    return ParityCode.from_alist(code) if path else ParityCode.from_matrix(code)


def _of_detectors(found: io.Detectors) -> Errors:
    checks: list[list[int]] = [[] for _ in range(found.num_detectors)]
    for error, own in enumerate(found.detectors):
        for detector in own:
            checks[detector].append(error)
    flips = np.zeros((len(found.probabilities), found.num_observables), np.uint8)
    for error, own in enumerate(found.observables):
        flips[error, list(own)] = 1
    return Errors(checks, _log_odds(found.probabilities), flips)


def _log_odds(p: NDArray[np.float64]) -> Costs:
    with np.errstate(divide="ignore"):
        return np.log1p(-p) - np.log(p)


def _costs(bits: int, probabilities: ArrayLike | None, ratios: ArrayLike | None) -> Costs:
    """Return one cost per bit; 1 for each if neither probabilities nor ratios are given."""
    if probabilities is not None and ratios is not None:
        raise OptionError("expected probabilities or ratios, not both")
    given = numbers(
        1.0 if probabilities is ratios else ratios if probabilities is None else probabilities,
        "ratios" if probabilities is None else "probabilities",
    )
    if given.shape not in ((), (bits,)) or np.isnan(given).any():
        raise OptionError(f"expected one number, or one for each of {bits} bits")
    if probabilities is None:
        return np.broadcast_to(given, bits).copy()
    if ((given < 0) | (given > 1)).any():
        raise OptionError("probabilities: expected numbers from 0 to 1")
    return _log_odds(np.broadcast_to(given, bits))
